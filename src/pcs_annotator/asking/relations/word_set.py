"""Sets of words, written as they are read."""

from __future__ import annotations


def word_set(words: str) -> frozenset[str]:
    """Return the words of a line as a set.

    >>> sorted(word_set("is are was"))
    ['are', 'is', 'was']
    """
    return frozenset(words.split())
