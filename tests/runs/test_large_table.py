"""Tables larger than memory; here, that is tables of more than 20 rows."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from pcs_annotator import PcsWarning, RunResult
from pcs_annotator.asking.ledger.sqlite import Ledger
from pcs_annotator.base.errors import ConfigError, LabelError, ModelError, TableError
from pcs_annotator.core.chat import Request
from pcs_annotator.models.provider import providers
from pcs_annotator.models.scripted import ScriptedModel
from pcs_annotator.reviewing.session import Review
from pcs_annotator.reviewing.values import ReviewOptions
from pcs_annotator.runs import run_table
from pcs_annotator.runs.gold_labels import FromPeople
from pcs_annotator.runs.paths import RunFolder
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.settings import AskSettings, Config, LearnSettings, RelationSettings, Saving, TaskSettings
from pcs_annotator.verbs.fit import fit_run, open_run
from tests.builders import the
from tests.reviewing.reviewing import verdict
from tests.simulated import (
    MODELS,
    RELATIONS,
    SimulatedProvider,
    copy_run,
    label,
    read_csv,
    run,
    simulated_models,
    write_csv,
    write_texts,
)

pytestmark = pytest.mark.system

ROWS, GOLD, SAMPLE, IN_MEMORY, CHUNK = 80, 30, 40, 20, 15
CONFIG = Config(
    task=TaskSettings(labels=("good", "bad")),
    ask=AskSettings(models=MODELS),
    relations=RelationSettings(use=RELATIONS),
    learn=LearnSettings(optimiser="lr", folds=3, resamples=0, max_error=0.2),
)
ONE = replace(
    CONFIG,
    ask=AskSettings(models=MODELS[:1]),
    relations=RelationSettings(use=("original",)),
    learn=LearnSettings(optimiser="uniform", folds=2, resamples=0, max_error=None),
)
"""For what does not depend on what is learned."""


@pytest.fixture(autouse=True)
def models() -> Iterator[None]:
    with simulated_models(graded=MODELS[:1]):
        yield


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_table, "IN_MEMORY_ROWS", IN_MEMORY)
    monkeypatch.setattr("pcs_annotator.runs.label_table.CHUNK_ROWS", CHUNK)


@pytest.fixture
def sampling(small_limits: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only some rows are learned from."""
    monkeypatch.setattr("pcs_annotator.runs.run_table.SAMPLE_ROWS", SAMPLE)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_texts(tmp_path / "data.csv", range(ROWS), gold_rows=GOLD)


def as_parquet(data: Path, rows: int | None = None) -> Path:
    table = pa.Table.from_pylist([{**row, "gold": row["gold"] or None} for row in read_csv(data)][:rows])
    parquet.write_table(table, data.with_suffix(".parquet"))
    return data.with_suffix(".parquet")


def made(data: Path | str, folder: Path, config: Config = CONFIG, **more: Any) -> RunResult:
    return run(RunRequest(data=Path(data), folder=folder, config=config, **more))


def calls_in(folder: Path) -> int:
    with Ledger(folder / "ledger.db") as ledger:
        return ledger.count()


def labels_of(folder: Path) -> list[dict[str, Any]]:
    path = RunFolder(folder).labels
    return parquet.read_table(path).to_pylist() if path.suffix == ".parquet" else list(read_csv(path))


