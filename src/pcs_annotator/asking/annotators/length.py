"""Estimates the tokens of a text, and cuts texts that have too many."""

from bisect import bisect_right
from math import ceil
from typing import NamedTuple

GAP = " […] "
_CHARACTERS_PER_TOKEN = 3.5
# Per UTF-8 byte beyond one per character: a Cyrillic letter counts as 0.9 tokens, a Chinese character as 1.5.
_TOKENS_PER_EXTRA_BYTE = 0.6
# A cut moves back to a space if there is one within this distance; otherwise it splits a word.
_NEAR = 60


class Fitted(NamedTuple):
    """A text that fits, and the number of characters left out."""

    text: str
    cut: int


def estimate_tokens(text: str) -> int:
    """Return about how many tokens a text has, with a tendency to overestimate.

    >>> estimate_tokens("The quick brown fox jumps over the lazy dog.")
    13
    """
    size = len(text)
    if text.isascii():
        return ceil(size / _CHARACTERS_PER_TOKEN)
    extra = len(text.encode("utf-8", "surrogatepass")) - size
    return ceil(size / _CHARACTERS_PER_TOKEN + extra * _TOKENS_PER_EXTRA_BYTE)


def fit_text(text: str, max_tokens: int) -> Fitted:
    """Return as much of a text as fits into `max_tokens`: its start and its end with ` […] ` between them.

    A cut is at a space if one is near. Where there is no room for both, it is the start alone.

    >>> fit_text("one two three four five six", 7)
    Fitted(text='one two […] six', cut=17)
    """
    if estimate_tokens(text) <= max_tokens:
        return Fitted(text, 0)
    room = max_tokens - estimate_tokens(GAP)
    if room < 2:
        kept = _head(text, max_tokens)
        return Fitted(kept, len(text) - len(kept))
    head, tail = _head(text, room - room // 2), _tail(text, room // 2)
    return Fitted(head + GAP + tail, len(text) - len(head) - len(tail))


def _head(text: str, max_tokens: int) -> str:
    sizes = range(min(len(text), _most(max_tokens)) + 1)
    size = max(0, bisect_right(sizes, max_tokens, key=lambda size: estimate_tokens(text[:size])) - 1)
    nearest = range(size, max(0, size - _NEAR), -1)
    return text[: next((position for position in nearest if text[position].isspace()), size)]


def _tail(text: str, max_tokens: int) -> str:
    return _head(text[-_most(max_tokens) - 1 :][::-1], max_tokens)[::-1]


def _most(max_tokens: int) -> int:
    return max(0, int(max_tokens * _CHARACTERS_PER_TOKEN))
