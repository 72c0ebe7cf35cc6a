"""Formats of tables, read in batches: CSV and JSON Lines (also `.gz` and `.zst`), JSON and Parquet."""

from __future__ import annotations

import codecs
import csv
import io
import json
import os
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pcs_annotator.core.table_files import (
    JSON_LINES,
    PARQUET,
    Contents,
    Dialect,
    TableFile,
    ending_of,
    first_line,
    refuse_repeated,
    refuse_too_many,
    schema_of_texts,
)
from pcs_annotator.errors import PcsWarning, TableError

if TYPE_CHECKING:
    import pyarrow as pa

DELIMITERS = ",\t;"
BATCH_ROWS = 10_000
PAGE_BUFFER = 256 * 1024
"""How many bytes of a column of a Parquet file are read at a time."""
BLOCK = 64 * 1024**2
"""The most bytes of a row."""
USUAL_BLOCK = 1 * 1024**2
"""How much of a file is in memory at a time, unless a row is longer."""


def table_file(name: str, size: int, open: Callable[[], Any], *, remote: bool = False) -> TableFile:
    """Return a file of a table; its extension says how to read it, and an unknown one is read as CSV."""
    ending = ending_of(name)
    kind = _KINDS.get(ending.kind, CsvFile)
    return kind(name=name, size=size, open=open, compression=ending.compression, remote=remote)


def local_file(path: Path, name: str = "") -> TableFile:
    """Return a file on this machine, called `name` in messages; one that cannot be a table is an error."""
    import pyarrow as pa

    # os.path accepts a name that is too long for any file; Path raises an error
    if os.path.isdir(path):
        raise TableError(f"{path} is a folder: name a CSV, JSON or Parquet file in it")
    if not os.path.exists(path):
        raise TableError(f"there is no file {path}: check the name and the folder")
    if not os.path.isfile(path):
        raise TableError(f"{path} is not a regular file: save the table to a file first")
    return table_file(name or path.name, path.stat().st_size, lambda: pa.OSFile(os.fspath(path)))


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvFile(TableFile):
    """Rows separated by commas, tabs or semicolons; all cells are texts, whatever they look like."""

    def contents(self, limit: int | None = None) -> Contents:
        """Return the columns of the header."""
        self._refuse_empty()
        with self._explained():
            names, dialect = self._header()
            if not names:
                raise EOFError("it has no header line")
        refuse_too_many(len(names), self.name)
        refuse_repeated(names, self.name)
        return Contents(schema_of_texts(names), None, dialect)

    def batches(self, schema: pa.Schema) -> Iterator[pa.Table]:
        """Yield the rows, about as many at a time as fit into a block."""
        import pyarrow as pa

        given = 0
        with self._explained():
            try:
                for table in self._parsed(USUAL_BLOCK, schema.names, skip=0):
                    yield table
                    given += len(table)
            except pa.ArrowInvalid:  # perhaps because a row is longer than a block
                yield from self._parsed(BLOCK, schema.names, skip=given)

    def _parsed(self, block: int, wanted: Sequence[str], skip: int) -> Iterator[pa.Table]:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        ragged: list[Any] = []
        names, dialect = self._header()

        def set_aside(row: Any) -> str:
            ragged.append(row)
            return "skip"

        with self._stream() as stream:
            reader = arrow_csv.open_csv(
                stream,
                # with threads, pyarrow does not know the row number
                read_options=arrow_csv.ReadOptions(use_threads=False, block_size=block),
                parse_options=arrow_csv.ParseOptions(
                    delimiter=dialect.delimiter, newlines_in_values=True, invalid_row_handler=set_aside
                ),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False, include_columns=wanted
                ),
            )
            for batch in chain(reader, [None]):
                if ragged:
                    raise _ragged(ragged[0], self.name, dialect.delimiter)
                if batch is not None and skip < len(batch):
                    yield pa.Table.from_batches([batch.slice(skip)])
                skip -= min(skip, len(batch or ()))

    def _header(self) -> tuple[list[str], Dialect]:
        """Return column names, from the first line that is not empty, and how the file is written."""
        with self._stream() as stream:
            start = stream.read(1 << 16)
        if b"\0" in start:
            raise TableError(f"{self.name} is not a text file: give a CSV or Parquet file")
        with io.TextIOWrapper(self._stream(), encoding="utf-8-sig", newline="") as lines:
            short = iter(lambda: lines.readline(BLOCK), "")
            line = next((line for line in short if line.strip("\r\n")), "")
            delimiter = max(DELIMITERS, key=line.count)
            names = next(csv.reader(chain([line], short), delimiter=delimiter), [])
        quoted = delimiter.join(f'"{name}"' for name in names)
        return names, Dialect(
            delimiter=delimiter,
            bom=start.startswith(codecs.BOM_UTF8),
            line_end="\r\n" if line.endswith("\r\n") else "\n",
            quote_all=bool(names) and line.rstrip("\r\n") == quoted,
        )


