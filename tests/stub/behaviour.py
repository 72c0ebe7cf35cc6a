"""How the stub behaves: its settings, the choice of faults, and the token bucket."""

import time
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from hashlib import blake2b
from itertools import accumulate
from typing import Any, Literal

AnswerForm = Literal["auto", "tag", "bare", "json"]
RetryAfter = Literal["none", "whole", "exact"]
Logprobs = Literal["given", "ignored", "refused", "after sampling"]
BatchEnd = Literal["completed", "expired", "cancelled", "failed"]
BatchIds = Literal["right", "repeated", "unknown"]
SHARE = "share_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """How the stub answers. The shares are fractions of requests, with a sum of at most 1."""

    seed: int = 0  # another seed gives other faults and other answers
    latency_s: float = 0.0  # seconds before an answer; refusals (4xx) are sent at once
    jitter_s: float = 0.0  # up to this many more seconds, by hash
    rate: float | None = None  # calls per second that the token bucket allows; 429 beyond it. None: no bucket
    burst: int = 10  # capacity of the bucket in calls
    # whether a 429 has a `Retry-After`: none, in whole seconds (rounded up), or exact
    retry_after: RetryAfter = "whole"
    share_429: float = 0.0  # refused at random, in addition to the bucket
    share_500: float = 0.0  # internal error
    share_503: float = 0.0  # overloaded
    share_drop_before: float = 0.0  # connection closed instead of an answer
    share_drop_middle: float = 0.0  # connection closed halfway through the answer
    share_half_closed: float = 0.0  # half of the answer, then the end of what is sent; the connection is not closed
    share_reset: float = 0.0  # connection reset (RST) instead of an answer
    share_hang: float = 0.0  # no answer, ever
    share_truncated: float = 0.0  # 200 with half of the JSON
    share_html: float = 0.0  # 200 with an HTML page
    share_chatter: float = 0.0  # a friendly sentence without a label
    share_empty: float = 0.0  # an empty answer
    share_filtered: float = 0.0  # 200 with an empty answer; finish reason `content_filter`
    faults_only_first: bool = False  # whether retries of a question have no faults
    # maximum number of characters in all messages; longer questions get a context-length error
    max_chars: int | None = None
    filter_word: str | None = None  # questions that contain it get a content-filter error
    key: str | None = None  # the only accepted API key. None: no key is required
    models: tuple[str, ...] = ()  # the models that exist. Empty: all do
    labels: tuple[str, ...] = ()  # the labels to answer with. Empty: those in the question
    # the form of an answer; `auto` is the requested structured form, else `<label>X</label>`
    answer: AnswerForm = "auto"
    record_times: bool = False  # whether to record the time of every arrival, answer and 429
    logprobs: Logprobs = "given"  # what becomes of a request for log-probabilities; `after sampling` gives 0 and -9999
    max_logprobs: int = 20  # the most alternatives that may be requested
    batch_s: float = 0.0  # seconds until a batch ends
    batch_end: BatchEnd = "completed"  # how a batch ends
    batch_done: float = 0.5  # share of the requests that were answered when a batch expires or is cancelled
    batch_faults: int = 1_000_000  # how many batches end like that; later ones are completed
    batch_tokens: int | None = None  # the most tokens that may wait in batches under way. None: no limit
    batch_ids: BatchIds = "right"  # whether results also have IDs that nobody asked for, or the same one twice
    batch_drop: bool = False  # whether the connection breaks the first time a file of results is fetched
    batch_lost: bool = False  # whether the connection breaks when the first batch is started, after it was started

    def __post_init__(self) -> None:
        shares = self.shares()
        if min(shares.values()) < 0 or sum(shares.values()) > 1 + 1e-9:
            raise ValueError(f"shares must be at least 0 and sum to at most 1: {shares}")
        if self.rate is not None and (self.rate <= 0 or self.burst < 1):
            raise ValueError(f"rate must be above 0 and burst at least 1: {self.rate} and {self.burst}")

    def shares(self) -> dict[str, float]:
        """Return each fault's share by its name without `share_`."""
        names = [field.name for field in fields(self) if field.name.startswith(SHARE)]
        return {name.removeprefix(SHARE): getattr(self, name) for name in names}

    def to_json(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def changed(self, changes: Mapping[str, Any]) -> "Behaviour":
        """Return a copy with some fields changed; lists become tuples, an unknown name raises ValueError."""
        values = self.to_json()
        if unknown := changes.keys() - values.keys():
            raise ValueError(f"no such behaviour: {', '.join(sorted(unknown))}; known: {', '.join(values)}")
        values |= {name: tuple(value) if isinstance(value, list) else value for name, value in changes.items()}
        return Behaviour(**values)


def digest(*parts: bytes) -> bytes:
    """Return 16 bytes that depend only on the parts."""
    return blake2b(b"\0".join(parts), digest_size=16).digest()


def pick(count: int, *parts: str) -> int:
    """Return a number below `count` that depends only on the parts."""
    mark = blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(mark, "big") % count


class Dice:
    """Chooses what happens to an attempt at a question; the same in every run."""

    def __init__(self, behaviour: Behaviour) -> None:
        shares = {name: share for name, share in behaviour.shares().items() if share > 0}
        self._names = [*shares, "answer"]
        self._bounds = list(accumulate(shares.values()))
        self._behaviour = behaviour
        self._seed = str(behaviour.seed).encode()

    def draw(self, question: bytes, attempt: int) -> tuple[str, float]:
        """Return the kind of reply and its delay in seconds; the first attempt is 0."""
        behaviour = self._behaviour
        if not self._bounds and not behaviour.jitter_s:
            return "answer", behaviour.latency_s
        mark = digest(self._seed, question, str(attempt).encode())
        delay = behaviour.latency_s + behaviour.jitter_s * int.from_bytes(mark[8:], "big") / 2**64
        if attempt and behaviour.faults_only_first:
            return "answer", delay
        return self._names[bisect_right(self._bounds, int.from_bytes(mark[:8], "big") / 2**64)], delay


class TokenBucket:
    """Allows `rate` calls per second, and `burst` calls at once after a pause."""

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate = rate
        self.burst = burst
        self.tokens = float(burst)
        self._clock = clock
        self._seen = clock()

    def take(self) -> float:
        """Return 0 if the call is allowed, else the seconds until one is."""
        now = self._clock()
        self.tokens = min(self.burst, self.tokens + (now - self._seen) * self.rate)
        self._seen = now
        if self.tokens < 1:
            return (1 - self.tokens) / self.rate
        self.tokens -= 1
        return 0.0
