"""Batches outlive the process that submitted them: another one, perhaps elsewhere, collects their answers."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pcs_annotator.asking.batches.batch import read_batches
from tests.runs.asking_in_batches import KEY, MODELS
from tests.simulated import read_csv
from tests.stub import Behaviour, StubProcess, stub_process

pytestmark = [pytest.mark.enable_socket, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def stub() -> Iterator[StubProcess]:
    with stub_process(Behaviour(key=KEY, batch_s=3600.0)) as started:
        yield started


def environment_of(stub: StubProcess) -> dict[str, str]:
    names = [name.upper() for name in MODELS]
    given = {f"{name}_API_KEY": KEY for name in names} | {f"{name}_BASE_URL": stub.url for name in names}
    return {**os.environ, **given, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}


def write_data(folder: Path, rows: int) -> Path:
    path = folder / "data.csv"
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"t{row},Text number {row} is fine.,{'good' if row % 2 else 'bad'}" for row in range(rows)]
    path.write_text("\n".join(["id,text,gold", *lines]) + "\n", encoding="utf-8")
    return path


def start(folder: Path, stub: StubProcess, model: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "pcs_annotator", "run", "data.csv", "-o", "run", "--executor", "batch"]
    command += ["--model", model, "--labels", "good,bad", "--answers", "hard", "--relations", "original,order"]
    return subprocess.Popen(
        command, cwd=folder, env=environment_of(stub), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def wait_for(process: subprocess.Popen[str], happened: Callable[[], bool]) -> None:
    until = time.monotonic() + 120
    while not happened():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_a_run_that_was_stopped_goes_on_elsewhere_and_pays_for_nothing_twice(
    tmp_path: Path, stub: StubProcess, provider: str, how: signal.Signals
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    write_data(here, 60)
    first = start(here, stub, MODELS[provider])
    records = here / "run" / "batches.json"
    wait_for(first, lambda: records.exists() and bool(read_batches(records)[0].id))
    first.send_signal(how)
    _, said = first.communicate(timeout=60)
    assert "wave 1: 120 requests in 1 batch" in said
    assert first.returncode == (130 if how is signal.SIGINT else -how)
    shutil.move(here, there)
    stub.change(batch_s=0.0)
    second = start(there, stub, MODELS[provider])
    _, said = second.communicate(timeout=120)
    assert second.returncode == 0, said
    assert "120 requests were submitted earlier" in said
    assert len(read_csv(there / "run" / "labels.csv")) == 60
    stats = stub.stats()
    assert (stats.answered, stats.asked_again) == (120, 0)
    (record,) = read_batches(there / "run" / "batches.json")
    assert (record.end, record.answered) == ("done", 120)
