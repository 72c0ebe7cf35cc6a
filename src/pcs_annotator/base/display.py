"""How values show themselves: in a few lines, as data frames, and in a notebook as small tables and pages."""

import os
import sys
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, fields
from html import escape
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

from pcs_annotator.base.errors import MissingPackage

LARGEST_SHOWN = 8 * 1024**2
MOST_IN_FULL, LONGEST_FIELD = 12, 120
# No colour of its own but for decisions: text and ground are those of the notebook.
_TABLE = "border-collapse:collapse;margin:.3em 0;font-variant-numeric:tabular-nums"
_CELL = "padding:.15em .8em;border-bottom:1px solid rgba(128,128,128,.3);vertical-align:top"
_COLOURS = {"accept": "#2a9d5c", "review": "#d9822b", "agree": "#4a86d8"}


def html_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], note: str = "") -> str:
    """Return a table as HTML; numbers are rounded and aligned, None is an empty cell.

    >>> html_table("1 row", ["id"], [["<a>"]]).count("&lt;a&gt;")
    1
    """
    head = "".join(f'<th style="{_CELL};text-align:left">{_text(name)}</th>' for name in columns)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    below = f'<div style="opacity:.75">{_text(note)}</div>' if note else ""
    return (
        f'<div class="pcs-annotator"><div><b>{_text(title)}</b></div><table style="{_TABLE}">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}</div>"
    )


def _cell(value: object) -> str:
    if isinstance(value, float | int):
        shown = f"{value:,}" if isinstance(value, int) else f"{value:.3f}"
        return f'<td style="{_CELL};text-align:right">{shown}</td>'
    text = "" if value is None else str(value)
    colour = f";border-left:3px solid {_COLOURS[text]}" if text in _COLOURS else ""
    return f'<td style="{_CELL};text-align:left{colour}"><bdi dir="auto">{_text(text)}</bdi></td>'


def _text(text: str) -> str:
    return escape(text).encode("utf-8", "replace").decode()


def brief(value: Any, but: object = None) -> str:
    """Return a dataclass or a named tuple in a few lines, for `__repr__`: long fields by their kind and size.

    Fields that are the same in `but` are left out.

    >>> brief(Page(Path("report.html")))
    "Page(path=PosixPath('report.html'))"
    """
    names = getattr(value, "_fields", None) or [entry.name for entry in fields(value) if entry.repr]
    values = [(name, getattr(value, name)) for name in names]
    kept = [f"{name}={_field(entry)}" for name, entry in values if but is None or entry != getattr(but, name)]
    return f"{type(value).__name__}({', '.join(kept)})"


def _field(value: object) -> str:
    shape = getattr(value, "shape", None)
    if shape is not None:
        return f"<{type(value).__name__} {' × '.join(map(str, shape))}>"
    many = isinstance(value, Sequence | Mapping) and len(value) > MOST_IN_FULL and not isinstance(value, str)
    whole = "" if many else repr(value)
    if whole and len(whole) <= LONGEST_FIELD and "\n" not in whole:
        return whole
    if isinstance(value, str):
        return f"{whole[: LONGEST_FIELD - 1]}…"
    size = f" of {len(value)}" if isinstance(value, Sized) else ""
    return f"<{type(value).__name__}{size}>"


@dataclass(frozen=True, slots=True)
class Page:
    """A page in a file; a notebook shows it, and everything else takes it for its path.

    >>> str(Page(Path("report.html")))
    'report.html'
    """

    path: Path

    def __fspath__(self) -> str:
        return os.fspath(self.path)

    def __str__(self) -> str:
        return str(self.path)

    def _repr_html_(self) -> str:
        link = f'<a href="{_text(self.path.as_posix())}" target="_blank">{_text(str(self.path))}</a>'
        if self.path.stat().st_size > LARGEST_SHOWN:
            return f"{link} (too large to be shown here: open it in a browser)"
        page = escape(self.path.read_text(encoding="utf-8"))
        frame = "width:100%;height:32em;border:1px solid rgba(128,128,128,.4)"
        return f'{link}<iframe srcdoc="{page}" sandbox="allow-scripts" style="{frame}"></iframe>'


def in_notebook() -> bool:
    """Return whether this code runs in a notebook, which can show a bar."""
    shell = sys.modules.get("IPython")
    shell_now = None if shell is None else shell.get_ipython()
    return getattr(shell_now, "kernel", None) is not None


Columns = Mapping[str, Sequence[object]]
MOST_ROWS = 10
WIDEST_LINE, WIDEST_CELL = 100, 28


class Frame:
    """Base class of results with rows; subclasses define what they are about and their columns."""

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
    shown = [name, *(_clipped(_cell_text(value), WIDEST_CELL) for value in values[:MOST_ROWS])]
    width = max(map(len, shown))
    numeric = any(isinstance(value, int | float) for value in values[:MOST_ROWS])
    return [cell.rjust(width) if numeric else cell.ljust(width) for cell in shown]


def _cell_text(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.3f}" if isinstance(value, float) else " ".join(str(value).split())


def _clipped(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: room - 1]}…"
