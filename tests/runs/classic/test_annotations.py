"""Rewrites and answers beside a dataset, in the columns of the paper's library."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest

from pcs_annotator import ABSTAINED, NOT_ASKED, PcsWarning, Votes
from pcs_annotator.base.errors import TableError
from pcs_annotator.runs.classic.files import ClassicDataset, read_answers, with_annotations
from pcs_annotator.tables.tables import write_table

RELATIONS = ["original", "voice"]
ROWS = [0, 1, 2]


def dataset(*texts: str) -> ClassicDataset:
    given = texts or ("one", "two", "three")
    table = pa.table({"label": ["Fake"] * len(given), "text": list(given), "source": ["web"] * len(given)})
    gold = ("Fake",) * len(given)
    return ClassicDataset(name="dataset.csv", table=table, texts=given, gold=gold, labels=("Fake", "Real"))


def sheet(**columns: list[str | None]) -> pa.Table:
    usual: dict[str, list[str | None]] = {
        "text": ["one", "two", "three"],
        "text_mr1": ["eins", None, "drei"],
        "m_text": ["fake", " REAL ", "who knows"],
        "m_text_mr1": ["Real", "", "nan"],
    }
    return pa.table({name: pa.array(values, pa.string()) for name, values in {**usual, **columns}.items()})


def read(table: pa.Table, rows: list[int] = ROWS, data: ClassicDataset | None = None) -> Votes:
    with TemporaryDirectory() as folder:
        path = Path(folder, "dataset_annotations.csv")
        write_table(path, table)
        return read_answers(path, data or dataset(), rows, ["m"], RELATIONS)[0]


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
    warning = r"1 of 3 labelled rows of dataset\.csv, first row 3.* dataset_annotations\.csv"
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


def test_votes_survive_a_round_trip_and_the_users_columns_stay() -> None:
    codes = [[[[0], [1]]], [[[ABSTAINED], [NOT_ASKED]]]]
    votes = Votes(codes=codes, ids=["0", "1"], annotators=["m"], relations=RELATIONS, labels=["Fake", "Real"])  # type: ignore[arg-type]  # lists will do
    rewrites: dict[str, list[str | None]] = {"voice": ["eins", None]}
    table = with_annotations(dataset(), [0, 2], rewrites, votes)
    assert table.column_names == ["label", "text", "source", "text_mr1", "m_text", "m_text_mr1"]
    assert table["m_text"].to_pylist() == ["Fake", None, None]
    assert read(table, [0, 2]).codes.tolist() == codes


def test_columns_of_an_earlier_file_are_replaced_and_not_doubled() -> None:
    codes = [[[[1]]]] * 3
    votes = Votes(codes=codes, ids=["0", "1", "2"], annotators=["m"], relations=["original"], labels=["Fake", "Real"])  # type: ignore[arg-type]  # lists will do
    first = with_annotations(dataset(), ROWS, {}, votes)
    again = ClassicDataset(
        name="d.csv", table=first, texts=dataset().texts, gold=dataset().gold, labels=("Fake", "Real")
    )
    assert with_annotations(again, ROWS, {}, votes).column_names == first.column_names
