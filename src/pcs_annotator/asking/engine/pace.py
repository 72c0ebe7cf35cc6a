"""Paces the calls to one model: how many at once, how fast, and when to give up."""

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable

from pcs_annotator.base.errors import ModelDown, PcsError, warn_user
from pcs_annotator.core.chat import RateHint

FIRST_RATE = 8.0
SLOWEST = 0.3  # calls per second to a server that only refuses: how soon its recovery is noticed
BELOW_LIMIT = 0.97
SHORTEST_MEASUREMENT = 0.5  # minimum number of seconds between two refusals for measuring a throughput
FEW_ANSWERS = 20
TOLERATED, MOST_TOLERATED = 0.1, 0.6  # share of refusals, above that with another cause, that shows a limit
CUTS_BEFORE_TRIAL, MOST_CUTS_BEFORE_TRIAL = 2, 12
TRIAL_CALLS, TRIAL_SHARE = 40, 0.35  # of twice the rate that a limit allows, half are refused
OUTAGE = 5.0  # seconds without an answer after which an answer means that an outage is over
SHORT_PAUSE = 0.1
LATE_SECONDS = 0.03  # how late a call may be and count as on time: 100 per second are passed by 3 at most
LONGEST_PAUSE = 60.0


class LearnedRate:
    """A rate without a limit until a tenth of the calls is refused (429), and close to it soon after.

    `docs/design/pace.md` says how, and what it reaches.
    """

    def __init__(self) -> None:
        self._rate = math.inf
        self._rate_before_outage = FIRST_RATE
        self._tokens = 0.0
        self._tokens_at = 0.0
        self._cut_at = -math.inf
        self._answered_at = -math.inf
        self._answers = self._refusals = 0  # since the last cut
        self._measured = self._restarted = False  # since the first refusal; since an outage
        self._recent: deque[float] = deque(maxlen=10_000)
        self._refused_share = 0.0
        self._in_trial = False
        self._share_before = 0.0
        self._answers_before = self._refusals_before = 0  # a trial, since the last one
        self._cuts_left = self._cuts_before_trial = CUTS_BEFORE_TRIAL
        self._other_share = 0.0  # share of the calls that is refused for another reason than the rate

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
        if now - self._answered_at > OUTAGE and self._answered_at < self._cut_at and self._rate < math.inf:
            before = self._rate_before_outage
            self._cut(max(self._rate, before / 4, min(before, FIRST_RATE)), now)
            self._measured, self._restarted = False, True
        self._answered_at = now
        self._answers += 1
        self._refused_share *= 0.98
        if not self._measured and self._rate < math.inf:
            self._recent.append(now)

    def refused(self, sent_at: float, now: float, in_flight: int, retry_after: float | None) -> float:
        """Record a refusal and return how many seconds to send nothing.

        Only a refusal of a call sent after the last cut carries new information.
        """
        if sent_at <= self._cut_at:
            return 0.0
        self._refusals += 1
        self._refused_share = 0.98 * self._refused_share + 0.02
        if self._in_trial and not self._trial_fails():
            if self._answers + self._refusals >= TRIAL_CALLS:
                self._pass_trial(now)
            return 0.0
        if not self._in_trial and self._is_tolerated(retry_after):
            return 0.0
        if self._measured and self._answers and not self._in_trial and not self._cuts_left:
            self._try_double(now)
            return 0.0
        limit = self._measure(now, in_flight)
        pause = _pause(retry_after, limit)
        if self._answers:
            self._rate_before_outage = limit
            self._count_before_trial()
        self._cut(max(BELOW_LIMIT * limit, SLOWEST), now + pause)
        return pause

    def _is_tolerated(self, retry_after: float | None) -> bool:
        """Return whether so few calls are refused that this shows no limit; a limit that is known bears no refusal."""
        told_to_wait = self._answered_at == -math.inf and (retry_after or 0.0) > 1
        if told_to_wait or not (self._rate == math.inf or self._other_share or self._restarted):
            return False
        return self._refused_share <= min(TOLERATED + 2 * self._other_share, MOST_TOLERATED)

    def _count_before_trial(self) -> None:
        self._answers_before += self._answers
        self._refusals_before += self._refusals

    def _try_double(self, now: float) -> None:
        self._count_before_trial()
        self._share_before = self._refusals_before / (self._answers_before + self._refusals_before)
        self._answers_before = self._refusals_before = 0
        self._cut(2 * self._at(now), now)
        self._in_trial = True

    def _trial_fails(self) -> bool:
        share = min(TOLERATED + 2 * self._share_before, TRIAL_SHARE)
        return self._refusals > 2 + share * (self._answers + self._refusals)

    def _pass_trial(self, now: float) -> None:
        """Double the rate again; without a limit if calls no longer come as fast as it allows."""
        self._other_share = (self._share_before + self._refusals / (self._answers + self._refusals)) / 2
        self._cuts_before_trial = CUTS_BEFORE_TRIAL
        if 2 * self._answers < self._rate * (now - self._cut_at):
            self._cut(math.inf, now)
        else:
            self._try_double(now)

    def _cut(self, rate: float, at: float) -> None:
        self._rate, self._cut_at, self._in_trial = rate, at, False
        self._measured = self._measured and rate < math.inf
        self._answers = self._refusals = 0
        self._refused_share = self._other_share
        self._tokens, self._tokens_at = 0.0, at

    def _measure(self, now: float, in_flight: int) -> float:
        """Return an estimate of the server's limit from this refusal."""
        elapsed, answers = now - self._cut_at, self._answers
        if self._rate == math.inf:
            return max(answers / max(elapsed, 1.0), in_flight / 2, FIRST_RATE)
        sending = self._at(now)
        self._cuts_left = max(0, self._cuts_left - 1)
        if self._in_trial:
            self._cuts_left = self._cuts_before_trial = min(2 * self._cuts_before_trial, MOST_CUTS_BEFORE_TRIAL)
            self._other_share = 0.8 * self._other_share if self._other_share > 0.005 else 0.0
            return self._rate / 2
        first, self._measured, self._restarted = not self._measured, True, False
        if elapsed < SHORTEST_MEASUREMENT and answers < FEW_ANSWERS:
            return sending * min(max(answers / (answers + 1), 0.5), 0.8)
        if first:
            recent = sum(now - when <= SHORTEST_MEASUREMENT for when in self._recent) / SHORTEST_MEASUREMENT
            self._recent.clear()
            return min(sending, 1.3 * recent)
        # the rate of answers cannot be above the limit, and the rate of sending at a refusal cannot be below it
        return (answers / elapsed + sending) / 2

    def _at(self, now: float) -> float:
        """Return the rate: that of the last cut, rising ever faster the longer no call is refused."""
        quiet = now - self._cut_at
        if not self._measured:
            return self._rate * 2.0 ** min(quiet, 30.0)
        return self._rate * (1 + 0.005 * quiet + 0.0025 * quiet * quiet)


