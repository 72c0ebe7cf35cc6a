"""Two added negations that cancel out: "It is not the case that the mayor did not resign"."""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import TYPE_CHECKING

from pcs_annotator.core.variant import Expectation
from pcs_annotator.relations.rules.rule import NotApplicable, Replacement, sentence_rule, splice
from pcs_annotator.relations.rules.statements.after_that import why_not_after_that
from pcs_annotator.relations.rules.statements.missing_verb import missing_verb
from pcs_annotator.relations.rules.statements.negating import negated
from pcs_annotator.relations.rules.statements.opening import (
    finite_of,
    in_mid_sentence,
    statement_start,
    subject_of,
    why_no_statement,
)
from pcs_annotator.relations.rules.statements.predicate import negated_twice, not_failing

if TYPE_CHECKING:
    from spacy.tokens import Span

FRAMES = (
    "It is not untrue that ",
    "It is not false that ",
    "It is not incorrect to say that ",
    "It is not inaccurate to say that ",
)
"""Deny twice by themselves, and stand in front of a statement as it is."""
DENIALS = ("It is not the case that ", "It is not true that ", "It is incorrect to say that ")
"""Deny once, and stand in front of a negated statement."""
LONGEST = 2.5


def in_predicate(sentence: Span) -> str | NotApplicable:
    """Return the sentence with its predicate negated twice, without a word on whether the statement is true."""
    reason = why_no_statement(sentence)
    if reason:
        return NotApplicable(reason)
    changes = negated_twice(sentence) or not_failing(sentence)
    return splice(sentence.text, changes, sentence.start_char) if changes else NotApplicable("no suitable predicate")


@sentence_rule(
    "rule:double-negation",
    version="2",
    expects=Expectation(negations="doubled", longest=LONGEST),
    on_truth=in_predicate,
)
def double_negation(sentence: Span) -> str | NotApplicable:
    """Return the sentence with two added negations that cancel out, or why it cannot have them."""
    reason = why_no_statement(sentence)
    if reason:
        return NotApplicable(reason)
    failing = not_failing(sentence) if _seed(sentence) % 5 < 3 else None
    changes = negated_twice(sentence) or failing or _around_statement(sentence)
    if isinstance(changes, NotApplicable):
        return changes
    if _is_crowded(sentence):
        return NotApplicable("the sentence before it is changed")
    return splice(sentence.text, changes, sentence.start_char)


def _around_statement(sentence: Span) -> list[Replacement] | NotApplicable:
    """Return a frame for the whole, with an inner "not" where it is clear what that would negate."""
    if sentence[0].text == "Says":
        return _after_says(sentence)
    start = statement_start(sentence)
    if isinstance(start, NotApplicable):
        return start
    first = sentence.doc[start]
    missing = missing_verb(sentence) if start == sentence.start else None
    reason = "" if missing else why_not_after_that(sentence, first)
    if reason:
        return NotApplicable(reason)
    inner, word = None if missing else _inner_negation(sentence, start), in_mid_sentence(first)
    frame = _frame(sentence, FRAMES if inner is None else DENIALS)
    if word is None or frame is None:
        return NotApplicable("the first word may be a name" if word is None else "too short")
    continues = start > sentence.start and sentence.doc[start - 1].text not in ("-", "--", "–", "—", ":")
    if continues or first.text[0].islower():
        frame = frame[0].lower() + frame[1:]
    opening = Replacement(first.idx, first.idx + len(first), frame + word)
    return [opening, *(change for change in (inner, missing) if change is not None)]


def _after_says(sentence: Span) -> list[Replacement] | NotApplicable:
    """Return a frame for what somebody says, in a note without a subject: "Says the tax will rise"."""
    said = [child for child in sentence.root.children if child.dep_ == "ccomp"]
    first = sentence[2 if sentence[1].lower_ == "that" else 1]
    frame = _frame(sentence, FRAMES[:2])
    if not said or subject_of(said[0]) is None or finite_of(said[0]) is None or first.is_punct or frame is None:
        return NotApplicable("no subject in front of the verb")
    return [Replacement(first.idx, first.idx, frame[0].lower() + frame[1:])]


def _frame(sentence: Span, frames: tuple[str, ...]) -> str | None:
    """Return one of the frames that are not too long for a sentence, always the same one for the same sentence."""
    room = (LONGEST * 0.96 - 1) * len(sentence.text)
    fitting = [frame for frame in frames if len(frame) <= room]
    return fitting[_seed(sentence) % len(fitting)] if fitting else None


def _seed(sentence: Span) -> int:
    return int.from_bytes(blake2b(sentence.text.encode("utf-8", "surrogatepass"), digest_size=4).digest())


def _is_crowded(sentence: Span) -> bool:
    """Return whether a sentence is an even one and the one before it is changed, so that frames do not pile up."""
    doc, start = sentence.doc, sentence.start
    if not sum(bool(token.is_sent_start) for token in doc[:start]) % 2:
        return False
    before = doc[start - 1].sent
    return not why_no_statement(before) and not isinstance(_around_statement(before), NotApplicable)


def _inner_negation(sentence: Span, start: int) -> Replacement | None:
    body = sentence.doc[start : sentence.end]
    if len(body) > 36 or re.search(r"[;:—–\"“]|--| - ", body.text):
        return None
    return negated(sentence.root, list(body))
