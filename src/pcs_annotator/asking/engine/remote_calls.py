"""The ledger, budget and rate limit of a job, as a worker on another machine sees them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from math import inf

from pcs_annotator.asking.engine.budget import Budget, BudgetTracker, Cost
from pcs_annotator.asking.engine.coordinator import Grants, Wishes
from pcs_annotator.asking.engine.pace import LATE_SECONDS
from pcs_annotator.asking.ledger.ledger import LedgerEntry
from pcs_annotator.base.errors import BudgetReached
from pcs_annotator.core.chat import Reply

GATHER_SECONDS = 0.005
ASK_AGAIN_SECONDS = 0.05
"""Pause before the next look for a reply that another worker is getting, or for room in the budget."""
CLOCK_DRIFT = 1e-3
"""Seconds per second by which the clocks of two machines may drift apart, at the very most."""
REFUSAL_SECONDS = 1.0
"""How long a budget that was said to be reached counts as that without asking again."""

Send = Callable[[Wishes], Awaitable[Grants]]
"""Sends wishes to the coordinator and returns what it grants; repeats that until there is an answer."""


class RemoteCalls:
    """The `CallStore` and the rate limit of a worker: gathers the wishes of its calls, and sends them together."""

    def __init__(self, send: Send, graded: Mapping[str, bool]) -> None:
        self._send, self._graded = send, dict(graded)
        self._wishes = Wishes()
        self._granted: asyncio.Future[Grants] | None = None
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._moments: deque[float] = deque()
        self._fetching: asyncio.Task[None] | None = None
        self._clock_ahead, self._compared_at = -inf, 0.0
        self._sending: set[asyncio.Task[None]] = set()

    async def find(self, keys: Sequence[bytes]) -> dict[bytes, Reply]:
        """Return the replies that the ledger already has."""
        if not keys:
            return {}
        self._wishes.find.update(keys)
        found = (await self.granted()).found
        return {key: found[key] for key in keys if key in found}

    async def claim(self, key: bytes) -> Reply | None:
        """Claim a call; while another worker makes it, wait for its reply."""
        while True:
            self._wishes.claim.add(key)
            grants = await self.granted()
            if key in grants.found or key in grants.claimed:
                return grants.found.get(key)
            await asyncio.sleep(ASK_AGAIN_SECONDS)

    async def put(self, entry: LedgerEntry) -> None:
        """Store a paid call; returns once it is in the ledger."""
        self._wishes.put.append(entry)
        await self.granted()

    def give_up(self, key: bytes) -> None:
        """End the claim on a call that got no reply."""
        self._wishes.give_up.append(key)
        self._soon()

    def graded_models(self) -> dict[str, bool]:
        """Return model → whether it gives log-probabilities, for those that were asked for them."""
        return dict(self._graded)

    def remember_graded(self, model: str, *, gives: bool) -> None:
        """Store whether a model gives log-probabilities."""
        self._graded[model] = self._wishes.graded[model] = gives
        self._soon()

    async def turn(self) -> None:
        """Wait until the rate limit allows another call."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._want_moments()
        await turn

    def _want_moments(self) -> None:
        if self._fetching is None and len(self._waiting) > len(self._moments):
            self._fetching = asyncio.create_task(self._fetch_moments())

    async def _fetch_moments(self) -> None:
        """Get a moment for every call that waits."""
        try:
            while (missing := len(self._waiting) - len(self._moments)) > 0:
                self._wishes.moments = missing
                grants = await self.granted()
                self._take_moments(grants)
                if not grants.moments:
                    await asyncio.sleep(ASK_AGAIN_SECONDS)
        except Exception as error:
            while self._waiting:
                if not (turn := self._waiting.popleft()).done():
                    turn.set_exception(error)
        finally:
            self._fetching = None

    def _take_moments(self, grants: Grants) -> None:
        if not grants.moments:
            return
        loop = asyncio.get_running_loop()
        # The quickest answer so far tells best how far the clocks are apart; after a while, they may have drifted.
        drift = CLOCK_DRIFT * (loop.time() - self._compared_at)
        self._compared_at = loop.time()
        self._clock_ahead = max(self._clock_ahead - drift, grants.now - self._compared_at)
        if not self._moments:
            loop.call_at(grants.moments[0] - self._clock_ahead, self._use_moments)
        self._moments.extend(moment - self._clock_ahead for moment in grants.moments)

    def _use_moments(self) -> None:
        """Let calls through whose moment has come; after a stall only some of them, because all would be a burst."""
        loop, moments = asyncio.get_running_loop(), self._moments
        now = loop.time()
        due = [moments.popleft() for _ in range(sum(moment <= now for moment in moments))]
        in_time = sum(moment >= now - LATE_SECONDS for moment in due)
        for _ in range(in_time or min(len(due), 1)):  # one at least, so that a slow machine gets somewhere
            self._let_one_through()
        if moments:
            loop.call_at(moments[0], self._use_moments)
        self._want_moments()

    def _let_one_through(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():  # not cancelled
                turn.set_result(None)
                return

    async def reserve(self, ticket: int, cost: Cost) -> Grants:
        """Ask for room in the budget."""
        self._wishes.reserve[ticket] = cost
        return await self.granted()

    def release(self, ticket: int) -> None:
        """Release a reservation."""
        self._wishes.release.append(ticket)
        self._soon()

    async def granted(self) -> Grants:
        """Return the answer to the wishes that are being gathered."""
        return await asyncio.shield(self._soon())

    def _soon(self) -> asyncio.Future[Grants]:
        """Send the gathered wishes in a moment; return the answer to come."""
        if self._granted is None:
            self._granted = asyncio.get_running_loop().create_future()
            task = asyncio.create_task(self._send_gathered())
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)
        return self._granted

    async def _send_gathered(self) -> None:
        await asyncio.sleep(GATHER_SECONDS)
        wishes, self._wishes = self._wishes, Wishes()
        granted, self._granted = self._granted, None
        assert granted is not None
        try:
            granted.set_result(await self._send(wishes))
        except Exception as error:
            granted.set_exception(error)
            granted.exception()  # marked as retrieved: perhaps nothing waits for it

    async def drain(self) -> None:
        """Wait until all wishes are sent."""
        while self._sending:
            await asyncio.wait(self._sending)


