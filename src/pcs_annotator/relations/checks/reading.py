"""A rewrite as checks read it, and those that need only its words: is all of it there, are the numbers the same?"""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from pcs_annotator.core.variant import Expectation
from pcs_annotator.relations.facts import pattern, word_set
from pcs_annotator.relations.language import known_language, language_of, may_be_english, other_language


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A text, its rewrite, and what the rewrite may do."""

    source: str  # the text that was rewritten
    text: str  # the rewrite
    expects: Expectation = field(default_factory=Expectation)  # what the relation may do to a text


Check = Callable[[Rewrite], str]  # what is wrong with a rewrite, told to the rewriting model; empty if nothing is


def quoted(words: Iterable[str], most: int = 4) -> str:
    """Return quoted words for a complaint; only the first few if there are many.

    >>> quoted(["a", "b"])
    '"a", "b"'
    """
    shown = [f'"{word}"' for word in words]
    return ", ".join(shown[:most]) + (" and others" if len(shown) > most else "")


_PLAIN = str.maketrans({"’": "'", "‘": "'", "`": "'", "´": "'", "“": '"', "”": '"', "–": "-", "—": "-", "\u00a0": " "})
_WORD = re.compile(r"[^\W_]+(?:'[^\W\d_]+)*")
_ADDRESS = re.compile(r"(?:https?://|www\.)\S+|\b[\w-]{1,63}\.(?:com|org|net|ly|co|tv|me|it|be)/\S*", re.IGNORECASE)
_MENTION = re.compile(r"(?<!\w)[@#]\w*[^\W\d]\w*")
_ENTITY = re.compile(r"&(?:#\d+|[a-z]+);")


@lru_cache(maxsize=256)
def plain(text: str) -> str:
    """Return the text with plain quotation marks and dashes.

    >>> plain("“plan” – done")
    '"plan" - done'
    """
    return text.replace("`", "'") if text.isascii() else text.translate(_PLAIN)


@lru_cache(maxsize=256)
def prose(text: str) -> str:
    """Return the text without web addresses, mentions, tags and HTML entities."""
    text = plain(text)
    if "/" in text or "www." in text:
        text = _ADDRESS.sub(" ", text)
    if "@" in text or "#" in text:
        text = _MENTION.sub(" ", text)
    return _ENTITY.sub(" ", text) if "&" in text else text


@lru_cache(maxsize=256)
def words(text: str) -> tuple[str, ...]:
    """Return the words in lower case, without addresses.

    >>> words("Don’t look: http://a.b/c it's 5!")
    ("don't", 'look', "it's", '5')
    """
    return tuple(_WORD.findall(prose(text).lower()))


def addresses(text: str) -> list[str]:
    """Return web addresses without scheme and trailing punctuation."""
    found = _ADDRESS.findall(text) if "/" in text or "www." in text.lower() else []
    return [re.sub(r"^https?://", "", address.lower()).rstrip(".,;:!?)\"'/") for address in found]


def mentions(text: str) -> list[str]:
    """Return the @names and #tags in lower case."""
    return [found.lower() for found in _MENTION.findall(text)] if "@" in text or "#" in text else []


def without_typos(rewrite: Rewrite) -> str:
    """Return the rewrite with typos corrected from the source, so that the other checks can read it."""
    known = set(_WORD.findall(plain(rewrite.source)))
    missing = known - set(_WORD.findall(plain(rewrite.text)))

    def put_back(found: re.Match[str]) -> str:
        word = found.group()
        if word in known:
            return word
        return next((meant for meant in sorted(missing) if one_typo(word, meant)), word)

    return _WORD.sub(put_back, plain(rewrite.text))


def one_typo(typed: str, meant: str) -> bool:
    """Return whether two words differ by one typo: a letter added, missing or changed, or two letters swapped.

    >>> one_typo("hte", "the"), one_typo("cat", "dog"), one_typo("helo", "hello")
    (True, False, True)
    """
    typed, meant = typed.lower(), meant.lower()
    if abs(len(typed) - len(meant)) > 1:
        return False
    start = next((i for i, (a, b) in enumerate(zip(typed, meant, strict=False)) if a != b), min(len(typed), len(meant)))
    a, b = typed[start:], meant[start:]
    swapped = len(a) > 1 and len(b) > 1 and a[0] == b[1] and a[1] == b[0] and a[2:] == b[2:]
    return a == b or a[1:] == b[1:] or a[1:] == b or a == b[1:] or swapped


