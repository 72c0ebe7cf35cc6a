"""`The court rejected the appeal` as `It was the court that rejected the appeal`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pcs_annotator.core.variant import Expectation
from pcs_annotator.relations.rules.clauses.clause import Clause, clauses_of, commas_fit, opening_of, whole
from pcs_annotator.relations.rules.clauses.noun_phrase import lowered
from pcs_annotator.relations.rules.clauses.voice import why_not
from pcs_annotator.relations.rules.clauses.word_lists import QUANTIFIERS
from pcs_annotator.relations.rules.rule import NotApplicable, Replacement, sentence_rule, splice

if TYPE_CHECKING:
    from spacy.tokens import Span, Token

LONGEST_SUBJECT = 10
_DEFINITE = frozenset({"the", "this", "that", "these", "those"})
# With "it was X that ..." these would claim that X and nothing else is so.
_FOCUSING = frozenset({"also", "too", "even", "only", "just", "still", "already"})
_BREAKS = frozenset({";", ":", "--", "—", "–"})
_COPULAS = frozenset({"be", "seem", "appear", "become", "remain", "have", "need", "want"})


@sentence_rule("rule:cleft", expects=Expectation(reorders=False))
def cleft(sentence: Span) -> str | NotApplicable:
    """Return the sentence with its subject put first by `It is … that`."""
    reason = why_not(sentence)
    if reason:
        return NotApplicable(reason)
    opening = opening_of(sentence)
    clause = next((clause for clause in clauses_of(sentence, opening) if clause.verb.dep_ == "ROOT"), None)
    if clause is None:
        return NotApplicable("no plain clause with a subject")
    reason = _why_not(clause, sentence)
    if reason:
        return NotApplicable(reason)
    start = sentence.doc[opening].idx
    be = "was" if _in_the_past(clause.verb) else "is"
    comma = "," if clause.subject.closed else ""
    focus = f"It {be} {lowered(clause.subject)}{comma} that"
    end = clause.subject.end_char
    after = sentence.doc[clause.subject.last + 1]
    if clause.subject.closed and after.text == ",":
        end = after.idx + 1
    return splice(sentence.text, [Replacement(start, end, focus)], sentence.start_char)


def _why_not(clause: Clause, sentence: Span) -> str:
    return next((reason for reason, forbids in _REASONS if forbids(clause, sentence)), "")


def _broken(clause: Clause, sentence: Span) -> bool:
    subject = clause.subject
    return len(subject.tokens) > LONGEST_SUBJECT or not whole(subject) or not commas_fit(subject)


def _negated(clause: Clause, sentence: Span) -> bool:
    return bool(clause.group.negation) or any(token.dep_ == "neg" for token in clause.verb.children)


def _focuses(clause: Clause, sentence: Span) -> bool:
    return any(adverb.lower() in _FOCUSING for adverb in clause.group.adverbs)


def _second_statement(clause: Clause, sentence: Span) -> bool:
    verb = clause.verb
    if any(child.dep_ in ("conj", "parataxis", "ccomp") and child.i > verb.i for child in verb.children):
        return True
    return any(token.text in _BREAKS or token.is_quote for token in verb.doc[clause.subject.last + 1 : sentence.end])


def _definite(clause: Clause) -> bool:
    head, words = clause.subject.head, {token.lower_ for token in clause.subject.tokens}
    if words & QUANTIFIERS or head.tag_ not in ("NN", "NNS", "NNP", "NNPS"):
        return False
    if any(token.tag_ == "CD" for token in clause.subject.tokens):
        return False
    if any(
        child.dep_ in ("relcl", "acl") or (child.dep_ == "prep" and child.lower_ != "of") for child in head.children
    ):
        return False
    if head.tag_ in ("NNP", "NNPS"):
        return not any(child.lower_ in ("a", "an", "some", "another") for child in head.lefts)
    return any(child.lower_ in _DEFINITE for child in head.lefts) or any(child.tag_ == "NNP" for child in head.lefts)


def _in_the_past(verb: Token) -> bool:
    first = next((child for child in verb.lefts if child.dep_ in ("aux", "auxpass")), verb)
    return first.tag_ == "VBD"


_REASONS: tuple[tuple[str, Callable[[Clause, Span], bool]], ...] = (
    ("something stands before the subject", lambda clause, _: clause.subject.first != clause.opening),
    ("the subject is not definite", lambda clause, _: not _definite(clause)),
    ("long or broken subject", _broken),
    ("negation would change its reach", _negated),
    ("verb that takes no focus", lambda clause, _: bool(clause.group.modal) or clause.group.verb in _COPULAS),
    ("adverb that has a focus of its own", _focuses),
    ("quotation or second statement", _second_statement),
)
