"""A text with its passages marked: colour and number by type, strength by confidence, underline by decision."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

from pcs_annotator.core.passages import Passage
from pcs_annotator.showing.formats import number
from pcs_annotator.showing.markup import Markup, joined, sentence, tag

COLOURS, STRENGTHS = 6, 4  # as many as the style sheet has
PLAIN = 2  # the strength where there is no confidence
WORDS = {"accept": "accepted", "review": "to review", "reject": "not right"}


class Marked(NamedTuple):
    """A passage as a page shows it."""

    passage: Passage
    confidence: float | None = None
    decision: Literal["accept", "review", "reject"] | None = None  # None if nobody has decided


def highlighted(text: str, marked: Sequence[Marked], types: Sequence[str] = ()) -> Markup:
    """Return a text with passages marked, and what the marks mean; types have the order of their numbers.

    Where passages overlap, the shortest one gives its colour, and the title names all.
    """
    types = types or list(dict.fromkeys(each.passage.type for each in marked))
    meaning = legend(types, {each.decision for each in marked}) if marked else None
    return joined(marked_text(text, marked, types), meaning)


def marked_text(text: str, marked: Sequence[Marked], types: Sequence[str]) -> Markup:
    """Return a text with passages marked, without what the marks mean."""
    return tag("div", *_parts(text, marked, types), class_="highlighted", dir="auto")


def legend(types: Sequence[str], decisions: Iterable[str | None] = WORDS) -> Markup:
    """Return what colours, numbers and underlines mean."""
    colours = [tag("mark", type_, data_sign=sign(type_, types), class_=colour(type_, types)) for type_ in types]
    lines = [tag("mark", word, class_=f"passage {kind}") for kind, word in WORDS.items() if kind in {*decisions}]
    spaced = [part for each in [*colours, *lines] for part in (each, " ")]
    return sentence(*spaced, "The stronger the colour, the more confident.", kind="note legend")


def colour(type_: str, types: Sequence[str]) -> str:
    """Return the classes that give a type its colour."""
    return f"passage t{types.index(type_) % COLOURS + 1}"


def sign(type_: str, types: Sequence[str]) -> str | None:
    """Return the number that tells types apart without colour; None if there is one type."""
    return str(types.index(type_) + 1) if len(types) > 1 else None


def strength(confidence: float | None) -> str:
    """Return the class that gives a passage the strength of its colour."""
    return f"s{PLAIN if confidence is None else 1 + min(int(confidence * STRENGTHS), STRENGTHS - 1)}"


def _parts(text: str, marked: Sequence[Marked], types: Sequence[str]) -> Iterable[Markup | str]:
    edges = {min(edge, len(text)) for each in marked for edge in each.passage[:2]}
    for start, end in pairwise(sorted({0, len(text), *edges})):
        over = [each for each in marked if each.passage.start <= start and end <= each.passage.end]
        yield _mark(text[start:end], start, over, types) if over else text[start:end]


def _mark(words: str, start: int, over: Sequence[Marked], types: Sequence[str]) -> Markup:
    """Return a part of a text that is in all these passages."""
    top = min(over, key=lambda each: each.passage.end - each.passage.start)
    kinds = [colour(top.passage.type, types), strength(top.confidence), top.decision, "over" if over[1:] else None]
    signs = [sign(each.passage.type, types) for each in over if each.passage.start == start]
    named = {"data_sign": " ".join(filter(None, signs)) or None, "title": "; ".join(map(_title, over))}
    return tag("mark", words, class_=" ".join(filter(None, kinds)), **named)


def _title(each: Marked) -> str:
    passage, decision = each.passage, each.decision
    sure = None if each.confidence is None else f"confidence {number(each.confidence)}"
    return ", ".join(filter(None, (passage.value or passage.type, sure, WORDS[decision] if decision else None)))
