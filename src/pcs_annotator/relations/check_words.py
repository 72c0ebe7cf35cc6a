"""A rewrite as checks read it, and the checks of its words: is all of it there, with the same numbers and language?"""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from pcs_annotator.core.variant import Expectation
from pcs_annotator.relations.language import (
    likely_language,
    listed,
    may_be_english,
    other_language,
    pattern,
    word_tables,
)

_PLAIN = str.maketrans({"’": "'", "‘": "'", "`": "'", "´": "'", "“": '"', "”": '"', "–": "-", "—": "-", "\u00a0": " "})
_WORD = re.compile(r"[^\W_]+(?:'[^\W\d_]+)*")
_ADDRESS = re.compile(r"(?:https?://|www\.)\S+|\b[\w-]{1,63}\.(?:com|org|net|ly|co|tv|me|it|be)/\S*", re.IGNORECASE)
_MENTION = re.compile(r"(?<!\w)[@#]\w*[^\W\d]\w*")
_ENTITY = re.compile(r"&(?:#\d+|[a-z]+);")
_CHATTER = pattern("chatter", re.IGNORECASE)
# These change with voice and contractions, so a missing one does not mean that something was left out.
_SMALL = listed("checks", "auxiliary")
# Below this share of all words but the small ones, part of the text is missing.
_FEWEST = 0.74
# A text this short may lose a word without losing a part.
_HANDFUL = 6


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A text, its rewrite, and what the rewrite may do."""

    source: str  # the text that was rewritten
    text: str  # the rewrite
    expects: Expectation = field(default_factory=Expectation)  # what the relation may do to a text


Check = Callable[[Rewrite], str]  # what is wrong with a rewrite, told to the rewriting model; empty if nothing is


def quoted(words: Iterable[str]) -> str:
    """Return quoted words for a complaint; only the first four if there are many."""
    first, *more = (f'"{word}"' for word in words)
    return ", ".join([first, *more[:3]]) + (" and others" if len(more) > 3 else "")


@lru_cache(maxsize=256)
def prose(text: str) -> str:
    """Return the text with plain quotation marks and dashes, without addresses, mentions, tags and HTML entities."""
    text = text.translate(_PLAIN)
    if "/" in text or "www." in text:
        text = _ADDRESS.sub(" ", text)
    if "@" in text or "#" in text:
        text = _MENTION.sub(" ", text)
    return _ENTITY.sub(" ", text) if "&" in text else text


@lru_cache(maxsize=256)
def words(text: str) -> tuple[str, ...]:
    """Return the words in lower case, without addresses."""
    return tuple(_WORD.findall(prose(text).lower()))


def mentions(text: str) -> list[str]:
    """Return the @names and #tags in lower case."""
    return [mention.lower() for mention in _MENTION.findall(text)] if "@" in text or "#" in text else []


def addresses(text: str) -> list[str]:
    """Return web addresses without scheme and trailing punctuation."""
    raw = _ADDRESS.findall(text.lower()) if "/" in text or "www." in text.lower() else []
    return [re.sub(r"^https?://", "", address).rstrip(".,;:!?)\"'/") for address in raw]


def without_typos(rewrite: Rewrite) -> str:
    """Return the rewrite with typos corrected from the source, so that the other checks can read it."""
    text = rewrite.text.translate(_PLAIN)
    meant = set(_WORD.findall(rewrite.source.translate(_PLAIN)))
    missing = sorted(meant - set(_WORD.findall(text)))

    def put_back(match: re.Match[str]) -> str:
        return match[0] if match[0] in meant else next((word for word in missing if one_typo(match[0], word)), match[0])

    return _WORD.sub(put_back, text)


def one_typo(typed: str, meant: str) -> bool:
    """Return whether two words differ by one typo: a letter added, missing or changed, or two letters swapped."""
    typed, meant = typed.lower(), meant.lower()
    differing = (at for at, (a, b) in enumerate(zip(typed, meant, strict=False)) if a != b)
    same = next(differing, min(len(typed), len(meant)))
    a, b = typed[same:], meant[same:]
    return a == b or a[1:] in (b, b[1:]) or a == b[1:] or (a[1::-1] == b[:2] and a[2:] == b[2:])


def unchanged(rewrite: Rewrite) -> str:
    """Complain when the two differ only in spaces."""
    same = rewrite.source.split() == rewrite.text.split()
    return "the rewrite is the same as the text; change it as asked" if same else ""


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
    if text < source * rewrite.expects.shortest - 8 or _has_dropped_words(rewrite):
        return "a part of the text is missing; rewrite the whole text"
    return ""


