"""Formats of tables, read in batches: JSON Lines, JSON and Parquet; and which class reads which file."""

import hashlib
import io
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from pcs_annotator.base.errors import TableError, warn_user
from pcs_annotator.base.text import first_line
from pcs_annotator.tables import table_files
from pcs_annotator.tables.arrow import pa, parquet
from pcs_annotator.tables.delimited import CsvFile
from pcs_annotator.tables.sheets import WorkbookFile
from pcs_annotator.tables.table_files import AS_FOUND, Contents, Reading, TableFile, TextFile

BATCH_ROWS = 10_000
PAGE_BUFFER = 256 * 1024  # how many bytes of a column of a Parquet file are read at a time


def table_file(
    name: str,
    size: int,
    open: Callable[[], Any],
    version: Callable[[], str],
    *,
    remote: bool = False,
    reading: Reading = AS_FOUND,
) -> TableFile:
    """Return a file of a table; its extension says how to read it, or its first bytes if that is unknown."""
    ending = table_files.ending_of(name)
    kind = _KINDS.get(ending.kind)
    if kind is None:
        with open() as raw:
            kind = _KINDS.get(table_files.kind_of(raw.read(table_files.HEAD)), CsvFile)
    for option, value, kinds, what in (
        ("--encoding", reading.encoding, TextFile, "is not a text file"),
        ("--sheet", reading.sheet, WorkbookFile, "has no sheets"),
    ):
        if value and not issubclass(kind, kinds):
            raise TableError(f"{name} {what}: leave {option} out, or the setting of that name in pcs.toml")
    packed = ending.compression
    return kind(name=name, size=size, open=open, version=version, compression=packed, remote=remote, reading=reading)


def local_file(path: Path, name: str = "", reading: Reading = AS_FOUND) -> TableFile:
    """Return a file on this machine, called `name` in messages; one that cannot be a table is an error."""
    # os.path accepts a name that is too long for any file; Path raises an error
    if os.path.isdir(path):
        raise TableError(f"{path} is a folder: name a CSV, Excel, JSON or Parquet file in it")
    if not os.path.exists(path):
        raise TableError(f"there is no file {path}: check the name and the folder")
    if not os.path.isfile(path):
        raise TableError(f"{path} is not a regular file: save the table to a file first, or give it as - on stdin")
    name = name or path.name

    def version() -> str:
        try:
            with path.open("rb") as opened:
                return hashlib.file_digest(opened, "sha256").hexdigest()
        except OSError as error:
            raise TableError(f"{name} cannot be read ({error.strerror}): restore it, and start again") from error

    return table_file(name, path.stat().st_size, lambda: pa.OSFile(os.fspath(path)), version, reading=reading)


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonLinesFile(TextFile):
    """One object per line; values are read as texts, as a CSV file would hold them."""

    kind: ClassVar[str] = "JSONL"

    def contents(self, limit: int | None = None) -> Contents:
        """Return the columns of all rows: one may have a key that none before it had."""
        names: dict[str, None] = {}
        rows = 0
        with self._explained():
            self._encoding(limit)
        for row, _ in islice(self._rows(_parsed_quickly), limit):
            rows += 1
            if not row.keys() <= names.keys():
                names.update(dict.fromkeys(row))
        return Contents(table_files.schema_of_texts(list(names), self.name), rows, note=self._note())

    def batches(self, schema: pa.Schema) -> Iterator[pa.Table]:
        """Yield the rows, about as many at a time as fit into a block."""
        batch: list[dict[str, Any]] = []
        size = 0
        for row, length in self._rows(json.loads):
            batch.append(row)
            size += length
            if len(batch) == BATCH_ROWS or size > table_files.USUAL_BLOCK:
                yield _table_of(batch, schema, self.name)
                batch, size = [], 0
        if batch:
            yield _table_of(batch, schema, self.name)

    def _rows(self, parse: Callable[[str], Any]) -> Iterable[tuple[dict[str, Any], int]]:
        """Yield every row with the length of its line."""
        row = 0
        with self._explained(), io.TextIOWrapper(self._utf8(), encoding="utf-8-sig") as lines:
            for number, line in enumerate(iter(partial(lines.readline, table_files.BLOCK), ""), 1):
                if line.isspace():
                    continue
                row += 1
                try:
                    found = parse(line)
                except (ValueError, RecursionError) as error:
                    if number == 1:
                        self._refuse_other_kind()
                    raise _not_json(error, f"{self.name}, line {number}") from None
                if row == 1 and isinstance(found, list):
                    self._refuse_other_kind()
                yield _as_row(found, row, self.name, line), len(line)


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonFile(JsonLinesFile):
    """A list of objects; read at once."""

    kind: ClassVar[str] = "JSON"

    def _rows(self, parse: Callable[[str], Any]) -> Iterable[tuple[dict[str, Any], int]]:
        self._refuse_empty()
        with self._explained():
            text = self._read_all().decode(self._encoding().name).removeprefix("\ufeff")
        try:
            rows = parse(text)
        except (ValueError, RecursionError) as error:
            self._refuse_other_kind()
            raise _not_json(error, self.name) from None
        if not isinstance(rows, list):
            raise TableError(f"{self.name} holds a {type(rows).__name__}: it must be a list of objects, one per row")
        return [(_as_row(row, number, self.name, text), 0) for number, row in enumerate(rows, 1)]


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


