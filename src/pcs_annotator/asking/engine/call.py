"""Makes one call: paced, retried, counted, stored in the ledger, and paid for once."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property

from pcs_annotator.asking.engine.budget import AnswerLengths, BudgetTracker, Cost, Expenses, Tokens, expected_tokens
from pcs_annotator.asking.engine.pace import LONGEST_PAUSE, MAX_IN_FLIGHT, CallsPerSecond, Pace
from pcs_annotator.asking.engine.progress import Tally
from pcs_annotator.asking.ledger.admin import LedgerAdmin, PriceOf
from pcs_annotator.asking.ledger.lock import SharedCalls
from pcs_annotator.asking.ledger.sqlite import call_key, entry_of
from pcs_annotator.base import errors
from pcs_annotator.base.concurrency import deadline
from pcs_annotator.core.chat import ChatModel, Reply, Request, identity_of
from pcs_annotator.models.logprobs import tells

_LOG = logging.getLogger(__name__)
Defer = Callable[["Call"], bool]  # takes a call for a batch; returns whether it did, and raises what is known of it

MAX_REFUSALS = 200
TOKENS_IN_TIME = 2_000  # a slow server writes about 33 tokens per second
WAIT_AFTER_REFUSAL = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Timeout and retries of a call."""

    # Seconds for one attempt whose answer has at most `TOKENS_IN_TIME` tokens. Models in this process have none: their
    # questions wait for each other, and asking again would only make the queue longer.
    deadline: float = 60.0
    max_wait: float = 900.0  # seconds in which a model only refuses (429), until it is given up
    attempts: int = 8  # maximum number of attempts; those refused by a rate limit do not count
    first_wait: float = 0.5  # the longest wait before the second attempt; it doubles with every further attempt
    longest_wait: float = 30.0  # the limit of that doubling

    def __post_init__(self) -> None:
        if not self.deadline > 0:
            raise errors.ConfigError(f"a timeout of {self.deadline:g} seconds lets no model answer: it must be above 0")

    def seconds_for(self, tokens: int) -> float:
        """Return how long an answer of at most so many tokens may take, from sending to its last byte."""
        return self.deadline * max(1.0, tokens / TOKENS_IN_TIME)


@dataclass(frozen=True)
class Call:
    """A question to a model that is not in the ledger yet, with its key there; `purpose` is `label` or `rewrite`."""

    model: ChatModel
    request: Request
    key: bytes
    purpose: str

    @cached_property
    def most(self) -> Tokens:
        """About how many tokens the request has, and how many the answer has at most."""
        return expected_tokens(self.model, self.request)


class Deferred(errors.PcsError):
    """The call waits for a batch; what depends on its answer is asked later."""


