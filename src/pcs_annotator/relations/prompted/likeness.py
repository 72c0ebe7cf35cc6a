"""Compares parts of a reply with the text to rewrite, in any language: by the letters they have in common."""

from __future__ import annotations

import re

DOUBLE_QUOTES = {'"': '"', "“": "”", "„": "“", "«": "»", "「": "」", "『": "』"}
WORD = re.compile(r"\w+")
AROUND = " .!?…\"'“”‘’"
_A_FEW, _FEW_GRAMS = 8, 25
NO_SPACES = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]")
COLON = re.compile(r":(?=[\s*_\"“„«]|\Z)|：")
_ENDS = re.compile(r"[.!?…。！？।؟][\"'”’»)\]*_]*\Z")
SENTENCE = re.compile(
    r"(?<=[.!?…])(?<!\W\w\.)(?<!\b[DMS][rst]\.)[\"'”’»)\]]*+\s++(?=[^a-zà-öø-ÿ\s])|(?<=[。！？])(?=.)"
)
# No English sentence ends with one of these.
_HANGING = "a an the of to and or but by with from for into than that which who whose if as at on in"
_GOES_ON = frozenset(_HANGING.split())


class SourceText:
    """The text to rewrite, to compare parts of a reply with."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.sentences = len(SENTENCE.split(text))
        self.lines = sum(1 for line in text.splitlines() if line.strip())
        self.colons = len(COLON.findall(text))
        self.has_quotes = any(mark in text for mark in DOUBLE_QUOTES)
        self._words = WORD.findall(text.casefold())
        self._length = 1 if NO_SPACES.search(text) else 3
        self._grams = self.grams(text)

    def grams(self, text: str) -> frozenset[str]:
        """Return all runs of three letters in a text, or of one where words have no spaces between them."""
        plain = " ".join(WORD.findall(text.casefold()))
        return frozenset(plain[at : at + self._length] for at in range(len(plain) - self._length + 1))

    def covers(self, text: str) -> float:
        """Return how much of the source is in a text."""
        return len(self.grams(text) & self._grams) / max(1, len(self._grams))

    def likeness(self, text: str) -> float:
        """Return how much the shorter of source and text has in common with the longer."""
        grams = self.grams(text)
        # A single word says nothing: it may well be in both.
        return len(grams & self._grams) / max(1, min(max(len(grams), _A_FEW), len(self._grams)))

    def may_be(self, text: str, least: float) -> bool:
        """Return whether a text has enough in common with the source to be a rewrite; few words may all change."""
        return len(self._grams) < _FEW_GRAMS or self.likeness(text) >= least

    def is_same(self, text: str) -> bool:
        """Return whether a text is the source, but for marks around it."""
        return text.strip(AROUND) == self.text.strip(AROUND)

    def is_cut(self, text: str) -> bool:
        """Return whether a text breaks off in the middle of a sentence."""
        if _ENDS.search(self.text) or _ENDS.search(text):
            return not _ENDS.search(text)
        last = WORD.findall(text.casefold())[-1:]
        return last != self._words[-1:] and not _GOES_ON.isdisjoint(last)

    def lost_without(self, whole: str, part: str) -> float:
        """Return how much of the source is in a text and no longer in a part of it."""
        return self.covers(whole) - self.covers(part)
