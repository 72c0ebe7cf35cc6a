from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pcs_annotator import Expectation, PromptedRelation, Variant
from pcs_annotator.core.chat import Reply, Request
from pcs_annotator.relations.base import Context
from pcs_annotator.relations.checks.run import CheckedRelation
from pcs_annotator.relations.choose import RelationOptions, choose_relations
from pcs_annotator.relations.rule import FunctionRelation, NotApplicable, SentenceRule, TextRule

if TYPE_CHECKING:
    from spacy.tokens import Span

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
    assert relation.calls(TEXT) == 2.0  # a rejected rewrite is tried once more


LONG = "The council met 40 owners. Ann Lee spoke. It rained all day."


def shouted(spoil: str) -> CheckedRelation:
    """Return a rule that ends every sentence with a mark, and spoils the sentences that hold a word."""

    def shout(text: str) -> str:
        sentences = [one.strip(".") + "!" for one in text.split(". ")]
        return " ".join("The end came!" if spoil in one else one for one in sentences)

    return CheckedRelation(TextRule("shout", shout), "shout")


def test_only_the_sentence_that_failed_is_undone_and_it_is_named() -> None:
    variant = asyncio.run(shouted("40").rewrite(LONG, Context()))
    assert (variant.status, variant.reason) == ("changed", "")
    assert variant.text == "The council met 40 owners. Ann Lee spoke! It rained all day!"
    details = {verdict.check: verdict.detail for verdict in variant.checks}
    assert details["numbers"] == '1 of 3 changed sentences undone: missing: "40"; keep every number'
    assert all(verdict.passed for verdict in variant.checks)


def test_a_text_of_which_every_changed_sentence_failed_is_rejected() -> None:
    variant = asyncio.run(shouted(" ").rewrite("The council met 40 owners. Ann Lee spoke to all of them.", Context()))
    assert (variant.status, variant.text) == ("rejected", None)
    assert variant.refused == "The end came! The end came!"
    assert "numbers" in variant.cause


def test_a_name_lost_in_one_sentence_is_missed_even_if_another_sentence_has_it() -> None:
    def forget(sentence: Span) -> str | NotApplicable:
        return sentence.text.replace("Ann Lee", "we") if sentence.start else NotApplicable("the first sentence")

    relation = CheckedRelation(SentenceRule("forget", forget), "forget")
    variant = asyncio.run(relation.rewrite("Ann Lee called the mayor. Ann Lee bought a house.", Context()))
    assert variant.cause == "failed the check of names"


def test_sentences_that_pass_may_make_a_text_too_long() -> None:
    rule = TextRule("add", lambda text: text.replace(".", " at last."), expects=Expectation(longest=1.0))
    relation = CheckedRelation(rule, "add")
    assert asyncio.run(relation.rewrite("It rained.", Context())).status == "changed"
    assert asyncio.run(relation.rewrite(LONG, Context())).cause == "failed the check of length"


def test_a_model_judges_all_of_the_text_and_only_once() -> None:
    for reply, status in (("SAME", "changed"), ("DIFFERENT: the end", "rejected"), ("Well", "changed")):
        ask = Rewriter([reply])
        relation = replace(shouted("40"), judged=True)
        variant = asyncio.run(relation.rewrite(LONG, Context(ask=ask)))
        assert (variant.status, len(ask.asked)) == (status, 1)
        assert "Ann Lee spoke! It rained all day!" in ask.asked[0].messages[-1].content


@pytest.mark.parametrize(("judged", "calls"), [(False, 2), (True, 4)])
def test_the_most_calls_count_a_second_attempt_and_the_judge(judged: bool, calls: int) -> None:
    options = RelationOptions(judged=judged, rewriter=True)
    rewriting, rule = choose_relations(["llm:voice", "case"], options)
    assert rewriting.calls("The dog was seen by the man.") == calls
    assert rule.calls("The dog was seen by the man.") == judged
