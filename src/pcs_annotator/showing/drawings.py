"""Small inline SVG bars and intervals; the numbers are beside them, so screen readers skip them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from pcs_annotator.showing.blocks import Level, Spot
from pcs_annotator.showing.markup import Markup, tag

WIDTH, HEIGHT = 100.0, 16.0
"""The box of a drawing, in its own units."""
MIDDLE = f"{HEIGHT / 2:g}"


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


def drawing(cell: Level | Spot) -> Markup:
    """Return the drawing of a table's cell."""
    if isinstance(cell, Level):
        parts = [_block(1, "track"), _block(cell.value / cell.top, "bar soft")]
        reference: float | None = cell.reference
        low, width, margin, kind = 0.0, cell.top, 3.0, "point"
    else:
        parts = [tag("line", class_="axis", x1="0", x2=_at(1), y1=MIDDLE, y2=MIDDLE)]
        reference, low, width, margin, kind = cell.mark, cell.low, cell.high - cell.low or 1.0, 2.0, cell.kind
    if reference is not None:
        parts.append(_upright((reference - low) / width, "reference", 0))
    if cell.interval is not None:
        ends = [_at((end - low) / width) for end in cell.interval]
        parts.append(tag("line", class_="whisker", x1=ends[0], x2=ends[1], y1=MIDDLE, y2=MIDDLE))
    return _drawing(*parts, _upright((cell.value - low) / width, kind, margin))


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
