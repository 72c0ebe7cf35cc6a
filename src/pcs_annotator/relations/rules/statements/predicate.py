"""Negating a predicate twice: "is not illegal" for "is legal", "did not fail to sign" for "signed"."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pcs_annotator.relations.rules.rule import Replacement
from pcs_annotator.relations.rules.statements.negating import UNCLEAR_BESIDE_NOT, base_form
from pcs_annotator.relations.rules.statements.opening import ends_openly, finite_of, subject_of
from pcs_annotator.relations.rules.words import lemma, word_set

if TYPE_CHECKING:
    from spacy.tokens import Span, Token

_BY_PREFIX = {
    "un": "able available aware constitutional lawful necessary true",
    "in": "accurate correct eligible valid visible",
    "il": "legal",
    "im": "possible",
    "ir": "relevant",
}
PARTNERS = {word: prefix + word for prefix, words in _BY_PREFIX.items() for word in words.split()}
"""Contradictories only: what is not one is the other. "Unhappy" is left out, because many people are neither."""
_TAKE_NOT = word_set("is are was were am 's ’s 're ’re will would has have had")
# What can be left undone. Misfortunes such as "lost" or "fell" are not failed at.
_MAY_FAIL = word_set(
    """
    announce approve arrest attend award beat complete condemn confirm criticise criticize defeat defend deliver
    denounce donate endorse fix fund greet help honor honour impress inform inspect investigate launch mention nominate
    notify pass pay praise promote protect provide publish ratify release repair reply report rescue respond restore
    secure sign solve submit sue support tell thank visit warn welcome win
    """
)
_NEVER_FAILING = {"VBD": "never failed to", "VBZ": "never fails to", "VBP": "never fail to"}


def negated_twice(sentence: Span) -> list[Replacement] | None:
    """Return the changes that put two negations into a predicate, where hardly another reading is possible."""
    return None if _is_quoting(sentence) else _by_partner(sentence) or _never_failing(sentence) or _sure_to(sentence)


def not_failing(sentence: Span) -> list[Replacement] | None:
    """Return "did not fail to sign" for "signed"; both negations stand together, so that nothing comes between them."""
    verb, subject, finite = sentence.root, subject_of(sentence.root), finite_of(sentence.root)
    base = base_form(verb)
    # "Did not fail to approve only one": how many were approved?
    narrowed = any(token.lower_ in ("only", "just", "few", "no") for token in sentence)
    if subject is None or finite is None or base not in _MAY_FAIL or _is_quoting(sentence) or narrowed:
        return None
    if any(word.lower_ in UNCLEAR_BESIDE_NOT for word in sentence.doc[sentence.start : verb.i]):
        return None
    # "Won #39;t" is a negation, and "the reported deal" no report.
    following = verb.nbor().tag_ if verb.i + 1 < sentence.end else ""
    if following in ("NN", "$", "#") or any(token.lower_ == "until" for token in sentence):
        return None
    if any(child.dep_ in ("neg", "advmod") and child.i < verb.i for child in verb.children):
        return None
    perfect = verb.tag_ == "VBN" and verb.i == finite.i + 1 and lemma(finite) == "have"
    # In the present, "does not fail to" would be a habit.
    if not perfect and (verb.tag_ != "VBD" or ends_openly(sentence)):
        return None
    new = f"{finite.text} not failed to" if perfect else "did not fail to"
    return [Replacement(finite.idx, verb.idx + len(verb), f"{new} {base}")]


def _is_quoting(sentence: Span) -> bool:
    return any(mark in sentence.text for mark in '"“')


def _by_partner(sentence: Span) -> list[Replacement] | None:
    """Return "is not impossible" for "is possible", for the first predicate that allows it."""
    for token in sentence:
        partner = PARTNERS.get(token.text) if token.dep_ == "acomp" and token.tag_ == "JJ" else None
        if partner and _is_plain_predicate(token):
            finite = finite_of(token.head) or token.head
            return [
                Replacement(finite.idx + len(finite), finite.idx + len(finite), " not"),
                Replacement(token.idx, token.idx + len(token), partner),
            ]
    return None


def _is_plain_predicate(adjective: Token) -> bool:
    verb = adjective.head
    subject, finite = subject_of(verb), finite_of(verb)
    if subject is None or finite is None or lemma(verb) != "be" or finite.lower_ not in _TAKE_NOT:
        return False
    if any(child.dep_ in ("neg", "advmod", "conj", "cc", "preconj") for child in adjective.children):
        return False
    if any(
        child.dep_ == "conj" or (child.dep_ in ("neg", "advmod") and child.i < adjective.i) for child in verb.children
    ):
        return False
    return not any(word.lower_ in UNCLEAR_BESIDE_NOT for word in subject.subtree)


def _never_failing(sentence: Span) -> list[Replacement] | None:
    """Return "never fails to please" for "always pleases"."""
    always = next((token for token in sentence if token.lower_ == "always" and token.dep_ == "advmod"), None)
    if always is None or always.head.i != always.i + 1 or finite_of(always.head) != always.head:
        return None
    verb, base = always.head, base_form(always.head)
    if base in (None, "be", "have", "do") or subject_of(verb) is None:
        return None
    if verb.tag_ not in _NEVER_FAILING or any(child.dep_ in ("neg", "conj") for child in verb.children):
        return None
    return [Replacement(always.idx, verb.idx + len(verb), f"{_NEVER_FAILING[verb.tag_]} {base}")]


def _sure_to(sentence: Span) -> list[Replacement] | None:
    """Return "9 cakes that will not fail to please" for "9 cakes that will please", in a headline without a verb."""
    verbs = [child for child in sentence.root.rights if child.dep_ == "relcl" and child.tag_ == "VB"]
    for verb in verbs if sentence.root.tag_ in ("NN", "NNS", "NNP", "NNPS") else ():
        before = sentence.doc[max(verb.i - 2, 0) : verb.i]
        joined = any(child.dep_ in ("neg", "conj") for child in verb.children)
        if (
            before.text.lower() in ("that will", "which will", "who will")
            and lemma(verb) not in ("be", "happen")
            and not joined
        ):
            return [Replacement(verb.idx, verb.idx, "not fail to ")]
    return None
