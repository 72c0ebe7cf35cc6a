"""Turns passive clauses with an agent into active ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pcs_annotator.relations.rules.clauses import word_lists as known
from pcs_annotator.relations.rules.clauses.clause import (
    Clause,
    commas_fit,
    dangles,
    leans_later,
    misread_after,
    placed,
    shares_subject,
    whole,
)
from pcs_annotator.relations.rules.clauses.noun_phrase import (
    AS_OBJECT,
    AS_SUBJECT,
    Phrase,
    capitalised,
    is_plural,
    lowered,
    phrase_of,
)
from pcs_annotator.relations.rules.clauses.transitive_clause import trimmed
from pcs_annotator.relations.rules.clauses.verb_group import write_group
from pcs_annotator.relations.rules.rule import NotApplicable, Replacement
from pcs_annotator.relations.rules.words import readings

if TYPE_CHECKING:
    from spacy.tokens import Token

LONGEST_PHRASE = 16
LONGEST_GAP = 8
_AMOUNTS = frozenset({"million", "billion", "trillion", "percent", "%", "per", "pct"})
# Prepositions that belong to an agent, although after an object they would belong to the verb.
_HELD = frozenset({"to", "into", "through", "without", "within", "via", "onto", "upon", "for", "from"})


@dataclass(frozen=True, slots=True)
class _PassiveClause:
    """A passive clause with its agent."""

    clause: Clause
    by: Token
    agent: Phrase

    @property
    def particle(self) -> Token | None:
        """A particle right after the verb, as in `struck down`."""
        after = self.clause.verb.nbor(1)
        return after if after.dep_ == "prt" and after.head == self.clause.verb else None

    @property
    def gap(self) -> tuple[int, int]:
        """The words between the verb and `by`."""
        return self.clause.verb.i + (1 if self.particle is None else 2), self.by.i


def to_active(clause: Clause) -> Replacement | NotApplicable:
    """Return the clause in the active voice, or why it cannot change."""
    if not clause.group.passive:
        return NotApplicable("no passive clause")
    passive = _passive(clause)
    if isinstance(passive, NotApplicable):
        return passive
    for reason, forbids in _REASONS:
        if forbids(passive):
            return NotApplicable(reason)
    return _written(passive)


def agent_of(verb: Token, opening: int) -> tuple[Token, Phrase] | None:
    """Return the word `by` and its agent, if that is a person or thing that acts."""
    agents = [child for child in verb.rights if child.dep_ == "agent"]
    if len(agents) != 1:
        return None
    by = agents[0]
    inside = list(by.children)
    if len(inside) != 1 or inside[0].dep_ != "pobj":
        return None
    head = inside[0]
    found = phrase_of(head, opening)
    if found is None or found.first != by.i + 1 or _no_agent(head):
        return None
    return by, trimmed(found, keep=_HELD)


def _no_agent(head: Token) -> bool:
    word = head.lower_
    # "By gun", "by mistake": how it is done.
    if head.tag_ == "NN" and not any(head.lefts):
        return True
    # "By volunteers in the rain": it may say when, not who.
    if any(one.lower_ in ("in", "during", "amid") and not _names_place(one) for one in head.rights):
        return True
    if any(token.tag_ == "$" or token.lower_ in _AMOUNTS for token in head.subtree):
        return True
    if word in known.MEASURES | known.TIMES | known.MANNERS or head.tag_ in ("CD", "VBG", "WP", "WDT", "WP$", "$"):
        return True
    return word in known.REFLEXIVES or word in known.WEAK_SUBJECTS or head.tag_[0] not in "NP"


def _names_place(preposition: Token) -> bool:
    return any(child.tag_ == "NNP" for child in preposition.rights)


def _passive(clause: Clause) -> _PassiveClause | NotApplicable:
    found = agent_of(clause.verb, clause.opening)
    if found is None:
        return NotApplicable("no agent")
    return _PassiveClause(clause, *found)


def _written(passive: _PassiveClause) -> Replacement | NotApplicable:
    clause, agent = passive.clause, passive.agent
    plural = is_plural(agent.head)
    if plural is None and clause.group.agrees and not (clause.group.past and not clause.group.progressive):
        return NotApplicable("the number of the agent is not clear")
    verbs = write_group(clause.group, passive=False, plural=bool(plural))
    if verbs is None:
        return NotApplicable("no active form")
    subject = AS_SUBJECT.get(agent.text.lower(), agent.text) if agent.pronoun else agent.text
    patient = lowered(clause.subject) if clause.opens else clause.subject.text
    if clause.subject.pronoun:
        patient = AS_OBJECT.get(clause.subject.text.lower(), patient)
    if patient is None:
        return NotApplicable("the first word may be a name")
    relative = clause.subject.head.tag_ in ("WDT", "WP")
    words = [capitalised(subject) if clause.opens else subject]
    if agent.closed:
        words[0] += ","
    words += [verbs, *([passive.particle.text] if passive.particle is not None else [])]
    start, end = passive.gap
    words = [patient, *words] if relative else [*words, patient]
    words += [clause.verb.doc[start:end].text] if end > start else []
    return placed(passive.clause, passive.agent, passive.agent.last, " ".join(words))


def _unsuited_verb(passive: _PassiveClause) -> bool:
    verb = passive.clause.group.verb
    return verb in known.NO_ACTIVE or "VERB" not in readings(verb)  # "unmoved"


def _unsuited_subject(passive: _PassiveClause) -> bool:
    head = passive.clause.subject.head
    if head.tag_ in ("WDT", "WP"):
        return head.lower_ not in ("that", "which") or passive.clause.subject.first != passive.clause.subject.last
    return head.lower_ in ("there", "what", "whatever", "whoever") or head.tag_ in ("WP$", "WRB", "IN")


def _gap_is_odd(passive: _PassiveClause) -> bool:
    start, end = passive.gap
    if end - start > LONGEST_GAP:
        return True
    verb = passive.clause.verb
    tops = [token for token in verb.doc[start:end] if token.head == verb]
    if any(token.tag_ == "IN" and token.dep_ == "prep" and not any(token.rights) for token in tops):
        return True
    return any(token.dep_ not in ("prep", "advmod", "npadvmod", "oprd", "dative", "prt") for token in tops) or any(
        token.text in (",", "(", ")", "--", "-") or token.is_quote or token.is_space for token in verb.doc[start:end]
    )


def _tied(passive: _PassiveClause) -> bool:
    """Return whether the agent refers to the subject, as in `The mayor was accused by his wife`."""
    return any(token.tag_ == "PRP$" or token.lower_ in known.REFLEXIVES for token in passive.agent.tokens)


def _scope(passive: _PassiveClause) -> bool:
    subject = {token.lower_ for token in passive.clause.subject.tokens}
    agent = {token.lower_ for token in passive.agent.tokens}
    if passive.clause.group.negation or "never" in passive.clause.group.adverbs:
        return bool((subject | agent) & (known.QUANTIFIERS | known.POLARITY_WORDS | {"a", "an"}))
    return bool(
        subject & (known.NEGATIVE_WORDS | {"only", "any"}) or agent & (known.NEGATIVE_WORDS | {"only"})
    ) or bool(subject & {"all", "every", "each", "both", "many", "most"} and agent & {"a", "an", "one", "some"})


def _adverbs(passive: _PassiveClause) -> bool:
    adverbs = " ".join([*passive.clause.group.adverbs, *passive.clause.group.above]).split()
    return bool({adverb.lower() for adverb in adverbs} & known.MOVING_ADVERBS)


def _heavy(passive: _PassiveClause) -> bool:
    if passive.clause.subject.head.tag_ in ("WDT", "WP") and len(passive.agent.tokens) > LONGEST_GAP:
        return True
    return max(len(passive.clause.subject.tokens), len(passive.agent.tokens)) > LONGEST_PHRASE


def _misread(passive: _PassiveClause) -> bool:
    verb = passive.clause.verb
    return misread_after(passive.agent.last, verb, allow_verb=verb.dep_ == "relcl")


def _swallows(passive: _PassiveClause) -> bool:
    """Return whether a clause in the old subject would take in the words that now follow it."""
    after = passive.clause.verb.doc[passive.agent.last + 1 : passive.agent.last + 2]
    clauses = any(token.dep_ in ("relcl", "advcl", "ccomp", "acl") for token in passive.clause.subject.tokens)
    return clauses and bool(after) and not after[0].is_punct


def _unclear(passive: _PassiveClause) -> bool:
    parts = (passive.clause.subject, passive.agent)
    return not all(whole(part) and commas_fit(part) for part in parts)


_REASONS: tuple[tuple[str, Callable[[_PassiveClause], bool]], ...] = (
    ("verb without an active", _unsuited_verb),
    ("subject that no active names", _unsuited_subject),
    ("words between verb and agent", _gap_is_odd),
    ("agent tied to the subject", _tied),
    ("verbs share a subject", lambda passive: shares_subject(passive.clause)),
    ("a phrase leans on the subject", lambda passive: dangles(passive.clause)),
    ("a phrase leans on the subject", lambda passive: leans_later(passive.clause.verb, passive.agent.last)),
    ("the parse is in doubt", _misread),
    ("negation or quantity would change its reach", _scope),
    ("adverb that cannot move", _adverbs),
    ("too long to turn round", _heavy),
    ("a phrase would change its place", _swallows),
    ("punctuation inside a moved phrase", _unclear),
)
