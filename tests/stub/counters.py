"""What the stub remembers of its callers."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """The stub's counters at one moment; only questions are counted, not `/models` or the stub's own pages.

    Attributes:
        requests: Questions that arrived.
        answered: Questions answered well-formed with 200 to the last byte, silly answers included: what is paid for.
        asked_again: Questions that arrived although the same question had been answered already.
        answered_twice: Answers beyond the first to the same question, over all questions.
        abandoned: Questions whose caller left before the answer.
        in_flight: Questions without an answer now.
        max_in_flight: The most of them at one time.
        questions: Different questions that were answered.
        connections: Connections opened.
        cpu_s: CPU seconds of the stub's process since its start.
        by_status: Complete replies by HTTP status.
        by_kind: Questions by what the stub did with them: `answer`, a share's name, `limited` (the bucket), `401` …
        by_question: Answers by hash of the question. Full stats only.
        arrivals: When questions arrived (`time.monotonic`, the same in all processes). Full stats, if recorded.
        answered_at: When answers went out. Full stats, if recorded.
        limited_at: When 429s went out. Full stats, if recorded.
    """

    requests: int
    answered: int
    asked_again: int
    answered_twice: int
    abandoned: int
    in_flight: int
    max_in_flight: int
    questions: int
    connections: int
    cpu_s: float
    by_status: Mapping[int, int]
    by_kind: Mapping[str, int]
    by_question: Mapping[str, int] = field(default_factory=dict)
    arrivals: tuple[float, ...] = ()
    answered_at: tuple[float, ...] = ()
    limited_at: tuple[float, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the counters as plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Stats:
        """Return what `to_json` was made from."""
        by_status = {int(status): count for status, count in values["by_status"].items()}
        times = {name: tuple(values[name]) for name in ("arrivals", "answered_at", "limited_at")}
        return cls(**{**values, "by_status": by_status, **times})


class Counters:
    """Counts questions and answers as they come and go."""

    def __init__(self) -> None:
        self.in_flight = 0
        self.reset()

    def reset(self) -> None:
        """Forget everything but the questions that are in flight."""
        self.requests = self.answered = self.asked_again = self.abandoned = self.connections = 0
        self.max_in_flight = self.in_flight
        self.by_status: Counter[int] = Counter()
        self.by_kind: Counter[str] = Counter()
        self.attempts: dict[bytes, int] = {}
        self.answers: dict[bytes, int] = {}
        self.arrivals: list[float] = []
        self.answered_at: list[float] = []
        self.limited_at: list[float] = []

    def arrived(self, question: bytes, *, record: bool) -> None:
        """Count a question that came in."""
        self.requests += 1
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        self.asked_again += question in self.answers
        if record:
            self.arrivals.append(time.monotonic())

    def attempt(self, question: bytes) -> int:
        """Return how often this question got as far as this before, and count it."""
        before = self.attempts.get(question, 0)
        self.attempts[question] = before + 1
        return before

    def replied(self, question: bytes, status: int, *, paid: bool, record: bool) -> None:
        """Count a question that left; status 0 is a connection closed without a complete reply."""
        self.in_flight -= 1
        if status:
            self.by_status[status] += 1
        if paid:
            self.answered += 1
            self.answers[question] = self.answers.get(question, 0) + 1
        if record and (paid or status == 429):
            (self.answered_at if paid else self.limited_at).append(time.monotonic())

    def left(self) -> None:
        """Count a question whose caller did not wait for the answer."""
        self.in_flight -= 1
        self.abandoned += 1

    def stats(self, *, full: bool = False) -> Stats:
        """Return the counters as a value; `full` adds what grows with the number of questions."""
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
            cpu_s=time.process_time(),
            by_status=dict(self.by_status),
            by_kind=dict(self.by_kind),
            by_question={question.hex(): count for question, count in self.answers.items()} if full else {},
            arrivals=tuple(self.arrivals) if full else (),
            answered_at=tuple(self.answered_at) if full else (),
            limited_at=tuple(self.limited_at) if full else (),
        )
