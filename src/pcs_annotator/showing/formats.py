"""Numbers as text and as small inline SVG bars; a value that cannot be computed is a dash."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from pcs_annotator.core.weights import Interval
from pcs_annotator.showing.markup import Markup, tag

DASH = "–"
PRICE_UNKNOWN = "price unknown"
WIDTH, HEIGHT = 100.0, 16.0
"""The box of a bar, in its own units."""
MIDDLE = HEIGHT / 2


def number(value: float | None, digits: int = 2) -> str:
    """Return a number with a fixed number of decimals.

    >>> number(0.8333), number(None), number(float("nan")), number(-0.001)
    ('0.83', '–', '–', '0.00')
    """
    if value is None or not math.isfinite(value):
        return DASH
    written = f"{value:.{digits}f}"
    return written.lstrip("-") if float(written) == 0 else written.replace("-", "−")


def signed(value: float, digits: int = 3) -> str:
    """Return a difference with its sign."""
    written = number(value, digits)
    return f"+{written}" if math.isfinite(value) and value > 0 else written


def percent(part: float, whole: float) -> str:
    """Return a share in percent; a dash if the whole is 0.

    >>> percent(5, 6), percent(1, 1000), percent(0, 0)
    ('83 %', '0.1 %', '–')
    """
    if not whole:
        return DASH
    share = 100 * part / whole
    return f"{share:.1f} %" if 0 < share < 1 or 99 < share < 100 else f"{share:.0f} %"


def interval(ends: Interval | None, digits: int = 2) -> str:
    """Return an interval in brackets; an empty string if there is none.

    >>> interval(Interval(0.791, 0.862))
    '[0.79, 0.87]'
    """
    if ends is None or not all(map(math.isfinite, ends)):
        return ""
    low, high = ends.rounded(digits)
    return f"[{number(low, digits)}, {number(high, digits)}]"


def count(value: int) -> str:
    """Return an integer with thousands separators.

    >>> count(12345)
    '12,345'
    """
    return f"{value:,}"


def capital(text: str) -> str:
    """Return a text with its first letter capitalised.

    >>> capital("no promise")
    'No promise'
    """
    return f"{text[:1].upper()}{text[1:]}"


def counted(value: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun.

    >>> counted(1, "row"), counted(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{count(value)} {one if value == 1 else many or one + 's'}"


def dollars(value: float | None) -> str:
    """Return a price.

    >>> dollars(12.3), dollars(0.0009), dollars(0.00001), dollars(0.0), dollars(None)
    ('$12.30', '$0.0009', 'below $0.0001', '$0.00', 'price unknown')
    """
    if value is None or not math.isfinite(value):
        return PRICE_UNKNOWN
    if 0 < value < 0.0001:
        return "below $0.0001"
    return f"${value:.4f}" if 0 < value < 1 else f"${value:,.2f}"


def total_cost(prices: Sequence[float | None]) -> str:
    """Return the total cost; a lower bound when some prices are unknown.

    >>> total_cost([1.0, None]), total_cost([None]), total_cost([])
    ('at least $1.00', 'price unknown', '$0.00')
    """
    known = [price for price in prices if price is not None]
    if prices and not known:
        return PRICE_UNKNOWN
    return ("at least " if len(known) < len(prices) else "") + dollars(sum(known))


@lru_cache(maxsize=4096)
def bar(share: float, *, mark: float | None = None, kind: str = "bar") -> Markup:
    """Return a bar that fills a share of the width, with an optional mark across it."""
    parts = [tag("rect", class_="track", x="0", y="4", width=_at(1), height="8"), _block(share, kind)]
    if mark is not None:
        parts.append(_upright(mark, "mark", 1))
    return _drawing(*parts)


def stack(parts: Sequence[tuple[float, str]]) -> Markup:
    """Return a stacked bar; each part is a share and its class."""
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


def span(  # one argument for each part
    value: float, ends: Interval, low: float, high: float, mark: float | None = None, kind: str = "point"
) -> Markup:
    """Return a point with its interval on a scale from `low` to `high`; `mark` is a value to compare it with."""
    width = high - low or 1.0
    return _drawing(
        tag("line", class_="axis", x1="0", x2=_at(1), y1=f"{MIDDLE:g}", y2=f"{MIDDLE:g}"),
        *([] if mark is None else [_upright((mark - low) / width, "reference", 0)]),
        _whisker((ends.low - low) / width, (ends.high - low) / width),
        _upright((value - low) / width, kind, 2),
    )


def _drawing(*parts: Markup) -> Markup:
    # The numbers are beside it, so screen readers skip the drawing.
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
