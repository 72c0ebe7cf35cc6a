"""Numbers written in another way: five and 5, 20 percent and 20%, 1,500 and 1500; the value never changes."""

from __future__ import annotations

import re
from functools import cache

from pcs_annotator.asking.relations.rules.plain.counted import counts_things, is_counted
from pcs_annotator.asking.relations.rules.result import NotApplicable
from pcs_annotator.asking.relations.rules.rule import text_rule
from pcs_annotator.core.expectation import Expectation

_SMALL_WORDS = (
    "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS_WORDS = "twenty thirty forty fifty sixty seventy eighty ninety"
_SMALL = {word: value for value, word in enumerate(_SMALL_WORDS.split(), start=2)}
_TENS = {word: 10 * value for value, word in enumerate(_TENS_WORDS.split(), start=2)}
_UNITS = {"one": 1} | {word: value for word, value in _SMALL.items() if value < 10}
_WORDS = {value: word for word, value in _SMALL.items() if value <= 12}

_NUMBER_WORDS = frozenset([*_SMALL, *_TENS, *(f"{tens}-{unit}" for tens in _TENS for unit in _UNITS)])
_PART_OF_MORE = re.compile(r"[\w'’@#$£€.,/-]")
_SCALES = {None: 1, " hundred": 100, " thousand": 1000}
_PERCENT = re.compile(r" (?<=\d )per ?cent(?![\w-])")
# What may not stand before a number is asked after its first digit: an expression that begins with a digit is quicker.
_LONG = re.compile(r"([1-9](?<![\w'’@#$£€.,:/+-].)\d{4,8})(?![\w.,:/%-]\S|\w)")

_IN_FIGURES = re.compile(
    r"(?P<figure>[1-9](?<![\w'’@#$£€.,:/+&%-].)(?<![-.#$£€] .)(?:(?<=1)[0-2]|(?<!1)))(?= [A-Za-z])"
)
_PERCENT_SIGN = re.compile(r"%(?<=\d%)(?![\w%/-])")
_GROUPED = re.compile(r"([1-9](?<![\w@#.,:/+-].)\d{0,2},\d{3})(?![\w,:/-]|\.\d)")
_DIGIT = re.compile(r"\d")


@text_rule("rule:number-format", expects=Expectation(renumbers=True))
def number_format(text: str) -> str | NotApplicable:
    """Return the text with its numbers in figures, or, where they are already, in another way of writing them."""
    changed = to_figures(text)
    if changed == text and _DIGIT.search(text):
        changed = from_figures(text)
    return NotApplicable("no number that may be written otherwise") if changed == text else changed


def to_figures(text: str) -> str:
    """Return the text with counts in figures and with percent signs.

    >>> to_figures("Some five percent of the twenty-two villages lost power.")
    'Some 5% of the 22 villages lost power.'
    """
    # Looking for whole words first is much quicker than one expression for all of them.
    for word in sorted(_NUMBER_WORDS.intersection(text.split())):
        text = _in_words(word).sub(_figure, text)
    if not _DIGIT.search(text):
        return text
    if "cent" in text:
        text = _PERCENT.sub("%", text)
    return _LONG.sub(_with_commas, text)


def from_figures(text: str) -> str:
    """Return the text with small counts in words, without percent signs and without commas in thousands.

    >>> from_figures("About 20% of 3,500 homes have 2 doors.")
    'About 20 percent of 3500 homes have two doors.'
    """
    text = _IN_FIGURES.sub(_word, text)
    if "%" in text:
        text = _PERCENT_SIGN.sub(" percent", text)
    return _GROUPED.sub(_without_comma, text) if "," in text else text


@cache
def _in_words(word: str) -> re.Pattern[str]:
    return re.compile(rf"(?P<word>{word})(?P<scale> hundred| thousand)?(?![\w'’/-])")


def _figure(match: re.Match[str]) -> str:
    if _PART_OF_MORE.match(match.string, max(0, match.start() - 1), match.start()) or not is_counted(match):
        return match[0]
    word, _, unit = match["word"].partition("-")
    value = (_TENS.get(word) or _SMALL[word]) + (_UNITS[unit] if unit else 0)
    return f"{value * _SCALES[match['scale']]:,}"


def _word(match: re.Match[str]) -> str:
    if not counts_things(match):
        return match[0]
    word = _WORDS[int(match["figure"])]
    return word if match.string[: match.start()].strip() else word.capitalize()


def _without_comma(match: re.Match[str]) -> str:
    bare = match[1].replace(",", "")
    # Without its comma, 1,984 could be taken for a year.
    return match[0] if 1100 <= int(bare) <= 2100 else bare


def _with_commas(match: re.Match[str]) -> str:
    return f"{int(match[1]):,}" if is_counted(match) else match[0]
