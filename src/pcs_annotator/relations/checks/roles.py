"""Who did what to whom: is it still the same?"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from pcs_annotator.relations.checks.names import bare, capitals, entities
from pcs_annotator.relations.checks.reading import Rewrite, plain, words
from pcs_annotator.relations.facts import is_title, lemma, word_set

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

Facts = dict[tuple[str, str], set[str]]
"""(Verb or noun, and its role: `does`, `undergoes`, `owns` or a preposition) → the words in that role."""

PRONOUNS = {
    "i": "I", "me": "I", "my": "I", "mine": "I", "we": "we", "us": "we", "our": "we", "you": "you", "your": "you",
    "u": "you", "he": "he", "him": "he", "his": "he", "she": "she", "her": "she", "they": "they", "them": "they",
    "their": "they",
}  # fmt: skip
_NO_ACTION = frozenset(("be", "have", "do", "get", "let", "make", "seem"))
_NO_PREPOSITION = ("does", "undergoes", "owns", "left behind", "by", "of")
_SUBJECTS = ("nsubj", "csubj")
_VERBS = ("VB", "VBD", "VBG", "VBN", "VBP", "VBZ")


def exchanged(source: Doc, text: Doc) -> str:
    """Complain when the parses show that a word changed its role."""
    before, after = read_facts(source), read_facts(text)
    known = _persons(source) & _persons(text)
    return (
        _turned_round(before, after)
        or _other_doer(before, after, known)
        or _other_owner(before, after, known)
        or _other_place(before, after, known)
    )


def _persons(doc: Doc) -> set[str]:
    """Return names and pronouns; a small parser is often wrong about everything else."""
    names = {token.lower_ for token in doc if token.tag_ in ("NNP", "NNPS")}
    return names | {PRONOUNS[token.lower_] for token in doc if token.lower_ in PRONOUNS}


def read_facts(doc: Doc) -> Facts:
    """Return who does, undergoes and owns what, and which words follow which preposition."""
    facts: Facts = defaultdict(set)
    for token in doc:
        if token.tag_ in _VERBS:
            _read_verb(token, facts)
        if token.dep_ == "poss":
            facts[lemma(token.head), "owns"] |= _fills(token)
        elif token.dep_ == "pobj" and token.head.dep_ in ("prep", "agent"):
            facts["*", token.head.lower_] |= _fills(token)
    return dict(facts)


def _read_verb(verb: Token, facts: Facts) -> None:
    name = lemma(verb)
    passive = any(child.dep_ == "auxpass" for child in verb.children)
    for child in verb.children:
        if child.dep_ in _SUBJECTS and not passive:
            facts[name, "does"] |= _fills(child)
        elif child.dep_ in ("nsubjpass", "dobj", "dative") or (passive and child.dep_ in _SUBJECTS):
            facts[name, "undergoes"] |= _fills(child)
        elif child.dep_ in ("prep", "agent"):
            _read_preposition(name, child, passive, facts)


def _read_preposition(name: str, preposition: Token, passive: bool, facts: Facts) -> None:
    place = "does" if preposition.lower_ == "by" and passive else preposition.lower_
    objects = [child for child in preposition.children if child.dep_ == "pobj"]
    for child in objects:
        facts[name, place] |= _fills(child)
    if not objects:
        # "It was looked at": the preposition has no object.
        facts[name, "left behind"].add(preposition.lower_)


def _fills(token: Token) -> set[str]:
    """Return the words that identify a phrase: its head, the rest of a name, and whatever "and" joins to it."""
    found: set[str] = set()
    for head in _joined(token):
        if head.tag_ in ("WDT", "WP", "WP$", "EX"):
            continue
        found.add(PRONOUNS.get(head.lower_) or lemma(head).removesuffix("'s"))
        if head.tag_ in ("NNP", "NNPS"):
            found.update(child.lower_ for child in head.children if child.dep_ == "compound")
    return found


def _joined(token: Token) -> Iterator[Token]:
    yield token
    for child in token.children:
        if child.dep_ == "conj":
            yield from _joined(child)


def _fillers(facts: Facts, verb: str, place: str) -> set[str]:
    return facts.get((verb, place), set())


def _turned_round(before: Facts, after: Facts) -> str:
    """Complain when the subject of an action is now its object, or the other way round."""
    for verb in sorted({verb for verb, _ in before} & {verb for verb, _ in after} - _NO_ACTION):
        did, underwent = _fillers(before, verb, "does"), _fillers(before, verb, "undergoes")
        does, undergoes = _fillers(after, verb, "does"), _fillers(after, verb, "undergoes")
        # With only one of the two, "the door opened" may mean "the door was opened".
        if not ((did and underwent) or (does and undergoes)):
            continue
        victims = did & (undergoes | _fillers(after, verb, "to")) - does - underwent
        doers = underwent & does - undergoes - did
        # Only one of the two may be a parsing error, unless the action has no subject left.
        if victims and (doers or not does):
            return f'"{min(victims)}" changed sides in "{verb}"; keep who does it and to whom'
    return ""


def _other_doer(before: Facts, after: Facts, known: set[str]) -> str:
    """Complain when another name from the text is now the subject of an action."""
    for verb, place in sorted(before.keys() & after.keys()):
        if place != "does" or verb in _NO_ACTION:
            continue
        did, does = before[verb, place], after[verb, place]
        if did & known and does & known and not did & does:
            return f'"{min(does)}" took the place of "{min(did)}" in "{verb}"; keep who does what'
    return ""


def _other_owner(before: Facts, after: Facts, known: set[str]) -> str:
    """Complain when a thing has another owner."""
    old = {thing: fills for (thing, place), fills in before.items() if place == "owns"}
    new = {thing: fills for (thing, place), fills in after.items() if place == "owns"}
    for thing in sorted(old.keys() & new.keys()):
        if old[thing] & known and new[thing] & known and not old[thing] & new[thing]:
            return f'"{thing}" belongs to "{min(new[thing])}" now; keep to whom it belongs'
    return ""


def _other_place(before: Facts, after: Facts, known: set[str]) -> str:
    """Complain when two words swapped prepositions, or one lost its preposition."""
    for _, preposition in sorted(key for key in before.keys() & after.keys() if key[0] == "*"):
        old, new = before["*", preposition], after["*", preposition]
        if preposition not in _NO_PREPOSITION and not old & new and old & known and new & known:
            return f'"{min(new)}" took the place of "{min(old)}" after "{preposition}"; keep who does what'
    for (verb, place), fills in before.items():
        moved = fills & _fillers(after, verb, "undergoes") - _fillers(before, verb, "undergoes")
        stranded = place in _fillers(after, verb, "left behind")
        if moved and place not in _NO_PREPOSITION and not stranded and ("*", place) not in after:
            return f'"{min(moved)}" lost its "{place}"; keep who does what to whom'
    return ""


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
    "can't couldn't shouldn't mustn't cannot also still just already always often ever been being to"
)

_MOST_OWNERS = 50
_RELATIVE = word_set("which that who it")
_LINKS = word_set("and or & plus")
# These change with voice or style without changing who did what.
_STYLE = word_set("a an the 's that")


def roles(rewrite: Rewrite) -> str:
    """Complain when two names have swapped roles; with parses, also when other words have."""
    source, text = _bare_words(rewrite.source), _bare_words(rewrite.text)
    complaint = _other_person(source, text) or _swapped_order(rewrite, source, text) or _passive_in_place(source, text)
    complaint = complaint or _other_thing(rewrite.source, rewrite.text)
    if complaint or rewrite.source_doc is None or rewrite.text_doc is None or in_order(rewrite.source, rewrite.text):
        return complaint
    return exchanged(rewrite.source_doc, rewrite.text_doc)


def in_order(source: str, text: str) -> bool:
    """Return whether no word moved and no voice changed, so that every role is the same.

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
    """Complain when a possessive such as `Ann's car` now owns another thing from the text."""
    owned_now = _OWNED.findall(plain(text))
    if owned_now == _OWNED.findall(plain(source)):
        return ""
    before = plain(source).lower()
    for owner, thing in sorted(set(owned_now))[:_MOST_OWNERS]:
        owned = " ".join(re.findall(rf"\b{re.escape(owner.lower())}'s((?:\W+\w+){{1,6}})", before))
        if owned and thing.lower() not in owned and re.search(rf"\b{thing.lower()}\b", before):
            return f'"{owner}\'s {thing}" is not in the text; keep what belongs to whom'
    return ""


