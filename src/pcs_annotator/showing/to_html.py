"""Blocks as HTML, with the classes that the style sheets of the pages know."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pcs_annotator.core.result_table import Figure
from pcs_annotator.showing import blocks, markup
from pcs_annotator.showing.blocks import Block, Cell, Change, Column, Level, Shaded, Spot, Style, Styled, Words
from pcs_annotator.showing.diff import marked
from pcs_annotator.showing.drawings import drawing, stack
from pcs_annotator.showing.formats import DASH, count, interval, number, percent
from pcs_annotator.showing.markup import Child, Markup, joined, sentence, tag
from pcs_annotator.showing.svg_plot import Plot

ELEMENTS: dict[Style, tuple[str, str | None]] = {
    "name": ("bdi", None),
    "plain": ("span", None),
    "strong": ("strong", None),
    "bold": ("b", None),
    "em": ("em", None),
    "small": ("small", None),
    "quiet": ("span", "quiet"),
    "count": ("b", "count"),
    "warn": ("span", "chip warn"),
    "chip": ("span", "chip"),
    "command": ("code", "command"),
}
LONGEST_LARGE = 6
"""Characters of a number that fit into a tile in large print."""


def inline(words: Words) -> Markup:
    """Return words as HTML."""
    if isinstance(words, str):
        return markup.escaped(words)
    if isinstance(words, Styled):
        element, kind = ELEMENTS[words.style]
        return tag(element, words.text, class_=kind, dir="auto" if words.own else None)
    return joined(*map(inline, words))


def html_of(*shown: Block) -> Markup:
    """Return blocks as HTML; those that are None are left out."""
    return joined(*(html(one) for one in shown if one is not None))


def html(block: Block) -> Markup:
    """Return a block as HTML."""
    if type(block) not in _AS_HTML:
        raise TypeError(f"{type(block).__name__} is not a block")
    return _AS_HTML[type(block)](block)


def _group(block: blocks.Group) -> Markup:
    heading = tag("h3", inline(block.title)) if block.title else None
    return tag("div", heading, html_of(*block.blocks), class_=block.kind or None)


def _folded(block: blocks.Folded) -> Markup:
    summary = tag("summary", inline(block.summary))
    return tag("details", summary, html_of(*block.blocks), class_="numbers", open=block.opened)


def _pairs(block: blocks.KeyValues) -> Markup:
    pairs = [tag("div", tag("dt", name), tag("dd", inline(value))) for name, value in block.pairs]
    return tag("dl", *pairs, class_=block.kind or None)


def _tile(figure: blocks.KeyFigure) -> Markup:
    """Return a number in large print, with its name and a detail."""
    value = tag("b", figure.value, class_="long" if len(figure.value) > LONGEST_LARGE else None)
    return tag("div", value, tag("span", figure.title), tag("small", figure.detail), class_="tile")


def _shares(block: blocks.Shares) -> Markup:
    drawing = stack([(times / block.whole, kind) for _, kind, times in block.parts])
    keys = [
        tag(
            "li",
            tag("span", class_=f"swatch {kind}", aria_hidden="true"),
            tag("b", percent(times, block.whole)),
            f" {title} ",
            tag("span", f"({count(times)})", class_="quiet"),
        )
        for title, kind, times in block.parts
        if times
    ]
    return tag("div", drawing, tag("ul", *keys, class_="keys"), class_="decisions")


def _table(block: blocks.Table) -> Markup:
    head = tag("tr", *(_heading(column) for column in block.columns))
    rows = [_row(block, row, last=at == len(block.rows) - 1) for at, row in enumerate(block.rows)]
    whole = tag("table", tag("thead", head), tag("tbody", *rows), class_=block.kind or None)
    label = block.label or f"Table by {block.columns[0].title}"
    return tag("div", whole, class_="scroll", tabindex="0", role="region", aria_label=label)


def _heading(column: Column) -> Markup:
    words = inline(column.title)
    title = tag("abbr", words, title=column.hint) if column.hint else words
    return tag("th", title, scope="col", class_=column.kind or None)


def _row(table: blocks.Table, row: Sequence[Cell], *, last: bool) -> Markup:
    (first, *others), (named, *columns) = row, table.columns
    cells = [tag("th", _content(first, named.digits), scope="row", class_=named.kind or None)]
    cells += [_cell(cell, column) for cell, column in zip(others, columns, strict=True)]
    return tag("tr", *cells, class_="total" if last and table.total else None)


def _cell(cell: Cell, column: Column) -> Markup:
    if isinstance(cell, Shaded):
        return tag("td", inline(cell.words), class_=cell.kind, title=cell.hint)
    return tag("td", _content(cell, column.digits), class_=column.kind or None)


def _content(cell: Cell, digits: int) -> Child:
    match cell:
        case None:
            return DASH
        case int():
            return count(cell)
        case float():
            return number(cell, digits)
        case Figure():
            return joined(number(cell.value, digits), " ", tag("small", interval(cell.interval, digits)))
        case Level() | Spot():
            return drawing(cell)
    return html(cell) if isinstance(cell, Change) else inline(cell.words if isinstance(cell, Shaded) else cell)


_AS_HTML: Mapping[type, Callable[[Any], Markup]] = {
    Markup: lambda block: block,
    str: sentence,
    Plot: Plot.inline,
    blocks.Paragraph: lambda block: sentence(inline(block.words), kind=block.kind or None),
    blocks.Section: lambda block: markup.section(block.name, block.title, html_of(*block.blocks)),
    blocks.Group: _group,
    blocks.Folded: _folded,
    blocks.Bullets: lambda block: tag(
        "ul", *(tag("li", inline(one)) for one in block.items), class_=block.kind or None
    ),
    blocks.KeyValues: _pairs,
    blocks.KeyFigures: lambda block: tag("div", *map(_tile, block.figures), class_="tiles"),
    blocks.Stamp: lambda block: tag("span", block.words, class_=f"stamp {block.kind}"),
    blocks.Shares: _shares,
    blocks.Table: _table,
    Change: lambda change: tag("span", marked(*change), dir="auto"),
}
