"""`--executor ray` on a real local cluster, whose workers and coordinator are killed."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pcs_annotator.asking.engine.ledger import Ledger
from pcs_annotator.faces.cli.main import main
from tests.ray_cluster import kill_one, start_ray
from tests.simulated import read_csv
from tests.stub import Behaviour, StubProcess, stub_process

ROWS, IN_FLIGHT = 300, 8
SERVER = Behaviour(labels=("good", "bad"), logprobs="ignored", latency_s=0.05, key="sk-secret")
SETTINGS = f"""
[task]
labels = ["good", "bad"]
[ask]
models = ["{{url}}#m"]
answers = "hard"
concurrency = {IN_FLIGHT}
executor = "ray"
workers = 2
[relations]
use = ["original", "order"]
[learn]
optimiser = "lr"
folds = 3
resamples = 0
"""


@pytest.fixture
def server() -> Iterator[StubProcess]:
    with stub_process(SERVER) as stub:
        yield stub


@pytest.fixture
def folder(tmp_path: Path, server: StubProcess, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with texts and settings, in which commands run."""
    rows = [
        f"{row},Case {row} is about the weather.,{('good', 'bad')[row % 2] if row < 60 else ''}" for row in range(ROWS)
    ]
    (tmp_path / "texts.csv").write_text("\n".join(["id,text,gold", *rows]) + "\n")
    (tmp_path / "pcs.toml").write_text(SETTINGS.format(url=server.url))
    (tmp_path / ".env").write_text("PCS_API_KEY=sk-secret\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def pcs(*arguments: str, capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    code = main([*arguments, "--json"])
    said = capsys.readouterr()
    assert code == 0, said.err
    found: dict[str, object] = json.loads(said.out)
    return found


def meanwhile(server: StubProcess, answered: int, disturb: Callable[[], object]) -> threading.Thread:
    """Do something once the server has given so many answers."""

    def wait() -> None:
        while server.stats().answered < answered:
            time.sleep(0.01)
        disturb()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def test_a_run_survives_the_loss_of_a_worker_and_of_the_coordinator(
    folder: Path, server: StubProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    start_ray()
    disturbing = [
        meanwhile(server, ROWS // 2, lambda: kill_one("WorkerActor")),
        meanwhile(server, ROWS, lambda: kill_one("CoordinatorActor")),
    ]
    found = pcs("run", "texts.csv", "-o", "run", capsys=capsys)
    for thread in disturbing:
        thread.join()
    assert found["rows"] == ROWS
    assert found["rows_without_label"] == 0
    assert found["calls"] == 2 * ROWS
    assert len(read_csv(folder / "run" / "labels.csv")) == ROWS
    seen = server.stats()
    # calls in flight: of the lost worker, and those whose replies the lost coordinator had not stored yet
    assert seen.requests - 2 * ROWS <= 2 * IN_FLIGHT
    with Ledger(folder / "run" / "ledger.db") as ledger:
        assert ledger.count() == 2 * ROWS
    again = pcs("label", "texts.csv", "--run", "run", "--executor", "local", "-o", "out.csv", capsys=capsys)
    assert again["calls"] == 0
    assert [row["label"] for row in read_csv(folder / "out.csv")] == [
        row["label"] for row in read_csv(folder / "run" / "labels.csv")
    ]
    limited = ("--max-calls", "20", "--max-per-second", "500", "--executor", "ray", "--ask-all")
    (folder / "new.csv").write_text("text\n" + "\n".join(f"New case {row}" for row in range(60)))
    assert main(["label", "new.csv", "--run", "run", *limited, "-q"]) == 3
    assert server.stats().answered - seen.answered == 20
    assert "sk-secret" not in capsys.readouterr().err
