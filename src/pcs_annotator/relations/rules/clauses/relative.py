"""Relative clauses in the passive voice: `the bill that Congress passed`, `the bill Congress passed`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pcs_annotator.relations.rules.clauses import word_lists as known
from pcs_annotator.relations.rules.clauses.clause import Clause, commas_fit, misread_after, shares_subject, whole
from pcs_annotator.relations.rules.clauses.noun_phrase import AS_OBJECT, is_plural
from pcs_annotator.relations.rules.clauses.rest import SUBJECTS
from pcs_annotator.relations.rules.clauses.verb_group import participle, write_group
from pcs_annotator.relations.rules.rule import NotApplicable, Replacement
from pcs_annotator.relations.rules.words import lemma, word_set

if TYPE_CHECKING:
    from spacy.tokens import Token

LONGEST_AGENT = 8
# For these nouns a relative clause gives time, manner or place, so they are not its object.
_SETTINGS = word_set("way time reason day year thing place moment period week month extent case fact degree")


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
        (_is_bare(clause) and _is_doubtful(clause))
        or _unsuited(clause, noun)
        or not (whole(subject) and commas_fit(subject))
        or len(subject.tokens) > LONGEST_AGENT
    ):
        return NotApplicable("relative clause that stays active")
    end = verb.nbor(1) if _has_particle(verb) else verb
    subjects = noun.dep_ in SUBJECTS  # "the man they suspect was hurt" has no relative clause
    if misread_after(end.i, verb, allow_verb=subjects) or verb.doc[end.i + 1 : end.i + 2].text == "by":
        return NotApplicable("the parse is in doubt")
    agent = AS_OBJECT.get(subject.text.lower(), subject.text) if subject.pronoun else subject.text
    words = [*(["that"] if _is_bare(clause) else []), verbs, *([end.text] if end != verb else []), "by", agent]
    return Replacement(subject.start_char, end.idx + len(end), " ".join(words))


def _is_bare(clause: Clause) -> bool:
    """Return whether the clause follows its noun without a relative pronoun and has no object of its own."""
    if clause.subject.first == 0:
        return False
    return clause.verb.doc[clause.subject.first - 1] == clause.verb.head and not any(
        child.dep_ == "dobj" for child in clause.verb.children
    )


def _is_doubtful(clause: Clause) -> bool:
    """Return whether a clause without a pronoun may be no relative clause: `the probe Cassini hurtled`."""
    verb, subject = clause.verb, clause.subject
    unmarked = verb.sent[-1].is_alpha or _has_particle(verb) or clause.group.modal or clause.group.verb == "help"
    return bool(unmarked) or (subject.head.tag_ == "NNP" and subject.first == subject.last)


def _is_relative(token: Token) -> bool:
    return token.dep_ == "dobj" and token.tag_ == "WDT" and token.lower_ in ("that", "which")


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
        inner = [word for word in child.subtree if word.dep_ == "prep"]
        return not all(any(word.dep_ in ("pobj", "pcomp") for word in each.children) for each in inner)
    return child.dep_ in ("dobj", "dative", "ccomp", "xcomp", "oprd", "acomp", "attr", "advcl", "dep")
