"""Are the same people, places and addresses in the rewrite?"""

from __future__ import annotations

from collections.abc import Iterable

from pcs_annotator.relations.checks.base import Rewrite, quoted
from pcs_annotator.relations.checks.entities import (
    SAME,
    Entity,
    bare,
    capitals,
    entities,
    is_word,
    joined_initials,
)
from pcs_annotator.relations.checks.reading import addresses, mentions, prose, words


def names(rewrite: Rewrite) -> str:
    """Complain when a name is missing or new; a part of a longer name may stand for it."""
    lost = _lost_addresses(rewrite.source, rewrite.text)
    if lost:
        return f"missing: {quoted(lost)}; keep addresses, @names and #tags as they are"
    if _lost_addresses(rewrite.text, rewrite.source):
        return "there is a new address, @name or #tag; add none"
    if capitals(rewrite.source) == capitals(rewrite.text):
        return ""
    before, after = entities(rewrite.source), entities(rewrite.text)
    missing = _missing(before, known_words(rewrite.text))
    if missing:
        return f"missing: {quoted(missing)}; keep every name"
    new = _new(after, known_words(rewrite.source))
    if new:
        return f"new: {quoted(new)}; add no name that is not in the text"
    return ""


def known_words(text: str) -> frozenset[str]:
    """Return every word a name may be found by, in lower case and without possessive endings."""
    found = {bare(word) for word in words(joined_initials(prose(text)))}
    found.update(mention[1:] for mention in mentions(text))
    return frozenset(found | {SAME[word] for word in found & SAME.keys()} | _united(found))


def _united(found: set[str]) -> set[str]:
    if "united" not in found:
        return set()
    return {"us"} if "states" in found else {"uk"} if "kingdom" in found else set()


def _missing(named: Iterable[Entity], known: frozenset[str]) -> list[str]:
    """Return the names of which no word is left."""
    absent = [each for each in named if known.isdisjoint(each.words) and not _alone_at_start(each)]
    return [" ".join(each.words) for each in absent if not any(_is_related(word, known) for word in each.words)]


def _new(named: Iterable[Entity], known: frozenset[str]) -> list[str]:
    """Return the words of names that the text does not have; not those that may be ordinary words with a capital."""
    new = [word for each in named for word in each.words if word not in known]
    return [word for word in new if not is_word(word) and not _is_related(word, known)]


def _alone_at_start(entity: Entity) -> bool:
    # Every first word has a capital: alone, it is a name only if it is no ordinary word.
    return entity.opens and (len(entity.words) == 1 and is_word(entity.words[0]))


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
