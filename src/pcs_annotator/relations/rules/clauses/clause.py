"""Clauses of a parsed sentence, and reasons not to rewrite them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from pcs_annotator.relations.rules.clauses import word_lists as known
from pcs_annotator.relations.rules.clauses.noun_phrase import QUOTES, Phrase, is_plural, opens, phrase_of
from pcs_annotator.relations.rules.clauses.verb_group import VerbGroup, read_group
from pcs_annotator.relations.rules.clauses.word_lists import RESULTS, TIMES
from pcs_annotator.relations.rules.rule import Replacement
from pcs_annotator.relations.rules.words import inflect, lemma, readings, word_set

if TYPE_CHECKING:
    from spacy.tokens import Span, Token

SUBJECTS = ("nsubj", "nsubjpass")
_FINITE_CLAUSES = ("ROOT", "ccomp", "conj", "advcl", "relcl", "pcomp", "parataxis", "acl")

# What news agencies put before the first sentence: a town, an agency, or both.
_DATELINE = re.compile(
    r"\s*(?:[A-Z][\w.,'’ /-]{1,60}\s+)?\(?(?:Reuters|AP|AFP|UPI|CP|dpa|Xinhua|CNN|Bloomberg|[A-Z][\w.]*\.com)\)?"
    r"\s*(?:-{1,2}|–|—|:)\s+"
    r"|\s*[A-Z]{3,}[A-Z.,' ]*(?:,\s*[A-Z][\w. ]{1,20})?(?:\s*\([\w .,/]{2,40}\))?\s*(?:--|–|—|-)\s+"
)
_PLAIN = re.compile(r"(?:(?!https?:|\bquot\b|www\.)(?:[^\W_]|[\s,.'‘’$£€%&-]|(?<!^)#39;s(?= )|(?<=\d)/(?=\d)))+")
# Verbs followed by a clause whose verb has no tense, though the tagger may give it one.
_BARE_COMPLEMENTS = frozenset({"let", "make", "help", "have", "see", "hear", "watch", "get", "keep"})
_DEMANDS = word_set("demand require insist ask recommend suggest propose urge request prefer order")
_DESCRIPTIONS = ("advcl", "acl", "xcomp", "amod", "acomp", "oprd", "attr", "dep", "relcl")
_LINKS = {
    "by",
    "without",
    "while",
    "in",
    "before",
    "after",
    "since",
    "upon",
    "on",
    "despite",
    "through",
    "besides",
    "when",
}


@dataclass(frozen=True, slots=True)
class Clause:
    """A finite clause with its subject before the verb.

    Attributes:
        verb: Its main verb.
        subject: Its subject.
        group: The verb with its auxiliaries.
        opening: Index of the first word after a dateline.
    """

    verb: Token
    subject: Phrase
    group: VerbGroup
    opening: int

    @property
    def opens(self) -> bool:
        """Whether its subject has a capital only because it opens the sentence."""
        return opens(self.subject.tokens[0], self.opening)


def opening_of(sentence: Span) -> int:
    """Return the index of the first word after a dateline, such as `LONDON (Reuters) -`."""
    found = _DATELINE.match(sentence.text)
    if found is not None:
        for token in sentence:
            if token.idx >= sentence.start_char + found.end():
                return token.i
    start = sentence.start
    while start < sentence.end - 1 and (sentence.doc[start].text in QUOTES or sentence.doc[start].is_space):
        start += 1
    return start


def clauses_of(sentence: Span, opening: int) -> Iterator[Clause]:
    """Yield the finite clauses of a sentence, the main one first."""
    for verb in sorted(sentence, key=lambda token: token.dep_ != "ROOT"):
        # A verb with a capital is one only by mistake: titles are parsed without capitals.
        if verb.tag_[:2] == "VB" and verb.dep_ in _FINITE_CLAUSES and verb.text[:1].islower():
            clause = _clause(verb, opening)
            if clause is not None:
                yield clause


def _clause(verb: Token, opening: int) -> Clause | None:
    nouns = _subjects(verb, opening)
    subject = phrase_of(nouns[0], opening) if len(nouns) == 1 else None
    if subject is None or subject.last >= verb.i or _misplaced(verb, subject, opening):
        return None
    between = list(verb.doc[subject.last + 1 : verb.i])
    if subject.closed:
        if not between or between[0].text != ",":
            return None
        between = between[1:]
    group = read_group(verb, between) if all(belongs(token, verb) for token in between) else None
    if group is None or _disagrees(verb, subject, between) or _tense_in_doubt(verb, subject, between):
        return None
    return Clause(verb, subject, group, opening)


def _subjects(verb: Token, opening: int) -> list[Token]:
    """Return the subjects of a verb; if the parser chose the dateline, return its apposition instead."""
    found = [child for child in verb.lefts if child.dep_ in SUBJECTS]
    after = [noun for noun in found if noun.i >= opening]
    return after or [child for noun in found for child in noun.rights if child.i >= opening and child.dep_ == "appos"]


def _misplaced(verb: Token, subject: Phrase, opening: int) -> bool:
    """Return whether a subject is not in the position it has in a statement."""
    # A sentence that begins with a small letter: no capital to move.
    if subject.first <= opening and verb.doc[subject.first].text[:1].islower():
        return True
    # "Clinic plans face problems": the verb may be "plans".
    noun = subject.head
    plans = noun.tag_ == "NNS" and noun.nbor(-1).dep_ == "compound" if noun.i else False
    if plans and verb.tag_ in ("VB", "VBP") and "VERB" in readings(noun.lower_) and verb.sent[-1].is_alpha:
        return True
    # "X hit a wall; may close": the next verb has the same subject.
    if verb.dep_ == "ccomp" and verb.head.i > verb.i and not _stands_alone(verb.head):
        return True
    # An auxiliary before the subject means a question or an inversion.
    inverted = any(child.dep_ in ("aux", "auxpass") for child in verb.lefts if child.i < subject.first)
    if inverted or _is_no_complement(verb):
        return True
    return subject.first > opening and _torn_off(verb, verb.doc[subject.first - 1])


def _is_no_complement(verb: Token) -> bool:
    """Return whether a clause without `that` is misread, as in `It guarantees workers paid leave`."""
    above = verb.head
    if verb.dep_ != "ccomp" or above.i > verb.i or any(child.dep_ == "mark" for child in verb.lefts):
        return False
    subjects = [child for child in above.lefts if child.dep_ == "nsubj"]
    disagrees = above.tag_ == "VBP" and any(is_plural(noun) is False for noun in subjects)
    return disagrees or lemma(above) not in known.TELLING | known.THINKING


def _tense_in_doubt(verb: Token, subject: Phrase, between: list[Token]) -> bool:
    """Return whether a verb such as `put` may be in either tense, or in the subjunctive after `demand`."""
    plain = not any(token.dep_ in ("aux", "auxpass") for token in between)
    if plain and verb.dep_ == "ccomp" and lemma(verb.head) in _DEMANDS and verb.tag_ != "VBD":
        return True
    # "Nordstrom posts lower profit" has another verb.
    if verb.tag_ == "VBP" and "ADJ" in readings(verb.lower_) and "VERB" in readings(subject.head.lower_):
        return True
    same = verb.tag_ in ("VBP", "VBD") and inflect(lemma(verb), "VBD") == verb.lower_ == lemma(verb)
    return plain and (same or verb.lower_ == "read") and is_plural(subject.head) is not False


def _torn_off(verb: Token, before: Token) -> bool:
    """Return whether the word before a subject belongs to it, so that the parse must be wrong."""
    if before.dep_ == "neg" or before.lower_ == "than" or (before.is_upper and len(before) > 1):
        return True
    if before.lower_ in ("that", "this") and before.dep_ == "mark":
        return verb.dep_ not in ("ccomp", "acl")
    if before.dep_ == "prep" or before.tag_ in ("DT", "PRP$", "POS", "JJ", "CD", "VBG"):
        return (verb.dep_ != "pcomp" or before.lower_ == "with") and before.dep_ not in ("npadvmod", "pobj")
    if before.tag_[:1] == "N":
        return before.nbor(1).tag_ not in ("WDT", "WP") and not _may_end_before(verb, before)
    if before.tag_[:1] != "V":
        return False
    return lemma(before) in _BARE_COMPLEMENTS or (before != verb.head and before.dep_ not in ("aux", "auxpass"))


def _may_end_before(verb: Token, noun: Token) -> bool:
    """Return whether a clause may follow a noun: `the bill Congress passed`, `told reporters it won`."""
    if verb.dep_ == "relcl" and noun == verb.head:
        return not any(child.dep_ == "dobj" for child in verb.rights)
    return noun.lower_ in TIMES or (verb.dep_ == "ccomp" and noun.head == verb.head)


def _disagrees(verb: Token, subject: Phrase, between: list[Token]) -> bool:
    """Return whether subject and verb differ in number, so that the parse must be wrong."""
    first = next((token for token in between if token.dep_ in ("aux", "auxpass")), verb)
    plural = is_plural(verb.head if subject.relative else subject.head)
    if plural is None or first.lower_ in ("i", "you") or subject.head.lower_ in ("i", "you"):
        return False
    if first.tag_ == "VBZ" or first.lower_ == "was":
        return plural
    return not plural and (first.tag_ == "VBP" or first.lower_ == "were")


def belongs(token: Token, verb: Token) -> bool:
    """Return whether a word before a verb is part of its group."""
    if token.head == verb:
        return token.dep_ in ("aux", "auxpass", "neg", "advmod") and token.tag_ != "WRB"
    return token.head.dep_ == "advmod" and token.head.head == verb and token.dep_ in ("neg", "advmod")


def whole(phrase: Phrase) -> bool:
    """Return whether a phrase is plain words, without quotations, brackets, dashes and what only tweets have."""
    return (
        _PLAIN.fullmatch(phrase.text) is not None
        and not any(token.text in (".", "..", "...", "but") for token in phrase.tokens)
        # "Zero stars I would" lacks its verb.
        and not any(token.tag_ == "MD" and token.dep_ != "aux" for token in phrase.tokens)
        and sum(token.text in ("'", "‘", "’") and token.tag_ != "POS" for token in phrase.tokens) % 2 == 0
        and " -" not in phrase.text
        and (phrase.head.tag_ != "PRP" or phrase.pronoun)
        and phrase.tokens[-1].tag_ not in ("CC", "IN", "DT", "TO", "PRP$", "POS")
    )


def commas_fit(phrase: Phrase) -> bool:
    """Return whether the commas inside a phrase stay right when it moves: a list, or one aside at its end."""
    commas = [token.i for token in phrase.tokens if token.text == ","]
    if not commas:
        return True
    if phrase.closed:
        return len(commas) <= 2
    joined = [token for token in phrase.tokens if token.dep_ == "conj"]
    return bool(joined) and joined[-1].i > commas[-1] and all(token.dep_ != "appos" for token in phrase.tokens)


def shares_subject(clause: Clause) -> bool:
    """Return whether another verb is joined to this one and shares its subject."""
    return any(
        child.dep_ == "conj" and not any(word.dep_ in SUBJECTS for word in child.lefts)
        for child in clause.verb.children
    )


def dangles(clause: Clause) -> bool:
    """Return whether a phrase without a subject, such as `Speaking in Rome,`, depends on this subject."""
    verb = clause.verb
    if verb.dep_ in ("ROOT", "ccomp") and any(
        token.tag_ == "VBG" and token.dep_ in ("pcomp", "advcl", "acl", "dep") and not _stands_alone(token)
        for token in verb.doc[clause.opening : clause.subject.first]
    ):
        return True
    children = [child for child in verb.children if child.i >= clause.opening]
    return any(_leans(child, before=child.i < clause.subject.first) for child in children)


def _leans(child: Token, *, before: bool) -> bool:
    if child.dep_ == "prep":
        return _preposition_leans(child, before=before)
    if before:
        # Reported speech before its speaker: the attribution must stay in one piece.
        if child.dep_ in ("ccomp", "parataxis"):
            return True
        if child.dep_ == "npadvmod":
            return not any(word.lower_ in TIMES for word in child.subtree)
        return child.dep_ in _DESCRIPTIONS and not _stands_alone(child)
    if child.dep_ == "advcl":
        return child.tag_ != "VB" and not _stands_alone(child) and not _is_result(child)
    return child.dep_ in ("dep", "acomp", "attr", "acl", "relcl")


def _is_result(participle: Token) -> bool:
    """Return whether a participle gives the result of the whole clause, as in `, killing four people`."""
    return participle.tag_ == "VBG" and participle.nbor(-1).text == "," and lemma(participle) in RESULTS


def _preposition_leans(preposition: Token, *, before: bool) -> bool:
    if before and preposition.lower_ in ("as", "like", "unlike", "with", "among"):
        return True
    verbs = [word for word in preposition.children if word.dep_ == "pcomp"]
    return any(not _stands_alone(verb) and (before or preposition.lower_ in _LINKS) for verb in verbs)


def _stands_alone(verb: Token) -> bool:
    return any(child.dep_ in (*SUBJECTS, "expl") for child in verb.children)


def placed(clause: Clause, moved: Phrase, last: int, text: str) -> Replacement:
    """Return new words for a clause from its subject to its last word, with the commas that its phrases need."""
    doc, end = clause.verb.doc, last + 1
    if moved.closed and end < len(doc) and doc[end].text == ",":
        end += 1
    word = doc[end - 1]
    follows = doc[end].text if end < len(doc) else "."
    if clause.subject.closed and (follows[:1].isalnum() or follows == "$"):
        text += ","
    if text.endswith(".") and end < len(doc) and follows == ".":
        text = text[:-1]
    return Replacement(clause.subject.start_char, word.idx + len(word), text)


# Words after an object that belong to it or to the verb, and cannot follow an agent.
_CLINGING_WORDS = frozenset({"already", "hard", "well", "badly", "alone", "together", "apart", "enough", "back"})
_CLINGING_TAGS = frozenset({"POS", "WDT", "WP", "WP$", "JJR", "RBR", "VBN", "VBG"})
_NOUN_PHRASE_TAGS = frozenset({"DT", "PRP", "PRP$", "NN", "NNS", "NNP", "NNPS", "JJ", "CD", "$"})
ASIDE = 6
_FINITE_TAGS = frozenset({"MD", "VBD", "VBZ", "VBP"})
_GOES_ON = tuple(
    pair.split()
    for pair in ("as well", "rather than", "and by", "or by", "but by", "and whether", "and that", "and how", "and why")
)
_ELLIPSES = frozenset({"do", "does", "did", "has", "have", "is", "was"})


def misread_after(end: int, verb: Token, *, allow_verb: bool = False) -> bool:
    """Return whether the words after a rewritten part show that the parser ended it too early."""
    doc = verb.doc
    if end + 1 >= len(doc) or doc[end + 1].is_sent_start:
        return doc[end].text.endswith(".")
    after = doc[end + 1]
    if after.tag_ in _FINITE_TAGS:
        return not allow_verb
    if after.tag_ in _NOUN_PHRASE_TAGS:
        return not (after.head.lower_ in known.TIMES or after.lower_ in known.TIMES)
    if after.lower_ == "that" and lemma(verb) not in known.INFORMING:
        return True
    if (
        after.tag_ in _CLINGING_TAGS
        or after.lower_ in _CLINGING_WORDS
        or (not allow_verb and _goes_on(doc[end + 1 : verb.sent.end]))
    ):
        return True
    return after.tag_ == "CC" and (after.head != verb or not any(child.dep_ == "conj" for child in verb.rights))


def _goes_on(rest: Span) -> bool:
    """Return whether the clause continues: another verb after a comma, or `as well as`."""
    words = [token.lower_ for token in rest[:4] if token.text != ","]
    if (
        words[:1] == ["including"]
        or words[:3] == ["as", "a", "whole"]
        or words[:2] in _GOES_ON
        or (words[:1] == ["as"] and set(words[1:2]) & _ELLIPSES)
    ):
        return True
    if any(before.text == "," and after.tag_ == "MD" for before, after in pairwise(rest)):
        return True
    # An aside about the object, such as ", some of whom were hurt", would then refer to the agent.
    if rest[0].text == "," and any(token.tag_ in ("WDT", "WP", "WP$") for token in rest[1:ASIDE]):
        return True
    second = rest[1] if rest[0].text == "," and len(rest) > 1 else None
    return second is not None and second.tag_ in _FINITE_TAGS and lemma(second) not in known.TELLING


def leans_later(verb: Token, end: int) -> bool:
    """Return whether a later participle, such as `, saying` or `after meeting`, may need the old subject."""
    rest = verb.doc[end + 1 : verb.sent.end]
    return any(
        after.tag_ == "VBG"
        and (
            (before.text == "," and lemma(after) in known.TELLING)
            or before.lower_ in ("after", "before", "while", "without", "by", "when")
        )
        for before, after in pairwise(rest)
    )
