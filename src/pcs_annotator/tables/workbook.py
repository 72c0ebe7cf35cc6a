"""Excel workbooks, read and written: cells are texts as a person sees them, and never run as formulas."""

import io
import json
import math
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import islice
from numbers import Real
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple
from unicodedata import east_asian_width

from pcs_annotator.base.errors import TableError, warn_user
from pcs_annotator.base.text import first_line
from pcs_annotator.tables import source_files
from pcs_annotator.tables.arrow import pa
from pcs_annotator.tables.source_files import OpenedTable, SourceFile

if TYPE_CHECKING:
    from python_calamine import CalamineSheet, CalamineWorkbook

MOST_CELLS = 50_000_000  # a small file can have its last cell in the last row and column, and all before take memory
MOST_ROWS = 1_048_575  # an Excel sheet has one row more, for the header
MOST_CHARACTERS = 32_767  # in a cell; counted as Excel does, which counts an emoji as two

_PIECE = 1024**2
_SHARED_TEXTS = "xl/sharedStrings.xml"
_LAST_ROW = re.compile(rb'<(?:\w+:)?row\b[^>]*?\br="(\d+)"')
_LAST_COLUMN = re.compile(rb'<(?:\w+:)?c\b[^>]*?\br="([A-Z]{2,3})\d+"[^>]*(?<!/)>')
_NOT_CALCULATED = re.compile(rb'<c\b[^>]*?\br="(\w+)"[^>]*><f\b[^>]*(?:/>|>[^<]*</f>)(?:<v ?/>|<v></v>)?</c>')
_UNREADABLE = (LookupError, EOFError, NotImplementedError, ValueError)  # of zipfile, for damaged archives
_WIDEST = 60
_MEASURED_ROWS = 200
_NUMBER = re.compile(r"-?(0|[1-9]\d{0,14})(\.\d{1,15})?")
_EXACT = 2**53
_FORMULA = re.compile(r"'*[=+\-@＝＋－＠\t\r\n]")  # a cell that may be run as a formula, or was made safe

Cell = Any  # a text, a number, a truth value, a date or None; anything else is written as JSON


class _Sheet(NamedTuple):
    """The table on a sheet."""

    name: str
    schema: pa.Schema  # the columns
    columns: Sequence[int]  # where they are on the sheet
    rows: Sequence[Sequence[Cell]]  # the rows below the header, without empty ones


def open_workbook(file: SourceFile, limit: int | None = None) -> OpenedTable:
    """Return the columns of the header of a sheet, which is read at once."""
    with _opened(file) as (book, archive):
        sheet, sheets = _find_sheet(file, book, archive), len(_visible_sheets(book))

    def batches(schema: pa.Schema) -> Iterator[pa.Table]:
        with _opened(file) as (book, archive):
            sheet = _find_sheet(file, book, archive)
        columns = [sheet.columns[sheet.schema.get_field_index(name)] for name in schema.names]
        rows = iter(sheet.rows)
        while batch := list(islice(rows, source_files.BATCH_ROWS)):
            yield pa.table([[_shown(row[column]) for row in batch] for column in columns], schema=schema)

    several = sheets > 1 and not file.reading.sheet
    note = f"has {sheets} sheets: {sheet.name!r} is read (--sheet names another)" if several else ""
    return OpenedTable(sheet.schema, len(sheet.rows), batches, note=note)


