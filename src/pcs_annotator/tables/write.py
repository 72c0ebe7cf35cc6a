"""May this file be written, and how: one policy for every file that somebody names, and the writers of tables."""

import csv
import io
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path, PurePath
from types import SimpleNamespace
from typing import Any, BinaryIO, Protocol

from pcs_annotator.base.errors import TableError
from pcs_annotator.tables import source_files
from pcs_annotator.tables.arrow import pa
from pcs_annotator.tables.files import atomic_path, check_ending, extension, set_aside, write_json, write_page
from pcs_annotator.tables.parquet import ParquetWriter
from pcs_annotator.tables.source_files import STDIO, WORKBOOK, Dialect, name_parts
from pcs_annotator.tables.workbook import WorkbookWriter, safe_cell

PAGES = (".html", ".htm")
_TEXTS = (".csv", ".tsv", ".jsonl")
WRITTEN = (
    *_TEXTS,
    ".parquet",
    ".pq",
    WORKBOOK,
    *(f"{text}{packed}" for text in _TEXTS for packed in source_files.COMPRESSIONS),
)
"""Extensions of the tables that we write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputPolicy:
    """Never writes over a file: one in the way is an error or, with `replace`, kept under a dated name.

    The files of a run folder belong to the run, which writes them again without asking, with `write_table` and the
    like. The usual policy writes for programs: UTF-8, with commas.
    """

    replace: bool = False  # whether a file in the way is kept under a dated name
    dialect: Dialect = field(default_factory=Dialect)  # how CSV files are written; a `.tsv` file always has tabs
    spreadsheet_safe: bool = False  # whether formulas in cells of CSV files get an apostrophe; see `safe_cell`
    kind: str = "csv"  # the format of a file without an extension, and of standard output: `csv`, `tsv` or `jsonl`

    def check(self, out: Path, endings: Sequence[str] = WRITTEN, inputs: Sequence[Path | None] = ()) -> None:
        """Raise, before any work is done, for a file that cannot or must not be written; `inputs` are read."""
        if out == STDIO:
            return
        check_ending(out, endings)
        for path in inputs:
            if path is not None and out.exists() and path.exists() and out.samefile(path):
                raise TableError(f"{out} is read here, and would be overwritten: name another file to write")
        if not self.replace and out.exists():
            remedy = "name another file with -o, or add --replace, which keeps it under a dated name"
            raise TableError(f"{out} exists: {remedy}")

    def make_way(self, out: Path) -> Path | None:
        """Keep a file in the way under a dated name; return where it is now, or None if there was none."""
        if out == STDIO or not out.exists():
            return None
        self.check(out, [extension(out).lower()])
        return set_aside(out)

    def write_page(self, out: Path, text: str) -> Path:
        """Write a text whole or not at all, and return where it is."""
        self.make_way(out)
        write_page(out, text)
        return out

    def write_json(self, out: Path, values: Mapping[str, Any]) -> None:
        """Write values as readable JSON, with the schema number first."""
        self.make_way(out)
        write_json(out, values)

    def write_table(self, out: Path, table: pa.Table) -> None:
        """Write a table whole or not at all."""
        self.make_way(out)
        write_table(out, table, self)


STRICT = OutputPolicy()


class TableWriter(Protocol):
    """A table that is being written; all tables that it gets must have the columns of the first."""

    def write(self, table: pa.Table) -> None:
        """Add rows."""

    def close(self) -> None:
        """Write what is left to be written."""


def write_table(path: Path, table: pa.Table, policy: OutputPolicy = STRICT) -> None:
    """Write a table whole or not at all; see `writing_table`."""
    with writing_table(path, policy) as writer:
        writer.write(table)


@contextmanager
def writing_table(path: Path, policy: OutputPolicy = STRICT) -> Iterator[TableWriter]:
    """Yield what adds rows to a new file, which replaces an earlier one at the end; if there is an error, it does not.

    The extension says how the table is written. On standard output, rows appear as they come.
    """
    with _opened(path) as file:
        writer = _writer(file, path.name, policy)
        try:
            yield writer
        except BaseException:
            with suppress(Exception):  # the first error is the one to report
                writer.close()
            raise
        writer.close()


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    if path == STDIO:
        with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as file:
            yield file
    else:
        check_ending(path, WRITTEN)
        with atomic_path(path) as temporary, temporary.open("wb") as file:
            yield file


def _writer(file: BinaryIO, name: str, policy: OutputPolicy) -> TableWriter:
    ending = name_parts(name if extension(PurePath(name)) else f"{name}.{policy.kind}")
    if ending.format == source_files.PARQUET:
        return ParquetWriter(file)
    if ending.format == WORKBOOK:
        return WorkbookWriter(file, name)
    packed = file if ending.compression is None else pa.CompressedOutputStream(file, ending.compression)
    if ending.format == source_files.JSON_LINES:
        return _JsonLinesWriter(packed)
    dialect = replace(policy.dialect, delimiter="\t") if ending.suffix.lower() == ".tsv" else policy.dialect
    return _CsvWriter(packed, dialect, safe_cell if policy.spreadsheet_safe else None)


class _CsvWriter:
    def __init__(self, file: Any, dialect: Dialect, changed: Callable[[Any], Any] | None) -> None:
        self._text = io.TextIOWrapper(file, encoding="utf-8-sig" if dialect.bom else "utf-8", newline="")
        self._rows = csv.writer(
            SimpleNamespace(write=lambda row: self._text.write(row.removesuffix("\r\n") + dialect.line_end)),
            delimiter=dialect.delimiter,
            lineterminator="\r\n",  # so that a cell with either of the two is in quotes
            quoting=csv.QUOTE_ALL if dialect.quote_all else csv.QUOTE_MINIMAL,  # pyarrow would quote every text
        )
        self._cells = iter if changed is None else partial(map, changed)
        self._begun = False

    def write(self, table: pa.Table) -> None:
        if not self._begun:
            self._rows.writerow(self._cells(table.column_names))
            self._begun = True
        for batch in table.to_batches():
            rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
            self._rows.writerows(map(self._cells, rows))

    def close(self) -> None:
        self._text.close()


class _JsonLinesWriter:
    def __init__(self, file: Any) -> None:
        self._file, self.close = file, file.close

    def write(self, table: pa.Table) -> None:
        import orjson

        for batch in table.to_batches():
            lines = (orjson.dumps(row, default=str, option=orjson.OPT_APPEND_NEWLINE) for row in batch.to_pylist())
            self._file.write(b"".join(lines))
