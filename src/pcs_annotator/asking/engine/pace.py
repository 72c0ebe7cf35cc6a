"""The gate before one model: how many calls may be in flight, how fast they follow, and when to give up."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable

from pcs_annotator.asking.engine.rate import LONGEST_PAUSE, LearnedRate
from pcs_annotator.asking.models.base import RateHint
from pcs_annotator.errors import ModelDown, PcsError

MAX_IN_FLIGHT = 64
FIRST_WINDOW = 16
ROUND = 0.1
"""Seconds in which the window may double; a round trip that takes longer counts instead."""
TROUBLE_SHARE = 0.4
NEVER_ANSWERED_AFTER = 12
GONE_AFTER = 100


class Pace:
    """Lets calls to one model pass as fast as it takes them, and learns that from the answers.

    *In flight*: a window that starts narrow and doubles every round trip up to the maximum; it is halved when two
    calls in five go wrong. *Rate*: see `LearnedRate`; a server's own word (`x-ratelimit-*`) is taken before its
    allowance runs out. *Breaker*: a model that fails many times without a single answer between is given up with
    `ModelDown`.
    """

    def __init__(
        self,
        max_in_flight: int = MAX_IN_FLIGHT,
        *,
        name: str = "the model",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self.max_in_flight = max_in_flight
        self.in_flight = 0
        self._clock = clock
        self._rate = LearnedRate()
        self._paused_until = 0.0
        self._window = _first_window(max_in_flight)
        self._window_at_round_start = self._window
        self._round_at = 0.0
        self._waiting: deque[asyncio.Future[float]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._ever_answered = False
        self._failures_in_a_row = 0
        self._trouble = 0.0
        self._closed: PcsError | None = None

    async def enter(self) -> float:
        """Wait until a call may be sent; return the time it is sent, to be handed back with its result."""
        if self._closed is not None:
            raise self._closed
        if not self._waiting and self._delay() <= 0:
            return self._admit()
        ticket: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._waiting.append(ticket)
        self._wake()
        try:
            return await ticket
        except asyncio.CancelledError:
            if ticket.done() and not ticket.cancelled() and ticket.exception() is None:
                self.leave()  # admitted and cancelled in the same moment
            raise

    def leave(self) -> None:
        """Make room for the next call."""
        self.in_flight -= 1
        if self._waiting:
            self._wake()

    def answered(self, hint: RateHint | None = None) -> None:
        """Note an answer."""
        now = self._clock()
        self._ever_answered = True
        self._failures_in_a_row = 0
        self._trouble *= 0.95
        self._rate.answered(now)
        if self._window < self.max_in_flight:
            self._widen(now)
        if hint is not None and hint.remaining <= self.in_flight:
            # what is in flight already uses up the allowance
            self._pause(now, min(hint.reset_after, LONGEST_PAUSE))

    def refused(self, sent_at: float, retry_after: float | None = None) -> None:
        """Note a 429."""
        now = self._clock()
        self._pause(now, self._rate.refused(sent_at, now, self.in_flight, retry_after))

    def failed(self, what: str = "") -> None:
        """Note a timeout, a reset connection or a server error."""
        self._failures_in_a_row += 1
        self._trouble = 0.95 * self._trouble + 0.05
        if self._trouble > TROUBLE_SHARE:
            self._window, self._trouble = max(1, self._window // 2), 0.0
        if self._failures_in_a_row >= (GONE_AFTER if self._ever_answered else NEVER_ANSWERED_AFTER):
            how = "has stopped answering" if self._ever_answered else "does not answer"
            self.close(
                ModelDown(
                    f"{self.name} {how}: {self._failures_in_a_row} calls in a row failed, the last with: {what}. "
                    "What was answered is kept; run again to go on"
                )
            )

    def close(self, error: PcsError) -> None:
        """Let nobody in any more: those who wait, and those who come, get the error."""
        self._closed = error
        while self._waiting:
            ticket = self._waiting.popleft()
            if not ticket.done():
                ticket.set_exception(error)

    def _pause(self, now: float, seconds: float) -> None:
        self._paused_until = max(self._paused_until, now + seconds)

    def _widen(self, now: float) -> None:
        if now - self._round_at > ROUND:
            self._round_at, self._window_at_round_start = now, self._window
        if self._window < 2 * self._window_at_round_start:
            self._window += 1

    def _admit(self) -> float:
        now = self._clock()
        self.in_flight += 1
        self._rate.sent(now)
        return now

    def _delay(self) -> float:
        """Return the seconds until another call may be sent; 0 for now, infinity for when one comes back."""
        if self.in_flight >= self._window:
            return math.inf
        now = self._clock()
        return self._paused_until - now if now < self._paused_until else self._rate.delay(now)

    def _wake(self) -> None:
        while self._waiting:
            if self._waiting[0].done():
                self._waiting.popleft()  # cancelled while it waited
                continue
            delay = self._delay()
            if delay <= 0:
                self._waiting.popleft().set_result(self._admit())
                continue
            if delay < math.inf and self._timer is None:
                self._timer = asyncio.get_running_loop().call_later(delay, self._on_timer)
            return

    def _on_timer(self) -> None:
        self._timer = None
        self._wake()


def _first_window(most: int) -> int:
    """Return how many calls to start with: few, unless the user asked for many and so knows the server takes them."""
    return most if most > MAX_IN_FLIGHT else min(most, FIRST_WINDOW)
