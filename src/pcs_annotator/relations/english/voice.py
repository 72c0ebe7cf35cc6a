"""Active to passive and back, in sentences that are a subject, a transitive verb and an object, and nothing else."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pcs_annotator.core.variant import Expectation
from pcs_annotator.relations.english.sentence import NOUNS, agrees, finite_of, is_plural, subject_of, why_not_plain
from pcs_annotator.relations.facts import inflect, lemma, listed, readings, within_sentence, word_set
from pcs_annotator.relations.rule import NotApplicable, sentence_rule

if TYPE_CHECKING:
    from spacy.tokens import Span, Token

_VERBS = listed("voice", "verbs")
_TIED = listed("voice", "tied")
_MEASURES = listed("voice", "measures")
_AGENTS = listed("voice", "agents")
_HELPERS = word_set("will can could may might must should is are was were be been has have had being")
_ARTICLES = word_set("the a an this that these those")
_IN_PHRASES = frozenset({"det", "amod", "compound", "nummod", "poss", "case", "nmod"})
_NOT_IN_PHRASES = frozenset({"VBG", "VBD", "VBZ", "VBP", "VB", "RB", "RBR", "PRP", "WDT", "WP", "EX", "TO", "PDT"})
_MOST_WORDS = 9
_AS_OBJECT = {"i": "me", "it": "it", "he": "him", "she": "her", "we": "us", "they": "them"}
_AS_SUBJECT = {"me": "I", "it": "it", "him": "he", "her": "she", "us": "we", "them": "they"}
# A date may follow the clause; anything else may belong to the object or to the verb.
_REST = re.compile(
    r"(?:on (?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:last|this|next) (?:week|month|year|weekend|summer|spring|"
    r"fall|winter)|(?:earlier|later) this (?:week|month|year)|yesterday|today|in (?:1[5-9]|20)\d\d|in (?:january|"
    r"february|april|june|july|september|october|november|december)(?: (?:19|20)\d\d)?)?\s*[.!]"
)


@dataclass(frozen=True, slots=True)
class _Clause:
    """A clause as its parts: subject, helpers, verb, and the object or, after "by", the agent."""

    first: Span
    helpers: tuple[Token, ...]
    verb: Token
    second: Span
    passive: bool


@sentence_rule("rule:voice", version="5", expects=Expectation(reorders=True))
def voice(sentence: Span) -> str | NotApplicable:
    """Return a sentence that is one simple clause in the other voice."""
    reason = why_not_plain(sentence)
    clause = None if reason else _clause(sentence)
    if clause is None:
        return NotApplicable(reason or "no simple clause with a subject, a verb and an object")
    reason = _why_not(clause)
    if reason:
        return NotApplicable(reason)
    verbs, before = _turned(clause), _moved(clause.first)
    if verbs is None or before is None:
        return NotApplicable("no sure form of the verb or of the first word")
    after = _AS_SUBJECT.get(clause.second.text, clause.second.text)
    rest = sentence.text[clause.second.end_char - sentence.start_char :]
    return f"{after[0].upper()}{after[1:]} {verbs} {'' if clause.passive else 'by '}{before}{rest}"


def _clause(sentence: Span) -> _Clause | None:
    """Return the parts of the only clause of a sentence; None if there is anything beside them."""
    verb, doc = sentence.root, sentence.doc
    subject = subject_of(verb) if verb.tag_.startswith("VB") and lemma(verb) in _VERBS else None
    if subject is None or _leads_on(sentence):
        return None
    passive = subject.dep_ == "nsubjpass"
    agents = [child for child in verb.rights if child.dep_ == "agent"]
    heads = [word for agent in agents for word in agent.children] if passive else list(verb.rights)
    nouns = [word for word in heads if word.dep_ == ("pobj" if passive else "dobj")]
    first = _phrase(subject, subject=not passive)
    second = _phrase(nouns[0], subject=False) if len(nouns) == 1 else None
    if first is None or second is None or first.start != sentence.start:
        return None
    helpers, gap = doc[first.end : verb.i], doc[verb.i + 1 : second.start].text
    if gap != ("by" if passive else "") or not all(token.lower_ in _HELPERS for token in helpers):
        return None
    # Without a full stop, it may be a headline or cut off.
    whole = _REST.fullmatch(doc[second.end : sentence.end].text.lower()) is not None
    return _Clause(first, tuple(helpers), verb, second, passive) if whole else None


def _leads_on(sentence: Span) -> bool:
    """Return whether the next sentence, such as "Praised him twice.", has no subject but this one's."""
    following = sentence.doc[sentence.end : sentence.end + 1]
    return bool(following) and following[0].tag_ in ("VBD", "VBN", "VBZ")


