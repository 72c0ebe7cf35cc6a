"""Where a quotation stands in its text, although models change white space, quotation marks, case and some letters.

The first way that finds it wins: exactly; by its letters alone; beginning and end, if three dots stand for what is
between them; by similarity. No place cuts a word or a number. A wrong place is worse than none, so what may as well
stand elsewhere, or has other numbers, has none.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple, Self

from pcs_annotator.core.letters import SPACELESS_SCRIPT, Letters, borders_of, letters_in, located_letters

MOST_DIFFERING = 0.3  # of the letters, left out and put in: a similarity of .85
FEWEST_LETTERS = 10  # fewer are too easily other words; of less than twice as many, in several words, one may be wrong
WRONG_LETTER = 2  # one left out and one put in
CLEARLY_CLOSER = 3  # so many more letters have to differ elsewhere
LONGEST_GAP = 500  # characters that three dots may stand for, or three times the quotation if that is more
MOST_PARTS = 8  # between dots
MOST_CANDIDATES = 4
LEAST_ALIKE = 60  # per cent, of the beginning and of the end of a quotation
WIDEST_SHIFT = 0.35  # of its letters that a similar quotation may leave out
NEAR = 10  # letters by which the border of a place may be missed before words are compared
LONGEST_END = 100  # letters of a quotation that are looked at to tell where it begins, and where it ends
MOST_TRIES = 100  # beyond as many occurrences as have space: only a text that repeats itself has more, inside words
_ELLIPSIS = re.compile(r"(?:[\[(<]\s?)?(?:…|\.(?:\s?\.){2,})(?:\s?[\])>])?")
_LEADING = re.compile(r"^(?:[;:!?*_#•]|\.{2,}|[.,](?!\d))+")
_WORD = re.compile(r"\w\S*")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_NOTE = re.compile(r"\[\d+\]")  # marks of notes are often left out
_GROUP = re.compile(r"[.,](?=\d{3}(?!\d))")
Span = tuple[int, int]


class _Quotation(NamedTuple):
    text: str
    letters: str
    bare: str  # letters without the stops and marks around them

    @classmethod
    def of(cls, text: str) -> Self:
        letters = letters_in(text)
        return cls(text, letters, _LEADING.sub("", letters.rstrip(".,;:!?*_•")))


class Places:
    """Finds quotations in one text; made once per text, asked for many quotations."""

    def __init__(self, text: str) -> None:
        self._text = text

    def of(self, quotation: str) -> Span | None:
        """Return the first place of a quotation: where it starts and ends in the text; None if it has none."""
        return next(iter(self.all_of(quotation)), None)

    def all_of(self, quotation: str) -> tuple[Span, ...]:
        """Return the places of a quotation, which do not overlap; none if it is not there, or may be elsewhere."""
        wanted = _Quotation.of(quotation)
        if not wanted.bare:
            return ()
        return self._verbatim(wanted) or self._abbreviated(wanted) or self._similar(wanted)

    def _verbatim(self, quotation: _Quotation) -> tuple[Span, ...]:
        if exact := tuple(_occurrences(self._text, quotation.text, self._borders, self._borders)):
            return exact
        text, _, begins, ends = self._letters
        for part in (quotation.letters, quotation.bare):
            if spans := tuple(_occurrences(text, part, begins, ends)):
                return tuple(self._letters.original(*span) for span in spans)
        return ()

    def _abbreviated(self, quotation: _Quotation) -> tuple[Span, ...]:
        """Return where all parts before, between and after three dots stand, in their order and close to each other."""
        pieces = [piece.strip() for piece in _ELLIPSIS.split(quotation.text)]
        parts = [part for part in map(_Quotation.of, pieces) if part.bare]
        if len(pieces) == 1 or len(parts) > MOST_PARTS:
            return ()
        if len(parts) > 1 and min(len(part.bare) for part in parts) < FEWEST_LETTERS:
            return ()
        first, *others = [self._verbatim(part) or self._similar(part) for part in parts]
        longest_gap = max(LONGEST_GAP, 3 * len(quotation.text))
        places: list[Span] = []
        for start, end in reversed(first):  # from the last, as the shortest place is meant
            stop = _chained(end, others, longest_gap)
            if stop is not None and (not places or stop <= places[-1][0]):
                places.append((start, stop))
        return tuple(reversed(places))

    def _similar(self, quotation: _Quotation) -> tuple[Span, ...]:
        """Return the only place that is similar enough, and has the same numbers."""
        from rapidfuzz.distance import Indel  # a tenth of a second to import, and most quotations need none of it

        letters = quotation.bare
        several_words = len(_WORD.findall(quotation.text)) > 1 or SPACELESS_SCRIPT.search(letters)
        if len(letters) < FEWEST_LETTERS * (1 if several_words else 2):
            return ()
        spans = {*self._closest_spans(letters)}
        ranked = [(Indel.distance(letters, self._letters.text[start:end]), start, end) for start, end in spans]
        ranked = [candidate for candidate in ranked if self._says_the_same(quotation, *candidate)]
        if not ranked:
            return ()
        least, start, end = min(ranked)
        limit = least + CLEARLY_CLOSER
        unsure = any(rival[0] < limit and abs(rival[1] - start) > len(letters) // 2 for rival in ranked)
        return () if unsure else (self._letters.original(start, end),)

    def _says_the_same(self, quotation: _Quotation, differing: int, start: int, end: int) -> bool:
        """Return whether some of the letters have the same numbers, and few others; of few, also as many words."""
        part = self._letters.text[start:end]
        shorter = min(len(quotation.bare), len(part))
        abbreviated = "..." in quotation.bare and "..." not in part  # not to be placed at its first part alone
        if abbreviated or shorter < FEWEST_LETTERS or _numbers(part) != _numbers(quotation.bare):
            return False
        if shorter >= 2 * FEWEST_LETTERS:
            return differing <= MOST_DIFFERING * shorter
        words = _WORD.findall(self._text[slice(*self._letters.original(start, end))])
        return differing <= WRONG_LETTER and len(words) == len(_WORD.findall(quotation.text))

    def _closest_spans(self, letters: str) -> Iterator[Span]:
        """Yield whole words of the text that are like a quotation, the closest first, none of them twice."""
        from rapidfuzz.fuzz import partial_ratio_alignment

        text, head, tail = self._letters.text, letters[:LONGEST_END], letters[-LONGEST_END:]
        for _ in range(MOST_CANDIDATES):
            begins = partial_ratio_alignment(head, text, score_cutoff=LEAST_ALIKE)
            if begins is None:
                return
            first = begins.dest_start - begins.src_start
            rest = slice(begins.dest_start, begins.dest_start + int((1 + WIDEST_SHIFT) * len(letters)))
            ends = begins if head == letters else partial_ratio_alignment(tail, text[rest], score_cutoff=LEAST_ALIKE)
            end = begins.dest_end
            if ends is not None:
                end = ends.dest_end + (rest.start if ends is not begins else 0)
                yield self._aligned(letters, first, end - len(letters))
            text = f"{text[: begins.dest_start]}{' ' * (end - begins.dest_start)}{text[end:]}"

    def _aligned(self, letters: str, first_shift: int, last_shift: int) -> Span:
        """Return the whole words of the text that are closest to a quotation."""
        text, _, begins, ends = self._letters
        head, tail = letters[:LONGEST_END], letters[-LONGEST_END:]
        spread = int(WIDEST_SHIFT * len(head)) + NEAR
        starts = _borders_in(begins, first_shift - spread, first_shift + spread)
        start = starts[_closest(head, [text[option : first_shift + len(head)] for option in starts])]
        end = last_shift + len(letters)
        tail_start = start if head == letters else max(end - len(tail), 0)
        stops = _borders_in(ends, end - spread, end + spread)
        return start, stops[_closest(tail, [text[tail_start:option] for option in stops])]

    @cached_property
    def _borders(self) -> bytes:
        return borders_of(self._text)

    @cached_property
    def _letters(self) -> Letters:
        return located_letters(self._text, self._borders)


def _occurrences(text: str, part: str, begins: bytes, ends: bytes) -> Iterator[Span]:
    """Yield where a part stands between borders, from left to right."""
    start = text.find(part)
    for _ in range(len(text) // len(part) + MOST_TRIES):
        if start < 0:
            return
        end = start + len(part)
        if whole := begins[start] and ends[end]:
            yield start, end
        start = text.find(part, end if whole else begins.find(1, start + 1))


def _chained(end: int, others: Sequence[Sequence[Span]], longest_gap: int) -> int | None:
    """Return where the last of the other parts ends, each of which follows soon after the one before."""
    for spans in others:
        following = bisect_left(spans, (end, 0))
        if following == len(spans) or spans[following][0] > end + longest_gap:
            return None
        end = spans[following][1]
    return end


def _borders_in(borders: bytes, lowest: int, highest: int) -> list[int]:
    """Return the borders between two positions, and the nearest ones around."""
    lowest, highest = (min(max(position, 0), len(borders) - 1) for position in (lowest, highest))
    inside = (position for position in range(lowest + 1, highest) if borders[position])
    return [max(borders.rfind(1, 0, lowest + 1), 0), *inside, borders.find(1, highest)]


def _closest(letters: str, parts: Sequence[str]) -> int:
    from rapidfuzz.distance import Indel
    from rapidfuzz.process import cdist

    return int(cdist([letters], parts, scorer=Indel.distance)[0].argmin())


def _numbers(letters: str) -> list[str]:
    """Return the numbers of some letters, without marks of thousands."""
    return [_GROUP.sub("", number).replace(",", ".") for number in _NUMBER.findall(_NOTE.sub("", letters))]
