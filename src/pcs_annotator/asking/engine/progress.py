"""The progress display of a run, and the counters behind it."""

import asyncio
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, fields
from typing import Any, TextIO

from pcs_annotator.asking.engine.budget import BudgetTracker
from pcs_annotator.asking.ledger.admin import PriceOf
from pcs_annotator.base.display import in_notebook
from pcs_annotator.base.text import counted
from pcs_annotator.core.bill import Bill
from pcs_annotator.core.chat import Usage

TAKEN = ("calls", "input_tokens", "output_tokens")
_CAUSES = {
    "TimedOut": "time-out",
    "RateLimited": "rate limit",
    "ServerTrouble": "server error",
    "TooManyFiles": "connection limit",
    "UnknownHost": "unknown host",
}


@dataclass(slots=True)
class Tally:
    """Counters of a run, updated by the engine; those with several counts have them by reason."""

    rows: int = 0  # items finished
    unlabelled: int = 0  # of them, those that no answer gave a label
    rows_expected: int | None = None  # None when unknown
    calls: int = 0  # answered, and so paid for, in this run
    from_ledger: int = 0  # answers that were already in the ledger
    paid: Counter[str] = field(default_factory=Counter)  # calls and tokens in and out, per purpose and model
    reused: Counter[str] = field(default_factory=Counter)  # the same for answers from the ledger, when they were paid
    questions: int = 0  # that were needed, whether answered by a call, from the ledger or not at all
    spared: int = 0  # questions that were not needed because the label was already settled
    retries: Counter[str] = field(default_factory=Counter)  # by kind of error
    not_applicable: Counter[str] = field(default_factory=Counter)  # rewrites that a text does not allow, empty texts
    rejected: Counter[str] = field(default_factory=Counter)  # rewrites that a check rejected
    unreadable: Counter[str] = field(default_factory=Counter)  # answers without a usable label
    failed: Counter[str] = field(default_factory=Counter)  # questions without an answer; the next run asks again
    cut: Counter[str] = field(default_factory=Counter)  # annotator → texts that its model's context has no room for
    graded: int = 0  # votes with the probability of every label
    refused: int = 0  # questions and rewrites that a server will not answer; the next run asks again
    bounded: int = 0  # graded votes in which a label that the server did not list may have more than 1 %
    hard: Counter[str] = field(default_factory=Counter)  # votes that were to be graded and are not

    def count_answer(self, model: str, purpose: str, usage: Usage, *, paid: bool) -> None:
        """Count an answer that was paid for, or that was in the ledger already."""
        if paid:
            self.calls += 1
        else:
            self.from_ledger += 1
        took, whose = self.paid if paid else self.reused, f"{purpose} {model}"
        took[f"calls {whose}"] += 1
        took[f"input_tokens {whose}"] += usage.input_tokens or 0
        took[f"output_tokens {whose}"] += usage.output_tokens or 0

    def count_as_paid(self, calls: int) -> None:
        """Count some of the answers that were found in the ledger as paid for in this run, by another process.

        Which of them these are is not known, so each model gets its share.
        """
        share = min(1.0, calls / max(self.from_ledger, 1))
        moved = Counter({name: round(share * number) for name, number in self.reused.items()})
        self.calls += calls
        self.from_ledger = max(0, self.from_ledger - calls)
        self.paid += moved
        self.reused -= moved

    @property
    def spent(self) -> tuple[int, int]:
        """Calls and tokens that were paid for in this run."""
        return self.calls, sum(number for of, number in self.paid.items() if not of.startswith("calls "))

    def retries_by_cause(self) -> str:
        """Return how many attempts had to be repeated, and why; "" if none."""
        listed = ", ".join(counted(number, cause) for cause, number in self.causes.items())
        return f"{counted(self.retries.total(), 'retry', 'retries')}: {listed}" if listed else ""

    @property
    def causes(self) -> dict[str, int]:
        """How many attempts had to be repeated, by cause, most first; a copy."""
        return {_CAUSES.get(kind, kind): number for kind, number in Counter(self.retries).most_common()}

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        values = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return {name: dict(value) if isinstance(value, Counter) else value for name, value in values.items()}

    def add(self, part: "Tally") -> None:
        """Count what was counted for a part of the rows."""
        for entry in fields(self):
            if entry.name != "rows_expected" and (more := getattr(part, entry.name)):
                setattr(self, entry.name, getattr(self, entry.name) + more)

    def take_over(self, earlier: Mapping[str, Any]) -> None:
        """Count what an earlier run counted, its calls as answers from the ledger; `earlier` is its `to_dict`."""
        for name, value in earlier.items():
            counter = getattr(self, name, None)
            if name in ("rows_expected", "retries") or counter is None:
                continue
            if isinstance(counter, Counter):
                (self.reused if name == "paid" else counter).update(value)
            else:
                into = "from_ledger" if name == "calls" else name
                setattr(self, into, getattr(self, into) + value)


def bills_of(taken: Mapping[str, int], price_of: PriceOf) -> list[Bill]:
    """Return calls, tokens and cost per model and purpose, from `Tally.paid` or `Tally.reused`."""
    sums: dict[tuple[str, str], dict[str, int]] = {}
    for name, number in taken.items():
        what, purpose, model = name.split(" ", 2)
        sums.setdefault((model, purpose), dict.fromkeys(TAKEN, 0))[what] += number
    return [
        Bill(model=model, purpose=purpose, **usage, usd=price_of(model, usage["input_tokens"], usage["output_tokens"]))
        for (model, purpose), usage in sorted(sums.items())
    ]


