from __future__ import annotations

import asyncio
from collections.abc import Sequence

from pcs_annotator import Expectation, PromptedRelation, Variant
from pcs_annotator.core.chat import Reply, Request
from pcs_annotator.relations.base import Context
from pcs_annotator.relations.checks.run import CheckedRelation
from pcs_annotator.relations.function import FunctionRelation

TEXT = "The council rejected 40 plans on Monday."
GOOD = "On Monday the council turned down 40 plans."
WRONG_NUMBER = "On Monday the council turned down 41 plans."


class Rewriter:
    """Answers one thing after the other and remembers what it was asked."""

    def __init__(self, replies: Sequence[str]) -> None:
        self.replies, self.asked = list(replies), list[Request]()

    async def __call__(self, request: Request) -> Reply:
        self.asked.append(request)
        return Reply(text=self.replies[len(self.asked) - 1])


def rewritten(*replies: str) -> tuple[Variant, Rewriter]:
    ask = Rewriter(replies)
    relation = CheckedRelation(PromptedRelation("llm:reorder", "Put the time first."), "reorder")
    return asyncio.run(relation.rewrite(TEXT, Context(ask=ask))), ask


def test_a_good_rewrite_passes_with_its_verdicts_under_the_name_the_user_wrote() -> None:
    variant, ask = rewritten(GOOD)
    assert (variant.relation, variant.status, variant.text) == ("reorder", "changed", GOOD)
    assert {"length", "numbers", "negation", "names"} <= {verdict.check for verdict in variant.checks}
    assert all(verdict.passed for verdict in variant.checks)
    assert len(ask.asked) == 1


def test_a_rejected_rewrite_is_tried_once_more_with_the_reason() -> None:
    variant, ask = rewritten(WRONG_NUMBER, GOOD)
    assert variant.text == GOOD
    assert len(ask.asked) == 2
    first, second = ("\n".join(message.content for message in request.messages) for request in ask.asked)
    assert "number" in second.replace(first, "")
    assert second != first


def test_a_rewrite_rejected_twice_casts_no_vote_and_can_still_be_seen() -> None:
    variant, ask = rewritten(WRONG_NUMBER, WRONG_NUMBER)
    assert (variant.status, variant.text, variant.refused) == ("rejected", None, WRONG_NUMBER)
    assert variant.cause == "failed the check of numbers"
    assert "40" in variant.reason
    assert len(ask.asked) == 2


def test_a_second_attempt_that_gives_up_leaves_the_first_reason() -> None:
    variant, _ = rewritten(WRONG_NUMBER, "NOT APPLICABLE")
    assert (variant.status, variant.refused) == ("rejected", WRONG_NUMBER)


def test_a_rule_is_not_tried_again() -> None:
    calls = []

    def wrong(text: str) -> str:
        calls.append(text)
        return text.replace("40", "41")

    relation = CheckedRelation(FunctionRelation("wrong", wrong), "wrong")
    assert asyncio.run(relation.rewrite(TEXT, Context())).status == "rejected"
    assert calls == [TEXT]


def test_a_checked_relation_is_what_it_wraps() -> None:
    inner = PromptedRelation("llm:x", "Rewrite.", version="7", expects=Expectation(reorders=True))
    relation = CheckedRelation(inner, "x")
    assert (relation.version, relation.needs, relation.deterministic) == ("7", frozenset({"rewriter"}), False)
    assert relation.expects is inner.expects
    assert relation.calls(TEXT) == 1.0
