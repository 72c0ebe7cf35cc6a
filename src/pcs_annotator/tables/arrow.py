"""pyarrow, and the columns of its tables as texts."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv
from pyarrow import parquet

from pcs_annotator.base.errors import InputError, TableError
from pcs_annotator.core.arrays import values_of

__all__ = ["arrow_csv", "columns_of", "json_cell", "pa", "parquet", "pc", "refuse_repeated", "text_column", "texts_of"]

EXACT = 2.0**53  # floats hold whole numbers exactly up to here
GAPS = ("None", "nan", "<NA>", "NaT")
_JSON = json.JSONEncoder(ensure_ascii=False)


def columns_of(table: pa.Table) -> Mapping[str, pa.ChunkedArray]:
    """Return the columns by name; a repeated name is an error."""
    refuse_repeated(table.column_names, "the table")
    return dict(zip(table.column_names, table.columns, strict=True))


def refuse_repeated(names: Sequence[str], table: str) -> None:
    """Raise if a table has two columns of the same name."""
    if repeated := [name for name, count in Counter(names).items() if count > 1]:
        raise TableError(f"{table} has more than one column called {repeated[0]!r}: rename one of them")


def text_column(name: str, column: pa.ChunkedArray, *, objects: bool = False) -> pa.Array:
    """Return a column as texts: null for missing, `1` rather than `1.0` for whole numbers.

    pandas turns a column of whole numbers into floats as soon as one cell is empty. With `objects`, objects and lists
    become JSON, as in JSON Lines; otherwise they are refused.
    """
    values = column.combine_chunks()
    try:
        if objects and pa.types.is_nested(values.type):
            return pa.array(map(json_cell, values.to_pylist()), pa.string())
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


def json_cell(value: Any) -> str | None:
    """Return a JSON value as text, as a CSV file would hold it."""
    if value is None or isinstance(value, str):
        return value
    return str(value) if type(value) is int else _JSON.encode(value)


def texts_of(column: object, name: str = "the list") -> list[str | None]:
    """Return the texts of a column, None where one is missing; a value that is not a text is an error."""
    values = values_of(column, name)
    try:
        texts: list[str | None] = pa.array(values, pa.string(), from_pandas=True).to_pylist()
    except (TypeError, ValueError, pa.ArrowException) as error:
        rows = enumerate(values, 1)
        odd = next((row for row, value in rows if not isinstance(value, str) and str(value) not in GAPS), None)
        kind = f"number {odd} of {name} is a {type(values[odd - 1]).__name__}, not a text" if odd else ""
        raise InputError(f"{kind or f'{name}: {error}'}: give texts, or a table") from error
    return texts
