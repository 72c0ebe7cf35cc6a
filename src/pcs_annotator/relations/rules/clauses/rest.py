"""What may follow a clause in the passive voice: only words that surely do not belong to its object."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pcs_annotator.relations.rules.clauses import word_lists as known
from pcs_annotator.relations.rules.clauses.noun_phrase import QUOTES
from pcs_annotator.relations.rules.words import lemma, word_set

if TYPE_CHECKING:
    from spacy.tokens import Token

_FINITE = ("MD", "VBD", "VBZ", "VBP")
SUBJECTS = ("nsubj", "nsubjpass", "expl")
_STOPS = frozenset({".", "!", ";", ":", "-", "--", "–", "—", ")", *QUOTES})
# Prepositions that tell when or under which circumstances something happens, whatever noun comes before them.
_CIRCUMSTANCES = word_set("after before during since until following amid despite through against")
_PLACES = word_set("in at across near outside")
_NAME_TAGS = ("NNP", "NNPS", "PRP")
# A name has no need of these, so that they belong to the verb.
_NOT_OF_NAMES = word_set("for on to into at in over from against through about")
_REASONS = word_set("light response order exchange part")
_TIME_PREPOSITIONS = word_set("on in at for over from since until")
_LATER = word_set("tonight tomorrow again now overnight worldwide nationwide")
_MARKS = word_set("after before because since as if while until although though once unless when whenever even so")
_YEAR = 4
_LONGEST_TIME = 6


def is_sure(verb: Token, end: int) -> bool:
    """Return whether the words after `end`, the last one of a verb and its object, may follow an agent instead."""
    doc, stop = verb.doc, verb.sent.end
    # "The judge ordered him to leave, granting a request": the participle is about the old subject.
    if any(token.tag_ == "VBG" and token.nbor(-1).text == "," for token in doc[end + 1 : stop]):
        return False
    at = _after_times(verb, end + 1)
    if at >= stop:
        # A sentence that ends without a mark inside a text was cut off too early.
        return stop == len(doc) and (at > end + 1 or not doc[end].text.endswith("."))
    after = doc[at]
    if after.text in _STOPS:
        # "Advise heart attack-susceptible people": the hyphen is inside a word.
        return after.text != "-" or bool(doc[at - 1].whitespace_)
    if after.text == ",":
        at = _after_times(verb, at + 1)
        return at >= stop or _sure_after_comma(verb, doc[at])
    if verb.dep_ == "relcl" and after.tag_ in _FINITE and verb.head.dep_ in SUBJECTS:
        return verb.right_edge.i < after.i and after == verb.head.head
    return _is_clause(after) or _is_phrase_of(verb, after)


def _sure_after_comma(verb: Token, after: Token) -> bool:
    if after.text in (",", *_STOPS) or after.lower_ == "according":
        return True
    # The clause stands before the one it depends on: "When police came, ...", "..., he said".
    if verb.head.i >= after.i and verb.right_edge.i <= after.i and (verb.dep_ != "ccomp" or _tells(verb.head)):
        return True
    return _is_clause(after) or (after.dep_ == "prep" and _has_noun(after) and after.lower_ in _CIRCUMSTANCES | {"in"})


def _tells(verb: Token) -> bool:
    return lemma(verb) in known.TELLING


def _is_clause(after: Token) -> bool:
    """Return whether a word begins a clause with a subject of its own."""
    if after.tag_ == "CC":
        joined = [word for word in after.head.rights if word.dep_ == "conj" and word.i > after.i]
        return after.lower_ in ("and", "but") and bool(joined) and has_subject(joined[0])
    if after.lower_ not in _MARKS:
        return False
    opens = after.head if after.dep_ in ("mark", "advmod") else after
    return any(has_subject(word) for word in (opens, opens.head, *opens.children) if word.i > after.i)


def _is_phrase_of(verb: Token, after: Token) -> bool:
    """Return whether a word begins a phrase that surely belongs to the verb."""
    name, word = lemma(verb), after.lower_
    if after.tag_ == "TO" and after.dep_ == "aux":
        return after.head.tag_ == "VB" and name in known.CONTROL | known.PURPOSEFUL
    if word == "that":
        return name in known.INFORMING
    if after.dep_ not in ("prep", "dative") or not any(child.dep_ in ("pobj", "pcomp") for child in after.children):
        return False
    if word == "due" or after.nbor(1).lower_ in _REASONS or _is_named(after, verb):
        return True
    if word == "to":
        return name in known.TRANSFER and after.nbor(-1).lower_ not in known.NOUNS_WITH_TO
    return (
        _is_place(after, verb)
        or (word in _CIRCUMSTANCES and _has_noun(after))
        or name in known.VERBS_WITH.get(word, ())
    )


def _is_place(after: Token, verb: Token) -> bool:
    """Return whether a phrase names the place of a deed to a certain thing: `bombed the city in Iraq`."""
    named = after.lower_ in ("near", "outside") or any(noun.tag_ == "NNP" for noun in after.children)
    certain = any(word.dep_ in ("det", "poss", "nummod") for noun in verb.rights for word in noun.lefts)
    return after.lower_ in _PLACES and after.head == verb and named and certain


def _is_named(after: Token, verb: Token) -> bool:
    """Return whether a preposition follows a name or pronoun that is the verb's object."""
    noun = after.nbor(-1)
    named = noun.tag_ in _NAME_TAGS and noun.dep_ == "dobj" and noun.head == verb
    return named and after.head == verb and after.lower_ in _NOT_OF_NAMES


def has_subject(verb: Token) -> bool:
    """Return whether a verb has a subject of its own."""
    return any(child.dep_ in SUBJECTS for child in verb.lefts)


def _has_noun(preposition: Token) -> bool:
    return any(child.dep_ == "pobj" for child in preposition.children)


def _after_times(verb: Token, at: int) -> int:
    """Return the index of the first word after `on Friday`, `last week`, `in 2016` and the like."""
    while at < verb.sent.end:
        ends = next(_time_ends(verb.doc[at]), None)
        if ends is None:
            return at
        at = ends + 1
    return at


def _time_ends(token: Token) -> Iterator[int]:
    if token.lower_ in known.WEEKDAYS | _LATER:
        yield token.i
    if token.dep_ == "prep" and tells_time(token) and token.right_edge.i - token.i <= _LONGEST_TIME:
        yield token.right_edge.i
    for noun in token.doc[token.i : token.i + 3]:
        if noun.dep_ == "npadvmod" and noun.lower_ in known.TIMES and noun.left_edge == token and not any(noun.rights):
            yield noun.i
        elif noun.dep_ == "npadvmod" and noun.head.lower_ in ("ago", "earlier", "later") and noun.left_edge == token:
            yield noun.head.i


def tells_time(preposition: Token) -> bool:
    """Return whether a preposition is followed by a time, such as `on Friday` or `in 2016`."""
    inside = next((word for word in preposition.children if word.dep_ == "pobj"), None)
    if inside is None or preposition.lower_ not in _TIME_PREPOSITIONS:
        return False
    return inside.lower_ in known.TIMES or (inside.tag_ == "CD" and len(inside.text) == _YEAR)
