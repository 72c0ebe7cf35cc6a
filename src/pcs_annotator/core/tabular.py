"""Anything that is a table, in memory or in a file, as one pyarrow table of texts."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pcs_annotator.errors import TableError

if TYPE_CHECKING:
    import pyarrow as pa

PARQUET = (".parquet", ".pq")
DELIMITERS = ",\t;"


def as_arrow(table: object) -> pa.Table:
    """Return the table as pyarrow; a CSV file is read as texts, whatever its columns look like.

    Takes a path to a CSV (also `.gz`) or Parquet file, a dict of columns, or any object that speaks the Arrow
    PyCapsule protocol: pandas, polars, pyarrow, DuckDB.
    """
    import pyarrow as pa

    if isinstance(table, str | os.PathLike):
        return read_file(Path(table))
    try:
        arrow = pa.table(table)
    except (TypeError, ValueError, pa.ArrowException) as error:
        kind = type(table).__name__
        raise TableError(
            f"cannot read a {kind} as a table ({error}): give a path, a data frame or a dict of columns"
        ) from error
    # pandas brings its row index along as a column of this name
    return arrow.select([name for name in arrow.column_names if not name.startswith("__index_level_")])


def table_name(table: object) -> str:
    """Return how messages should call the table."""
    return Path(table).name if isinstance(table, str | os.PathLike) else "the table"


def read_file(path: Path) -> pa.Table:
    """Read a CSV or Parquet file; every problem is an error that names the file and the remedy."""
    if path.is_dir():
        raise TableError(f"{path} is a folder: name a CSV or Parquet file in it")
    if not path.exists():
        raise TableError(f"there is no file {path}: check the name and the folder")
    if path.stat().st_size == 0:
        raise TableError(f"{path.name} is empty: it needs a header line and at least one row")
    read = _read_parquet if path.suffix.lower() in PARQUET else _read_csv
    return _reading(path, read)


def _reading(path: Path, read: Callable[[Path], pa.Table]) -> pa.Table:
    import pyarrow as pa

    try:
        return read(path)
    except UnicodeDecodeError as error:
        raise TableError(
            f"{path.name} is not UTF-8 text ({error.reason} at byte {error.start}): save it as UTF-8"
        ) from error
    except (OSError, EOFError, pa.ArrowException) as error:
        raise TableError(f"{path.name} cannot be read: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _read_parquet(path: Path) -> pa.Table:
    from pyarrow import parquet

    return parquet.read_table(path)


def _read_csv(path: Path) -> pa.Table:
    from pyarrow import csv

    names, delimiter = _csv_header(path)
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise TableError(f"{path.name} has more than one column called {repeated[0]!r}: rename one of them")
    return csv.read_csv(
        path,
        parse_options=csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        convert_options=csv.ConvertOptions(column_types=dict.fromkeys(names, _text_type()), strings_can_be_null=False),
    )


def _csv_header(path: Path) -> tuple[list[str], str]:
    """Return column names and delimiter, taken from the first line."""
    import csv

    from pyarrow import CompressedInputStream, OSFile

    if path.suffix.lower() == ".gz":
        with OSFile(os.fspath(path)) as file, CompressedInputStream(file, "gzip") as stream:
            head = stream.read(1 << 16)
    else:
        with path.open("rb") as file:
            head = file.read(1 << 16)
    if b"\0" in head:
        raise TableError(f"{path.name} is not a text file: give a CSV or Parquet file")
    line = (head.splitlines() or [b""])[0].decode("utf-8-sig")
    delimiter = max(DELIMITERS, key=line.count)
    return next(csv.reader([line], delimiter=delimiter), []), delimiter


def _text_type() -> Any:
    import pyarrow as pa

    return pa.string()


def text_column(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as texts: null for missing, and `1` rather than `1.0` for whole numbers.

    pandas turns a column of whole numbers into floating point as soon as one cell is empty.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    values = column.combine_chunks()
    if isinstance(values, pa.ChunkedArray):  # an empty table combines to no chunk at all
        values = pa.array([], type=values.type)
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_floating(values.type):
        values = pc.if_else(pc.is_nan(values), None, values)
        if pc.all(pc.equal(values, pc.floor(values)), min_count=0).as_py():
            values = values.cast(pa.int64())
    return values.cast(pa.string())


def columns_of(table: pa.Table) -> Mapping[str, pa.ChunkedArray]:
    """Return the columns by name; a repeated name is an error."""
    repeated = [name for name, count in Counter(table.column_names).items() if count > 1]
    if repeated:
        raise TableError(f"the table has more than one column called {repeated[0]!r}: rename one of them")
    return dict(zip(table.column_names, table.columns, strict=True))