def _phrase(head: Token, *, subject: bool) -> Span | None:
    """Return a noun with its articles and adjectives and a phrase with "of"; None if there is more.

    In front of the verb, any phrase belongs to the subject; behind it, another one may belong to the verb.
    """
    words = head.doc[head.left_edge.i : head.right_edge.i + 1]
    if head.tag_ == "PRP":
        return words if len(words) == 1 and head.lower_ in _AS_OBJECT.keys() | _AS_SUBJECT.keys() else None
    if head.tag_ not in NOUNS or len(words) > _MOST_WORDS or words[-1].tag_ not in NOUNS:
        return None
    links = [token for token in words if token.dep_ == "prep" and (subject or token.lower_ == "of")]
    inside = _IN_PHRASES | ({"conj", "cc"} if subject else set())
    for token in words:
        linked = token in links or (token.dep_ == "pobj" and token.head in links and token.tag_ in NOUNS)
        if not (token == head or linked or token.dep_ in inside) or token.tag_ in _NOT_IN_PHRASES:
            return None
        if token.tag_ == "DT" and token.lower_ not in _ARTICLES:
            return None
    return words if subject or len(links) < 2 else None


def _why_not(clause: _Clause) -> str:
    subject, other = clause.first.root, clause.second.root
    if not _is_parsed_surely(clause):
        return "the parse is in doubt"
    words = {token.lower_ for phrase in (clause.first, clause.second) for token in phrase}
    if words & _TIED or (not clause.passive and (other.tag_ == "PRP" or subject.lower_ == "it")):
        return "a phrase is tied to the other, or counts"
    done = subject if clause.passive else other
    counts = [any(token.tag_ in ("CD", "$") for token in phrase) for phrase in (clause.first, clause.second)]
    if all(counts) or {subject.lower_, other.lower_} & _MEASURES or done.tag_ == "CD":
        return "a measure"
    if not clause.passive and not _has_article(done):
        return "an idiom or a headline"
    return "no agent" if clause.passive and not _is_agent(other) else ""


def _is_parsed_surely(clause: _Clause) -> bool:
    """Return whether the verb fits its subject, and common nouns are nouns to a dictionary as well."""
    finite, phrases = finite_of(clause.verb), (clause.first, clause.second)
    if finite is None or not agrees(clause.first.root, finite):
        return False
    # "Rivals cut routes" may be in either tense.
    if finite == clause.verb and finite.tag_ != "VBZ" and inflect(lemma(finite), "VBD") == lemma(finite):
        return False
    # "Bought Ann flowers": two objects that the parser takes for one.
    if any(token.tag_ in ("NNP", "NNPS") and token.nbor().tag_ in ("NN", "NNS") for token in clause.second[:-1]):
        return False
    common = [word for phrase in phrases for word in phrase if word.tag_ in ("NN", "NNS") and word.is_alpha]
    return all("NOUN" in readings(token.lower_) for token in common)


def _has_article(noun: Token) -> bool:
    """Return whether a noun is a name, a plural, or has an article; others are idioms, headlines or stuff."""
    return noun.tag_ != "NN" or any(child.dep_ in ("det", "poss") for child in noun.lefts)


def _is_agent(noun: Token) -> bool:
    return noun.tag_ in ("NNP", "PRP") or (_has_article(noun) and not _AGENTS.isdisjoint((noun.lower_, lemma(noun))))


def _moved(subject: Span) -> str | None:
    """Return the subject as it is written behind the verb; None if that is not sure."""
    if len(subject) == 1 and subject[0].lower_ in _AS_OBJECT:
        return _AS_OBJECT[subject[0].lower_]
    word = within_sentence(subject[0])
    # The full stop of "U.S." would meet that of the sentence.
    return None if word is None or subject.text.endswith(".") else word + subject.text[len(subject[0]) :]


def _turned(clause: _Clause) -> str | None:
    """Return the verb with its helpers in the other voice, in the number of its new subject."""
    plural = is_plural(clause.second.root)
    if clause.second.root.tag_ == "PRP":
        plural = clause.second.text in ("us", "them", "me")
    if plural is None:
        return None
    verb, base, helpers = clause.verb, lemma(clause.verb), [token.lower_ for token in clause.helpers]
    kinds = " ".join("M" if token.tag_ == "MD" else lemma(token) for token in clause.helpers)
    first = helpers[0] if helpers else ""
    has = first if first == "had" else "have" if plural else "has"
    past = first in ("was", "were") or verb.tag_ == "VBD"
    if clause.passive:
        simple = _past_form(verb, base, "VBD") if past else inflect(base, "VBP" if plural else "VBZ")
        return {"be": simple, "M be": f"{first} {base}", "have be": f"{has} {verb.lower_}"}.get(kinds)
    be = ("were" if plural else "was") if past else ("are" if plural else "is")
    shapes = {"": be, "M": f"{first} be", "have": f"{has} been", "be": f"{be} being"}
    fits = verb.tag_ in {"M": ("VB",), "have": ("VBN",), "be": ("VBG",)}.get(kinds, ("VBD", "VBP", "VBZ"))
    participle = _past_form(verb, base, "VBN")
    return f"{shapes[kinds]} {participle}" if kinds in shapes and fits and participle else None


def _past_form(verb: Token, base: str, tag: str) -> str | None:
    """Return a past form as the text spells it, if the text has one."""
    regular = verb.tag_ in ("VBD", "VBN") and verb.lower_.endswith("ed") and (inflect(base, "VBN") or "").endswith("ed")
    return verb.lower_ if regular or tag == verb.tag_ else inflect(base, tag)
