"""One ledger, budget and rate limit for workers on many machines: what they wish for, and who grants it.

A worker gathers the wishes of all its calls for a few milliseconds and sends them in one message. Every wish may be
sent again without harm, so that a message whose answer was lost is simply repeated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pcs_annotator.asking.engine.budget import BudgetTracker, Cost
from pcs_annotator.asking.engine.pace import CallsPerSecond
from pcs_annotator.asking.ledger.ledger import CallStore, LedgerEntry
from pcs_annotator.base.errors import BudgetReached
from pcs_annotator.core.chat import Reply

CLAIM_SECONDS = 0.02
"""How long an answer waits for the ledger to grant claims; those that come later are granted when asked for again."""
LOOK_AHEAD = 1.0
"""Seconds before it may be made that a call is promised its moment; so much is unknown after a restart."""


@dataclass(slots=True)
class Wishes:
    """What the calls of a worker need.

    Attributes:
        find: Keys of replies to look up.
        claim: Keys of calls that are about to be made.
        put: Paid calls to store.
        give_up: Keys of calls that got no reply.
        reserve: Ticket → what a call is expected to cost.
        release: Tickets of calls that have ended.
        moments: Number of calls that wait for the rate limit.
        graded: Model → whether it gives log-probabilities, as far as that was found out.
    """

    find: set[bytes] = field(default_factory=set)
    claim: set[bytes] = field(default_factory=set)
    put: list[LedgerEntry] = field(default_factory=list)
    give_up: list[bytes] = field(default_factory=list)
    reserve: dict[int, Cost] = field(default_factory=dict)
    release: list[int] = field(default_factory=list)
    moments: int = 0
    graded: dict[str, bool] = field(default_factory=dict)


@dataclass(slots=True)
class Grants:
    """The answer to wishes.

    Attributes:
        found: Key → reply, of keys to find or to claim.
        claimed: Keys of calls that the worker may make; those neither found nor claimed are being made elsewhere.
        reserved: Ticket → an empty text if reserved, else why never; those not listed have to wait.
        calls_left: About how many more calls the budget allows.
        moments: When some of the calls that wait may be made, by the clock of the coordinator.
        now: What that clock says.
    """

    found: dict[bytes, Reply] = field(default_factory=dict)
    claimed: set[bytes] = field(default_factory=set)
    reserved: dict[int, str] = field(default_factory=dict)
    calls_left: float = float("inf")
    moments: list[float] = field(default_factory=list)
    now: float = 0.0


class _Claim(NamedTuple):
    """A call that a worker is to make, as soon as the ledger grants it: other processes may use the same ledger."""

    worker: str
    granted: asyncio.Task[Reply | None]

    @property
    def is_granted(self) -> bool:
        """Whether the call may be made; raises the error of a ledger that has failed."""
        return self.granted.done() and not self.granted.cancelled() and self.granted.result() is None


class Coordinator:
    """Grants the wishes of all workers of a job.

    Claims, reservations and promised moments are kept in memory: after a restart, calls in flight may be claimed again
    and are not counted as reserved, so no more than those can be paid for twice or pass the budget.
    """

    def __init__(self, ledger: CallStore, tracker: BudgetTracker, rate: CallsPerSecond | None = None) -> None:
        self._ledger, self._tracker, self._rate = ledger, tracker, rate
        self._claims: dict[bytes, _Claim] = {}
        self._held: dict[tuple[str, int], Cost] = {}

    async def exchange(self, worker: str, wishes: Wishes) -> Grants:
        """Grant what a worker wishes, as far as possible at this moment."""
        for model, gives in wishes.graded.items():
            self._ledger.remember_graded(model, gives=gives)
        await self._put(wishes.put)
        for key in wishes.give_up:
            self._give_up(key, worker)
        self._release(worker, wishes.release)
        grants = Grants(reserved=self._reserve(worker, wishes.reserve), calls_left=self._tracker.calls_left())
        claims = await self._claim(worker, wishes.claim)
        if wishes.find or claims:
            grants.found = await self._ledger.find([*(wishes.find | claims.keys())])
        for key in claims.keys() & grants.found.keys():
            self._give_up(key, worker)
        grants.claimed = {key for key, claim in claims.items() if claim.is_granted} - grants.found.keys()
        if wishes.moments and self._rate is not None:
            grants.moments = self._rate.moments(wishes.moments, LOOK_AHEAD)
            grants.now = self._rate.clock()
        return grants

    def forget(self, worker: str) -> None:
        """End the claims and reservations of a worker that is lost."""
        for key in [*self._claims]:
            self._give_up(key, worker)
        self._release(worker, [ticket for holder, ticket in self._held if holder == worker])

    async def _claim(self, worker: str, keys: Iterable[bytes]) -> dict[bytes, _Claim]:
        """Claim calls at the ledger, and return the claims of this worker among them."""
        fresh = [key for key in keys if key not in self._claims]
        for key in fresh:
            self._claims[key] = _Claim(worker, asyncio.create_task(self._ledger.claim(key)))
        if fresh:
            await asyncio.wait([self._claims[key].granted for key in fresh], timeout=CLAIM_SECONDS)
        return {key: claim for key in keys if (claim := self._claims.get(key)) and claim.worker == worker}

    def _give_up(self, key: bytes, worker: str) -> None:
        claim = self._claims.get(key)
        if claim is not None and claim.worker == worker:
            del self._claims[key]
            claim.granted.cancel()
            self._ledger.give_up(key)

    def graded_models(self) -> dict[str, bool]:
        """Return model → whether it gives log-probabilities, for those that were asked for them."""
        return self._ledger.graded_models()

    async def _put(self, entries: Sequence[LedgerEntry]) -> None:
        await asyncio.gather(*map(self._ledger.put, entries))
        for entry in entries:
            self._claims.pop(entry.key, None)
            sent, got = entry.input_tokens or 0, entry.output_tokens or 0
            self._tracker.pay(Cost(entry.usd, sent + got, got))

    def _reserve(self, worker: str, wanted: dict[int, Cost]) -> dict[int, str]:
        answers = {}
        for ticket, cost in wanted.items():
            if (worker, ticket) in self._held:
                answers[ticket] = ""
                continue
            if self._tracker.hold(cost):
                self._held[worker, ticket] = cost
                answers[ticket] = ""
                continue
            try:
                self._tracker.check(cost)
            except BudgetReached as error:
                answers[ticket] = str(error)
        return answers

    def _release(self, worker: str, tickets: Sequence[int]) -> None:
        for ticket in tickets:
            cost = self._held.pop((worker, ticket), None)
            if cost is not None:
                self._tracker.release(cost)
