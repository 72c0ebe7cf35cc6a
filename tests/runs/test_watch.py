import errno
import json
import os
import platform
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pcs_annotator.asking.engine.budget import Budget, BudgetTracker, Cost
from pcs_annotator.asking.engine.progress import Tally
from pcs_annotator.base.errors import Interrupted, LedgerError, TableError
from pcs_annotator.faces.serve.metrics import METRICS, metric_lines
from pcs_annotator.runs import watch
from pcs_annotator.runs.paths import RunFolder
from pcs_annotator.runs.watch import Watch, read_status, status_lines

SAMPLE = re.compile(r'[a-z_]+(\{[a-z_]+="([^"\\]|\\.)*"(,[a-z_]+="([^"\\]|\\.)*")*\})? [0-9.e+-]+')
ROOT = Path(__file__).resolve().parents[2]


def counted() -> tuple[Tally, BudgetTracker]:
    tally = Tally(rows=30, rows_expected=100, unlabelled=2, calls=60, from_ledger=5)
    tally.retries.update(RateLimited=3, TimedOut=1)
    tracker = BudgetTracker(Budget(usd=1.0, calls=100))
    for _ in range(60):
        tracker.pay(Cost(0.01, 50))
    return tally, tracker


def written(path: Path) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return values


def test_the_file_says_what_is_counted_while_it_runs_and_how_it_ended(tmp_path: Path) -> None:
    tally, tracker = counted()
    with Watch(RunFolder(tmp_path), "label new.csv", tally) as one:
        one.begin()
        assert written(tmp_path / "status.json")["budget_left"] == {}
        one.follow(tally, tracker)
        one._write("running")
        (found,) = read_status(RunFolder(tmp_path))
    assert found["state"] == "running"
    assert (found["pid"], found["host"], found["command"]) == (os.getpid(), platform.node(), "label new.csv")
    assert (found["rows"], found["rows_expected"], found["calls"]) == (30, 100, 60)
    assert found["usd"] == pytest.approx(0.6)
    assert found["retries"] == {"rate limit": 3, "time-out": 1}
    assert found["budget_left"] == {"budget": pytest.approx(0.4), "max_calls": 40}
    lines = "\n".join(status_lines(found))
    assert lines.startswith("pcs label new.csv: running\n")
    assert "28 of 100 rows labelled" in lines
    assert "4 retries: 3 rate limits, 1 time-out" in lines
    assert "left of budget: 0.4 · left of max_calls: 40" in lines
    (found,) = read_status(RunFolder(tmp_path))
    assert (found["state"], found["seconds_left"]) == ("finished", None)
    assert [path.name for path in tmp_path.iterdir()] == ["status.json"]  # no temporary file stays


@pytest.mark.parametrize(
    ("error", "state", "why"),
    [
        (KeyboardInterrupt(), "interrupted", None),
        (Interrupted("stopped"), "interrupted", None),
        (LedgerError("the disk is full"), "failed", "the disk is full"),
        (ZeroDivisionError("a text"), "failed", "ZeroDivisionError"),
    ],
)
def test_how_a_command_ended_is_said(tmp_path: Path, error: BaseException, state: str, why: str | None) -> None:
    one = Watch(RunFolder(tmp_path), "run", Tally())
    one.begin()
    with pytest.raises(type(error)), one:
        raise error
    (found,) = read_status(RunFolder(tmp_path))
    assert (found["state"], found.get("error")) == (state, why)
    assert status_lines(found)[0].startswith(f"pcs run: {state}")


def test_what_is_refused_before_it_begins_leaves_the_status_of_the_last_command(tmp_path: Path) -> None:
    with pytest.raises(TableError), Watch(RunFolder(tmp_path), "run", Tally()):
        raise TableError("other rows")
    assert not (tmp_path / "status.json").exists()


def test_a_full_disk_is_not_an_error_and_the_next_write_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "EVERY", 0.01)
    tally = Tally()
    full = threading.Event()
    replace = os.replace

    def fail_for_a_while(*paths: Any) -> None:
        if full.is_set():
            raise OSError(errno.ENOSPC, "no space left")
        replace(*paths)

    monkeypatch.setattr(os, "replace", fail_for_a_while)
    full.set()
    with Watch(RunFolder(tmp_path), "run", tally) as one:
        one.begin()
        time.sleep(0.05)
        assert not (tmp_path / "status.json").exists()
        tally.rows = 7
        full.clear()
        until = time.monotonic() + 10
        file = tmp_path / "status.json"
        while not file.exists() and time.monotonic() < until:
            time.sleep(0.01)
        assert written(file)["rows"] == 7


