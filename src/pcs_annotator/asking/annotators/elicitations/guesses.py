"""Guesses and their probabilities out of a reply.

The first rule that finds something decides:

1. Keys such as `G1:`, `P1:`, `Guess:`, `Probability:`, in whatever order; a number behind the guess will do.
2. Labels with a number behind or before them: `Fake: 0.8`, `| Fake | 80 % |`, `{"Fake": 0.8}`; `80 % Fake`.

The first number that a label gets counts. Reasoning such as `<think>…</think>` and list numbers are left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pcs_annotator.asking.annotators.elicitations.base import Stated
from pcs_annotator.asking.annotators.reply import read_label, without_reasoning
from pcs_annotator.asking.annotators.vocabulary import Mention, vocabulary

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


_KEY = re.compile(
    r"(?<!\w)(g(?:uess)?+|p(?:rob(?:ability)?+)?+|confidence)[\s#]*+(\d{0,3}+)[\"'*_`\s]*+[:=]", re.IGNORECASE
)
_SIGNS = r"[\s\"'“”‘’*_`:=|(),;\[\]{}~≈<>≤≥–—→]|-(?![\d.])"
_WORDS = (
    r"(?:a|an|about|approximately|am|around|at|being|chance|confidence|confident|for|has|i|is|it|label|likelihood|my|of"
    r"|p\d?|prob|probability|roughly|score|sure|text|that|the|with)(?!\w)"
)
_LINK = re.compile(rf"(?:{_SIGNS}|{_WORDS})*+", re.IGNORECASE)
_LONGEST_LINK = 60
_LIST_NUMBER = re.compile(r"^[ \t*_-]{0,8}+\d{1,2}+[.)](?=\s)|(?<=[\s,;])[1-9]\)(?=\s)", re.MULTILINE)
_NEGATED = re.compile(r"(?<!\w)(?:not|no|non|never|neither|nor|\w{1,8}n['’]t)[\s\"'*_`-]*+\Z", re.IGNORECASE)
_LONGEST_NEGATION = 16


def read_probabilities(reply: str, labels: Sequence[str]) -> Stated | str:
    r"""Return the labels that a reply guesses with their probabilities, or the reason why there are none.

    >>> read_probabilities("G1: fake\nP1: 80%\nG2: real\nP2: 0.2", ["Fake", "Real"])
    Stated(probabilities={'Fake': 0.8, 'Real': 0.2})
    """
    said = _said(reply)
    named = _keyed(said, labels) or _linked(said, labels)
    if not named and not read_guesses(reply, labels):
        return "no label in reply" if said.strip() else "empty reply"
    return stated(named)


def read_guesses(reply: str, labels: Sequence[str]) -> tuple[str, ...]:
    """Return the labels that a reply guesses, the likeliest first; empty where it names none."""
    said = _said(reply)
    keyed = [read_label(value, labels).label for kind, _, value in _keys(said) if kind == "g"]
    guesses = [label for label in keyed if label is not None] or [mention.label for mention in _mentions(said, labels)]
    return tuple(dict.fromkeys(guesses))


def read_probabilities_of(reply: str, guesses: Sequence[str], labels: Sequence[str]) -> Stated | str:
    """Return the probabilities that a reply gives to guesses made before.

    They are found by `P1:` and so on, by the labels, or by being as many numbers as there are guesses.
    """
    said = _said(reply)
    by_key = {index: number for kind, index, value in _keys(said) if kind == "p" and (number := read_number(value))}
    named = {label: by_key[place] for place, label in enumerate(guesses, start=1) if place in by_key}
    named = named or _linked(said, labels)
    if not named:
        numbers = [number_of(found) for found in NUMBER.finditer(said)]
        named = dict(zip(guesses, numbers, strict=True)) if len(numbers) == len(guesses) else {}
    return stated(named)


def _said(reply: str) -> str:
    return _LIST_NUMBER.sub("", without_reasoning(reply))


def _keys(said: str) -> list[tuple[str, int, str]]:
    """Return (`g` or `p`, number, what stands behind it on its line) for every key; keys without number are counted."""
    found = list(_KEY.finditer(said))
    ends = [*(key.start() for key in found[1:]), len(said)][: len(found)]
    counts = {"g": 0, "p": 0}
    keys = []
    for key, end in zip(found, ends, strict=True):
        kind = "g" if key[1][0] in "gG" else "p"
        counts[kind] += 1
        value = said[key.end() : end].strip().partition("\n")[0]
        keys.append((kind, int(key[2] or counts[kind]), value))
    return keys


def _keyed(said: str, labels: Sequence[str]) -> dict[str, Number]:
    keys = _keys(said)
    probabilities = {index: number for kind, index, value in keys if kind == "p" and (number := read_number(value))}
    named: dict[str, Number] = {}
    for kind, index, value in keys:
        if kind == "p":
            continue
        label = read_label(value, labels).label
        number = probabilities.get(index) or (_linked(value, labels).get(label) if label else None)
        if label is not None and number is not None:
            named.setdefault(label, number)
    return named


def _linked(said: str, labels: Sequence[str]) -> dict[str, Number]:
    mentions = _mentions(said, labels)
    behind: dict[str, Number] = {}
    for mention in mentions:
        link = _LINK.match(said, mention.end, mention.end + _LONGEST_LINK)
        found = NUMBER.match(said, link.end()) if link else None
        if found:
            behind.setdefault(mention.label, number_of(found))
    before = _numbers_before(said, mentions)
    # in "80 % Fake, 20 % Real" only the first label has a number behind it, and it is the wrong one
    return before if len(before) > len(behind) else behind


def _numbers_before(said: str, mentions: Sequence[Mention]) -> dict[str, Number]:
    before: dict[str, Number] = {}
    starts = {mention.start: mention.label for mention in mentions}
    for found in NUMBER.finditer(said) if starts else ():
        link = _LINK.match(said, found.end(), found.end() + _LONGEST_LINK)
        if link and link.end() in starts:
            before.setdefault(starts[link.end()], number_of(found))
    return before


def _mentions(said: str, labels: Sequence[str]) -> list[Mention]:
    """Return the labels in a text that are not denied."""
    return [
        mention
        for mention in vocabulary(tuple(labels)).mentions(said)
        if not _NEGATED.search(said, max(0, mention.start - _LONGEST_NEGATION), mention.start)
    ]
