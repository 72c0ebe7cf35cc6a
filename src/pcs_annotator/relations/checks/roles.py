"""Who did what to whom: is it still the same?"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from pcs_annotator.relations.checks.names import bare, capitals, entities
from pcs_annotator.relations.checks.reading import Rewrite, plain, words
from pcs_annotator.relations.facts import lemma, word_set

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

Facts = dict[tuple[str, str], set[str]]
"""(Verb, thing or `*`, and its role: `does`, `undergoes`, `owns` or a preposition) → the words in that role."""

PRONOUNS = {
    "i": "I", "me": "I", "my": "I", "mine": "I", "we": "we", "us": "we", "our": "we", "you": "you", "your": "you",
    "u": "you", "he": "he", "him": "he", "his": "he", "she": "she", "her": "she", "they": "they", "them": "they",
    "their": "they",
}  # fmt: skip
_PERSONS = (
    {
        "the one who speaks": "i me my mine myself i'm i've i'll i'd im ive we us our ours we're we've we'll",
        "the one who is spoken to": "you your yours yourself u ur ya you're you've you'll y'all youre",
    },
    {"he": "he him his himself he's", "she": "she her hers herself she's"},
)
_PERSON_OF = [{word: name for name, row in table.items() for word in row.split()} for table in _PERSONS]
_NO_ACTION = frozenset(("be", "have", "do", "get", "let", "make", "seem"))
# These change with the voice, or belong to a noun.
_LOOSE = ("undergoes", "by", "of")
_SUBJECTS = ("nsubj", "csubj")
_VERBS = ("VB", "VBD", "VBG", "VBN", "VBP", "VBZ")
_BE = word_set("is are was were be been being am gets got get")
# These change with voice or style without changing who did what.
_STYLE = word_set("a an the 's that")
_SAME_FRAME = 0.7


def roles(rewrite: Rewrite) -> str:
    """Complain when two names have swapped roles; with parses, also when other words have."""
    source, text = _bare_words(rewrite.source), _bare_words(rewrite.text)
    complaint = _other_person(source, text) or _swapped_names(rewrite, source, text) or _passive_in_place(source, text)
    if complaint or rewrite.source_doc is None or rewrite.text_doc is None or in_order(rewrite.source, rewrite.text):
        return complaint
    return exchanged(rewrite.source_doc, rewrite.text_doc)


def in_order(source: str, text: str) -> bool:
    """Return whether no word moved and no voice changed, so that every role is the same.

    >>> in_order("I saw her", "I noticed her"), in_order("I saw her", "She saw me"), in_order("I saw", "I was seen by")
    (True, False, False)
    """
    before, after = _bare_words(source), _bare_words(text)
    return before.count("by") == after.count("by") and _same_order(before, after)


def _same_order(before: Sequence[str], after: Sequence[str]) -> bool:
    """Return whether the words that two texts have equally often are in the same order."""
    before, after = ([PRONOUNS.get(word, word) for word in row if word not in _STYLE] for row in (before, after))
    kept = {word for word, _ in Counter(before).items() & Counter(after).items()}
    return [word for word in before if word in kept] == [word for word in after if word in kept]


@lru_cache(maxsize=256)
def _bare_words(text: str) -> tuple[str, ...]:
    found = words(text)
    return tuple(map(bare, found)) if "'" in plain(text) else found


def _other_person(source: Sequence[str], text: Sequence[str]) -> str:
    for table in _PERSON_OF:
        before, after = ({table[word] for word in row if word in table} for row in (source, text))
        if before - after and after - before:
            gone, new = min(before - after), min(after - before)
            return f"{new} takes the place of {gone}; keep who speaks, and of whom"
    return ""


def _swapped_names(rewrite: Rewrite, source: Sequence[str], text: Sequence[str]) -> str:
    """Complain about names in a different order, unless the grammar around them changed as well."""
    if capitals(rewrite.source) == capitals(rewrite.text):
        return ""
    names = {word: number for number, name in enumerate(entities(rewrite.source)) for word in name.words}
    before, after = (list(dict.fromkeys(names[word] for word in row if word in names)) for row in (source, text))
    before = [name for name in before if name in after]
    if before == after:
        return ""
    frames = [[word for word in row if word not in names and word not in _STYLE] for row in (source, text)]
    one, other = map(set, frames)
    same = len(one & other) >= _SAME_FRAME * max(len(one), len(other))
    turned = frames[0].count("by") != frames[1].count("by") or not (same and _same_order(*frames))
    return "" if rewrite.expects.reorders and turned else "names have changed places; keep who does what"


def _passive_in_place(source: Sequence[str], text: Sequence[str]) -> str:
    """Complain when a passive came in but no word moved, so that the subject is now the one acted upon."""
    passive = text.count("by") > source.count("by") and _BE & {*text} - {*source}
    return "the passive turns it round; keep who does what" if passive and _same_order(source, text) else ""


def exchanged(source: Doc, text: Doc) -> str:
    """Complain when the parses show that a word changed its role."""
    before, after = read_facts(source), read_facts(text)
    return _turned_round(before, after) or _displaced(before, after, _persons(source) & _persons(text))


def _persons(doc: Doc) -> set[str]:
    """Return names and pronouns; a small parser is often wrong about everything else."""
    names = {token.lower_ for token in doc if token.tag_ in ("NNP", "NNPS")}
    return names | {PRONOUNS[token.lower_] for token in doc if token.lower_ in PRONOUNS}


def read_facts(doc: Doc) -> Facts:
    """Return who does, undergoes and owns what, and which words follow which preposition."""
    facts: Facts = defaultdict(set)
    for token in doc:
        if token.tag_ in _VERBS:
            passive = any(child.dep_ == "auxpass" for child in token.children)
            for child in token.children:
                if child.dep_ in _SUBJECTS and not passive:
                    facts[lemma(token), "does"] |= _fills(child)
                elif child.dep_ in ("nsubjpass", "dobj", "dative", *_SUBJECTS):
                    facts[lemma(token), "undergoes"] |= _fills(child)
                elif child.lower_ == "by" and passive:
                    facts[lemma(token), "does"] |= _objects(child)
        if token.dep_ == "poss":
            facts[lemma(token.head), "owns"] |= _fills(token)
        elif token.dep_ in ("prep", "agent"):  # "it was looked at" has a preposition without an object
            facts["*", token.lower_] |= _objects(token)
    return dict(facts)


def _objects(preposition: Token) -> set[str]:
    return {word for child in preposition.children if child.dep_ == "pobj" for word in _fills(child)}


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


def _turned_round(before: Facts, after: Facts) -> str:
    """Complain when the subject of an action is now its object, or the other way round."""
    for verb in sorted({verb for verb, _ in before} & {verb for verb, _ in after} - _NO_ACTION):
        did, underwent = before.get((verb, "does"), set()), before.get((verb, "undergoes"), set())
        does, undergoes = after.get((verb, "does"), set()), after.get((verb, "undergoes"), set())
        # With only one of the two, "the door opened" may mean "the door was opened".
        if not ((did and underwent) or (does and undergoes)):
            continue
        victims = did & undergoes - does - underwent
        # Only one of the two may be a parsing error, unless the action has no subject left.
        if victims and (not does or underwent & does - undergoes - did):
            return f'"{min(victims)}" changed sides in "{verb}"; keep who does it and to whom'
    return ""


def _displaced(before: Facts, after: Facts, known: set[str]) -> str:
    """Complain when another person does or owns something or follows a preposition, or one lost its preposition."""
    for word, place in sorted(before.keys() & after.keys()):
        old, new = before[word, place], after[word, place]
        if place not in _LOOSE and word not in _NO_ACTION and old & known and new & known and not old & new:
            return f'"{min(new)}" took the place of "{min(old)}"; keep who does what'
    underwent, undergoes = (
        {word for (_, place), words in facts.items() if place == "undergoes" for word in words}
        for facts in (before, after)
    )
    for (word, place), fills in before.items():
        moved = fills & undergoes - underwent
        if word == "*" and place not in _LOOSE and moved and ("*", place) not in after:
            return f'"{min(moved)}" lost its "{place}"; keep who does what to whom'
    return ""
