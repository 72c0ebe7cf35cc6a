import asyncio

import pytest

from pcs_annotator import Expectation, Variant, relation
from pcs_annotator.relations.base import Context, relations
from pcs_annotator.relations.function import FunctionRelation, NotApplicable, Rewriting, TextRule


def rewritten(made: FunctionRelation, text: str) -> Variant:
    return asyncio.run(made.rewrite(text, Context()))


def test_a_function_becomes_a_relation_by_a_decorator() -> None:
    @relation("test-louder", version="2", expects=Expectation(longest=3.0))
    def louder(text: str) -> str:
        return text + "!"

    made = relations.create("test-louder")
    assert louder("a") == "a!"
    assert (made.version, made.expects.longest) == ("2", 3.0)
    assert asyncio.run(made.rewrite("Stop", Context())).text == "Stop!"


async def slow(text: str) -> str:
    await asyncio.sleep(0)
    return text.upper()


@pytest.mark.parametrize(
    ("function", "status", "reason"),
    [
        (slow, "changed", ""),
        (lambda text: None, "not_applicable", "the function gave nothing"),
        (lambda text: NotApplicable("too short"), "not_applicable", "too short"),
        (lambda text: f" {text}\n", "not_applicable", "the rewrite changed nothing"),
    ],
)
def test_a_function_may_be_asynchronous_give_nothing_or_change_nothing(
    function: Rewriting, status: str, reason: str
) -> None:
    variant = rewritten(FunctionRelation("x", function), "a text")
    assert (variant.status, variant.reason) == (status, reason)
    assert variant.text == ("A TEXT" if status == "changed" else None)


@pytest.mark.parametrize(("text", "reason"), [("", "empty text"), ("x = f(y);", "looks like code"), ("42", "no words")])
def test_a_rule_is_asked_about_prose_only(text: str, reason: str) -> None:
    rule = TextRule("shout", str.upper)
    assert rewritten(rule, text).reason == reason
    assert rewritten(rule, "Der Hund bellt. " * 1000).text == "DER HUND BELLT. " * 1000
    assert rule.calls(text) == 0.0
