"""What a parse says about who does what to whom."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pcs_annotator.relations.rules.words import lemma

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

Facts = dict[tuple[str, str], set[str]]
"""What fills a place: (verb or noun, `does`, `undergoes`, `owns`, or a preposition) → the words that fill it."""

PRONOUNS = {
    "i": "I", "me": "I", "my": "I", "mine": "I", "we": "we", "us": "we", "our": "we", "you": "you", "your": "you",
    "u": "you", "he": "he", "him": "he", "his": "he", "she": "she", "her": "she", "they": "they", "them": "they",
    "their": "they",
}  # fmt: skip
_NO_DEED = frozenset(("be", "have", "do", "get", "let", "make", "seem"))
_NO_PREPOSITION = ("does", "undergoes", "owns", "left behind", "mentioned", "by", "of")
_SUBJECTS = ("nsubj", "csubj")
_VERBS = ("VB", "VBD", "VBG", "VBN", "VBP", "VBZ")


def exchanged(source: Doc, text: Doc) -> str:
    """Return a complaint when something changed its place in what is said; empty when nothing seems to have."""
    before, after = read_facts(source), read_facts(text)
    known = _persons(source) & _persons(text)
    return (
        _turned_round(before, after)
        or _other_doer(before, after, known)
        or _other_owner(before, after, known)
        or _other_thing(before, after, known)
        or _other_place(before, after, known)
    )


def _persons(doc: Doc) -> set[str]:
    """Return names and pronouns: a small parser is often wrong about all the rest."""
    names = {token.lower_ for token in doc if token.tag_ in ("NNP", "NNPS")}
    return names | {PRONOUNS[token.lower_] for token in doc if token.lower_ in PRONOUNS}


def read_facts(doc: Doc) -> Facts:
    """Return who does, undergoes and owns what, and what stands with which preposition."""
    facts: Facts = defaultdict(set)
    facts["*", "mentioned"] = {lemma(token) for token in doc if token.tag_.startswith("NN")}
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
        # "It was looked at": the preposition stayed behind.
        facts[name, "left behind"].add(preposition.lower_)


def _fills(token: Token) -> set[str]:
    """Return the words that a phrase is known by: its head, the rest of a name, and what is joined to it by "and"."""
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


def _places(facts: Facts, verb: str, place: str) -> set[str]:
    return facts.get((verb, place), set())


def _turned_round(before: Facts, after: Facts) -> str:
    """Complain when the doer of a deed now undergoes it, or the other way round."""
    for verb in {verb for verb, _ in before} & {verb for verb, _ in after} - _NO_DEED:
        did, underwent = _places(before, verb, "does"), _places(before, verb, "undergoes")
        does, undergoes = _places(after, verb, "does"), _places(after, verb, "undergoes")
        # With one of the two alone, "the door opened" may as well be "the door was opened".
        if not ((did and underwent) or (does and undergoes)):
            continue
        victims = did & (undergoes | _places(after, verb, "to")) - does - underwent
        doers = underwent & does - undergoes - did
        # One alone may be the parser's mistake, unless nobody is left to do it.
        if victims and (doers or not does):
            return f'"{min(victims)}" changed sides in "{verb}"; keep who does it and to whom'
    return ""


def _other_doer(before: Facts, after: Facts, known: set[str]) -> str:
    """Complain when somebody else from the text does the deed."""
    for verb, place in before.keys() & after.keys():
        if place != "does" or verb in _NO_DEED:
            continue
        did, does = before[verb, place], after[verb, place]
        if did & known and does & known and not did & does:
            return f'"{min(does)}" took the place of "{min(did)}" in "{verb}"; keep who does what'
    return ""


def _other_owner(before: Facts, after: Facts, known: set[str]) -> str:
    """Complain when a thing belongs to somebody else."""
    old = {thing: fills for (thing, place), fills in before.items() if place == "owns"}
    new = {thing: fills for (thing, place), fills in after.items() if place == "owns"}
    for thing in old.keys() & new.keys():
        if old[thing] & known and new[thing] & known and not old[thing] & new[thing]:
            return f'"{thing}" belongs to "{min(new[thing])}" now; keep to whom it belongs'
    return ""


def _other_thing(before: Facts, after: Facts, known: set[str]) -> str:
    """Complain when somebody owns something else of what the text speaks of."""
    for owner in known - set(PRONOUNS.values()):
        had = {thing for (thing, place), fills in before.items() if place == "owns" and owner in fills}
        has = {thing for (thing, place), fills in after.items() if place == "owns" and owner in fills}
        if had and has and not had & has and has <= _mentioned(before) and had <= _mentioned(after):
            return f'"{owner}" goes with "{min(has)}" now, no longer with "{min(had)}"; keep what belongs together'
    return ""


def _mentioned(facts: Facts) -> set[str]:
    return facts["*", "mentioned"]


def _other_place(before: Facts, after: Facts, known: set[str]) -> str:
    """Complain when two words changed places around prepositions, or one lost its own."""
    for _, preposition in {key for key in before.keys() & after.keys() if key[0] == "*"}:
        old, new = before["*", preposition], after["*", preposition]
        if preposition not in _NO_PREPOSITION and not old & new and old & known and new & known:
            return f'"{min(new)}" took the place of "{min(old)}" after "{preposition}"; keep who does what'
    for (verb, place), fills in before.items():
        moved = fills & _places(after, verb, "undergoes") - _places(before, verb, "undergoes")
        stranded = place in _places(after, verb, "left behind")
        if moved and place not in _NO_PREPOSITION and not stranded and ("*", place) not in after:
            return f'"{min(moved)}" lost its "{place}"; keep who does what to whom'
    return ""
