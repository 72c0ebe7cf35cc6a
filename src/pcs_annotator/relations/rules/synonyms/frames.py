"""Conditions on the context of a word, by the names that the lexicon uses."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pcs_annotator.relations.rules.words import lemma

if TYPE_CHECKING:
    from spacy.tokens import Span, Token

_SCORE = re.compile(r"\b\d+\s?[-–]\s?\d+\b")
_NO_AMOUNT = re.compile(r"[A-Z#@]|(?:19|20)\d\d$")
_NOUNS = ("NN", "NNS", "NNP", "NNPS")
_NAMES = ("NNP", "NNPS")
_OPENS_CLAUSE = ("PRP", "PRP$", "DT", "NNP", "NNPS", "NN", "NNS", "EX", "CD", "JJ")
_PERCENT = ("percent", "%", "per", "pct", "cents", "points")
_SPECIFIERS = ("DT", "PDT", "PRP$", "POS", "WP$", "CD", "JJ", "JJR", "JJS", "WRB", "RBS", "RBR")


@dataclass(frozen=True, slots=True)
class PhrasePlace:
    """Where a phrase was found: the tokens `start` to `end` (excluded) of a sentence."""

    sentence: Span
    start: int
    end: int

    @property
    def word(self) -> Token:
        """The first word, whose head and children the conditions test."""
        return self.sentence.doc[self.start]

    def before(self, steps: int = 1) -> Token | None:
        """Return the word before, within the sentence."""
        at = self.start - steps
        return self.sentence.doc[at] if at >= self.sentence.start else None

    def after(self, steps: int = 1) -> Token | None:
        """Return the word that follows, within the sentence."""
        at = self.end - 1 + steps
        return self.sentence.doc[at] if at < self.sentence.end else None

    @property
    def objects(self) -> Iterator[Token]:
        """What the phrase acts on: its object, the object of its preposition, or the subject of its passive."""
        for at in range(self.start, self.end):
            for child in self.sentence.doc[at].children:
                if child.dep_ in ("dobj", "pobj", "nsubjpass"):
                    yield child
                elif child.dep_ == "prep":
                    yield from (grandchild for grandchild in child.children if grandchild.dep_ == "pobj")


Frame = Callable[[PhrasePlace], bool]


def _has_child(*deps: str) -> Frame:
    return lambda place: any(child.dep_ in deps for child in place.word.children)


def _has_dep(*deps: str) -> Frame:
    return lambda place: place.word.dep_ in deps


def _before(fits: Callable[[Token], bool]) -> Frame:
    return lambda place: (token := place.before()) is not None and fits(token)


def _after(fits: Callable[[Token], bool], steps: int = 1) -> Frame:
    return lambda place: (token := place.after(steps)) is not None and fits(token)


def _next_tag(*tags: str) -> Frame:
    return _after(lambda token: token.tag_ in tags)


def _has_object(*tags: str) -> Frame:
    return lambda place: any(
        child.dep_ == "dobj" and child.i >= place.end and child.tag_ in tags for child in place.word.children
    )


def _is_that(token: Token) -> bool:
    """Whether it opens a clause that is an object: `said that he left`."""
    return token.lower_ == "that" and token.tag_ == "IN" and token.dep_ == "mark" and token.head.dep_ == "ccomp"


def _has_clause(place: PhrasePlace) -> bool:
    """Whether a whole clause depends on the verb: one with a subject of its own."""
    return any(
        child.dep_ == "ccomp" and any(grandchild.dep_.startswith("nsubj") for grandchild in child.children)
        for child in place.word.children
    )


def _is_active(place: PhrasePlace) -> bool:
    """Whether the verb is in the active voice; a bare past participle counts as passive."""
    children = list(place.word.children)
    if any(child.dep_ in ("auxpass", "agent", "nsubjpass") for child in children):
        return False
    return place.word.tag_ != "VBN" or any(child.dep_ == "aux" and lemma(child) == "have" for child in children)


def _to_infinitive_follows(place: PhrasePlace) -> bool:
    to, verb = place.after(), place.after(2)
    return to is not None and verb is not None and to.tag_ == "TO" and verb.tag_ == "VB"


def _object_does(place: PhrasePlace) -> bool:
    """Whether the object is the subject of an infinitive: `allow them to leave`."""
    following = place.after()
    clauses = (child for child in place.word.children if child.dep_ in ("ccomp", "xcomp", "advcl"))
    return (
        following is not None
        and (following.tag_ != "TO" or not _is_active(place))
        and any(grandchild.tag_ == "TO" for clause in clauses for grandchild in clause.children)
    )


def _keeps_from(place: PhrasePlace) -> bool:
    """Whether the object is kept from doing something."""
    return any(
        child.lower_ == "from" and any(grandchild.tag_ == "VBG" for grandchild in child.children)
        for child in place.word.children
    )


def _is_first(place: PhrasePlace) -> bool:
    return not any(token.is_alpha for token in place.sentence.doc[place.sentence.start : place.start])


def _amount_follows(place: PhrasePlace) -> bool:
    token = place.after()
    if token is not None and token.lower_ in ("by", "to", "about", "nearly", "almost"):
        token = place.after(2)
    return token is not None and (token.tag_ in ("CD", "$") or token.like_num)


def _percent_follows(place: PhrasePlace) -> bool:
    if not _amount_follows(place):
        return False
    if any((token := place.after(steps)) is not None and token.text == "$" for steps in (1, 2)):
        return True
    return any((token := place.after(steps)) is not None and token.lower_ in _PERCENT for steps in (2, 3, 4))


def _number_follows(place: PhrasePlace) -> bool:
    """Whether an amount follows; a number with a capital, or one that counts a name, belongs to that name."""
    token = place.after()
    if token is None or token.tag_ not in ("CD", "$") or _NO_AMOUNT.match(token.text):
        return False
    return token.head.tag_ != "NNP" or token.head.i < token.i


def _verb_follows(place: PhrasePlace) -> bool:
    token = place.after()
    is_verb = token is not None and token.tag_ in ("VBD", "VBZ", "VBP", "VBN", "VBG") and token.lower_.isalpha()
    return is_verb and place.word.head.i >= place.end


def _is_bare(place: PhrasePlace) -> bool:
    """Whether no word before it says which or how many."""
    token, word = place.before(), place.word
    if token is not None and token.tag_ in _SPECIFIERS:
        return False
    siblings = () if word.dep_ == "ROOT" else word.head.children
    return not any(child.dep_ in ("det", "poss", "nummod") and child.i < place.start for child in siblings)


def _ends_clause(place: PhrasePlace) -> bool:
    token = place.after()
    return token is None or token.text in (".", ",", ";", "!", "”", '"', "'", "’")


def _stands_apart(place: PhrasePlace) -> bool:
    """Whether it is set off: a comma after it, and a comma, a semicolon or the beginning before it."""
    token = place.before()
    return FRAMES["comma-next"](place) and (token is None or token.text in (",", ";", "“", '"'))


def _relative_is_near(place: PhrasePlace) -> bool:
    """Whether a question or relative word comes shortly before it, as in `what we have to offer`."""
    near = (place.before(steps) for steps in (1, 2, 3, 4))
    return any(
        token is not None
        and (token.tag_ in ("WP", "WDT", "WRB", "WP$") or token.lower_ in ("all", "everything", "nothing", "that"))
        for token in near
    )


def _joins_clauses(place: PhrasePlace) -> bool:
    """Whether it follows a comma between two whole clauses."""
    before = place.before()
    joined = [child for child in place.word.head.children if child.dep_ == "conj" and child.i > place.start]
    return (
        before is not None
        and before.text == ","
        and place.word.dep_ == "cc"
        and any(child.dep_ in ("nsubj", "nsubjpass", "expl") for clause in joined for child in clause.children)
    )


def _has_one_thing(place: PhrasePlace) -> bool:
    """Whether a preposition has a noun and no clause: `after the fire`, not `after fire swept it`."""
    for token in place.objects:
        following = token.nbor() if token.i + 1 < len(token.doc) else None
        is_subject = following is not None and following.tag_ in ("VBD", "VBN", "VBZ", "VBP", "MD")
        return not is_subject and (token.tag_ == "NN" or any(child.dep_ in ("det", "poss") for child in token.children))
    return False


def _is_question(place: PhrasePlace) -> bool:
    # Headlines leave out the question mark.
    return place.sentence.text.rstrip("\"'”’ )").endswith("?") or place.sentence[0].tag_ in ("WRB", "WP")


def _is_amount(token: Token) -> bool:
    return token.tag_ == "CD" or token.lower_ in ("percent", "times", "dollars", "hours", "days")


def _says_how_much(token: Token) -> bool:
    """Whether it grades the word after it, as in `so tiny`."""
    return token.tag_ in ("RB", "RBR", "RBS", "WRB") or token.lower_.endswith("ly")


def _has_person_subject(place: PhrasePlace) -> bool:
    """Whether its subject is a name, a personal pronoun or `who`; a common noun may be a thing."""
    subjects = (child for child in place.word.children if child.dep_ == "nsubj")
    return any(
        subject.tag_ in ("PRP", "WP", *_NAMES) and subject.lower_ not in ("it", "what", "this") for subject in subjects
    )


FRAMES: Mapping[str, Frame] = {
    "active": _is_active,
    "adjective-next": _next_tag("JJ"),
    "amount-before": _before(_is_amount),
    "attribute": _has_child("acomp", "attr"),
    "bare": _is_bare,
    "be-before": _before(lambda token: lemma(token) == "be"),
    "capital": lambda place: place.word.text[0].isupper(),
    "clause": _has_clause,
    "clause-next": _next_tag(*_OPENS_CLAUSE),
    "comma-next": _after(lambda token: token.text == ","),
    "comparative-next": _next_tag("JJR", "RBR"),
    "complement": _has_child("xcomp", "ccomp", "advcl"),
    "describes-noun": _has_dep("amod"),
    "doing": _has_child("xcomp"),
    "determined": _has_child("det", "poss"),
    "does-to": _object_does,
    "end": _ends_clause,
    "first": _is_first,
    "from-doing": _keeps_from,
    "gerund-next": _next_tag("VBG"),
    "graded": _before(_says_how_much),
    "has-next": lambda place: (token := place.after()) is not None and token.head.i == place.start,
    "helper-before": _before(lambda token: token.tag_ == "MD" or lemma(token) in ("be", "have", "do")),
    "infinitive-next": _next_tag("VB"),
    "joins-clauses": _joins_clauses,
    "marks-clause": _has_dep("mark"),
    "name-next": _next_tag(*_NAMES),
    "name-object": _has_object(*_NAMES),
    "name-second": _after(lambda token: token.tag_ in _NAMES, steps=2),
    "noun-before": _before(lambda token: token.tag_ in _NOUNS),
    "noun-next": _next_tag("NN", "NNS"),
    "noun-object": _has_object(*_NOUNS),
    "nouns-next": _next_tag("NNS", "NNPS", "JJ"),
    "number-next": _number_follows,
    "object": _has_child("dobj"),
    "one-thing": _has_one_thing,
    "past": lambda place: any(token.tag_ == "VBD" for token in place.sentence),
    "percent-next": _percent_follows,
    "person-subject": _has_person_subject,
    "plural-next": _next_tag("NNS"),
    "possessed": _has_child("poss"),
    "predicate": _has_dep("acomp", "ccomp", "oprd"),
    "preposition": _has_dep("prep"),
    "quantifies": _has_dep("quantmod", "advmod", "amod", "nummod", "det", "dep"),
    "question": _is_question,
    "relative": _has_dep("relcl"),
    "relative-near": _relative_is_near,
    "score": lambda place: _SCORE.search(place.sentence.text) is not None,
    "set-apart": _stands_apart,
    "that": _after(_is_that),
    "to": _to_infinitive_follows,
    "verb-next": _verb_follows,
}
"""The conditions that the lexicon may use, by name."""