def _pause(retry_after: float | None, limit: float) -> float:
    if retry_after is not None and retry_after > 1:
        return min(retry_after, LONGEST_PAUSE)
    # A header holds whole seconds, so one second means no more than "soon"; but a server whose allowance is used up
    # needs a moment, or the next call is refused again.
    return min(5 / max(limit, 1.0), SHORT_PAUSE)


MAX_IN_FLIGHT = 64
SAY_REFUSED_AFTER, SAY_REFUSED_EVERY = 10.0, 30.0
FIRST_WINDOW = 16
ROUND = 0.1  # seconds in which the window may double; if a round trip takes longer, once per round trip
TROUBLE_SHARE = 0.4
NEVER_ANSWERED_AFTER, NEVER_FOUND_AFTER = 12, 3
GONE_AFTER = 100


class Pace:
    """Lets calls to one model through as fast as the model accepts them, which it learns from the answers.

    It limits calls in flight by a window and their rate as `LearnedRate` does, and obeys `x-ratelimit-*` headers. After
    many failures in a row, all calls to the model raise `ModelDown`.
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
        self._say_refused_at = 0.0
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
        elif now - since >= SAY_REFUSED_AFTER or (retry_after or 0.0) >= LONGEST_PAUSE:
            self._say_refused(now, since, retry_after)

    def _say_refused(self, now: float, since: float, retry_after: float | None) -> None:
        if now < self._say_refused_at:
            return
        self._say_refused_at = now + SAY_REFUSED_EVERY
        wait = max(1, math.ceil(self._delay_of_rate(now)))
        asked = f" and asks to wait {retry_after:,.0f} s" if retry_after else ""
        warn_user(
            f"{self.name} has only answered 429 (too many requests) for {now - since:,.0f} s{asked}: trying again in "
            f"{wait} s, giving up after {self._max_wait:,.0f} s without an answer "
            "(max_wait)"
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
        return self._delay_of_rate(self._clock())

    def _delay_of_rate(self, now: float) -> float:
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