def _ragged(row: Any, name: str, delimiter: str) -> TableError:
    return TableError(
        f"{name}, row {row.number - 1}: Expected {row.expected_columns} columns, got {row.actual_columns} "
        f"({row.text[:60]!r}): complete the row, and put texts that contain {delimiter!r} in quotes"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonLinesFile(TableFile):
    """One object per line; values are read as texts, as a CSV file would hold them."""

    def contents(self, limit: int | None = None) -> Contents:
        """Return the columns of all rows: one may have a key that none before it had."""
        names: dict[str, None] = {}
        rows = 0
        for row, _ in islice(self._rows(_parsed_quickly), limit):
            rows += 1
            if not row.keys() <= names.keys():
                names.update(dict.fromkeys(row))
        refuse_too_many(len(names), self.name)
        return Contents(schema_of_texts(list(names)), rows)

    def batches(self, schema: pa.Schema) -> Iterator[pa.Table]:
        """Yield the rows, about as many at a time as fit into a block."""
        batch: list[dict[str, Any]] = []
        size = 0
        for row, length in self._rows(json.loads):
            batch.append(row)
            size += length
            if len(batch) == BATCH_ROWS or size > USUAL_BLOCK:
                yield _table_of(batch, schema, self.name)
                batch, size = [], 0
        if batch:
            yield _table_of(batch, schema, self.name)

    def _rows(self, parse: Callable[[str], Any]) -> Iterator[tuple[dict[str, Any], int]]:
        """Yield every row with the length of its line."""
        row = 0
        with self._explained(), io.TextIOWrapper(self._stream(), encoding="utf-8-sig") as lines:
            for number, line in enumerate(iter(partial(lines.readline, BLOCK), ""), 1):
                if line.isspace():
                    continue
                row += 1
                try:
                    found = parse(line)
                except (ValueError, RecursionError) as error:
                    raise _not_json(error, f"{self.name}, line {number}") from None
                yield _as_row(found, row, self.name, line), len(line)


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonFile(TableFile):
    """A list of objects; read at once."""

    def contents(self, limit: int | None = None) -> Contents:
        """Return the columns of all rows."""
        rows = self._rows()
        names = list(dict.fromkeys(key for row in rows for key in row))
        refuse_too_many(len(names), self.name)
        return Contents(schema_of_texts(names), len(rows))

    def batches(self, schema: pa.Schema) -> Iterator[pa.Table]:
        """Yield all rows."""
        yield _table_of(self._rows(), schema, self.name)

    def _rows(self) -> list[dict[str, Any]]:
        self._refuse_empty()
        with self._explained():
            text = self._read_all().decode("utf-8-sig")
        try:
            rows = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise _not_json(error, self.name) from None
        if not isinstance(rows, list):
            raise TableError(f"{self.name} holds a {type(rows).__name__}: it must be a list of objects, one per row")
        return [_as_row(row, number, self.name, text) for number, row in enumerate(rows, 1)]


def _not_json(error: Exception, where: str) -> TableError:
    if isinstance(error, RecursionError):
        return TableError(f"{where} is nested too deeply: use one object per row")
    # also a number of thousands of digits
    return TableError(f"{where} is not valid JSON ({first_line(error)}): correct it")


def _parsed_quickly(text: str) -> Any:
    """Return a row with its keys; large numbers among its values are rounded."""
    import orjson

    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:  # it is stricter, such as about halves of characters
        return json.loads(text)


def _as_row(row: Any, number: int, name: str, source: str) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise TableError(f'{name}, row {number} is {row!r:.60}: every row must be an object such as {{"text": "…"}}')
    return {_without_surrogates(key): value for key, value in row.items()} if _ESCAPED_HALF.search(source) else row


_ESCAPED_HALF = re.compile(r"\\u[dD]")
"""What may be half of a character."""


def _table_of(rows: Sequence[dict[str, Any]], schema: pa.Schema, name: str) -> pa.Table:
    import pyarrow as pa

    columns = [[_as_cell(row.get(key)) for row in rows] for key in schema.names]
    try:
        return pa.table(columns, schema=schema)
    except UnicodeEncodeError:
        warnings.warn(
            f"{name} has lone surrogates, which are halves of characters: they are replaced by U+FFFD",
            PcsWarning,
            stacklevel=6,
        )
    return pa.table([[cell and _without_surrogates(cell) for cell in column] for column in columns], schema=schema)


def _without_surrogates(text: str) -> str:
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


def _as_cell(value: Any) -> str | None:
    """Return a JSON value as text, as a CSV file would hold it."""
    if value is None or isinstance(value, str):
        return value
    return str(value) if type(value) is int else _JSON.encode(value)


_JSON = json.JSONEncoder(ensure_ascii=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetFile(TableFile):
    """A Parquet file, read a few rows at a time, however large its row groups are."""

    @property
    def packed(self) -> bool:
        """It has its own compression."""
        return True

    def contents(self, limit: int | None = None) -> Contents:
        """Return what its footer says."""
        from pyarrow import parquet

        self._refuse_empty()
        with self._explained(), self.open() as raw:
            file = parquet.ParquetFile(raw)
            schema, rows = file.schema_arrow, file.metadata.num_rows
        refuse_repeated(schema.names, self.name)
        return Contents(schema, rows)

    def batches(self, schema: pa.Schema) -> Iterator[pa.Table]:
        """Yield the rows, about as many at a time as fit into a block."""
        import pyarrow as pa
        from pyarrow import parquet

        with self._explained(), self.open() as raw:
            # at an address, each read is a request: few large ones are better
            buffer = 0 if self.remote else PAGE_BUFFER
            file = parquet.ParquetFile(raw, buffer_size=buffer, pre_buffer=self.remote, page_checksum_verification=True)
            about = file.metadata
            size = sum(about.row_group(group).total_byte_size for group in range(about.num_row_groups))
            rows = max(1, min(BATCH_ROWS, about.num_rows * USUAL_BLOCK // max(size, 1)))
            for group in range(about.num_row_groups):  # one after the other, in case that a later one is damaged
                for batch in file.iter_batches(rows, [group], schema.names, use_threads=False):
                    table = pa.Table.from_batches([batch]).select(schema.names)
                    yield table if table.schema == schema else table.cast(schema)


_KINDS: dict[str, type[TableFile]] = {
    **dict.fromkeys(PARQUET, ParquetFile),
    **dict.fromkeys(JSON_LINES, JsonLinesFile),
    ".json": JsonFile,
}
