"""An active clause with its object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pcs_annotator.relations.rules.clauses import word_lists as known
from pcs_annotator.relations.rules.clauses.clause import Clause
from pcs_annotator.relations.rules.clauses.noun_phrase import Phrase, phrase_of
from pcs_annotator.relations.rules.clauses.rest import tells_time
from pcs_annotator.relations.rules.rule import NotApplicable
from pcs_annotator.relations.rules.words import lemma, readings, word_set

if TYPE_CHECKING:
    from spacy.tokens import Token

# Prepositions after an object that usually belong to the verb, whatever the parser says.
_AIMS = word_set("effort attempt bid response order hopes exchange")
_LOOSE = word_set("into after before during since until through following amid despite onto upon")
# Prepositions after a noun that usually belong to it.
_LONGEST_BARE = 4
_HELD = word_set("of about between against for on like above behind")
_NOUNS_WITH_WITH = word_set(
    "deal agreement contract dispute war meeting talk tie relationship relation interview treaty alliance partnership"
)
_NOUNS_WITH_IN = word_set(
    """
    advance belief change confidence cut decline decrease drop experience faith fall fraud growth hike hole increase
    interest investment progress record rise role seat stake strength trust
    """
)
# Nouns with an infinitive of their own: `efforts to save the park`.
_AIMING_NOUNS = word_set(
    """
    ability agreement attempt bid bill campaign chance deal decision drive effort law legislation measure motion
    move offer opportunity order permission petition plan pledge promise proposal push request right rule threat way
    """
)


@dataclass(frozen=True, slots=True)
class TransitiveClause:
    """An active clause with its object, particle and complement."""

    clause: Clause
    object: Phrase
    particle: Token | None
    complement: Token | None

    @property
    def end(self) -> int:
        """Index of the last word that is rewritten."""
        return self.object.last if self.complement is None else self.complement.right_edge.i


def transitive_clause_of(clause: Clause) -> TransitiveClause | NotApplicable:
    """Return a clause with its one plain object, or why there is none."""
    verb = clause.verb
    nouns = [child for child in verb.rights if child.dep_ == "dobj"] or _commanded(verb)
    if len(nouns) != 1:
        return NotApplicable("no object")
    found = phrase_of(nouns[0], clause.opening)
    particles = [child for child in verb.rights if child.dep_ == "prt"]
    complements = [child for child in verb.rights if child.dep_ == "oprd"]
    if found is None or len(particles) > 1 or len(complements) > 1:
        return NotApplicable("no plain object")
    obj = _with_purpose(trimmed(found), verb)
    if lemma(verb) == "help" and readings(obj.tokens[0].lower_) == {"VERB"}:
        return NotApplicable("no plain object")
    if obj.first != verb.i + 1 + len(particles) or (particles and particles[0].i != verb.i + 1):
        return NotApplicable("the object does not follow the verb")
    if complements and complements[0].left_edge.i != obj.last + 1:
        return NotApplicable("no plain object")
    return TransitiveClause(clause, obj, particles[0] if particles else None, complements[0] if complements else None)


def _with_purpose(obj: Phrase, verb: Token) -> Phrase:
    """Return an object with a phrase after it that is its own, although the parser gave it to the verb.

    `Offers a reward for tips` is about a reward for tips; `closed the road for repairs` is not about such a road.
    """
    after = verb.doc[obj.last + 1] if obj.last + 1 < len(verb.doc) else verb
    if after.lower_ != "for" or after.head != verb or obj.last != obj.head.i or obj.head.tag_ not in ("NN", "NNS"):
        return obj
    definite = any(word.lower_ in ("the", "this", "these", "that") or word.dep_ == "poss" for word in obj.head.lefts)
    inside = [word for word in after.subtree if word.dep_ == "pcomp" or word.tag_ in ("CD", "$", ",", "PRP$", "PRP")]
    if definite or inside or tells_time(after) or lemma(verb) in known.VERBS_WITH["for"]:
        return obj
    return obj.upto(after.right_edge.i)


def _commanded(verb: Token) -> list[Token]:
    """Return the object of a verb such as `urge`, which the parser makes the infinitive's subject."""
    if lemma(verb) not in known.CONTROL:
        return []
    return [
        noun
        for clause in verb.rights
        if clause.dep_ == "ccomp" and clause.tag_ == "VB" and any(word.tag_ == "TO" for word in clause.lefts)
        for noun in clause.lefts
        if noun.dep_ == "nsubj"
    ]


