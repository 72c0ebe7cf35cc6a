"""What the rule for clefts does to invented news sentences, and what it leaves alone."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pcs_annotator.core.variant import Variant
from pcs_annotator.relations.base import Context, relations
from pcs_annotator.relations.rules.clauses import cleft as _registered  # noqa: F401 - makes the relation known
from pcs_annotator.relations.rules.words import word_set

CONTEXT = Context()

GOLDEN = {
    "The court rejected the appeal.": "It was the court that rejected the appeal.",
    "The ministers signed the treaty in Geneva.": "It was the ministers that signed the treaty in Geneva.",
    "Anna Berg won the race on Sunday.": "It was Anna Berg that won the race on Sunday.",
    "France has withdrawn the proposal.": "It is France that has withdrawn the proposal.",
    "The mayor is reviewing the contract.": "It is the mayor that is reviewing the contract.",
    "The bridge was destroyed by a flood.": "It was the bridge that was destroyed by a flood.",
    "The president of the league praised the players.": "It was the president of the league that praised the players.",
    "These rules protect small farms.": "It is these rules that protect small farms.",
    "Britain's finance minister opened the talks.": "It was Britain's finance minister that opened the talks.",
    "Reuters - The European Union blocked the merger.": "Reuters - It was the European Union that blocked the merger.",
    "Maria Lopez, a lawyer, filed the complaint.": "It was Maria Lopez, a lawyer, that filed the complaint.",
    "Nurses at the clinic said nothing. The manager called the police.": (
        "Nurses at the clinic said nothing. It was the manager that called the police."
    ),
}
TRAPS = {
    "the subject is not definite": [
        "A judge rejected the appeal.",
        "They rejected the appeal.",
        "Everyone liked the film.",
        "Three men robbed the bank.",
        "The man who sold the car called the police.",
    ],
    "something stands before the subject": ["On Friday, the court rejected the appeal."],
    "negation would change its reach": ["The court did not reject the appeal.", "The court never rejected the appeal."],
    "verb that takes no focus": ["The mayor will open the bridge.", "The company has three factories."],
    "adverb that has a focus of its own": ["The mayor also praised the police."],
    "quotation or second statement": [
        "The mayor said the bridge was safe.",
        "The court rejected the appeal and ordered a new trial.",
        'The minister called the plan "a mistake".',
    ],
    "question": ["The court rejected the appeal?"],
    "title case": ["Court Rejects Final Appeal"],
}
WORDS = st.sampled_from(
    sorted(word_set('The the court Smith , . is was has not rejected appeal who that ( " 5 it and Reuters -'))
)


def rewritten(text: str) -> Variant:
    return asyncio.run(relations.create("rule:cleft").rewrite(text, CONTEXT))


@pytest.mark.parametrize(("text", "expected"), GOLDEN.items())
def test_a_definite_subject_is_put_first(text: str, expected: str) -> None:
    assert rewritten(text).text == expected


@pytest.mark.parametrize(("text", "reason"), [(text, reason) for reason, texts in TRAPS.items() for text in texts])
def test_a_trap_is_left_alone_for_the_right_reason(text: str, reason: str) -> None:
    variant = rewritten(text)
    assert (variant.status, variant.text, variant.reason) == ("not_applicable", None, reason)


def test_names_keep_their_places() -> None:
    assert not relations.create("rule:cleft").expects.reorders


@settings(max_examples=100, deadline=None)
@given(st.one_of(st.text(max_size=60), st.lists(WORDS, max_size=15).map(" ".join)))
def test_odd_texts_are_never_an_error(text: str) -> None:
    assert rewritten(text).status in ("changed", "not_applicable")
