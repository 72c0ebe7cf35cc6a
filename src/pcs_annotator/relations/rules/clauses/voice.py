"""Active to passive and back: the roles stay, the positions in the sentence change."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pcs_annotator.core.variant import Expectation
from pcs_annotator.relations.rules.clauses.clause import Clause, clauses_of, opening_of
from pcs_annotator.relations.rules.clauses.relative import (
    describes_its_object,
    relative_to_passive,
)
from pcs_annotator.relations.rules.clauses.to_active import to_active
from pcs_annotator.relations.rules.clauses.to_passive import to_passive
from pcs_annotator.relations.rules.rule import NotApplicable, Replacement, sentence_rule, splice
from pcs_annotator.relations.rules.words import word_set

if TYPE_CHECKING:
    from spacy.tokens import Span

LONGEST_SENTENCE = 70
LONGEST_LINE = 30
# An apostrophe at the edge of a word may be half of a quotation, which must not be torn apart.
# The parser ends a sentence after "U.A." in "U.A.W. members".
_SPLIT = re.compile(r"\b[A-Z]\.?\s*$")
_BROKEN = re.compile(r"(?:^|[\s(])['‘]\w|\w['’]…|\\\w|#39;(?!s )|#(?!39)\d+;|quot;\w")
# What a tag inside a sentence stands for is not known; it is parsed as a name that begins with X.
_TAGGED = re.compile(r"\bX[a-z]{3,}")
_ASKING = frozenset({"WDT", "WP", "WP$"})
# "19 Times Ann Lee Won the Cup" tells of times, which the parser takes for a part of her name.
_LISTED = word_set("times things ways reasons signs moments places photos pictures facts tweets")


@sentence_rule("rule:voice", version="2", expects=Expectation(reorders=True))
def voice(sentence: Span) -> str | NotApplicable:
    """Return the sentence with one clause in the other voice, if possible the main clause."""
    reason = why_not(sentence)
    if reason:
        return NotApplicable(reason)
    refused: list[str] = []
    for result in _attempts(sentence):
        if isinstance(result, Replacement):
            return splice(sentence.text, [result], sentence.start_char)
        refused.append(result.reason)
    return NotApplicable(refused[0] if refused else "no plain clause with a subject")


def why_not(sentence: Span) -> str:
    """Return why the parse of a sentence cannot be trusted; empty when it can."""
    words = [token for token in sentence if token.is_alpha]
    if len(words) < 3:
        return "fragment"
    if len(sentence) > LONGEST_SENTENCE:
        return "long sentence"
    torn = sentence.start and sentence.doc[sentence.start - 1].is_alpha
    if torn or _BROKEN.search(sentence.text) or _is_cut_off(sentence) or _leads_on(sentence):
        return "part of a sentence"
    if _TAGGED.search(sentence.text):
        return "a tag inside the sentence"
    if "?" in sentence.text[-3:] or sentence[0].tag_ in _ASKING:
        return "question"
    return "headline of a list" if sentence[0].like_num and sentence[1].lower_ in _LISTED else ""


def _is_cut_off(sentence: Span) -> bool:
    """Return whether a part is missing: behind an initial, or at the end of news that were shortened."""
    doc = sentence.doc
    split = (sentence.end < len(doc) and _SPLIT.search(sentence.text)) or _SPLIT.search(doc[: sentence.start].text[-9:])
    return bool(split) or (sentence.end == len(doc) > LONGEST_LINE and sentence[-1].text[-1].isalnum())


def _leads_on(sentence: Span) -> bool:
    """Return whether the next sentence, such as `Doubled it.`, has no subject but this one's."""
    following = sentence.doc[sentence.end : sentence.end + 1]
    return following.text[:1].isupper() and following[0].tag_ in ("VBD", "VBN")


def _turned(clause: Clause) -> Replacement | NotApplicable:
    return to_active(clause) if clause.group.passive else to_passive(clause)


def _attempts(sentence: Span) -> Iterator[Replacement | NotApplicable]:
    opening = opening_of(sentence)
    for clause in clauses_of(sentence, opening):
        if describes_its_object(clause):
            yield relative_to_passive(clause)
        else:
            yield _turned(clause)
