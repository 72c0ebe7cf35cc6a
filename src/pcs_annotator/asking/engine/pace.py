"""Paces the calls to one model: how many at once, how fast, and when to give up."""

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable

from pcs_annotator.base.errors import ModelDown, PcsError, warn_user
from pcs_annotator.core.chat import RateHint

FIRST_RATE = 8.0
BELOW_LIMIT = 0.97
SHORTEST_MEASUREMENT = 0.5  # minimum number of seconds between two refusals for measuring a throughput
FEW_ANSWERS = 20
MOSTLY_REFUSED = 0.6
SHORT_PAUSE = 0.1
LATE_SECONDS = 0.03  # how late a call may be and count as on time: 100 per second are passed by 3 at most
LONGEST_PAUSE = 60.0
OUT_OF_ORDER = 5.0  # seconds in which everything is refused: that tells nothing about a limit


class LearnedRate:
    """A rate that is unlimited until the first refusal (429) and close to the server's limit soon after.

    It is unknown how many of the answers before the first refusal were part of an allowed burst, so the rate starts low
    and doubles every second until the next refusal, which comes near the limit. From then on every refusal measures the
    limit: it is between the rate of answers since the last refusal and the rate of sending. The rate is set 3 % below
    and rises again, slowly at first. Refusals that stay as frequent however slowly calls are sent have another cause:
    the rate is then unlimited again, until nearly all calls are refused.
    """

    def __init__(self) -> None:
        self._rate = math.inf
        self._tokens = 0.0
        self._tokens_at = 0.0
        self._cut_at = -math.inf
        self._answers = 0
        self._measured = False
        self._recent: deque[float] = deque(maxlen=10_000)
        self._refused_share = 0.0
        self._cuts_in_vain = 0
        self._rate_before_vain = 0.0
        self._drop_needed = 3.0
        self._indifferent = False
        self._rises_fast = False

    def delay(self, now: float) -> float:
        """Return the seconds until another call may be sent."""
        if self._rate == math.inf:
            return 0.0
        rate = self._at(now)
        # only the delay of a timer may be made up for: servers with a strict limit refuse bursts
        self._tokens = min(self._tokens + rate * (now - self._tokens_at), 1.0 + rate / 200)
        self._tokens_at = now
        return 0.0 if self._tokens >= 1.0 else (1.0 - self._tokens) / rate

    def sent(self, now: float) -> None:
        """Record that a call is sent."""
        if self._cut_at == -math.inf:
            self._cut_at = math.nextafter(now, -math.inf)  # the first call is sent after it
        self._tokens -= 1.0

    def answered(self, now: float) -> None:
        """Record an answer."""
        self._answers += 1
        self._refused_share *= 0.98
        if not self._measured and self._rate < math.inf:
            self._recent.append(now)

    def answers_again(self, now: float) -> None:
        """Record the first answer after a time of refusals alone: the rate doubles every second until the next one."""
        self._cut_at, self._rises_fast, self._cuts_in_vain = now, True, 0

    def refused(self, sent_at: float, now: float, in_flight: int, retry_after: float | None) -> float:
        """Record a refusal and return how many seconds to send nothing.

        Only the first refusal of a call sent after the last cut carries new information.
        """
        self._refused_share = 0.98 * self._refused_share + 0.02
        if sent_at <= self._cut_at or (self._indifferent and self._refused_share < MOSTLY_REFUSED):
            return 0.0
        if self._indifferent:
            # nearly all calls are refused now, so the rate matters after all: require more evidence next time
            self._indifferent, self._drop_needed = False, 3 * self._drop_needed
        limit = self._measure(now, in_flight)
        self._rate = max(BELOW_LIMIT * limit, 0.1)
        self._cut_at, self._answers, self._rises_fast = now, 0, False
        self._tokens, self._tokens_at = 0.0, now
        if self._cuts_in_vain >= 4 and self._rate * self._drop_needed < self._rate_before_vain:
            # much slower, and refused as often as before: the refusals do not depend on the rate
            self._indifferent, self._rate, self._measured, self._cuts_in_vain = True, math.inf, False, 0
        return _pause(retry_after, limit)

    def _measure(self, now: float, in_flight: int) -> float:
        """Return an estimate of the server's limit from this refusal."""
        elapsed, answers = now - self._cut_at, self._answers
        if self._rate == math.inf:
            return max(answers / max(elapsed, 1.0), in_flight / 2, FIRST_RATE)
        sending = self._at(now)
        self._count_cut(answers, sending)
        first, self._measured = not self._measured, True
        if elapsed < SHORTEST_MEASUREMENT and answers < FEW_ANSWERS:
            return sending * min(max(answers / (answers + 1), 0.5), 0.8)
        if first:
            recent = sum(now - when <= SHORTEST_MEASUREMENT for when in self._recent) / SHORTEST_MEASUREMENT
            self._recent.clear()
            return min(sending, 1.3 * recent)
        # the rate of answers cannot be above the limit, and the rate of sending at a refusal cannot be below it
        return (answers / elapsed + sending) / 2

    def _count_cut(self, answers: int, sending: float) -> None:
        """Count cuts after which hardly any call was answered before the next refusal."""
        if answers >= FEW_ANSWERS:
            self._cuts_in_vain = 0
            return
        if not self._cuts_in_vain:
            self._rate_before_vain = sending
        self._cuts_in_vain += 1

    def _at(self, now: float) -> float:
        """Return the rate: that of the last cut, rising ever faster the longer no call is refused."""
        quiet = now - self._cut_at
        if self._rises_fast or not self._measured:
            return self._rate * 2.0 ** min(quiet, 30.0)
        return self._rate * (1 + 0.005 * quiet + 0.0025 * quiet * quiet)


