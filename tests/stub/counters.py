"""The stub's counters."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """A snapshot of the stub's counters; only questions are counted, not `/models` or the stub's own pages.

    Attributes:
        requests: Questions that arrived.
        answered: Complete, well-formed answers with status 200, including bad answers: what would be charged.
        asked_again: Questions that arrived although the same question had already been answered.
        answered_twice: Answers beyond the first to the same question, over all questions.
        abandoned: Questions whose caller disconnected before the answer.
        in_flight: Questions without an answer at the moment.
        max_in_flight: The maximum of `in_flight`.
        questions: Different questions that were answered.
        connections: Connections opened.
        cpu_s: CPU seconds of the stub's process since its start.
        by_status: Complete replies by HTTP status.
        by_kind: Questions by kind of reply: `answer`, a share's name, `limited` (the bucket), `401` …
        by_question: Answers by hash of the question. Full stats only.
        arrivals: Times of arrival (`time.monotonic`, the same in all processes). Full stats, if recorded.
        answered_at: Times of answers. Full stats, if recorded.
        limited_at: Times of 429s. Full stats, if recorded.
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
        """Return the stats from the result of `to_json`."""
        by_status = {int(status): count for status, count in values["by_status"].items()}
        times = {name: tuple(values[name]) for name in ("arrivals", "answered_at", "limited_at")}
        return cls(**{**values, "by_status": by_status, **times})


class Counters:
    """Counts questions and answers."""

    def __init__(self) -> None:
        self.in_flight = 0
        self.reset()

    def reset(self) -> None:
        """Reset everything but the questions in flight."""
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
        """Count the arrival of a question."""
        self.requests += 1
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
        """Count a question whose caller disconnected."""
        self.in_flight -= 1
        self.abandoned += 1

    def stats(self, *, full: bool = False) -> Stats:
        """Return a snapshot; `full` adds what grows with the number of questions."""
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