SAMPLE_SECONDS = 0.2
PIPED_SECONDS = 10.0


@asynccontextmanager
async def showing(tally: Tally, tracker: BudgetTracker, stream: TextIO | None = None) -> AsyncIterator[None]:
    """Show the progress of a run until the block ends: a bar in a notebook or on a terminal, otherwise lines."""
    bar = _notebook_bar(tally) if stream is None and in_notebook() else None
    stream = stream or sys.stderr
    started = time.monotonic()
    if bar is None and stream.isatty():
        bar = _bar(stream)
    show, end = bar or (_lines(stream), lambda: None)
    every = SAMPLE_SECONDS if bar else PIPED_SECONDS

    async def keep_showing() -> None:
        time_left, shown = TimeLeft(), 0.0
        while True:
            await asyncio.sleep(SAMPLE_SECONDS)
            seconds = time.monotonic() - started
            left = time_left.at(seconds, tally)
            if seconds - shown >= every:
                shown = seconds
                show(tally, how_far(tally, left), describe(tally, tracker, seconds))

    task = asyncio.create_task(keep_showing())
    try:
        yield
    finally:
        task.cancel()
        show(tally, how_far(tally), describe(tally, tracker, time.monotonic() - started))
        end()


class TimeLeft:
    """How long a run will take at its pace since the first call: rows that the ledger knows come first, in no time."""

    def __init__(self) -> None:
        self._began: tuple[float, int] | None = None
        self._last = (0.0, 0)

    def at(self, seconds: float, tally: Tally) -> float | None:
        """Return how many more seconds it will take, at least as many as it has stood still; None while unknown."""
        if self._began is None and tally.calls:
            self._began = seconds, tally.rows
        if tally.rows != self._last[1]:
            self._last = seconds, tally.rows
        if self._began is None or not tally.rows_expected or tally.rows == self._began[1]:
            return None
        began, rows = self._began
        left = (tally.rows_expected - tally.rows) * (seconds - began) / (tally.rows - rows)
        return max(left, seconds - self._last[0]) if left else None


def how_far(tally: Tally, left: float | None = None) -> str:
    """Return how many rows are finished and have a label, and how many seconds are left if that is known."""
    rows = f"{tally.rows - tally.unlabelled:,}" + (f" of {tally.rows_expected:,}" if tally.rows_expected else "")
    rows += " rows labelled" if tally.unlabelled else " rows"
    return rows if left is None else f"{rows} · {clock(left)} left"


def describe(tally: Tally, tracker: BudgetTracker, seconds: float) -> str:
    """Return calls, rate, cost and problems."""
    parts = [f"{tally.calls:,} calls"]
    if tally.calls and seconds > 0:
        parts.append(f"{tally.calls / seconds:,.0f} calls/s")
    if tally.from_ledger:
        parts.append(f"{tally.from_ledger:,} from the ledger")
    parts.append(_money(tracker))
    parts += [tally.retries_by_cause()] if tally.retries else []
    problems = {
        "did not apply": tally.not_applicable,
        "rejected": tally.rejected,
        "unreadable": tally.unreadable,
        "unanswered": tally.failed,
    }
    if tally.unlabelled:
        parts.append(f"{tally.unlabelled:,} rows without a label")
    parts += [f"{count.total():,} {name}" for name, count in problems.items() if count]
    return " · ".join(parts)


def _money(tracker: BudgetTracker) -> str:
    spent = f"${tracker.usd:.4f}" if tracker.usd else "$0.00"
    if not tracker.price_unknown:
        return spent
    return f"{spent} and calls of unknown price" if tracker.usd else "price unknown"


def clock(seconds: float) -> str:
    """Return a time as hours, minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


Show = Callable[[Tally, str, str], None]


def _lines(stream: TextIO) -> Show:
    """Return what prints a line."""

    def show(tally: Tally, far: str, details: str) -> None:
        print(far, details, sep=" · ", file=stream, flush=True)

    return show


def _bar(stream: TextIO) -> tuple[Show, Callable[[], None]]:
    """Return what shows a bar with how far the run is, and the rest below; and what ends it, and leaves it there."""
    from rich.console import Console, Group
    from rich.live import Live
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn
    from rich.text import Text

    console = Console(file=stream)
    columns = (SpinnerColumn(finished_text="✓"), BarColumn(bar_width=24), TextColumn("{task.description}"))
    bar = Progress(*columns, console=console)
    task = bar.add_task("starting", total=None)
    live = Live(bar, console=console)
    live.start()

    def show(tally: Tally, far: str, details: str) -> None:
        bar.update(task, description=far, completed=tally.rows, total=tally.rows_expected)
        live.update(Group(bar, Text(details, style="dim")))

    return show, live.stop


def _notebook_bar(tally: Tally) -> tuple[Show, Callable[[], None]] | None:
    """Return the same for a notebook, where the bar stays below its cell; None without the extra `notebook`."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    bar = tqdm(total=tally.rows_expected, bar_format="{bar} {desc}{postfix}", leave=True)

    def show(tally: Tally, far: str, details: str) -> None:
        bar.n = tally.rows
        bar.set_description_str(far, refresh=False)
        bar.set_postfix_str(details)

    return show, bar.close
