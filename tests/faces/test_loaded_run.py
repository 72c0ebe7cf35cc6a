import pickle
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from pcs_annotator import LoadedRun, load_run
from pcs_annotator.asking.engine.call import Patience
from pcs_annotator.base.errors import AccessDenied, ConfigError, LedgerError, ServerTrouble, TableError
from pcs_annotator.core.chat import ChatModel, Request
from pcs_annotator.faces.loaded_run import NO_TEXT, NOT_TEXT
from pcs_annotator.models.provider import providers
from pcs_annotator.models.scripted import ScriptedModel
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.settings import Config
from tests.simulated import SimulatedProvider, copy_run, label, read_csv, simulated_models, simulated_run, write_texts

pytestmark = pytest.mark.system  # whole runs, one after the other

NEW = range(1000, 1060)
ADDED = ["pcs_label", "pcs_confidence", "pcs_decision", "pcs_reason", "score_good", "score_bad", "p_good", "p_bad"]
ADDED += ["pcs_final_label", "pcs_error"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("loaded")
    simulated_run(folder, rows=160, gold_rows=120)
    return folder / "run"


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Iterator[Path]:
    copy_run(made, tmp_path / "run")
    with simulated_models():
        yield tmp_path / "run"


@pytest.fixture
def run(folder: Path) -> Iterator[LoadedRun]:
    with load_run(folder) as run:
        yield run


def texts(folder: Path) -> pa.Table:
    rows = read_csv(write_texts(folder.parent / "new.csv", NEW))
    return pa.table({"id": [row["id"] for row in rows], "text": [row["text"] for row in rows]})


class Failing(SimulatedProvider):
    """Opens models that raise an error, about some texts only if these are named."""

    def __init__(self, error: Exception, about: str = "", after: int = 0) -> None:
        super().__init__()
        self._error, self._about, self._after, self.calls = error, about, after, 0

    def open(self, model: str, environment: Mapping[str, str]) -> ChatModel:
        good = super().open(model, environment)
        assert isinstance(good, ScriptedModel)
        usual = good._script

        def answer(request: Request) -> object:
            self.calls += 1
            if self.calls > self._after and self._about in request.messages[-1].content:
                raise self._error
            assert callable(usual)
            return usual(request)

        good._script = answer  # type: ignore[assignment]  # raises instead of returning an error
        return good


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    def use(*given: object, **more: object) -> Failing:
        provider = Failing(*given, **more)  # type: ignore[arg-type]  # passed on
        monkeypatch.setitem(providers._factories, "simulated", lambda: provider)
        return provider

    return use  # type: ignore[return-value]  # a fixture that is a function


def test_a_table_gets_the_labels_that_pcs_label_writes(folder: Path, run: LoadedRun) -> None:
    given = texts(folder)
    found = run.label_table(given)
    assert found.column_names == ["id", "text", *ADDED]
    assert found.schema == run.label_schema(given.schema)
    assert found.select(["id", "text"]).equals(given)
    request = RunRequest(data=folder.parent / "new.csv", folder=folder, config=Config())
    expected = label(request, folder.parent / "out.csv")
    assert expected.tally.calls == 0  # all answers are in the run's ledger by now
    assert [row["pcs_label"] for row in read_csv(folder.parent / "out.csv")] == found["pcs_label"].to_pylist()
    assert [outcome.decision for outcome in expected.outcomes] == found["pcs_decision"].to_pylist()
    for row in found.to_pylist():
        assert row["pcs_confidence"] == row[f"p_{row['pcs_label']}"] == max(row["p_good"], row["p_bad"])
        assert row["p_good"] + row["p_bad"] == pytest.approx(1, abs=2e-6)
        assert row["pcs_error"] is None


def test_scores_are_never_called_probabilities(tmp_path: Path) -> None:
    simulated_run(tmp_path, rows=20, gold_rows=0)
    with simulated_models(), load_run(tmp_path / "run") as run:
        found = run.label_table(texts(tmp_path / "run"))
        assert found.schema == run.label_schema(texts(tmp_path / "run").schema)
    written = list(read_csv(tmp_path / "run" / "labels.csv")[0])
    assert found.column_names == [*(name for name in written if name != "gold"), "pcs_error"]
    assert [name for name in found.column_names if name.startswith(("p_", "score_"))] == ["score_good", "score_bad"]
    assert found["pcs_confidence"].null_count == len(found)


KINDS: dict[str, Callable[[pa.Table], object]] = {
    "pandas": lambda table: table.to_pandas(),
    "polars": pl.from_arrow,
    "arrow": lambda table: table,
    "batch": lambda table: table.to_batches()[0],
    "dict": lambda table: table.to_pydict(),
    "series": lambda table: table.to_pandas()["text"],
    "polars column": lambda table: pl.Series(table["text"].to_pylist()),
    "arrow column": lambda table: table["text"],
    "array": lambda table: np.array(table["text"].to_pylist()),
    "list": lambda table: table["text"].to_pylist(),
    "iterator": lambda table: iter(table["text"].to_pylist()),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_row_gets_an_outcome_whatever_holds_the_texts(kind: str, folder: Path, run: LoadedRun) -> None:
    given = texts(folder).slice(0, 3)
    found = run.label(KINDS[kind](given))
    named = "column" in kind or kind in ("series", "array", "list", "iterator")
    assert [one.id for one in found] == (["1", "2", "3"] if named else given["id"].to_pylist())
    assert [one.label for one in found] == [run.label(text).label for text in given["text"].to_pylist()]
    assert run.label_table(KINDS[kind](given))["pcs_label"].to_pylist() == [one.label for one in found]


def test_texts_in_a_file_are_labelled_and_numbered(folder: Path, run: LoadedRun) -> None:
    path = write_texts(folder.parent / "few.csv", range(1000, 1003))
    found = run.label(path)
    assert [one.id for one in found] == [row["id"] for row in read_csv(path)]
    assert [one.id for one in run.label(path, ids=pd.Series([7, 8, 9]))] == ["7", "8", "9"]
    assert run.label(texts(folder).slice(0, 0)) == []


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (7, "cannot read a int as a table"),
        (["a", None, 7], "number 3 of the texts is a int, not a text"),
        (pd.DataFrame({"a": ["x"], "b": ["y"]}), "which column holds the texts"),
    ],
)
def test_what_holds_no_texts_is_refused_with_its_type(given: object, problem: str, run: LoadedRun) -> None:
    with pytest.raises(TableError, match=problem):
        run.label(given)


