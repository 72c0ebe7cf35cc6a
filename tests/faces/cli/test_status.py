import json
import threading
import time
from pathlib import Path

import pytest

from pcs_annotator.asking.engine.progress import Tally
from pcs_annotator.faces.cli.main import main
from pcs_annotator.runs.paths import RunFolder
from pcs_annotator.runs.watch import Watch
from tests.command_line import Pcs
from tests.simulated import copy_run
from tests.stub import Behaviour, stub_process

ROWS = "text,gold\nThe city bought buses.,good\nThe train was late.,bad\nNobody likes it.,bad\nA new bridge.,good\n"


@pytest.fixture(autouse=True)
def with_data() -> None:
    Path("data.csv").write_text(ROWS)


def test_a_running_and_a_finished_command_are_fine_and_one_that_ended_badly_is_not(pcs: Pcs) -> None:
    one = Watch(RunFolder(Path()), "run data.csv", Tally(rows=3))
    one.begin()
    assert pcs.out("status", ".").startswith("pcs run data.csv: running\n")
    one.__exit__(None, KeyboardInterrupt(), None)
    (job,) = pcs.json("status", ".", code=1)["jobs"]
    assert (job["state"], job["rows"]) == ("interrupted", 3)
    with Watch(RunFolder(Path()), "run", Tally()) as other:
        other.begin()
    assert main(["status", "."]) == 0


def test_a_folder_without_a_status_is_a_sentence(pcs: Pcs) -> None:
    assert "pcs run, label or serve" in pcs.refused("status", "nowhere")


def test_watching_goes_on_until_the_end(
    pcs: Pcs, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, slept = Watch(RunFolder(Path()), "run", Tally()), threading.Event()

    def sleep(seconds: float) -> None:
        assert not slept.is_set()
        slept.set()
        one.__exit__(None, None, None)

    monkeypatch.setattr(time, "sleep", sleep)
    one.begin()
    assert main(["status", ".", "--watch", "--json"]) == 0
    states = [json.loads(line)["jobs"][0]["state"] for line in capsys.readouterr().out.splitlines()]
    assert states == ["running", "finished"]
    assert pcs.out("status", ".", "--watch").startswith("pcs run: finished")


@pytest.mark.system
def test_run_and_label_leave_a_status(capsys: pytest.CaptureFixture[str]) -> None:
    with stub_process(Behaviour(labels=("good", "bad"))) as stub:
        model = f"{stub.url}#one"
        given = ["run", "data.csv", "--labels", "good,bad", "--model", model, "--relations", "original"]
        assert main(["--log-level", "info", *given, "--max-calls", "50"]) == 0
        assert "pcs_annotator.verbs.run: " in capsys.readouterr().err  # from the log
        found = json.loads(Path("runs/data/status.json").read_text())
        assert (found["command"], found["state"], found["rows"]) == ("run data.csv", "finished", 4)
        assert found["budget_left"] == {"max_calls": 46}
        Path("new.csv").write_text("text\nA new ferry.\nNo ferry.\n")
        assert main(["label", "new.csv", "--run", "runs/data"]) == 0
        found = json.loads(Path("runs/data/status.json").read_text())
        assert (found["command"], found["state"], found["rows"]) == ("label new.csv", "finished", 2)


def test_a_fit_that_failed_is_what_the_status_shows(
    small_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = copy_run(small_run, tmp_path / "run")

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pcs_annotator.runs.opened.Run.learn", killed)
    assert main(["fit", str(folder), "-q"]) == 130
    capsys.readouterr()
    main(["status", str(folder)])
    assert capsys.readouterr().out.startswith("pcs fit: interrupted")
