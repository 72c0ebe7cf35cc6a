from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pcs_annotator.base.errors import TableError
from pcs_annotator.tables.tabular import as_arrow
from tests.runs.files.sixty_files import PLAIN, cells, parquet_bytes, spreadsheet, workbook


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.csv", b"%PDF-1.7 \0\1\2", "a PDF document: save its table"),
        ("t.xlsx", b"PK\x03\x04" + bytes(40) + b"notes.txt", "a ZIP archive: unpack it"),
        ("t.xls", b"<html><table><tr><td>text</td></tr></table></html>", "a web page"),
        ("t.xls", b"id\ttext\n1\tone\n", r"a text file.*ends in \.csv"),
        ("t.csv", b'{"text": "one"}\n', r"one object per line.*\.jsonl"),
        ("t.jsonl", b'[{"text": "one"}]', r"a list in JSON.*\.json"),
        ("t.csv", b"\x1f\x8b\x08" + bytes(20), r"compressed with gzip.*\.gz"),
        ("t.feather", b"FEA1" + bytes(100), "Arrow or Feather file: write it as Parquet"),
        ("t.duckdb", b"12345678DUCK" + bytes(4000), "a DuckDB database.*COPY name TO"),
        ("t.csv", b"SQLite format 3\0" + bytes(4000), "an SQLite database.*sqlite3 -header -csv"),
        ("t.parquet", b"ARROW1" + bytes(40), "an Arrow or Feather file"),
    ],
)
def test_a_file_of_another_kind_is_refused_with_what_to_do(
    tmp_path: Path, name: str, content: bytes, words: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TableError, match=words):
        as_arrow(tmp_path / name)


def test_a_file_with_an_unknown_extension_is_what_it_begins_like(tmp_path: Path) -> None:
    path = tmp_path / "export.2026"
    rows = [[str(cell) for cell in row.values()] for row in PLAIN]
    text = "".join(";".join(row) + "\n" for row in [list(PLAIN[0]), *rows[2:]])
    makers: list[Callable[[Path], object]] = [
        lambda path: path.write_bytes(parquet_bytes(PLAIN)),
        workbook(("A", cells(PLAIN))),
        spreadsheet([list(PLAIN[0]), *rows]),
        lambda path: path.write_text(text, encoding="utf-8"),
    ]
    for make in makers:
        make(path)
        assert as_arrow(path).to_pylist()[-1]["text"] == "The end"
