"""Are the same people, places and addresses in the rewrite?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Set
from functools import cache, lru_cache
from importlib.util import find_spec
from itertools import groupby
from typing import NamedTuple

from pcs_annotator.relations.checks.reading import Rewrite, addresses, mentions, prose, quoted, words
from pcs_annotator.relations.checks.surface import SPELT
from pcs_annotator.relations.facts import LOUD, NAMES_TOO, SMALL, is_title, readings
from pcs_annotator.relations.language import known_language, language_of, may_be_english

_CAPITALISED = re.compile(r"(?<![\w'])[A-ZÀ-ÖØ-Þ][^\W_]*(?:['&-][^\W_]+)*")
# The words of one name are separated by a space, or by a particle such as "von"; "the BBC's Bob" is two names.
_NAME = re.compile(
    rf"{_CAPITALISED.pattern}(?:(?<!'s)\s(?:(?:de|del|della|von|van|der|den|la|le|al|bin)\s)?{_CAPITALISED.pattern})*"
)
_INITIALS = re.compile(r"\b(?:[A-Z]\.){2,}|\b(?:[A-Z]\.)+(?=[A-Z]\b)")
_UNITED = re.compile(r"\bUnited ([SK])(?:tates|ingdom)\b")
_OPENING = re.compile(r"(?:^|[.!?:;*|\n]|\.\.\.|[\"'(\[] ?| -+)\s*[\"'(\[]?$")
_CONTRACTED = re.compile(r"(?:n't|'(?:re|ve|ll|d|m))$")
# Headline words such as "wrapup" and "lockdown" are in no dictionary, but they are not names.
_PARTICLE = re.compile(r"(?<=\w{3})(?:up|off|out|down)s?$")
_SAME = {"usa": "us", "america": "us", "american": "us", "americans": "us", "britain": "uk", "british": "uk"}


class Entity(NamedTuple):
    """A name of one or more words.

    Attributes:
        words: Its words, in lower case; any of them may stand for it.
        opens: Whether it opens a sentence, where every word has a capital.
    """

    words: tuple[str, ...]
    opens: bool


@lru_cache(maxsize=256)
def capitals(text: str) -> tuple[str, ...]:
    """Return all words with a capital, in order; if they are the same in two texts, so are the names."""
    return tuple(_CAPITALISED.findall(prose(text)))


@lru_cache(maxsize=256)
def entities(text: str) -> tuple[Entity, ...]:
    """Return the names, each as one group of adjacent words.

    >>> [entity.words for entity in entities("Then Ann Lee met the BBC's Bob.")]
    [('ann', 'lee'), ('bbc',), ('bob',)]
    """
    title, text, found = is_title(text), _one_spelling(text), []
    for group in _NAME.finditer(text):
        for named, run in groupby(_CAPITALISED.finditer(group[0]), lambda word: _is_name(word[0], title)):
            given = list(run)
            parts = [part for word in given for part in re.split(r"[-&]", bare(word[0])) if len(part) > 1]
            if named and parts:
                opens = given[0].start() == 0 and _opens(text, group.start())
                found.append(Entity(tuple(_SAME.get(part, part) for part in parts), opens))
    return tuple(found)


def _opens(text: str, start: int) -> bool:
    return _OPENING.search(text[max(0, start - 8) : start]) is not None


def _one_spelling(text: str) -> str:
    """Return the prose of a text, with US for U.S. and United States."""
    text = _UNITED.sub(r"U\1", prose(text))
    return _INITIALS.sub(lambda found: found.group().replace(".", ""), text) if "." in text else text


def _is_name(word: str, title: bool) -> bool:
    low = bare(word)
    if low == "cannot" or _CONTRACTED.search(low) or (low in SMALL and word != "US"):
        return False
    if title:
        return low in NAMES_TOO or not is_word(low)
    return low not in LOUD and not (word.isupper() and len(word) > 5)


def bare(word: str) -> str:
    """Return a word in lower case without a possessive ending."""
    word = word.lower()
    return word[:-2] if word.endswith("'s") else word.rstrip("'")


@lru_cache(maxsize=20_000)
def is_word(word: str) -> bool:
    """Return whether a word is an ordinary English word; without lemminflect, only common ones are known."""
    if word in SMALL or word in LOUD or word in SPELT:
        return True
    if not _has_dictionary() or word in NAMES_TOO:
        return False
    return bool(readings(word) or readings(_PARTICLE.sub("", word)))


@cache
def _has_dictionary() -> bool:
    return find_spec("lemminflect") is not None


def names(rewrite: Rewrite) -> str:
    """Complain when a name is missing or new; part of a longer name is enough."""
    source, text = rewrite.source, rewrite.text
    lost = _lost_addresses(source, text)
    if lost:
        return f"missing: {quoted(lost)}; keep addresses, @names and #tags as they are"
    if _lost_addresses(text, source):
        return "there is a new address, @name or #tag; add none"
    missing, new = _changed_names(source, text) if may_be_english(source) else _changed_foreign_names(source, text)
    if missing:
        return f"missing: {quoted(missing)}; keep every name"
    return f"new: {quoted(new)}; add no name that is not in the text" if new else ""


def _lost_addresses(source: str, text: str) -> list[str]:
    low = text.lower()
    return [one for one in addresses(source) + mentions(source) if one not in low and one.lstrip("@#") not in low]


def _changed_names(source: str, text: str) -> tuple[list[str], list[str]]:
    """Return the names of which no word is left, and new words of names; ordinary words may just have a capital."""
    if capitals(source) == capitals(text):
        return [], []
    before, after = _known_words(source), _known_words(text)
    # Every first word has a capital; a single one is a name only if it is not an ordinary word.
    sure = [one for one in entities(source) if not (one.opens and len(one.words) == 1 and is_word(one.words[0]))]
    missing = [" ".join(name.words) for name in sure if len(_unknown(name.words, after)) == len(name.words)]
    new = [word for name in entities(text) for word in _unknown(name.words, before) if not is_word(word)]
    return missing, new


def _known_words(text: str) -> frozenset[str]:
    """Return the words in which names are looked up: lower case, without possessive endings."""
    found = {bare(word) for word in words(_one_spelling(text))} | {mention[1:] for mention in mentions(text)}
    return frozenset(found | {_SAME[word] for word in found & _SAME.keys()})


def _unknown(names: Iterable[str], known: Set[str]) -> list[str]:
    """Return the names that are not among the words of another text, whatever their endings: Russia and Russian."""
    return [name for name in names if name not in known and not any(_is_declined(name, word) for word in known)]


def _is_declined(name: str, word: str) -> bool:
    same = max(4, 2 * max(len(name), len(word)) // 3)
    return name[:same] == word[:same]


# Letters with capitals beyond those above, such as Cyrillic and Polish ones.
_ANY_WORD = re.compile(r"[^\W_]+(?:[-'’&][^\W_]+)*")
_STARTS = re.compile(r"(?:\A|[.!?…:;*|\n\"'“”„«»(\[¿¡–—-])\s*\Z")
_LOOK_BACK = 4


def _changed_foreign_names(source: str, text: str) -> tuple[list[str], list[str]]:
    """Return the missing and the new names of a text in another language, as far as its capitals show names."""
    nouns = (known_language(source) or language_of(source)) == "de"
    before, after = ({word.casefold() for word in _ANY_WORD.findall(prose(each))} for each in (source, text))
    return _unknown(_marked_names(source, nouns), after), _unknown(_marked_names(text, nouns), before)


def _marked_names(text: str, nouns: bool) -> list[str]:
    """Return the words that are names by their capitals; where all nouns have them, as in German, only short forms."""
    text, found = prose(text), []
    loud = sum(map(str.isupper, text)) > sum(map(str.islower, text))
    for word in _ANY_WORD.finditer(text) if not (loud or is_title(text)) else ():
        opens = _STARTS.search(text, max(0, word.start() - _LOOK_BACK), word.start()) is not None
        if len(word[0]) > 1 and word[0][0].isupper() and (word[0].isupper() or not (nouns or opens)):
            found.append(word[0].casefold())
    return found
