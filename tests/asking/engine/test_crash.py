"""A run that is killed, a run that is interrupted: real processes, a real server, the same ledger."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.stub import Behaviour, StubProcess, stub_process

IN_FLIGHT = 16
SCRIPT = """
import sys
from pcs_annotator import CollectSettings, Item, Task, collect
from pcs_annotator.asking.engine.bridge import run_sync

url, ledger, rows = sys.argv[1], sys.argv[2], int(sys.argv[3])
items = (Item(id=str(row), text=f"Text number {row} is rather nice.") for row in range(rows))
settings = CollectSettings(environment={}, in_flight=16)
task = Task("How does the writer feel?", ["positive", "neutral", "negative"])
print("started", flush=True)
try:
    votes = run_sync(lambda: collect(task, items, [url + "#m"], ledger=ledger, settings=settings))
except KeyboardInterrupt:
    sys.exit(130)
print(votes.codes.ravel().tolist())
"""


def start(stub: StubProcess, ledger: Path, rows: int = 250) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", SCRIPT, stub.url, str(ledger), str(rows)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    return process


def finish(stub: StubProcess, ledger: Path) -> str:
    out, _ = start(stub, ledger).communicate(timeout=120)
    return out


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_kill_9_at_any_moment_loses_no_more_than_what_is_in_flight(seed: int, tmp_path: Path) -> None:
    with stub_process(Behaviour(latency_s=0.05)) as stub:
        undisturbed = finish(stub, tmp_path / "whole.db")
        stub.reset()
        process = start(stub, tmp_path / "killed.db")
        time.sleep(random.Random(seed).uniform(0.3, 0.9))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert finish(stub, tmp_path / "killed.db") == undisturbed
        assert stub.stats().answered_twice <= IN_FLIGHT


def test_ctrl_c_keeps_everything_that_was_paid_for(tmp_path: Path) -> None:
    with stub_process(Behaviour(latency_s=0.2)) as stub:
        process = start(stub, tmp_path / "l.db")
        while stub.stats().answered < 30:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
        assert process.returncode == 130
        assert 30 <= stub.stats().answered < 250
        finish(stub, tmp_path / "l.db")
        assert stub.stats().answered == 250
        assert stub.stats().answered_twice == 0