def _pause(retry_after: float | None, limit: float) -> float:
    if retry_after is not None and retry_after > 1:
        return min(retry_after, LONGEST_PAUSE)
    # A header holds whole seconds, so one second means no more than "soon"; but a server whose allowance is used up
    # needs a moment, or the next call is refused again.
    return min(5 / max(limit, 1.0), SHORT_PAUSE)


MAX_IN_FLIGHT = 64
FIRST_WINDOW = 16
ROUND = 0.1  # seconds in which the window may double; if a round trip takes longer, once per round trip
TROUBLE_SHARE = 0.4
NEVER_ANSWERED_AFTER, NEVER_FOUND_AFTER = 12, 3
GONE_AFTER = 100


class Pace:
    """Lets calls to one model through as fast as the model accepts them, which it learns from the answers.

    *In flight*: a window that starts small and doubles every round trip up to the maximum; it is halved when two calls
    in five fail, and the maximum with it when the process may open no more connections. *Rate*: see `LearnedRate`;
    `x-ratelimit-*` headers are obeyed before the allowance runs out. *Circuit breaker*: after many failures in a row,
    all calls to the model raise `ModelDown`.
    """

    def __init__(
        self,
        max_in_flight: int = MAX_IN_FLIGHT,
        *,
        name: str = "the model",
        clock: Callable[[], float] = time.monotonic,
        max_wait: float = math.inf,
    ) -> None:
        self.name = name
        self._max_wait = max_wait
        self._only_refused_since: float | None = None
        self._said_refused = False
        self.max_in_flight = max_in_flight
        self.in_flight = 0
        self._clock = clock
        self._rate = LearnedRate()
        self._paused_until = 0.0
        # few at first, unless the user set a higher maximum than the default
        self._window = max_in_flight if max_in_flight > MAX_IN_FLIGHT else min(max_in_flight, FIRST_WINDOW)
        self._window_at_round_start = self._window
        self._round_at = 0.0
        self._waiting: deque[tuple[asyncio.Future[float], object]] = deque()  # tickets, and whose they are
        self._timer: asyncio.TimerHandle | None = None
        self._ever_answered = False
        self._failures_in_a_row = 0
        self._trouble = 0.0
        self._closed: PcsError | None = None
        self._crowded_at = -math.inf

    async def enter(self, owner: object = None) -> float:
        """Wait until a call may be sent; return the time of sending, which `refused` takes."""
        self.raise_if_closed()
        if not self._waiting and self._delay() <= 0:
            return self._admit()
        ticket: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._waiting.append((ticket, owner))
        self._wake()
        try:
            return await ticket
        except asyncio.CancelledError:
            if ticket.done() and not ticket.cancelled() and ticket.exception() is None:
                self.leave()  # admitted and cancelled at the same time
            raise

    def leave(self) -> None:
        """Make room for the next call."""
        self.in_flight -= 1
        if self._waiting:
            self._wake()

    def answered(self, hint: RateHint | None = None) -> None:
        """Record an answer."""
        now = self._clock()
        self._ever_answered = True
        if self._only_refused_since is not None and now - self._only_refused_since >= OUT_OF_ORDER:
            self._rate.answers_again(now)
        self._only_refused_since = None
        self._failures_in_a_row = 0
        self._trouble *= 0.95
        self._rate.answered(now)
        if self._window < self.max_in_flight:
            if now - self._round_at > ROUND:
                self._round_at, self._window_at_round_start = now, self._window
            if self._window < 2 * self._window_at_round_start:
                self._window += 1
        if hint is not None and hint.remaining <= self.in_flight:
            # the calls in flight already use up the allowance
            self._pause(now, min(hint.reset_after, LONGEST_PAUSE))

    def refused(self, sent_at: float, retry_after: float | None = None) -> None:
        """Record a 429."""
        now = self._clock()
        self._pause(now, self._rate.refused(sent_at, now, self.in_flight, retry_after))
        since = self._only_refused_since = sent_at if self._only_refused_since is None else self._only_refused_since
        if now - since >= self._max_wait:
            remedy = "run again to continue, or set max_wait higher"
            self.close(ModelDown(f"{self.name} has only refused for {now - since:,.0f} s (429): {remedy}"))
        elif not self._said_refused and max(now - since, retry_after or 0.0) >= LONGEST_PAUSE:
            self._said_refused = True
            asked = f", and asks to wait {retry_after:,.0f} s" if retry_after else ""
            warn_user(
                f"{self.name} refuses all calls (429){asked}: it is asked again every {LONGEST_PAUSE:g} s or sooner, "
                f"and given up after {self._max_wait:,.0f} s without an answer (max_wait)"
            )

    def crowded(self, sent_at: float) -> None:
        """Record that this process may open no more connections: from now on, half as many calls at once."""
        if sent_at <= self._crowded_at:  # one of those that were sent together
            return
        first, self._crowded_at = self._crowded_at == -math.inf, self._clock()
        self.max_in_flight = self._window = max(1, self.in_flight // 2)
        if first:
            warn_user(
                f"too many open files: {self.name} is asked {self.max_in_flight} questions at once from now on, or "
                "fewer; `ulimit -n` shows and raises the limit"
            )

    def failed(self, what: str = "", *, model_exists: bool = True) -> None:
        """Record a timeout, a reset connection or a server error; `found` is False if the server's name is unknown."""
        self._failures_in_a_row += 1
        self._trouble = 0.95 * self._trouble + 0.05
        if self._trouble > TROUBLE_SHARE:
            self._window, self._trouble = max(1, self._window // 2), 0.0
        at_first = NEVER_ANSWERED_AFTER if model_exists else NEVER_FOUND_AFTER
        if self._failures_in_a_row >= (GONE_AFTER if self._ever_answered else at_first):
            how = "has stopped answering" if self._ever_answered else "does not answer"
            self.close(
                ModelDown(
                    f"{self.name} {how}: {self._failures_in_a_row} calls in a row failed, the last with: {what}. "
                    "Answers so far are kept; run again to continue"
                )
            )

    def close(self, error: PcsError) -> None:
        """Raise this error for all waiting and all later calls."""
        self._closed = error
        for ticket, _ in self._waiting:
            if not ticket.done():
                ticket.set_exception(error)
        self._waiting.clear()

    def raise_if_closed(self) -> None:
        """Raise the error that no call gets past."""
        if self._closed is not None:
            raise self._closed

    def turn_away(self, owner: object, error: PcsError) -> None:
        """Raise this error for the waiting calls of one owner; those of others go on."""
        for ticket, whose in self._waiting:
            if whose is owner and not ticket.done():
                ticket.set_exception(error)

    def _pause(self, now: float, seconds: float) -> None:
        self._paused_until = max(self._paused_until, now + seconds)

    def _admit(self) -> float:
        now = self._clock()
        self.in_flight += 1
        self._rate.sent(now)
        return now

    def _delay(self) -> float:
        """Return the seconds until another call may be sent; 0 for now, infinity for when a call in flight ends."""
        if self.in_flight >= self._window:
            return math.inf
        now = self._clock()
        return self._paused_until - now if now < self._paused_until else self._rate.delay(now)

    def _wake(self) -> None:
        while self._waiting:
            if self._waiting[0][0].done():
                self._waiting.popleft()  # cancelled or turned away while waiting
                continue
            delay = self._delay()
            if delay <= 0:
                self._waiting.popleft()[0].set_result(self._admit())
                continue
            if delay < math.inf and self._timer is None:
                self._timer = asyncio.get_running_loop().call_later(delay, self._on_timer)
            return

    def _on_timer(self) -> None:
        self._timer = None
        self._wake()


class CallsPerSecond:
    """Gives every call, to whichever model, a moment of its own, at a fixed distance from the one before."""

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._step, self._clock, self._next = 1.0 / rate, clock, clock()
        self._queue = asyncio.Lock()

    async def turn(self) -> None:
        """Wait until another call may be made."""
        async with self._queue:
            while (seconds := self._next - self._clock()) > 0:
                await asyncio.sleep(seconds)
            # after a stall, only a few calls are made up for: they must not come in a burst
            self._next = max(self._next, self._clock() - LATE_SECONDS) + self._step
