"""Who said it, at the other end: "The mayor said that rents would fall", "Rents would fall, the mayor said"."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pcs_annotator.core.variant import Expectation
from pcs_annotator.relations.rules.rule import NotApplicable, sentence_rule
from pcs_annotator.relations.rules.statements.opening import (
    SUBJECTS,
    ends_openly,
    finite_of,
    in_mid_sentence,
    is_titled,
    part_of,
    statement_start,
    subject_of,
    why_no_statement,
)
from pcs_annotator.relations.rules.words import lemma, word_set

if TYPE_CHECKING:
    from spacy.tokens import Span, Token

VERBS = word_set(
    """
    say tell announce report claim argue state warn note add insist predict declare explain confirm admit concede
    acknowledge allege contend assert maintain stress reiterate
    """
)
_NOBODY = word_set(
    """
    no nobody none nothing few neither not n't n’t never hardly only who which that what whoever
    """
)
_LATE_ADVERBS = frozenset({"also", "later", "earlier", "recently", "repeatedly", "then"})
_BEFORE_THAT = frozenset({"prep", "npadvmod", "dative", "dobj", "ccomp", "nsubj", "aux", "advmod", "punct", "tmod"})
_THIRD = frozenset({"he", "she", "it", "they", "his", "her", "its", "their", "him", "them", "this", "that", "these"})
# Words of a speech that is quoted without quotes.
_HERE = word_set("i we you me us my our your")
# A clause with one of these may belong to the saying instead of to what is said.
_EITHER_SIDE = word_set(
    """
    as after when while before because since although though until once whereas
    """
)
_TIMES = word_set(
    """
    monday tuesday wednesday thursday friday saturday sunday today yesterday tomorrow tonight late early last this
    on in at by during to
    """
)
_NO_SIGNS = frozenset(';:—–"“”‘')


@sentence_rule("rule:attribution", expects=Expectation(reorders=True))
def attribution(sentence: Span) -> str | NotApplicable:
    """Return the sentence with the one who said it at its other end, or why there is none."""
    reason = _why_not_moved(sentence)
    if reason:
        return NotApplicable(reason)
    start = statement_start(sentence)
    if isinstance(start, NotApplicable):
        return start
    said = _what_is_said(sentence.root)
    if said is None:
        return NotApplicable("not plain who says what")
    move = _moved_ahead if said.i > sentence.root.i else _moved_behind
    moved = move(sentence, start, said)
    if moved is None:
        return NotApplicable("unclear where the saying ends")
    front = sentence.doc[sentence.start : start].text_with_ws
    joined = front.rstrip()[-1:].isalpha() or front.rstrip()[-1:] == ","
    return front + (moved if joined else _capital(moved))


def _why_not_moved(sentence: Span) -> str:
    reason = why_no_statement(sentence)
    if reason:
        return reason
    if lemma(sentence.root) not in VERBS:
        return "nobody says anything"
    if ends_openly(sentence) or is_titled(sentence):
        return "a headline"
    if any(char in _NO_SIGNS for char in sentence.text) or " -" in sentence.text[45:]:
        return "quotes or breaks inside the sentence"
    return ""


def _what_is_said(verb: Token) -> Token | None:
    """Return the verb of what is said, when it is plain who says it and what."""
    said = [child for child in verb.children if child.dep_ == "ccomp"]
    subject = subject_of(verb)
    if len(said) != 1 or subject is None:
        return None
    plain = _is_plain_saying(verb, subject) and _is_plain_clause(said[0])
    return said[0] if plain and not _may_be_the_same(subject, subject_of(said[0])) else None


def _may_be_the_same(speaker: Token, subject: Token | None) -> bool:
    """Whether "he said" may come to mean the one that the clause is about, or no longer mean it."""
    return subject is not None and speaker.tag_ == "PRP" and subject.tag_ in ("NNP", "NNPS")


def _is_plain_saying(verb: Token, subject: Token) -> bool:
    finite = finite_of(verb)
    if finite is None or (finite != verb and finite.lower_ not in ("has", "have", "had")) or subject.i > finite.i:
        return False
    if any(token.lower_ in _NOBODY or token.text == "," for token in subject.subtree):
        return False
    for child in verb.children:
        if child.dep_ == "advmod" and child.lower_ not in _LATE_ADVERBS:
            return False
        if child.dep_ not in _BEFORE_THAT and not (child.dep_ == "cc" and child.i < subject.i):
            return False
    told = any(child.dep_ in ("dobj", "dative") for child in verb.children)
    return told == (lemma(verb) == "tell")


def _is_plain_clause(said: Token) -> bool:
    """Whether what is said is a statement that names its own subject and has nothing that may belong elsewhere."""
    subject, finite = subject_of(said), finite_of(said)
    if subject is None or finite is None or subject.i > finite.i:
        return False
    # A pronoun that stood behind the name it means would now stand in front of it, or the other way round.
    if any(token.lower_ in _THIRD for token in subject.subtree):
        return False
    marks = [child.lower_ for child in said.children if child.dep_ == "mark"]
    if marks not in ([], ["that"]) or said.left_edge.tag_.startswith("W"):
        return False
    return not any(_may_belong_elsewhere(token) for token in said.subtree)


def _may_belong_elsewhere(token: Token) -> bool:
    if token.lower_ in _EITHER_SIDE and token.dep_ in ("mark", "advmod"):
        return True
    if token.tag_ == "VBG" and token.i > 0 and token.nbor(-1).text == ",":
        return True
    # "... would fall, but others disagreed": who says the second part?
    return token.dep_ == "cc" and token.i > 0 and token.nbor(-1).text == "," and token.head.tag_.startswith(("V", "M"))


def _moved_ahead(sentence: Span, start: int, said: Token) -> str | None:
    """Return "Taxes would fall, the minister said." for "The minister said that taxes would fall."."""
    doc, end, left = sentence.doc, _full_stop(sentence), said.left_edge.i
    subject = subject_of(sentence.root)
    if end is None or said.right_edge.i != end - 1 or subject is None or subject.left_edge.i != start:
        return None
    marked = doc[left].lower_ == "that" and doc[left].dep_ == "mark"
    clause, who = doc[left + 1 if marked else left : end], doc[start:left]
    if not _ends_clearly(who, sentence.root, doc[left], marked):
        return None
    if any(child.dep_ == "conj" and not _has_own_subject(child) for child in said.children):
        return None
    opening = in_mid_sentence(who[0])
    if opening is None or len(clause) < 2 or not clause[0].text[0].isalpha():
        return None
    return f"{clause.text}, {opening}{who.text[len(who[0]) :]}{doc[end : sentence.end].text}"


def _has_own_subject(joined: Token) -> bool:
    """Whether a second clause says who it is about: in "would fall and left the room", who left?"""
    subject = subject_of(joined)
    return subject is not None and subject.lower_ not in _THIRD


def _ends_clearly(who: Span, verb: Token, following: Token, marked: bool) -> bool:
    """Whether it is clear where the saying ends: before "that", or at the verb when no time or place follows it."""
    if any(token.text == "," for token in who) or len(who) - (verb.i - who.start) > 10:
        return False
    return marked or (following.i == verb.i + 1 and following.lower_ not in _TIMES)


def _moved_behind(sentence: Span, start: int, said: Token) -> str | None:
    """Return "The minister said that taxes would fall." for "Taxes would fall, the minister said."."""
    doc, verb, end = sentence.doc, sentence.root, _full_stop(sentence)
    subject = subject_of(verb)
    if end is None or subject is None or not _begins_at(said, doc[start]):
        return None
    comma = subject.left_edge.i - 1
    if doc[comma].text != "," or said.right_edge.i not in (comma, comma - 1):
        return None
    who, clause = doc[comma + 1 : end], doc[start:comma]
    opening = in_mid_sentence(clause[0])
    if opening is None or not clause[0].text[0].isalpha() or not _fits_in_front(who, verb):
        return None
    if _names_the_speaker(clause, said, subject):
        return None
    return f"{who.text} that {opening}{clause.text[len(clause[0]) :]}{doc[end : sentence.end].text}"


def _names_the_speaker(clause: Span, said: Token, speaker: Token) -> bool:
    """Whether one learns only from the clause who the speaker is, so that the clause must stay in front."""
    if any(token.lower_ in _HERE for token in clause):
        return True
    about = subject_of(said)
    if speaker.tag_ not in ("NN", "NNS") or about is None:
        return False
    # "Orvik Corp. cut its price, the company said" and "The lender cut its rate, the lender said".
    known = any(child.lower_ == "the" for child in speaker.children) and about.tag_ in ("NNP", "NNPS")
    return known or any(token.lower_ == speaker.lower_ for token in clause)


def _fits_in_front(who: Span, verb: Token) -> bool:
    # "Their lawyer" must not come before those whose lawyer it is.
    if any(token.tag_ == "PRP$" for token in who if token.i < verb.i):
        return False
    if len(who) > 16 or any(token.text == "," for token in who):
        return False
    return not any(token.i > verb.i and token.tag_ in ("VBD", "VBZ", "VBP", "MD") for token in who)


def _begins_at(said: Token, first: Token) -> bool:
    """Whether a clause begins with this word, and the word is of its subject or of when or where it happened."""
    if not said.left_edge.i <= first.i <= said.left_edge.i + 1:
        return False
    return part_of(said, first).dep_ in (*SUBJECTS, "prep", "npadvmod")


def _full_stop(sentence: Span) -> int | None:
    last = sentence[-1] if not sentence[-1].is_space else sentence[-2]
    # "Corp." keeps its point inside the word, and no other point follows it.
    return last.i if last.text == "." else None


def _capital(text: str) -> str:
    # "iPhone" stays as it is.
    return text if text[1:2].isupper() else text[0].upper() + text[1:]
