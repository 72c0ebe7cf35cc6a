"""Negating a predicate twice: "is not illegal" for "is legal", "did not fail to sign" for "signed"."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pcs_annotator.relations.rules.rule import Replacement
from pcs_annotator.relations.rules.statements.negating import UNCLEAR_BESIDE_NOT, base_form
from pcs_annotator.relations.rules.statements.opening import ends_openly, finite_of, subject_of
from pcs_annotator.relations.rules.words import lemma, word_set

if TYPE_CHECKING:
    from spacy.tokens import Span, Token

# Contradictories only: what is not one is the other. "Unhappy" is left out, because many people are neither.
PARTNERS = {
    "able": "unable",
    "accurate": "inaccurate",
    "available": "unavailable",
    "aware": "unaware",
    "constitutional": "unconstitutional",
    "correct": "incorrect",
    "eligible": "ineligible",
    "lawful": "unlawful",
    "legal": "illegal",
    "necessary": "unnecessary",
    "possible": "impossible",
    "relevant": "irrelevant",
    "true": "untrue",
    "valid": "invalid",
    "visible": "invisible",
}
_QUOTES = frozenset("\"“”‘'")
_PLAIN_BE = frozenset({"is", "are", "was", "were", "am", "'s", "’s", "'re", "’re"})
_MANY = word_set(
    """
    all every each both some any many most few several no none nobody nothing everyone everybody everything
    someone only neither either half
    """
)
# What can be left undone. Misfortunes such as "lost" or "fell" are not failed at.
_MAY_FAIL = word_set(
    """
    announce approve arrest attend award beat complete condemn confirm criticise criticize defeat defend deliver
    denounce donate endorse finish fix fund greet help honor honour impress inform inspect investigate launch mention
    nominate notify pass pay praise promote protect provide publish ratify release repair reply report rescue respond
    restore reveal secure send sign solve submit sue support tell thank visit warn welcome win
    """
)
_QUOTATION = r"[\"“]"


def negated_twice(sentence: Span) -> list[Replacement] | None:
    """Return the changes that put two negations into a predicate, where hardly another reading is possible."""
    return _by_partner(sentence) or _never_failing(sentence)


def _by_partner(sentence: Span) -> list[Replacement] | None:
    """Return "is not impossible" for "is possible", for the first predicate that allows it."""
    quoted = False
    for token in sentence:
        if token.text in _QUOTES:
            quoted = not quoted
        partner = None if quoted or token.dep_ != "acomp" or token.tag_ != "JJ" else PARTNERS.get(token.text)
        if partner and _is_plain_predicate(token):
            verb = token.head
            finite = finite_of(verb) or verb
            return [
                Replacement(finite.idx + len(finite), finite.idx + len(finite), " not"),
                Replacement(token.idx, token.idx + len(token), partner),
            ]
    return None


def _is_plain_predicate(adjective: Token) -> bool:
    verb = adjective.head
    subject = subject_of(verb)
    if subject is None or lemma(verb) != "be" or subject.i > verb.i:
        return False
    finite = finite_of(verb)
    if finite is None or not (finite.lower_ in _PLAIN_BE or finite.lower_ in ("will", "would", "has", "have", "had")):
        return False
    if any(child.dep_ in ("neg", "advmod", "conj", "cc", "preconj") for child in adjective.children):
        return False
    if any(child.dep_ in ("neg", "conj", "advmod") and child.i < adjective.i for child in verb.children):
        return False
    if any(child.dep_ == "conj" for child in verb.children):
        return False
    return not any(word.lower_ in _MANY for word in subject.subtree)


def not_failing(sentence: Span) -> list[Replacement] | None:
    """Return "did not fail to sign" for "signed"; both negations stand together, so that nothing comes between them."""
    verb = sentence.root
    subject, base = subject_of(verb), base_form(verb)
    if subject is None or base not in _MAY_FAIL or finite_of(verb) != verb or verb.tag_ != "VBD":
        return None
    before = sentence.doc[sentence.start : verb.i]
    if (
        ends_openly(sentence)
        or re.search(_QUOTATION, sentence.text)
        or any(word.lower_ in UNCLEAR_BESIDE_NOT for word in before)
    ):
        return None
    if any(child.dep_ in ("neg", "advmod") and child.i < verb.i for child in verb.children):
        return None
    return [Replacement(verb.idx, verb.idx + len(verb), f"did not fail to {base}")]


def _never_failing(sentence: Span) -> list[Replacement] | None:
    """Return "never fails to please" for "always pleases"."""
    always = [token for token in sentence if token.lower_ == "always" and token.dep_ == "advmod"]
    verb = always[0].head if len(always) == 1 else None
    if verb is None or verb.i != always[0].i + 1 or finite_of(verb) != verb or re.search(_QUOTATION, sentence.text):
        return None
    base, joined = base_form(verb), [child.dep_ for child in verb.children if child.dep_ in ("neg", "conj")]
    if base is None or base in ("be", "have", "do") or joined or subject_of(verb) is None:
        return None
    fails = {"VBZ": "fails", "VBP": "fail", "VBD": "failed"}[verb.tag_]
    return [Replacement(always[0].idx, verb.idx + len(verb), f"never {fails} to {base}")]
