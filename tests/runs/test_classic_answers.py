"""Rewrites and answers beside a dataset, in the columns of the paper's library."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest

from pcs_annotator import ABSTAINED, NOT_ASKED, CollectSettings, Item, PcsWarning, Task, Votes
from pcs_annotator.base.errors import TableError
from pcs_annotator.core.arrays import CODE
from pcs_annotator.core.chat import Request
from pcs_annotator.models.scripted import ScriptedModel
from pcs_annotator.relations.combine import InTurn
from pcs_annotator.relations.function import FunctionRelation
from pcs_annotator.runs.classic_dataset import ask_about, read_answers
from pcs_annotator.runs.executors import Panel
from pcs_annotator.tables.chunks import Columns, Dataset, TableStream
from pcs_annotator.tables.find import as_arrow
from pcs_annotator.tables.write import write_table

LABELS = ["Fake", "Real"]
AXES = Votes(
    codes=np.empty((0, 1, 2), dtype=CODE), ids=[], annotators=["m"], relations=["original", "voice"], labels=LABELS
)
ROWS = [0, 1, 2]


def dataset(*texts: str) -> Dataset:
    given = texts or ("one", "two", "three")
    table = pa.table({"label": ["Fake"] * len(given), "text": list(given), "source": ["web"] * len(given)})
    return TableStream.of(table, "dataset.csv", Columns(text="text", gold="label", numbered=True)).read()


def sheet(**columns: list[str | None]) -> pa.Table:
    usual: dict[str, list[str | None]] = {
        "text": ["one", "two", "three"],
        "text_mr1": ["eins", None, "drei"],
        "m_text": ["fake", " REAL ", "who knows"],
        "m_text_mr1": ["Real", "", "nan"],
    }
    return pa.table({name: pa.array(values, pa.string()) for name, values in {**usual, **columns}.items()})


def read(table: pa.Table, rows: list[int] = ROWS, data: Dataset | None = None) -> Votes:
    with TemporaryDirectory() as folder:
        path = Path(folder, "dataset_annotations.csv")
        write_table(path, table)
        return read_answers(path, data or dataset(), rows, AXES)[0]


def test_cells_are_labels_in_any_case_and_everything_else_is_no_vote() -> None:
    codes = read(sheet()).codes[:, 0, :, 0].tolist()
    assert codes == [[0, 1], [1, NOT_ASKED], [ABSTAINED, ABSTAINED]]


def test_rows_are_matched_by_text_when_the_dataset_has_changed() -> None:
    data = dataset("three", "one", "one  ")
    assert read(sheet(), data=data).codes[:, 0, 0, 0].tolist() == [ABSTAINED, 0, 0]


def test_equal_texts_keep_their_own_rows() -> None:
    data = dataset("one", "two", "one")
    table = sheet(text=["one", "two", "one"], m_text=["Fake", "Fake", "Real"])
    assert read(table, data=data).codes[:, 0, 0, 0].tolist() == [0, 0, 1]


def test_missing_rows_give_a_warning_and_are_left_out() -> None:
    warning = r"1 of 3 labelled rows of dataset\.csv, first row 4.* dataset_annotations\.csv"
    with pytest.warns(PcsWarning, match=warning):
        votes = read(sheet(), data=dataset("one", "two", "new"))
    assert len(votes) == 2


def test_annotations_of_another_dataset_are_refused() -> None:
    with pytest.raises(TableError, match=r"dataset_annotations\.csv .* dataset\.csv: .*generate_annotations=True"):
        read(sheet(), data=dataset("a", "b", "c"))


@pytest.mark.parametrize("missing", ["m_text", "m_text_mr1"])
def test_a_missing_column_is_named_with_the_remedy(missing: str) -> None:
    with pytest.raises(TableError, match=f"no column '{missing}' .*generate_annotations=True"):
        read(sheet().drop_columns([missing]))


def test_a_missing_column_of_rewrites_is_fine() -> None:
    assert read(sheet().drop_columns(["text_mr1"])).codes[1, 0, 1, 0] == ABSTAINED


def test_rewrites_without_a_relation_are_ignored_with_a_warning() -> None:
    with pytest.warns(PcsWarning, match=r"mr2, mr10.*register_mr"):
        read(sheet(text_mr10=["a", "b", "c"], text_mr2=["a", "b", "c"]))


def asked(tmp_path: Path, data: Dataset, rows: list[int]) -> tuple[Votes, pa.Table]:
    """Ask about rows, with a model that says nothing about two, and a relation that does not apply to three."""
    answers = {"one": "Fake", "one, indeed": "Real", "two, indeed": "Fake"}

    def answer(request: Request) -> str:
        said = request.messages[-1].content
        return next((label for text, label in answers.items() if f"\n{text}\n" in said), "who knows")

    panel = Panel(
        task=Task("Which?", LABELS),
        annotators=[ScriptedModel(answer, name="m")],
        relations=(
            "original",
            InTurn("voice", (FunctionRelation("voice", lambda text: None if text == "three" else f"{text}, indeed"),)),
        ),
        ledger=tmp_path / "l.db",
        settings=CollectSettings(environment={}, answers="hard", on_variant=lambda item, _: SEEN.append(item)),
    )
    SEEN.clear()
    path = tmp_path / "dataset_annotations.csv"
    votes = asyncio.run(ask_about(panel, data, rows, path))
    return votes, as_arrow(path)


SEEN: list[Item] = []


def test_votes_survive_a_round_trip_and_the_users_columns_stay(tmp_path: Path) -> None:
    votes, table = asked(tmp_path, dataset(), [0, 2])
    assert table.column_names == ["label", "text", "source", "text_mr1", "m_text", "m_text_mr1"]
    assert table["text_mr1"].to_pylist() == ["one, indeed", "", ""]
    assert table["m_text"].to_pylist() == ["Fake", "", ""]
    assert votes.codes[:, 0, :, 0].tolist() == [[0, 1], [ABSTAINED, NOT_ASKED]]
    assert read(table, [0, 2]).codes.tolist() == votes.codes.tolist()
    assert {item.text for item in SEEN} == {"one", "three"}  # the user's own function is called, too


def test_columns_of_an_earlier_file_are_replaced_and_not_doubled(tmp_path: Path) -> None:
    _, first = asked(tmp_path, dataset(), ROWS)
    columns = Columns(text="text", gold="label", numbered=True)
    _, again = asked(tmp_path, TableStream.of(first, "d.csv", columns).read(), ROWS)
    assert again.column_names == first.column_names
