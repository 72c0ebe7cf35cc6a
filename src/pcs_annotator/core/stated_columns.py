"""Probabilities that annotators stated, as columns: one per label, called `stated_<label>`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from pcs_annotator.core.arrays import Floats
from pcs_annotator.core.labels import check_labels, label_lookup
from pcs_annotator.core.vote_columns import Column, indexed
from pcs_annotator.errors import TableError

if TYPE_CHECKING:
    import pyarrow as pa

PREFIX = "stated_"


def read_stated(columns: Mapping[str, pa.ChunkedArray], labels: Sequence[str]) -> Floats | None:
    """Return what every row states, `[row, label]`, nan where it is empty; None when no column is about a label."""
    found = _by_code(columns, labels)
    if not found:
        return None
    rows = len(columns[next(iter(found.values()))])
    stated = np.full((rows, len(labels)), np.nan)
    for code, name in found.items():
        stated[:, code] = _probabilities(indexed(name, columns[name]))
    return stated


def write_stated(stated: Floats, labels: Sequence[str], empty_rows: int) -> dict[str, pa.Array]:
    """Return a column per label of `[row, label]`, empty where nothing is stated and in some more rows at the end."""
    import pyarrow as pa

    padded = np.concatenate([stated, np.full((empty_rows, len(labels)), np.nan)])
    return {f"{PREFIX}{label}": pa.array(padded[:, code], from_pandas=True) for code, label in enumerate(labels)}


def with_stated_labels(seen: Sequence[str], columns: Iterable[str]) -> tuple[str, ...]:
    """Return the labels seen, and those that only a column of probabilities names, sorted."""
    columns = list(columns)
    if not _by_code(columns, seen):
        return tuple(seen)  # a column such as `stated_at` is somebody's own
    known = label_lookup(seen)
    named = (name.removeprefix(PREFIX) for name in columns if name.startswith(PREFIX))
    return check_labels(sorted([*seen, *(label for label in named if label.casefold() not in known)]))


def _by_code(columns: Iterable[str], labels: Sequence[str]) -> dict[int, str]:
    lookup = label_lookup(labels)
    named = ((name.removeprefix(PREFIX).casefold(), name) for name in columns if name.startswith(PREFIX))
    return {lookup[label]: name for label, name in named if label in lookup}


def _probabilities(column: Column) -> Floats:
    values = np.array([*map(_probability, column.distinct), np.nan])[column.positions]
    wrong = np.flatnonzero(np.isnan(values) & (column.positions >= 0))
    if len(wrong):
        text = column.distinct[column.positions[wrong[0]]]
        raise TableError(
            f"column {column.name!r}, row {wrong[0] + 1}: {text!r:.60} is no probability: "
            "write a number from 0 to 1, or leave the cell empty"
        )
    return values


def _probability(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return np.nan
    return value if 0 <= value <= 1 else np.nan
