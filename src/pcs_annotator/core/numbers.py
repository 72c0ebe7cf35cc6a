"""A quantity as steps of a range: the label set of `kind = "number"`, and the number that a reply or a cell states."""

import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from pcs_annotator.base.errors import LabelError
from pcs_annotator.core.arrays import Floats

MOST_STEPS = 2_000
_RANGE = re.compile(r"\s*(-?[\d.]+)\s*\.\.\s*(-?[\d.]+?)\s*(?::\s*([\d.]+))?\s*")
_NUMBER = re.compile(
    r"(?<![\w.,−–-])([-−+]?)(?:(?<=[-−+])\s*+|[$€£]\s*+)?(\d(?:[\d.,'’]|[ \u00a0\u202f](?=\d{3}(?!\d)))*+)"
    r"(?:\s*+(thousand|million|billion)\b)?",
    re.IGNORECASE,
)
_TIMES = {"thousand": 1e3, "million": 1e6, "billion": 1e9}
_DOTTED = re.compile(r"\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:\.\d{3}){2,}")
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_TWO_ENDS = re.compile(r"\d\s*(?:[-–—~]|\bto\b|\bor\b|\band\b)\s*[$€£]?\d", re.IGNORECASE)


def steps_of(labels: Sequence[str]) -> tuple[str, ...]:
    """Return the steps of a range such as `0..120` or `0..1:0.05`, from the lowest to the highest; steps stay steps.

    >>> steps_of(["0..1:0.25"])
    ('0', '0.25', '0.5', '0.75', '1')
    """
    if len(labels) > 1 and all(map(_is_number, labels)):
        return tuple(labels)
    match = _RANGE.fullmatch(labels[0]) if len(labels) == 1 else None
    if match is None:
        raise LabelError(
            f"a number needs its range as label, as in 0..120, or 0..1:0.05 with steps; got {list(labels)}"
        )
    low, high, step = (float(part or 1) for part in match.groups())
    count = round((high - low) / step) if step > 0 else 0
    if not 1 <= count < MOST_STEPS or abs(low + count * step - high) > step / 1000:
        remedy = f"give a step that divides it into at most {MOST_STEPS:,}, as in 0..100000:500"
        raise LabelError(f"the range {labels[0]} has no whole number of steps, or too many: {remedy}")
    return tuple(f"{round(low + step_number * step, 9):.12g}" for step_number in range(count + 1))


def _is_number(label: str) -> bool:
    try:
        return bool(np.isfinite(float(label)))
    except ValueError:
        return False


@lru_cache(maxsize=64)
def values_of(labels: tuple[str, ...]) -> Floats:
    """Return the number of every label."""
    if not all(map(_is_number, labels)):
        raise LabelError(f"these labels are not numbers: {', '.join(labels[:3])}, …; use kind number, with a range")
    return np.array([float(label) for label in labels])


def number_in(text: str) -> float | None:
    """Return the only number in a text, whatever its unit; None for none, several, or a range.

    >>> number_in("about 1,250.50 euros"), number_in("€ 2.5 million"), number_in("10-20"), number_in("1.200,5 m")
    (1250.5, 2500000.0, None, 1200.5)
    """
    numbers = {match.groups() for match in _NUMBER.finditer(text)}
    if len(numbers) != 1 or _TWO_ENDS.search(text):
        return None
    sign, digits, times = numbers.pop()
    plain = re.sub(r"['’\s]", "", digits).rstrip(".,")
    if _DOTTED.fullmatch(plain):
        plain = plain.replace(".", "")
    plain = plain.replace(",", "" if _GROUPED.fullmatch(plain) else ".")
    if plain.count(".") > 1:
        return None
    return float(f"{sign.replace('−', '-')}{plain}") * _TIMES.get((times or "").lower(), 1.0)


def nearest_step(value: float, labels: Sequence[str]) -> str | None:
    """Return the step nearest to a number; None if it is outside the range."""
    values = values_of(tuple(labels))
    half = (values.max() - values.min()) / (len(values) - 1) / 2
    inside = values.min() - half <= value <= values.max() + half
    return labels[int(np.abs(values - value).argmin())] if inside else None
