"""Are the same people, places and addresses in the rewrite, and did who did what to whom stay the same?"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from functools import cache, lru_cache
from importlib.util import find_spec
from itertools import groupby, pairwise
from typing import NamedTuple

from pcs_annotator.relations.checks.reading import SPELT, Rewrite, addresses, mentions, plain, prose, quoted, words
from pcs_annotator.relations.facts import LOUD, NAMES_TOO, SMALL, is_title, readings, word_set
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
    """A name of one or more words."""

    words: tuple[str, ...]  # its words, in lower case; any of them may stand for it
    opens: bool  # whether it opens a sentence, where every word has a capital


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


_STEM = 4  # letters that two forms of a name share, at least


def _unknown(names: Iterable[str], known: Set[str]) -> list[str]:
    """Return the names that are not among the words of another text, whatever their endings: Russia and Russian."""
    alike: dict[str, list[str]] = {}
    for word in known:
        alike.setdefault(word[:_STEM], []).append(word)
    return [
        name
        for name in names
        if name not in known and not any(_is_declined(name, word) for word in alike.get(name[:_STEM], ()))
    ]


def _is_declined(name: str, word: str) -> bool:
    same = max(_STEM, 2 * max(len(name), len(word)) // 3)
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


_PRONOUNS = {
    "I": "i me my mine myself i'm i've i'll i'd im ive",
    "we": "we us our ours we're we've we'll",
    "you": "you your yours yourself u ur ya you're you've you'll y'all youre",
    "he": "he him his himself he's",
    "she": "she her hers herself she's",
    "they": "they them their",
}
_PERSON = {word: person for person, row in _PRONOUNS.items() for word in row.split()}
# Each pair must not be exchanged.
_APART = (({"I", "we"}, {"you"}), ({"he"}, {"she"}))
_BE = word_set("is are was were be been being am gets got get")
# These change with voice or style without changing who did what.
_STYLE = word_set("a an the 's that")
_SAME_FRAME = 0.7


def roles(rewrite: Rewrite) -> str:
    """Complain when two names have swapped roles, or two words have changed sides."""
    source, text = _bare_words(rewrite.source), _bare_words(rewrite.text)
    return _other_person(source, text) or _swapped_names(rewrite, source, text) or _turned_round(source, text)


@lru_cache(maxsize=256)
def _bare_words(text: str) -> tuple[str, ...]:
    found = words(text)
    return tuple(map(bare, found)) if "'" in plain(text) else found


def _other_person(source: Sequence[str], text: Sequence[str]) -> str:
    before, after = ({_PERSON[word] for word in row if word in _PERSON} for row in (source, text))
    for pair in _APART:
        for one, other in (pair, pair[::-1]):
            if before & one and after & other and not (before & other or after & one):
                return f"{min(after & other)} takes the place of {min(before & one)}; keep who speaks, and of whom"
    return ""


def _swapped_names(rewrite: Rewrite, source: Sequence[str], text: Sequence[str]) -> str:
    """Complain about names in a different order, unless the grammar around them changed as well."""
    if capitals(rewrite.source) == capitals(rewrite.text):
        return ""
    names = {word: number for number, name in enumerate(entities(rewrite.source)) for word in name.words}
    before, after = (list(dict.fromkeys(names[word] for word in row if word in names)) for row in (source, text))
    if [name for name in before if name in after] == after:
        return ""
    one, other = ({word for word in row if word not in names and word not in _STYLE} for row in (source, text))
    same = source.count("by") == text.count("by") and len(one & other) >= _SAME_FRAME * max(len(one), len(other))
    return "names have changed places; keep who does what" if same or not rewrite.expects.reorders else ""


def _turned_round(source: Sequence[str], text: Sequence[str]) -> str:
    """Complain when a passive came in but no word moved, or when words changed sides without a passive."""
    rows = [[_PERSON.get(word, word) for word in row if word not in _STYLE] for row in (source, text)]
    kept = {word for word, _ in Counter(rows[0]).items() & Counter(rows[1]).items()}
    before, after = ([word for word in row if word in kept] for row in rows)
    around, now = ({(*one, other[1]) for one, other in pairwise(pairwise(row))} for row in (before, after))
    by = text.count("by") - source.count("by")
    if by > 0 and _BE & {*text} - {*source}:
        verbs = {verb for verb, word in pairwise(text) if word == "by"}
        in_place = before == after or any(middle in verbs for _, middle, _ in around & now)
        return "the passive turns it round; keep who does what" if in_place else ""
    turned = any(triple[::-1] in around for triple in now - around)
    return "two words have changed sides; keep who does what" if turned and not by else ""