@lru_cache(maxsize=256)
def _bare_words(text: str) -> tuple[str, ...]:
    found = words(text)
    return tuple(map(bare, found)) if "'" in plain(text) else found


def _other_person(source: tuple[str, ...], text: tuple[str, ...]) -> str:
    for table in (_PERSON_OF, _GENDER_OF):
        before = {table[word] for word in source if word in table}
        after = {table[word] for word in text if word in table}
        if before - after and after - before:
            gone, new = min(before - after), min(after - before)
            return f"{new} takes the place of {gone}; keep who speaks, and of whom"
    return ""


def _swapped_order(rewrite: Rewrite, source: tuple[str, ...], text: tuple[str, ...]) -> str:
    """Complain about names in a different order, unless the grammar around them changed as well."""
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
    """Return where each name first occurs in the text and in the rewrite."""
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
    """Return whether two words are parts of a list, whose order does not matter."""
    between = row[start + 1 : end]
    return len(between) < 4 and any(word in _LINKS for word in between)


def _same_frame(rewrite: Rewrite, source: tuple[str, ...], text: tuple[str, ...]) -> bool:
    """Return whether most of the words around the names are the same and in the same order."""
    own = {word for entity in entities(rewrite.source) for word in entity.words} | _STYLE
    # In a headline only half of a name may have been found; the other half moves with it.
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
    """Complain when the verb became passive but no name moved, so that the subject is now the one acted upon."""
    places = range(1, len(text) - 3) if text.count("by") > source.count("by") else ()
    for place in places:
        if text[place] not in _BE or "by" not in text[place + 2 : place + 4]:
            continue
        by = text.index("by", place + 2)
        verb = next((i for i, word in enumerate(source) if word[:4] == text[by - 1][:4] and len(word) > 3), None)
        subject = next((word for word in reversed(text[:place]) if word not in _AUXILIARIES | _BE), "")
        agent = next((word for word in text[by + 1 : by + 5] if word in source), "")
        if (
            verb is None
            or subject in _RELATIVE
            or text[by + 1 : by + 2] in (("which",), ("whom",))
            or "by" in source[verb : verb + 3]
            or subject not in source
            or not agent
        ):
            continue
        if source.index(subject) < verb < source.index(agent):
            return f'"{text[by - 1]} by" turns it round; "{subject}" is the one who does it'
    return ""
