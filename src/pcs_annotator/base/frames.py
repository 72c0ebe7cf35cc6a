"""Results with rows: as data frames, and in a few lines wherever Python shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from itertools import islice
from typing import Any

from pcs_annotator.base.display import html_table
from pcs_annotator.base.errors import MissingPackage

Columns = Mapping[str, Sequence[object]]
MOST_ROWS = 10
WIDEST_LINE, WIDEST_CELL = 100, 28


class Frame:
    """A result with rows; who inherits from it says what it is about, and which columns it has."""

    __slots__ = ()

    def _about(self) -> str:
        """Return what it is about, in one line."""
        raise NotImplementedError

    def _columns(self) -> Columns:
        """Return name → values, all of the same length."""
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """Return the rows as a pandas data frame."""
        return _package("pandas").DataFrame(dict(self._columns()))

    def to_polars(self) -> Any:
        """Return the rows as a polars data frame."""
        return _package("polars").DataFrame(dict(self._columns()), strict=False)

    def __repr__(self) -> str:
        columns = self._columns()
        rows = len(next(iter(columns.values()), ()))
        drawn = [_drawn(name, values) for name, values in columns.items()]
        lines = [_clipped("  ".join(line).rstrip(), WIDEST_LINE) for line in zip(*drawn, strict=True)] if rows else []
        more = [f"… {rows - MOST_ROWS:,} more rows: to_pandas(), to_polars()"] if rows > MOST_ROWS else []
        return "\n".join([f"{type(self).__name__}: {self._about()}", *lines, *more])

    def _repr_html_(self) -> str:
        columns = self._columns()
        rows = len(next(iter(columns.values()), ()))
        first = islice(zip(*columns.values(), strict=True), MOST_ROWS)
        return html_table(self._about(), [*columns], first, f"the first of {rows:,}" if rows > MOST_ROWS else "")


def _package(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingPackage(f"to_{name} needs {name}: pip install {name}") from error


def _drawn(name: str, values: Sequence[object]) -> list[str]:
    """Return the heading and the first cells of a column, all of the same width."""
    shown = [name, *(_clipped(_text(value), WIDEST_CELL) for value in values[:MOST_ROWS])]
    width = max(map(len, shown))
    numeric = any(isinstance(value, int | float) for value in values[:MOST_ROWS])
    return [one.rjust(width) if numeric else one.ljust(width) for one in shown]


def _text(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.3f}" if isinstance(value, float) else " ".join(str(value).split())


def _clipped(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: room - 1]}…"
