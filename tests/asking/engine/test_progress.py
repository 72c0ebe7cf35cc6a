from __future__ import annotations

import asyncio
import io

import pytest

from pcs_annotator.asking.engine import progress
from pcs_annotator.asking.engine.budget import Budget, BudgetTracker, Cost
from pcs_annotator.asking.engine.progress import RecentSpeed, Tally, describe, showing


def spent(usd: float | None = 0.25) -> BudgetTracker:
    tracker = BudgetTracker(Budget())
    tracker.pay(Cost(usd, 10))
    return tracker


def test_the_line_has_rows_calls_rate_cost_time_left_and_problems() -> None:
    tally = Tally(rows=250, rows_expected=1000, calls=500, from_ledger=20)
    tally.retries["RateLimited"] += 3
    tally.unreadable["no label in reply"] += 2
    tally.failed["no answer"] += 1
    assert describe(tally, spent(), 10.0) == (
        "250 of 1,000 rows · 500 calls · 50 calls/s · 20 from the ledger · $0.2500 · 0:30 left · "
        "3 retries · 2 unreadable · 1 unanswered"
    )


def test_the_line_says_that_a_price_is_unknown_and_shows_long_times_in_hours() -> None:
    line = describe(Tally(rows=1, rows_expected=8, calls=1), spent(None), 1000.0)
    assert "calls of unknown price" in line
    assert "1:56:40 left" in line


def test_there_is_no_rate_and_no_time_left_before_the_first_call() -> None:
    assert describe(Tally(), BudgetTracker(Budget()), 0.0) == "0 rows · 0 calls · $0.0000"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()], ids=["terminal", "pipe"])
def test_a_run_is_shown_on_a_terminal_and_in_a_pipe(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "TERMINAL_SECONDS", 0.01)
    monkeypatch.setattr(progress, "PIPED_SECONDS", 0.01)
    tally = Tally(rows_expected=2)

    async def run() -> None:
        async with showing(tally, BudgetTracker(Budget()), stream):
            await asyncio.sleep(0.05)
            tally.rows = 2

    asyncio.run(run())
    assert "2 of 2 rows" in stream.getvalue()
    if not stream.isatty():
        assert stream.getvalue().splitlines()[0].startswith("0 of 2 rows")
        assert "\x1b" not in stream.getvalue()


def test_time_left_follows_the_speed_of_the_last_minute() -> None:
    speed = RecentSpeed()
    for second in range(10, 101, 10):  # answers that the ledger has are read quickly
        speed.at(float(second), 1000 * second)
    for second in range(110, 301, 10):
        slow = speed.at(float(second), 100_000 + second - 100)
    assert slow == 1.0
    tally = Tally(rows=100_200, rows_expected=100_320, calls=200)
    assert "2:00 left" in describe(tally, BudgetTracker(Budget()), 300.0, slow)
