"""A limit on what may be spent, and what calls are expected to cost."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, NoReturn

from pcs_annotator.asking.annotators.length import estimate_tokens
from pcs_annotator.asking.ledger.admin import LedgerAdmin, LedgerSums, PaidInRun, PriceOf, day_of
from pcs_annotator.base.errors import BudgetReached
from pcs_annotator.core.chat import ChatModel, Request, Usage

_LOG = logging.getLogger(__name__)
UNLIMITED_ANSWER = 4096  # tokens of the longest answer when the request sets no limit
FIRST_ANSWER = 20  # tokens to expect in an answer to a question before there is any
FIRST_THINKING_SHARE = 0.25  # share of the tokens for thinking to expect before there is any answer
REMEMBERED_ANSWERS = 20  # earlier answers of a model count as this many, so that others are soon noticed
LOOK_EVERY = 0.01  # seconds between looks at what other processes pay; replies of this time count as in flight
ROUNDING = 1e-9  # relative error in sums of costs


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The most that may be spent; None where there is no limit."""

    usd: float | None = None  # dollars for all calls in a ledger, those of earlier commands included
    usd_per_day: float | None = None  # dollars for the calls of a day in a ledger; a day begins at midnight UTC
    tokens: int | None = None  # tokens in and out, in this command
    calls: int | None = None  # calls in this command

    @property
    def in_dollars(self) -> bool:
        """Whether prices must be known."""
        return self.usd is not None or self.usd_per_day is not None

    def after(self, calls: int, tokens: int = 0) -> "Budget":
        """Return the budget that is left in a command that has already made some calls and used some tokens."""
        return replace(
            self,
            calls=None if self.calls is None else max(0, self.calls - calls),
            tokens=None if self.tokens is None else max(0, self.tokens - tokens),
        )


@dataclass(frozen=True, slots=True)
class Cost:
    """The actual or expected cost of a call; `usd` is None when the price is unknown, `tokens` counts in and out."""

    usd: float | None
    tokens: int
    output_tokens: int = 0


class Tokens(NamedTuple):
    """Tokens of a request and of its answer."""

    input: int
    output: int


class Elsewhere(NamedTuple):
    """What this process has not paid itself."""

    usd: float = 0.0  # dollars spent in the ledger, before this command or by other processes
    usd_today: float = 0.0  # those of them that were spent today
    beside: PaidInRun = PaidInRun()  # what other processes of this command have paid


class LedgerSpending:
    """What is spent in a ledger elsewhere: before this command, and by other processes while it runs."""

    def __init__(self, ledger: LedgerAdmin, price_of: PriceOf) -> None:
        self._ledger, self._price_of = ledger, price_of
        sums = ledger.keep_sums()
        self._first_day, self._own_before = today(), dict(sums.own)
        self._by_day = self._dollars(sums)
        self._next_look, self._found = 0.0, Elsewhere(beside=sums.beside)

    def now(self) -> Elsewhere:
        """Return what is known now; the sums are read again if another process may have paid for something."""
        if time.monotonic() >= self._next_look:
            self._next_look = time.monotonic() + LOOK_EVERY
            beside = self._found.beside
            if (sums := self._ledger.changed_sums(self._first_day)) is not None:
                self._by_day |= self._dollars(sums)
                beside = sums.beside
            self._found = Elsewhere(sum(self._by_day.values()), self._by_day.get(today(), 0.0), beside)
        return self._found

    def _dollars(self, sums: LedgerSums) -> dict[int, float]:
        """Return day → dollars, without those that this command has paid."""
        by_day = sums.by_day(self._price_of).items()
        return {day: usd - sums.own.get(day, 0.0) + self._own_before.get(day, 0.0) for day, usd in by_day}


def expected_tokens(model: ChatModel, request: Request) -> Tokens:
    """Return about how many tokens a request has, and how many its answer has at most."""
    asked = sum(estimate_tokens(message.content) for message in request.messages)
    answer = UNLIMITED_ANSWER if request.max_tokens is None else request.max_tokens
    return Tokens(asked, answer + getattr(model, "thinking_tokens", 0))