_UNIT_ROW = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_UNITS = {word: value for value, word in enumerate(_UNIT_ROW.split())}
_TEN_ROW = "twenty thirty forty fifty sixty seventy eighty ninety"
_TENS = {word: 10 * value for value, word in enumerate(_TEN_ROW.split(), start=2)}
SPELT = frozenset((*_UNITS, *_TENS))  # words that are, or may be, numbers
_SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_SHORT = {"k": 1000, "m": 10**6, "mn": 10**6, "mln": 10**6, "b": 10**9, "bn": 10**9, "tn": 10**12}
_SCALE = "|".join(_SCALES)

_DIGITS = re.compile(
    r"(?<!\w)(?<!\d[.,])(\d+(?:[,.]\d{3})*(?:\.\d+)?|\.\d+)"
    rf"(?:(?:\s|-)?({_SCALE})s?\b|(st|nd|rd|th|s|am|pm|a\.m|p\.m|%)?(?![^\W\d_])|(k|m|mn|mln|b|bn|tn)\b|"
    r"(?:-?(?:year|month|week|day|hour|minute|second|mph|km|kg|lbs?|ft|cm|mm|gb|mb|mp|hrs?|min|mins|yrs?|yo|x|p)s?)\b)",
    re.IGNORECASE,
)
_WORDS = re.compile(
    rf"\b(?:({'|'.join(_TENS)})(?:[ -]({'|'.join(list(_UNITS)[1:10])}))?|({'|'.join(_UNITS)}))(?:[ -]({_SCALE}))?\b",
    re.IGNORECASE,
)
# Spelt out, these are mostly not numbers ("one of them").
_LOOSE = (0.0, 1.0)


