"""Turns active clauses into passive ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pcs_annotator.relations.rules.clauses import word_lists as known
from pcs_annotator.relations.rules.clauses.clause import (
    SUBJECTS,
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
)
from pcs_annotator.relations.rules.clauses.transitive_clause import TransitiveClause, tells_time, transitive_clause_of
from pcs_annotator.relations.rules.clauses.verb_group import participle, write_group
from pcs_annotator.relations.rules.rule import NotApplicable, Replacement
from pcs_annotator.relations.rules.words import lemma

if TYPE_CHECKING:
    from spacy.tokens import Token

LONGEST_SUBJECT = 14
LONGEST_LAST_SUBJECT = 22
LONGEST_OBJECT = 15
LONGEST_FIGURE = 3
_SHOWING = frozenset({"show", "find", "catch", "leave", "see", "spot", "depict", "send", "capture"})
# Maximum number of words in an agent that comes between an object and what is said about it.
NEAR = 5


def to_passive(clause: Clause) -> Replacement | NotApplicable:
    """Return the clause in the passive voice, or why it cannot change."""
    transitive = transitive_clause_of(clause)
    if isinstance(transitive, NotApplicable):
        return transitive
    reason = "verbs share a subject" if shares_subject(clause) else why_not_passive(transitive)
    if reason:
        return NotApplicable(reason)
    words = passive_of(transitive, capital=clause.opens)
    if isinstance(words, NotApplicable):
        return words
    return placed(clause, transitive.object, transitive.end, f"{words} by {agent_of_passive(clause)}")


def why_not_passive(transitive: TransitiveClause) -> str:
    """Return why the clause has no passive; empty when it has one."""
    return next((reason for reason, forbids in _REASONS if forbids(transitive)), "")


def passive_of(transitive: TransitiveClause, *, capital: bool) -> str | NotApplicable:
    """Return the clause in the passive voice, without its agent."""
    group, obj = transitive.clause.group, transitive.object
    plural = is_plural(obj.head)
    if plural is None and group.agrees:
        return NotApplicable("the number of the object is not clear")
    verbs = write_group(group, passive=True, plural=bool(plural))
    if verbs is None or participle(group) is None:
        return NotApplicable("no passive form")
    patient = AS_SUBJECT.get(obj.text.lower(), obj.text) if obj.pronoun else obj.text
    patient = (capitalised(patient) if capital else patient) + ("," if obj.closed else "")
    words = [patient, verbs, *([transitive.particle.text] if transitive.particle is not None else [])]
    if transitive.complement is not None:
        words.append(obj.head.doc[transitive.complement.left_edge.i : transitive.end + 1].text)
    return " ".join(words)


def agent_of_passive(clause: Clause) -> str:
    """Return the subject of an active clause in the form it takes after `by`."""
    subject = lowered(clause.subject) if clause.opens else clause.subject.text
    return AS_OBJECT.get(subject.lower(), subject) if clause.subject.pronoun else subject


def _unsuited_verb(transitive: TransitiveClause) -> bool:
    verb, noun = transitive.clause.group.verb, lemma(transitive.object.head)
    if verb == "call" and transitive.complement is None and transitive.particle is None:
        return True
    if transitive.particle is not None:
        return transitive.particle.lower_ not in known.LIGHT_PARTICLES or verb in ("make", "give", "talk")
    if verb in known.LIGHT:
        return noun not in known.LIGHT[verb]
    return verb in known.NO_PASSIVE or f"{verb}:{noun}" in known.IDIOMS


def _unsuited_subject(transitive: TransitiveClause) -> bool:
    subject, verb = transitive.clause.subject, transitive.clause.verb
    word, alone = subject.head.lower_, subject.first == subject.last
    if alone and (subject.head.tag_ == "DT" or word == "i"):
        return verb.dep_ not in ("ROOT", "conj")
    if word == "it":
        return not _is_told(verb)
    if subject.pronoun and verb.dep_ not in ("ROOT", "conj", "advcl") and not _is_told(verb):
        return True
    return word in known.WEAK_SUBJECTS or subject.head.tag_[:1] not in "NP" or _odd_opening(subject)


def _odd_opening(subject: Phrase) -> bool:
    first, figures = subject.tokens[0], any(token.tag_ == "CD" for token in subject.tokens)
    if first.tag_ in ("WP$", "WDT") or (first.tag_ in ("IN", "RB", "RBS") and not figures):
        return True
    # "By 12 percent" would say how much, not who.
    word = subject.head.lower_
    return subject.head.tag_ == "CD" or (word in known.MEASURES and len(subject.tokens) <= LONGEST_FIGURE)


def _is_told(verb: Token) -> bool:
    """Return whether a clause is reported speech, so that its pronoun is the speaker."""
    return verb.dep_ == "ccomp" and lemma(verb.head) in known.TELLING and verb.head.i < verb.i


def _unsuited_object(transitive: TransitiveClause) -> bool:
    obj = transitive.object
    words = {token.lower_ for token in obj.tokens}
    if words & {"such", "so", "too"} or words & known.REFLEXIVES or {"each", "other"} <= words:
        return True
    if any(token.lower_ in _owners(transitive.clause.subject) and not _deep(token, obj) for token in obj.tokens):
        return True
    head = obj.head
    if head.tag_[0] not in "NPD" or head.tag_ in ("WP", "WDT", "WP$") or head.lower_ in ("you", "me", "what"):
        return True
    # "Smith's past has not stopped him": once "he" comes first, it is no longer Smith.
    if obj.pronoun and any(token.tag_ == "POS" for token in transitive.clause.subject.tokens):
        return True
    if head.lower_ in known.INDEFINITE:
        return True
    return any(token.dep_ in ("ccomp", "xcomp") for token in obj.head.children)


def _deep(possessive: Token, obj: Phrase) -> bool:
    """Return whether `its` comes well after the object's noun: `a plant in its home town` may come first."""
    return possessive.lower_ in ("its", "their") and possessive.i > obj.head.i + 1


