"""Turns active clauses into passive ones."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from pcs_annotator.relations.rules.clauses import word_lists as known
from pcs_annotator.relations.rules.clauses.clause import (
    SUBJECTS,
    Clause,
    commas_fit,
    dangles,
    leans_later,
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
from pcs_annotator.relations.rules.clauses.rest import is_sure as rest_is_sure
from pcs_annotator.relations.rules.clauses.transitive_clause import TransitiveClause, transitive_clause_of
from pcs_annotator.relations.rules.clauses.transitive_clause import is_sure as object_is_sure
from pcs_annotator.relations.rules.clauses.verb_group import participle, write_group
from pcs_annotator.relations.rules.rule import NotApplicable, Replacement
from pcs_annotator.relations.rules.words import inflect, lemma, readings, word_set

if TYPE_CHECKING:
    from spacy.tokens import Token

LONGEST_SUBJECT = 14
LONGEST_LAST_SUBJECT = 22
LONGEST_OBJECT = 15
LONGEST_FIGURE = 3
_SHOWING = frozenset({"show", "find", "catch", "leave", "see", "spot", "depict", "send", "capture"})
_NAMING = word_set("name call elect appoint award give offer send pay deny grant hand show teach crown vote")
_PERSON = re.compile(
    r"(?:er|or|ist|ian|man|ant|ent)$|^(?:(?:some|any|every)(?:one|body)|people|person|guy|girl|boy|kid|child|friend|wife|dog|cat)$"
)
_NOT_WITH_PARTICLES = word_set("make give talk break bring sink")
_PERSONS = word_set("he she it they him them")
_SCORE = re.compile(r"\d-\d")
# Maximum number of words in an agent that comes between an object and what is said about it.
NEAR = 5


def to_passive(clause: Clause) -> Replacement | NotApplicable:
    """Return the clause in the passive voice, or why it cannot change."""
    transitive = transitive_clause_of(clause)
    if isinstance(transitive, NotApplicable):
        return transitive
    reason = "verbs share a subject" if shares_subject(clause) else _why_not(transitive)
    if reason:
        return NotApplicable(reason)
    words, agent = _passive_of(transitive), _agent(clause)
    if isinstance(words, NotApplicable):
        return words
    if agent is None:
        return NotApplicable("the first word may be a name")
    text = f"by {agent} {words}" if clause.subject.relative else f"{words} by {agent}"
    return placed(clause, transitive.object, transitive.end, text)


def _why_not(transitive: TransitiveClause) -> str:
    """Return why the clause has no passive; empty when it has one."""
    return next((reason for reason, forbids in _REASONS if forbids(transitive)), "")


def _passive_of(transitive: TransitiveClause) -> str | NotApplicable:
    """Return the clause in the passive voice, without its agent."""
    group, obj = transitive.clause.group, transitive.object
    plural = is_plural(obj.head)
    if plural is None and group.agrees:
        return NotApplicable("the number of the object is not clear")
    verbs = write_group(group, passive=True, plural=bool(plural))
    if verbs is None or participle(group) is None:
        return NotApplicable("no passive form")
    patient = AS_SUBJECT.get(obj.text.lower(), obj.text) if obj.pronoun else obj.text
    patient = (capitalised(patient) if transitive.clause.opens else patient) + ("," if obj.closed else "")
    words = [patient, verbs, *([transitive.particle.text] if transitive.particle is not None else [])]
    if transitive.complement is not None:
        words.append(obj.head.doc[transitive.complement.left_edge.i : transitive.end + 1].text)
    return " ".join(words)


def _agent(clause: Clause) -> str | None:
    """Return the subject in the form it takes after `by`; None if its capital may be a name's."""
    if clause.subject.relative:
        return "whom" if clause.subject.head.lower_ == "who" else "which"
    subject = lowered(clause.subject) if clause.opens else clause.subject.text
    return AS_OBJECT.get(clause.subject.text.lower(), subject) if clause.subject.pronoun else subject