@dataclass(frozen=True, slots=True)
class _Held(Cost):
    """A reservation."""

    ticket: int = 0


class RemoteBudget(BudgetTracker):
    """The budget of a job, of which every call reserves its part at the coordinator; counts what is paid here."""

    def __init__(self, budget: Budget, calls: RemoteCalls) -> None:
        super().__init__(budget)
        self._calls, self._tickets = calls, count()
        self._left = float("inf")
        self._refusal, self._refused_at, self._refused = "", 0.0, Cost(None, 0)

    async def reserve(self, expect: Callable[[], Cost]) -> Cost:
        """Reserve what a call is expected to cost, when there is room for it."""
        ticket = next(self._tickets)
        while True:
            cost = expect()
            grants = await self._calls.reserve(ticket, cost)
            self._left = grants.calls_left
            answer = grants.reserved.get(ticket)
            if answer:
                self._refusal, self._refused = answer, cost
                self._refused_at = asyncio.get_running_loop().time()
                raise BudgetReached(answer)
            if answer == "":
                return _Held(cost.usd, cost.tokens, cost.output_tokens, ticket)
            await asyncio.sleep(ASK_AGAIN_SECONDS)

    def check(self, expected: Cost) -> None:
        """Raise BudgetReached if a call that was no more expensive has just been refused."""
        cheaper = (expected.usd or 0.0) < (self._refused.usd or 0.0) or expected.tokens < self._refused.tokens
        if self._refusal and not cheaper and asyncio.get_running_loop().time() < self._refused_at + REFUSAL_SECONDS:
            raise BudgetReached(self._refusal)

    def release(self, expected: Cost) -> None:
        """Release a reservation."""
        assert isinstance(expected, _Held)
        self._calls.release(expected.ticket)

    def calls_left(self) -> float:
        """Return about how many more calls the budget allows, as last heard."""
        return self._left
