r"""Finds what a reply only repeats: the text to label, or the prompt around it.

Reply and text are compared word by word, and a word is letters and digits alone: case, line breaks, bullets, quotation
marks, markup, escapes (`\n`, `&quot;`), invisible characters and the width of letters make no difference. A repetition
is a run of words that the text has in the same order, too long for a coincidence; of a shorter text, the whole. A reply
with a sentence of the prompt's frame, which no answer has, is compared with the whole prompt instead.

Repetitions are replaced by white space, and everything else stays in its place. So the reader can still see where an
answer stood in the reply as it came.
"""

import re
import unicodedata
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from html import unescape
from itertools import chain

from pcs_annotator.asking.annotators.prompt import MARKER, frame_sentences
from pcs_annotator.asking.annotators.vocabulary import INVISIBLE
from pcs_annotator.core.chat import Message

Span = tuple[int, int]

ECHO = "\x1e"  # stands at both ends of what was repeated: for Python it is white space, and ends a line

_SHORTEST_WORDS = 4
_SHORTEST_LETTERS = 18
_FRAME_WORDS = 6
# Places with the same four words that are tried: more would only cost time.
_PLACES = 8
# For shorter replies it is quicker to look for their words than to take the text apart.
_FEW_WORDS = 40

_UNSEEN = re.compile(f"[{INVISIBLE}]+")
_LIST_NUMBER = r"(?<![^\W_])\d{1,2}[.)](?!\S)"
_ASCII_WORD = re.compile(rf"{_LIST_NUMBER}|([a-z0-9]+)")
# Chinese and Japanese have no spaces, and emoji need none: every character is a word. Accents may be composed or not.
_SINGLE = "\u2600-\u27bf\u3040-\u30ff\u3400-\u9fff\U0001f000-\U0001faff"
_WORD = re.compile(rf"{_LIST_NUMBER}|([{_SINGLE}]|(?:(?![{_SINGLE}])[^\W_]|[{INVISIBLE}\u0300-\u036f])+)")
# What was escaped twice is unescaped, too.
_ESCAPE = re.compile(
    r"\\++(?:u([0-9a-f]{4})(?:\\++u(d[c-f][0-9a-f]{2}))?|[nrtbf\"'/])?"
    r"|&(?:amp;)*(#\d{1,6}|#x[0-9a-f]{1,5}|[a-z]{2,8});|<br\s?/?>",
    re.IGNORECASE,
)
_OPENING = "<([{\"'“‘«„`*_~#>-"
_CLOSING = ">)]}\"'”’»“`*_~.,;:!?…"
_MOST_MARKS = 8
_BLANK = re.compile(f"{ECHO} *+{ECHO}")


def blanked(text: str, spans: Iterable[Span]) -> str:
    """Return a text of the same length with white space in the place of the spans, which are in order."""
    kept: list[str] = []
    position = 0
    for start, end in spans:
        # the same mark may close one span and open the next
        first = max(start, position)
        kept += text[position:first], (ECHO.ljust(end - first - 1) + ECHO)[: end - first]
        position = end
    return "".join([*kept, text[position:]]) if kept else text


def collapsed(text: str) -> str:
    """Return a blanked text in which every blank is a single character."""
    return _BLANK.sub(ECHO, text) if ECHO in text else text


def normal(text: str) -> str:
    """Return a text without differences of case, width and escapes, and without invisible characters."""
    text = _without_escapes(text)
    if text.isascii():
        return text.lower()
    return _UNSEEN.sub("", unicodedata.normalize("NFKC", text)).casefold()


@lru_cache(maxsize=16)
def normal_text(asked: str) -> str:
    """Return the normal form of a text to label, which is needed more than once for a reply."""
    return normal(asked)


def own_words(reply: str, asked: str, prompt: Sequence[Message] = (), longest: int = 0) -> str:
    """Return the reply with white space in the place of everything that it repeats from the text or the prompt.

    `longest` is the length of the longest answer in letters; as much may be in the text by coincidence.
    """
    least = max(_SHORTEST_LETTERS, longest + 1)
    is_long = len(asked) > 3 * least
    if is_long and len(reply) < least:
        return reply
    words = _words(reply)
    if prompt and _repeats_frame(words):
        asked = "\n".join(message.content for message in prompt)
    elif marker := MARKER.search(reply):
        # the prompt is not known, but what stands between its markers is the text
        reply = blanked(reply, [(marker.start(), reply.rindex(marker[0]) + len(marker[0]))])
        words = _words(reply)
    elif is_long and len(words) <= _FEW_WORDS and not _in_a_row(words, normal_text(asked), _SHORTEST_WORDS):
        return reply
    runs = list(_repetitions(words, _words(asked), least, cut_off=reply[-1:].isalnum()))
    spans = _spans(reply) if runs else []
    return blanked(reply, (_with_marks(reply, spans[start][0], spans[end - 1][1]) for start, end in runs))


