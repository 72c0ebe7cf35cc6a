"""Sheets of workbooks: `.xlsx`, `.xlsm`, `.xls` and `.ods`; cells are texts, as a person sees them."""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from pcs_annotator.base.errors import TableError
from pcs_annotator.base.text import first_line
from pcs_annotator.tables import table_files
from pcs_annotator.tables.arrow import pa
from pcs_annotator.tables.table_files import Contents, TableFile

if TYPE_CHECKING:
    from python_calamine import CalamineSheet, CalamineWorkbook

BATCH_ROWS = 10_000
MOST_CELLS = 50_000_000  # a small file can have its last cell in the last row and column, and all before take memory
_PIECE = 1024**2
_TEXTS = "xl/sharedStrings.xml"
_SHEETS = "content.xml"  # all sheets of an OpenDocument spreadsheet
_LAST_ROW = re.compile(rb'<(?:\w+:)?row\b[^>]*?\br="(\d+)"')
_LAST_COLUMN = re.compile(rb'<(?:\w+:)?c\b[^>]*?\br="([A-Z]{2,3})\d+"[^>]*(?<!/)>')
_NOT_CALCULATED = re.compile(rb'<c\b[^>]*?\br="(\w+)"[^>]*><f\b[^>]*(?:/>|>[^<]*</f>)(?:<v ?/>|<v></v>)?</c>')
_REPEATED_ROWS = re.compile(
    rb'<table:table-row\b[^>]*number-rows-repeated="(\d+)"[^>]*>(?=(?:<table:table-cell\b[^>]*/>)*'
    rb"<table:table-cell\b[^>]*value-type)"
)
"""Rows with values; empty ones come after every table."""
_REPEATED_CELL = re.compile(rb"<table:table-cell\b[^>]*value-type[^>]*>")
_REPEATED_COLUMNS = re.compile(rb'number-columns-repeated="(\d+)"')


class _Rows(NamedTuple):
    """The table on a sheet."""

    sheet: str  # the name of the sheet
    schema: pa.Schema  # the columns
    columns: Sequence[int]  # where they are on the sheet
    cells: Sequence[Sequence[Any]]  # the rows below the header, without empty ones


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkbookFile(TableFile):
    """A sheet of a workbook; read at once."""

    kind: ClassVar[str] = "workbook"
    has_compression: ClassVar[bool] = True

    def contents(self, limit: int | None = None) -> Contents:
        """Return the columns of the header."""
        self._refuse_empty()
        with self._opened() as (book, data):
            rows, sheets = self._rows(book, data), len(_visible_sheets(book))
        several = sheets > 1 and not self.reading.sheet
        note = f"has {sheets} sheets: {rows.sheet!r} is read (--sheet names another)" if several else ""
        return Contents(rows.schema, len(rows.cells), note=note)

    def batches(self, schema: pa.Schema) -> Iterator[pa.Table]:
        """Yield the rows."""
        with self._opened() as (book, data):
            rows = self._rows(book, data)
        wanted = [rows.columns[rows.schema.get_field_index(name)] for name in schema.names]
        left = iter(rows.cells)
        while batch := list(islice(left, BATCH_ROWS)):
            yield pa.table([[_as_text(cells[place]) for cells in batch] for place in wanted], schema=schema)

    @contextmanager
    def _opened(self) -> Iterator[tuple[CalamineWorkbook, bytes]]:
        """Open the workbook; what is damaged, locked or far too large is an error."""
        from python_calamine import CalamineError, CalamineWorkbook, PasswordError

        data = self._read_all()
        try:
            if "EncryptedPackage".encode("utf-16-le") in data:
                raise PasswordError
            if data.startswith(b"PK"):
                self._check_archive(_zip(data))
            with CalamineWorkbook.from_filelike(io.BytesIO(data)) as book:
                yield book, data
        except PasswordError:
            raise TableError(f"{self.name} is protected with a password: save a copy without one") from None
        except (CalamineError, zipfile.BadZipFile, zlib.error, LookupError, EOFError) as error:
            self._refuse_other_kind()
            raise TableError(
                f"{self.name} is damaged ({first_line(error)}): open it in a spreadsheet program and save it again"
            ) from error

    def _rows(self, book: CalamineWorkbook, data: bytes) -> _Rows:
        names = book.sheet_names
        if self.reading.sheet:
            return self._table(self._sheet(book, data, self._wanted(names)))
        for place in _visible_sheets(book):
            sheet = self._sheet(book, data, place)
            if sum(any(cell != "" for cell in row) for row in sheet.iter_rows()) > 1:
                return self._table(sheet)
        raise TableError(
            f"{self.name} has no sheet with a header and rows (there are {', '.join(map(repr, names))}): name one with "
            "--sheet, or add texts to label"
        )

    def _wanted(self, names: Sequence[str]) -> int:
        """Return the number, from 0, of the sheet that was asked for."""
        given = self.reading.sheet
        if given in names:
            return names.index(given)
        if given.isdecimal() and 1 <= int(given) <= len(names):
            return int(given) - 1
        alike = [place for place, name in enumerate(names) if name.strip().casefold() == given.strip().casefold()]
        if len(alike) == 1:
            return alike[0]
        raise TableError(f"{self.name} has no sheet {given!r} (--sheet); there are {', '.join(map(repr, names))}")

    def _sheet(self, book: CalamineWorkbook, data: bytes, place: int) -> CalamineSheet:
        if data.startswith(b"PK") and _SHEETS not in _zip(data).namelist():
            self._check_cells(_zip(data), _part(_zip(data), place))
        return book.get_sheet_by_index(place)

    def _check_archive(self, archive: zipfile.ZipFile) -> None:
        """Raise if what is unpacked as soon as a workbook is opened is too large, or not what the archive says."""
        if sum(part.file_size for part in archive.infolist()) > table_files.MOST_BYTES_UNPACKED:
            raise table_files.too_large(self.name)
        for part in {_TEXTS, _SHEETS} & {*archive.namelist()}:
            self._check_cells(archive, part)

    def _check_cells(self, archive: zipfile.ZipFile, part: str) -> None:
        """Raise if a sheet has cells far from the others, or formulas without a result; all its bytes are checked."""
        from xlsxwriter.utility import xl_cell_to_rowcol

        rows, columns = 1, 1
        for piece in _pieces(archive, part):
            rows = max([rows, *map(int, _LAST_ROW.findall(piece))])
            last = max(_LAST_COLUMN.findall(piece), key=lambda name: (len(name), name), default=b"A")
            columns = max(columns, xl_cell_to_rowcol(f"{last.decode()}1")[1] + 1)
            rows += sum(map(int, _REPEATED_ROWS.findall(piece)))
            for cell in _REPEATED_CELL.findall(piece):
                columns = max([columns, *map(int, _REPEATED_COLUMNS.findall(cell))])
            empty = _NOT_CALCULATED.search(piece)
            if empty:
                raise TableError(
                    f"{self.name}: the formula in cell {empty[1].decode()} has no result: open the file in a "
                    "spreadsheet program and save it again"
                )
            if rows * columns > MOST_CELLS:
                raise TableError(
                    f"{self.name}: the cells of the sheet reach to row {rows:,}, column {columns:,}, far beyond a "
                    "table: delete the rows and columns after it, or save it as CSV"
                )

    def _table(self, sheet: CalamineSheet) -> _Rows:
        from xlsxwriter.utility import xl_range

        where = f"{self.name}, sheet {sheet.name!r}"
        found = [row for row in sheet.iter_rows() if any(cell != "" for cell in row)]
        if not found:
            raise TableError(f"{where} is empty: it needs a header and at least one row")
        header, *cells = found
        widths = [sum(cell != "" for cell in row) for row in found[:2]]
        if len(found) > 1 and widths[0] == 1 < widths[1]:
            raise TableError(
                f"{where}: {str(next(filter(None, header)))[:60]!r} seems to be a title above the header: delete the "
                "rows above the names of the columns"
            )
        first, end = (sheet.start or (0, 0))[1], sheet.end or (0, 0)
        merged = next((one for one in sheet.merged_cell_ranges or () if one[0] <= end and one[0][1] <= end[1]), None)
        if merged is not None:
            raise TableError(
                f"{where}: the cells {xl_range(*merged[0], *merged[1])} are merged: split them, and give every column "
                "a name and every row its own values"
            )
        columns = [place for place in range(len(header)) if any(row[place] != "" for row in found)]
        named = [_as_text(header[place]) or f"column_{first + place + 1}" for place in columns]
        return _Rows(sheet.name, table_files.schema_of_texts(named, where), columns, cells)


