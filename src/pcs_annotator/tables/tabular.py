"""Tables of any kind, in memory or in a file, as pyarrow tables, and their columns as texts."""

import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path, PurePath

from pcs_annotator.base.errors import InputError, TableError
from pcs_annotator.core.arrays import is_column, values_of
from pcs_annotator.tables import table_files
from pcs_annotator.tables.arrow import pa, pc
from pcs_annotator.tables.table_files import AS_FOUND, Reading
from pcs_annotator.tables.table_formats import as_cell, local_file

EXACT = 2.0**53  # floats hold whole numbers exactly up to here
_ADDRESS = re.compile(r"([A-Za-z][\w+.-]*::)*[A-Za-z][\w+.-]*://")


def as_arrow(table: object, reading: Reading = AS_FOUND) -> pa.Table:
    """Return the table as pyarrow; all columns of a CSV file are texts, whatever they look like.

    Takes a path to a file, which is read as `reading` says, a dict of columns, or any object that supports the Arrow
    PyCapsule protocol: pandas, polars, pyarrow, DuckDB.
    """
    if isinstance(table, str | os.PathLike):
        return read_file(Path(table), reading)
    try:
        arrow = pa.table(table)
    except (TypeError, ValueError, pa.ArrowException) as error:
        kind = type(table).__name__
        raise InputError(
            f"cannot read a {kind} as a table ({error}): give a path, a data frame or a dict of columns"
        ) from error
    # pandas adds its row index as a column of this name
    return arrow.drop_columns([name for name in arrow.column_names if name.startswith("__index_level_")])


def place_or_table(data: object) -> Path | str | pa.Table:
    """Return where a table is, or the table itself; a list or a column of texts is a table with the column `text`."""
    if isinstance(data, str | os.PathLike):
        return table_place(data)
    if not is_column(data):
        return as_arrow(data)
    return pa.table({"text": pa.array(texts_of(data), pa.string())})


def texts_of(column: object, name: str = "the list") -> list[str | None]:
    """Return the texts of a column, None where one is missing; a value that is not a text is an error."""
    values = values_of(column, name)
    try:
        texts: list[str | None] = pa.array(values, pa.string(), from_pandas=True).to_pylist()
    except (TypeError, ValueError, pa.ArrowException) as error:
        gaps = ("None", "nan", "<NA>", "NaT")
        given = enumerate(values, 1)
        odd = next((at for at, one in given if not isinstance(one, str) and str(one) not in gaps), None)
        what = (
            f"number {odd} of {name} is a {type(values[odd - 1]).__name__}, not a text" if odd else f"{name}: {error}"
        )
        raise InputError(f"{what}: give texts, or a table") from error
    return texts


def table_name(table: object) -> str:
    """Return the name of the table for messages."""
    return Path(table).name if isinstance(table, str | os.PathLike) else "the table"


def is_address(spec: os.PathLike[str] | str) -> bool:
    """Return whether a table is elsewhere, at an address such as `s3://bucket/news.parquet`."""
    return isinstance(spec, str) and _ADDRESS.match(spec) is not None


def table_place(spec: os.PathLike[str] | str) -> Path | str:
    """Return where a table is: an address as it is, because a path would lose one of its slashes; else a path."""
    return str(spec) if is_address(spec) else Path(spec)


def has_wildcards(spec: str) -> bool:
    """Return whether a path or an address is a pattern that several files can match."""
    return any(character in spec for character in "*?[")


def table_stem(spec: Path | str) -> str:
    """Return the name of a table without its extension; for a pattern, that of the folder that it is about.

    >>> table_stem(Path("news.train.csv.gz")), table_stem("s3://bucket/news/*.parquet")
    ('news.train', 'news')
    """
    place = str(spec).partition("://")[2].partition("?")[0] if is_address(spec) else str(spec)
    path = PurePath("stdin" if PurePath(place) == table_files.STDIO else place)
    while has_wildcards(path.name):
        path = path.parent
    if path.suffix.lower() in table_files.COMPRESSIONS:
        path = path.with_suffix("")
    return (path.stem if path.suffix.lower() in table_files.ENDINGS else path.name) or "tables"


def read_file(path: Path, reading: Reading = AS_FOUND, wanted: Collection[str] | None = None) -> pa.Table:
    """Read a file, or those of the wanted columns that it has; every problem is an error that names the remedy."""
    file = local_file(path, reading=reading)
    contents = file.contents()
    table_files.say_notes({file.name: contents.note})
    if not contents.schema.names:
        raise TableError(f"{file.name} has no rows")
    schema = pa.schema([field for field in contents.schema if wanted is None or field.name in wanted])
    return table_files.gathered(file.batches(schema), schema, file.name, packed=file.packed)


def text_column(name: str, column: pa.ChunkedArray, *, objects: bool = False) -> pa.Array:
    """Return a column as texts: null for missing, `1` rather than `1.0` for whole numbers.

    pandas turns a column of whole numbers into floats as soon as one cell is empty. With `objects`, objects and lists
    become JSON, as in JSON Lines; otherwise they are refused.
    """
    values = column.combine_chunks()
    try:
        if objects and pa.types.is_nested(values.type):
            return pa.array(map(as_cell, values.to_pylist()), pa.string())
        return _as_texts(values)
    except (pa.ArrowException, TypeError) as error:
        raise TableError(f"column {name!r} holds {values.type}, which is not text: convert it to texts") from error


def _as_texts(values: pa.Array) -> pa.Array:
    if pa.types.is_string(values.type):
        return values
    if pa.types.is_dictionary(values.type):
        # polars stores categories as a text type that pyarrow cannot look up
        texts = values.dictionary.cast(pa.string())
        return pa.DictionaryArray.from_arrays(values.indices, texts).dictionary_decode()
    if pa.types.is_floating(values.type):
        values = pc.if_else(pc.is_nan(values), None, values)
        whole = pc.and_(pc.equal(values, pc.floor(values)), pc.less_equal(pc.abs(values), EXACT))
        numbers = pc.if_else(whole, values, None).cast(pa.int64())
        return pc.coalesce(numbers.cast(pa.string()), values.cast(pa.string()))
    return values.cast(pa.string())


def columns_of(table: pa.Table) -> Mapping[str, pa.ChunkedArray]:
    """Return the columns by name; a repeated name is an error."""
    table_files.refuse_repeated(table.column_names, "the table")
    return dict(zip(table.column_names, table.columns, strict=True))