@contextmanager
def _opened(file: SourceFile) -> Iterator[tuple["CalamineWorkbook", zipfile.ZipFile]]:
    """Open a workbook and its archive; what is damaged, locked or far too large is an error."""
    from python_calamine import CalamineError, CalamineWorkbook

    data = file.read_all()
    if "EncryptedPackage".encode("utf-16-le") in data:
        raise TableError(f"{file.name} is protected with a password: save a copy without one")
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
        if sum(part.file_size for part in archive.infolist()) > source_files.MOST_BYTES_UNPACKED:
            raise source_files.too_large(file.name)
        if _SHARED_TEXTS in archive.namelist():
            _check_cells(file, archive, _SHARED_TEXTS)
        with CalamineWorkbook.from_filelike(io.BytesIO(data)) as book:
            yield book, archive
    except TableError:
        raise
    except (CalamineError, zipfile.BadZipFile, zlib.error, *_UNREADABLE) as error:
        file.refuse_other_kind()
        raise TableError(
            f"{file.name} is damaged ({first_line(error)}): open it in a spreadsheet program and save it again"
        ) from error


def _find_sheet(file: SourceFile, book: "CalamineWorkbook", archive: zipfile.ZipFile) -> _Sheet:
    names, wanted = book.sheet_names, file.reading.sheet
    for number in [_wanted_sheet(file, names)] if wanted else _visible_sheets(book):
        _check_cells(file, archive, _part(archive, number))
        sheet = book.get_sheet_by_index(number)
        if wanted or sum(any(cell != "" for cell in row) for row in sheet.iter_rows()) > 1:
            return _table(sheet, f"{file.name}, sheet {sheet.name!r}")
    raise TableError(
        f"{file.name} has no sheet with a header and rows (there are {', '.join(map(repr, names))}): name one with "
        "--sheet, or add texts to label"
    )


def _wanted_sheet(file: SourceFile, names: Sequence[str]) -> int:
    """Return the number, from 0, of the sheet that was asked for by name or by number."""
    wanted = file.reading.sheet
    if wanted in names:
        return names.index(wanted)
    if wanted.isdecimal() and 1 <= int(wanted) <= len(names):
        return int(wanted) - 1
    alike = [number for number, name in enumerate(names) if name.strip().casefold() == wanted.strip().casefold()]
    if len(alike) == 1:
        return alike[0]
    raise TableError(f"{file.name} has no sheet {wanted!r} (--sheet); there are {', '.join(map(repr, names))}")


def _visible_sheets(book: "CalamineWorkbook") -> list[int]:
    """Return which sheets, from 0, have cells and are not hidden."""
    from python_calamine import SheetTypeEnum, SheetVisibleEnum

    shown = (SheetVisibleEnum.Visible, SheetTypeEnum.WorkSheet)
    return [number for number, about in enumerate(book.sheets_metadata) if (about.visible, about.typ) == shown]


def _check_cells(file: SourceFile, archive: zipfile.ZipFile, part: str) -> None:
    """Raise if a sheet has cells far from the others, or formulas without a result; all its bytes are checked."""
    from xlsxwriter.utility import xl_cell_to_rowcol

    rows, columns = 1, 1
    for piece in _pieces(archive, part):
        rows = max([rows, *map(int, _LAST_ROW.findall(piece))])
        last = max(_LAST_COLUMN.findall(piece), key=lambda name: (len(name), name), default=b"A")
        columns = max(columns, xl_cell_to_rowcol(f"{last.decode()}1")[1] + 1)
        if empty := _NOT_CALCULATED.search(piece):
            raise TableError(
                f"{file.name}: the formula in cell {empty[1].decode()} has no result: open the file in a spreadsheet "
                "program and save it again"
            )
        if rows * columns > MOST_CELLS:
            raise TableError(
                f"{file.name}: the cells of the sheet reach to row {rows:,}, column {columns:,}, far beyond a table: "
                "delete the rows and columns after it, or save it as CSV"
            )


def _pieces(archive: zipfile.ZipFile, part: str) -> Iterator[bytes]:
    """Yield a file of an archive in pieces that are cut before a cell."""
    rest = b""
    with archive.open(part) as stream:
        while block := stream.read(_PIECE):
            piece = rest + block
            cut = max(piece.rfind(b"<c "), piece.rfind(b"<row "))
            yield piece[:cut]
            rest = piece[cut:]
    yield rest


