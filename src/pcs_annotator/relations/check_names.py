"""Are the same people, places and addresses in the rewrite?"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from pcs_annotator.relations.check_words import SPELT, Rewrite, addresses, mentions, prose, quoted
from pcs_annotator.relations.language import LOUD, SMALL, likely_language, listed

_TOKEN = re.compile(r"[^\W_]+(?:['&-][^\W_]+)*|[^\w\s]+|\n")
_PARTS = re.compile("[-&]")
_INSIDE = ",/$%&)"  # marks after which no sentence, line or quotation begins
_PARTICLES = frozenset(["de", "del", "della", "von", "van", "der", "den", "la", "le", "al", "bin"])
_INITIALS = re.compile(r"\b(?:[A-Z]\.){2,}|\b(?:[A-Z]\.)+(?=[A-Z]\b)")
_UNITED = re.compile(r"\bUnited ([SK])(?:tates|ingdom)\b")
_SAME = {"usa": "us", "america": "us", "american": "us", "americans": "us", "britain": "uk", "british": "uk"}
_CONTRACTED = re.compile(r"(?:n't|'(?:re|ve|ll|d|m))\Z")
_ORDINARY = SMALL | LOUD | SPELT | {"cannot"}
_LONGEST_ACRONYM = 5
_STEM = 4  # letters that two forms of a name share, at least
_SMALL_IN_TITLES = listed("names", "small_in_titles")
_LEAST_WORDS, _LEAST_CAPITALS = 2, 0.9


def names(rewrite: Rewrite) -> str:
    """Complain when a name is missing or new; part of a longer name is enough."""
    source, text = rewrite.source, rewrite.text
    if lost := _lost_addresses(source, text):
        return f"missing: {quoted(lost)}; keep addresses, @names and #tags as they are"
    if _lost_addresses(text, source):
        return "there is a new address, @name or #tag; add none"
    nouns = likely_language(source) == "de"
    before, after = (names_in(part, nouns) for part in (source, text))
    missing = [" ".join(name) for name in before if len(_not_in(text, name)) == len(name)]
    if missing:
        return f"missing: {quoted(missing)}; keep every name"
    new = [word for name in after for word in _not_in(source, name)]
    return f"new: {quoted(new)}; add no name that is not in the text" if new else ""


def _lost_addresses(source: str, text: str) -> list[str]:
    low = text.lower()
    marked = addresses(source) + mentions(source)
    return [address for address in marked if address not in low and address.lstrip("@#") not in low]


@lru_cache(maxsize=256)
def names_in(text: str, nouns: bool = False) -> tuple[tuple[str, ...], ...]:
    """Return the words of each name, as far as capitals show names.

    Where all nouns have capitals, as in German, only short forms are names. A single word at the start of a sentence
    has its capital from there.
    """
    text = _one_spelling(text)
    shouted = sum(map(str.isupper, text)) > sum(map(str.islower, text))
    return () if shouted or is_title(text) else tuple(_runs(text, nouns))


def _runs(text: str, nouns: bool) -> Iterator[tuple[str, ...]]:
    """Yield every run of adjacent words that may be names."""
    run, opens, run_opens = list[str](), True, False
    for token in [*_TOKEN.findall(text), "\n"]:
        if _may_be_name(token, nouns):
            run_opens = run_opens if run else opens
            run.append(token.casefold())
        elif token not in _PARTICLES:
            parts = [part for word in run for part in _PARTS.split(word) if len(part) > 1]
            if parts and (len(run) > 1 or not run_opens):
                yield tuple(_SAME.get(part, part) for part in parts)
            run = []
        opens = not token[0].isalnum() and token.strip(_INSIDE) != ""


def _may_be_name(word: str, nouns: bool) -> bool:
    low = word.casefold()
    if not word[0].isupper() or _CONTRACTED.search(low) or (low in _ORDINARY and word != "US"):
        return False
    return len(word) <= _LONGEST_ACRONYM if word.isupper() else not nouns


def is_title(text: str) -> bool:
    """Return whether nearly every word but the small ones has a capital, so that capitals do not mark names."""
    words = [word for word in _TOKEN.findall(text)[1:] if word[0].isalpha() and word not in _SMALL_IN_TITLES]
    return len(words) >= _LEAST_WORDS and sum(not word.islower() for word in words) >= _LEAST_CAPITALS * len(words)


def _not_in(text: str, name: Iterable[str]) -> list[str]:
    """Return the words of a name that are not in a text, whatever their endings: Russia and Russian."""
    by_stem = _words_by_stem(text)
    return [word for word in name if not any(_is_declined(word, other) for other in by_stem.get(word[:_STEM], ()))]


def _is_declined(word: str, other: str) -> bool:
    same = max(_STEM, 2 * max(len(word), len(other)) // 3)
    return word[:same] == other[:same]


@lru_cache(maxsize=256)
def _words_by_stem(text: str) -> dict[str, set[str]]:
    by_stem: dict[str, set[str]] = {}
    for word in [*_TOKEN.findall(_one_spelling(text).casefold()), *(mention[1:] for mention in mentions(text))]:
        for part in {_SAME.get(part, part) for part in (word, *_PARTS.split(word))}:
            by_stem.setdefault(part[:_STEM], set()).add(part)
    return by_stem


def _one_spelling(text: str) -> str:
    """Return the prose of a text, with US for U.S. and United States, and a comma for a possessive ending."""
    text = _UNITED.sub(r"U\1", prose(text))
    return _INITIALS.sub(lambda initials: initials[0].replace(".", ""), text).replace("'s ", " , ")