_ESCAPED_HALF = re.compile(r"\\u[dD]")  # what may be half of a character


def _table_of(rows: Sequence[dict[str, Any]], schema: pa.Schema, name: str) -> pa.Table:
    columns = [[as_cell(row.get(key)) for row in rows] for key in schema.names]
    try:
        return pa.table(columns, schema=schema)
    except UnicodeEncodeError:
        warn_user(f"{name} has lone surrogates, which are halves of characters: they are replaced by U+FFFD")
    return pa.table([[cell and _without_surrogates(cell) for cell in column] for column in columns], schema=schema)


def _without_surrogates(text: str) -> str:
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


def as_cell(value: Any) -> str | None:
    """Return a JSON value as text, as a CSV file would hold it."""
    if value is None or isinstance(value, str):
        return value
    return str(value) if type(value) is int else _JSON.encode(value)


_JSON = json.JSONEncoder(ensure_ascii=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetFile(TableFile):
    """A Parquet file, read a few rows at a time, however large its row groups are."""

    kind: ClassVar[str] = "Parquet"
    has_compression: ClassVar[bool] = True

    def contents(self, limit: int | None = None) -> Contents:
        """Return what its footer says."""
        self._refuse_empty()
        with self._explained(), self._seekable() as raw:
            file = parquet.ParquetFile(raw)
            schema, rows = file.schema_arrow, file.metadata.num_rows
        table_files.refuse_repeated(schema.names, self.name)
        return Contents(schema, rows)

    def batches(self, schema: pa.Schema) -> Iterator[pa.Table]:
        """Yield the rows, about as many at a time as fit into a block."""
        with self._explained(), self._seekable() as raw:
            # at an address, each read is a request: few large ones are better
            buffer = 0 if self.remote else PAGE_BUFFER
            file = parquet.ParquetFile(raw, buffer_size=buffer, pre_buffer=self.remote, page_checksum_verification=True)
            about = file.metadata
            size = sum(about.row_group(group).total_byte_size for group in range(about.num_row_groups))
            rows = max(1, min(BATCH_ROWS, about.num_rows * table_files.USUAL_BLOCK // max(size, 1)))
            for group in range(about.num_row_groups):  # one after the other, in case that a later one is damaged
                for batch in file.iter_batches(rows, [group], schema.names, use_threads=False):
                    table = pa.Table.from_batches([batch]).select(schema.names)
                    table.validate(full=True)  # a damaged page may have bytes that are no text
                    yield table if table.schema == schema else table.cast(schema)


_KINDS: dict[str, type[TableFile]] = {
    **dict.fromkeys(table_files.TEXTS, CsvFile),
    **dict.fromkeys(table_files.JSON_LINES, JsonLinesFile),
    ".json": JsonFile,
    **dict.fromkeys(table_files.PARQUET, ParquetFile),
    **dict.fromkeys(table_files.WORKBOOKS, WorkbookFile),
}
