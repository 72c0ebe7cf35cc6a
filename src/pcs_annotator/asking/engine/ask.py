"""Makes one call: paced, retried, counted, stored in the ledger, and paid for once."""

from __future__ import annotations

import asyncio
import random
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

from pcs_annotator import errors
from pcs_annotator.asking.engine.budget import BudgetTracker, Cost, expected_tokens
from pcs_annotator.asking.engine.ledger import Ledger, call_key, entry_of
from pcs_annotator.asking.engine.pace import MAX_IN_FLIGHT, Pace
from pcs_annotator.asking.engine.progress import Tally
from pcs_annotator.asking.models.logprobs import tells
from pcs_annotator.core.chat import ChatModel, Reply, Request

PriceOf = Callable[[str, int, int], float | None]
"""Model name, input tokens, output tokens → US dollars; None when the price is unknown."""

MAX_REFUSALS = 200
WAIT_AFTER_REFUSAL = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Timeout and retries of a call.

    Attributes:
        deadline: Seconds for one attempt.
        attempts: Maximum number of attempts; those refused by a rate limit do not count.
        first_wait: The longest wait before the second attempt; it doubles with every further attempt.
        longest_wait: The limit of that doubling.
    """

    deadline: float = 60.0
    attempts: int = 8
    first_wait: float = 0.5
    longest_wait: float = 30.0


@dataclass(frozen=True, slots=True)
class Call:
    """A question to a model that is not in the ledger yet.

    Attributes:
        model: The model to ask.
        request: What to ask.
        key: Its key in the ledger.
        purpose: `label` or `rewrite`.
        expected: Its maximum cost.
    """

    model: ChatModel
    request: Request
    key: bytes
    purpose: str
    expected: Cost


@dataclass(slots=True)
class Asker:
    """Makes calls within the budget and the rate limits, retries them, and stores the replies.

    Attributes:
        ledger: Where replies are stored.
        tracker: The budget.
        tally: The counters to update.
        price_of: The price of calls.
        patience: Timeout and retries.
        max_in_flight: Maximum number of calls in flight per model.
        random: The source of jitter between retries.
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
    _gives: dict[str, bool] = field(default_factory=dict)
    _stopped: errors.PcsError | None = None

    async def ask(self, call: Call) -> Reply:
        """Return a reply once it is safely in the ledger; concurrent calls with the same question are paid for once.

        Raises:
            BudgetReached: The call could cost more than is left.
            ModelError: There was no answer; the message says why.
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
            answer.set_exception(error if isinstance(error, Exception) else errors.Interrupted("the call was stopped"))
            answer.exception()  # marked as retrieved, because no other caller may be waiting for it
            raise
        finally:
            del self._under_way[call.key]
        answer.set_result(reply)
        return reply

    async def _pay_for(self, call: Call) -> Reply:
        if not self.tracker.hold(call.expected):
            raise errors.BudgetReached("the budget is spent; paid answers are kept: set a larger budget to continue")
        try:
            reply, paid = await self._until_answered(call)
        except BaseException:
            self.tracker.release(call.expected)
            raise
        self.tracker.settle(call.expected, paid)
        self.tally.calls += 1
        return reply

    def expected(self, model: ChatModel, request: Request) -> Cost:
        """Return the maximum cost of a request."""
        tokens = expected_tokens(model, request)
        return Cost(self.price_of(model.name, *tokens), sum(tokens))

    def stop(self, error: errors.PcsError) -> None:
        """Start no more calls, and raise this error for those that are waiting; calls in flight may still finish."""
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
        trouble: errors.RateLimited | errors.ServerTrouble
        while True:
            sent_at = await pace.enter()
            try:
                return await self._attempt(call, pace)
            except errors.AccessDenied as error:
                self.stop(error)  # before the `finally` below lets the next call start
                raise
            except errors.BadRequest as error:
                pace.failed(
                    str(error)
                )  # one odd text does no harm, but a server that refuses every text must stop the run
                raise
            except errors.RateLimited as error:
                pace.refused(sent_at, error.retry_after)
                refusals, trouble = refusals + 1, error
                wait = error.retry_after or self.random.uniform(0, WAIT_AFTER_REFUSAL)
            except errors.ServerTrouble as error:
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
            raise errors.ServerTrouble(f"{name}: no answer within {self.patience.deadline:g} s") from error
        pace.answered(reply.rate_hint)
        if call.request.logprobs and not self._gives.get(name):
            self._learn(call.model, reply)
        paid = self._paid(name, call, reply)
        # The call counts as in flight until its reply is stored: a crash loses no more than the calls in flight.
        await self.ledger.put(entry_of(call.key, name, call.purpose, reply, paid.usd))
        return reply, paid

    def _learn(self, model: ChatModel, reply: Reply) -> None:
        """Remember whether a model gives log-probabilities that are of use; the first answer tells."""
        gives, known = tells(reply.logprobs), self._gives.get(model.name)
        if known is gives or not reply.text:
            return
        if known is None and reply.logprobs is None and model.can_grade:
            message = f"{model.name} gives no log-probabilities, although it was asked for them: its votes are hard"
            warnings.warn(message, errors.PcsWarning, stacklevel=2)
        self._gives[model.name] = gives
        self.ledger.remember_graded(model.name, gives=gives)

    def _paid(self, name: str, call: Call, reply: Reply) -> Cost:
        tokens_in, tokens_out = reply.usage.input_tokens, reply.usage.output_tokens
        if tokens_in is None or tokens_out is None:
            return call.expected  # the server gave no token counts, so assume the maximum
        return Cost(self.price_of(name, tokens_in, tokens_out), tokens_in + tokens_out)

    def _jitter(self, failures: int) -> float:
        """Return a random wait below a ceiling that doubles, so that failed calls are not repeated all at once."""
        ceiling = min(self.patience.longest_wait, self.patience.first_wait * 2 ** (failures - 1))
        return self.random.uniform(0, ceiling)


@dataclass(frozen=True, slots=True)
class Rewriter:
    """Asks one model for rewrites, unless the reply is already in the ledger."""

    model: ChatModel
    asker: Asker

    async def __call__(self, request: Request) -> Reply:
        """Return the answer to one request."""
        key = call_key(self.model.name, request, 0).own
        known = self.asker.ledger.get_many([key])
        if known:
            self.asker.tally.from_ledger += 1
            return known[key]
        return await self.asker.ask(Call(self.model, request, key, "rewrite", self.asker.expected(self.model, request)))