def _visible_sheets(book: CalamineWorkbook) -> list[int]:
    """Return which sheets, from 0, have cells and are not hidden."""
    from python_calamine import SheetTypeEnum, SheetVisibleEnum

    shown = (SheetVisibleEnum.Visible, SheetTypeEnum.WorkSheet)
    return [place for place, one in enumerate(book.sheets_metadata) if (one.visible, one.typ) == shown]


def _zip(data: bytes) -> zipfile.ZipFile:
    return zipfile.ZipFile(io.BytesIO(data))


def _part(archive: zipfile.ZipFile, place: int) -> str:
    """Return the file in the archive of an Excel workbook that has the cells of a sheet."""
    sheets = re.findall(rb'<(?:\w+:)?sheet\b[^>]*\br?:?id="([^"]+)"', archive.read("xl/workbook.xml"))
    links = re.findall(rb"<(?:\w+:)?Relationship\b[^>]*>", archive.read("xl/_rels/workbook.xml.rels"))
    targets = {_attribute(link, b"Id"): _attribute(link, b"Target") for link in links}
    target = targets[sheets[place].decode()]
    return target[1:] if target.startswith("/") else f"xl/{target}"


def _attribute(tag: bytes, name: bytes) -> str:
    found = re.search(rb"\b" + name + rb'="([^"]*)"', tag)
    return found[1].decode() if found else ""


def _pieces(archive: zipfile.ZipFile, part: str) -> Iterator[bytes]:
    """Yield a file of an archive in pieces that are cut before a cell."""
    rest = b""
    with archive.open(part) as stream:
        while block := stream.read(_PIECE):
            piece = rest + block
            cut = max(piece.rfind(b"<c "), piece.rfind(b"<row "), piece.rfind(b"<table:table-row"))
            yield piece[:cut]
            rest = piece[cut:]
    yield rest


def _as_text(cell: Any) -> str | None:
    """Return a cell as a person sees it: `1` rather than 1.0, and dates as `2026-03-01`."""
    if isinstance(cell, str):
        return cell or None
    if isinstance(cell, bool):
        return str(cell).upper()
    if isinstance(cell, datetime):
        return cell.isoformat(" ", "seconds")
    if isinstance(cell, date | time):
        return cell.isoformat()
    if isinstance(cell, timedelta):
        minutes, seconds = divmod(round(cell.total_seconds()), 60)
        return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
    return number_text(cell)


def number_text(number: float) -> str:
    """Return a number as spreadsheets show it, which have 15 digits.

    >>> number_text(1.0), number_text(0.1 + 0.2)
    ('1', '0.3')
    """
    return str(int(number)) if abs(number) < 1e15 and number == int(number) else f"{number:.15g}"
