from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pcs_annotator.base.errors import TableError
from pcs_annotator.tables.sources import read_source
from pcs_annotator.tables.table_writer import TableStyle
from pcs_annotator.tables.tables import Columns, Dataset, write_table


@pytest.mark.parametrize("name", ["labels.csv", "labels.parquet"])
def test_the_file_extension_decides_how_tables_are_written(tmp_path: Path, name: str) -> None:
    table = pa.table({"id": ["a", "b"], "text": ['says "no", then\nyes', None]})
    write_table(tmp_path / name, table)
    if name.endswith("parquet"):
        assert pq.read_table(tmp_path / name).equals(table)
    else:
        with (tmp_path / name).open(newline="") as file:
            assert list(csv.reader(file)) == [["id", "text"], ["a", 'says "no", then\nyes'], ["b", ""]]


def dataset_of(folder: Path, content: str, **columns: Any) -> Dataset:
    path = folder / "texts.csv"
    path.write_text(content, encoding="utf-8")
    return read_source(path, Columns(**columns))


def items_of(folder: Path, content: str, **columns: Any) -> list[tuple[str, str]]:
    return [(item.id, item.text) for item in dataset_of(folder, content, **columns).items]


def test_texts_ids_and_gold_are_found_under_their_usual_names(tmp_path: Path) -> None:
    found = dataset_of(tmp_path, "Label,id,Text\nx,a,One\n ,b,Two\n")
    assert [(item.id, item.text) for item in found.items] == [("a", "One"), ("b", "Two")]
    assert found.gold == ("x", None)
    assert found.columns == Columns(text="Text", id="id", gold="Label")


def test_without_ids_rows_are_numbered_and_no_row_is_lost(tmp_path: Path) -> None:
    assert items_of(tmp_path, 'text,stars\nOne,x\n"",y\n') == [("1", "One"), ("2", "")]
    assert items_of(tmp_path, "anything\nOne\n") == [("1", "One")]


def test_columns_can_be_named(tmp_path: Path) -> None:
    found = dataset_of(tmp_path, "key,words,truth\na,One,x\n", text="words", id="key", gold="truth")
    assert found.items[0].id == "a"
    assert found.gold == ("x",)


def test_a_file_without_gold_has_none(tmp_path: Path) -> None:
    assert dataset_of(tmp_path, "text\nOne\n").gold == ()


def test_the_limit_is_the_number_of_rows(tmp_path: Path) -> None:
    path = tmp_path / "texts.csv"
    path.write_text("text\nOne\nTwo\n", encoding="utf-8")
    found = read_source(path, Columns(), limit=1)
    assert (len(found.items), len(found.table)) == (1, 1)


@pytest.mark.parametrize(
    ("content", "columns", "problem"),
    [
        ("key,words\na,One\n", {}, r"texts\.csv.* --text-column: key, words"),
        (
            "key,words\na,One\n",
            {"text": "txt"},
            r"texts\.csv.*'txt'.*--text-column.*key, words",
        ),
        ("key,text\na,One\n", {"id": "id"}, r"'id'.*--id-column"),
        ("key,text\na,One\n", {"gold": "truth"}, r"'truth'.*--gold-column"),
        ("id,text\na,One\nb,Two\na,Three\n", {}, r"texts\.csv, rows 2 and 4.*id 'a'"),
        ("id,text\n", {}, r"texts\.csv.*no rows"),
        ("id,text\nid,text\na,One\n", {}, r"texts\.csv: row 2.*header"),
    ],
)
def test_a_file_that_cannot_be_used_is_an_error(
    content: str, columns: dict[str, str], problem: str, tmp_path: Path
) -> None:
    with pytest.raises(TableError, match=problem):
        items_of(tmp_path, content, **columns)


def test_labels_are_faithful_unless_they_are_to_be_safe_in_a_spreadsheet(tmp_path: Path) -> None:
    table = pa.table({"=name": ["=1+1", "plain", None], "number": [-1.5, 2.0, None]})
    path = tmp_path / "labels.csv"
    write_table(path, table)
    assert path.read_text(encoding="utf-8") == "=name,number\n=1+1,-1.5\nplain,2.0\n,\n"
    write_table(path, table, TableStyle(spreadsheet_safe=True))
    assert path.read_text(encoding="utf-8") == "'=name,number\n'=1+1,-1.5\nplain,2.0\n,\n"


def test_gold_that_pandas_wrote_beside_empty_cells_is_a_whole_number(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("text,gold\nA,6.0\nB,\nC,6\nD,7.5\n")
    assert read_source(tmp_path / "data.csv", Columns()).gold == ("6", None, "6", "7.5")


def test_an_object_or_a_list_is_the_same_text_in_json_lines_and_in_parquet(tmp_path: Path) -> None:
    rows = [{"text": {"title": "Ä", "words": [1, None]}}, {"text": None}]
    (tmp_path / "data.jsonl").write_text("\n".join(map(json.dumps, rows)))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "data.parquet")
    first, second = (read_source(tmp_path / f"data.{kind}", Columns(text="text")) for kind in ("jsonl", "parquet"))
    assert [item.text for item in first.items] == [item.text for item in second.items]
    assert first.items[0].text == '{"title": "Ä", "words": [1, null]}'
