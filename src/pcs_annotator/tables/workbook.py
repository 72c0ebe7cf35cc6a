"""Tables for spreadsheets: cells as they are, never run as formulas or turned into links, comfortable to read."""

import json
import math
import re
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal
from numbers import Real
from typing import Any, BinaryIO
from unicodedata import east_asian_width

from pcs_annotator.base.errors import TableError, warn_user

WORKBOOK = ".xlsx"
MOST_ROWS = 1_048_575  # an Excel sheet has one row more, for the header
MOST_CHARACTERS = 32_767  # in a cell; counted as Excel does, which counts an emoji as two

_WIDEST = 60
_MEASURED_ROWS = 200
_NUMBER = re.compile(r"-?(0|[1-9]\d{0,14})(\.\d{1,15})?")
_EXACT = 2**53
_FORMULA = re.compile(r"'*[=+\-@＝＋－＠\t\r\n]")  # a cell that may be run as a formula, or was made safe

Cell = Any  # a text, a number, a truth value, a date or None; anything else is written as JSON


def refuse_too_many_rows(rows: int, name: str) -> None:
    """Raise if a sheet cannot have this number of rows."""
    if rows > MOST_ROWS:
        raise TableError(
            f"{name}: an Excel sheet has at most {MOST_ROWS:,} rows and a header: write .parquet or .csv instead"
        )


class Book:
    """A workbook of one sheet that is being written, with memory that does not grow with its rows.

    The header stays in view, every column has a filter and is as wide as what is in it. Texts that are too long for a
    cell are cut, with a warning; too many rows are an error.
    """

    def __init__(self, file: BinaryIO, name: str) -> None:
        """Begin a workbook; it is called `name` in messages."""
        from xlsxwriter import Workbook

        self._name = name
        self._book = Workbook(file, {"constant_memory": True})
        self._formats: dict[str, Any] = {}
        self._sheet: Any = None

    def begin(self, header: Sequence[str]) -> None:
        """Write the header; the rows are still to come."""
        self._sheet = self._book.add_worksheet("rows")
        self._rows = self._cut = 0
        self._widths = [_width(name) + 3 for name in header]  # room for the button of the filter
        self._sheet.freeze_panes(1, 0)
        bold = self._book.add_format({"bold": True, "bottom": 1, "valign": "top", "text_wrap": True})
        for column, name in enumerate(header):
            self._sheet.write_string(0, column, self._fitting(name), bold)

    def write(self, rows: Iterable[Sequence[Cell]]) -> None:
        """Add rows to the sheet."""
        for row in rows:
            self._rows += 1
            refuse_too_many_rows(self._rows, self._name)
            for column, cell in enumerate(row):
                self._write_cell(column, cell)

    def close(self) -> None:
        """Finish the workbook."""
        from xlsxwriter.exceptions import FileSizeError

        self._finish()
        try:
            self._book.close()
        except FileSizeError:
            raise TableError(f"{self._name} is too large for Excel: write .parquet or .csv instead") from None

    def _write_cell(self, column: int, cell: Cell) -> None:
        place = (self._rows, column)
        if self._rows <= _MEASURED_ROWS:
            self._widths[column] = max(self._widths[column], _width(cell))
        if cell is None or cell == "" or (isinstance(cell, Real | Decimal) and not math.isfinite(cell)):
            self._sheet.write_blank(*place, None, self._format())
        elif isinstance(cell, bool):
            self._sheet.write_boolean(*place, cell, self._format())
        elif isinstance(cell, Real | Decimal) and abs(float(cell)) <= _EXACT:
            self._sheet.write_number(*place, cell, self._format())
        elif isinstance(cell, date) and getattr(cell, "tzinfo", None) is None and cell.year >= 1900:
            how = "yyyy-mm-dd hh:mm:ss" if isinstance(cell, datetime) else "yyyy-mm-dd"
            self._sheet.write_datetime(*place, cell, self._format(how))
        else:
            self._sheet.write_string(*place, self._fitting(_as_text(cell)), self._format())

    def _format(self, number: str = "") -> Any:
        """Return how cells look."""
        if number not in self._formats:
            how = {"num_format": number} if number else {"text_wrap": True}
            self._formats[number] = self._book.add_format({"valign": "top", **how})
        return self._formats[number]

    def _fitting(self, text: str) -> str:
        """Return a text as a cell can hold it."""
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        if len(text) * 2 > MOST_CHARACTERS and len(units := text.encode("utf-16-le")) > 2 * MOST_CHARACTERS:
            self._cut += 1
            text = units[: 2 * MOST_CHARACTERS].decode("utf-16-le", "ignore")
        # xlsxwriter takes this for markup
        return f"{text} " if text.startswith("<r>") and text.endswith("</r>") else text

    def _finish(self) -> None:
        """Set what depends on all rows; say how many texts were cut."""
        if self._sheet is None:
            return
        for column, width in enumerate(self._widths):
            self._sheet.set_column(column, column, min(width, _WIDEST))
        self._sheet.autofilter(0, 0, self._rows, len(self._widths) - 1)
        if self._cut:
            warn_user(
                f"{self._name}: {self._cut:,} texts were cut, because they have more than {MOST_CHARACTERS:,} "
                "characters, and a cell holds no more; .csv, .jsonl and .parquet hold them whole"
            )


def _as_text(cell: Cell) -> str:
    if isinstance(cell, str):
        return cell
    return json.dumps(cell, ensure_ascii=False, default=str) if isinstance(cell, list | dict) else str(cell)


def _width(cell: Cell) -> int:
    """Return about how wide a cell is, in characters."""
    longest = max(_as_text(cell)[: 4 * _WIDEST].splitlines(), key=len, default="") if cell is not None else ""
    return len(longest) + (0 if longest.isascii() else sum(east_asian_width(one) in "WF" for one in longest)) + 1


def number_cells(column: Sequence[Cell]) -> Sequence[Cell]:
    """Return texts as numbers if all of them are numbers that would be written the same way; else as they are.

    A column of a CSV file is read as texts. `007`, `1.50` and long numbers, which identify something, stay texts.
    """
    given = [cell for cell in column if cell not in (None, "")]
    if not all(isinstance(one, str) and _NUMBER.fullmatch(one) and str(_number(one)) == one for one in given or [None]):
        return column
    return [cell and _number(cell) for cell in column]


def _number(text: str) -> int | float:
    return float(text) if "." in text else int(text)


def safe_cell(cell: Any) -> Any:
    """Return a cell so that a spreadsheet shows it instead of running it: an apostrophe is put before a formula."""
    return f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) else cell


def original_cell(cell: str) -> str:
    """Return the cell that `safe_cell` was given."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell
