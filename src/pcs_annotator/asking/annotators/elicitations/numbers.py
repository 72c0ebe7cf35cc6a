"""Probabilities as models write them: 0.8, .8, 0,8, 80 %, 80, 8/10, 8 out of 10."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pcs_annotator.asking.annotators.elicitations.base import Stated

# Possessive quantifiers, because a reply can be hostile: nothing here may try a second way to match the same signs.
NUMBER = re.compile(
    r"(?<![\w.])([-−]?+)(\d{1,9}+(?:[.,]\d{1,12}+)?+|\.\d{1,12}+)(?:e(-\d{1,2}+))?+"
    r"(?:\s*+(?:(%|percent\b)|(?:/|out\s++of)\s*+(\d{1,6}+)))?+(?!\w)",
    re.IGNORECASE,
)
_PERCENT = 100.0
# Numbers that add up to about this are percentages, even where one of them is below 1.
_ABOUT_A_HUNDRED = (90.0, 110.0)
# "8" without a sign is rather 8 of 10 than 8 %, but nobody knows.
_UNCLEAR_UP_TO = 10.0


class Number(NamedTuple):
    """A number, and whether it says itself what it is a share of."""

    value: float
    is_share: bool


def read_number(text: str) -> Number | None:
    """Return the first number of a text.

    >>> read_number("P1: about 80 %"), read_number("8/10"), read_number("none")
    (Number(value=0.8, is_share=True), Number(value=0.8, is_share=True), None)
    """
    found = NUMBER.search(text)
    return None if found is None else number_of(found)


def number_of(found: re.Match[str]) -> Number:
    """Return the number that `NUMBER` matched."""
    sign, digits, exponent, percent, whole = found.groups()
    value = float(digits.replace(",", ".")) * 10.0 ** int(exponent or 0) * (-1 if sign else 1)
    if percent:
        return Number(value / _PERCENT, True)
    if whole and int(whole) > 0:
        return Number(value / int(whole), True)
    return Number(value, False)


def stated(named: Mapping[str, Number]) -> Stated | str:
    """Return the probabilities of the labels named, or the reason why the numbers are none.

    Bare numbers are read on one scale: as they are while none is above 1, else as percentages.
    """
    if not named:
        return "no probability in reply"
    bare = [number.value for number in named.values() if not number.is_share]
    scale = 1.0
    if any(value > 1 for value in bare):
        if _scale_is_unclear(bare):
            return "probabilities on an unclear scale"
        scale = _PERCENT
    values = {label: number.value / (1 if number.is_share else scale) for label, number in named.items()}
    if not all(0 <= value <= 1 for value in values.values()):
        return "probability out of range"
    return Stated(values)


def _scale_is_unclear(bare: Sequence[float]) -> bool:
    low, high = _ABOUT_A_HUNDRED
    if low <= sum(bare) <= high:
        return False
    return max(bare) <= _UNCLEAR_UP_TO or any(0 < value < 1 for value in bare)