@dataclass(slots=True)
class Asker:
    """Makes calls within the budget and the rate limits, retries them, and stores the replies."""

    ledger: LedgerAdmin
    tracker: BudgetTracker
    tally: Tally
    price_of: PriceOf
    patience: Patience = field(default_factory=Patience)
    max_in_flight: int = MAX_IN_FLIGHT  # maximum number of calls in flight per model
    lengths: AnswerLengths = field(default_factory=AnswerLengths)  # what calls are expected to take
    shared: SharedCalls = field(default_factory=SharedCalls)  # calls under way, also of other tasks with this ledger
    random: random.Random = field(default_factory=random.Random)  # the source of jitter between retries
    defer: Defer | None = None  # takes calls that are to be asked in a batch; None to make all of them
    limit: CallsPerSecond | None = None  # how many calls may be made per second; None for as many as the models accept
    spent: Expenses | None = None  # what this part of several askers with one budget has paid; None for the only one
    _paces: dict[str, Pace] = field(default_factory=dict)
    _gives: dict[str, bool] = field(default_factory=dict)
    _stopped: errors.PcsError | None = None
    _halted: asyncio.Event = field(default_factory=asyncio.Event)

    def part(self, shared: SharedCalls, tally: Tally | None = None) -> Asker:
        """Return an asker that counts by itself or in a tally, and shares ledger, budget and pace with this one."""
        return replace(self, tally=tally or Tally(), spent=Expenses(), shared=shared, _halted=asyncio.Event())

    def restarted(self) -> Asker:
        """Return an asker that asks again, after a part of this one was stopped by a model that is down."""
        return replace(self, _paces={})

    async def ask(self, call: Call) -> Reply:
        """Return a reply once it is safely in the ledger; concurrent calls with the same question are paid for once.

        Raises `BudgetReached` if the call could cost more than is left, `Deferred` if it waits for a batch, and a
        `ModelError` that says why if there was no answer.
        """
        if self.defer is not None and self.defer(call):
            raise Deferred(f"{call.model.name}: waits for a batch")
        while call.key in self.shared.under_way:
            asker, answer = self.shared.under_way[call.key]
            try:
                reply = await asyncio.shield(answer)
            except errors.PcsError:
                if asker is self:
                    raise
                continue  # another task was stopped, or has another budget
            self._count(call, reply, paid=False)
            return reply
        answer = asyncio.get_running_loop().create_future()
        self.shared.under_way[call.key] = self, answer
        try:
            answered = await self._answered_meanwhile(call)
            reply = answered or await self._until_answered(call)
            if answered is None:
                self.shared.note_answer(call.key)
            self._count(call, reply, paid=answered is None)
        except BaseException as error:
            self.ledger.give_up(call.key)
            answer.set_exception(error if isinstance(error, Exception) else errors.Interrupted("the call was stopped"))
            answer.exception()  # marked as retrieved, because no other caller may be waiting for it
            raise
        finally:
            del self.shared.under_way[call.key]
        answer.set_result(reply)
        return reply

    async def _answered_meanwhile(self, call: Call) -> Reply | None:
        """Return the reply that another task or process has just got; None if the call is to be made here."""
        answered = call.key in self.shared.answered
        reply = (await self.ledger.find([call.key])).get(call.key) if answered else None
        return reply or await self.ledger.claim(call.key)

    def _count(self, call: Call, reply: Reply, *, paid: bool) -> None:
        self.tally.count_answer(call.model.name, call.purpose, reply.usage, paid=paid)

    def expected(self, call: Call) -> Cost:
        """Return about what a call costs."""
        tokens = self.lengths.expected(call.model, call.purpose, call.most)
        return Cost(self.price_of(call.model.name, *tokens), sum(tokens), tokens.output)

    def stop(self, error: errors.PcsError) -> None:
        """Start no more calls, and raise this error for those that are waiting; calls in flight may still finish."""
        _LOG.info("no more calls: %s", type(error).__name__)
        self._stopped = error
        self._halted.set()
        for pace in self._paces.values():
            pace.turn_away(self._halted, error)

    def raise_if_stopped(self) -> None:
        """Raise what stopped this asker or closed the pace of a model, even if that was hidden where it happened."""
        if self._stopped is not None:
            raise self._stopped
        for pace in self._paces.values():
            pace.raise_if_closed()

    def _pace(self, name: str) -> Pace:
        if self._stopped is not None:
            raise self._stopped
        if name not in self._paces:
            clock = asyncio.get_running_loop().time
            self._paces[name] = Pace(self.max_in_flight, name=name, clock=clock, max_wait=self.patience.max_wait)
        return self._paces[name]

    async def _until_answered(self, call: Call) -> Reply:
        if self.tracker.limited:
            self.tracker.check(self.expected(call))  # without waiting for the pace, if the budget is spent
        pace = self._pace(call.model.name)
        failures = refusals = 0
        trouble: errors.RateLimited | errors.ServerTrouble
        while True:
            sent_at = await pace.enter(self._halted)
            try:
                return await self._within_budget(call, pace)
            except (errors.AccessDenied, errors.LedgerError) as error:
                self.stop(error)  # before the `finally` below lets the next call start
                raise
            except errors.BadRequest as error:
                # one odd text does no harm, but a server that refuses every text must stop the run
                pace.failed(str(error))
                raise
            except errors.RateLimited as error:
                pace.refused(sent_at, error.retry_after)
                pace.raise_if_closed()
                refusals, trouble = refusals + 1, error
                wait = self._wait_after(error.retry_after)
            except errors.TooManyFiles as error:
                pace.crowded(sent_at)
                refusals, trouble = refusals + 1, error
                wait = self._wait_after(None)
            except errors.ServerTrouble as error:
                pace.failed(str(error), model_exists=not isinstance(error, errors.UnknownHost))
                failures, trouble = failures + 1, error
                # below a ceiling that doubles, and random, so that failed calls are not repeated all at once
                doubled = self.patience.first_wait * 2 ** (failures - 1)
                wait = self.random.uniform(0, min(self.patience.longest_wait, doubled))
            finally:
                pace.leave()
            if failures >= self.patience.attempts or refusals >= MAX_REFUSALS:
                raise trouble
            self.tally.retries[type(trouble).__name__] += 1
            _LOG.debug("%s: asked again in %.1f s", call.model.name, wait)
            await self._pause(wait)

    async def _pause(self, seconds: float) -> None:
        """Wait before asking again; a stop ends the wait."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._halted.wait(), seconds)
            assert self._stopped is not None
            raise self._stopped

    async def _within_budget(self, call: Call, pace: Pace) -> Reply:
        if not self.tracker.limited:
            return await self._attempt(call, pace)
        reserved = await self.tracker.reserve(lambda: self.expected(call))
        try:
            return await self._attempt(call, pace)
        finally:
            self.tracker.release(reserved)

    async def _attempt(self, call: Call, pace: Pace) -> Reply:
        name = call.model.name
        if self.limit is not None:
            await self.limit.turn()
        if self._stopped is not None:
            raise self._stopped
        seconds = self.patience.seconds_for(call.most.output)
        try:
            in_process = getattr(call.model, "in_process", False)
            with nullcontext() if in_process else deadline(seconds):
                reply = await call.model.ask(call.request)
        except TimeoutError as error:
            _LOG.debug("%s: no answer within %g s", name, seconds)
            raise errors.TimedOut(f"{name}: no answer within {seconds:g} s") from error
        except errors.ModelError as error:  # its message may have what the server said, so it is not logged
            _LOG.debug("%s: %s", name, type(error).__name__)
            raise
        if _LOG.isEnabledFor(logging.DEBUG):
            used = (reply.usage.input_tokens, reply.usage.output_tokens)
            what = "%s: %s after %.0f ms, %s tokens in, %s out (%s)"
            _LOG.debug(what, name, reply.finish, 1000 * reply.latency, *used, call.purpose)
        pace.answered(reply.rate_hint)
        if call.request.logprobs:
            self.learn(call.model, reply)
        paid = self._paid(call, reply)
        # The call counts as in flight until its reply is stored: a crash loses no more than the calls in flight.
        await self.ledger.put(entry_of(call.key, name, call.purpose, reply, paid.usd))
        if self.tracker.limited:
            self.lengths.learn(call.model, call.purpose, call.most, reply.usage)
        self.tracker.pay(paid)
        if self.spent is not None:
            self.spent.pay(paid)
        return reply

    def learn(self, model: ChatModel, reply: Reply) -> None:
        """Remember whether a model gives log-probabilities that are of use; the first answer tells."""
        kind_known = self._gives.get(model.name)
        if kind_known:
            return
        gives = tells(reply.logprobs)
        if kind_known is gives or not reply.text:
            return
        if kind_known is None and reply.logprobs is None and model.can_grade:
            errors.warn_user(f"{model.name} gives labels only, though log-probabilities were asked for")
        self._gives[model.name] = gives
        self.ledger.remember_graded(model.name, gives=gives)

    def _paid(self, call: Call, reply: Reply) -> Cost:
        tokens_in, tokens_out = reply.usage.input_tokens, reply.usage.output_tokens
        if tokens_in is None or tokens_out is None:
            return self.expected(call)  # the server gave no token counts
        return Cost(self.price_of(call.model.name, tokens_in, tokens_out), tokens_in + tokens_out, tokens_out)

    def _wait_after(self, retry_after: float | None) -> float:
        """Return the wait that a server asked for, up to a minute; a short random one if it did not."""
        if retry_after is not None and retry_after > 0:
            return min(retry_after, LONGEST_PAUSE)
        return self.random.uniform(0, WAIT_AFTER_REFUSAL)


@dataclass(frozen=True, slots=True)
class Rewriter:
    """Asks one model for rewrites, unless the reply is already in the ledger."""

    model: ChatModel
    asker: Asker

    async def __call__(self, request: Request) -> Reply:
        """Return the answer to one request."""
        key = call_key(identity_of(self.model), request, 0).own
        stored = await self.asker.ledger.find([key])
        if stored:
            reply = stored[key]
            self.asker.tally.count_answer(self.model.name, "rewrite", reply.usage, paid=False)
        else:
            reply = await self.asker.ask(Call(self.model, request, key, "rewrite"))
        if reply.too_long:
            raise errors.Unanswerable(f"reply too long to read ({self.model.name})")
        return reply
