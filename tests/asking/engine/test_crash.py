"""Runs that are killed or interrupted: real processes, a real server, the same ledger."""

import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pcs_annotator import CollectSettings, Item, Task, collect
from pcs_annotator.base.concurrency import run_sync
from tests.stub import Behaviour, StubProcess, stub_process

pytestmark = pytest.mark.system

IN_FLIGHT = 16
ROWS = 160
ROOT = Path(__file__).resolve().parents[3]
SCRIPT = """
import sys
from pathlib import Path
from tests.asking.engine.test_crash import collected

print("started", flush=True)
try:
    collected(sys.argv[1], Path(sys.argv[2]))
except KeyboardInterrupt:
    sys.exit(130)
"""


def collected(url: str, ledger: Path) -> list[int]:
    """Ask about all rows, in this process, and return the codes."""
    items = (Item(id=str(row), text=f"Text number {row} is rather nice.") for row in range(ROWS))
    settings = CollectSettings(environment={}, in_flight=IN_FLIGHT)
    task = Task("How does the writer feel?", ["positive", "neutral", "negative"])
    votes = run_sync(lambda: collect(task, items, [f"{url}#m"], ledger=ledger, settings=settings))
    codes: list[int] = votes.codes.ravel().tolist()
    return codes


@pytest.fixture(scope="module")
def server() -> Iterator[StubProcess]:
    with stub_process(Behaviour()) as stub:
        yield stub


@pytest.fixture(scope="module")
def undisturbed(server: StubProcess, tmp_path_factory: pytest.TempPathFactory) -> list[int]:
    """The codes of a run that is not interrupted."""
    server.change(latency_s=0.0)
    return collected(server.url, tmp_path_factory.mktemp("whole") / "whole.db")


def start_and_wait(stub: StubProcess, ledger: Path, answers: int) -> subprocess.Popen[str]:
    """Start a run in its own process, and return the process when the server has given this many answers."""
    stub.change(latency_s=0.1)
    stub.reset()
    command = [sys.executable, "-c", SCRIPT, stub.url, str(ledger)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    while stub.stats().answered < answers:
        assert process.poll() is None
        time.sleep(0.01)
    return process


def finish(stub: StubProcess, ledger: Path) -> list[int]:
    stub.change(latency_s=0.0)
    return collected(stub.url, ledger)


@pytest.mark.parametrize("seed", [1])
def test_kill_9_at_any_moment_loses_no_more_than_the_calls_in_flight(
    seed: int, server: StubProcess, undisturbed: list[int], tmp_path: Path
) -> None:
    moment = random.Random(seed)
    process = start_and_wait(server, tmp_path / "killed.db", moment.randint(1, ROWS // 2))
    time.sleep(moment.uniform(0, 0.1))
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert 1 <= server.stats().answered < ROWS
    assert finish(server, tmp_path / "killed.db") == undisturbed
    assert server.stats().answered_twice <= IN_FLIGHT


def test_ctrl_c_keeps_everything_that_was_paid_for(server: StubProcess, tmp_path: Path) -> None:
    process = start_and_wait(server, tmp_path / "l.db", 30)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    assert process.returncode == 130
    assert 30 <= server.stats().answered < ROWS
    finish(server, tmp_path / "l.db")
    assert server.stats().answered == ROWS
    assert server.stats().answered_twice == 0
