"""Checks that need nothing but the words: did anything change, is all of it there, are the numbers the same?"""

from __future__ import annotations

from pcs_annotator.asking.relations.checks.base import Rewrite, quoted
from pcs_annotator.asking.relations.checks.numbers import changed_numbers
from pcs_annotator.asking.relations.checks.reading import words
from pcs_annotator.asking.relations.word_set import word_set

# A voice or a contraction comes and goes with these, so they are no sign that something was left out.
_SMALL = word_set(
    "a an the to of by that which who it its is are was were be been being am 's has have had do does did will would "
    "and or so too very just really then there"
)
# Below these shares of the words, and of all but the small ones, a part of the text is gone.
_FEWEST = 0.7
_FEWEST_BIG = 0.74
# In a handful of words, one that goes is no part of a text.
_HANDFUL = 6


def unchanged(rewrite: Rewrite) -> str:
    """Complain when nothing but spaces differs."""
    if rewrite.source.split() == rewrite.text.split():
        return "the rewrite is the same as the text; change it as asked"
    return ""


def length(rewrite: Rewrite) -> str:
    """Complain when a part is missing or a lot was added."""
    source, text = len(rewrite.source.strip()), len(rewrite.text.strip())
    if not text:
        return "the rewrite is empty; write the whole text"
    if not source:
        return "there is no text to rewrite"
    # A few more characters are much of a short text: "It is not bad" for "Good".
    if text > source * rewrite.expects.longest + 16:
        return "the rewrite is much longer than the text; add nothing"
    if text < source * rewrite.expects.shortest - 8 or _dropped(rewrite):
        return "a part of the text is missing; rewrite the whole text"
    return ""


def _dropped(rewrite: Rewrite) -> bool:
    if len(rewrite.text) > 0.85 * len(rewrite.source):
        return False
    source, text = words(rewrite.source), words(rewrite.text)
    if not text:
        return bool(source)
    if len(source) <= _HANDFUL or len(text) >= 0.8 * len(source):
        return False
    big_source = sum(word not in _SMALL for word in source)
    big_text = sum(word not in _SMALL for word in text)
    fewest = min(1.0, rewrite.expects.shortest / 0.6)
    return len(text) < fewest * _FEWEST * len(source) or big_text < fewest * _FEWEST_BIG * big_source


def numbers(rewrite: Rewrite) -> str:
    """Complain when a number is missing or new, however it is written."""
    missing, new = changed_numbers(rewrite.source, rewrite.text)
    if missing:
        return f"missing: {quoted(missing)}; keep every number"
    if new:
        return f"new: {quoted(new)}; add no number"
    return ""