def test_batches_slices_and_other_columns_come_back_as_they_were(folder: Path, run: LoadedRun) -> None:
    given = texts(folder)
    whole = run.label_table(given)
    batches = given.slice(7, 30).to_batches(max_chunksize=11)
    parts = [run.label_table(batch) for batch in batches]
    assert pa.concat_tables(parts).equals(whole.slice(7, 30))
    taken = given.append_column("label", pa.array(["mine"] * len(given)))
    found = run.label_table(taken.rename_columns(["id", "words", "label"]), text_column="words")
    assert found.column_names == ["id", "words", "label", *ADDED]
    assert found["pcs_label"].equals(whole["pcs_label"])


def test_a_table_without_rows_gets_the_same_columns_and_opens_nothing(folder: Path, run: LoadedRun) -> None:
    empty = texts(folder).slice(0, 0)
    (folder / "variables/label/votes.parquet").unlink()
    assert run.label_table(empty).schema == run.label_schema(empty.schema)


def test_rows_that_cannot_be_labelled_say_why_and_disturb_no_other(folder: Path, run: LoadedRun) -> None:
    good = "Case 1000 looks good."
    given = pa.table({"text": pa.array([good.encode(), None, b"", b"\xff\xfe", good.encode()], pa.binary())})
    found = run.label_table(given)
    assert found["pcs_error"].to_pylist() == [None, NO_TEXT, NO_TEXT, NOT_TEXT, None]
    assert [label is None for label in found["pcs_label"].to_pylist()] == [False, True, True, True, False]
    assert found["p_good"].null_count == found["pcs_confidence"].null_count == 3
    broken = pa.Array.from_buffers(pa.string(), 5, given["text"].chunk(0).buffers())
    assert run.label_table(pa.table({"text": broken}))["pcs_error"].equals(found["pcs_error"])
    numbers = run.label_table(pa.table({"text": [1, None]}))
    assert numbers["pcs_error"].to_pylist() == [None, NO_TEXT]