def _unsuited_verb(transitive: TransitiveClause) -> bool:
    verb, noun = transitive.clause.group.verb, lemma(transitive.object.head)
    # "I liked a video" is what a site writes for its users.
    if (verb == "call" and transitive.complement is None and transitive.particle is None) or (
        verb == "like" and (transitive.clause.group.modal or transitive.object.tokens[0].lower_ == "a")
    ):
        return True
    if transitive.complement is not None and verb not in _NAMING:
        return True
    if transitive.particle is not None:
        return transitive.particle.lower_ not in known.LIGHT_PARTICLES or verb in _NOT_WITH_PARTICLES
    if verb in known.LIGHT:
        return noun not in known.LIGHT[verb]
    return verb in known.NO_PASSIVE or f"{verb}:{noun}" in known.IDIOMS


def _unsuited_subject(transitive: TransitiveClause) -> bool:
    subject, verb = transitive.clause.subject, transitive.clause.verb
    word, alone = subject.head.lower_, subject.first == subject.last
    # "By my uncle and I" would be wrong.
    if not alone and any(token.lower_ in ("i", "he", "she", "we", "they") for token in subject.tokens):
        return not subject.relative
    if subject.relative:
        return transitive.object.closed or not _can_follow_by(subject.head, verb)
    if alone and (subject.head.tag_ == "DT" or word == "i"):
        # "I would avoid it" is advice.
        return verb.dep_ not in ("ROOT", "conj", "advcl") or transitive.clause.group.modal == "would"
    if word == "it":
        return not _is_told(verb)
    if subject.pronoun and verb.dep_ not in ("ROOT", "conj", "advcl") and not _is_told(verb):
        return True
    # "By my wife and I" is wrong, and so is "by you and he".
    joined = not subject.pronoun and any(token.lower_ in AS_OBJECT for token in (subject.head, *subject.head.conjuncts))
    return joined or word in known.WEAK_SUBJECTS or subject.head.tag_[:1] not in "NP" or _odd_opening(subject)


def _can_follow_by(pronoun: Token, verb: Token) -> bool:
    """Return whether `that passed the bill` may become `by which the bill was passed`; people take `by whom`."""
    noun = verb.head
    if verb.dep_ != "relcl" or noun.tag_[:2] != "NN" or verb.sent.root.tag_[:1] == "N" or noun.i >= pronoun.i:
        return False
    return pronoun.lower_ in ("who", "which") or (
        # "He is a fool that hates it": "which" is no person.
        pronoun.lower_ == "that" and noun.dep_ != "attr" and noun.nbor(1) == pronoun and not _PERSON.search(lemma(noun))
    )


def _odd_opening(subject: Phrase) -> bool:
    first, figures = subject.tokens[0], any(token.tag_ == "CD" for token in subject.tokens)
    # "DAVIE  Dolphins coach": a place, then the text.
    if first.is_upper and first.nbor(1).is_space:
        return True
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
    if words & ({"such", "so", "too"} | known.REFLEXIVES) or {"each", "other"} <= words:
        return True
    head = obj.head
    # "Declares the old treaty void": the complement is no part of the object.
    complement = obj.last > head.i and obj.tokens[-1].tag_ == "JJ"
    if complement or (words & _owners(transitive.clause.subject) and not obj.pronoun):
        return True
    if head.tag_[0] not in "NPD" or head.tag_ in ("WP", "WDT", "WP$") or head.lower_ in ("you", "me", "what"):
        return True
    if (obj.pronoun and _someone_else(transitive.clause.subject, head)) or head.lower_ in known.INDEFINITE:
        return True
    # "Trump wins lol": slang that the tagger takes for a noun; "teach men how to vote": two objects.
    if "how" in words or (
        head.tag_ == "NN" and head.is_lower and not head.lower_.endswith("ing") and "NOUN" not in readings(head.lower_)
    ):
        return True
    # "Heard the pupils laugh": a clause that the tagger takes for a noun.
    clause = "VERB" in readings(head.lower_) and any(
        one.tag_ == "NNS" and one.dep_ == "compound" for one in head.children
    )
    return clause or any(token.dep_ in ("ccomp", "xcomp") for token in obj.head.children)


