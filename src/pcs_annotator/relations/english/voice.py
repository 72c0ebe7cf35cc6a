"""Active to passive and back, in sentences that are a subject, a transitive verb and an object, and nothing else."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pcs_annotator.core.variant import Expectation
from pcs_annotator.relations.english.sentence import (
    NOUNS,
    agrees,
    finite_of,
    is_plain,
    is_plural,
    subject_of,
    why_not_whole,
)
from pcs_annotator.relations.facts import inflect, lemma, readings, within_sentence, word_set
from pcs_annotator.relations.rule import NotApplicable, Replacement, sentence_rule, splice

if TYPE_CHECKING:
    from spacy.tokens import Span, Token

# Verbs of doing something to something. Left out: verbs with two objects, with another sense in the passive, or of
# being, having, seeming and moving.
_VERBS = word_set(
    """
    abandon abolish accept acquire address admire adopt affect amend analyze announce approve arrest assassinate assess
    attack attract authorize avoid back ban blame block bomb boycott build burn buy cancel capture cause celebrate
    challenge cite close collect condemn conduct confirm construct control cover create criticize criticise
    damage defeat defend define delay deliver demand denounce deny deploy describe design destroy detain develop direct
    disclose discover discuss dismiss displace distribute dominate draft drive edit eliminate embrace enact encourage
    endorse enforce enjoy erode establish evaluate examine execute exploit explore expose face fight file finance
    force form fund generate greet halt handle harm hate highlight hire honor honour host identify ignore implement
    impose improve influence injure inspect inspire install interview introduce invade invent investigate invite issue
    jail kidnap kill launch lead lift limit loathe love maintain manage manufacture measure mention mock monitor murder
    need nominate notice observe obtain occupy operate oppose order organize organise oust outline oversee overturn pass
    perform persecute photograph plan poison post praise prepare prevent print process produce prohibit promote propose
    protect provide publish punish purchase question quote raise ratify reach read receive recognize recommend record
    recruit reduce regulate reject release remove repair repeal replace report represent rescue resolve respect
    restore reveal reverse review revise ruin sanction save schedule secure seize select settle shape share sign silence
    slam solve spark sponsor spread stage steal stop strengthen study submit sue supply support surround suspend tackle
    target test topple track transform translate treat trigger trust undermine understand unveil use value
    vandalize veto view violate visit watch weaken welcome win wreck write beat change cut find hold increase lose own
    seek sell
    """
)
# Their passive is right in one sense only.
_IDIOMS = word_set("win:way win:day provide:evidence cause:trouble address:crowd deliver:baby")
# Words that refer to the subject, or whose reach would change with their place.
_TIED = word_set(
    """
    his her its their my our your own himself herself itself themselves myself ourselves each other another all every
    both many most much some several few fewer little less no none nobody neither nothing any anyone anything everyone
    everybody everything someone somebody something only either half more same such enough else such one ones
    """
)
_MEASURES = word_set(
    """
    percent % cents dollars euros pounds points miles feet meters metres years months weeks days hours minutes seconds
    times lot lots bit way ways time day week month year today yesterday tomorrow tonight million billion trillion
    """
)
_HELPERS = word_set("will would can could may might must should is are was were be been has have had being")
_IN_PHRASES = frozenset({"det", "amod", "compound", "nummod", "poss", "case", "nmod"})
_NOT_IN_PHRASES = frozenset({"VBG", "VBD", "VBZ", "VBP", "VB", "RB", "RBR", "PRP", "WDT", "WP", "EX", "TO", "PDT"})
_MOST_WORDS = 9
_AS_OBJECT = {"i": "me", "it": "it", "he": "him", "she": "her", "we": "us", "they": "them"}
_AS_SUBJECT = {"me": "I", "it": "it", "him": "he", "her": "she", "us": "we", "them": "they"}
# Who acts; other nouns after "by" may say where, when or how.
_DOER = re.compile(
    r"(?:[a-z]{2,}(?:er|or|ist|ian|man|woman|men|women|ant|ee)|police|people|government|court|president|company|"
    r"companies|bank|senate|parliament|congress|council|army|military|union|party|parties|team|group|agency|agencies|"
    r"ministry|department|university|official|administration|commission|board|jury|resident|student|expert|critic|"
    r"children|parent|authorities|media|public|state|republican|democrat)s?"
)
_NO_DOER = word_set(
    """
    river water number corner letter paper order computer power winter summer center centre quarter chapter master
    matter weather offer manner margin factor door floor error color colour plant counter border shoulder dinner answer
    cover member november december october september
    """
)
_TIME = re.compile(
    r"(?:on (?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:last|this|next) (?:week|month|year|weekend|summer|spring|"
    r"fall|winter)|(?:earlier|later) this (?:week|month|year)|yesterday|today|in (?:1[5-9]|20)\d\d|in (?:january|"
    r"february|april|june|july|september|october|november|december)(?: (?:19|20)\d\d)?)\b"
)


_SAYING = word_set(
    """
    say add argue claim warn note report announce explain state suggest admit confirm think believe know
    """
)
# Words in front of a clause that ends the sentence.
_JOINS = word_set("because after before when while if although though whereas unless until")


@dataclass(frozen=True, slots=True)
class _Clause:
    """A clause as its parts; together they cover all of its words."""

    first: Span
    verb: Token
    second: Span
    helpers: tuple[Token, ...]
    passive: bool


@sentence_rule("rule:voice", version="3", expects=Expectation(reorders=True))
def voice(sentence: Span) -> str | NotApplicable:
    """Return the sentence with one simple clause in the other voice."""
    reason = why_not_whole(sentence)
    if reason:
        return NotApplicable(reason)
    reason = "no simple clause with a subject, a verb and an object"
    for clause in filter(None, map(_clause, sentence)):
        reason = _why_not(clause)
        words = None if reason else _words(clause)
        if words is not None:
            place = Replacement(clause.first.start_char, clause.second.end_char, words)
            return splice(sentence.text, [place], sentence.start_char)
    return NotApplicable(reason or "no sure form of the verb or of the first word")


def _words(clause: _Clause) -> str | None:
    """Return a clause in the other voice; None if a form or a capital is not sure."""
    opens = clause.first.start == clause.first.sent.start
    verbs, before = _turned(clause), _moved(clause.first, opens=opens)
    if verbs is None or before is None:
        return None
    after = _AS_SUBJECT.get(clause.second.text, clause.second.text)
    after = after[0].upper() + after[1:] if opens else after
    return f"{after} {verbs} {before}" if clause.passive else f"{after} {verbs} by {before}"


def _moved(subject: Span, *, opens: bool) -> str | None:
    """Return the subject as it is written behind the verb; None if that is not sure."""
    if len(subject) == 1 and subject[0].lower_ in _AS_OBJECT:
        return _AS_OBJECT[subject[0].lower_]
    word = within_sentence(subject[0]) if opens else subject[0].text
    # The full stop of "U.S." would meet that of the sentence.
    return None if word is None or subject.text.endswith(".") else word + subject.text[len(subject[0]) :]


def _clause(verb: Token) -> _Clause | None:
    """Return the clause of a verb in its parts; None if it has any others."""
    subject = subject_of(verb) if verb.tag_.startswith("VB") and lemma(verb) in _VERBS else None
    if subject is None:
        return None
    passive = subject.dep_ == "nsubjpass"
    agents = [child for child in verb.rights if child.dep_ == "agent"]
    heads = [word for agent in agents for word in agent.children] if passive else list(verb.rights)
    nouns = [word for word in heads if word.dep_ == ("pobj" if passive else "dobj")]
    first = _phrase(subject, subject=not passive)
    second = _phrase(nouns[0], subject=False) if len(nouns) == 1 else None
    if first is None or second is None or not _begins(first, verb):
        return None
    doc = verb.doc
    helpers, gap = doc[first.end : verb.i], doc[verb.i + 1 : second.start].text
    time = _TIME.match(doc[second.end : verb.sent.end].text.lower())
    end = second.end + (len(time[0].split()) if time else 0)
    if gap != ("by" if passive else "") or not is_plain(doc[first.start : end].text) or not _ends(verb, end):
        return None
    if _is_quoted(first) or not all(token.lower_ in _HELPERS for token in helpers):
        return None
    return _Clause(first, verb, second, tuple(helpers), passive)


def _is_quoted(words: Span) -> bool:
    """Return whether words may stand in quotation marks, which show what somebody said word by word."""
    before = words.doc[words.sent.start : words.start].text
    return before.count('"') % 2 == 1 or any(before.count(mark) for mark in "“‘`«")


def _begins(subject: Span, verb: Token) -> bool:
    """Return whether a clause begins with its subject: at the start of a sentence, or after a word that joins."""
    if subject.start == verb.sent.start:
        return subject.text[0].isupper()
    before = subject[0].nbor(-1)
    if before.lower_ in ("but", "and"):
        return before.i == verb.sent.start
    # "Recommended that we adopt it" is no statement.
    said = before.nbor(-1) if before.lower_ == "that" and before.i > verb.sent.start else before
    if verb.dep_ == "ccomp" and said == verb.head:
        return lemma(said) in _SAYING
    if before.lower_ in _JOINS:
        return before.dep_ in ("mark", "advmod") and before.head == verb
    # "In March, the city banned bags."
    fronted = verb.doc[verb.sent.start : before.i]
    return before.text == "," and verb.dep_ == "ROOT" and _is_fronted(fronted, verb)


def _is_fronted(words: Span, verb: Token) -> bool:
    """Return whether words are one phrase in front of a clause, such as a time or a place, that refers to nobody."""
    head = words.root
    if _TIME.fullmatch(words.text.lower()):
        return True
    whole = (head.left_edge.i, head.right_edge.i + 1) == (words.start, words.end) and is_plain(words.text)
    nobody = all(token.tag_[:2] not in ("VB", "PR", "WR", "WP") for token in words)
    return whole and nobody and head.head == verb and head.dep_ == "prep"


def _ends(verb: Token, end: int) -> bool:
    """Return whether the sentence ends at a position with a full stop; without one it may be a headline or cut off."""
    rest = [token for token in verb.doc[end : verb.sent.end] if not token.is_space]
    return bool(rest) and rest[0].text in (".", "!") and not _leads_on(verb.sent)


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
        if token.tag_ == "DT" and token.lower_ not in ("the", "a", "an", "this", "that", "these", "those"):
            return None
    return words if subject or len(links) < 2 else None


def _why_not(clause: _Clause) -> str:
    subject, other = clause.first.root, clause.second.root
    finite = finite_of(clause.verb)
    doer, done = (other, subject) if clause.passive else (subject, other)
    # "Rivals cut routes" may be in either tense.
    same = (
        finite is not None
        and finite == clause.verb
        and finite.tag_ != "VBZ"
        and inflect(lemma(finite), "VBD") == lemma(finite)
    )
    if finite is None or same or not agrees(subject, finite) or not _are_nouns(clause):
        return "the parse is in doubt"
    words = {token.lower_ for phrase in (clause.first, clause.second) for token in phrase}
    # "I would avoid this place" is advice.
    advice = any(token.lower_ == "would" for token in clause.helpers) and subject.lower_ in ("i", "we")
    if not clause.passive and (advice or subject.lower_ == "it"):
        return "subject that no passive names"
    tied = words & _TIED - ({"his", "her", "their", "my", "our", "its"} if _owns(clause) else frozenset())
    if tied or (clause.second.root.tag_ == "PRP" and not clause.passive):
        return "a phrase is tied to the other, or counts"
    counts = [any(token.tag_ in ("CD", "$") for token in phrase) for phrase in (clause.first, clause.second)]
    if all(counts) or done.lower_ in _MEASURES or doer.lower_ in _MEASURES or done.tag_ == "CD":
        return "a measure"
    if f"{lemma(clause.verb)}:{lemma(done)}" in _IDIOMS or (not clause.passive and not _has_article(done)):
        return "an idiom or a headline"
    return "no agent" if clause.passive and not _is_doer(clause.second) else ""


def _owns(clause: _Clause) -> bool:
    """Return whether a possessive opens the subject of an active clause, so that it refers to somebody else."""
    return not clause.passive and clause.first[0].tag_ == "PRP$" and clause.second[0].tag_ != "PRP$"


def _are_nouns(clause: _Clause) -> bool:
    """Return whether the words that are common nouns to the parser are nouns to a dictionary as well."""
    tokens = [token for phrase in (clause.first, clause.second) for token in phrase]
    names = [token for token in tokens if token.tag_ in ("NNP", "NNPS")]
    common = [token for token in tokens if token.tag_ in ("NN", "NNS") and token.is_alpha]
    # "Bought Ann flowers": two objects that the parser takes for one.
    beside = any(token.i + 1 < clause.second.end and token.nbor().tag_ in ("NN", "NNS") for token in names)
    return all("NOUN" in readings(token.lower_) for token in common) and not (beside and not _has_article(tokens[-1]))


def _has_article(noun: Token) -> bool:
    """Return whether a noun is a name, a plural, or has an article; others are idioms, headlines or stuff."""
    return noun.tag_ != "NN" or any(child.dep_ in ("det", "poss") for child in noun.lefts)


def _is_doer(agent: Span) -> bool:
    head = agent.root
    if head.tag_ in ("NNP", "PRP"):
        return True
    return _has_article(head) and head.lower_ not in _NO_DOER and _DOER.fullmatch(head.lower_) is not None


def _turned(clause: _Clause) -> str | None:
    """Return the verb with its helpers in the other voice, in the number of its new subject."""
    plural, person = is_plural(clause.second.root), clause.second.text
    if clause.second.root.tag_ == "PRP":
        plural = person in ("us", "them", "me")
    if plural is None:
        return None
    base, helpers = lemma(clause.verb), [token.lower_ for token in clause.helpers]
    kinds = ["M" if token.tag_ == "MD" else lemma(token) for token in clause.helpers]
    if clause.passive:
        return _active(clause, base, kinds, helpers, plural=plural)
    participle = _form(clause.verb, base, "VBN")
    be = {"": "are" if plural else "is", "VBD": "were" if plural else "was"}
    if participle is None:
        return None
    if not kinds:
        return f"{be['VBD' if clause.verb.tag_ == 'VBD' else '']} {participle}"
    has = helpers[0] if helpers[0] == "had" else ("have" if plural else "has")
    tense = "VBD" if helpers[0] in ("was", "were") else ""
    shapes = {("M", "VB"): f"{helpers[0]} be", ("have", "VBN"): f"{has} been", ("be", "VBG"): f"{be[tense]} being"}
    shape = shapes.get((" ".join(kinds), clause.verb.tag_))
    return None if shape is None else f"{shape} {participle}"


def _active(clause: _Clause, base: str, kinds: list[str], helpers: list[str], *, plural: bool) -> str | None:
    past = _form(clause.verb, base, "VBD")
    if kinds == ["be"]:
        return past if helpers[0] in ("was", "were") else inflect(base, "VBP" if plural else "VBZ")
    if kinds == ["M", "be"]:
        return f"{helpers[0]} {base}"
    if kinds == ["have", "be"]:
        return f"{helpers[0] if helpers[0] == 'had' else 'have' if plural else 'has'} {clause.verb.lower_}"
    return None


def _form(verb: Token, base: str, tag: str) -> str | None:
    """Return a past form as the text spells it, if the text has one."""
    regular = verb.tag_ in ("VBD", "VBN") and verb.lower_.endswith("ed") and (inflect(base, "VBN") or "").endswith("ed")
    return verb.lower_ if regular or (tag == verb.tag_) else inflect(base, tag)
