"""Active to passive and back: the roles stay, the positions in the sentence change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pcs_annotator.core.variant import Expectation
from pcs_annotator.relations.rules.clauses.clause import (
    SUBJECTS,
    Clause,
    belongs,
    clauses_of,
    opening_of,
    shares_subject,
)
from pcs_annotator.relations.rules.clauses.relative import (
    describes_its_object,
    is_reduced,
    reduced_to_active,
    relative_to_passive,
)
from pcs_annotator.relations.rules.clauses.to_active import to_active
from pcs_annotator.relations.rules.clauses.to_passive import agent_of_passive, passive_of, to_passive, why_not_passive
from pcs_annotator.relations.rules.clauses.transitive_clause import TransitiveClause, transitive_clause_of
from pcs_annotator.relations.rules.clauses.verb_group import VerbGroup, read_group
from pcs_annotator.relations.rules.rule import NotApplicable, Replacement, sentence_rule, splice
from pcs_annotator.relations.rules.words import word_set

if TYPE_CHECKING:
    from spacy.tokens import Span, Token

LONGEST_SENTENCE = 70
_ASKING = frozenset({"WDT", "WP", "WP$"})
# "19 Times Ann Lee Won the Cup" tells of times, which the parser takes for a part of her name.
_LISTED = word_set("times things ways reasons signs moments places photos pictures facts tweets")


@sentence_rule("rule:voice", version="2", expects=Expectation(reorders=True))
def voice(sentence: Span) -> str | NotApplicable:
    """Return the sentence with one clause in the other voice, if possible the main clause."""
    reason = why_not(sentence)
    if reason:
        return NotApplicable(reason)
    refused: list[str] = []
    for result in _attempts(sentence):
        if isinstance(result, Replacement):
            return splice(sentence.text, [result], sentence.start_char)
        refused.append(result.reason)
    return NotApplicable(refused[0] if refused else "no plain clause with a subject")


def why_not(sentence: Span) -> str:
    """Return why the parse of a sentence cannot be trusted; empty when it can."""
    words = [token for token in sentence if token.is_alpha]
    if len(words) < 3:
        return "fragment"
    if len(sentence) > LONGEST_SENTENCE:
        return "long sentence"
    if "?" in sentence.text[-3:] or sentence[0].tag_ in _ASKING:
        return "question"
    return "headline of a list" if sentence[0].like_num and sentence[1].lower_ in _LISTED else ""


def _turned(clause: Clause) -> Replacement | NotApplicable:
    if clause.group.passive:
        return to_active(clause)
    return pair_to_passive(clause) if shares_subject(clause) else to_passive(clause)


def _attempts(sentence: Span) -> Iterator[Replacement | NotApplicable]:
    opening = opening_of(sentence)
    for clause in clauses_of(sentence, opening):
        if describes_its_object(clause):
            yield relative_to_passive(clause)
        else:
            yield _turned(clause)
    for token in sentence:
        if is_reduced(token):
            yield reduced_to_active(token, opening)


LONGEST_REST = 5


def pair_to_passive(clause: Clause) -> Replacement | NotApplicable:
    """Return `X did A and did B` as `A was done and B was done by X`, or why it cannot change."""
    joined = _joined(clause.verb)
    second = None if joined is None else _second(clause, *joined)
    if joined is None or second is None:
        return NotApplicable("verbs share a subject")
    first, last = transitive_clause_of(clause), transitive_clause_of(second)
    if isinstance(first, NotApplicable) or isinstance(last, NotApplicable):
        return NotApplicable("verbs share a subject")
    reason = _why_not(first) or _why_not(last)
    texts = (passive_of(first, capital=clause.opens), passive_of(last, capital=False))
    between = clause.verb.doc[first.end + 1 : joined[0].i + 1]
    if reason or len(between) - 1 > LONGEST_REST or any(token.text == "," for token in between):
        return NotApplicable(reason or "verbs share a subject")
    for text in texts:
        if isinstance(text, NotApplicable):
            return text
    new = f"{texts[0]} {between.text} {texts[1]} by {agent_of_passive(clause)}"
    end = clause.verb.doc[last.end]
    return Replacement(clause.subject.start_char, end.idx + len(end), new)


def _joined(verb: Token) -> tuple[Token, Token] | None:
    """Return the `and` and the one verb that it adds, if that verb has no subject of its own."""
    others = [child for child in verb.rights if child.dep_ == "conj"]
    links = [child for child in verb.rights if child.dep_ == "cc"]
    if len(others) != 1 or len(links) != 1 or links[0].lower_ != "and" or links[0].i > others[0].i:
        return None
    other = others[0]
    if any(word.dep_ in SUBJECTS for word in other.lefts) or any(word.dep_ == "conj" for word in other.rights):
        return None
    return links[0], other


def _second(clause: Clause, link: Token, verb: Token) -> Clause | None:
    """Return the second verb as a clause with the first one's subject; None unless both are plain and in one tense."""
    between = list(verb.doc[link.i + 1 : verb.i])
    group = read_group(verb, between) if all(belongs(token, verb) for token in between) else None
    if group is None or not (_plain(group) and _plain(clause.group)) or group.past != clause.group.past:
        return None
    return None if clause.subject.closed else Clause(verb, clause.subject, group, clause.opening)


def _plain(group: VerbGroup) -> bool:
    return not (group.modal or group.perfect or group.progressive or group.passive or group.negation)


def _why_not(transitive: TransitiveClause) -> str:
    if transitive.clause.subject.pronoun or transitive.object.closed:
        return "verbs share a subject"
    return why_not_passive(transitive)