def test_a_model_that_does_not_answer_about_one_text_leaves_its_reason(folder: Path, failing: type[Failing]) -> None:
    failing(ServerTrouble("gone"), about="Case 1003 ")
    with load_run(folder, ask="all") as run:
        run._opened("")._labeller.asker.patience = Patience(attempts=1)
        found = run.label_table(texts(folder)).to_pylist()
    assert [row["id"] for row in found if row["pcs_error"]] == ["t1003"]
    assert found[3]["pcs_error"] == "no answer"
    assert found[3]["pcs_label"] is None


def test_a_budget_that_is_reached_is_said_in_the_rows(folder: Path) -> None:
    with load_run(folder, max_calls=30, ask="all") as run:
        found = run.label_table(texts(folder))
    without = [error for error in found["pcs_error"].to_pylist() if error]
    assert set(without) == {"budget reached"}
    assert 0 < len(without) < len(NEW)


def test_a_model_that_is_down_is_said_in_the_rows_and_asked_again_with_the_next_table(
    folder: Path, failing: type[Failing]
) -> None:
    provider = failing(AccessDenied("the key was revoked"), after=40)
    with load_run(folder, ask="all") as run:
        found = run.label_table(texts(folder))
        errors = found["pcs_error"].to_pylist()
        assert {error for error in errors if error} == {"the key was revoked"}
        assert None in errors  # what was answered before is not lost
        provider.calls = -10_000
        assert run.label_table(texts(folder))["pcs_error"].null_count == len(NEW)


def test_a_ledger_that_fails_is_said_in_the_rows(folder: Path, run: LoadedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    run.label_table(texts(folder).slice(0, 1))
    ledger = run._opened("")._labeller.asker.ledger

    async def fail(keys: object) -> None:
        raise LedgerError("the disk is full")

    monkeypatch.setattr(ledger, "find", fail)
    found = run.label_table(texts(folder))
    assert set(found["pcs_error"].to_pylist()) == {"the disk is full"}
    assert found["pcs_label"].null_count == len(NEW)


def test_what_is_wrong_for_all_rows_is_one_clear_error(
    folder: Path, run: LoadedRun, failing: type[Failing], tmp_path: Path
) -> None:
    with pytest.raises(TableError, match="no column 'words'"):
        run.label_table(texts(folder), text_column="words")
    with pytest.raises(TableError, match="not text"):
        run.label_table(pa.table({"text": [["a"]]}))
    with pytest.raises(ConfigError, match="not a run folder"):
        load_run(tmp_path)
    with pytest.raises(ConfigError, match="no setting 'budget'"):
        load_run(folder, budget=1)
    failing(AccessDenied("no such model"))
    with load_run(folder) as other, pytest.raises(AccessDenied, match="no such model"):
        other.label_table(texts(folder))


def test_a_pickled_run_labels_alike_and_one_process_opens_it_once(folder: Path, run: LoadedRun) -> None:
    given = texts(folder)
    copies = [pickle.loads(pickle.dumps(run)) for _ in range(2)]
    assert copies[0] is copies[1]
    with copies[0]:
        assert copies[0].label_table(given).equals(run.label_table(given))


def test_threads_share_one_open_run_and_pay_once(folder: Path) -> None:
    given = texts(folder)
    with load_run(folder, ask="all", ledger=folder.parent / "other.db") as run, ThreadPoolExecutor(4) as pool:
        found = list(pool.map(run.label_table, [given] * 4))
        assert run._opened("")._labeller.asker.tracker.calls == 6 * len(NEW)
        names = [thread.name for thread in threading.enumerate()]
    assert names.count("pcs-engine") == 1
    assert all(one.equals(found[0]) for one in found)
    assert run.label_table(given.slice(0, 2)).equals(found[0].slice(0, 2))  # closed, and opened again
    run.close()
