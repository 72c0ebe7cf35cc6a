from __future__ import annotations

import asyncio

import pytest

from pcs_annotator import Expectation, Relation, Variant
from pcs_annotator.relations.base import Context
from pcs_annotator.relations.choose import FirstOf, InTurn
from pcs_annotator.relations.rule import FunctionRelation

LOUD = FunctionRelation("loud", str.upper, expects=Expectation(longest=2.0, reorders=True))
TWICE = FunctionRelation("twice", lambda text: f"{text} {text}", version="3", expects=Expectation(longest=3.0))
NEVER = FunctionRelation("never", lambda text: None)


def rewritten(relation: Relation, text: str = "a text") -> Variant:
    return asyncio.run(relation.rewrite(text, Context()))


def test_parts_are_applied_from_left_to_right() -> None:
    question = FunctionRelation("question", lambda text: f"{text}?")
    assert rewritten(InTurn("question+twice", (question, TWICE))).text == "a text? a text?"
    assert rewritten(InTurn("twice+question", (TWICE, question))).text == "a text a text?"


def test_a_composition_is_compared_with_the_first_text() -> None:
    variant = rewritten(InTurn("loud+twice", (LOUD, TWICE)))
    assert (variant.relation, variant.status, variant.source) == ("loud+twice", "changed", "a text")


@pytest.mark.parametrize("parts", [(NEVER, LOUD), (LOUD, NEVER)])
def test_one_failed_part_makes_the_whole_not_applicable(parts: tuple[Relation, ...]) -> None:
    variant = rewritten(InTurn("both", parts))
    assert (variant.status, variant.text) == ("not_applicable", None)
    assert variant.reason == "never: the function gave nothing"


def test_the_first_part_that_applies_is_taken() -> None:
    assert rewritten(FirstOf("either", (NEVER, LOUD, TWICE))).text == "A TEXT"
    assert rewritten(FirstOf("either", (NEVER, LOUD))).relation == "either"


def test_when_no_part_applies_the_last_one_says_why() -> None:
    variant = rewritten(FirstOf("either", (LOUD, NEVER)), text="LOUD")
    assert (variant.status, variant.reason) == ("not_applicable", "the function gave nothing")


def test_a_composition_needs_and_allows_what_its_parts_do() -> None:
    both = InTurn("loud+twice", (LOUD, TWICE))
    either = FirstOf("loud/twice", (LOUD, TWICE))
    assert both.expects.longest == 6.0
    assert either.expects.longest == 3.0
    assert both.expects.reorders
    assert either.expects.reorders
    assert both.version == "1+3"
    assert both.deterministic
    assert both.needs == frozenset()
    assert both.calls("a text") == either.calls("a text") == 0.0
