"""Numbers as text; a value that cannot be computed is a dash."""

import math
import unicodedata
from collections.abc import Sequence

from pcs_annotator.core.weights import Interval

DASH = "–"
MARK = "\u200e"
PRICE_UNKNOWN = "price unknown"
SHOWN = 0.05  # a difference counts as shown where its adjusted p-value is below this


def number(value: float | None, digits: int = 2) -> str:
    """Return a number with a fixed number of decimals."""
    if value is None or not math.isfinite(value):
        return DASH
    written = f"{value:.{digits}f}"
    return written.lstrip("-") if float(written) == 0 else written.replace("-", "−")


def signed(value: float, digits: int = 3) -> str:
    """Return a difference with its sign."""
    written = number(value, digits)
    return f"+{written}" if math.isfinite(value) and value > 0 else written


def percent(part: float, whole: float) -> str:
    """Return a share in percent; a dash if the whole is 0."""
    if not whole:
        return DASH
    share = 100 * part / whole
    return f"{share:.1f} %" if 0 < share < 1 or 99 < share < 100 else f"{share:.0f} %"


def interval(ends: Interval | None, digits: int = 2) -> str:
    """Return an interval in brackets; an empty string if there is none."""
    if ends is None or not all(map(math.isfinite, ends)):
        return ""
    low, high = ends.rounded(digits)
    return f"[{number(low, digits)}, {number(high, digits)}]"


def percent_interval(ends: Interval) -> str:
    """Return the 95 % interval of a share, in words."""
    low, high = (f"{100 * end:.0f}" for end in ends.rounded(2))
    return f"95 % interval {low}–{high} %"


def count(value: int) -> str:
    """Return an integer with thousands separators."""
    return f"{value:,}"


def label_name(label: str, room: int = 1_000) -> str:
    """Return a label as it stands in a sentence or a table: quoted if it has commas, and not too long."""
    if len(label) > room:
        tail = label[-(room // 2 - 1) :]
        tail = tail.split(" ", 1)[-1].strip() or tail
        label = f"{label[: room - 3 - len(tail)].rstrip()} … {tail}"
    return left_to_right(f"“{label}”" if "," in label or ";" in label else label)


def left_to_right(text: str) -> str:
    """Return a user's words such that, if they are written from the right, numbers around them stay in their order."""
    from_the_right = any(unicodedata.bidirectional(letter) in ("R", "AL") for letter in text)
    return f"{MARK}{text.strip(MARK)}{MARK}" if from_the_right else text


def dollars(value: float | None) -> str:
    """Return a price."""
    if value is None or not math.isfinite(value):
        return PRICE_UNKNOWN
    if 0 < value < 0.0001:
        return "below $0.0001"
    return f"${value:.4f}" if 0 < value < 1 else f"${value:,.2f}"


def total_cost(prices: Sequence[float | None]) -> str:
    """Return the total cost; a lower bound when some prices are unknown."""
    known_prices = [price for price in prices if price is not None]
    if prices and not known_prices:
        return PRICE_UNKNOWN
    return ("at least " if len(known_prices) < len(prices) else "") + dollars(sum(known_prices))
