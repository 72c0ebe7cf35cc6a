"""Blocks as HTML, with the classes that the style sheets of the pages know, and whole pages.

Small bars and intervals are inline SVG. A page is one file: no network access, and only its own script may run.
"""

import base64
import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from string import Template
from typing import Any

from pcs_annotator.core.result_table import Figure
from pcs_annotator.showing import blocks, markup
from pcs_annotator.showing.blocks import Block, Cell, Change, Column, Shaded, Spot, Style, Styled, Words
from pcs_annotator.showing.diff import marked
from pcs_annotator.showing.formats import DASH, count, interval, number, percent
from pcs_annotator.showing.markup import Child, Markup, joined, sentence, tag
from pcs_annotator.showing.svg_plot import Plot

WIDTH, HEIGHT = 100.0, 16.0  # the box of a drawing, in its own units
MIDDLE = f"{HEIGHT / 2:g}"
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
LONGEST_LARGE = 6  # characters of a number that fit into a tile in large print


@lru_cache(maxsize=4096)
def bar(share: float, *, kind: str = "bar") -> Markup:
    """Return a bar that fills a share of the width."""
    return _drawing(_block(1, "track"), _block(share, kind))


def stack(parts: Sequence[tuple[float, str]]) -> Markup:
    """Return a stacked bar; each part is a share and its class."""
    drawn, start = [], 0.0
    for share, kind in parts:
        left, right = float(_at(start)), float(_at(start + share))
        if right > left:
            drawn.append(tag("rect", class_=kind, x=f"{left:g}", y="2", width=f"{right - left:.4g}", height="12"))
        start += share
    return _drawing(*drawn)


def drawing(spot: Spot) -> Markup:
    """Return the drawing of a table's cell."""
    width = spot.high - spot.low or 1.0
    value, *others = ((number - spot.low) / width for number in (spot.value, *(spot.interval or ())))
    if level := spot.kind == "level":
        parts = [_block(1, "track"), _block(value, "bar soft")]
    else:
        parts = [tag("line", class_="axis", x1="0", x2=_at(1), y1=MIDDLE, y2=MIDDLE)]
    if spot.low <= 0 <= spot.high and not level:
        parts.append(_upright((0 - spot.low) / width, "zero", 0))
    if spot.mark is not None:
        parts.append(_upright((spot.mark - spot.low) / width, "reference", 0))
    if others:
        parts.append(tag("line", class_="whisker", x1=_at(others[0]), x2=_at(others[1]), y1=MIDDLE, y2=MIDDLE))
    return _drawing(*parts, _upright(value, "point" if level else spot.kind, 3 if level else 2))


def _drawing(*parts: Markup) -> Markup:
    box = f"0 0 {WIDTH:g} {HEIGHT:g}"
    return tag("svg", *parts, viewBox=box, preserveAspectRatio="none", aria_hidden="true", focusable="false")


def _at(share: float) -> str:
    share = share if math.isfinite(share) else 0.0
    return f"{round(min(max(share, 0.0), 1.0) * WIDTH, 2):g}"


def _block(share: float, kind: str) -> Markup:
    return tag("rect", class_=kind, x="0", y="4", width=_at(share), height="8")


def _upright(share: float, kind: str, margin: float) -> Markup:
    return tag("line", class_=kind, x1=_at(share), x2=_at(share), y1=f"{margin:g}", y2=f"{HEIGHT - margin:g}")


def inline(words: Words) -> Markup:
    """Return words as HTML."""
    if isinstance(words, str):
        return markup.escaped(words)
    if isinstance(words, Styled):
        element, kind = ELEMENTS[words.style]
        content = tag("a", words.text, href=words.link) if words.link else words.text
        return tag(element, content, class_=kind, dir="auto" if words.own else None)
    return joined(*map(inline, words))


def html_of(*shown: Block) -> Markup:
    """Return blocks as HTML; those that are None are left out."""
    return joined(*(html(block) for block in shown if block is not None))


def html(block: Block) -> Markup:
    """Return a block as HTML."""
    if type(block) not in _AS_HTML:
        raise TypeError(f"{type(block).__name__} is not a block")
    return _AS_HTML[type(block)](block)