def trimmed(phrase: Phrase, *, keep: frozenset[str] = frozenset()) -> Phrase:
    """Return an object without a final phrase of time or direction, which the parser often attaches to the noun."""
    last = _without_day(phrase)
    for child in reversed(list(phrase.head.rights)):
        if child.right_edge.i < last or child.left_edge.i > last:
            break
        if child.lower_ in keep or not _loose(child, phrase.head):
            break
        last = child.left_edge.i - 1
    while last > phrase.head.i and phrase.head.doc[last].text == ",":
        last -= 1
    return phrase if last == phrase.last else phrase.upto(last)


def _without_day(phrase: Phrase) -> int:
    """Return where a phrase ends without a final weekday, whichever word the parser attached it to."""
    doc, last = phrase.head.doc, phrase.last
    if doc[last].lower_ in known.WEEKDAYS and last > phrase.head.i + 1:
        return last - 2 if doc[last - 1].lower_ == "on" else last - 1
    return last


def _loose(child: Token, head: Token) -> bool:
    if child.dep_ != "prep":
        return child.dep_ == "npadvmod" and child.lower_ in known.TIMES
    word = child.lower_
    if word in known.VERBS_WITH and lemma(head.head) in known.VERBS_WITH[word]:
        return True
    if word in ("for", "from") and any(inside.dep_ == "pcomp" for inside in child.children):
        return True
    if word == "to":
        return lemma(head.head) in known.TRANSFER and head.lower_ not in known.NOUNS_WITH_TO
    if word == "in" and any(inside.lower_ in _AIMS for inside in child.children):
        return True
    return word in _LOOSE or tells_time(child)


def is_sure(obj: Phrase, verb: Token) -> bool:
    """Return whether what follows an object's noun surely belongs to it and not to the verb."""
    if any(token.dep_ == "prep" for token in obj.head.doc[obj.first : obj.head.i]):
        return False
    heads = [obj.head, *(token for token in obj.head.conjuncts if obj.head.i < token.i <= obj.last)]
    inside = [child for head in heads for child in head.rights if child.i <= obj.last]
    return all(_is_sure(child, verb, alone=len(heads) == 1) for child in inside)


def _is_sure(child: Token, verb: Token, *, alone: bool) -> bool:
    noun = child.head
    if child.dep_ == "prep":
        return _is_held(child, verb, alone=alone)
    if child.dep_ == "acl" and child.tag_ == "VB":
        return alone and lemma(noun) in _AIMING_NOUNS
    if child.dep_ == "acl":
        return (
            alone
            and child.left_edge.nbor(-1) == noun
            and child.lower_ != "using"
            and (child.tag_ != "VBG" or noun.tag_ == "NNS" or any(noun.lefts))
            and not (child.tag_ == "VBN" and lemma(verb) in known.TELLING)
            and not any(word.lower_ in _LOOSE for word in child.rights)
        )
    # "Waylaid the man I was bored": no relative clause.
    bare = child.dep_ == "relcl" and not any(word.tag_ in ("WDT", "WP", "WP$", "WRB") for word in child.subtree)
    if bare and child.right_edge.i - child.left_edge.i > _LONGEST_BARE:
        return False
    # "Seized a man who worked with the army from his home": the second phrase may be the main verb's.
    if child.dep_ == "relcl" and sum(word.dep_ == "prep" for word in child.rights) > 1:
        return False
    return child.dep_ in ("conj", "cc", "punct", "relcl", "appos", "case", "nummod", "preconj")


def _is_held(preposition: Token, verb: Token, *, alone: bool) -> bool:
    """Return whether a preposition surely belongs to the noun before it."""
    word, noun = preposition.lower_, preposition.head
    if lemma(verb) in known.VERBS_WITH.get(word, ()) or word == "of":
        return word == "of" and lemma(verb) not in known.VERBS_WITH["of"]
    if not alone or noun.tag_ in ("NNP", "NNPS", "PRP") or sum(inner.dep_ == "prep" for inner in noun.rights) > 1:
        return False
    # "Closed the road for repairs" is not about a road for repairs.
    if word == "for" and any(token.lower_ == "the" for token in noun.lefts):
        return False
    if word == "by":
        return any(inner.tag_[:1] == "N" and not any(inner.lefts) for inner in preposition.children)
    needed = {"to": known.NOUNS_WITH_TO, "with": _NOUNS_WITH_WITH, "in": _NOUNS_WITH_IN}.get(word, ())
    fits = lemma(noun) in needed or noun.lower_ in needed or word in _HELD
    return fits or (word == "in" and _is_in_place(preposition))


def _is_in_place(preposition: Token) -> bool:
    """Return whether `in` belongs to a noun that is at a named place or the largest there."""
    before = list(preposition.head.lefts)
    named = any(inner.tag_ == "NNP" for inner in preposition.children)
    # "A convoy in Mali", but not "fear in Mali".
    return any(word.tag_ == "JJS" for word in before) or (
        named and any(word.dep_ in ("det", "poss", "nummod") for word in before)
    )
