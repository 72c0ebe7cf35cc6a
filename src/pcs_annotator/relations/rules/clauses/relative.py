"""Relative clauses that change their voice: `the bill that Congress passed`, `a bill passed by Congress`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pcs_annotator.relations.rules.clauses import word_lists as known
from pcs_annotator.relations.rules.clauses.clause import (
    SUBJECTS,
    Clause,
    commas_fit,
    misread_after,
    shares_subject,
    whole,
)
from pcs_annotator.relations.rules.clauses.noun_phrase import AS_OBJECT, AS_SUBJECT, Phrase, is_plural
from pcs_annotator.relations.rules.clauses.to_active import agent_of
from pcs_annotator.relations.rules.clauses.verb_group import VerbGroup, participle, write_group
from pcs_annotator.relations.rules.rule import NotApplicable, Replacement
from pcs_annotator.relations.rules.words import lemma, word_set

if TYPE_CHECKING:
    from spacy.tokens import Token

LONGEST_AGENT = 8
# For these nouns a relative clause gives time, manner or place, so they are not its object.
_SETTINGS = word_set(
    """
    way time reason day year thing place moment period week month extent case fact degree
    """
)


def describes_its_object(clause: Clause) -> bool:
    """Return whether a clause modifies a noun that is its object: `that Congress passed`, or `Congress passed`."""
    if clause.verb.dep_ != "relcl" or clause.group.passive:
        return False
    return any(_is_relative(child) for child in clause.verb.lefts) or _is_bare(clause)


def relative_to_passive(clause: Clause) -> Replacement | NotApplicable:
    """Return `that Congress passed` as `that was passed by Congress`, or why it cannot change."""
    verb, subject, noun = clause.verb, clause.subject, clause.verb.head
    plural = is_plural(noun)
    verbs = None if plural is None else write_group(clause.group, passive=True, plural=plural)
    if verbs is None or participle(clause.group) is None:
        return NotApplicable("no passive form")
    if (
        (_is_bare(clause) and (clause.group.modal or clause.group.verb == "help"))
        or _unsuited(clause, noun)
        or not (whole(subject) and commas_fit(subject))
        or len(subject.tokens) > LONGEST_AGENT
    ):
        return NotApplicable("relative clause that stays active")
    end = verb.nbor(1) if _has_particle(verb) else verb
    if misread_after(end.i, verb, allow_verb=True) or verb.doc[end.i + 1 : end.i + 2].text == "by":
        return NotApplicable("the parse is in doubt")
    agent = AS_OBJECT.get(subject.text.lower(), subject.text) if subject.pronoun else subject.text
    words = [*(["that"] if _is_bare(clause) else []), verbs, *([end.text] if end != verb else []), "by", agent]
    return Replacement(subject.start_char, end.idx + len(end), " ".join(words))


def reduced_to_active(verb: Token, opening: int) -> Replacement | NotApplicable:
    """Return `passed by Congress` after a noun as `that Congress passed`, or why it cannot change."""
    found = agent_of(verb, opening)
    if found is None:
        return NotApplicable("no agent")
    by, agent = found
    start = _start(verb)
    if start is None or not _is_past(verb) or not _plain(verb, by, agent):
        return NotApplicable("participle that stays passive")
    adverbs = tuple(token.text for token in verb.doc[start : verb.i])
    group = VerbGroup(verb=lemma(verb), spelling=verb.lower_, past=True, adverbs=adverbs)
    verbs = write_group(group, passive=False, plural=False)
    if verbs is None:
        return NotApplicable("no active form")
    subject = AS_SUBJECT.get(agent.text.lower(), agent.text) if agent.pronoun else agent.text
    gap_start = verb.i + (2 if _has_particle(verb) else 1)
    words = ["that", subject, verbs, verb.doc[verb.i + 1 : gap_start].text, verb.doc[gap_start : by.i].text]
    return Replacement(verb.doc[start].idx, agent.end_char, " ".join(word for word in words if word))


def is_reduced(verb: Token) -> bool:
    """Return whether a participle modifies a noun without a relative pronoun."""
    return verb.dep_ == "acl" and verb.tag_ == "VBN" and verb.head.tag_[:2] == "NN" and verb.head.i < verb.i


def _is_bare(clause: Clause) -> bool:
    """Return whether the clause follows its noun without a relative pronoun and has no object of its own."""
    if clause.subject.first == 0:
        return False
    return clause.verb.doc[clause.subject.first - 1] == clause.verb.head and not any(
        child.dep_ == "dobj" for child in clause.verb.children
    )


def _is_relative(token: Token) -> bool:
    return token.dep_ == "dobj" and token.tag_ in ("WDT", "IN") and token.lower_ in ("that", "which")


def _has_particle(verb: Token) -> bool:
    return verb.i + 1 < len(verb.doc) and verb.nbor(1).dep_ == "prt" and verb.nbor(1).head == verb


def _unsuited(clause: Clause, noun: Token) -> bool:
    verb, group = clause.verb, clause.group
    adverbs = {word.lower() for adverb in (*group.adverbs, *group.above) for word in adverb.split()}
    words = {token.lower_ for token in clause.subject.tokens}
    if clause.subject.head.lower_ in known.WEAK_SUBJECTS or words & (known.QUANTIFIERS | {"whose"}):
        return True
    if _unsuited_noun(noun, group.verb) or adverbs & known.MOVING_ADVERBS or shares_subject(clause):
        return True
    # "So angry that they left" has no relative clause.
    if any(token.lower_ in ("so", "such") for token in verb.doc[verb.sent.start : verb.i]):
        return True
    return any(_leaves_open(child) for child in verb.rights)


def _unsuited_noun(noun: Token, verb: str) -> bool:
    base = lemma(noun)
    if noun.tag_[:1] != "N" or base in _SETTINGS or noun.lower_ in known.TIMES:
        return True
    if noun.lower_ in known.INDEFINITE or noun.lower_ == "everything" or f"{verb}:{base}" in known.IDIOMS:
        return True
    return base not in known.LIGHT[verb] if verb in known.LIGHT else verb in known.NO_PASSIVE


def _leaves_open(child: Token) -> bool:
    """Return whether a word after the verb casts doubt on the relative pronoun being its object."""
    if child.dep_ == "prep":
        return not any(word.dep_ in ("pobj", "pcomp") for word in child.children)
    return child.dep_ in ("dobj", "dative", "ccomp", "xcomp", "oprd", "acomp", "attr", "advcl", "dep")


def _start(verb: Token) -> int | None:
    """Return where the participle and its adverbs begin, right after the noun; None if something is in between."""
    start = verb.i
    while start - 1 > verb.head.i and verb.doc[start - 1].head == verb and verb.doc[start - 1].tag_ == "RB":
        start -= 1
    return start if verb.doc[start - 1] == verb.head else None


def _is_past(verb: Token) -> bool:
    """Return whether a participle tells of an event in the past, because its clause does or it happened before."""
    fragment = verb.sent.root.tag_[:2] not in ("VB", "MD") or verb.head.dep_ in ("ccomp", "ROOT", "dep", "parataxis")
    if fragment or lemma(verb) in known.NO_RELATIVE | known.STATES:
        return False
    # "Police say ten people hurt by smoke" says that they were hurt.
    if verb.head.dep_ == "dobj" and lemma(verb.head.head) in known.TELLING | known.THINKING:
        return False
    above = verb.head
    while above.dep_ != "ROOT" and not (above.tag_[:2] == "VB" and any(word.dep_ in SUBJECTS for word in above.lefts)):
        above = above.head
    first = next((word for word in above.lefts if word.dep_ in ("aux", "auxpass")), above)
    if first.tag_ == "VBD":
        return True
    bare = not any(word.dep_ in ("det", "poss", "nummod") for word in verb.head.lefts)
    return first.tag_ in ("VBZ", "VBP") and not (bare and verb.head.tag_ == "NNS")


def _plain(verb: Token, by: Token, agent: Phrase) -> bool:
    words = {token.lower_ for token in agent.tokens}
    if len(agent.tokens) > LONGEST_AGENT or words & known.POSSESSIVES or words & known.QUANTIFIERS or "," in words:
        return False
    if misread_after(agent.last, verb, allow_verb=True) or not whole(agent):
        return False
    if any(token.dep_ in ("relcl", "acl") for token in agent.tokens):
        return False
    adverbs = {word.lower_ for word in verb.lefts}
    if any(child.dep_ not in ("advmod", "punct") for child in verb.lefts) or adverbs & known.MOVING_ADVERBS:
        return False
    gap = verb.doc[verb.i + 1 : by.i]
    if len(gap) > LONGEST_AGENT or any(token.text in (",", "-", "--") or token.is_quote for token in gap):
        return False
    return all(child.dep_ in ("agent", "prep", "npadvmod", "advmod", "prt", "punct", "dative") for child in verb.rights)
