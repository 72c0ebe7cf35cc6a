"""Writing tables, at once or in pieces: CSV and JSON Lines (also compressed), Parquet and Excel workbooks."""

import csv
import errno
import io
import os
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, BinaryIO

from pcs_annotator.base.errors import TableError
from pcs_annotator.tables.arrow import pa, parquet
from pcs_annotator.tables.files import WEB, atomic_path, check_ending, explained, file_system, shown_address
from pcs_annotator.tables.table_files import COMPRESSIONS, JSON_LINES, PARQUET, STDIO, Dialect, ending_of, split_name
from pcs_annotator.tables.tabular import is_address
from pcs_annotator.tables.workbook import WORKBOOK, Book, number_cells, safe_cell

_TEXTS = (".csv", ".tsv", ".jsonl")
WRITTEN = (*_TEXTS, *PARQUET, WORKBOOK, *(f"{ending}{packed}" for ending in _TEXTS for packed in COMPRESSIONS))
"""Extensions of the tables that we write."""
GROUP_ROWS = 50_000
GROUP_BYTES = 32 * 1024**2  # of a Parquet file written at a time: many small groups are slow to read


class TableWriter(ABC):
    """A table that is being written; all tables that it gets must have the columns of the first."""

    @abstractmethod
    def write(self, table: pa.Table) -> None:
        """Add rows."""

    @abstractmethod
    def close(self) -> None:
        """Write what is left to be written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStyle:
    """How tables are written for people."""

    dialect: Dialect = field(default_factory=Dialect)  # how CSV files are written; a `.tsv` file always has tabs
    spreadsheet_safe: bool = False  # whether formulas in cells of CSV files get an apostrophe; see `safe_cell`
    kind: str = "csv"  # the format of a file without an extension, and of standard output: `csv`, `tsv` or `jsonl`


PLAIN = TableStyle()  # for programs: UTF-8, with commas


@contextmanager
def writing_table(place: Path | str, style: TableStyle = PLAIN) -> Iterator[TableWriter]:
    """Yield what adds rows to a new file, which replaces an earlier one at the end; if there is an error, it does not.

    The extension says how the table is written. A file for an address is written on this machine (`TMPDIR`) first.
    On standard output, rows appear as they come.
    """
    name = PurePosixPath(place).name
    with _opened(place) as file:
        writer = _writer(file, name, style)
        try:
            yield writer
        except BaseException:
            with suppress(Exception):  # the first error is the one to report
                writer.close()
            raise
        writer.close()


@contextmanager
def _opened(place: Path | str) -> Iterator[BinaryIO]:
    if place == STDIO:
        with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as file:
            yield file
    else:
        with _temporary(place) as temporary, temporary.open("wb") as file:
            yield file


def _writer(file: BinaryIO, name: str, style: TableStyle) -> TableWriter:
    ending = ending_of(name if split_name(PurePath(name))[1] else f"{name}.{style.kind}")
    if ending.kind in PARQUET:
        return ParquetTableWriter(file)
    if ending.kind == WORKBOOK:
        return _WorkbookWriter(Book(file, name))
    packed = file if ending.compression is None else pa.CompressedOutputStream(file, ending.compression)
    if ending.kind in JSON_LINES:
        return _JsonLinesWriter(packed)
    dialect = replace(style.dialect, delimiter="\t") if ending.kind == ".tsv" else style.dialect
    return _CsvWriter(packed, dialect, spreadsheet_safe=style.spreadsheet_safe)


@contextmanager
def _temporary(place: Path | str) -> Iterator[Path]:
    if not is_address(place):
        check_ending(Path(place), WRITTEN)
        with atomic_path(Path(place)) as temporary:
            yield temporary
        return
    address = str(place)
    if address.startswith(WEB):
        raise TableError(f"{shown_address(address)} cannot be written: name a file, or an address such as s3://…")
    check_ending(address, WRITTEN)
    system, path = file_system(address)
    with tempfile.TemporaryDirectory(prefix="pcs-") as folder:
        temporary = Path(folder) / PurePosixPath(address).name
        try:
            yield temporary
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
            raise TableError(
                f"{address} was not written, because {folder} is full: make room, or set TMPDIR to another folder"
            ) from error
        _upload(system, temporary, path, address)


def _upload(system: Any, temporary: Path, path: str, address: str) -> None:
    """Store a file under another name first, so that there is never half a file at the address."""
    unfinished = f"{path}.{os.getpid()}.part"
    try:
        with explained(address):
            system.put_file(os.fspath(temporary), unfinished)
            system.mv(unfinished, path)
    except TableError:
        with suppress(Exception):  # whatever the file system raises: the first error is the one to report
            system.rm(unfinished)
        raise


class _CsvWriter(TableWriter):
    def __init__(self, file: Any, dialect: Dialect, *, spreadsheet_safe: bool) -> None:
        self._text = io.TextIOWrapper(file, encoding="utf-8-sig" if dialect.bom else "utf-8", newline="")
        # pyarrow would quote every text
        self._writer = csv.writer(
            self._text,
            delimiter=dialect.delimiter,
            lineterminator=dialect.line_end,
            quoting=csv.QUOTE_ALL if dialect.quote_all else csv.QUOTE_MINIMAL,
        )
        self._safe = partial(map, safe_cell) if spreadsheet_safe else iter
        self._begun = False

    def write(self, table: pa.Table) -> None:
        if not self._begun:
            self._writer.writerow(self._safe(table.column_names))
            self._begun = True
        for batch in table.to_batches():
            rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
            self._writer.writerows(map(self._safe, rows))

    def close(self) -> None:
        self._text.close()


class _WorkbookWriter(TableWriter):
    def __init__(self, book: Book) -> None:
        self._book = book
        self._begun = False

    def write(self, table: pa.Table) -> None:
        if not self._begun:
            self._book.begin(table.column_names)
            self._begun = True
        columns = [number_cells(column.to_pylist()) for column in table.columns]
        self._book.write(zip(*columns, strict=True))

    def close(self) -> None:
        self._book.close()


class _JsonLinesWriter(TableWriter):
    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, table: pa.Table) -> None:
        import orjson

        for batch in table.to_batches():
            lines = (orjson.dumps(row, default=str, option=orjson.OPT_APPEND_NEWLINE) for row in batch.to_pylist())
            self._file.write(b"".join(lines))

    def close(self) -> None:
        self._file.close()


class ParquetTableWriter(TableWriter):
    """Parquet, in groups of rows that are large enough to be read quickly."""

    def __init__(self, file: BinaryIO | Path) -> None:
        self._file = file
        self._writer: Any = None
        self._waiting: list[pa.Table] = []

    def write(self, table: pa.Table) -> None:
        """Add rows."""
        if self._writer is None:
            self._writer = parquet.ParquetWriter(self._file, table.schema)
        self._waiting.append(table)
        if sum(map(len, self._waiting)) >= GROUP_ROWS or sum(one.nbytes for one in self._waiting) >= GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the rows so far, if there are any, as a group."""
        if self._waiting:
            group, self._waiting = pa.concat_tables(self._waiting), []
            self._writer.write_table(group, row_group_size=max(len(group), 1))

    def close(self) -> None:
        """Write what is left to be written."""
        self.flush()
        if self._writer is not None:
            self._writer.close()
