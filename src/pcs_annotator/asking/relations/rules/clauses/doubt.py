"""Signs that a parse is wrong, or that words further on lean on a subject that would move."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from pcs_annotator.asking.relations.rules.clauses import word_lists as known
from pcs_annotator.asking.relations.rules.words import lemma

if TYPE_CHECKING:
    from spacy.tokens import Span, Token


# Words after an object that say more about it or about the verb, and cannot stand behind an agent.
_CLINGING_WORDS = frozenset({"already", "hard", "well", "badly", "alone", "together", "apart", "enough", "back"})
_CLINGING_TAGS = frozenset({"POS", "WDT", "WP", "WP$", "JJR", "RBR", "VBN", "VBG"})
_NOUN_PHRASE_TAGS = frozenset({"DT", "PRP", "PRP$", "NN", "NNS", "NNP", "NNPS", "JJ", "CD", "$"})
ASIDE = 6
_FINITE_TAGS = frozenset({"MD", "VBD", "VBZ", "VBP"})
_GOES_ON = tuple(
    pair.split()
    for pair in ("as well", "rather than", "and by", "or by", "but by", "and whether", "and that", "and how", "and why")
)
_ELLIPSES = frozenset({"do", "does", "did", "has", "have", "is", "was"})


def misread_after(end: int, verb: Token, *, allow_verb: bool = False) -> bool:
    """Return whether the words after a rewritten stretch show that the parser ended it too early."""
    doc = verb.doc
    if end + 1 >= len(doc) or doc[end + 1].is_sent_start:
        return doc[end].text.endswith(".")
    after = doc[end + 1]
    if after.tag_ in _FINITE_TAGS:
        return not allow_verb
    if after.tag_ in _NOUN_PHRASE_TAGS:
        return not (after.head.lower_ in known.TIMES or after.lower_ in known.TIMES)
    if after.lower_ == "that" and lemma(verb) not in known.INFORMING:
        return True
    if (
        after.tag_ in _CLINGING_TAGS
        or after.lower_ in _CLINGING_WORDS
        or (not allow_verb and _goes_on(doc[end + 1 : verb.sent.end]))
    ):
        return True
    return after.tag_ == "CC" and (after.head != verb or not any(child.dep_ == "conj" for child in verb.rights))


def _goes_on(rest: Span) -> bool:
    """Return whether what follows is a second half: another verb after a comma, or `as well as`."""
    words = [token.lower_ for token in rest[:4] if token.text != ","]
    if (
        words[:1] == ["including"]
        or words[:3] == ["as", "a", "whole"]
        or words[:2] in _GOES_ON
        or (words[:1] == ["as"] and set(words[1:2]) & _ELLIPSES)
    ):
        return True
    if any(before.text == "," and after.tag_ == "MD" for before, after in pairwise(rest)):
        return True
    # An aside about the object, such as ", some of whom were hurt", would come to be about the agent.
    if rest[0].text == "," and any(token.tag_ in ("WDT", "WP", "WP$") for token in rest[1:ASIDE]):
        return True
    second = rest[1] if rest[0].text == "," and len(rest) > 1 else None
    return second is not None and second.tag_ in _FINITE_TAGS and lemma(second) not in known.TELLING


def leans_later(verb: Token, end: int) -> bool:
    """Return whether a participle further on, such as `, saying` or `after meeting`, may need the old subject."""
    if verb.dep_ not in ("ROOT", "ccomp", "conj"):
        return False
    rest = verb.doc[end + 1 : verb.sent.end]
    return any(
        after.tag_ == "VBG"
        and (
            (before.text == "," and lemma(after) in known.TELLING)
            or before.lower_ in ("after", "before", "while", "without", "by", "when")
        )
        for before, after in pairwise(rest)
    )
