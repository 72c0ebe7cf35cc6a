"""HTML that is safe by construction: whatever is not `Markup` is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

VOID = frozenset({"br", "col", "input", "line", "meta", "rect"})
# A browser replaces or drops these, and a lone surrogate cannot be written at all.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Child = str | None
"""Plain text, which is escaped, or `Markup`, which is not; None is left out."""


def escaped(text: str) -> Markup:
    """Return text as HTML that shows it.

    >>> escaped('<b>"fine"</b>')
    '&lt;b&gt;&quot;fine&quot;&lt;/b&gt;'
    """
    return text if isinstance(text, Markup) else Markup(escape(_UNPRINTABLE.sub("\ufffd", text)))


def joined(*children: Child) -> Markup:
    """Return children one after the other."""
    return Markup("".join(escaped(child) for child in children if child is not None))


def tag(name: str, *children: Child, **attributes: str | bool | None) -> Markup:
    """Return an element; `class_` is the attribute class, `data_x` is data-x, None and False leave one out.

    >>> tag("td", "a < b", class_="number", hidden=True)
    '<td class="number" hidden>a &lt; b</td>'
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items() if value not in (None, False))
    if name in VOID:
        return Markup(f"<{name}{written}>" if name not in ("line", "rect") else f"<{name}{written}/>")
    return Markup(f"<{name}{written}>{joined(*children)}</{name}>")


def _attribute(key: str, value: str | bool | None) -> str:
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escaped(str(value))}"'


def user_text(text: str, name: str = "bdi") -> Markup:
    """Return text that a user or a model wrote, in its own direction of writing."""
    return tag(name, text, dir="auto")


class ColumnHead(NamedTuple):
    """The head of a column: its title and the class of its cells."""

    title: Child
    kind: str = ""


def table(columns: Sequence[ColumnHead], rows: Iterable[Sequence[Child]], *, kind: str = "") -> Markup:
    """Return a table whose first column names its rows; wide ones scroll on a small screen."""
    head = tag("tr", *(tag("th", column.title, scope="col", class_=column.kind or None) for column in columns))
    body = [tag("tr", *_cells(columns, row)) for row in rows]
    whole = tag("table", tag("thead", head), tag("tbody", *body), class_=kind or None)
    return tag("div", whole, class_="scroll", tabindex="0", role="region", aria_label=_plain(columns[0].title))


def _cells(columns: Sequence[ColumnHead], row: Sequence[Child]) -> list[Markup]:
    first, *others = zip(columns, row, strict=True)
    return [
        tag("th", first[1], scope="row", class_=first[0].kind or None),
        *(tag("td", cell, class_=column.kind or None) for column, cell in others),
    ]


def _plain(title: Child) -> str:
    return f"Table by {title}" if title else "Table"


def section(name: str, title: str, *children: Child) -> Markup:
    """Return a part of the page under its heading."""
    return tag("section", tag("h2", title, id=f"{name}-title"), *children, id=name, aria_labelledby=f"{name}-title")


def figure(title: str, *children: Child) -> Markup:
    """Return a chart or a table under a small heading of its own."""
    return tag("div", tag("h3", title), *children, class_="figure")


def sentence(*children: Child, kind: str | None = None, **attributes: str | bool | None) -> Markup:
    """Return a paragraph."""
    return tag("p", *children, class_=kind, **attributes)
