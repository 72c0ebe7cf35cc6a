import asyncio
import io
import re
import sys
from collections import Counter

import pytest

from pcs_annotator.asking.engine import progress
from pcs_annotator.asking.engine.budget import Budget, BudgetTracker, Cost
from pcs_annotator.asking.engine.progress import Tally, bills_of, describe, how_far, showing
from pcs_annotator.core.chat import Usage


def spent(usd: float | None = 0.25) -> BudgetTracker:
    tracker = BudgetTracker(Budget())
    tracker.pay(Cost(usd, 10))
    return tracker


def test_the_line_has_rows_calls_rate_cost_time_left_and_problems() -> None:
    tally = Tally(rows=250, rows_expected=1000, calls=500, from_ledger=20)
    tally.retries["RateLimited"] += 3
    tally.unreadable["no label in reply"] += 2
    tally.failed["no answer"] += 1
    assert how_far(tally, 30.0) == "250 of 1,000 rows · 0:30 left"
    assert describe(tally, spent(), 10.0) == (
        "500 calls · 50 calls/s · 20 from the ledger · $0.2500 · 3 retries: 3 rate limits · 2 unreadable · 1 unanswered"
    )


def test_rows_without_a_label_are_not_counted_as_labelled() -> None:
    tally = Tally(rows=2000, rows_expected=2000, unlabelled=1499)
    assert how_far(tally) == "501 of 2,000 rows labelled"
    assert describe(tally, spent(), 10.0) == "0 calls · $0.2500 · 1,499 rows without a label"


def test_the_line_says_that_a_price_is_unknown_and_shows_long_times_in_hours() -> None:
    tally = Tally(rows=1, rows_expected=8, calls=1)
    assert describe(tally, spent(None), 1000.0).endswith("price unknown")
    assert how_far(tally, 7000.0) == "1 of 8 rows · 1:56:40 left"


@pytest.mark.parametrize(
    ("retries", "said"),
    [
        ({"RateLimited": 10, "TimedOut": 60}, "70 retries: 60 time-outs, 10 rate limits"),
        ({"TimedOut": 1}, "1 retry: 1 time-out"),
        ({"ServerTrouble": 2, "TooManyFiles": 1}, "3 retries: 2 server errors, 1 connection limit"),
        ({"odd": 1}, "1 retry: 1 odd"),
    ],
)
def test_the_causes_of_retries_are_named(retries: dict[str, int], said: str) -> None:
    assert describe(Tally(retries=Counter(retries)), spent(), 1.0) == f"0 calls · $0.2500 · {said}"


def test_there_is_no_rate_and_no_time_left_before_the_first_call() -> None:
    assert describe(Tally(), BudgetTracker(Budget()), 0.0) == "0 calls · $0.00"
    assert how_far(Tally()) == "0 rows"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()], ids=["terminal", "pipe"])
def test_a_run_is_shown_on_a_terminal_and_in_a_pipe(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SAMPLE_SECONDS", 0.01)
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


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_bar_stays_and_nothing_of_it_is_cut(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    stream, tally = Terminal(), Tally(rows=1_234_567, rows_expected=2_000_000, calls=45_678_901, from_ledger=1_234_567)
    tally.retries["RateLimited"] = 1234
    show, end = progress._bar(stream)
    show(tally, how_far(tally, 7200.0), describe(tally, spent(None), 3600.0))
    tally.rows = tally.rows_expected or 0
    show(tally, how_far(tally), describe(tally, spent(None), 3600.0))
    end()
    lines = [re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", line).strip("\r") for line in stream.getvalue().splitlines()]
    assert max(map(len, lines)) <= width
    last = " ".join(" ".join(lines[-5:]).split())
    assert "━ 2,000,000 of 2,000,000 rows 45,678,901 calls · 12,689 calls/s · 1,234,567 from the ledger" in last
    assert "price unknown · 1,234 retries: 1,234 rate limits" in last


def test_a_notebook_gets_a_bar_that_stays_and_plain_lines_without_the_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "in_notebook", lambda: True)
    tally = Tally(rows_expected=2)

    async def run() -> None:
        async with showing(tally, BudgetTracker(Budget())):
            tally.rows = 2

    asyncio.run(run())
    shown = capsys.readouterr().err
    assert "2 of 2 rows, 0 calls" in shown
    assert "\r" in shown
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    asyncio.run(run())
    assert capsys.readouterr().err == "2 of 2 rows · 0 calls · $0.00\n"


def test_what_answers_took_is_counted_per_model_whoever_paid() -> None:
    tally = Tally()
    for paid in (True, False, False):
        tally.count_answer("a model", "label", Usage(input_tokens=10, output_tokens=2), paid=paid)
    tally.count_answer("b", "rewrite", Usage(input_tokens=None, output_tokens=None), paid=True)
    assert (tally.calls, tally.from_ledger) == (2, 2)
    first, second = bills_of(tally.paid, lambda model, sent, got: None if model == "b" else sent + got / 10)
    assert (first.model, first.purpose, first.calls, first.input_tokens, first.usd) == ("a model", "label", 1, 10, 10.2)
    assert (second.model, second.calls, second.input_tokens, second.usd) == ("b", 1, 0, None)
    assert bills_of(tally.reused, lambda *_: 1.0)[0].calls == 2

    later = Tally()
    later.take_over(tally.to_dict())
    assert (later.calls, later.from_ledger, later.paid) == (0, 4, Counter())
    assert later.reused == tally.paid + tally.reused


def test_what_batches_or_a_cluster_asked_counts_as_paid_for() -> None:
    tally = Tally()
    for model in ("a", "b"):
        for _ in range(4):
            tally.count_answer(model, "label", Usage(input_tokens=10, output_tokens=1), paid=False)
    tally.count_as_paid(6)
    assert (tally.calls, tally.from_ledger) == (6, 2)
    assert [bill.calls for bill in bills_of(tally.paid, lambda *_: None)] == [3, 3]
    assert [bill.input_tokens for bill in bills_of(tally.reused, lambda *_: None)] == [10, 10]
    tally.count_as_paid(0)
    assert tally.calls == 6
