"""`votes.parquet` as this library writes it, read column by column: a fraction of the time and memory of any table."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pcs_annotator.core.arrays import Array, Integers, Mask
from pcs_annotator.core.vote import ABSTAINED, NOT_ASKED
from pcs_annotator.core.votes import Votes
from pcs_annotator.tables.probability_columns import GRADE, STATED, Kind

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

NAMES = ("id", "annotator", "relation", "label")
FIRST_COLUMNS = ("id", "annotator", "relation", "draw", "label")
DTYPES: dict[Kind, type[np.generic]] = {STATED: np.float64, GRADE: np.float32}
UNKNOWN = -3
"""Not on the axis."""


class VoteAxes(NamedTuple):
    """Names along the axes of votes; a file may lack some, because it leaves out what was not asked."""

    ids: Sequence[str]
    annotators: Sequence[str]
    relations: Sequence[str]
    labels: Sequence[str]
    draws: int

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """How many cells there are along each axis."""
        return len(self.ids), len(self.annotators), len(self.relations), self.draws


class OtherForm(Exception):
    """The file is not exactly as it would be written."""


def read_written_votes(path: Path, axes: VoteAxes) -> Votes | None:
    """Return the votes of a file that is exactly as `write_votes` writes it; None for any other, and for a damaged one.

    No cell becomes a text of its own.
    """
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(path, read_dictionary=list(NAMES)) as file:
            return read_groups(file, range(file.num_row_groups), axes)
    # `Votes` refuses grades that do not fit, and pyarrow misses a column of names that is nested
    except (ArrowException, OSError, ValueError, KeyError, OtherForm):
        return None


def read_groups(file: ParquetFile, groups: Sequence[int], axes: VoteAxes) -> Votes:
    """Return the votes in some groups of rows; `OtherForm` if they are not as `write_votes` writes them."""
    found = file.schema_arrow.names
    kinds = [kind for kind in (STATED, GRADE) if any(name.startswith(kind.prefix) for name in found)]
    columns = {kind: [f"{kind.prefix}{label}" for label in axes.labels] for kind in kinds}
    _require(found == [*FIRST_COLUMNS, *chain(*columns.values())])
    size = int(np.prod(axes.shape))
    codes = np.full(size, NOT_ASKED, dtype=np.int8)
    values = {kind: np.full((size, len(axes.labels)), np.nan, dtype=DTYPES[kind]) for kind in kinds}
    rows = 0
    for group in groups:
        place, asked = _places(file, group, axes)
        rows += len(place)
        codes[place] = _positions(file, group, "label", axes.labels, empty=ABSTAINED)[asked]
        for kind in kinds:
            for code, name in enumerate(columns[kind]):
                values[kind][place, code] = _column(file, group, name).to_numpy(zero_copy_only=False)[asked]
    _require(rows == int((codes != NOT_ASKED).sum()))  # else a cell is there twice
    probabilities: dict[str, Any] = {}
    if STATED in values:
        probabilities["stated"] = _frozen(values[STATED], axes)
    if GRADE in values and not np.isnan(values[GRADE]).all():
        probabilities["grades"] = _frozen(values[GRADE], axes)
    names = axes._asdict()
    del names["draws"]
    return Votes(codes=codes.reshape(axes.shape), **names, **probabilities)


def _require(as_written: bool) -> None:
    if not as_written:
        raise OtherForm


def _frozen(values: Array, axes: VoteAxes) -> Array:
    values = values.reshape(*axes.shape, len(axes.labels))
    values.flags.writeable = False  # else `Votes` would copy it
    return values


def _column(file: ParquetFile, group: int, name: str) -> pa.Array:
    return file.read_row_group(group, columns=[name]).column(0).combine_chunks()


def _places(file: ParquetFile, group: int, axes: VoteAxes) -> tuple[Integers, Mask]:
    """Return the cells of all rows that hold a vote, as positions in the flattened codes, and which rows these are."""
    item = _positions(file, group, "id", axes.ids)
    annotator = _positions(file, group, "annotator", axes.annotators)
    relation = _positions(file, group, "relation", axes.relations)
    asked = annotator != NOT_ASKED  # an item that was not asked about has a row too
    draw = _column(file, group, "draw").fill_null(0).to_numpy(zero_copy_only=False)
    _require(bool((item >= 0).all() and (relation[asked] >= 0).all() and (annotator[asked] >= 0).all()))
    _require(bool(((draw >= 0) & (draw < axes.draws)).all()))
    place = item.astype(np.intp)
    for positions, size in ((annotator, axes.shape[1]), (relation, axes.shape[2]), (draw, axes.shape[3])):
        place *= size
        place += positions
    return place[asked], asked


def _positions(file: ParquetFile, group: int, name: str, axis: Sequence[str], empty: int = NOT_ASKED) -> Array:
    """Return the position of every row's name on an axis, `empty` where it has none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = _column(file, group, name)
    known = pc.index_in(column.dictionary, value_set=pa.array(axis, pa.string())).fill_null(UNKNOWN)
    lookup = np.append(known.to_numpy(zero_copy_only=False), empty).astype(np.int32)
    _require(UNKNOWN not in lookup)
    return lookup[column.indices.fill_null(-1).to_numpy(zero_copy_only=False)]