@pytest.mark.parametrize("learn", [{}, {"sets": True}, {"max_error": None}])
def test_labels_are_those_of_a_run_in_memory_if_all_rows_are_learned_from(
    data: Path, tmp_path: Path, learn: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = replace(CONFIG, learn=replace(CONFIG.learn, **learn))
    whole = made(data, tmp_path / "whole", config)
    monkeypatch.setattr(run_table, "IN_MEMORY_ROWS", IN_MEMORY)
    monkeypatch.setattr("pcs_annotator.runs.label_table.CHUNK_ROWS", CHUNK)
    chunked = made(data, tmp_path / "chunked", config)
    assert chunked.counts == whole.counts
    assert (tmp_path / "chunked" / "labels.csv").read_bytes() == (tmp_path / "whole" / "labels.csv").read_bytes()
    assert chunked.tally.calls == whole.tally.calls
    assert chunked.learned.model.certificate == whole.learned.model.certificate


def test_users_columns_with_names_of_results_are_kept_under_others_when_labels_are_written_again(
    data: Path, tmp_path: Path, sampling: None
) -> None:
    write_csv(data, [{**row, "pcs_label": "theirs", "p_good": "1"} for row in read_csv(data)])
    with pytest.warns(PcsWarning, match="'pcs_label' is now 'input_pcs_label', 'p_good' is now 'input_p_good'"):
        made(data, tmp_path / "run")
    first = labels_of(tmp_path / "run")
    assert {(row["input_pcs_label"], row["input_p_good"]) for row in first} == {("theirs", "1")}
    assert {row["pcs_label"] for row in first} == {"good", "bad"}
    fit_run(tmp_path / "run")
    assert labels_of(tmp_path / "run") == first


def test_all_rows_are_labelled_in_order_though_only_a_sample_is_learned_from_which_the_report_says(
    data: Path, tmp_path: Path, sampling: None
) -> None:
    result = made(as_parquet(data), tmp_path / "run")
    assert len(result.outcomes) == SAMPLE
    assert result.dataset.gold.count(None) == SAMPLE - GOLD  # all gold rows are in the sample
    rows = labels_of(tmp_path / "run")
    assert [row["id"] for row in rows] == [row["id"] for row in read_csv(data)]
    assert result.counts.rows == ROWS
    assert result.counts.labels == {name: sum(row["pcs_label"] == name for row in rows) for name in ("good", "bad")}
    assert result.tally.calls == calls_in(tmp_path / "run") == ROWS * len(MODELS) * len(RELATIONS)
    assert result.tally.from_ledger == 0
    certificate = the(result.learned.model.certificate)
    assert certificate.review_rows == ROWS - result.counts.decisions.get("accept", 0)
    opened = open_run(tmp_path / "run")
    assert (opened.counts, opened.learned.model.certificate) == (result.counts, certificate)
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "a sample of 40 rows" in page
    assert f"of {ROWS}" in page


def test_a_second_run_of_a_finished_job_only_reads(data: Path, tmp_path: Path, sampling: None) -> None:
    first = made(data, tmp_path / "run")
    written = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*")}
    second = made(data, tmp_path / "run")
    assert (second.counts, second.tally.calls) == (first.counts, 0)
    assert second.tally.from_ledger == first.tally.calls
    kept = {path.name for path, at in written.items() if path.stat().st_mtime_ns == at}
    assert {"labels.csv", "all-votes.parquet", "votes.parquet", "whole.json"} <= kept


def test_after_a_review_the_final_label_of_rows_with_gold_is_their_gold(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sampling: None
) -> None:
    # so that not all gold rows are in the sample
    monkeypatch.setattr("pcs_annotator.runs.run_table.SAMPLE_ROWS", GOLD // 2)
    first = made(data, tmp_path / "run", ONE)
    with Review.open(tmp_path / "run", ReviewOptions(refit_every=0, seed=1)) as review:
        review.submit(verdict(review.show(review.rows.ids[0], "ann"), "good"))
    for again in ("fit", "run"):
        fit_run(tmp_path / "run") if again == "fit" else made(data, tmp_path / "run", ONE)
        rows = labels_of(tmp_path / "run")
        with_gold = [row for row in rows if row["gold"] and not row["pcs_verdict"]]
        assert any(row["pcs_label"] != row["gold"] for row in with_gold)
        assert [row["pcs_final_label"] for row in with_gold] == [row["gold"] for row in with_gold]
        assert len(rows) == first.counts.rows > len(with_gold) > GOLD // 2


DAMAGED = {
    "labels.csv": "",
    "variables/label/all-votes.parquet": "",
    "whole.json": "whole.json cannot be read .*: pcs run writes it again, from the answers in the ledger",
    "items.parquet": "items.parquet .*; a new sample of the rows is drawn",
}


def test_a_damaged_or_missing_file_is_written_again_without_calls(data: Path, tmp_path: Path, sampling: None) -> None:
    made(data, tmp_path / "run", ONE)
    before = (tmp_path / "run" / "labels.csv").read_bytes()
    for damage, said in DAMAGED.items():
        path = tmp_path / "run" / damage
        path.unlink() if damage.startswith("all") else path.write_bytes(b"{damaged")
        with pytest.warns(PcsWarning, match=said) if said else nullcontext():
            again = made(data, tmp_path / "run", ONE)
        assert again.tally.calls == 0
        assert (tmp_path / "run" / "labels.csv").read_bytes() == before


def test_rows_without_ids_have_their_number_in_the_whole_table(data: Path, tmp_path: Path, sampling: None) -> None:
    rows = [{"text": row["text"], "gold": row["gold"]} for row in read_csv(data)]
    result = made(write_csv(tmp_path / "unnamed.csv", rows), tmp_path / "run", ONE)
    texts = {str(number): row["text"] for number, row in enumerate(rows, 1)}
    assert {item.id: item.text for item in result.dataset.items}.items() <= texts.items()
    assert max(int(item.id) for item in result.dataset.items) > SAMPLE
    assert list(labels_of(tmp_path / "run")[0])[:3] == ["text", "gold", "pcs_label"]
    assert open_run(tmp_path / "run").dataset.items == result.dataset.items
    assert made(tmp_path / "unnamed.csv", tmp_path / "run", ONE).tally.calls == 0


def test_ids_that_occur_twice_are_refused_before_any_call(data: Path, tmp_path: Path, small_limits: None) -> None:
    rows = read_csv(data)
    rows[70]["id"] = rows[3]["id"]
    with pytest.raises(TableError, match="rows 5 and 72 have the same id 't3'"):
        made(write_csv(data, rows), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_gold_label_that_is_no_label_is_named_with_its_row(data: Path, tmp_path: Path, sampling: None) -> None:
    rows = read_csv(data)
    rows[75]["gold"] = "ugly"
    with pytest.raises(LabelError, match=r"data\.csv, row 77, column gold.*'ugly'"):
        made(write_csv(data, rows), tmp_path / "run")


class Breaking(SimulatedProvider):
    """After some calls, something happens."""

    def __init__(self, calls: int, happens: Any) -> None:
        super().__init__()
        self.calls, self.happens = calls, happens

    def open(self, model: str, environment: Any) -> Any:
        opened = super().open(model, environment)
        assert isinstance(opened, ScriptedModel)
        answer = opened._script
        assert callable(answer)

        def break_down(request: Request) -> Any:
            self.calls -= 1
            if self.calls == 0:
                self.happens()
            return answer(request)

        opened._script = break_down
        return opened


def breaking(patch: pytest.MonkeyPatch, calls: int, happens: Any) -> None:
    provider = Breaking(calls, happens)
    patch.setitem(providers._factories, "simulated", lambda: provider)


def test_what_was_paid_for_before_a_stop_is_not_paid_for_again(
    data: Path, tmp_path: Path, sampling: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop() -> None:
        raise ModelError("a wrong key")

    with monkeypatch.context() as patch:
        breaking(patch, 65, stop)
        with pytest.raises(ModelError, match="a wrong key"):
            made(data, tmp_path / "run", ONE)
    paid = calls_in(tmp_path / "run")
    assert SAMPLE < paid < ROWS
    assert not (tmp_path / "run" / "labels.csv").exists()
    with pytest.warns(PcsWarning, match="only a sample of the rows"):
        fit_run(tmp_path / "run")
    result = made(data, tmp_path / "run", ONE)
    assert (result.tally.calls, result.tally.from_ledger) == (ROWS - paid, paid)
    assert len(labels_of(tmp_path / "run")) == ROWS


def test_a_budget_that_is_reached_leaves_rows_without_a_label_and_a_higher_one_goes_on(
    data: Path, tmp_path: Path, sampling: None
) -> None:
    little = replace(ONE, ask=replace(ONE.ask, max_calls=55))
    result = made(data, tmp_path / "run", little)
    assert (result.tally.calls, dict(result.tally.failed)) == (55, {"budget reached": 25})
    assert result.unlabelled == 25
    assert sum(row["pcs_label"] == "" for row in labels_of(tmp_path / "run")) == 25
    result = made(data, tmp_path / "run", ONE)
    assert (result.tally.calls, result.unlabelled) == (25, 0)


def test_a_table_that_changes_while_it_is_labelled_is_an_error_and_all_answers_are_kept(
    data: Path, tmp_path: Path, sampling: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def grow() -> None:
        with data.open("a", encoding="utf-8") as file:
            file.write("new,Case 999 looks good.,\n")

    with monkeypatch.context() as patch:
        breaking(patch, 50, grow)
        with pytest.raises(TableError, match=r"data\.csv has changed while it was labelled.*run the same command"):
            made(data, tmp_path / "run", ONE)
    assert not (tmp_path / "run" / "labels.csv").exists()
    result = made(data, tmp_path / "run", ONE)
    assert result.counts.rows == ROWS + 1
    assert result.tally.calls <= 1


def test_a_damaged_part_is_named_and_the_run_goes_on_when_it_is_whole_again(
    data: Path, tmp_path: Path, sampling: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = parquet.read_table(as_parquet(data))
    parts = tmp_path / "parts"
    parts.mkdir()
    for number in range(3):
        parquet.write_table(rows.slice(30 * number, 30), parts / f"part-{number}.parquet")
    whole = (parts / "part-2.parquet").read_bytes()

    def damage() -> None:
        (parts / "part-2.parquet").write_bytes(whole[:200])

    with monkeypatch.context() as patch:
        breaking(patch, 42, damage)
        with pytest.raises(TableError, match=r"part-2\.parquet"):
            made(parts, tmp_path / "run", ONE)
    paid = calls_in(tmp_path / "run")
    with pytest.raises(TableError, match=r"part-2\.parquet"):
        made(parts, tmp_path / "run", ONE)
    (parts / "part-2.parquet").write_bytes(whole)
    result = made(parts, tmp_path / "run", ONE)
    assert (result.tally.calls, result.tally.from_ledger) == (ROWS - paid, paid)
    assert [row["id"] for row in labels_of(tmp_path / "run")] == rows["id"].to_pylist()


def test_a_full_disk_leaves_no_half_file_and_nothing_is_paid_for_again(
    data: Path, tmp_path: Path, sampling: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as patch:
        patch.setattr("pcs_annotator.tables.vote_files.VoteWriter.write", full)
        with pytest.raises(TableError, match=r"cannot write .*No space left on device; make room"):
            made(data, tmp_path / "run", ONE)
    assert not [path for path in (tmp_path / "run").iterdir() if path.name.startswith((".", "labels", "all"))]
    paid = calls_in(tmp_path / "run")
    assert made(data, tmp_path / "run", ONE).tally.calls == ROWS - paid


def test_a_fit_relabels_all_rows_from_their_votes(data: Path, tmp_path: Path, small_limits: None) -> None:
    made(data, tmp_path / "run")
    changes: dict[str, Any] = {"max_error": 0.3, "optimiser": "uniform"}
    fitted = fit_run(tmp_path / "run", changes, say=lambda line: None)
    other = made(data, tmp_path / "other", replace(CONFIG, learn=replace(CONFIG.learn, **changes)))
    assert fitted.counts == other.counts
    assert (tmp_path / "run" / "labels.csv").read_bytes() == (tmp_path / "other" / "labels.csv").read_bytes()
    before = (tmp_path / "run" / "labels.csv").stat().st_mtime_ns
    with pytest.warns(PcsWarning, match="as in the last pcs fit"):
        again = made(data, tmp_path / "run", replace(CONFIG, learn=replace(CONFIG.learn, **changes)))
    assert again.tally.calls == 0
    assert (tmp_path / "run" / "labels.csv").stat().st_mtime_ns == before


def test_gold_that_people_add_stays_in_the_sample_when_rows_are_added(
    data: Path, tmp_path: Path, sampling: None
) -> None:
    made(data, tmp_path / "run", ONE)
    asked = read_csv(tmp_path / "run" / "to_label.csv")
    filled = write_csv(tmp_path / "filled.csv", [{**row, "gold": row["text"].split()[-1][:-1]} for row in asked])
    fit_run(tmp_path / "run", people=FromPeople(gold=filled))
    rows = read_csv(data)
    more = [{"id": f"n{row}", "text": f"Case n{row} looks bad.", "gold": ""} for row in range(100)]
    result = made(write_csv(data, rows + more), tmp_path / "run", ONE)
    assert {row["id"] for row in asked} <= {item.id for item in result.dataset.items}
    assert (result.counts.rows, result.tally.calls) == (ROWS + 100, 100)
    assert sum(label is not None for label in result.dataset.gold) == GOLD + len(asked)
    with pytest.raises(ConfigError, match="rows have another text"):
        made(write_csv(data, [{**row, "text": row["text"] + "!"} for row in rows]), tmp_path / "run", ONE)


def test_formulas_stay_safe_when_labels_are_written_again(data: Path, tmp_path: Path, small_limits: None) -> None:
    rows = read_csv(data)
    rows[0]["text"] = "=1+1 looks good."
    made(write_csv(data, rows), tmp_path / "run", ONE, spreadsheet_safe=True)
    before = (tmp_path / "run" / "labels.csv").read_bytes()
    fit_run(tmp_path / "run", spreadsheet_safe=True)
    assert (tmp_path / "run" / "labels.csv").read_bytes() == before
    assert b"'=1+1" in before
    fit_run(tmp_path / "run")
    assert labels_of(tmp_path / "run")[0]["text"] == "=1+1 looks good."


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("learned")
    with simulated_models(graded=MODELS[:1]):
        made(write_texts(folder / "data.csv", range(100), gold_rows=70), folder / "run")
    return folder / "run"


@pytest.mark.parametrize("saving", [Saving(), Saving(ask="all")])
def test_labels_for_new_texts_are_those_of_a_table_in_memory(
    learned: Path, tmp_path: Path, saving: Saving, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_run(learned, tmp_path / "run")
    new = write_texts(tmp_path / "new.csv", range(1000, 1040))
    request = RunRequest(data=new, folder=tmp_path / "run", config=Config())
    whole = label(request, tmp_path / "whole.csv", saving)
    monkeypatch.setattr(run_table, "IN_MEMORY_ROWS", IN_MEMORY)
    monkeypatch.setattr("pcs_annotator.runs.label_table.CHUNK_ROWS", CHUNK)
    chunked = label(request, tmp_path / "chunked.csv", saving)
    assert (tmp_path / "chunked.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert (chunked.counts, chunked.model.certificate, chunked.drift) == (
        whole.counts,
        whole.model.certificate,
        whole.drift,
    )
    assert (chunked.tally.calls, chunked.tally.spared) == (0, whole.tally.spared)
    with pytest.raises(TableError, match=r"chunked\.csv exists: .*--replace"):
        label(request, tmp_path / "chunked.csv", saving)


KILLED = """
import sys, time
from dataclasses import replace
from pathlib import Path
from pcs_annotator.models.provider import providers
from pcs_annotator.runs import label_table, run_table
from tests.simulated import run
from pcs_annotator.runs.run_request import RunRequest
from tests.pipeline.LARGE import CHUNK, IN_MEMORY, ONE, SAMPLE
from tests.simulated import SimulatedProvider

class Slow(SimulatedProvider):
    def open(self, model, environment):
        opened = super().open(model, environment)
        opened.latency = 0.05
        return opened

providers._factories["simulated"] = Slow
run_table.IN_MEMORY_ROWS, label_table.CHUNK_ROWS, run_table.SAMPLE_ROWS = IN_MEMORY, CHUNK, SAMPLE
config = replace(ONE, ask=replace(ONE.ask, concurrency=4))
run(RunRequest(data=Path(sys.argv[1]), folder=Path(sys.argv[2]), config=config))
"""


@pytest.mark.slow
def test_a_run_that_is_killed_while_it_labels_all_rows_repeats_at_most_the_calls_in_flight(
    data: Path, tmp_path: Path, sampling: None
) -> None:
    folder = tmp_path / "run"
    script = KILLED.replace("tests.pipeline.LARGE", __name__)
    process = subprocess.Popen([sys.executable, "-c", script, str(data), str(folder)], cwd=Path(__file__).parents[2])
    while (
        not (folder / "variables/label/model.json").exists() or calls_in(folder) < 50
    ):  # all rows are being asked about
        assert process.poll() is None
        time.sleep(0.05)
    process.kill()
    process.wait()
    paid = calls_in(folder)
    assert 50 <= paid < ROWS
    assert not (folder / "labels.csv").exists()
    result = made(data, folder, ONE)
    assert (result.tally.calls, result.tally.from_ledger) == (ROWS - paid, paid)
    assert [row["id"] for row in labels_of(folder)] == [row["id"] for row in read_csv(data)]
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]  # what the kill left behind


def test_copies_of_gold_texts_outside_the_sample_have_golds_label(tmp_path: Path, data: Path, sampling: None) -> None:
    rows = read_csv(data)
    copies = [{"id": f"copy {row['id']}", "text": f" {row['text']} ", "gold": ""} for row in rows[:GOLD]]
    result = made(write_csv(tmp_path / "more.csv", [*rows, *copies]), tmp_path / "run")
    written = labels_of(tmp_path / "run")
    assert [row["pcs_final_label"] for row in written[ROWS:]] == [row["gold"] for row in rows[:GOLD]]
    assert {row["pcs_reason"] for row in written[ROWS:]} == {"a copy of a gold text"}
    waiting = sum(row["pcs_decision"] == "review" and not row["gold"] for row in written[:ROWS])
    assert result.counts.to_review == waiting
    certificate = the(result.learned.model.certificate)
    assert certificate.review_rows == ROWS + GOLD - result.counts.decisions.get("accept", 0)
