from __future__ import annotations

import zipfile
from datetime import time, timedelta
from pathlib import Path
from typing import Any

import openpyxl
import pytest
import xlsxwriter
from odf.opendocument import OpenDocumentSpreadsheet
from odf.table import Table, TableCell, TableRow
from odf.text import P

from pcs_annotator.base.errors import TableError
from pcs_annotator.tables import sheets, table_files
from pcs_annotator.tables.table_files import Reading
from pcs_annotator.tables.table_formats import local_file
from pcs_annotator.tables.tabular import as_arrow


def saved(path: Path, rows: list[list[Any]], **more: list[list[Any]]) -> Path:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for name, content in more.items():
        sheet = book.create_sheet(name)
        for row in content:
            sheet.append(row)
    book.save(path)
    return path


def changed(path: Path, part: str, old: bytes, new: bytes) -> Path:
    """Write a workbook again with other bytes in one of its parts."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    assert old in parts[part]
    parts[part] = parts[part].replace(old, new)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return path


def test_times_durations_and_long_numbers_are_as_a_person_sees_them(tmp_path: Path) -> None:
    path = saved(tmp_path / "t.xlsx", [["a"], [time(3, 4)], [timedelta(hours=30)], [0.1 + 0.2], [1e20], [-7]])
    assert as_arrow(path)["a"].to_pylist() == ["03:04:00", "30:00:00", "0.3", "1e+20", "-7"]


def test_sheets_that_are_hidden_are_read_only_by_name(tmp_path: Path) -> None:
    path = saved(tmp_path / "t.xlsx", [["text"], ["hidden"]], Seen=[["text"], ["seen"]])
    book = openpyxl.load_workbook(path)
    book["Sheet"].sheet_state = "hidden"
    book.active = 1
    book.save(path)
    assert as_arrow(path)["text"].to_pylist() == ["seen"]
    assert as_arrow(path, Reading(sheet="Sheet"))["text"].to_pylist() == ["hidden"]


def test_a_workbook_without_rows_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path / "t.xlsx", [["text"]], Empty=[])
    with pytest.raises(TableError, match=r"no sheet with a header and rows \(there are 'Sheet', 'Empty'\)"):
        as_arrow(path)
    with pytest.raises(TableError, match="sheet 'Empty' is empty"):
        as_arrow(path, Reading(sheet="Empty"))


def test_what_is_too_large_when_unpacked_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path / "t.xlsx", [["text"], *[["spam " * 100]] * 500])
    monkeypatch.setattr(table_files, "MOST_BYTES_UNPACKED", 100_000)
    with pytest.raises(TableError, match=r"t\.xlsx is larger than"):
        as_arrow(path)


def test_a_size_that_is_not_what_the_archive_says_is_damage(tmp_path: Path) -> None:
    path = saved(tmp_path / "t.xlsx", [["text"], ["a" * 5000]])
    part = "xl/worksheets/sheet1.xml"
    with zipfile.ZipFile(path) as archive:
        size = archive.getinfo(part).file_size
    path.write_bytes(path.read_bytes().replace(size.to_bytes(4, "little"), (100).to_bytes(4, "little")))
    with pytest.raises(TableError, match="damaged"):
        as_arrow(path)


def test_a_part_that_is_missing_is_damage(tmp_path: Path) -> None:
    path = changed(
        saved(tmp_path / "t.xlsx", [["text"], ["a"]]), "xl/_rels/workbook.xml.rels", b"sheet1.xml", b"no.xml"
    )
    with pytest.raises(TableError, match="damaged"):
        as_arrow(path)


def test_texts_that_cells_share_and_relative_targets_are_read(tmp_path: Path) -> None:
    import xlsxwriter

    path = tmp_path / "t.xlsx"
    with xlsxwriter.Workbook(str(path)) as book:
        sheet = book.add_worksheet("Texts")
        for row, text in enumerate(["text", "same", "same"]):
            sheet.write_string(row, 0, text)
    assert as_arrow(path)["text"].to_pylist() == ["same", "same"]


def test_many_cells_that_repeat_in_a_spreadsheet_are_refused(tmp_path: Path) -> None:
    document = OpenDocumentSpreadsheet()
    sheet = Table(name="A")
    for count in (1, 1_000_000):
        row = TableRow(numberrowsrepeated=count)
        cell = TableCell(valuetype="string", numbercolumnsrepeated=200)
        cell.addElement(P(text="x"))
        row.addElement(cell)
        sheet.addElement(row)
    document.spreadsheet.addElement(sheet)
    document.save(str(tmp_path / "t.ods"))
    with pytest.raises(TableError, match=r"reach to row 1,000,00., column 200"):
        as_arrow(tmp_path / "t.ods")


def test_a_large_sheet_comes_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sheets, "BATCH_ROWS", 40)
    monkeypatch.setattr(sheets, "_PIECE", 1_000)
    file = local_file(saved(tmp_path / "t.xlsx", [["id", "text"], *([number, "a"] for number in range(100))]))
    contents = file.contents()
    assert contents.rows == 100
    assert [len(table) for table in file.batches(contents.schema)] == [40, 40, 20]


@pytest.mark.parametrize(
    ("place", "value"), [(b"PK\x01\x02", (6, b"\x54\x00")), (b"PK\x05\x06", (16, b"\xff\xff\xff\x7f"))]
)
def test_a_damaged_archive_is_refused(place: bytes, value: tuple[int, bytes], tmp_path: Path) -> None:
    path = tmp_path / "data.xlsx"
    with xlsxwriter.Workbook(path) as book:
        book.add_worksheet().write_row(0, 0, ["text"])
    data, (offset, other) = bytearray(path.read_bytes()), value
    start = data.rindex(place) + offset
    data[start : start + len(other)] = other
    path.write_bytes(data)
    with pytest.raises(TableError, match=r"data\.xlsx"):
        as_arrow(path)