def today() -> int:
    """Return the day for budgets per day."""
    return day_of(time.time())


@dataclass(slots=True)
class _Seen:
    """The answers of one model for one purpose so far: how many, and the sums of their tokens."""

    answers: float
    output: float
    estimated_input: int = 0
    input: int = 0


class AnswerLengths:
    """Learns how many tokens calls take: the mean of a model's answers so far, for labels and rewrites separately."""

    def __init__(self, means: Mapping[tuple[str, str], float] | None = None) -> None:
        self._seen = {of: _Seen(REMEMBERED_ANSWERS, REMEMBERED_ANSWERS * mean) for of, mean in (means or {}).items()}

    def expected(self, model: ChatModel, purpose: str, most: Tokens) -> Tokens:
        """Return about how many tokens a request has, and its answer will have, given what `expected_tokens` says."""
        asked, longest = most
        seen = self._seen.get((model.name, purpose))
        if seen is None:
            thinking = getattr(model, "thinking_tokens", 0)
            first = FIRST_ANSWER if purpose == "label" else asked
            return Tokens(asked, min(longest, first + round(FIRST_THINKING_SHARE * thinking)))
        if seen.estimated_input:
            asked = round(asked * seen.input / seen.estimated_input)
        return Tokens(asked, min(longest, round(seen.output / seen.answers)))

    def learn(self, model: ChatModel, purpose: str, most: Tokens, usage: Usage) -> None:
        """Take an answer into account."""
        if usage.input_tokens is None or usage.output_tokens is None:
            return
        seen = self._seen.setdefault((model.name, purpose), _Seen(0, 0))
        seen.answers += 1
        seen.output += usage.output_tokens
        seen.estimated_input += most.input
        seen.input += usage.input_tokens


class Expenses:
    """What was paid: calls, tokens and dollars, and whether the price of a call is unknown."""

    usd, tokens, output_tokens, calls, price_unknown = 0.0, 0, 0, 0, False

    def pay(self, paid: Cost) -> None:
        """Count a call that was answered."""
        self.calls += 1
        self.tokens += paid.tokens
        self.output_tokens += paid.output_tokens
        if paid.usd is None:
            self.price_unknown = True
        else:
            self.usd += paid.usd


