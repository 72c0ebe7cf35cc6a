from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from python_calamine import CalamineWorkbook

from pcs_annotator import PcsWarning
from pcs_annotator.base.errors import TableError
from pcs_annotator.core.identity import same_text
from pcs_annotator.tables import workbook
from pcs_annotator.tables.tables import write_table
from pcs_annotator.tables.tabular import as_arrow
from pcs_annotator.tables.workbook import Book, number_cells


def write(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    with path.open("wb") as file, closing(Book(file, path.name)) as book:
        book.begin(header)
        book.write(rows)


def cells(path: Path, sheet: int = 0) -> list[list[Any]]:
    return CalamineWorkbook.from_path(path).get_sheet_by_index(sheet).to_python()


def test_cells_are_what_they_were(tmp_path: Path) -> None:
    row = ["007", 1, 0.25, True, None, "=1+1", "http://example.org", "+cmd|' /C calc'!A0", "<r><t>x</t></r>", 2**60]
    write(tmp_path / "a.xlsx", [f"c{i}" for i in range(len(row))], [row])
    sheet = openpyxl.load_workbook(tmp_path / "a.xlsx")["rows"]
    found = list(sheet[2])
    assert [cell.value for cell in found] == [*row[:-2], "<r><t>x</t></r> ", str(2**60)]
    assert [cell.data_type for cell in found] == ["s", "n", "n", "b", "n", "s", "s", "s", "s", "s"]
    assert not any(cell.hyperlink for cell in found)


@settings(max_examples=15, deadline=None)
@given(
    texts=st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\ufffe\uffff"), min_size=1))
)
def test_texts_come_back_as_they_were(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    path = tmp_path_factory.mktemp("book") / "a.xlsx"
    write(path, ["text"], [[text] for text in texts])
    assert [row[0] for row in cells(path)[1:]] == texts


def test_line_ends_of_windows_become_those_of_cells(tmp_path: Path) -> None:
    write(tmp_path / "a.xlsx", ["text"], [["one\r\ntwo\rthree"]])
    assert openpyxl.load_workbook(tmp_path / "a.xlsx").active["A2"].value == "one\ntwo\nthree"


def test_dates_are_dates_unless_excel_has_none(tmp_path: Path) -> None:
    day, time = datetime.date(2026, 3, 1), datetime.datetime(2026, 3, 1, 12, 30)
    zoned = time.replace(tzinfo=datetime.UTC)
    row = [day, time, zoned, datetime.date(1850, 1, 1), Decimal("1.5"), {"a": ["ü"]}, float("nan")]
    write(tmp_path / "a.xlsx", list("abcdefg"), [row])
    texts = ["2026-03-01 12:30:00+00:00", "1850-01-01"]
    assert cells(tmp_path / "a.xlsx")[1] == [day, time, *texts, 1.5, '{"a": ["ü"]}', ""]


def test_header_stays_in_view_and_columns_suit_their_cells(tmp_path: Path) -> None:
    rows = [["x" * 500, "a\nbb"], ["短" * 10, "c"]]
    write(tmp_path / "a.xlsx", ["long text", "b"], rows)
    sheet = openpyxl.load_workbook(tmp_path / "a.xlsx").active
    assert (sheet.freeze_panes, sheet.auto_filter.ref) == ("A2", "A1:B3")
    assert [round(sheet.column_dimensions[name].width) for name in "AB"] == [61, 6]
    assert sheet["A2"].alignment.wrap_text


@pytest.mark.parametrize("text", ["long " * 7_000, "😀" * 17_000])
def test_text_too_long_for_a_cell_is_cut_with_a_warning(tmp_path: Path, text: str) -> None:
    with pytest.warns(PcsWarning, match=r"a\.xlsx: 1 texts were cut, because .* 32,767 .*\.parquet hold them whole"):
        write(tmp_path / "a.xlsx", ["text"], [[text], ["short"]])
    found = cells(tmp_path / "a.xlsx")[1][0]
    assert text.startswith(found)
    assert len(found.encode("utf-16-le")) // 2 in (32_766, 32_767)
    assert same_text(found, text)


def test_more_rows_than_a_sheet_has_are_refused_and_leave_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workbook, "MOST_ROWS", 3)
    with pytest.raises(TableError, match=r"a\.xlsx: an Excel sheet has at most 3 rows and a header: write \.parquet"):
        write_table(tmp_path / "a.xlsx", pa.table({"n": range(4)}))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (["1", "-2", "", None], [1, -2, "", None]),
        (["0.5", "1"], [0.5, 1]),
        (["007", "1"], ["007", "1"]),
        (["1.50", "1"], ["1.50", "1"]),
        (["1234567890123456"], ["1234567890123456"]),
        (["-0", "1"], ["-0", "1"]),
        (["", None], ["", None]),
        ([1, 2], [1, 2]),
    ],
)
def test_texts_are_numbers_only_if_nothing_is_lost(column: list[Any], expected: list[Any]) -> None:
    assert list(number_cells(column)) == expected


def test_hidden_sheets_are_not_read(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.active.append(["text"])
    book.active.append(["hidden"])
    book.active.sheet_state = "hidden"
    for row in (["text"], ["shown"]):
        (book["b"] if "b" in book.sheetnames else book.create_sheet("b")).append(row)
    book.active = 1
    book.save(tmp_path / "a.xlsx")
    assert as_arrow(tmp_path / "a.xlsx").to_pylist() == [{"text": "shown"}]