def _words(text: str) -> list[str]:
    text = _without_escapes(text)
    if text.isascii():
        return [word for word in _ASCII_WORD.findall(text.lower()) if word]
    return [word for word_match in _WORD.findall(text) if (word := normal(word_match))]


def _spans(text: str) -> list[Span]:
    """Return where the words of a text are."""
    text = _without_escapes(text)
    if text.isascii():
        return [match.span() for match in _ASCII_WORD.finditer(text.lower()) if match[1]]
    return [match.span() for match in _WORD.finditer(text) if normal(match[1] or "")]


def _without_escapes(text: str) -> str:
    """Return a text of the same length with escaped characters as themselves, padded by spaces or soft hyphens."""
    return _ESCAPE.sub(_unescaped, text) if "\\" in text or "&" in text or "<br" in text or "<BR" in text else text


def _unescaped(match: re.Match[str]) -> str:
    first, second, entity = match.groups()
    meant = unescape(f"&{entity};") if entity else " "
    if first:
        meant = bytes.fromhex(first + (second or "")).decode("utf-16-be", "replace")
    return meant.ljust(len(match[0]), "\u00ad" if meant.isalnum() else " ")


def _in_a_row(words: list[str], allowed: Container[str], size: int) -> bool:
    """Return whether `size` known words are next to each other: a quick way to rule out a repetition."""
    row = 0
    for word in words:
        row = row + 1 if word in allowed else 0
        if row == size:
            return True
    return False


def _repeats_frame(words: list[str]) -> bool:
    frame_words, rows = _frame()
    return _in_a_row(words, frame_words, _FRAME_WORDS) and not rows.isdisjoint(_rows(words, _FRAME_WORDS))


@cache
def _frame() -> tuple[frozenset[str], frozenset[tuple[str, ...]]]:
    """Return the words of the prompt's frame, and every six of them in a row."""
    sentences = [_words(sentence) for sentence in frame_sentences()]
    rows = (row for words in sentences for row in _rows(words, _FRAME_WORDS))
    return frozenset(chain.from_iterable(sentences)), frozenset(rows)


def _rows(words: list[str], size: int) -> Iterator[tuple[str, ...]]:
    return zip(*(words[step:] for step in range(size)), strict=False)


def _repetitions(words: list[str], source: list[str], least: int, *, cut_off: bool) -> Iterator[Span]:
    """Yield the runs of words that are repeated: the longest at each place, from left to right."""
    if len(source) < _SHORTEST_WORDS or sum(map(len, source[:least])) < least:
        yield from _whole(words, source)
        return
    places: dict[tuple[str, ...], list[int]] = {}
    for at, row in enumerate(_rows(source, _SHORTEST_WORDS)):
        positions = places.setdefault(row, [])
        if len(positions) < _PLACES:
            positions.append(at)
    done = here = 0
    for position, row in enumerate(_rows(words, _SHORTEST_WORDS)):
        if position < here or row not in places:
            continue
        length, at = max((_common(words, position, source, at), at) for at in places[row])
        start, end = position, position + length
        while start > done and at + start - position > 0 and words[start - 1] == source[at + start - position - 1]:
            start -= 1
        if cut_off and end == len(words) - 1 and "".join(source[at + length : at + length + 1]).startswith(words[end]):
            end += 1
        if sum(map(len, words[start:end])) >= least:
            yield start, end
            done = here = end


def _common(words: list[str], position: int, source: list[str], at: int) -> int:
    length, most = _SHORTEST_WORDS, min(len(words) - position, len(source) - at)
    while length < most and words[position + length] == source[at + length]:
        length += 1
    return length


def _whole(words: list[str], source: list[str]) -> Iterator[Span]:
    size, here = len(source), 0
    for position in range(len(words) - size + 1 if size > 1 else 0):
        if position >= here and words[position : position + size] == source:
            here = position + size
            yield position, here


def _with_marks(reply: str, start: int, end: int) -> Span:
    """Return a span with the quotation marks, brackets and bullets around it."""
    before, after = reply[max(0, start - _MOST_MARKS) : start], reply[end : end + _MOST_MARKS]
    return start - len(before) + len(before.rstrip(_OPENING)), end + len(after) - len(after.lstrip(_CLOSING))