def _owners(subject: Phrase) -> frozenset[str]:
    """Return the possessives that may refer to a subject."""
    if subject.pronoun:
        return known.POSSESSIVES
    strangers = {"my", "our", "your"}
    if is_plural(subject.head):
        strangers |= {"his", "her", "its"}
    return known.POSSESSIVES - strangers


def _measure(transitive: TransitiveClause) -> bool:
    head = transitive.object.head
    return head.lower_ in known.MEASURES or any(child.tag_ == "$" for child in head.lefts) or head.tag_ == "CD"


def _two_objects(transitive: TransitiveClause) -> bool:
    children = list(transitive.clause.verb.children)
    if any(child.dep_ == "dative" and child.tag_ != "IN" for child in children):
        return True
    return any(
        child.dep_ in ("ccomp", "xcomp") and not _may_follow(child, transitive)
        for child in children
        if child.i > transitive.clause.verb.i
    )


def _may_follow(child: Token, transitive: TransitiveClause) -> bool:
    infinitive = child.tag_ == "VB" and any(word.tag_ == "TO" for word in child.lefts)
    if infinitive:
        return transitive.clause.group.verb in known.CONTROL or transitive.clause.group.verb == "use"
    return (
        child.dep_ == "ccomp"
        and any(word.dep_ in SUBJECTS for word in child.lefts)
        and (child.left_edge.i > transitive.object.last and child.left_edge.lower_ in ("that", ","))
    )


def _scope(transitive: TransitiveClause) -> bool:
    subject = {token.lower_ for token in transitive.clause.subject.tokens}
    obj = {token.lower_ for token in transitive.object.tokens}
    group = transitive.clause.group
    negated = bool(group.negation) or "never" in group.adverbs or "no longer" in group.adverbs
    if negated:
        return bool(subject & known.QUANTIFIERS or obj & (known.QUANTIFIERS | known.POLARITY_WORDS))
    if subject & (known.NEGATIVE_WORDS | {"only", "any"}) or obj & {"any", "only", "each", "either"}:
        return True
    counted = {"all", "every", "each", "both", "many", "most", "several", "everyone", "everybody"}
    return bool(subject & counted and (obj & (counted | {"a", "an", "one", "some"})))


def _adverbs(transitive: TransitiveClause) -> bool:
    adverbs = " ".join([*transitive.clause.group.adverbs, *transitive.clause.group.above]).split()
    return bool({adverb.lower() for adverb in adverbs} & known.MOVING_ADVERBS)