def _has_dropped_words(rewrite: Rewrite) -> bool:
    source, text = words(rewrite.source), words(rewrite.text)
    if len(rewrite.text) > 0.85 * len(rewrite.source) or (text and len(source) <= _HANDFUL):
        return False
    before, after = (sum(word not in _SMALL for word in row) for row in (source, text))
    return after < min(1.0, rewrite.expects.shortest / 0.6) * _FEWEST * before or (not text and bool(source))


def language(rewrite: Rewrite) -> str:
    """Complain when the language changed, or when the model commented instead of rewriting."""
    source, text = (part.translate(_PLAIN).lower() for part in (rewrite.source, rewrite.text))
    talk = _CHATTER.search(text)
    # Words from the text itself are not the model's chatter, nor is "rewritten" for its "rewrote".
    if talk and talk[0].strip() not in source:
        stems = [word[:4] for word in talk[0].split() if len(word) > 3]
        if not stems or any(stem not in source for stem in stems):
            return "the reply talks about the text or answers it; write nothing but the rewritten text"
    other = other_language(rewrite.source, rewrite.text)
    if not other:
        return ""
    before = likely_language(rewrite.source)
    return f"the text is in one language ({before}), the rewrite in another ({other}); keep the language"


_UNITS = {word: value for value, word in enumerate(word_tables()["checks"]["units"].split())}
_TENS = {word: 10 * value for value, word in enumerate(word_tables()["checks"]["tens"].split(), start=2)}
SPELT = frozenset((*_UNITS, *_TENS))  # words that are, or may be, numbers
_SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_SHORT = {"k": 1000, "m": 10**6, "mn": 10**6, "mln": 10**6, "b": 10**9, "bn": 10**9, "tn": 10**12}
_DIGITS = pattern("digits", re.IGNORECASE)
_SPELT_NUMBER = re.compile(
    rf"\b(?:({'|'.join(_TENS)})(?:[ -]({'|'.join(list(_UNITS)[1:10])}))?|({'|'.join(_UNITS)}))"
    rf"(?:[ -]({'|'.join(_SCALES)}))?\b",
    re.IGNORECASE,
)
# Digits of any script; marks between them separate thousands or decimals. A blank does so only before three digits.
_FIGURES = re.compile(r"(?<![\w])\d+(?:[.,'’٫٬]\d+|[ \u00a0\u202f]\d{3}(?!\d))*")
# Spelt out, these are mostly not numbers ("one of them").
_LOOSE = (0.0, 1.0)
# Small numbers may be spelt out, and we do not know the words of all languages.
_SMALL_NUMBERS = range(13)


def numbers(rewrite: Rewrite) -> str:
    """Complain when a number is missing or new, however it is written."""
    english = may_be_english(rewrite.source)
    (before, maybe_before), (after, maybe_after) = (
        read_numbers(part, english) for part in (rewrite.source, rewrite.text)
    )
    if before == after:
        return ""
    missing = Counter(before) - Counter(after) - Counter(maybe_after)
    new = Counter(after) - Counter(before) - Counter(maybe_before)
    if not english and not (missing and new):
        missing, new = (Counter(value for value in each if value not in _SMALL_NUMBERS) for each in (missing, new))
    if missing:
        return f"missing: {quoted(f'{value:.12g}' for value in missing)}; keep every number"
    return f"new: {quoted(f'{value:.12g}' for value in new)}; add no number" if new else ""


@lru_cache(maxsize=256)
def read_numbers(text: str, english: bool = True) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the values of the numbers that a rewrite must keep, and of words that may be numbers."""
    text = prose(text)
    if not english:
        return tuple(map(_value_of_figures, _FIGURES.findall(text))), ()
    sure = list(map(_value_of_digits, _DIGITS.finditer(text)))
    spelt = list(map(_value_of_words, _SPELT_NUMBER.finditer(text)))
    sure += [value for value in spelt if value not in _LOOSE]
    return tuple(sure), tuple(value for value in spelt if value in _LOOSE)


def _value_of_figures(figures: str) -> float:
    """Return the value of a number; a last part of three digits is taken for thousands."""
    *whole, last = re.split(r"\D", figures)
    return float("".join([*whole, last]) if not whole or len(last) == 3 else f"{''.join(whole)}.{last}")


def _value_of_digits(match: re.Match[str]) -> float:
    digits, scale, short = match.group("digits", "scale", "short")
    digits = digits.replace(",", "")
    if digits.count(".") > 1:
        digits = digits.replace(".", "")
    factor = _SCALES[scale.lower()] if scale else _SHORT[short.lower()] if short else 1
    return float(f"{float(digits) * factor:.12g}")


def _value_of_words(match: re.Match[str]) -> float:
    tens, ones, unit, scale = (word.lower() for word in match.groups(""))
    return float((_TENS.get(tens, 0) + _UNITS.get(ones or unit, 0)) * _SCALES.get(scale, 1))
