"""Are the same people, places and addresses in the rewrite?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache, lru_cache
from importlib.util import find_spec
from typing import NamedTuple

from pcs_annotator.relations.checks.reading import Rewrite, addresses, mentions, prose, quoted, words
from pcs_annotator.relations.checks.surface import SPELT
from pcs_annotator.relations.facts import LOUD, NAMES_TOO, SMALL, SURE_NAMES, is_title, readings, word_set
from pcs_annotator.relations.language import known_language, language_of, may_be_english

_CAPITALISED = re.compile(r"(?<![\w'])[A-ZÀ-ÖØ-Þ][^\W_]*(?:['&-][^\W_]+)*")
_WORD = re.compile(r"(?<![\w'])[^\W\d_][^\W_]*")
_INITIALS = re.compile(r"\b(?:[A-Z]\.){2,}|\b(?:[A-Z]\.)+(?=[A-Z]\b)")
_OPENING = re.compile(r"(?:^|[.!?:;*|\n]|\.\.\.|[\"'(\[] ?| -+)\s*[\"'(\[]?$")
_CONTRACTED = re.compile(r"(?:n't|'(?:re|ve|ll|d|m))$")
# The words of one name are separated by a space, or by a particle such as "von".
_WITHIN = re.compile(r"\s(?:(?:de|del|della|von|van|der|den|la|le|al|bin)\s)?$")

# Headline words such as "wrapup" and "lockdown" are in no dictionary, but they are not names.
_PARTICLE = re.compile(r"(?<=\w{3})(?:up|off|out|down)s?$")

SAME = {"usa": "us", "america": "us", "american": "us", "americans": "us", "britain": "uk", "british": "uk"}


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
    title = is_title(text)
    text = joined_initials(prose(text))
    groups: list[list[tuple[str, bool]]] = []
    end = -1
    for found in _CAPITALISED.finditer(text):
        word, start = found.group(), found.start()
        opens = _opens(text, start)
        if not _is_name(word, title):
            end = -1
            continue
        if end >= 0 and groups and not _separates(text[end:start]):
            groups[-1].append((word, opens))
        else:
            groups.append([(word, opens)])
        # "The BBC's Bob" is two names.
        end = -1 if word.endswith("'s") else found.end()
    return tuple(Entity(tuple(_parts(group)), group[0][1]) for group in groups if _parts(group))


def _opens(text: str, start: int) -> bool:
    return _OPENING.search(text[max(0, start - 8) : start]) is not None


def _separates(between: str) -> bool:
    """Return whether the characters between two capitalised words separate two names."""
    return between != " " and not _WITHIN.match(between)


def joined_initials(text: str) -> str:
    """Return the text with U.S. as US."""
    return _INITIALS.sub(lambda found: found.group().replace(".", ""), text) if "." in text else text


def _is_name(word: str, title: bool) -> bool:
    low = bare(word)
    if low == "cannot" or _CONTRACTED.search(low):
        return False
    if low in SMALL and not (word.isupper() and low == "us" and len(word) == 2):
        return False
    if title:
        return low in NAMES_TOO or not is_word(low)
    return low not in LOUD and not (word.isupper() and len(word) > 5)


def _parts(group: list[tuple[str, bool]]) -> list[str]:
    words = [part for word, _ in group for part in re.split(r"[-&]", bare(word)) if len(part) > 1]
    return [SAME.get(word, word) for word in words]


def bare(word: str) -> str:
    """Return a word in lower case without a possessive ending."""
    word = word.lower()
    return word[:-2] if word.endswith("'s") else word.rstrip("'")


@lru_cache(maxsize=20_000)
def is_word(word: str) -> bool:
    """Return whether a word is an ordinary English word; without lemminflect, only common ones are known."""
    if word in SMALL or word in LOUD or word in SPELT:
        return True
    if not _has_dictionary():
        return False
    if word in NAMES_TOO:
        return False
    stem = _PARTICLE.sub("", word)
    return bool(readings(word) or (stem != word and readings(stem)))


@cache
def _has_dictionary() -> bool:
    return find_spec("lemminflect") is not None


def names(rewrite: Rewrite) -> str:
    """Complain when a name is missing, new or without its capital; part of a longer name is enough."""
    lost = _lost_addresses(rewrite.source, rewrite.text)
    if lost:
        return f"missing: {quoted(lost)}; keep addresses, @names and #tags as they are"
    if _lost_addresses(rewrite.text, rewrite.source):
        return "there is a new address, @name or #tag; add none"
    if not may_be_english(rewrite.source):
        return _foreign_names(rewrite.source, rewrite.text)
    # Where every word is in small letters, that is the rewrite's purpose.
    recased = rewrite.expects.recases or rewrite.text.islower()
    small = [] if recased else _without_capital(rewrite.source, rewrite.text)
    if small:
        return f"names without their capital: {quoted(small)}; write names as in the text"
    return _english_names(rewrite.source, rewrite.text)


def _english_names(source: str, text: str) -> str:
    if capitals(source) == capitals(text):
        return ""
    before, after = entities(source), entities(text)
    missing = _missing(before, known_words(text))
    if missing:
        return f"missing: {quoted(missing)}; keep every name"
    new = _new(after, known_words(source))
    if new:
        return f"new: {quoted(new)}; add no name that is not in the text"
    return ""


_ANY_CASE = re.compile(rf"{_CAPITALISED.pattern}|(?<![\w'])[^\W\d_A-Z][^\W_]*")
# The capitalised words right after a word.
_NAMED_AFTER = re.compile(r" (?!I\b)([A-Z][^\W_]*)(?: ([A-Z][^\W_]*))?")
_NEVER_NAMES = SMALL | SPELT | word_set("former everything everyone thats theres whats weve youve youre theyre")
_AFTER_NEW = word_set("york jersey zealand orleans hampshire mexico delhi england haven testament")


def _without_capital(source: str, text: str) -> list[str]:
    """Return the names that are written small in a rewrite; without a dictionary, names cannot be told from words."""
    if capitals(source) == capitals(text):
        return []
    before, after = (Counter(_ANY_CASE.findall(prose(each))) for each in (source, text))
    small = {word.capitalize() for word in after - before if word.islower()}
    if not small or is_title(source) or not _has_dictionary():
        return []
    source = prose(source)
    lost = (found for found in _CAPITALISED.finditer(source) if found[0] in small and found[0] not in after)
    return [found[0] for found in lost if _keeps_capital(source, found)]


def _keeps_capital(text: str, found: re.Match[str]) -> bool:
    """Return whether a word is a name, or the first word of one, rather than any word that opens a sentence."""
    low, named = bare(found[0]), _NAMED_AFTER.match(text, found.end())
    if low in SURE_NAMES or not _opens(text, found.start()):
        return not is_word(low)
    if named is not None and (low == "will" or (low == "new" and named[1].lower() in _AFTER_NEW)):
        return True
    if low in _NEVER_NAMES or _CONTRACTED.search(low):
        return False
    ordinary = all(is_word(part) or readings(part) for part in re.split("[-&]", low))
    if not ordinary or named is None:
        return not ordinary
    # "Troubled British banks" and "Referee Ann Lee", but not "Art Lee" and "Business Objects".
    describes = low.endswith(("ed", "ing")) or "ADJ" in readings(low) or named[2] is not None
    return low in NAMES_TOO or not describes or all(readings(name.lower()) for name in named.groups() if name)


# Letters with capitals beyond those above, such as Cyrillic and Polish ones.
_ANY_WORD = re.compile(r"[^\W_]+(?:[-'’&][^\W_]+)*")
_STARTS = re.compile(r"(?:\A|[.!?…:;*|\n\"'“”„«»(\[¿¡–—-])\s*\Z")
_LOOK_BACK = 4
_SHORTEST_NAME, _SHORTEST_STEM = 2, 3


def _foreign_names(source: str, text: str) -> str:
    """Complain when a name of a text in another language is missing or new, as far as its capitals show names."""
    source, text = prose(source), prose(text)
    before, after = _ANY_WORD.findall(source), _ANY_WORD.findall(text)
    if [word for word in before if not word.islower()] == [word for word in after if not word.islower()]:
        return ""
    nouns = (known_language(source) or language_of(source)) == "de"
    missing = _unknown(_marked_names(source, nouns=nouns), after)
    if missing:
        return f"missing: {quoted(missing)}; keep every name"
    new = _unknown(_marked_names(text, nouns=nouns), before)
    return f"new: {quoted(new)}; add no name that is not in the text" if new else ""


def _marked_names(text: str, *, nouns: bool) -> list[str]:
    """Return the words that are names by their capitals; where all nouns have them, as in German, only short forms."""
    found = []
    loud = sum(map(str.isupper, text)) > sum(map(str.islower, text))
    for word in _ANY_WORD.finditer(text) if not (loud or is_title(text)) else ():
        if len(word[0]) < _SHORTEST_NAME or not word[0][0].isupper():
            continue
        opens = _STARTS.search(text, max(0, word.start() - _LOOK_BACK), word.start()) is not None
        if word[0].isupper() or not (nouns or opens):
            found.append(word[0])
    return found


def _unknown(names: Iterable[str], known: Iterable[str]) -> list[str]:
    """Return the names that are not among the words of another text, whatever their endings."""
    stems = frozenset(map(_stem, known))
    return [name for name in names if not _has(stems, _stem(name))]


def _stem(word: str) -> str:
    """Return the beginning of a word, which stays when a name is declined: Москва and в Москве."""
    return word.casefold()[: max(_SHORTEST_STEM, len(word) * 2 // 3)]


def _has(stems: frozenset[str], stem: str) -> bool:
    return stem in stems or any(
        one.startswith(stem) or stem.startswith(one) for one in stems if min(len(one), len(stem)) >= _SHORTEST_STEM
    )


def known_words(text: str) -> frozenset[str]:
    """Return the words in which names are looked up: lower case, without possessive endings."""
    found = {bare(word) for word in words(joined_initials(prose(text)))}
    found.update(mention[1:] for mention in mentions(text))
    return frozenset(found | {SAME[word] for word in found & SAME.keys()} | _united(found))


def _united(found: set[str]) -> set[str]:
    if "united" not in found:
        return set()
    return {"us"} if "states" in found else {"uk"} if "kingdom" in found else set()


def _missing(named: Iterable[Entity], known: frozenset[str]) -> list[str]:
    """Return the names of which no word occurs in the other text."""
    absent = [each for each in named if known.isdisjoint(each.words) and not _alone_at_start(each)]
    return [" ".join(each.words) for each in absent if not any(_is_related(word, known) for word in each.words)]


def _new(named: Iterable[Entity], known: frozenset[str]) -> list[str]:
    """Return words of names that the text does not have, except ordinary words that happen to have a capital."""
    new = [word for each in named for word in each.words if word not in known]
    return [word for word in new if not is_word(word) and not _is_related(word, known)]


def _alone_at_start(entity: Entity) -> bool:
    # Every first word has a capital; a single one is a name only if it is not an ordinary word.
    return entity.opens and len(entity.words) == 1 and is_word(entity.words[0])


def _is_related(name: str, known: frozenset[str]) -> bool:
    """Return whether a known word is the name with another ending: Russia and Russian."""
    return any(
        word[:4] == name[:4]
        and min(len(word), len(name)) > 3
        and abs(len(word) - len(name)) < 4
        and (word.startswith(name) or name.startswith(word))
        for word in known
    )


def _lost_addresses(source: str, text: str) -> list[str]:
    found = addresses(source) + mentions(source)
    if not found:
        return []
    low = text.lower()
    return [address for address in found if address not in low and address.lstrip("@#") not in low]
