"""What a rule gives back."""

from __future__ import annotations

from typing import NamedTuple


class NotApplicable(NamedTuple):
    """The rule has nothing to say about this text.

    Attributes:
        reason: Why, in a few words that are the same for every text of this kind: reasons are counted.
    """

    reason: str


class Replacement(NamedTuple):
    """New words for a stretch of characters."""

    start: int
    end: int
    text: str


def splice(text: str, replacements: list[Replacement], offset: int = 0) -> str:
    """Return the text with every replacement made; their positions count from `offset` and must not overlap.

    >>> splice("a cat sat", [Replacement(6, 9, "slept"), Replacement(2, 5, "dog")])
    'a dog slept'
    """
    pieces, done = [], 0
    for start, end, new in sorted(replacements):
        if start - offset < done:
            raise ValueError(f"replacement at {start} overlaps the one before it")
        pieces += [text[done : start - offset], new]
        done = end - offset
    return "".join([*pieces, text[done:]])
