"""Results as values: tables, curves and pairs; `judging` computes them and `files` writes them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pcs_annotator.base.display import brief
from pcs_annotator.core.weights import Interval


class Figure(NamedTuple):
    """A number with its interval, if it has one."""

    value: float
    interval: Interval | None = None


Content = str | int | float | Figure | None  # of a cell; None if it could not be computed, with a note on why


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultTable:
    """A table of results."""

    name: str  # short name, used for files
    title: str  # one sentence
    columns: Sequence[str]  # heading of every column
    rows: Sequence[Sequence[Content]]  # row by row; a group ends where the first cell is another than above
    summary: Sequence[tuple[str, str]] = ()  # lines below the rows: a name and a value, such as an average
    notes: Sequence[str] = ()  # how the numbers were computed, and why some are missing
    best: frozenset[tuple[int, int]] = frozenset()  # cells in bold, as (row, column)
    digits: Mapping[str, int] = field(default_factory=dict)  # decimals per column heading; 2 by default

    __repr__ = brief

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"a row of {self.name!r} has {len(row)} cells, there are {len(self.columns)} columns")


def number_of(content: Content) -> float | None:
    """Return the number in a cell; None for text, an empty cell and a number that is not finite."""
    value = content.value if isinstance(content, Figure) else content
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def best_in_rows(
    rows: Sequence[Sequence[Content]], columns: Sequence[int], digits: int = 2
) -> frozenset[tuple[int, int]]:
    """Return the highest cells of every row among some columns; numbers that print the same are equal."""
    marked = set()
    for row, cells in enumerate(rows):
        marked |= {(row, columns[position]) for position in _highest([cells[column] for column in columns], digits)}
    return frozenset(marked)


def best_in_groups(
    rows: Sequence[Sequence[Content]], column: int, by: int, digits: int = 2
) -> frozenset[tuple[int, int]]:
    """Return the highest cells of a column within each group of rows whose first `by` cells are equal."""
    groups: dict[tuple[Content, ...], list[int]] = {}
    for row, cells in enumerate(rows):
        groups.setdefault(tuple(cells[:by]), []).append(row)
    return frozenset(
        (members[position], column)
        for members in groups.values()
        for position in _highest([rows[row][column] for row in members], digits)
    )


def _highest(cells: Sequence[Content], digits: int) -> list[int]:
    printed = [None if (value := number_of(cell)) is None else round(value, digits) for cell in cells]
    top = max((value for value in printed if value is not None), default=None)
    return [position for position, value in enumerate(printed) if value is not None and value == top]


class Curve(NamedTuple):
    """A line with a band: a metric of one method on one dataset, against a growing number such as gold rows."""

    dataset: str
    method: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


class Pair(NamedTuple):
    """The same metric twice: for our method and for a rival."""

    dataset: str
    name: str
    ours: float
    theirs: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """The results of one research question: tables, and the data of its plots."""

    name: str
    tables: Sequence[ResultTable]
    curves: Sequence[Curve] = ()
    pairs: Sequence[Pair] = ()
    rival: str = ""
