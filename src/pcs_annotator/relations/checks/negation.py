"""Does the rewrite deny what the text asserts, or assert what it denies?"""

import re
from functools import lru_cache
from typing import NamedTuple

from pcs_annotator.relations.checks.reading import Rewrite, prose, words
from pcs_annotator.relations.facts import listed, pattern, word_set, word_tables
from pcs_annotator.relations.language import known_language, language_of, may_be_english

PLAIN = listed("negation", "plain")  # grammar: a clause with one of these says the opposite of the clause without it
PREFIXED = {
    prefix + base: base
    for prefix in ("un", "in", "im", "il", "ir", "dis", "non")
    for base in listed("negation", prefix)
}
"""Words with a negative prefix → the word without it."""
LEXICAL = listed("negation", "lexical") | frozenset(PREFIXED)  # words that deny by their meaning; not all of them


def _opposites() -> dict[str, frozenset[str]]:
    table: dict[str, set[str]] = {}
    pairs = [tuple(pair.split("/")) for pair in listed("negation", "opposites")]
    for one, other in [*pairs, *PREFIXED.items()]:
        table.setdefault(one, set()).add(other)
        table.setdefault(other, set()).add(one)
    return {word: frozenset(others) for word, others in table.items()}


OPPOSITES = _opposites()  # each word → its opposites


FOREIGN = {
    language: (word_set(cancel), word_set(word_tables()["supporting_negations"].get(language, "")))
    for language, cancel in word_tables()["foreign_negations"].items()
}
"""Language → words of which two in a sentence cancel out, and words that only support one of them ("no vi nada").

Elsewhere (Turkish, Chinese, Arabic, …) it takes more than a list to tell.
"""

_IDIOM = pattern("idiom")
_SENTENCE = re.compile(r"(?<![.!?])[.!?]+(?:\s|$)|\n")
_CLAUSE = re.compile(
    r"[,;:()]|\s-+\s|\b(?:and|but|or|because|cause|cuz|since|while|although|though|whereas|when|if|so|which|who|then)\b"
)
_CUE_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")

_ANY = PLAIN | LEXICAL | frozenset().union(*(words for lists in FOREIGN.values() for words in lists))


class _Reading(NamedTuple):
    """What a text denies."""

    plain: int  # number of grammatical negations
    cues: int  # the same plus words that deny by their meaning
    denied: int  # number of clauses that deny something; two negations in one clause cancel out


def negation(rewrite: Rewrite) -> str:
    """Complain when a negation was added or lost; two negations in one clause cancel out.

    In languages without a list of negations, it finds nothing.
    """
    english = may_be_english(rewrite.source)
    flips, open_flips = _flips(rewrite.source, rewrite.text) if english else (0, 0)
    if not flips and _denying(rewrite.source) == _denying(rewrite.text):
        return ""
    language = "" if english else listed_language(rewrite.source)
    if not english and not language:
        return ""
    before, after = _read(rewrite.source, language), _read(rewrite.text, language)
    added = after.plain - before.plain
    doubles = rewrite.expects.negations == "doubled"
    if added == 0 and (not doubles or after.cues == before.cues):
        return "a word became its opposite; keep the meaning" if flips % 2 else ""
    change = after.denied - before.denied
    more = after.cues - before.cues + open_flips
    # "Not possible" for "impossible" doubles nothing, and keeps the meaning.
    halved = doubles and more < 2 and (after.cues != before.cues or open_flips > 0)
    if abs(change) <= open_flips and (change + open_flips) % 2 == 0 and not halved:
        return ""
    if doubles:
        return "the rewrite says the opposite; a double negation needs two negations in the same clause"
    return "the rewrite denies something else than the text; add and lose no negation"


def listed_language(text: str) -> str:
    """Return the language of a text that is not English if there is a list of its negations; else empty."""
    language = known_language(text) or language_of(text)
    return language if language in FOREIGN else ""


def _denying(text: str) -> list[str]:
    """Return all words that may deny something, in order."""
    return [word for word in words(text) if word in _ANY or word.endswith("n't")]


def _flips(source: str, text: str) -> tuple[int, int]:
    """Return how many words became their opposite, and how many of those a count of negations would miss."""
    before, after = set(words(source)), set(words(text))
    gained = after - before
    flips = open_flips = 0
    for word in before - after:
        others = OPPOSITES.get(word)
        if others and not gained.isdisjoint(others):
            flips += 1
            open_flips += (word in LEXICAL) == any(other in LEXICAL for other in others & gained)
    return flips, open_flips


@lru_cache(maxsize=256)
def _read(text: str, language: str) -> _Reading:
    if not _denying(text):
        return _Reading(0, 0, 0)
    text = prose(text).lower()
    if language:
        cancel, support = FOREIGN[language]
        rows = [words(sentence) for sentence in _SENTENCE.split(text)]
        counts = [sum(word in cancel for word in row) or int(not support.isdisjoint(row)) for row in rows]
        return _Reading(sum(counts), sum(counts), sum(count % 2 for count in counts))
    sentences = _SENTENCE.split(_IDIOM.sub(" ", text))
    clauses = [_count(clause) for sentence in sentences for clause in _CLAUSE.split(sentence)]
    plain, lexical = map(sum, zip(*clauses, strict=True))
    return _Reading(plain, plain + lexical, sum(sum(count) % 2 for count in clauses))


def _count(clause: str) -> tuple[int, int]:
    plain = lexical = 0
    found = _CUE_WORD.findall(clause)
    for place, word in enumerate(found):
        if word in PLAIN or word.endswith("n't"):
            plain += word != "nor" or "neither" not in found[:place]
        elif word in LEXICAL:
            lexical += 1
    return plain, lexical
