"""Tables of any kind, in memory or in a file, as pyarrow tables, and their columns as texts."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pcs_annotator.errors import PcsWarning, TableError

if TYPE_CHECKING:
    import pyarrow as pa

PARQUET = (".parquet", ".pq")
JSON_LINES = (".jsonl", ".ndjson")
ENDINGS = (".csv", ".tsv", ".txt", ".json", *JSON_LINES, *PARQUET)
DELIMITERS = ",\t;"
MOST_COLUMNS = 10_000
MOST_ROWS = 100_000_000
MOST_BYTES_UNPACKED = 2 * 1024**3
"""A small file can hold terabytes when it is compressed."""
BLOCK = 64 * 1024**2
"""The most bytes of a row."""
EXACT = 2.0**53  # floats hold whole numbers exactly up to here


def as_arrow(table: object) -> pa.Table:
    """Return the table as pyarrow; all columns of a CSV file are texts, whatever they look like.

    Takes a path to a CSV (also `.gz`), JSON, JSONL or Parquet file, a dict of columns, or any object that supports
    the Arrow PyCapsule protocol: pandas, polars, pyarrow, DuckDB.
    """
    import pyarrow as pa

    if isinstance(table, str | os.PathLike):
        return _read_file(Path(table))
    try:
        arrow = pa.table(table)
    except (TypeError, ValueError, pa.ArrowException) as error:
        kind = type(table).__name__
        raise TableError(
            f"cannot read a {kind} as a table ({error}): give a path, a data frame or a dict of columns"
        ) from error
    # pandas adds its row index as a column of this name
    return arrow.drop_columns([name for name in arrow.column_names if name.startswith("__index_level_")])


def table_name(table: object) -> str:
    """Return the name of the table for messages."""
    return Path(table).name if isinstance(table, str | os.PathLike) else "the table"


def table_stem(path: Path) -> str:
    """Return the name of a table's file without its extension.

    >>> table_stem(Path("news.train.csv.gz"))
    'news.train'
    """
    if path.suffix.lower() == ".gz":
        path = path.with_suffix("")
    return path.stem if path.suffix.lower() in ENDINGS else path.name


def _read_file(path: Path) -> pa.Table:
    """Read a CSV, JSON or Parquet file; every problem is an error that names the file and the remedy."""
    # os.path accepts a name that is too long for any file; Path raises an error
    if os.path.isdir(path):
        raise TableError(f"{path} is a folder: name a CSV, JSON or Parquet file in it")
    if not os.path.exists(path):
        raise TableError(f"there is no file {path}: check the name and the folder")
    if not os.path.isfile(path):
        raise TableError(f"{path} is not a regular file: save the table to a file first")
    if path.stat().st_size == 0:
        raise TableError(f"{path.name} is empty: it needs a header line and at least one row")
    return _reading(path, _READERS.get(path.suffix.lower(), _read_csv))


def _reading(path: Path, read: Callable[[Path], pa.Table]) -> pa.Table:
    import pyarrow as pa

    try:
        return read(path)
    except UnicodeDecodeError as error:
        raise TableError(
            f"{path.name} is not UTF-8 text ({error.reason} at byte {error.start}): save it as UTF-8"
        ) from error
    except (OSError, EOFError, csv.Error, zlib.error, pa.ArrowException) as error:
        reason = _first_line(error)
        if "UTF8" in reason:
            raise TableError(f"{path.name} is not UTF-8 text ({reason}): save it as UTF-8") from error
        raise TableError(f"{path.name} cannot be read ({reason}): save it again as CSV or Parquet") from error


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _read_parquet(path: Path) -> pa.Table:
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        about = file.metadata
        groups = (about.row_group(group) for group in range(about.num_row_groups))
        if about.num_rows > MOST_ROWS or sum(group.total_byte_size for group in groups) > MOST_BYTES_UNPACKED:
            raise _too_large(path)
        return file.read()


def _too_large(path: Path) -> TableError:
    size = f"{MOST_BYTES_UNPACKED / 1024**3:g} GiB"
    return TableError(
        f"{path.name} is larger than {size} when unpacked: split it, or save it as CSV without compression"
    )


def _read_json_lines(path: Path) -> pa.Table:
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8-sig").split("\n"), 1):
        if line.strip():
            rows.append(_parsed_json(line, f"{path.name}, line {number}"))
    return _table_of(rows, path.name)


def _read_json(path: Path) -> pa.Table:
    rows = _parsed_json(path.read_text(encoding="utf-8-sig"), path.name)
    if not isinstance(rows, list):
        raise TableError(f"{path.name} holds a {type(rows).__name__}: it must be a list of objects, one per row")
    return _table_of(rows, path.name)


def _parsed_json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:  # also a number of thousands of digits
        raise TableError(f"{where} is not valid JSON ({_first_line(error)}): correct it") from None
    except RecursionError:
        raise TableError(f"{where} is nested too deeply: use one object per row") from None


def _table_of(rows: list[Any], name: str) -> pa.Table:
    import pyarrow as pa

    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise TableError(
                f'{name}, row {number} is {row!r:.60}: every row must be an object such as {{"text": "…"}}'
            )
    if not rows:
        raise TableError(f"{name} has no rows")
    names = list(dict.fromkeys(key for row in rows for key in row))
    _refuse_too_many(len(names), name)
    columns = [[_as_cell(row.get(key)) for row in rows] for key in names]
    try:
        return pa.table(columns, names=names)
    except UnicodeEncodeError:
        warnings.warn(
            f"{name} has lone surrogates, which are halves of characters: they are replaced by U+FFFD",
            PcsWarning,
            stacklevel=6,
        )
    whole = [[cell and _without_surrogates(cell) for cell in column] for column in columns]
    return pa.table(whole, names=list(map(_without_surrogates, names)))


def _without_surrogates(text: str) -> str:
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


def _refuse_too_many(columns: int, name: str) -> None:
    if columns > MOST_COLUMNS:
        raise TableError(
            f"{name} has {columns:,} columns, at most {MOST_COLUMNS:,} are read: one row per text is needed"
        )


def _as_cell(value: Any) -> str | None:
    """Return a JSON value as text, as a CSV file would hold it."""
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _read_csv(path: Path) -> pa.Table:
    names, delimiter = _csv_header(path)
    _refuse_too_many(len(names), path.name)
    _refuse_repeated(names, path.name)
    ragged: list[Any] = []
    table = _parsed(path, names, delimiter, ragged)
    if ragged:
        # with threads, pyarrow does not know the row number
        ragged.clear()
        _parsed(path, names, delimiter, ragged, threads=False)
        row = ragged[0]
        raise TableError(
            f"{path.name}, row {row.number - 1}: Expected {row.expected_columns} columns, got {row.actual_columns} "
            f"({row.text[:60]!r}): complete the row, and put texts that contain {delimiter!r} in quotes"
        )
    return table


def _parsed(path: Path, names: list[str], delimiter: str, ragged: list[Any], threads: bool = True) -> pa.Table:
    """Return the rows that fit the header; the others are added to `ragged`."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    def set_aside(row: Any) -> str:
        ragged.append(row)
        return "skip"

    with _opened(path) as stream:
        return arrow_csv.read_csv(
            stream,
            # a row must fit into a block
            read_options=arrow_csv.ReadOptions(use_threads=threads, block_size=BLOCK),
            parse_options=arrow_csv.ParseOptions(
                delimiter=delimiter, newlines_in_values=True, invalid_row_handler=set_aside
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
            ),
        )


