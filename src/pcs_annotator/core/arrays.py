"""Names for the array types used throughout, and columns as Python code may give them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pcs_annotator.base.errors import InputError

Array = NDArray[Any]
CODE = np.int16  # what the position of a label is stored as
Codes = NDArray[np.signedinteger[Any]]
Floats = NDArray[np.float64]
Grades = NDArray[np.float32]
Integers = NDArray[np.intp]
Mask = NDArray[np.bool_]


def frozen(array: NDArray[Any], dtype: type[np.generic]) -> NDArray[Any]:
    """Return the array as `dtype`, read-only; writable memory is copied."""
    result = np.array(array, dtype=dtype, copy=True if _writable(array) else None)
    result.flags.writeable = False
    return result


def _writable(array: object) -> bool:
    """Return whether the array, or any array that it is a view of, is writable."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return True
        array = array.base
    return False


def is_column(data: object) -> bool:
    """Return whether an object is one value per row: a list, an array, a Series, a column or an iterator."""
    shape = getattr(data, "shape", None)
    if shape is not None:
        return len(shape) == 1
    if hasattr(data, "to_pylist"):  # a column of pyarrow; its tables have a shape
        return True
    whole = isinstance(data, str | bytes | Mapping) or hasattr(data, "__arrow_c_stream__")
    return hasattr(data, "__iter__") and not whole


def values_of(data: Any, name: str) -> list[Any]:
    """Return one value per row: those of a column (see `is_column`), or of a table with a single column, or raise."""
    shape = getattr(data, "shape", ())
    if isinstance(data, np.ndarray) and data.ndim == 2 and data.shape[1] == 1:
        data = data[:, 0]
    if not is_column(data):
        kind = type(data).__name__
        if len(shape) != 2 or isinstance(data, np.ndarray):
            what = f"has the shape {tuple(shape)}" if shape else f"is a single {kind}"
            raise InputError(f"{name} {what}: give a list or a column, or a table with a single column")
        names = list(data.column_names if hasattr(data, "column_names") else data.columns)
        if len(names) != 1:
            listed = ", ".join(map(str, names))
            raise InputError(f"{name} is a {kind} with the columns {listed}: give one of them")
        data = data[names[0]]
    return data.to_pylist() if hasattr(data, "to_pylist") else list(data)
