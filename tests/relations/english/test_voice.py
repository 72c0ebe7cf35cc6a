"""What the rule for voice does to invented news sentences, and what it leaves alone."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcs_annotator import Variant
from pcs_annotator.relations.base import Context, relations
from pcs_annotator.relations.facts import word_set

CONTEXT = Context()
GOLDEN = (Path(__file__).parent / "voice_golden.txt").read_text(encoding="utf-8").splitlines()
PAIRS = [(old[2:], new[2:]) for old, new in pairwise(GOLDEN) if old.startswith("- ")]

TRAPS = [
    "The company has three factories.",
    "The boy resembles his father.",
    "The trip cost two hundred dollars.",
    "The ceremony took place on Monday.",
    "The club wants a new stadium.",
    "The report makes sense.",
    "Some voters have lost hope.",
    "The minister praised himself.",
    "The two leaders accused each other of lying.",
    "The singer thanked his wife.",
    "The firm raised its forecast.",
    "The court was accused by its critics.",
    "The teacher gave the pupils a book.",
    "Few voters supported the plan.",
    "All members did not support the plan.",
    "The council did not find any evidence.",
    "Every student read a book.",
    "Did the court reject the appeal?",
    "Who wrote the report?",
    "Speaking in Rome, the pope condemned the attack.",
    "The firm cut jobs, saying demand was weak.",
    "The governor signed the bill, left the room and flew home.",
    "The officer stopped the car and laughed.",
    "The work will be finished by Friday.",
    "Sales were cut by half.",
    "The letter was sent by mistake.",
    "Shares gained 3 percent.",
    "Fairmont beats Tipton 38-28!",
    "Oil prices rose on Friday.",
    "She wants to sell the house.",
    "It rained in Paris.",
    "Reject the plan.",
    "Only the mayor opposed the plan.",
    "It rejected the offer.",
]

ODD = [
    "",
    "Yes.",
    "🙂🙂🙂",
    '"" “” ()',
    "def f(x): return [y for y in x if y]",
    "https://example.org/a?b=c #tag @someone",
    "by by by by was was were been",
    "The the rejected by by the.",
    "Reuters - ",
    "WASHINGTON (AP) -- ",
    "was rejected by",
    "Him rejected they by she, which who that.",
    "...and the court, (which) rejected -- the; appeal: by",
    "\n\n\t The court\nrejected \n the appeal\n",
    "$5 5% 5 by 5 was 5",
    "<p>The court rejected the appeal.</p>",
]
WORDS = st.sampled_from(
    sorted(
        word_set(
            """
            the court The a Police rejected was were been is being has by and or which that who not n't 's said will
            Smith his appeal reports , . " ( ) — - : $ 5 percent Friday on of to never only each it they them up down
            Reuters
            """
        )
    )
)


def rewritten(text: str) -> Variant:
    return asyncio.run(relations.create("rule:voice").rewrite(text, CONTEXT))


@pytest.mark.parametrize(("text", "expected"), PAIRS)
def test_a_clear_clause_changes_its_voice(text: str, expected: str) -> None:
    assert rewritten(text).text == expected


@pytest.mark.parametrize("text", TRAPS)
def test_a_trap_is_left_alone(text: str) -> None:
    variant = rewritten(text)
    assert (variant.status, variant.text) == ("not_applicable", None)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Oil prices rose on Friday.", "no clause so simple that it can be turned around for sure"),
        ("The Mayor Saves an Old School.", "a title or capitals"),
        ("The firm raised its forecast.", "a phrase is tied to the other, or counts"),
        ("The tower was built by the army.", "no clause so simple that it can be turned around for sure"),
    ],
)
def test_the_reason_says_why_a_sentence_is_left_alone(text: str, reason: str) -> None:
    assert rewritten(text).reason == reason


def test_the_rest_of_the_sentence_keeps_every_character() -> None:
    text = "Prices  rose -	10 %.  A storm damaged the refinery on Sunday!"
    assert rewritten(text).text == text.replace("A storm damaged the refinery", "The refinery was damaged by a storm")


def test_every_sentence_of_a_text_is_tried() -> None:
    text = "The court rejected the appeal. It rained. Unions praised the plan."
    assert rewritten(text).text == "The appeal was rejected by the court. It rained. The plan was praised by unions."


def test_names_may_change_places() -> None:
    assert relations.create("rule:voice").expects.reorders


@pytest.mark.parametrize("text", ODD)
def test_odd_texts_are_never_an_error(text: str) -> None:
    assert rewritten(text).status in ("changed", "not_applicable")


@given(st.lists(WORDS, max_size=25).map(" ".join))
def test_word_salad_is_never_an_error(text: str) -> None:
    assert rewritten(text).status in ("changed", "not_applicable")


@given(st.text(max_size=80))
def test_any_characters_are_never_an_error(text: str) -> None:
    assert rewritten(text).status in ("changed", "not_applicable")
