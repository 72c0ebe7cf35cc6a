"""Two deeds of one subject turned into the passive together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pcs_annotator.asking.relations.rules.clauses.clause import SUBJECTS, Clause, belongs
from pcs_annotator.asking.relations.rules.clauses.deed import Deed, deed_of
from pcs_annotator.asking.relations.rules.clauses.to_passive import agent_of_passive, passive_of, why_not_passive
from pcs_annotator.asking.relations.rules.clauses.verb_group import VerbGroup, read_group
from pcs_annotator.asking.relations.rules.result import NotApplicable, Replacement

if TYPE_CHECKING:
    from spacy.tokens import Token

LONGEST_REST = 5


def pair_to_passive(clause: Clause) -> Replacement | NotApplicable:
    """Return `X did A and did B` as `A was done and B was done by X`, or why it stays."""
    joined = _joined(clause.verb)
    second = None if joined is None else _second(clause, *joined)
    if joined is None or second is None:
        return NotApplicable("verbs share a subject")
    first, last = deed_of(clause), deed_of(second)
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
    """Return the `and` and the one verb that it adds, when that verb has no subject of its own."""
    others = [child for child in verb.rights if child.dep_ == "conj"]
    links = [child for child in verb.rights if child.dep_ == "cc"]
    if len(others) != 1 or len(links) != 1 or links[0].lower_ != "and" or links[0].i > others[0].i:
        return None
    other = others[0]
    if any(word.dep_ in SUBJECTS for word in other.lefts) or any(word.dep_ == "conj" for word in other.rights):
        return None
    return links[0], other


def _second(clause: Clause, link: Token, verb: Token) -> Clause | None:
    """Return the second verb as a clause with the first one's subject; None unless both are plain and of one tense."""
    between = list(verb.doc[link.i + 1 : verb.i])
    group = read_group(verb, between) if all(belongs(token, verb) for token in between) else None
    if group is None or not (_plain(group) and _plain(clause.group)) or group.past != clause.group.past:
        return None
    return None if clause.subject.closed else Clause(verb, clause.subject, group, clause.opening)


def _plain(group: VerbGroup) -> bool:
    return not (group.modal or group.perfect or group.progressive or group.passive or group.negation)


def _why_not(deed: Deed) -> str:
    if deed.clause.subject.pronoun or deed.object.closed:
        return "verbs share a subject"
    return why_not_passive(deed)