def _heavy(transitive: TransitiveClause) -> bool:
    subject, obj = transitive.clause.subject, transitive.object
    after = subject.head.doc[transitive.end + 1 : transitive.end + 2]
    last = not after or after[0].is_punct
    if len(subject.tokens) > (LONGEST_LAST_SUBJECT if last else LONGEST_SUBJECT) or len(obj.tokens) > LONGEST_OBJECT:
        return True
    # A clause inside the agent would absorb the words after it.
    if not last and not subject.closed and any(token.dep_ in ("relcl", "acl", "ccomp") for token in subject.tokens):
        return True
    return transitive.complement is not None and transitive.end - transitive.object.last > NEAR


def _purpose(transitive: TransitiveClause) -> bool:
    """Return whether an infinitive or an ellipsis after the object needs the old subject."""
    if leans_later(transitive.clause.verb, transitive.end):
        return True
    verb = transitive.clause.group.verb
    for child in transitive.clause.verb.rights:
        # "Video showed protesters taking down a statue": the participle is about the object.
        if child.tag_ == "VBG" and child.dep_ in ("ccomp", "xcomp", "advcl", "acl") and verb in _SHOWING:
            return True
        if child.dep_ == "advcl" and child.tag_ == "VB" and any(word.tag_ == "TO" for word in child.lefts):
            gathers = verb in known.GATHERING or bool(transitive.clause.group.negation)
            return gathers or transitive.object.head.tag_ not in ("NN", "NNS")
        if child.dep_ == "advcl" and lemma(child) == "do":
            return True
    return False


def _misread(transitive: TransitiveClause) -> bool:
    return (
        misread_after(transitive.end, transitive.clause.verb)
        or _far_off(transitive)
        or _torn_from_preposition(transitive)
    )


def _torn_from_preposition(transitive: TransitiveClause) -> bool:
    """Return whether the verb's preposition is inside the object, or not right after it."""
    asked = {word for word, verbs in known.VERBS_WITH.items() if transitive.clause.group.verb in verbs} - {
        "for",
        "as",
        "over",
    }
    if "of" in asked and any(token.lower_ == "of" for token in transitive.object.tokens):
        return True
    rest = transitive.clause.verb.doc[transitive.end + 1 : transitive.clause.verb.sent.end]
    own = [child for child in transitive.clause.verb.rights if child.dep_ == "prep" and child.i > transitive.end]
    later = [token for token in own if token.lower_ in asked]
    return bool(later) and later[0].i != rest[0].i and not tells_time(rest[0])


def _far_off(transitive: TransitiveClause) -> bool:
    """Return whether a phrase that may belong to the object would end up far from it, after the agent."""
    after = next(iter(transitive.clause.verb.doc[transitive.end + 1 : transitive.end + 2]), None)
    if after is None or after.dep_ not in ("prep", "acl", "relcl") or tells_time(after):
        return False
    word, verb, subject = after.lower_, transitive.clause.group.verb, transitive.clause.subject
    if verb in known.VERBS_WITH.get(word, ()):
        return False
    if word in ("of", "about", "between", "that", "than") or (word in ("in", "with", "at") and subject.pronoun):
        return True
    if word == "to":
        return transitive.object.head.lower_ in known.NOUNS_WITH_TO
    if word in ("for", "from"):
        return not any(inside.dep_ == "pcomp" for inside in after.children)
    return word in ("for", "on", "against", "over", "in") and len(subject.tokens) > NEAR


def _unclear(transitive: TransitiveClause) -> bool:
    subject = transitive.clause.subject
    if subject.first > 0 and transitive.object.tokens[0].lower_ == subject.head.doc[subject.first - 1].lower_ == "that":
        return True
    parts = [transitive.clause.subject, transitive.object]
    if transitive.complement is not None:
        parts.append(Phrase(transitive.complement, transitive.complement.left_edge.i, transitive.end))
    return not all(whole(part) and commas_fit(part) for part in parts)


_REASONS: tuple[tuple[str, Callable[[TransitiveClause], bool]], ...] = (
    ("verb without a passive", _unsuited_verb),
    ("subject that no passive names", _unsuited_subject),
    ("object tied to the subject", _unsuited_object),
    ("the object is a measure", _measure),
    ("two objects", _two_objects),
    ("a phrase leans on the subject", lambda transitive: dangles(transitive.clause)),
    ("an infinitive leans on the subject", _purpose),
    ("the parse is in doubt", _misread),
    ("negation or quantity would change its reach", _scope),
    ("adverb that cannot move", _adverbs),
    ("too long to turn round", _heavy),
    ("punctuation inside a moved phrase", _unclear),
)