def _someone_else(subject: Phrase, pronoun: Token) -> bool:
    """Return whether a pronoun may change whom it means: `They hated them`, `Smith's past has not stopped him`."""
    if subject.pronoun:
        return is_plural(subject.head) == is_plural(pronoun)
    # "Most states that had it have banned it": the pronoun would come before its noun.
    return len(subject.tokens) > NEAR or any(token.tag_ == "POS" for token in subject.tokens)


def _owners(subject: Phrase) -> frozenset[str]:
    """Return the words in an object that may refer to the subject, as in `its plan` and `the plan that he supports`."""
    if subject.pronoun:
        return known.POSSESSIVES
    strangers = {"my", "our", "your"}
    if is_plural(subject.head):
        strangers |= {"his", "her", "its"}
    return (known.POSSESSIVES | _PERSONS) - strangers


def _measure(transitive: TransitiveClause) -> bool:
    head = transitive.object.head
    if _SCORE.search(transitive.object.text):
        return True
    return head.lower_ in known.MEASURES or any(child.tag_ == "$" for child in head.lefts) or head.tag_ == "CD"


def _two_objects(transitive: TransitiveClause) -> bool:
    children = list(transitive.clause.verb.children)
    if any(child.dep_ == "dative" and child.tag_ != "IN" for child in children):
        return True
    # "Give the director responsibility", "send the champion home": the parser may take both nouns for one.
    if transitive.clause.group.verb in _NAMING and any(
        child.dep_ == "compound" for child in transitive.object.head.lefts
    ):
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
        counts = any(token.tag_ == "CD" for token in transitive.object.tokens)
        return (
            counts
            or transitive.object.tokens[0].lower_ in ("a", "an")
            or bool(subject & known.QUANTIFIERS or obj & (known.QUANTIFIERS | known.POLARITY_WORDS))
        )
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


def _shown(transitive: TransitiveClause) -> bool:
    """Return whether a participle is about the object, as in `Video showed protesters taking down a statue`."""
    return transitive.clause.group.verb in _SHOWING and any(
        child.tag_ == "VBG" and child.dep_ in ("ccomp", "xcomp", "advcl", "acl")
        for child in transitive.clause.verb.rights
    )


def _reduced(transitive: TransitiveClause) -> bool:
    """Return whether a past tense may be a participle, as in the headline `Ann Lee named best actor`."""
    verb, first = transitive.clause.verb, transitive.object.tokens[0]
    if verb.tag_ != "VBD" or verb.nbor(-1).dep_ == "aux" or inflect(lemma(verb), "VBN") not in (verb.lower_, None):
        return False
    if first.tag_ in ("DT", "PRP$", "PRP", "CD"):
        return False
    return lemma(verb) in _NAMING or verb.sent[-1].is_alpha


def _loose_ends(transitive: TransitiveClause) -> bool:
    """Return whether the end of the object, or what comes after it, may belong elsewhere."""
    verb = transitive.clause.verb
    # "She hates it for the same reason we all do.", "those who skip it do so at night"
    done = [token.nbor(1) for token in verb.sent[:-1] if token.tag_[:2] == "VB" and lemma(token) == "do"]
    if any(token.is_punct or token.lower_ == "so" for token in done):
        return True
    # "Quake hits Chile, no damage known": what follows the comma of a headline is seldom about the object.
    if transitive.object.closed and verb.sent[-1].is_alpha:
        return True
    # "More books than she did", "the same work as he does", "the first bill in years"
    compared = any(
        token.tag_ in ("JJR", "RBR") or token.lower_ in ("same", "first") for token in transitive.object.tokens
    )
    if compared and any(token.lower_ in ("than", "as", "in") for token in verb.doc[transitive.end + 1 : verb.sent.end]):
        return True
    return not (object_is_sure(transitive.object, verb) and rest_is_sure(verb, transitive.end))


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
    ("a phrase leans on the subject", lambda transitive: leans_later(transitive.clause.verb, transitive.end)),
    ("a phrase leans on the object", _shown),
    ("the verb may be a participle", _reduced),
    ("the parse is in doubt", _loose_ends),
    ("negation or quantity would change its reach", _scope),
    ("adverb that cannot move", _adverbs),
    ("too long to turn round", _heavy),
    ("punctuation inside a moved phrase", _unclear),
)
