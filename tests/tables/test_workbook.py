import datetime
import zipfile
from collections.abc import Iterable, Sequence
from contextlib import closing
from datetime import time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow as pa
import pytest
import xlsxwriter
from hypothesis import given, settings
from hypothesis import strategies as st
from python_calamine import CalamineWorkbook

from pcs_annotator import PcsWarning
from pcs_annotator.base.errors import TableError
from pcs_annotator.core.identity import same_text
from pcs_annotator.tables import source_files, workbook
from pcs_annotator.tables.find import as_arrow, open_parts
from pcs_annotator.tables.source_files import Reading
from pcs_annotator.tables.workbook import WorkbookWriter, number_cells
from pcs_annotator.tables.write import write_table


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
    monkeypatch.setattr(source_files, "MOST_BYTES_UNPACKED", 100_000)
    with pytest.raises(TableError, match=r"t\.xlsx is larger than"):
        as_arrow(path)


def test_a_wrong_size_and_a_missing_part_are_damage(tmp_path: Path) -> None:
    path = saved(tmp_path / "t.xlsx", [["text"], ["a" * 5000]])
    whole = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        size = archive.getinfo("xl/worksheets/sheet1.xml").file_size
    path.write_bytes(whole.replace(size.to_bytes(4, "little"), (100).to_bytes(4, "little")))
    with pytest.raises(TableError, match="damaged"):
        as_arrow(path)
    path.write_bytes(whole)
    with pytest.raises(TableError, match="damaged"):
        as_arrow(changed(path, "xl/_rels/workbook.xml.rels", b"sheet1.xml", b"no.xml"))


def test_texts_that_cells_share_and_relative_targets_are_read(tmp_path: Path) -> None:
    path = tmp_path / "t.xlsx"
    with xlsxwriter.Workbook(str(path)) as book:
        sheet = book.add_worksheet("Texts")
        for row, text in enumerate(["text", "same", "same"]):
            sheet.write_string(row, 0, text)
    assert as_arrow(path)["text"].to_pylist() == ["same", "same"]


def test_a_large_sheet_comes_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_files, "BATCH_ROWS", 40)
    monkeypatch.setattr(workbook, "_PIECE", 1_000)
    parts, _ = open_parts(saved(tmp_path / "t.xlsx", [["id", "text"], *([number, "a"] for number in range(100))]))
    assert parts.rows == 100
    assert [len(table) for table in parts.batches(parts.schema)] == [40, 40, 20]


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


def write(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    with path.open("wb") as file, closing(WorkbookWriter(file, path.name)) as book:
        book.write(pa.table([list(column) for column in zip(*rows, strict=True)], names=list(header)))


def cells(path: Path, sheet: int = 0) -> list[list[Any]]:
    return CalamineWorkbook.from_path(path).get_sheet_by_index(sheet).to_python()


def test_cells_are_what_they_were(tmp_path: Path) -> None:
    row = ["007", 1, 0.25, True, None, "=1+1", "http://example.org", "+cmd|' /C calc'!A0", "<r><t>x</t></r>", 2**60]
    write(tmp_path / "a.xlsx", [f"c{i}" for i in range(11)], [[*row, "one\r\ntwo\rthree"]])
    found = list(openpyxl.load_workbook(tmp_path / "a.xlsx")["rows"][2])
    assert [cell.value for cell in found] == [*row[:-2], "<r><t>x</t></r> ", str(2**60), "one\ntwo\nthree"]
    assert [cell.data_type for cell in found] == ["s", "n", "n", "b", "n", "s", "s", "s", "s", "s", "s"]
    assert not any(cell.hyperlink for cell in found)


@settings(max_examples=15, deadline=None)
@given(
    texts=st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\ufffe\uffff"), min_size=1))
)
def test_texts_come_back_as_they_were(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    path = tmp_path_factory.mktemp("book") / "a.xlsx"
    write(path, ["text"], [[text] for text in [*texts, "no number"]])
    assert [row[0] for row in cells(path)[1:-1]] == texts


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