def _part(archive: zipfile.ZipFile, number: int) -> str:
    """Return the file in the archive that has the cells of a sheet."""
    sheets = re.findall(rb'<(?:\w+:)?sheet\b[^>]*\br?:?id="([^"]+)"', archive.read("xl/workbook.xml"))
    links = re.findall(rb"<(?:\w+:)?Relationship\b[^>]*>", archive.read("xl/_rels/workbook.xml.rels"))
    attributes = [dict(re.findall(rb'\b(Id|Target)="([^"]*)"', link)) for link in links]
    target = next(link[b"Target"] for link in attributes if link.get(b"Id") == sheets[number]).decode()
    return target[1:] if target.startswith("/") else f"xl/{target}"


def _table(sheet: "CalamineSheet", where: str) -> _Sheet:
    from xlsxwriter.utility import xl_range

    filled = [row for row in sheet.iter_rows() if any(cell != "" for cell in row)]
    if not filled:
        raise TableError(f"{where} is empty: it needs a header and at least one row")
    header, *rows = filled
    widths = [sum(cell != "" for cell in row) for row in filled[:2]]
    if len(filled) > 1 and widths[0] == 1 < widths[1]:
        raise TableError(
            f"{where}: {str(next(filter(None, header)))[:60]!r} seems to be a title above the header: delete the rows "
            "above the names of the columns"
        )
    first, end = (sheet.start or (0, 0))[1], sheet.end or (0, 0)
    for start, stop in sheet.merged_cell_ranges or ():
        if start <= end and start[1] <= end[1]:
            raise TableError(
                f"{where}: the cells {xl_range(*start, *stop)} are merged: split them, and give every column a name "
                "and every row its own values"
            )
    columns = [column for column in range(len(header)) if any(row[column] != "" for row in filled)]
    names = [_shown(header[column]) or f"column_{first + column + 1}" for column in columns]
    return _Sheet(sheet.name, source_files.text_schema(names, where), columns, rows)


def _shown(cell: Cell) -> str | None:
    """Return a cell as a person sees it: `1` rather than 1.0, 15 digits, and dates as `2026-03-01`."""
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
    return str(int(cell)) if abs(cell) < 1e15 and cell == int(cell) else f"{cell:.15g}"


def refuse_too_many_rows(rows: int, name: str) -> None:
    """Raise if a sheet cannot have this number of rows."""
    if rows > MOST_ROWS:
        raise TableError(
            f"{name}: an Excel sheet has at most {MOST_ROWS:,} rows and a header: write .parquet or .csv instead"
        )


