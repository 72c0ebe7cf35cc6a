import numpy as np
import pytest

from pcs_annotator.core.arrays import frozen


def test_frozen_array_cannot_be_written_to() -> None:
    result = frozen(np.array([1, 2]), np.int8)

    assert result.dtype == np.int8
    with pytest.raises(ValueError, match="read-only"):
        result[0] = 9


def test_later_changes_to_the_callers_array_do_not_leak_in() -> None:
    own = np.array([1, 2], dtype=np.int8)
    result = frozen(own, np.int8)

    own[0] = 9

    assert result.tolist() == [1, 2]


def test_read_only_view_of_a_writable_array_does_not_leak() -> None:
    # pandas returns such views of its own memory
    own = np.array([1, 2], dtype=np.int8)
    view = own.view()
    view.flags.writeable = False
    result = frozen(view[:, np.newaxis], np.int8)

    own[0] = 9

    assert result.tolist() == [[1], [2]]


def test_read_only_array_is_not_copied() -> None:
    once = frozen(np.array([1.0, 2.0, 3.0]), np.float64)

    assert np.shares_memory(frozen(once, np.float64), once)
    assert np.shares_memory(frozen(once[1:, np.newaxis], np.float64), once)
