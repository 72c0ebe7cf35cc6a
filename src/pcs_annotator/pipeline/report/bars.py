"""Bars and intervals as small inline SVG, one per table row, so that words stay words on any screen."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pcs_annotator.core.weights import Interval
from pcs_annotator.pipeline.report.markup import Markup, tag

WIDTH, HEIGHT = 100.0, 16.0
MIDDLE = HEIGHT / 2


def bar(share: float, *, mark: float | None = None, kind: str = "bar") -> Markup:
    """Return a bar for a share of the width, with a mark across it where one is given."""
    parts = [tag("rect", class_="track", x="0", y="4", width=_at(1), height="8"), _block(share, kind)]
    if mark is not None:
        parts.append(_upright(mark, "mark", 1))
    return _drawing(*parts)


def stack(parts: Sequence[tuple[float, str]]) -> Markup:
    """Return one bar of several parts, given as shares with the class of each."""
    drawn, start = [], 0.0
    for share, kind in parts:
        left, right = float(_at(start)), float(_at(start + share))
        if right > left:
            drawn.append(tag("rect", class_=kind, x=f"{left:g}", y="2", width=f"{right - left:.4g}", height="12"))
        start += share
    return _drawing(*drawn)


def estimate(value: float, ends: Interval | None, *, top: float, reference: float | None = None) -> Markup:
    """Return a bar that ends at the value, the interval around it, and a dashed line at the reference."""
    parts = [tag("rect", class_="track", x="0", y="4", width=_at(1), height="8"), _block(value / top, "bar soft")]
    if reference is not None:
        parts.append(_upright(reference / top, "reference", 0))
    if ends is not None:
        parts.append(_whisker(ends.low / top, ends.high / top))
    parts.append(_upright(value / top, "point", 3))
    return _drawing(*parts)


def span(value: float, ends: Interval, *, low: float, high: float) -> Markup:
    """Return a point with its interval on a scale from `low` to `high`."""
    width = high - low or 1.0
    return _drawing(
        tag("line", class_="axis", x1="0", x2=_at(1), y1=f"{MIDDLE:g}", y2=f"{MIDDLE:g}"),
        _whisker((ends.low - low) / width, (ends.high - low) / width),
        _upright((value - low) / width, "point", 2),
    )


def _drawing(*parts: Markup) -> Markup:
    # The numbers stand beside it, so a screen reader need not hear the drawing.
    box = f"0 0 {WIDTH:g} {HEIGHT:g}"
    return tag("svg", *parts, viewBox=box, preserveAspectRatio="none", aria_hidden="true", focusable="false")


def _at(share: float) -> str:
    share = share if math.isfinite(share) else 0.0
    return f"{round(min(max(share, 0.0), 1.0) * WIDTH, 2):g}"


def _block(share: float, kind: str) -> Markup:
    return tag("rect", class_=kind, x="0", y="4", width=_at(share), height="8")


def _upright(share: float, kind: str, margin: float) -> Markup:
    return tag("line", class_=kind, x1=_at(share), x2=_at(share), y1=f"{margin:g}", y2=f"{HEIGHT - margin:g}")


def _whisker(low: float, high: float) -> Markup:
    return tag("line", class_="whisker", x1=_at(low), x2=_at(high), y1=f"{MIDDLE:g}", y2=f"{MIDDLE:g}")
