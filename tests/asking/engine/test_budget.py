from __future__ import annotations

import pytest

from pcs_annotator.asking.engine.budget import UNLIMITED_ANSWER, Budget, BudgetTracker, Cost, expected_tokens
from pcs_annotator.asking.models.resolve import resolve_model
from pcs_annotator.core.chat import THINKING_TOKENS, Message, Request, Sampling


@pytest.mark.parametrize("budget", [Budget(usd=1.0), Budget(tokens=100), Budget(calls=2)])
def test_calls_in_flight_cannot_overspend_together(budget: Budget) -> None:
    tracker = BudgetTracker(budget)
    each = Cost(0.5, 50)
    assert tracker.hold(each)
    assert tracker.hold(each)
    assert not tracker.hold(each)
    tracker.release(each)
    assert tracker.hold(each)


def test_an_unused_reservation_can_be_spent_again() -> None:
    tracker = BudgetTracker(Budget(usd=1.0))
    assert tracker.hold(Cost(0.9, 10))
    tracker.settle(Cost(0.9, 10), Cost(0.1, 5))
    assert tracker.hold(Cost(0.9, 10))
    assert tracker.usd == pytest.approx(0.1)
    assert (tracker.tokens, tracker.calls) == (5, 1)


def test_an_unknown_price_is_recorded_and_not_counted_as_zero() -> None:
    tracker = BudgetTracker(Budget())
    assert tracker.hold(Cost(None, 10))
    tracker.settle(Cost(None, 10), Cost(None, 10))
    assert tracker.price_unknown
    assert tracker.usd == 0


def test_expected_tokens_include_thinking_and_answers_without_a_limit() -> None:
    key = {"OPENAI_API_KEY": "sk-test"}
    plain, thinking = resolve_model("openai:gpt-4o-mini", key), resolve_model("openai:o3-mini", key)
    short = Request(messages=(Message("user", "Hello."),), sampling=Sampling(max_tokens=16))
    assert expected_tokens(plain, short).output == 16
    assert expected_tokens(thinking, short).output == 16 + THINKING_TOKENS
    assert expected_tokens(plain, Request(messages=short.messages)).output == UNLIMITED_ANSWER


def test_characters_that_take_many_tokens_are_counted_as_such() -> None:
    model = resolve_model("scripted:hash", {})
    latin, chinese = (Request(messages=(Message("user", text),)) for text in ("a" * 100, "\u5b57" * 100))
    assert expected_tokens(model, chinese).input > 3 * expected_tokens(model, latin).input