def _group(block: blocks.Group) -> Markup:
    heading = tag("h3", inline(block.title)) if block.title else None
    return tag("div", heading, html_of(*block.blocks), class_=block.kind or None)


def _pairs(block: blocks.KeyValues) -> Markup:
    pairs = [tag("div", tag("dt", name), tag("dd", inline(value))) for name, value in block.pairs]
    return tag("dl", *pairs, class_=block.kind or None)


def _tile(figure: blocks.KeyFigure) -> Markup:
    value = tag("b", figure.value, class_="long" if len(figure.value) > LONGEST_LARGE else None)
    return tag("div", value, tag("span", figure.title), tag("small", figure.detail), class_="tile")


def _shares(block: blocks.Shares) -> Markup:
    drawing = stack([(times / block.whole, kind) for _, kind, times in block.parts])
    keys = []
    for title, kind, times in block.parts:
        if times:
            swatch = tag("span", class_=f"swatch {kind}", aria_hidden="true")
            share, rows = tag("b", percent(times, block.whole)), tag("span", f"({count(times)})", class_="quiet")
            keys.append(tag("li", swatch, share, f" {title} ", rows))
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
    name, scope = ("th", "col") if column.title else ("td", None)
    return tag(name, title, scope=scope, class_=column.kind or None)


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
        case Spot():
            return drawing(cell)
    return html(cell) if isinstance(cell, Change) else inline(cell.words if isinstance(cell, Shaded) else cell)


_AS_HTML: Mapping[type, Callable[[Any], Markup]] = {
    Markup: lambda block: block,
    str: sentence,
    Plot: Plot.inline,
    blocks.Paragraph: lambda block: sentence(inline(block.words), kind=block.kind or None),
    blocks.Section: lambda block: markup.section(block.name, block.title, html_of(*block.blocks)),
    blocks.Group: _group,
    blocks.Folded: lambda block: tag(
        "details", tag("summary", inline(block.summary)), html_of(*block.blocks), class_="numbers"
    ),
    blocks.Bullets: lambda block: tag(
        "ul", *(tag("li", inline(entry)) for entry in block.items), class_=block.kind or None
    ),
    blocks.KeyValues: _pairs,
    blocks.KeyFigure: _tile,
    blocks.Stamp: lambda block: tag("span", block.words, class_=f"stamp {block.kind}"),
    blocks.Shares: _shares,
    blocks.Table: _table,
    Change: lambda change: tag("span", marked(*change), dir="auto"),
}


STYLES = ("colours.css", "style.css", "charts.css")
SCRIPT = "explore.js"


def header(title: Words, *shown: Block, overline: Words = "") -> Markup:
    """Return the top of a page."""
    above = tag("p", inline(overline), class_="overline") if overline else None
    return tag("header", above, tag("h1", inline(title)), html_of(*shown))


def document(name: str, header: Markup, sections: Sequence[blocks.Section], styles: Sequence[str] = STYLES) -> str:
    """Return a whole page."""
    main = html_of(*sections)
    has_rows = 'type="application/json"' in main
    style, script = joined(*map(_asset, styles)), _asset(SCRIPT) if has_rows else ""  # it finds and orders rows
    links = [tag("a", block.menu or block.title, href=f"#{block.name}") for block in sections]
    if any(block.menu for block in sections):
        links.insert(0, tag("a", "Overview", href="#"))
    parts = {
        "style": style,
        "style_hash": _hash(style),
        "script": tag("script", script) if has_rows else "",
        "script_hash": _hash(script) if has_rows else "'none'",
        "name": markup.escaped(name),
        "first": sections[0].name,
        "first_name": "rows" if sections[0].name == "rows" else "contents",
        "links": joined(*links),
        "header": header,
        "main": main,
    }
    return Template(_asset("page.html")).substitute(parts)


def _asset(name: str) -> Markup:
    return Markup(files("pcs_annotator.showing.report").joinpath(name).read_text(encoding="utf-8"))


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
