"""Removes what a reply only quotes from the text to label."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from pcs_annotator.asking.annotators.prompt import MARKER
from pcs_annotator.asking.annotators.vocabulary import LabelVocabulary

SHORTEST_QUOTATION = 24
# Every quotation of the shortest length contains one whole block of the text, wherever it starts.
_BLOCK = SHORTEST_QUOTATION // 2
# Longer runs of letters are not words; skipping a whole run each time would take quadratic time.
_WORD = 40


class _Span(NamedTuple):
    start: int
    end: int


def without_fence(reply: str) -> str:
    """Return the reply without the part between the prompt's markers, for models that repeat the question."""
    first = MARKER.search(reply)
    if first is None:
        return reply
    return f"{reply[: first.start()]}\n{reply[reply.rindex(first[0]) + len(first[0]) :]}"


def without_quotations(reply: str, asked: str, words: LabelVocabulary) -> str:
    """Return the reply with verbatim quotations of the text replaced by line breaks.

    A quotation has at least 24 characters and consists of whole words. A shorter text counts only as a whole, and only
    if it contains a label among other words: quoting "good movie" is not a vote for "good".
    """
    asked = asked.strip()
    if len(asked) < SHORTEST_QUOTATION:
        return _without_short(reply, asked, words)
    kept, position = [], 0
    for start, end in _quotations(reply, asked):
        kept.append(reply[position:start])
        position = end
    return "\n".join([*kept, reply[position:]])


def _without_short(reply: str, asked: str, words: LabelVocabulary) -> str:
    if asked not in reply or words.match(asked) is not None or next(words.mentions(asked), None) is None:
        return reply
    return re.sub(rf"(?<!\w){re.escape(asked)}(?!\w)", "\n", reply)


def _quotations(reply: str, asked: str) -> Iterator[_Span]:
    blocks: dict[str, int] = {}
    for step in range(0, len(asked) - _BLOCK + 1, _BLOCK):
        blocks.setdefault(asked[step : step + _BLOCK], step)
    position = done = 0
    while position <= len(reply) - _BLOCK:
        place = blocks.get(reply[position : position + _BLOCK])
        if place is not None:
            span = _whole_words(reply, asked, _widened(reply, asked, position, place, done), position - place)
            if span.end - span.start >= SHORTEST_QUOTATION:
                yield span
                position = done = span.end
                continue
        position += 1


def _widened(reply: str, asked: str, position: int, place: int, done: int) -> _Span:
    shift = position - place
    start, end = position, position + _BLOCK
    first, last = max(done, shift), min(len(reply), len(asked) + shift)
    while start > first and reply[start - 1] == asked[start - 1 - shift]:
        start -= 1
    while end < last and reply[end] == asked[end - shift]:
        end += 1
    return _Span(start, end)


def _whole_words(reply: str, asked: str, span: _Span, shift: int) -> _Span:
    # "really" in the text does not make "real" in the reply a quotation
    start, end = span
    if _inside_word(reply, start) or _inside_word(asked, start - shift):
        start = next((place for place in range(start, min(end, start + _WORD)) if not reply[place].isalnum()), start)
    # a reply that was cut off may end within a word of the text
    if end < len(reply) and (_inside_word(reply, end) or _inside_word(asked, end - shift)):
        end = next((place for place in range(end, max(start, end - _WORD), -1) if not reply[place - 1].isalnum()), end)
    return _Span(start, end)


def _inside_word(text: str, place: int) -> bool:
    return 0 < place < len(text) and text[place - 1].isalnum() and text[place].isalnum()
