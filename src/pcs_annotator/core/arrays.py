"""Names for the array types used throughout."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Codes = NDArray[np.int8]
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
