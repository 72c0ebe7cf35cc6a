"""Long texts in pieces of whole sentences, so that a rewriting model does not drop the end."""

import re
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from pcs_annotator.base.concurrency import gather_all
from pcs_annotator.core.variant import Variant
from pcs_annotator.relations.check_words import prose
from pcs_annotator.relations.rewrite_in_reply import CUT_OFF, NO_REWRITE, SENTENCE, Refused

LONGEST_WINDOW = 1500

RewriteWindow = Callable[[str], Awaitable["str | Refused"]]  # returns the rewrite of a window, or why there is none

# The end of a sentence or of a line, with the whitespace that follows.
_STOP = re.compile(rf"{SENTENCE.pattern}|(?<!\s)[^\S\n]*+\n\s*+")
_LETTER = re.compile(r"[^\W\d_]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """A text in pieces."""

    texts: tuple[str, ...]  # the pieces, without whitespace around them
    gaps: tuple[str, ...]  # whitespace before the first piece, between pieces, and after the last: one more than pieces

    def joined(self, texts: Sequence[str]) -> str:
        """Return other pieces joined with the same whitespace."""
        between = zip(texts, self.gaps[1:], strict=True)
        return "".join([self.gaps[0], *(part for piece in between for part in piece)])


# Relations that share a call cut the same text, and planning a run counts its windows.
@lru_cache(maxsize=64)
def cut_windows(text: str, longest: int = LONGEST_WINDOW) -> Windows:
    """Return a text as pieces of whole sentences, each of at most `longest` characters; longer sentences are cut."""
    start = len(text) - len(text.lstrip())
    end = len(text.rstrip())
    if start >= end:
        return Windows(texts=(), gaps=(text,))
    if end - start <= longest:
        return Windows(texts=(text[start:end],), gaps=(text[:start], text[end:]))
    texts: list[str] = []
    gaps = [text[:start]]
    stops = [*(stop.end() for stop in _STOP.finditer(text, start, end)), end]
    while start < end:
        piece = text[start : _furthest(text, stops, start, longest)].rstrip()
        done = start + len(piece)
        start = done
        while start < end and text[start].isspace():
            start += 1
        texts.append(piece)
        gaps.append(text[done : start if start < end else None])
    return Windows(texts=tuple(texts), gaps=tuple(gaps))


def count_windows(text: str) -> int:
    """Return how many pieces of a text need a model call."""
    return sum(map(has_words, cut_windows(text).texts))


def has_words(text: str) -> bool:
    """Return whether a text has more than links, user names, numbers and symbols."""
    return _LETTER.search(prose(text)) is not None


async def rewrite_in_windows(
    relation: str, text: str, rewrite: RewriteWindow, longest: int = LONGEST_WINDOW
) -> Variant:
    """Return a text rewritten window by window; one to which the relation does not apply stays as it is.

    If a window is refused or cut off, there is no rewrite at all: half a rewrite must not pass for a whole one.
    """
    windows = cut_windows(text, longest)
    answers = iter(await gather_all(rewrite(piece) for piece in windows.texts if has_words(piece)))
    outcomes = [next(answers) if has_words(piece) else _NO_WORDS for piece in windows.texts]
    failed = next((outcome for outcome in outcomes if isinstance(outcome, Refused) and outcome.fails), None)
    pieces = [piece if isinstance(new, Refused) else new for piece, new in zip(windows.texts, outcomes, strict=True)]
    if failed is None and any(isinstance(outcome, str) for outcome in outcomes):
        return Variant(relation=relation, status="changed", text=windows.joined(pieces), source=text)
    reasons = [outcome.reason for outcome in outcomes if isinstance(outcome, Refused)]
    reason = failed.reason if failed is not None else max(reasons, key=reasons.count, default="empty text")
    if failed is not None and reason in (CUT_OFF, NO_REWRITE):
        refused = failed.text if len(outcomes) == 1 else None
        return Variant(relation=relation, status="rejected", reason=reason, source=text, refused=refused)
    return Variant(relation=relation, status="not_applicable", reason=reason, source=text)


_NO_WORDS = Refused("no words to rewrite", fails=False)


def _furthest(text: str, stops: Sequence[int], start: int, longest: int) -> int:
    """Return where a piece that begins at `start` ends."""
    limit = start + longest
    if stops[-1] <= limit:
        return stops[-1]
    fitting = stops[bisect_right(stops, start) : bisect_right(stops, limit)]
    if not fitting:  # at a blank, or anywhere
        blank = text.rfind(" ", start + 1, limit + 1)
        return limit if blank < 0 else blank
    # a paragraph ends a piece that is at least half full by then
    paragraphs = (stop for stop in reversed(fitting) if "\n" in text[stop - 2 : stop])
    return next((stop for stop in paragraphs if stop - start >= longest / 2), fitting[-1])