def _opened(path: Path) -> Any:
    import pyarrow as pa

    if path.suffix.lower() == ".gz":
        return pa.PythonFile(_Unpacked(path), mode="r")
    return pa.input_stream(os.fspath(path), compression=None)


class _Unpacked(gzip.GzipFile):
    """A compressed file that is refused once it turns out too large."""

    def read(self, size: int | None = -1) -> bytes:
        """Return the next bytes."""
        found = super().read(size)
        if self.tell() > MOST_BYTES_UNPACKED:
            raise _too_large(Path(self.name))
        return found


def _csv_header(path: Path) -> tuple[list[str], str]:
    """Return column names and delimiter, from the first line that is not empty."""
    with _opened(path) as stream:
        if b"\0" in stream.read(1 << 16):
            raise TableError(f"{path.name} is not a text file: give a CSV or Parquet file")
    with io.TextIOWrapper(_opened(path), encoding="utf-8-sig", newline="") as lines:
        short = iter(lambda: lines.readline(BLOCK), "")
        line = next((line for line in short if line.strip("\r\n")), "")
        delimiter = max(DELIMITERS, key=line.count)
        return next(csv.reader(chain([line], short), delimiter=delimiter), []), delimiter


_READERS: dict[str, Callable[[Path], pa.Table]] = {
    **dict.fromkeys(PARQUET, _read_parquet),
    **dict.fromkeys(JSON_LINES, _read_json_lines),
    ".json": _read_json,
}


def text_column(name: str, column: pa.ChunkedArray) -> pa.Array:
    """Return a column as texts: null for missing, and `1` rather than `1.0` for whole numbers.

    pandas turns a column of whole numbers into floats as soon as one cell is empty.
    """
    import pyarrow as pa

    values = column.combine_chunks()
    try:
        return _as_texts(values)
    except pa.ArrowException as error:
        raise TableError(f"column {name!r} holds {values.type}, which is not text: convert it to texts") from error


def _as_texts(values: pa.Array) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(values.type):
        # polars stores categories as a text type that pyarrow cannot look up
        texts = values.dictionary.cast(pa.string())
        return pa.DictionaryArray.from_arrays(values.indices, texts).dictionary_decode()
    if pa.types.is_floating(values.type):
        values = pc.if_else(pc.is_nan(values), None, values)
        whole = pc.and_(pc.equal(values, pc.floor(values)), pc.less_equal(pc.abs(values), EXACT))
        if pc.all(whole, min_count=0).as_py():
            values = values.cast(pa.int64())
    return values.cast(pa.string())


def columns_of(table: pa.Table) -> Mapping[str, pa.ChunkedArray]:
    """Return the columns by name; a repeated name is an error."""
    _refuse_repeated(table.column_names, "the table")
    return dict(zip(table.column_names, table.columns, strict=True))


def _refuse_repeated(names: list[str], table: str) -> None:
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise TableError(f"{table} has more than one column called {repeated[0]!r}: rename one of them")