@lru_cache(maxsize=256)
def read_numbers(text: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the values of the numbers that a rewrite must keep, and of words that may be numbers.

    >>> read_numbers("1,000 of 2.5 million, twenty-five and one")
    ((1000.0, 2500000.0, 25.0), (1.0,))
    """
    text = prose(text)
    sure = list(map(_of_digits, _DIGITS.finditer(text))) if any(map(str.isdigit, text)) else []
    loose: list[float] = []
    for found in _WORDS.finditer(text) if not SPELT.isdisjoint(words(text)) else ():
        value = _of_words(found)
        (loose if value in _LOOSE else sure).append(value)
    return tuple(sure), tuple(loose)


# Digits of any script; marks between them separate thousands or decimals. A blank does so only before three digits.
_FIGURES = re.compile(r"(?<![\w])\d+(?:[.,'’٫٬]\d+|[ \u00a0\u202f]\d{3}(?!\d))*")
_MARKS = re.compile(r"[^\d]")
# Small numbers may be spelt out, and we do not know the words of all languages.
_SPELT_OUT = range(13)


@lru_cache(maxsize=256)
def read_figures(text: str) -> tuple[float, ...]:
    """Return the numbers of a text in any language: the figures only, however they are written."""
    return tuple(map(_of_figures, _FIGURES.findall(prose(text))))


def numbers(rewrite: Rewrite) -> str:
    """Complain when a number is missing or new, however it is written."""
    source, text = rewrite.source, rewrite.text
    if may_be_english(source):
        (before, maybe_before), (after, maybe_after) = read_numbers(source), read_numbers(text)
    else:
        before, maybe_before, after, maybe_after = read_figures(source), (), read_figures(text), ()
    if before == after:
        return ""
    missing = Counter(before) - Counter(after) - Counter(maybe_after)
    new = Counter(after) - Counter(before) - Counter(maybe_before)
    if not ((missing and new) or may_be_english(source)):
        missing, new = (Counter(one for one in each if one not in _SPELT_OUT) for each in (missing, new))
    if missing:
        return f"missing: {quoted(f'{value:.12g}' for value in missing)}; keep every number"
    return f"new: {quoted(f'{value:.12g}' for value in new)}; add no number" if new else ""


def _of_figures(found: str) -> float:
    """Return the value of a number; a last part of three digits is taken for thousands.

    >>> _of_figures("1.234,56"), _of_figures("1,234"), _of_figures("٢٠")
    (1234.56, 1234.0, 20.0)
    """
    *whole, last = _MARKS.split(found)
    if not whole or len(last) == 3:
        return float("".join([*whole, last]))
    return float(f"{''.join(whole)}.{last}")


def _of_digits(found: re.Match[str]) -> float:
    digits, scale, _, short = found.group(1, 2, 3, 4)
    digits = digits.replace(",", "")
    if digits.count(".") > 1:
        digits = digits.replace(".", "")
    factor = _SCALES[scale.lower()] if scale else _SHORT[short.lower()] if short else 1
    return float(f"{float(digits) * factor:.12g}")


def _of_words(found: re.Match[str]) -> float:
    tens, one, unit, scale = (word.lower() for word in found.groups(""))
    return float((_TENS.get(tens, 0) + _UNITS.get(one or unit, 0)) * _SCALES.get(scale, 1))


# These change with voice and contractions, so a missing one does not mean that something was left out.
_SMALL = word_set(
    "a an the to of by that which who it its is are was were be been being am 's has have had do does did will would "
    "and or so too very just really then there"
)
# Below this share of all words but the small ones, part of the text is missing.
_FEWEST = 0.74
# A text this short may lose a word without losing a part.
_HANDFUL = 6


def unchanged(rewrite: Rewrite) -> str:
    """Complain when the two differ only in spaces."""
    if rewrite.source.split() == rewrite.text.split():
        return "the rewrite is the same as the text; change it as asked"
    return ""


def length(rewrite: Rewrite) -> str:
    """Complain when part of the text is missing or a lot was added."""
    source, text = len(rewrite.source.strip()), len(rewrite.text.strip())
    if not text:
        return "the rewrite is empty; write the whole text"
    if not source:
        return "there is no text to rewrite"
    # A short text may grow a lot in relative terms: "It is not bad" for "Good".
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
    if len(source) <= _HANDFUL:
        return False
    before, after = (sum(word not in _SMALL for word in row) for row in (source, text))
    return after < min(1.0, rewrite.expects.shortest / 0.6) * _FEWEST * before


_CHATTER = pattern("chatter", re.IGNORECASE)


def _of_text(talk: str, source: str) -> bool:
    stems = [word[:4] for word in talk.split() if len(word) > 3]
    return talk in source or (bool(stems) and all(stem in source for stem in stems))


def language(rewrite: Rewrite) -> str:
    """Complain when the language changed, or when the model commented instead of rewriting."""
    talk = _CHATTER.search(plain(rewrite.text))
    # Words from the text itself are not the model's chatter, nor is "rewritten" for its "rewrote".
    if talk and not _of_text(talk.group().strip().lower(), plain(rewrite.source).lower()):
        return "the reply talks about the text or answers it; write nothing but the rewritten text"
    other = other_language(rewrite.source, rewrite.text)
    if other:
        before = known_language(rewrite.source) or language_of(rewrite.source)
        return f"the text is in one language ({before}), the rewrite in another ({other}); keep the language"
    return ""


_HEDGE, _MISSED = pattern("hedge"), pattern("missed")
# Question marks of all scripts, and the Chinese and Japanese words that take their place.
_QUESTION = re.compile(r"[?？؟՞](?!\w)|[吗呢么か](?=[。！…」』\s]|\Z)")


def certainty(rewrite: Rewrite) -> str:
    """Complain when a question became a statement, or an English rumour a fact or a question."""
    source, text = prose(rewrite.source), prose(rewrite.text)
    asked, asks = (_QUESTION.search(each) is not None for each in (source, text))
    if asked and not asks:
        return "the text is a question; keep it one"
    if not may_be_english(rewrite.source):
        return ""
    if asks and not asked:
        return "the text is no question; do not ask one"
    missed = _MISSED.search(source.lower())
    surer = missed is not None and not _HEDGE.search(text.lower())
    return f'"{missed[0]}" is missing; do not make the text surer than it is' if missed and surer else ""