class BudgetTracker(Expenses):
    """Reserves what a call is expected to cost before it, and counts what was paid after.

    So calls in flight pass the budget together by no more than they cost above what was expected. A call that does not
    fit waits for those in flight, which may turn out cheaper. What other processes pay is looked up before every call.
    """

    def __init__(self, budget: Budget, elsewhere: Callable[[], Elsewhere] = Elsewhere) -> None:
        self.budget, self.limited = budget, budget != Budget()
        self._look, self._elsewhere = elsewhere, elsewhere()
        self._day, self._usd_today = today(), 0.0
        self._held_usd = 0.0
        self._held_tokens = 0
        self._held_calls = 0
        self._held_for_batches = 0
        self._waiting: list[asyncio.Future[None]] = []
        self._logged: set[tuple[str, int, object]] = set()

    async def reserve(self, expect: Callable[[], Cost]) -> Cost:
        """Reserve what a call is expected to cost, when there is room for it, and return that.

        Raises `BudgetReached` if there is no room even without the calls in flight. Calls that wait for a batch are not
        waited for, because the batch may begin only after this call.
        """
        while not self.hold(expected := expect()):
            if self._held_calls == self._held_for_batches:
                self.refuse(expected)
            self.check(expected)
            settled = asyncio.get_running_loop().create_future()
            self._waiting.append(settled)
            await settled
        return expected

    def hold_for_batch(self, expected: Cost) -> None:
        """Reserve what a call costs that waits for a batch, or raise `BudgetReached`."""
        if not self.hold(expected):
            self.refuse(expected)
        self._held_for_batches += 1

    def release_from_batch(self, expected: Cost) -> None:
        """Release the reservation of a call whose batch has ended."""
        self._held_for_batches -= 1
        self.release(expected)

    def refuse(self, expected: Cost) -> NoReturn:
        """Raise `BudgetReached` for a call that there is no room for, with the reason."""
        self.check(expected)
        raise BudgetReached("the calls that wait for a batch take what is left of the budget")

    def check(self, expected: Cost) -> None:
        """Raise BudgetReached if a call would pass the budget even without the calls in flight."""
        if self._passed(expected):
            self._elsewhere = self._look()  # a new day may have begun
        if option := self._passed(expected):
            self._log_share(option, 100)
            raise BudgetReached(
                f"{option} is reached; paid answers are kept: set it higher to continue, or leave it out"
            )

    def _passed(self, expected: Cost, *, in_flight: bool = False) -> str:
        """Return which limit a call would pass, with or without the calls in flight; empty if none."""
        for option, most, spent, held, cost in self._limits(expected):
            if spent + cost + held * in_flight > most * (1 + ROUNDING):
                return option
        return ""

    def _log_share(self, option: str, percent: int) -> None:
        event = option, percent, self._day  # once, of a daily budget once a day
        if self.budget.calls != 0 and event not in self._logged:  # with no calls, only known answers are wanted
            self._logged.add(event)
            _LOG.warning("%(option)s: %(percent)d %% is spent", {"option": option, "percent": percent})

    def hold(self, expected: Cost) -> bool:
        """Reserve the expected cost; return False if that and the calls in flight could pass the budget."""
        self._elsewhere = self._look()
        for option, most, spent, *_ in self._limits(expected):
            if spent >= 0.8 * most:
                self._log_share(option, 80)
        if self._passed(expected, in_flight=True):
            return False
        self._held_usd += expected.usd or 0.0
        self._held_tokens += expected.tokens
        self._held_calls += 1
        return True

    def release(self, expected: Cost) -> None:
        """Release the reservation of a call that has ended, after it was paid for."""
        self._held_calls -= 1
        # with no call in flight, rounding errors are forgotten
        self._held_usd = self._held_usd - (expected.usd or 0.0) if self._held_calls else 0.0
        self._held_tokens -= expected.tokens
        waiting, self._waiting = self._waiting, []
        for settled in waiting:
            if not settled.done():
                settled.set_result(None)

    def pay(self, paid: Cost) -> None:
        """Count a call that was answered."""
        super().pay(paid)
        if self.limited and paid.usd is not None:
            self._day, self._usd_today = today(), self._paid_today() + paid.usd

    def left(self) -> dict[str, float]:
        """Return setting → what is left of its limit; any thread may ask, because nothing is changed or looked up."""
        limits = self._limits(Cost(None, 0))
        return {option.strip("-").replace("-", "_"): max(0.0, most - spent) for option, most, spent, *_ in limits}

    def _paid_today(self) -> float:
        return self._usd_today if today() == self._day else 0.0

    def _limits(self, expected: Cost) -> list[tuple[str, float, float, float, float]]:
        """Return option, limit, what is spent of it, and what the calls in flight and one more may take."""
        budget, paid, usd = self.budget, self._elsewhere, expected.usd or 0.0
        today, tokens, calls = self._paid_today(), paid.beside.tokens + self.tokens, paid.beside.calls + self.calls
        limits = (
            ("--budget", budget.usd, paid.usd + self.usd, self._held_usd, usd),
            ("--budget-per-day", budget.usd_per_day, paid.usd_today + today, self._held_usd, usd),
            ("--max-tokens", budget.tokens, tokens, self._held_tokens, expected.tokens),
            ("--max-calls", budget.calls, calls, self._held_calls, 1),
        )
        return [(option, most, *rest) for option, most, *rest in limits if most is not None]
