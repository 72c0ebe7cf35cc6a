"""A hard limit on what a run may spend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from pcs_annotator.asking.annotators.length import estimate_tokens
from pcs_annotator.core.chat import ChatModel, Request

UNLIMITED_ANSWER = 4096
"""Tokens to expect in an answer when the request sets no limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The maximum that a run may spend; None where there is no limit."""

    usd: float | None = None
    tokens: int | None = None
    calls: int | None = None


@dataclass(frozen=True, slots=True)
class Cost:
    """The actual or expected cost of a call; `usd` is None when the price is unknown."""

    usd: float | None
    tokens: int


class Tokens(NamedTuple):
    """Tokens of a request and of its answer."""

    input: int
    output: int


def expected_tokens(model: ChatModel, request: Request) -> Tokens:
    """Return about how many tokens a request has, and how many its answer has at most."""
    asked = sum(estimate_tokens(message.content) for message in request.messages)
    answer = UNLIMITED_ANSWER if request.sampling.max_tokens is None else request.sampling.max_tokens
    return Tokens(asked, answer + getattr(model, "thinking_tokens", 0))


class BudgetTracker:
    """Reserves the cost of a call before it and settles it after, so that calls in flight cannot overspend together."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.usd = 0.0
        self.tokens = 0
        self.calls = 0
        self.price_unknown = False
        self._held_usd = 0.0
        self._held_tokens = 0
        self._held_calls = 0

    def hold(self, expected: Cost) -> bool:
        """Reserve the expected cost; return False if that could exceed the budget."""
        limit = self.budget
        usd = expected.usd or 0.0
        if limit.calls is not None and self.calls + self._held_calls + 1 > limit.calls:
            return False
        if limit.tokens is not None and self.tokens + self._held_tokens + expected.tokens > limit.tokens:
            return False
        if limit.usd is not None and self.usd + self._held_usd + usd > limit.usd:
            return False
        self._held_usd += usd
        self._held_tokens += expected.tokens
        self._held_calls += 1
        return True

    def release(self, expected: Cost) -> None:
        """Release the reservation of a call that was not answered."""
        self._held_usd -= expected.usd or 0.0
        self._held_tokens -= expected.tokens
        self._held_calls -= 1

    def settle(self, expected: Cost, paid: Cost) -> None:
        """Replace the reservation of a call with what was paid."""
        self.release(expected)
        self.calls += 1
        self.tokens += paid.tokens
        if paid.usd is None:
            self.price_unknown = True
        else:
            self.usd += paid.usd
