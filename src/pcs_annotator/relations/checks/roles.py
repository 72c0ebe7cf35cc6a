"""Who did what to whom: is it still the same?"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise

from pcs_annotator.relations.checks.base import Rewrite
from pcs_annotator.relations.checks.entities import bare, capitals, entities, is_title
from pcs_annotator.relations.checks.facts import PRONOUNS, exchanged
from pcs_annotator.relations.checks.reading import plain, words
from pcs_annotator.relations.rules.words import word_set

_PERSONS = (
    ("the one who speaks", "i me my mine myself i'm i've i'll i'd im ive we us our ours we're we've we'll"),
    ("the one who is spoken to", "you your yours yourself u ur ya you're you've you'll y'all youre"),
)
_GENDERS = (("he", "he him his himself he's"), ("she", "she her hers herself she's"))
_PERSON_OF = {word: name for name, row in _PERSONS for word in row.split()}
_GENDER_OF = {word: name for name, row in _GENDERS for word in row.split()}
_BE = word_set("is are was were be been being am gets got get")
_OWNED = re.compile(r"\b([A-Z]\w+)'s (\w{4,})")
_AUXILIARIES = word_set(
    "has have had will would can could should may might must shall not never hasn't haven't hadn't won't wouldn't "
    "can't couldn't shouldn't cannot also still just already always often ever been being to"
)

_MOST_OWNERS = 50
_RELATIVE = word_set("which that who it")
_LINKS = word_set("and or & plus")
# These come and go with the voice or with style, and leave who did what as it was.
_STYLE = word_set("a an the 's that")


def roles(rewrite: Rewrite) -> str:
    """Complain when two names have changed places in what is said; with parses, also when other words have."""
    source, text = _bare_words(rewrite.source), _bare_words(rewrite.text)
    complaint = _other_person(source, text) or _swapped_order(rewrite, source, text) or _passive_in_place(source, text)
    complaint = complaint or _other_thing(rewrite.source, rewrite.text)
    if complaint or rewrite.source_doc is None or rewrite.text_doc is None or in_order(rewrite.source, rewrite.text):
        return complaint
    return exchanged(rewrite.source_doc, rewrite.text_doc)


def in_order(source: str, text: str) -> bool:
    """Return whether nothing moved and no voice changed, so that everybody does what they did.

    >>> in_order("I saw her", "I noticed her"), in_order("I saw her", "She saw me"), in_order("I saw", "I was seen by")
    (True, False, False)
    """
    before, after = (tuple(PRONOUNS.get(word, word) for word in _bare_words(each)) for each in (source, text))
    if before.count("by") != after.count("by"):
        return False
    old, new = Counter(before), Counter(after)
    shared = {word for word in old.keys() & new.keys() - _STYLE if old[word] == new[word]}
    return [word for word in before if word in shared] == [word for word in after if word in shared]


def _other_thing(source: str, text: str) -> str:
    """Complain when somebody's something became somebody's something else of the text."""
    owned_now = _OWNED.findall(plain(text))
    if owned_now == _OWNED.findall(plain(source)):
        return ""
    before = plain(source).lower()
    for owner, thing in sorted(set(owned_now))[:_MOST_OWNERS]:
        owned = " ".join(re.findall(rf"\b{re.escape(owner.lower())}'s((?:\W+\w+){{1,6}})", before))
        if owned and thing.lower() not in owned and re.search(rf"\b{thing.lower()}\b", before):
            return f'"{owner}\'s {thing}" is not in the text; keep what belongs to whom'
    return ""


def _bare_words(text: str) -> tuple[str, ...]:
    return tuple(map(bare, words(text)))


def _other_person(source: tuple[str, ...], text: tuple[str, ...]) -> str:
    for table in (_PERSON_OF, _GENDER_OF):
        before = {table[word] for word in source if word in table}
        after = {table[word] for word in text if word in table}
        if before - after and after - before:
            gone, new = min(before - after), min(after - before)
            return f"{new} takes the place of {gone}; keep who speaks, and of whom"
    return ""


def _swapped_order(rewrite: Rewrite, source: tuple[str, ...], text: tuple[str, ...]) -> str:
    """Complain about names in another order, unless the grammar around them changed as well."""
    if capitals(rewrite.source) == capitals(rewrite.text):
        return ""
    named = [entity.words for entity in entities(rewrite.source)]
    places = _places(named, source, text)
    swapped = [
        (one, other)
        for one, other in pairwise(sorted(places))
        if one[1] > other[1] and not (_linked(one[0], other[0], source) or _linked(other[1], one[1], text))
    ]
    if not swapped or (rewrite.expects.reorders and not _same_frame(rewrite, source, text)):
        return ""
    one, other = swapped[0]
    return f'"{source[one[0]]}" and "{source[other[0]]}" have changed places; keep who does what'


def _places(named: list[tuple[str, ...]], source: tuple[str, ...], text: tuple[str, ...]) -> set[tuple[int, int]]:
    """Return where each name stands first in the one and in the other."""
    common = Counter(word for name in named for word in set(name))
    first, then = _first_places(source), _first_places(text)
    places = set()
    for name in named:
        own = [word for word in name if common[word] == 1] or list(name)
        before = [first[word] for word in own if word in first]
        after = [then[word] for word in own if word in then]
        if before and after:
            places.add((min(before), min(after)))
    return places


def _first_places(row: tuple[str, ...]) -> dict[str, int]:
    return {word: place for place, word in reversed(list(enumerate(row)))}


def _linked(start: int, end: int, row: tuple[str, ...]) -> bool:
    """Return whether two words are the parts of a list, whose order means nothing."""
    between = row[start + 1 : end]
    return len(between) < 4 and any(word in _LINKS for word in between)


def _same_frame(rewrite: Rewrite, source: tuple[str, ...], text: tuple[str, ...]) -> bool:
    """Return whether the words around the names are the same, in the same order, give or take a few."""
    own = {word for entity in entities(rewrite.source) for word in entity.words} | _STYLE
    # In a headline only half of a name may have been seen; the other half goes where it goes.
    pairs = set(pairwise(source)) & set(pairwise(text)) if is_title(rewrite.source) else set()
    own |= {word for pair in pairs if own & set(pair) - _STYLE for word in pair}
    before = [word for word in source if word not in own]
    after = [word for word in text if word not in own]
    if before.count("by") != after.count("by"):
        return False
    common = set(before) & set(after)
    if len(common) < 0.7 * max(len(set(before)), len(set(after))):
        return False
    return [word for word in before if word in common] == [word for word in after if word in common]


def _passive_in_place(source: tuple[str, ...], text: tuple[str, ...]) -> str:
    """Complain when the one who did it now has it done to them: the verb turned passive, and nobody moved."""
    places = range(1, len(text) - 3) if text.count("by") > source.count("by") else ()
    for place in places:
        if text[place] not in _BE or "by" not in text[place + 2 : place + 4]:
            continue
        by = text.index("by", place + 2)
        verb = next((i for i, word in enumerate(source) if word[:4] == text[by - 1][:4] and len(word) > 3), None)
        subject = next((word for word in reversed(text[:place]) if word not in _AUXILIARIES), "")
        agent = next((word for word in text[by + 1 : by + 5] if word in source), "")
        if (
            verb is None
            or subject in _RELATIVE
            or "by" in source[verb : verb + 3]
            or subject not in source
            or not agent
        ):
            continue
        if source.index(subject) < verb < source.index(agent):
            return f'"{text[by - 1]} by" turns it round; "{subject}" is the one who does it'
    return ""
