"""What is left of a text without its setting: letters without white space, case, width, quotation marks and hyphens."""

import re
from functools import cache
from typing import NamedTuple
from unicodedata import category, decimal, normalize

import numpy as np

from pcs_annotator.core.arrays import Integers

_QUOTES = frozenset("\"'`´“”„‟‘’‚‛ʼ«»‹›′″‴‵‶〝〞〟「」『』")
_JOINERS = "\u00ad\u200c\u200d\u2060"
_DASHES = re.compile(r"(?<![\d-])-+(?![\d-])")  # beside a digit they are signs and ranges
SPACELESS_SCRIPT = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uac00-\ud7af\uf900-"
    "\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)  # a word may begin or end anywhere
OTHER, SEPARATOR, SPACELESS, MARK, LETTER, DIGIT = range(6)


class Letters(NamedTuple):
    """The letters of a text (and its digits and other signs), and where they stand in it."""

    text: str
    positions: Integers  # of every letter in the text
    begins: bytes  # 1 for every letter at which a word or another sign begins, and after the last
    ends: bytes  # 1 for every letter before which one ends, and after the last

    def original(self, start: int, end: int) -> tuple[int, int]:
        """Return the positions in the text of some of the letters."""
        return int(self.positions[start]), int(self.positions[end - 1]) + 1


def letters_in(text: str) -> str:
    r"""Return the letters of a text.

    >>> letters_in("The “ﬁne-\ntuned” model costs −1,500 €"), letters_in("1990–95")
    ('thefinetunedmodelcosts-1,500€', '1990-95')
    """
    return _DASHES.sub("", "".join(map(_folded, text)))


def located_letters(text: str, borders: bytes) -> Letters:
    """Return the letters of a text with their positions, given its borders."""
    parts = [*map(_folded, text)]
    joined = "".join(parts)
    kept = np.ones(len(joined), dtype=np.bool_)
    for match in _DASHES.finditer(joined):
        kept[slice(*match.span())] = False
    positions = np.repeat(np.arange(len(text)), [*map(len, parts)])[kept]
    border = np.frombuffer(borders, dtype=np.bool_)
    change = np.append(True, positions[1:] != positions[:-1])[: len(positions)]  # "ﬁ" has no border inside
    begins = np.append(border[positions] & change, True)
    ends = np.append(False, border[positions + 1] & np.append(change[1:], True)[: len(positions)])
    begins[0] = ends[-1] = True
    return Letters(letters_in(text), positions, begins.tobytes(), ends.tobytes())


def borders_of(text: str) -> bytes:
    """Return 1 for every position of a text, and its end, at which no word and no number would be cut.

    >>> [*borders_of("1.5 is")]
    [1, 0, 0, 1, 1, 0, 1]
    """
    kinds = np.fromiter(map(_kind, text), dtype=np.int8, count=len(text))
    before, after = kinds[:-1], kinds[1:]
    border = np.ones(len(text) + 1, dtype=np.bool_)
    border[1:-1] = ((before < MARK) | (after < MARK)) & ~((before == SPACELESS) & (after == MARK))
    decimals = np.flatnonzero((kinds[:-2] == DIGIT) & (kinds[1:-1] == SEPARATOR) & (kinds[2:] == DIGIT))
    border[decimals + 1] = border[decimals + 2] = False
    return border.tobytes()


@cache
def _kind(char: str) -> int:
    if char in ".,":
        return SEPARATOR
    if category(char).startswith("M") or char in _JOINERS:
        return MARK
    if char.isdecimal():
        return DIGIT
    if SPACELESS_SCRIPT.match(char):
        return SPACELESS
    return LETTER if char.isalnum() or char == "_" else OTHER


@cache
def _folded(char: str) -> str:
    """Return what is left of a character: two letters of "ﬁ", nothing of a space."""
    if char in _QUOTES:
        return ""
    return "".join(map(_sign, normalize("NFKD", normalize("NFKD", char).casefold())))


def _sign(char: str) -> str:
    kind = category(char)
    if char.isspace() or char in _QUOTES or kind in ("Cc", "Cf") or "\ufe00" <= char <= "\ufe0f":
        return ""
    return "-" if kind == "Pd" or char == "−" else str(decimal(char, char))
