import asyncio

import pytest

from pcs_annotator import Expectation, Variant, relation
from pcs_annotator.relations.base import Context, relations
from pcs_annotator.relations.function import FunctionRelation, NotApplicable, TextRule


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


def test_an_asynchronous_function_works_too() -> None:
    async def slow(text: str) -> str:
        await asyncio.sleep(0)
        return text.upper()

    assert rewritten(FunctionRelation("slow", slow), "ab").text == "AB"


def test_nothing_and_a_reason_are_not_applicable() -> None:
    assert rewritten(FunctionRelation("no", lambda text: None), "ab").status == "not_applicable"
    refusing = FunctionRelation("no", lambda text: NotApplicable("too short"))
    assert rewritten(refusing, "ab").reason == "too short"


def test_unchanged_text_is_never_changed() -> None:
    variant = rewritten(FunctionRelation("same", lambda text: f" {text}\n"), "a text")
    assert (variant.status, variant.reason) == ("not_applicable", "the rewrite changed nothing")


@pytest.mark.parametrize(("text", "reason"), [("", "empty text"), ("x = f(y);", "looks like code"), ("42", "no words")])
def test_a_rule_is_asked_about_prose_only(text: str, reason: str) -> None:
    rule = TextRule("shout", str.upper)
    assert rewritten(rule, text).reason == reason
    assert rewritten(rule, "Der Hund bellt. " * 1000).text == "DER HUND BELLT. " * 1000
    assert rule.calls(text) == 0.0