class WorkbookWriter:
    """Writes a workbook of one sheet, with memory that does not grow with its rows.

    The header stays in view, every column has a filter and is as wide as what is in it. Texts that are too long for a
    cell are cut, with a warning; too many rows are an error.
    """

    def __init__(self, file: BinaryIO, name: str) -> None:
        """Begin a workbook; it is called `name` in messages."""
        from xlsxwriter import Workbook

        self._name = name
        self._book = Workbook(file, {"constant_memory": True})
        self._formats: dict[str, Any] = {}
        self._widths: list[int] = []
        self._sheet: Any = None
        self._rows = self._cut = 0

    def write(self, table: pa.Table) -> None:
        """Add rows."""
        if self._sheet is None:
            self._begin(table.column_names)
        columns = [number_cells(column.to_pylist()) for column in table.columns]
        for row in zip(*columns, strict=True):
            self._rows += 1
            refuse_too_many_rows(self._rows, self._name)
            for column, cell in enumerate(row):
                self._write_cell(column, cell)

    def _begin(self, header: Sequence[str]) -> None:
        self._sheet = self._book.add_worksheet("rows")
        self._widths = [_width(name) + 3 for name in header]  # room for the button of the filter
        self._sheet.freeze_panes(1, 0)
        bold = self._book.add_format({"bold": True, "bottom": 1, "valign": "top", "text_wrap": True})
        for column, name in enumerate(header):
            self._sheet.write_string(0, column, self._fitting(name), bold)

    def close(self) -> None:
        """Finish the workbook: set what depends on all rows, and say how many texts were cut."""
        from xlsxwriter.exceptions import FileSizeError

        for column, width in enumerate(self._widths):
            self._sheet.set_column(column, column, min(width, _WIDEST))
        if self._widths:
            self._sheet.autofilter(0, 0, self._rows, len(self._widths) - 1)
        if self._cut:
            warn_user(
                f"{self._name}: {self._cut:,} texts were cut, because they have more than {MOST_CHARACTERS:,} "
                "characters, and a cell holds no more; .csv, .jsonl and .parquet hold them whole"
            )
        try:
            self._book.close()
        except FileSizeError:
            raise TableError(f"{self._name} is too large for Excel: write .parquet or .csv instead") from None

    def _write_cell(self, column: int, cell: Cell) -> None:
        at = (self._rows, column)
        if self._rows <= _MEASURED_ROWS:
            self._widths[column] = max(self._widths[column], _width(cell))
        if cell is None or cell == "" or (isinstance(cell, Real | Decimal) and not math.isfinite(cell)):
            self._sheet.write_blank(*at, None, self._format())
        elif isinstance(cell, bool):
            self._sheet.write_boolean(*at, cell, self._format())
        elif isinstance(cell, Real | Decimal) and abs(float(cell)) <= _EXACT:
            self._sheet.write_number(*at, cell, self._format())
        elif isinstance(cell, date) and getattr(cell, "tzinfo", None) is None and cell.year >= 1900:
            layout = "yyyy-mm-dd hh:mm:ss" if isinstance(cell, datetime) else "yyyy-mm-dd"
            self._sheet.write_datetime(*at, cell, self._format(layout))
        else:
            self._sheet.write_string(*at, self._fitting(_as_text(cell)), self._format())

    def _format(self, number: str = "") -> Any:
        if number not in self._formats:
            look = {"num_format": number} if number else {"text_wrap": True}
            self._formats[number] = self._book.add_format({"valign": "top", **look})
        return self._formats[number]

    def _fitting(self, text: str) -> str:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        if len(text) * 2 > MOST_CHARACTERS and len(units := text.encode("utf-16-le")) > 2 * MOST_CHARACTERS:
            self._cut += 1
            text = units[: 2 * MOST_CHARACTERS].decode("utf-16-le", "ignore")
        # xlsxwriter takes this for markup
        return f"{text} " if text.startswith("<r>") and text.endswith("</r>") else text


def _as_text(cell: Cell) -> str:
    if isinstance(cell, str):
        return cell
    return json.dumps(cell, ensure_ascii=False, default=str) if isinstance(cell, list | dict) else str(cell)


def _width(cell: Cell) -> int:
    longest = max(_as_text(cell)[: 4 * _WIDEST].splitlines(), key=len, default="") if cell is not None else ""
    return len(longest) + (0 if longest.isascii() else sum(east_asian_width(sign) in "WF" for sign in longest)) + 1


def number_cells(column: Sequence[Cell]) -> Iterable[Cell]:
    """Return the texts of a column as numbers, unless one would be written differently, such as `007` or `1.50`."""
    filled = {cell for cell in column if isinstance(cell, str) and cell}
    numbers = {text: float(text) if "." in text else int(text) for text in filled if _NUMBER.fullmatch(text)}
    texts = all(cell is None or isinstance(cell, str) for cell in column)
    if not numbers or not texts or any(str(numbers.get(text)) != text for text in filled):
        return column
    return [cell and numbers[cell] for cell in column]


def safe_cell(cell: Any) -> Any:
    """Return a cell so that a spreadsheet shows it instead of running it: an apostrophe is put before a formula."""
    return f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) else cell


def original_cell(cell: str) -> str:
    """Return the cell that `safe_cell` was given."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell
