"""Names for the array types used throughout."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Codes = NDArray[np.int8]
Floats = NDArray[np.float64]
Integers = NDArray[np.intp]
Mask = NDArray[np.bool_]


def frozen(array: NDArray[Any], dtype: type[np.generic]) -> NDArray[Any]:
    """Return the array as `dtype`, read-only; a writable input is copied so that its owner cannot change it."""
    result = np.array(array, dtype=dtype, copy=True if array.flags.writeable else None)
    result.flags.writeable = False
    return result
