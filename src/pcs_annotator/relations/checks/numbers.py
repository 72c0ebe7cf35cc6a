"""Numbers by their value, however they are written."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache

from pcs_annotator.relations.checks.reading import prose, words

_UNIT_ROW = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TEN_ROW = "twenty thirty forty fifty sixty seventy eighty ninety"
_UNITS = {word: value for value, word in enumerate(_UNIT_ROW.split())}
_TENS = {word: 10 * value for value, word in enumerate(_TEN_ROW.split(), start=2)}
_SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_SHORT = {"k": 1000, "m": 10**6, "mn": 10**6, "mln": 10**6, "b": 10**9, "bn": 10**9, "tn": 10**12}
_OTHER = {"dozen": 12, "couple": 2, "both": 2, "pair": 2, "twice": 2}
_ORDINALS = {
    "first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9,
    "tenth": 10, "eleventh": 11, "twelfth": 12, "thirteenth": 13, "twentieth": 20, "thirtieth": 30,
}  # fmt: skip
SPELT = frozenset((*_UNITS, *_TENS, *_ORDINALS, *_OTHER))
"""Words that are, or may be, numbers."""
_SCALE = "|".join(_SCALES)

_SIGNS = frozenset("<:;=)(DP")
_HEART = re.compile(r"<3+|[:;=]['-]?3\b|\b[8xX]-?[DP)(]")
_DIGITS = re.compile(
    r"(?<!\w)(?<!\d[.,])(\d+(?:[,.]\d{3})*(?:\.\d+)?|\.\d+)"
    rf"(?:(?:\s|-)?({_SCALE})s?\b|(st|nd|rd|th|s|am|pm|a\.m|p\.m|%)?(?![^\W\d_])|(k|m|mn|mln|b|bn|tn)\b|"
    r"(?:-?(?:year|month|week|day|hour|minute|second|mph|km|kg|lbs?|ft|cm|mm|gb|mb|mp|hrs?|min|mins|yrs?|yo|x|p)s?)\b)",
    re.IGNORECASE,
)
_BELOW_HUNDRED = rf"(?:(?:{'|'.join(_TENS)})(?:[ -](?:{'|'.join(list(_UNITS)[1:10])}))?|{'|'.join(_UNITS)})"
_WORDS = re.compile(
    rf"\b(?:({_BELOW_HUNDRED}(?:[ -](?:{_SCALE})(?:[ -](?:and )?{_BELOW_HUNDRED})?)*)|"
    rf"({'|'.join([*_ORDINALS, *_OTHER])}))\b",
    re.IGNORECASE,
)
# Spelt out, these are mostly no numbers at all ("one of them", "at first", "wait a second").
_LOOSE = (0.0, 1.0)
# Who writes in a hurry writes 2 for "to" and 4 for "for".
_SOUNDS = {
    2.0: re.compile(r"\bto(?:o|day|night|morrow)?\b", re.I),
    4.0: re.compile(r"\bfor\b", re.I),
    1.0: re.compile(r"one\b", re.I),
}


@lru_cache(maxsize=64)
def read_numbers(text: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the values of the numbers that a rewrite must keep, and of words that may be numbers.

    >>> read_numbers("1,000 of 2.5 million, twenty-five and one")
    ((1000.0, 2500000.0, 25.0), (1.0,))
    """
    text = prose(text)
    sure: list[float] = []
    loose: list[float] = []
    if any(map(str.isdigit, text)):
        if not _SIGNS.isdisjoint(text):
            text = _HEART.sub(" ", text)
        sure += map(_of_digits, _DIGITS.finditer(text))
    for found in _WORDS.finditer(text) if not SPELT.isdisjoint(words(text)) else ():
        value = _of_words(found)
        (loose if value in _LOOSE or found[2] else sure).append(value)
    return tuple(sure), tuple(loose)


def changed_numbers(source: str, text: str) -> tuple[list[str], list[str]]:
    """Return the numbers that are missing in a rewrite, and those that are new in it."""
    before, maybe_before = read_numbers(source)
    after, maybe_after = read_numbers(text)
    if before == after:
        return [], []
    missing = Counter(before) - Counter(after) - Counter(maybe_after)
    new = Counter(after) - Counter(before) - Counter(maybe_before)
    missing_values = [value for value in missing if not _spelt_by_sound(value, source, text)]
    new_values = [value for value in new if not _spelt_by_sound(value, text, source)]
    return [f"{value:.12g}" for value in missing_values], [f"{value:.12g}" for value in new_values]


def _spelt_by_sound(value: float, source: str, text: str) -> bool:
    sound = _SOUNDS.get(value)
    return sound is not None and len(sound.findall(text)) > len(sound.findall(source))


def _of_digits(found: re.Match[str]) -> float:
    digits, scale, _, short = found.group(1, 2, 3, 4)
    digits = digits.replace(",", "")
    if digits.count(".") > 1:
        digits = digits.replace(".", "")
    factor = _SCALES[scale.lower()] if scale else _SHORT[short.lower()] if short else 1
    return float(f"{float(digits) * factor:.12g}")


def _of_words(found: re.Match[str]) -> float:
    number, other = found.groups()
    if other:
        return float((_ORDINALS | _OTHER)[other.lower()])
    total, part = 0, 0
    for word in re.split(r"[ -]", number.lower()):
        if word == "hundred":
            part = (part or 1) * 100
        elif word in _SCALES:
            total, part = total + (part or 1) * _SCALES[word], 0
        else:
            part += _UNITS.get(word, 0) + _TENS.get(word, 0)
    return float(total + part)
