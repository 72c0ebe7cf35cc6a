"""Numbers in another format: five and 5, 20 percent and 20%, 1,500 and 1500; the value never changes."""

from __future__ import annotations

import re
from functools import cache

from pcs_annotator.core.variant import Expectation
from pcs_annotator.relations.facts import word_set
from pcs_annotator.relations.language import known_language, why_not_english
from pcs_annotator.relations.plain.foreign_numbers import in_other_figures
from pcs_annotator.relations.rule import NotApplicable, text_rule

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
# The lookbehind comes after the first digit: a regular expression that begins with a digit is faster.
_LONG = re.compile(r"([1-9](?<![\w'’@#$£€.,:/+-].)\d{4,8})(?![\w.,:/%-]\S|\w)")

_IN_FIGURES = re.compile(
    r"(?P<figure>[1-9](?<![\w'’@#$£€.,:/+&%-].)(?<![-.#$£€] .)(?:(?<=1)[0-2]|(?<!1)))(?= [A-Za-z])"
)
_PERCENT_SIGN = re.compile(r"%(?<=\d%)(?![\w%/-])")
_GROUPED = re.compile(r"([1-9](?<![\w@#.,:/+-].)\d{0,2},\d{3})(?![\w,:/-]|\.\d)")
_DIGIT = re.compile(r"\d")


@text_rule("rule:number-format", version="2", expects=Expectation(renumbers=True), english=False)
def number_format(text: str) -> str | NotApplicable:
    """Return the text with its numbers in figures or, if they already are, in another format.

    In other languages than English, only what is certain: digits of the script, marks in thousands, percent signs.
    """
    if why_not_english(text):
        changed = in_other_figures(text, known_language(text)) if _DIGIT.search(text) else text
    else:
        changed = to_figures(text)
        if changed == text and _DIGIT.search(text):
            changed = from_figures(text)
    return NotApplicable("no number that may be written otherwise") if changed == text else changed


def to_figures(text: str) -> str:
    """Return the text with counts in figures and with percent signs.

    >>> to_figures("Some five percent of the twenty-two villages lost power.")
    'Some 5% of the 22 villages lost power.'
    """
    # Looking for whole words first is much faster than one regular expression for all of them.
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
    # Without its comma, 1,984 could be read as a year.
    return match[0] if 1100 <= int(bare) <= 2100 else bare


def _with_commas(match: re.Match[str]) -> str:
    return f"{int(match[1]):,}" if is_counted(match) else match[0]


_NUMBER = (
    r"(?:\d[\d,.]*%?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|sixty|seventy"
    r"|eighty|ninety|hundred|thousand|million|dozen|half)"
)
# Part of a pair, such as "two or three" or "one in five", which is changed as a whole or not at all.
_PAIRED_BEFORE = re.compile(rf"\b{_NUMBER}(?:-\w+)? (?:or|to|and|by|in|out of|of|versus|vs) $", re.IGNORECASE)
_PAIRED_AFTER = re.compile(rf" ?[\w-]* (?:to|or|and|of) {_NUMBER}\b", re.IGNORECASE)
_LINKS = word_set("or to and by in of versus vs")
_WORDS_AFTER = re.compile(r" ([a-z]+)(?![\w'’])(?:[ -]([a-z]+)(?![\w'’-]))?")
_CAPITALISED_AFTER = re.compile(r" ([A-Z][a-z]+)(?![\w'’-])")

_OPENERS = word_set("In Only After About Over Nearly Within For With Some The These Those All Every Just Almost")
# After these a number is not a count: page five, phase two, no two people.
_NAMES_BEFORE = word_set(
    "page pages chapter number numbers no nos level phase grade room gate channel route section act part season "
    "episode week day game round stage step class type line verse psalm article amendment unit block apartment flat "
    "suite floor tier year month top version volume issue rule title highway interstate exit track platform pier box "
    "lot figure table formula group category zone district ward region point decimal age aged cloud catch area plan "
    "option door lane whole form series model serial code minus plus times than_one at"
)
_PLURALS = word_set("people men women children police officers feet teeth mice geese oxen fish deer sheep cattle")
_SCALE_WORDS = word_set("million billion trillion percent")
_NOT_NOUNS = word_set(
    "is was has does says goes as this its his us plus always perhaps besides yes across towards afterwards sometimes "
    "thus less unless makes takes gets comes seems looks wants needs becomes remains means gives keeps shows begins "
    "starts ends tells turns leads brings gas bus glass class boss loss mass pass press access address business "
    "process success progress congress thirds halves quarters fourths fifths sixths sevenths eighths ninths tenths "
    "dozens cents wrongs birds peas winks yards musketeers cheers shakes wonders dwarfs seas sins commandments amigos "
    "stooges hrs mins secs lbs kgs yrs ins kms mms stars ways"
)
_NOT_ADJECTIVES = word_set(
    "of or and to by in on at for from with as than is are was were be been has have had do does did will would can "
    "could may might must should that which who whom whose when where while if because but not also then there here it "
    "he she they we you i the a an each per out up down over under after before since until hundred thousand dozen "
    "half o oclock am pm a.m p.m said say says told asked time times get got went came made took left won lost killed"
)


def is_counted(match: re.Match[str]) -> bool:
    """Return whether a number in words, or one of many digits, counts what follows it."""
    text, start, end = match.string, match.start(), match.end()
    after = _WORDS_AFTER.match(text, end)
    if after is None or not _is_plural_phrase(after[1], after[2]):
        return False
    head = text[max(0, start - 30) : start]
    before = word_before(head).lower()
    if not before and head.strip() and head[-1] not in '"“‘(\n—–':
        return False
    if before in _NAMES_BEFORE or (before in _LINKS and _PAIRED_BEFORE.search(head)):
        return False
    return _PAIRED_AFTER.match(text, end) is None


def counts_things(match: re.Match[str]) -> bool:
    """Return whether a small number in figures counts what follows it, so that it can be written as a word."""
    text, start, end = match.string, match.start(), match.end()
    head = text[max(0, start - 30) : start]
    if not head.strip():
        heading = _CAPITALISED_AFTER.match(text, end)
        if heading is not None and text[end:].istitle():
            return _is_plural(heading[1].lower())
        return is_counted(match)
    # After a capitalised word it is part of a name or a date: iPhone 5, May 5, Article 5.
    before = word_before(head)
    return before.isalpha() and (before.islower() or before in _OPENERS) and is_counted(match)


def word_before(head: str) -> str:
    """Return the word one space before, with the marks around it; empty when there is none."""
    return head.rsplit(None, 1)[-1] if head.endswith(" ") and head.strip() else ""


def _is_plural_phrase(word: str, next_word: str | None) -> bool:
    if word in _SCALE_WORDS or _is_plural(word):
        return True
    return word not in _NOT_ADJECTIVES and word not in _NOT_NOUNS and next_word is not None and _is_plural(next_word)


def _is_plural(word: str) -> bool:
    if word in _PLURALS:
        return True
    return len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) and word not in _NOT_NOUNS
