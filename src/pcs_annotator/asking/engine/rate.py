"""How many calls a second a server allows, learned from its refusals."""

from __future__ import annotations

import math
from collections import deque

FIRST_RATE = 8.0
BELOW_LIMIT = 0.97
SHORTEST_MEASUREMENT = 0.5
"""Seconds between two refusals that make a throughput worth believing."""
FEW_ANSWERS = 20
MOSTLY_REFUSED = 0.6
BREATH = 0.1
LONGEST_PAUSE = 60.0


class LearnedRate:
    """A rate that is unlimited until the first refusal (429) and close to the server's limit soon after.

    How much of what was answered before the first refusal was a burst nobody knows, so the rate starts low and doubles
    every second until the next refusal, which comes near the limit. From then on every refusal measures the limit: it
    lies between what was answered since the last one and what was being sent. The rate becomes 3 % less than that and
    creeps up, slowly at first. Refusals that come as often however slowly we ask have another cause; the rate is then
    unlimited again, until nearly everything is refused.
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

    def delay(self, now: float) -> float:
        """Return the seconds until another call may be sent."""
        if self._rate == math.inf:
            return 0.0
        rate = self._at(now)
        # what a timer's delay costs may be made up for, no more: a server that counts finely refuses bursts
        self._tokens = min(self._tokens + rate * (now - self._tokens_at), 1.0 + rate / 200)
        self._tokens_at = now
        return 0.0 if self._tokens >= 1.0 else (1.0 - self._tokens) / rate

    def sent(self, now: float) -> None:
        """Note that a call goes out."""
        if self._cut_at == -math.inf:
            self._cut_at = math.nextafter(now, -math.inf)  # the first call is sent after it
        self._tokens -= 1.0

    def answered(self, now: float) -> None:
        """Note an answer."""
        self._answers += 1
        self._refused_share *= 0.98
        if not self._measured and self._rate < math.inf:
            self._recent.append(now)

    def refused(self, sent_at: float, now: float, in_flight: int, retry_after: float | None) -> float:
        """Note a refusal and return how long to send nothing.

        Only the first refusal of calls sent after the last cut says anything new.
        """
        self._refused_share = 0.98 * self._refused_share + 0.02
        if sent_at <= self._cut_at or (self._indifferent and self._refused_share < MOSTLY_REFUSED):
            return 0.0
        if self._indifferent:
            # nearly everything is refused now, so the rate matters after all: be slower to think otherwise again
            self._indifferent, self._drop_needed = False, 3 * self._drop_needed
        limit = self._measure(now, in_flight)
        self._rate = max(BELOW_LIMIT * limit, 0.1)
        self._cut_at, self._answers = now, 0
        self._tokens, self._tokens_at = 0.0, now
        if self._cuts_in_vain >= 4 and self._rate * self._drop_needed < self._rate_before_vain:
            # much slower, and refused as often as before: the refusals have nothing to do with the rate
            self._indifferent, self._rate, self._measured, self._cuts_in_vain = True, math.inf, False, 0
        return _pause(retry_after, limit)

    def _measure(self, now: float, in_flight: int) -> float:
        """Return the server's limit, as far as this refusal tells it."""
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
        # what came home cannot be more than the limit, and what was sent when it was refused cannot be less
        return (answers / elapsed + sending) / 2

    def _count_cut(self, answers: int, sending: float) -> None:
        """Count cuts that brought hardly an answer until the next refusal."""
        if answers >= FEW_ANSWERS:
            self._cuts_in_vain = 0
            return
        if not self._cuts_in_vain:
            self._rate_before_vain = sending
        self._cuts_in_vain += 1

    def _at(self, now: float) -> float:
        """Return the rate: that of the last cut, growing ever faster the longer nothing is refused."""
        quiet = now - self._cut_at
        if not self._measured:
            return self._rate * 2.0 ** min(quiet, 30.0)
        return self._rate * (1 + 0.005 * quiet + 0.0025 * quiet * quiet)


def _pause(retry_after: float | None, limit: float) -> float:
    if retry_after is not None and retry_after > 1:
        return min(retry_after, LONGEST_PAUSE)
    # Whole seconds are the least a header can say, so one second means no more than "soon"; but a server that has just
    # run dry needs a moment, or the next call is refused again.
    return min(5 / max(limit, 1.0), BREATH)
