"""Active to passive, in sentences that are a subject, a transitive verb and an object, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pcs_annotator.core.variant import Expectation
from pcs_annotator.relations import facts
from pcs_annotator.relations.rule import NotApplicable, sentence_rule

if TYPE_CHECKING:
    from spacy.tokens import Span, Token

_VERBS = facts.listed("voice", "verbs")
_TIED = facts.listed("voice", "tied")
_MEASURES = facts.listed("voice", "measures")
_HELPERS = facts.word_set("will can could may might must should is are was were has have had")
_ARTICLES = facts.word_set("the a an this that these those")
_IN_PHRASES = frozenset({"det", "amod", "compound", "nummod", "poss", "case", "nmod"})
_NOT_IN_PHRASES = frozenset({"VBG", "VBD", "VBZ", "VBP", "VB", "RB", "RBR", "PRP", "WDT", "WP", "EX", "TO", "PDT"})
_MOST_WORDS = 9
_AS_OBJECT = {"i": "me", "it": "it", "he": "him", "she": "her", "we": "us", "they": "them"}
_REST = facts.pattern("date")


class _Clause(NamedTuple):
    """A clause as its parts."""

    subject: Span
    helpers: Span
    verb: Token
    done_to: Span


@sentence_rule("rule:voice", version="5", expects=Expectation(reorders=True))
def voice(sentence: Span) -> str | NotApplicable:
    """Return a sentence that is one simple clause in the passive."""
    reason = facts.why_not_plain(sentence)
    clause = None if reason else _clause(sentence)
    if clause is None:
        return NotApplicable(reason or "no clause so simple that it can be turned around for sure")
    reason = _why_not(clause)
    if reason:
        return NotApplicable(reason)
    verbs, agent, new = _passive(clause), _moved(clause.subject), clause.done_to.text
    if verbs is None or agent is None:
        return NotApplicable("no sure form of the verb or of the first word")
    rest = sentence.text[clause.done_to.end_char - sentence.start_char :]
    return f"{new[0].upper()}{new[1:]} {verbs} by {agent}{rest}"


def _clause(sentence: Span) -> _Clause | None:
    """Return the parts of the only clause of a sentence; None if there is anything beside them."""
    verb, doc = sentence.root, sentence.doc
    head = facts.subject_of(verb) if verb.tag_.startswith("VB") and facts.lemma(verb) in _VERBS else None
    if head is None or head.dep_ == "nsubjpass" or _leads_on(sentence):
        return None
    objects = [word for word in verb.rights if word.dep_ == "dobj"]
    subject = _phrase(head, subject=True)
    done_to = _phrase(objects[0], subject=False) if len(objects) == 1 else None
    if subject is None or done_to is None or subject.start != sentence.start or done_to.start != verb.i + 1:
        return None
    helpers = doc[subject.end : verb.i]
    # Without a full stop, it may be a headline or cut off.
    whole = _REST.fullmatch(doc[done_to.end : sentence.end].text.lower()) is not None
    known = all(token.lower_ in _HELPERS for token in helpers)
    return _Clause(subject, helpers, verb, done_to) if whole and known else None


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
        return words if subject and len(words) == 1 and head.lower_ in _AS_OBJECT else None
    if head.tag_ not in facts.NOUNS or len(words) > _MOST_WORDS or words[-1].tag_ not in facts.NOUNS:
        return None
    links = [token for token in words if token.dep_ == "prep" and (subject or token.lower_ == "of")]
    inside = _IN_PHRASES | ({"conj", "cc"} if subject else set())
    for token in words:
        linked = token in links or (token.dep_ == "pobj" and token.head in links and token.tag_ in facts.NOUNS)
        if not (token == head or linked or token.dep_ in inside) or token.tag_ in _NOT_IN_PHRASES:
            return None
        if token.tag_ == "DT" and token.lower_ not in _ARTICLES:
            return None
    return words if subject or len(links) < 2 else None


def _why_not(clause: _Clause) -> str:
    phrases, subject, done = (clause.subject, clause.done_to), clause.subject.root, clause.done_to.root
    if not _is_parsed_surely(clause):
        return "the parse is in doubt"
    words = {token.lower_ for phrase in phrases for token in phrase}
    if words & _TIED or subject.lower_ == "it":
        return "a phrase is tied to the other, or counts"
    counts = [any(token.tag_ in ("CD", "$") for token in phrase) for phrase in phrases]
    if all(counts) or {subject.lower_, done.lower_} & _MEASURES or done.tag_ == "CD":
        return "a measure"
    # A noun that is no name and no plural, and has no article, is part of an idiom or a headline, or stuff.
    bare = done.tag_ == "NN" and not any(child.dep_ in ("det", "poss") for child in done.lefts)
    return "an idiom or a headline" if bare else ""


def _is_parsed_surely(clause: _Clause) -> bool:
    """Return whether the verb fits its subject, and common nouns are nouns to a dictionary as well."""
    finite, phrases = facts.finite_of(clause.verb), (clause.subject, clause.done_to)
    if finite is None or not facts.agrees(clause.subject.root, finite):
        return False
    # "Rivals cut routes" may be in either tense.
    if (
        finite == clause.verb
        and finite.tag_ != "VBZ"
        and facts.inflect(facts.lemma(finite), "VBD") == facts.lemma(finite)
    ):
        return False
    # "Bought Ann flowers": two objects that the parser takes for one.
    if any(token.tag_ in ("NNP", "NNPS") and token.nbor().tag_ in ("NN", "NNS") for token in clause.done_to[:-1]):
        return False
    common = [word for phrase in phrases for word in phrase if word.tag_ in ("NN", "NNS") and word.is_alpha]
    return all("NOUN" in facts.readings(token.lower_) for token in common)


def _moved(subject: Span) -> str | None:
    """Return the subject as it is written behind the verb; None if that is not sure."""
    if len(subject) == 1 and subject[0].lower_ in _AS_OBJECT:
        return _AS_OBJECT[subject[0].lower_]
    word = facts.within_sentence(subject[0])
    # The full stop of "U.S." would meet that of the sentence.
    return None if word is None or subject.text.endswith(".") else word + subject.text[len(subject[0]) :]


def _passive(clause: _Clause) -> str | None:
    """Return the verb with its helpers in the passive, in the number of its new subject."""
    plural, verb = facts.is_plural(clause.done_to.root), clause.verb
    kinds = " ".join("M" if token.tag_ == "MD" else facts.lemma(token) for token in clause.helpers)
    first = clause.helpers[0].lower_ if len(clause.helpers) else ""
    has = first if first == "had" else "have" if plural else "has"
    past = first in ("was", "were") or verb.tag_ == "VBD"
    be = ("were" if plural else "was") if past else ("are" if plural else "is")
    shapes = {"": be, "M": f"{first} be", "have": f"{has} been", "be": f"{be} being"}
    fits = verb.tag_ in {"M": ("VB",), "have": ("VBN",), "be": ("VBG",)}.get(kinds, ("VBD", "VBP", "VBZ"))
    # A regular past form is taken as the text spells it.
    known = facts.inflect(facts.lemma(verb), "VBN") or ""
    kept = verb.tag_ == "VBN" or (verb.tag_ == "VBD" and verb.lower_.endswith("ed") and known.endswith("ed"))
    participle = verb.lower_ if kept else known
    return f"{shapes[kinds]} {participle}" if plural is not None and kinds in shapes and fits and participle else None
