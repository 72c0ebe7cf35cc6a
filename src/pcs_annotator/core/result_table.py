"""Results as values: tables, curves and pairs that judging fills in and files write down."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pcs_annotator.core.weights import Interval


class Figure(NamedTuple):
    """A number with its interval; None where there is none."""

    value: float
    interval: Interval | None = None


Content = str | int | float | Figure | None
"""What a cell holds; None is what could not be computed, and a note of the table says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultTable:
    """A table of results.

    Attributes:
        name: Short name, for files.
        title: One sentence.
        columns: Heading of every column.
        rows: Cells, row by row; a row starts a new group where its first cell differs from the one above.
        summary: Lines below the rows: a name and a value, such as an average over all rows.
        notes: How the numbers came about, and why some are missing.
        best: Cells in bold, as (row, column).
        digits: Decimals per column heading; 2 where nothing is said.
    """

    name: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Content]]
    summary: Sequence[tuple[str, str]] = ()
    notes: Sequence[str] = ()
    best: frozenset[tuple[int, int]] = frozenset()
    digits: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"a row of {self.name!r} has {len(row)} cells, there are {len(self.columns)} columns")


def number_of(content: Content) -> float | None:
    """Return the number in a cell; None for text, nothing, and what is not finite."""
    value = content.value if isinstance(content, Figure) else content
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def best_in_rows(
    rows: Sequence[Sequence[Content]], columns: Sequence[int], digits: int = 2
) -> frozenset[tuple[int, int]]:
    """Return the highest cells of every row among some columns; numbers that print alike are equally high."""
    marked = set()
    for row, cells in enumerate(rows):
        marked |= {(row, columns[place]) for place in _highest([cells[column] for column in columns], digits)}
    return frozenset(marked)


def best_in_groups(
    rows: Sequence[Sequence[Content]], column: int, by: int, digits: int = 2
) -> frozenset[tuple[int, int]]:
    """Return the highest cells of a column, within rows whose first `by` cells agree."""
    groups: dict[tuple[Content, ...], list[int]] = {}
    for row, cells in enumerate(rows):
        groups.setdefault(tuple(cells[:by]), []).append(row)
    return frozenset(
        (members[place], column)
        for members in groups.values()
        for place in _highest([rows[row][column] for row in members], digits)
    )


def _highest(cells: Sequence[Content], digits: int) -> list[int]:
    printed = [None if (value := number_of(cell)) is None else round(value, digits) for cell in cells]
    top = max((value for value in printed if value is not None), default=None)
    return [place for place, value in enumerate(printed) if value is not None and value == top]


class Curve(NamedTuple):
    """A line with a band: a figure of one method on one dataset as something grows."""

    dataset: str
    method: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


class Pair(NamedTuple):
    """Two figures of the same thing: ours and its rival's."""

    dataset: str
    name: str
    ours: float
    theirs: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """What one research question gave: tables, and what can be drawn."""

    name: str
    tables: Sequence[ResultTable]
    curves: Sequence[Curve] = ()
    pairs: Sequence[Pair] = ()
    rival: str = ""
