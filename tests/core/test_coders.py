from __future__ import annotations

from pathlib import Path

import pytest

from pcs_annotator.base.errors import LabelError, TableError
from pcs_annotator.core.gold_codes import Coders, coder_columns, majority_labels
from pcs_annotator.tables.chunks import Columns, Dataset, coder_labels, read_source
from pcs_annotator.tables.people import read_gold


def dataset(tmp_path: Path, table: str, columns: Columns | None = None) -> Dataset:
    path = tmp_path / "coded.csv"
    path.write_text(table, encoding="utf-8")
    return read_source(path, columns or Columns())


def test_columns_of_coders_are_named_after_people() -> None:
    assert coder_columns(["gold", "gold_", " Gold_Anna ", "gold_b", "golden"]) == (" Gold_Anna ", "gold_b")


def test_a_majority_ignores_case_and_empty_cells_and_a_tie_has_none() -> None:
    columns = [["x", "x", "x", None, None], ["X", "y", None, None, "y"], ["y", None, None, None, "y"]]
    assert majority_labels(columns) == ["x", None, "x", None, "y"]
    assert majority_labels([]) == []


CODED = "text,gold_Anna,gold_ben,label\none,a,a,z\ntwo,a,b,z\nthree,,b,z\n"


def test_the_majority_is_the_gold_label_if_no_column_is_called_gold(tmp_path: Path) -> None:
    found = dataset(tmp_path, CODED)
    assert found.gold == ("a", None, "b")
    assert found.columns.gold_source == "majority of gold_Anna, gold_ben"
    assert coder_labels(found) == {"Anna": ["a", "a", None], "ben": ["a", "b", "b"]}


@pytest.mark.parametrize(
    ("table", "columns", "gold"),
    [
        (CODED, Columns(gold="gold_ben"), ("a", "b", "b")),
        (CODED, Columns(gold="label"), ("z", "z", "z")),
        (CODED.replace("label", "gold"), Columns(), ("z", "z", "z")),
        (CODED.replace("gold_ben", "other"), Columns(), ("a", "a", None)),
    ],
)
def test_a_column_that_is_named_or_called_gold_wins(
    tmp_path: Path, table: str, columns: Columns, gold: tuple[str, ...]
) -> None:
    found = dataset(tmp_path, table, columns)
    assert found.gold == gold
    assert found.columns.coders


def test_labels_of_people_become_codes_and_the_majority_counts() -> None:
    found = Coders.of({"anna": ["a", None, "B"], "ben": ["a", "b", "a"]}, ["a", "b"], ["1", "2", "3"], "coded.csv")
    assert found is not None
    assert found.codes.tolist() == [[0, -1, 1], [0, 1, 0]]
    assert found.majority.tolist() == [0, 1, -1]
    with pytest.raises(ValueError, match="1 coders with codes of shape"):
        Coders(names=("anna",), codes=found.codes)


def test_a_label_outside_the_set_names_column_and_row(tmp_path: Path) -> None:
    given = coder_labels(dataset(tmp_path, "id,text,gold_ben\nr1,one,a\nr2,two,oops\n"))
    with pytest.raises(LabelError, match=r"coded\.csv, id 'r2', coder ben: 'oops' is not one of the labels 'a', 'b'"):
        Coders.of(given, ["a", "b"], ["r1", "r2"], "coded.csv")
    assert Coders.of({}, ["a", "b"], [], "coded.csv") is None


def test_columns_of_any_name_hold_the_labels_of_people_if_they_are_named(tmp_path: Path) -> None:
    coded = "id,text,Anna,Ben,gold_cem,label\n1,one,a,a,b,b\n2,two,b,,a,b\n3,three,a,b,,b\n"
    found = dataset(tmp_path, coded, Columns(coders=("Anna", "Ben")))
    assert coder_labels(found) == {"Anna": ["a", "b", "a"], "Ben": ["a", None, "b"]}
    assert found.gold == ("a", "b", None)
    with pytest.raises(
        TableError, match=r"coded\.csv has no column 'Cleo' \(--coders\); there are id, text, Anna, Ben"
    ):
        dataset(tmp_path, coded, Columns(coders=("Anna", "Cleo")))
    with pytest.raises(TableError, match="--coders names somebody twice: Anna, gold_anna"):
        dataset(tmp_path, coded.replace("gold_cem", "gold_anna"), Columns(coders=("Anna", "gold_anna")))


def test_a_later_file_needs_a_gold_label_on_which_coders_agree(tmp_path: Path) -> None:
    path = tmp_path / "given.csv"
    path.write_text("id,text,gold_anna,gold_ben\n1,one,a,a\n2,two,a,b\n", encoding="utf-8")
    with pytest.raises(TableError, match=r"given\.csv has no column 'gold'; there are id, text, gold_anna, gold_ben"):
        read_gold(path)
