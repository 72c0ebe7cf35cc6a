"""`run` and `label` with batches: the same labels as live, from the same folder."""

import csv
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pcs_annotator.faces.cli.main import main
from pcs_annotator.runs import run_table
from pcs_annotator.runs.ledgers import paid_bills
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.settings import AskSettings, Config, LearnSettings, RelationSettings, Saving, TaskSettings
from tests.runs.asking_in_batches import KEY, MODELS
from tests.simulated import label, read_csv, run
from tests.stub import Behaviour, StubProcess, stub_process
from tests.stub.behaviour import pick

pytestmark = [
    pytest.mark.system,
    pytest.mark.enable_socket,
    pytest.mark.filterwarnings("ignore:gold agrees with the label"),  # it is what most models say
]

LABELS = ("good", "bad")
ASKED = ("openai:gpt-4o-mini", "openai:gpt-4o", MODELS["groq"])
QUICK = LearnSettings(optimiser="lr", text=False, folds=3, resamples=0, max_error=0.1)


@pytest.fixture(scope="module")
def stub() -> Iterator[StubProcess]:
    with stub_process(Behaviour(labels=LABELS, key=KEY)) as started:
        yield started


def environment_of(stub: StubProcess) -> dict[str, str]:
    names = [name.upper() for name in MODELS]
    return {f"{name}_API_KEY": KEY for name in names} | {f"{name}_BASE_URL": stub.url for name in names}


def truth(text: str) -> str:
    """The label that most models give to the text as it is."""
    said = [pick(2, "0", model.partition(":")[2], text) for model in ASKED]
    return LABELS[int(sum(said) > 1)]


def write(path: Path, rows: range, *, gold: bool) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "text", "gold"])
        for row in rows:
            text = f"Case number {row} was seen."
            writer.writerow([f"t{row}", text, truth(text) if gold else ""])
    return path


@pytest.fixture(scope="module")
def ask(stub: StubProcess, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], RunRequest]:
    """Returns the request for a run in a folder of that name."""
    folder = tmp_path_factory.mktemp("runs")
    config = Config(
        task=TaskSettings(labels=LABELS),
        ask=AskSettings(models=ASKED, answers="hard"),
        relations=RelationSettings(use=("original", "case")),
        learn=QUICK,
    )
    data = write(folder / "data.csv", range(90), gold=True)

    def request(name: str) -> RunRequest:
        return RunRequest(data=data, folder=folder / name, config=config, environment=environment_of(stub))

    return request


def fitted(ask: Callable[[str], RunRequest]) -> RunRequest:
    """Return the request of a live run, made once."""
    request = ask("live")
    if not request.folder.exists():
        run(request)
    return request


def copied(made: RunRequest, folder: Path) -> RunRequest:
    """Return the request of the same run in a folder of its own, for tests that pay for more calls."""
    shutil.copytree(made.folder, folder)
    return replace(made, folder=folder)


def test_a_run_in_batches_writes_the_labels_of_a_live_one_at_half_the_price(ask: Callable[[str], RunRequest]) -> None:
    live, said = fitted(ask), list[str]()
    batch = replace(
        ask("batch"), say=said.append, config=replace(live.config, ask=replace(live.config.ask, executor="batch"))
    )
    result = run(batch)
    assert (batch.folder / "labels.csv").read_bytes() == (live.folder / "labels.csv").read_bytes()
    full, half = (sum(bill.usd or 0.0 for bill in paid_bills(one.folder / "ledger.db")) for one in (live, batch))
    assert half == pytest.approx(full / 2)
    assert (result.tally.calls, result.tally.from_ledger) == (540, 0)
    assert said[0].startswith(f"wave 1: 540 requests in 3 batches to {', '.join(ASKED)}, about $0.0")
    assert run(batch).tally.calls == 0
    assert len(said) == 1


def test_new_texts_are_labelled_in_waves_as_they_are_live(
    ask: Callable[[str], RunRequest], stub: StubProcess, tmp_path: Path
) -> None:
    made, other = copied(fitted(ask), tmp_path / "made"), tmp_path / "other"
    shutil.copytree(made.folder, other)
    data = write(tmp_path / "new.csv", range(1000, 1400), gold=False)
    request = replace(made, data=data, config=Config())
    live = label(request, tmp_path / "live.csv")
    before = stub.stats().requests
    said: list[str] = []
    waves = label(replace(request, folder=other, say=said.append), tmp_path / "waves.csv", Saving(executor="batch"))
    assert [row["pcs_label"] for row in read_csv(tmp_path / "waves.csv")] == [
        row["pcs_label"] for row in read_csv(tmp_path / "live.csv")
    ]
    assert (waves.votes.codes == live.votes.codes).all()
    assert stub.stats().requests - before == live.tally.calls == waves.tally.calls
    assert live.tally.spared > 0
    paid = [sum(bill.usd or 0.0 for bill in paid_bills(folder / "ledger.db")) for folder in (made.folder, other)]
    assert paid[1] < paid[0]
    assert said[0].startswith("wave 1: ")


def test_no_batch_api_and_no_such_executor_are_errors_that_say_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    data = write(tmp_path / "data.csv", range(9), gold=True)
    run_it = ["run", str(data), "-o", "out", "--model", "scripted:hash", "--executor"]
    assert main([*run_it, "batch"]) == 2
    assert "no model here has a batch API: use models of anthropic" in capsys.readouterr().err
    assert not Path("out").exists()
    assert main([*run_it, "nowhere"]) == 2
    Path("pcs.toml").write_text('[ask]\nexecutor = "nowhere"\n', encoding="utf-8")
    assert main(["run", str(data), "--model", "scripted:hash"]) == 2
    assert "pcs.toml, line 2: ask.executor is 'nowhere', must be one of" in capsys.readouterr().err


def test_tables_that_are_read_in_chunks_are_asked_about_in_waves_too(
    ask: Callable[[str], RunRequest], stub: StubProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, other = copied(fitted(ask), tmp_path / "made"), tmp_path / "other"
    shutil.copytree(made.folder, other)
    data = write(tmp_path / "large.csv", range(3000, 3200), gold=False)
    request = replace(made, data=data, config=Config())
    label(request, tmp_path / "live.csv")
    monkeypatch.setattr(run_table, "IN_MEMORY_ROWS", 50)
    said: list[str] = []
    before = stub.stats().requests
    waves = label(replace(request, folder=other, say=said.append), tmp_path / "waves.csv", Saving(executor="batch"))
    assert (tmp_path / "waves.csv").read_bytes() == (tmp_path / "live.csv").read_bytes()
    assert stub.stats().requests - before == waves.tally.calls > 200
    assert said[0].startswith("wave 1: ")
