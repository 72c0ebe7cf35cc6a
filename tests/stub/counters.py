"""The stub's counters."""

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """A snapshot of the stub's counters; only questions are counted, not `/models` or the stub's own pages."""

    requests: int  # questions that arrived
    answered: int  # complete, well-formed answers with status 200, including bad answers: what would be charged
    asked_again: int  # questions that arrived although the same question had already been answered
    answered_twice: int  # answers beyond the first to the same question, over all questions
    abandoned: int  # questions whose caller disconnected before the answer
    in_flight: int  # questions without an answer at the moment
    max_in_flight: int
    questions: int  # different ones that were answered
    connections: int  # opened ones
    by_machine: Mapping[str, int]  # questions by where their callers are; "" where the stub has only its own socket
    by_status: Mapping[int, int]  # complete replies by HTTP status
    by_kind: Mapping[str, int]  # questions by kind of reply: `answer`, a share's name, `limited` (the bucket), `401` …
    # times (`time.monotonic`, the same in all processes) of arrivals, answers and 429s: full stats, if recorded
    arrivals: tuple[float, ...] = ()
    answered_at: tuple[float, ...] = ()
    limited_at: tuple[float, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Stats":
        by_status = {int(status): count for status, count in values["by_status"].items()}
        times = {name: tuple(values[name]) for name in ("arrivals", "answered_at", "limited_at")}
        return cls(**{**values, "by_status": by_status, **times})


class Counters:
    def __init__(self) -> None:
        self.in_flight = 0
        self.reset()

    def reset(self) -> None:
        """Reset everything but the questions in flight."""
        self.requests = self.answered = self.asked_again = self.abandoned = self.connections = 0
        self.max_in_flight = self.in_flight
        self.by_status: Counter[int] = Counter()
        self.by_machine: Counter[str] = Counter()
        self.by_kind: Counter[str] = Counter()
        self.attempts: dict[bytes, int] = {}
        self.answers: dict[bytes, int] = {}
        self.arrivals: list[float] = []
        self.answered_at: list[float] = []
        self.limited_at: list[float] = []

    def arrived(self, question: bytes, machine: str = "", *, record: bool) -> None:
        self.requests += 1
        self.by_machine[machine] += 1
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        self.asked_again += question in self.answers
        if record:
            self.arrivals.append(time.monotonic())

    def attempt(self, question: bytes) -> int:
        """Count an attempt at a question, and return how many there were before."""
        before = self.attempts.get(question, 0)
        self.attempts[question] = before + 1
        return before

    def replied(self, question: bytes, status: int, *, paid: bool, record: bool) -> None:
        """Count a reply; status 0 is a connection closed without a complete reply."""
        self.in_flight -= 1
        if status:
            self.by_status[status] += 1
        if paid:
            self.answered += 1
            self.answers[question] = self.answers.get(question, 0) + 1
        if record and (paid or status == 429):
            (self.answered_at if paid else self.limited_at).append(time.monotonic())

    def left(self) -> None:
        self.in_flight -= 1
        self.abandoned += 1

    def stats(self, *, full: bool = False) -> "Stats":
        """Return a snapshot; `full` adds the times that were recorded."""
        return Stats(
            requests=self.requests,
            answered=self.answered,
            asked_again=self.asked_again,
            answered_twice=sum(self.answers.values()) - len(self.answers),
            abandoned=self.abandoned,
            in_flight=self.in_flight,
            max_in_flight=self.max_in_flight,
            questions=len(self.answers),
            connections=self.connections,
            by_machine=dict(self.by_machine),
            by_status=dict(self.by_status),
            by_kind=dict(self.by_kind),
            arrivals=tuple(self.arrivals) if full else (),
            answered_at=tuple(self.answered_at) if full else (),
            limited_at=tuple(self.limited_at) if full else (),
        )
