"""The progress display of a run, and the counters behind it."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, fields
from typing import Any, TextIO

from pcs_annotator.asking.engine.budget import BudgetTracker


@dataclass(slots=True)
class Tally:
    """Counters of a run, updated by the engine.

    Attributes:
        rows: Items finished.
        rows_expected: Total number of items; None when unknown.
        calls: Calls answered, and so paid for, in this run.
        from_ledger: Answers that were already in the ledger.
        questions: Questions to annotators that were needed, whether answered by a call, from the ledger or not at all.
        spared: Questions to annotators that were not needed because the label was already settled.
        retries: Attempts that had to be repeated, by kind of error.
        not_applicable: Rewrites that a text does not allow, and texts that cannot be asked about, by reason.
        rejected: Rewrites that a check rejected, by reason.
        unreadable: Answers without a usable label, by reason.
        failed: Questions without an answer, by reason; the next run asks them again.
        cut: Annotator → texts that were cut because they do not fit into its model's context.
        graded: Votes with the probability of every label.
        refused: Questions and rewrites that a server will not answer; the next run asks them again.
        bounded: Those among them in which a label not listed by the server may have more than 1 %.
        hard: Votes that were to be graded and are not, by reason.
    """

    rows: int = 0
    rows_expected: int | None = None
    calls: int = 0
    from_ledger: int = 0
    questions: int = 0
    spared: int = 0
    retries: Counter[str] = field(default_factory=Counter)
    not_applicable: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    unreadable: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    cut: Counter[str] = field(default_factory=Counter)
    graded: int = 0
    refused: int = 0
    bounded: int = 0
    hard: Counter[str] = field(default_factory=Counter)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        values = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return {name: dict(value) if isinstance(value, Counter) else value for name, value in values.items()}

    def add(self, part: Tally) -> None:
        """Count what was counted for a part of the rows."""
        for entry in fields(self):
            if entry.name != "rows_expected":
                counted = getattr(self, entry.name) + getattr(part, entry.name)
                setattr(self, entry.name, counted)

    def take_over(self, earlier: Mapping[str, Any]) -> None:
        """Count what an earlier run counted, its calls as answers from the ledger; `earlier` is its `to_dict`."""
        for name, value in earlier.items():
            counter = getattr(self, name, None)
            if name in ("rows_expected", "retries") or counter is None:
                continue
            if isinstance(counter, Counter):
                counter.update(value)
            else:
                into = "from_ledger" if name == "calls" else name
                setattr(self, into, getattr(self, into) + value)


TERMINAL_SECONDS = 0.2
PIPED_SECONDS = 10.0
SPEED_SECONDS = 60.0


@asynccontextmanager
async def showing(tally: Tally, tracker: BudgetTracker, stream: TextIO | None = None) -> AsyncIterator[None]:
    """Show the progress of a run until the block ends: a bar on a terminal, otherwise a line every ten seconds."""
    stream = stream or sys.stderr
    started = time.monotonic()
    show = _bar(stream) if stream.isatty() else _lines(stream)
    every = TERMINAL_SECONDS if stream.isatty() else PIPED_SECONDS

    speed = RecentSpeed()

    async def keep_showing() -> None:
        while True:
            await asyncio.sleep(every)
            seconds = time.monotonic() - started
            show(tally, describe(tally, tracker, seconds, speed.at(seconds, tally.rows)), False)

    task = asyncio.create_task(keep_showing())
    try:
        yield
    finally:
        task.cancel()
        show(tally, describe(tally, tracker, time.monotonic() - started), True)


class RecentSpeed:
    """Rows per second lately: after a stop, rows that the ledger knows pass much more quickly than those to come."""

    def __init__(self) -> None:
        self._marks = deque([(0.0, 0)])

    def at(self, seconds: float, rows: int) -> float:
        """Note how many rows are finished after some seconds, and return how many were finished per second lately."""
        self._marks.append((seconds, rows))
        while len(self._marks) > 2 and seconds - self._marks[1][0] >= SPEED_SECONDS:
            self._marks.popleft()
        earlier, before = self._marks[0]
        return (rows - before) / max(seconds - earlier, 1e-9)


def describe(tally: Tally, tracker: BudgetTracker, seconds: float, speed: float | None = None) -> str:
    """Return one line: rows, calls, rate, cost, time left, problems; `speed` is in rows per second, if known."""
    speed = speed or tally.rows / max(seconds, 1e-9)
    rows = f"{tally.rows:,}" + (f" of {tally.rows_expected:,}" if tally.rows_expected else "")
    parts = [f"{rows} rows", f"{tally.calls:,} calls"]
    if tally.calls and seconds > 0:
        parts.append(f"{tally.calls / seconds:,.0f} calls/s")
    if tally.from_ledger:
        parts.append(f"{tally.from_ledger:,} from the ledger")
    parts.append(_money(tracker))
    if tally.rows_expected and 0 < tally.rows < tally.rows_expected:
        left = (tally.rows_expected - tally.rows) / speed
        parts.append(f"{_clock(left)} left")
    problems = {
        "retries": tally.retries,
        "did not apply": tally.not_applicable,
        "rejected": tally.rejected,
        "unreadable": tally.unreadable,
        "unanswered": tally.failed,
    }
    for name, count in problems.items():
        if count:
            parts.append(f"{count.total():,} {name}")
    return " · ".join(parts)


def _money(tracker: BudgetTracker) -> str:
    return f"${tracker.usd:.4f}" + (" and calls of unknown price" if tracker.price_unknown else "")


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


Show = Callable[[Tally, str, bool], None]


def _bar(stream: TextIO) -> Show:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

    bar = Progress(
        SpinnerColumn(), BarColumn(bar_width=24), TextColumn("{task.description}"), console=Console(file=stream)
    )
    task = bar.add_task("starting", total=None)
    bar.start()

    def show(tally: Tally, line: str, last: bool) -> None:
        bar.update(task, description=line, completed=tally.rows, total=tally.rows_expected)
        if last:
            bar.stop()

    return show


def _lines(stream: TextIO) -> Show:
    def show(tally: Tally, line: str, last: bool) -> None:
        print(line, file=stream, flush=True)

    return show
