"""Active to passive and back: who did what to whom stays, the place in the sentence changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pcs_annotator.asking.relations.rules.clauses.clause import Clause, clauses_of, opening_of, shares_subject
from pcs_annotator.asking.relations.rules.clauses.paired import pair_to_passive
from pcs_annotator.asking.relations.rules.clauses.relative import (
    describes_its_object,
    is_reduced,
    reduced_to_active,
    relative_to_passive,
)
from pcs_annotator.asking.relations.rules.clauses.to_active import to_active
from pcs_annotator.asking.relations.rules.clauses.to_passive import to_passive
from pcs_annotator.asking.relations.rules.result import NotApplicable, Replacement, splice
from pcs_annotator.asking.relations.rules.rule import sentence_rule
from pcs_annotator.asking.relations.word_set import word_set
from pcs_annotator.core.expectation import Expectation

if TYPE_CHECKING:
    from spacy.tokens import Span

LONGEST_SENTENCE = 70
# What a headline in title case leaves without a capital: words of up to three letters, prepositions, a slip or two.
_SHORT = 3
_SMALL = word_set("with from over into after before that than their about amid against under upon through when while")
_SLIPS = 0.15


@sentence_rule("rule:voice", expects=Expectation(reorders=True))
def voice(sentence: Span) -> str | NotApplicable:
    """Return the sentence with one clause in the other voice, the main clause where that is possible."""
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
    """Return why the parse of a sentence is not to be trusted; empty when it may be."""
    words = [token for token in sentence if token.is_alpha]
    if len(words) < 3:
        return "fragment"
    if len(sentence) > LONGEST_SENTENCE:
        return "long sentence"
    if "?" in sentence.text[-3:]:
        return "question"
    return "title case" if in_title_case(sentence) else ""


def in_title_case(sentence: Span) -> bool:
    """Return whether a sentence is written like a headline, with capitals on all but the small words."""
    after = sentence.doc[opening_of(sentence) + 1 : sentence.end]
    words = [token.text for token in after if token.is_alpha and len(token) > _SHORT and token.lower_ not in _SMALL]
    return bool(words) and sum(word[0].islower() for word in words) <= _SLIPS * len(words)


def _turned(clause: Clause) -> Replacement | NotApplicable:
    if clause.group.passive:
        return to_active(clause)
    return pair_to_passive(clause) if shares_subject(clause) else to_passive(clause)


def _attempts(sentence: Span) -> Iterator[Replacement | NotApplicable]:
    opening = opening_of(sentence)
    for clause in clauses_of(sentence, opening):
        if describes_its_object(clause):
            yield relative_to_passive(clause)
        else:
            yield _turned(clause)
    for token in sentence:
        if is_reduced(token):
            yield reduced_to_active(token, opening)
