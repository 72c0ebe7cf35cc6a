"""One question, asked with care: paid for once, retried, counted, stored."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from pcs_annotator.asking.engine.budget import BudgetTracker, Cost, expected_tokens
from pcs_annotator.asking.engine.ledger import Ledger, call_key, entry_of
from pcs_annotator.asking.engine.pace import MAX_IN_FLIGHT, Pace
from pcs_annotator.asking.engine.progress import Tally
from pcs_annotator.core.chat import ChatModel, Reply, Request
from pcs_annotator.errors import (
    AccessDenied,
    BadRequest,
    BudgetReached,
    Interrupted,
    PcsError,
    RateLimited,
    ServerTrouble,
)

PriceOf = Callable[[str, int, int], float | None]
"""Model name, input tokens, output tokens → US dollars; None when the price is unknown."""

MAX_REFUSALS = 200
WAIT_AFTER_REFUSAL = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long and how often to try.

    Attributes:
        deadline: Seconds for one attempt.
        attempts: Attempts in all; being refused for asking too fast does not count.
        first_wait: The longest wait before the second attempt; it doubles with every further one.
        longest_wait: Where doubling ends.
    """

    deadline: float = 60.0
    attempts: int = 8
    first_wait: float = 0.5
    longest_wait: float = 30.0


@dataclass(frozen=True, slots=True)
class Call:
    """A question to a model that the ledger does not hold yet.

    Attributes:
        model: Whom to ask.
        request: What to ask.
        key: Its address in the ledger.
        purpose: `label` or `rewrite`.
        expected: What it will cost at the most.
    """

    model: ChatModel
    request: Request
    key: bytes
    purpose: str
    expected: Cost


@dataclass(slots=True)
class Asker:
    """Everything that stands between a question and a model.

    Attributes:
        ledger: Where replies are stored.
        tracker: What may still be spent.
        tally: Where everything is counted.
        price_of: What calls cost.
        patience: When to give up.
        max_in_flight: Calls in flight per model at the most.
        random: Where the jitter of retries comes from.
    """

    ledger: Ledger
    tracker: BudgetTracker
    tally: Tally
    price_of: PriceOf
    patience: Patience = field(default_factory=Patience)
    max_in_flight: int = MAX_IN_FLIGHT
    random: random.Random = field(default_factory=random.Random)
    _paces: dict[str, Pace] = field(default_factory=dict)
    _under_way: dict[bytes, asyncio.Future[Reply]] = field(default_factory=dict)
    _stopped: PcsError | None = None

    async def ask(self, call: Call) -> Reply:
        """Return a reply that is safely in the ledger; the same question asked twice at the same time is paid once.

        Raises:
            BudgetReached: It could cost more than is left.
            ModelError: It stays unanswered; the message says why.
        """
        under_way = self._under_way.get(call.key)
        if under_way is not None:
            reply = await asyncio.shield(under_way)
            self.tally.from_ledger += 1
            return reply
        answer = self._under_way[call.key] = asyncio.get_running_loop().create_future()
        try:
            reply = await self._pay_for(call)
        except BaseException as error:
            answer.set_exception(error if isinstance(error, Exception) else Interrupted("the call was stopped"))
            answer.exception()  # perhaps nobody else waits
            raise
        finally:
            del self._under_way[call.key]
        answer.set_result(reply)
        return reply

    async def _pay_for(self, call: Call) -> Reply:
        if not self.tracker.hold(call.expected):
            raise BudgetReached("the budget is spent: what was paid for is kept, and a larger budget goes on from here")
        try:
            reply, paid = await self._until_answered(call)
        except BaseException:
            self.tracker.release(call.expected)
            raise
        self.tracker.settle(call.expected, paid)
        self.tally.calls += 1
        return reply

    def expected(self, model: ChatModel, request: Request) -> Cost:
        """Return what a request costs at the most."""
        tokens = expected_tokens(model, request)
        return Cost(self.price_of(model.name, *tokens), sum(tokens))

    def stop(self, error: PcsError) -> None:
        """Send nothing more, and tell those who wait why; calls in flight may still come home."""
        self._stopped = error
        for pace in self._paces.values():
            pace.close(error)

    def _pace(self, name: str) -> Pace:
        if self._stopped is not None:
            raise self._stopped
        if name not in self._paces:
            self._paces[name] = Pace(self.max_in_flight, name=name)
        return self._paces[name]

    async def _until_answered(self, call: Call) -> tuple[Reply, Cost]:
        pace = self._pace(call.model.name)
        failures = refusals = 0
        trouble: RateLimited | ServerTrouble
        while True:
            sent_at = await pace.enter()
            try:
                return await self._attempt(call, pace)
            except AccessDenied as error:
                self.stop(error)  # before this place is given to somebody else
                raise
            except BadRequest as error:
                pace.failed(str(error))  # one strange text is no matter; a server that takes no question is
                raise
            except RateLimited as error:
                pace.refused(sent_at, error.retry_after)
                refusals, trouble = refusals + 1, error
                wait = error.retry_after or self.random.uniform(0, WAIT_AFTER_REFUSAL)
            except ServerTrouble as error:
                pace.failed(str(error))
                failures, trouble = failures + 1, error
                wait = self._jitter(failures)
            finally:
                pace.leave()
            if failures >= self.patience.attempts or refusals >= MAX_REFUSALS:
                raise trouble
            self.tally.retries[type(trouble).__name__] += 1
            await asyncio.sleep(wait)

    async def _attempt(self, call: Call, pace: Pace) -> tuple[Reply, Cost]:
        name = call.model.name
        try:
            async with asyncio.timeout(self.patience.deadline):
                reply = await call.model.ask(call.request)
        except TimeoutError as error:
            raise ServerTrouble(f"{name}: no answer within {self.patience.deadline:g} s") from error
        pace.answered(reply.rate_hint)
        paid = self._paid(name, call, reply)
        # The place in flight is kept until the reply is stored: a crash can lose no more than what is in flight.
        await self.ledger.put(entry_of(call.key, name, call.purpose, reply, paid.usd))
        return reply, paid

    def _paid(self, name: str, call: Call, reply: Reply) -> Cost:
        tokens_in, tokens_out = reply.usage.input_tokens, reply.usage.output_tokens
        if tokens_in is None or tokens_out is None:
            return call.expected  # nobody said, so the worst is assumed
        return Cost(self.price_of(name, tokens_in, tokens_out), tokens_in + tokens_out)

    def _jitter(self, failures: int) -> float:
        """Return a wait between nothing and a ceiling that doubles, so that failed calls do not return in step."""
        ceiling = min(self.patience.longest_wait, self.patience.first_wait * 2 ** (failures - 1))
        return self.random.uniform(0, ceiling)


@dataclass(frozen=True, slots=True)
class Rewriter:
    """Asks one model for rewrites; what the ledger holds is not asked again."""

    model: ChatModel
    asker: Asker

    async def __call__(self, request: Request) -> Reply:
        """Return the answer to one request."""
        key = call_key(self.model.name, request, 0)
        known = self.asker.ledger.get_many([key])
        if known:
            self.asker.tally.from_ledger += 1
            return known[key]
        return await self.asker.ask(Call(self.model, request, key, "rewrite", self.asker.expected(self.model, request)))
