"""Passages of a text, and values found in it: which answers mean the same one, and which are right."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Literal, NamedTuple

import orjson

from pcs_annotator.core.numbers import number_in

Format = Literal["text", "number", "date"]
LEAST_OVERLAP = 0.5
EVEN = 0.5  # candidates that are more probable than not are chosen, as long as no better cut is known
VALUE = "value"  # the type of the only passage that a text has where a value is asked for
YES, NO = "yes", "no"  # what is said to a candidate, or to a label of which any number may apply
AROUND = 60  # characters on both sides of a passage that are shown and learned from with it
_QUOTES = "\"'“”„‟‘’‚‛«»‹›`"
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_YEAR_FIRST = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?:T.*)?")
_YEAR_LAST = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4})")
_DAY_FIRST = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?\.?\s+(?:of\s+)?([a-z]{3,9})\.?,?\s+(\d{4})", re.IGNORECASE)
_MONTH_FIRST = re.compile(r"([a-z]{3,9})\.?\s+(\d{1,2})(?:st|nd|rd|th)?,?\s+(\d{4})", re.IGNORECASE)


class Quotation(NamedTuple):
    """What a reply quotes from a text."""

    type: str
    quotation: str
    value: str = ""  # what it says, where a value is asked for


class Passage(NamedTuple):
    """A part of a text, by the positions of its characters."""

    start: int
    end: int
    type: str
    value: str = ""  # normalised, where a value is asked for: then its position does not tell whether it is right

    @property
    def name(self) -> str:
        """What a candidate is called after the id of its text."""
        return self.value or f"{self.start}-{self.end}:{self.type}"


class Extraction(NamedTuple):
    """What is looked for in texts."""

    types: tuple[str, ...]  # of passages; `VALUE` alone if one value is asked for
    format: Format = "text"  # of the value
    exact: bool = False  # whether a passage is right only with the very borders of a gold one

    @property
    def is_value(self) -> bool:
        """Whether at most one value is asked for."""
        return self.types == (VALUE,)

    @property
    def noun(self) -> str:
        """What is looked for, in a word."""
        return "values" if self.is_value else "passages"

    def right(self, passage: Passage, gold: Iterable[Passage]) -> bool:
        """Return whether a passage is one of those of gold."""
        return any(self.match(passage, other) for other in gold)

    def match(self, passage: Passage, gold: Passage) -> bool:
        """Return whether a passage means a gold one: the same value, or enough of the same characters."""
        if self.is_value:
            return passage.value.casefold() == gold.value.casefold()
        if self.exact:
            return passage[:3] == gold[:3]
        return passage.type == gold.type and overlap(passage, gold) >= LEAST_OVERLAP


def overlap(passage: Passage, other: Passage) -> float:
    """Return the share of the longer of two passages that both have in common.

    >>> overlap(Passage(0, 10, "name"), Passage(5, 25, "name"))
    0.25
    """
    shared = min(passage.end, other.end) - max(passage.start, other.start)
    return max(shared, 0) / max(passage.end - passage.start, other.end - other.start, 1)


def candidates_of(votes: Mapping[Passage, float], extraction: Extraction) -> dict[Passage, Passage]:
    """Return passage → the candidate that it means, given how many votes each has.

    A candidate has the borders that most votes give; of equally many, those that stand first, then the longer ones.
    """
    ranked = sorted(votes, key=lambda passage: (-votes[passage], passage.start, -passage.end, passage.type))
    loose = extraction._replace(exact=False)
    meant: dict[Passage, Passage] = {}
    seeds: dict[str, list[Passage]] = {}
    for passage in ranked:
        named = seeds.setdefault(passage.type, [])
        seed = next((seed for seed in named if loose.match(passage, seed)), None)
        if seed is None:
            named.append(passage)
        meant[passage] = seed or passage
    return meant


def normal_value(value: str, format_: Format) -> str | None:
    """Return a value in the form that equal ones share; None if it is not one of this format.

    >>> normal_value("€ 1,200.50", "number"), normal_value("3 March 2024", "date"), normal_value(' "Oslo" ', "text")
    ('1200.5', '2024-03-03', 'Oslo')
    """
    if format_ == "number":
        number = number_in(value)
        return None if number is None else f"{number:.12g}"
    if format_ == "date":
        day = _date_in(value.strip().strip(_QUOTES))
        return None if day is None else day.isoformat()
    return " ".join(value.split()).strip(_QUOTES + ".,; ") or None


def _date_in(text: str) -> date | None:
    """Return the day that a text is; None if it is none, or if its day may be its month."""
    try:
        if match := _YEAR_FIRST.fullmatch(text):
            year, month, day = map(int, match.groups())
        elif match := _YEAR_LAST.fullmatch(text):
            day, month, year = int(match[1]), int(match[3]), int(match[4])
            if match[2] != "." and day != month:
                if day <= 12 and month <= 12:
                    return None
                day, month = (day, month) if day > 12 else (month, day)
        elif match := _DAY_FIRST.fullmatch(text):
            day, month, year = int(match[1]), _MONTHS.index(match[2][:3].lower()) + 1, int(match[3])
        elif match := _MONTH_FIRST.fullmatch(text):
            day, month, year = int(match[2]), _MONTHS.index(match[1][:3].lower()) + 1, int(match[3])
        else:
            return None
        return datetime(year, month, day).date()
    except ValueError:
        return None


def around(text: str, passage: Passage) -> str:
    """Return a passage with what stands before and after it, and its type, as one text to learn from."""
    before, after = text[max(passage.start - AROUND, 0) : passage.start], text[passage.end : passage.end + AROUND]
    return f"{passage.type} [ {text[passage.start : passage.end]} ] {before} … {after}"


def written(passages: Sequence[Passage], extraction: Extraction) -> str:
    """Return the passages of a text as gold and labels store them."""
    if extraction.is_value:
        return passages[0].value if passages else NONE
    rows = [{"start": start, "end": end, "type": type_} for start, end, type_, _ in sorted(set(passages))]
    return orjson.dumps(rows).decode()


NONE = "none"  # a text of which somebody says that nothing in it is asked for