def gone() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.mark.parametrize(
    ("host", "alive", "age", "state"),
    [
        (platform.node(), True, 1, "running"),
        (platform.node(), False, 1, "died"),
        (platform.node(), True, 3600, "silent"),  # the number may be another process's by now
        ("elsewhere", False, 1, "running"),
        ("elsewhere", False, 3600, "silent"),
    ],
)
def test_a_process_that_is_gone_is_recognised(tmp_path: Path, host: str, alive: bool, age: float, state: str) -> None:
    values = Watch(RunFolder(tmp_path), "run", Tally()).figures()
    updated = (datetime.now(UTC) - timedelta(seconds=age)).isoformat()
    values |= {"host": host, "pid": os.getpid() if alive else gone(), "updated": updated}
    (tmp_path / "status.json").write_text(json.dumps(values))
    (found,) = read_status(RunFolder(tmp_path))
    assert found["state"] == state


@pytest.mark.parametrize("content", ["{", "[]", '{"state": "running"}', '{"schema": 99}'])
def test_a_damaged_file_is_a_sentence(tmp_path: Path, content: str) -> None:
    (tmp_path / "status.json").write_text(content)
    with pytest.raises(TableError, match=r"status\.json"):
        read_status(RunFolder(tmp_path))


def test_a_sample_and_all_rows_are_counted_once(tmp_path: Path) -> None:
    sampled, whole = Tally(calls=2, retries=Counter(TimedOut=1)), Tally(retries=Counter(TimedOut=2))
    trackers = [BudgetTracker(Budget()) for _ in range(2)]
    one = Watch(RunFolder(tmp_path), "run", sampled)
    for tally, tracker in zip((sampled, whole), trackers, strict=True):
        tracker.pay(Cost(0.5, 10))
        one.follow(tally, tracker)
    found = one.figures()
    assert (found["retries"], found["usd"], found["calls"], found["tokens"]) == ({"time-out": 3}, 1.0, 2, 20)
    whole.retries += sampled.retries  # as a run does at its end
    sampled.retries = whole.retries
    assert one.figures()["retries"] == {"time-out": 3}


def test_the_pace_and_the_time_left_are_those_of_what_is_asked_now(tmp_path: Path) -> None:
    tally = Tally(rows_expected=10, calls=1)
    one = Watch(RunFolder(tmp_path), "run", tally)
    assert one.figures()["rows_per_minute"] is None
    tally.rows = 5
    time.sleep(0.02)
    found = one.figures()
    assert 0 < found["rows_per_minute"] <= 60 * 5 / 0.02
    assert found["seconds_left"] > 0
    one.follow(Tally(), BudgetTracker(Budget()))
    assert one.figures()["rows_per_minute"] is None


def test_metrics_are_in_the_format_of_prometheus(tmp_path: Path) -> None:
    tally, tracker = counted()
    one = Watch(RunFolder(tmp_path), "run", tally)
    one.follow(tally, tracker)
    lines = metric_lines(one.figures())
    samples = [line for line in lines if not line.startswith("#")]
    assert [line for line in samples if not SAMPLE.fullmatch(line)] == []
    assert 'pcs_retries_total{cause="rate limit"} 3' in samples
    assert 'pcs_budget_left{limit="max_calls"} 40' in samples
    assert [line.split()[2] for line in lines if line.startswith("# TYPE")] == list(METRICS)


def test_the_dashboard_asks_only_for_metrics_that_we_write() -> None:
    board = json.loads((ROOT / "docs" / "grafana.json").read_text(encoding="utf-8"))
    asked = {target["expr"] for panel in board["panels"] for target in panel["targets"]}
    names = {name for expression in asked for name in re.findall(r"pcs_\w+", expression)}
    source = (ROOT / "src/pcs_annotator/faces/serve").glob("*.py")
    served = {name for path in source for name in re.findall(r'"(pcs_\w+)"', path.read_text(encoding="utf-8"))}
    known = set(METRICS) | served | {f"{name}_bucket" for name in served}
    assert names
    assert names - known == set()
    assert {"pcs_rows_done", "pcs_budget_left", "pcs_retries_total", "pcs_queue_texts"} <= names
