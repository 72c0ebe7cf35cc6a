"""Does the rewrite deny what the text asserts, or assert what it denies?"""

import re
from collections import defaultdict
from functools import lru_cache
from typing import NamedTuple

from pcs_annotator.relations.check_words import Rewrite, prose, words
from pcs_annotator.relations.language import likely_language, listed, may_be_english, pattern, word_tables

PLAIN = listed("negation", "plain")  # grammar: a clause with one of these says the opposite of the clause without it
_PREFIXES = ("un", "in", "im", "il", "ir", "dis", "non")
PREFIXED = {prefix + base: base for prefix in _PREFIXES for base in listed("negation", prefix)}
LEXICAL = listed("negation", "lexical") | frozenset(PREFIXED)  # words that deny by their meaning; not all of them
OPPOSITES: defaultdict[str, set[str]] = defaultdict(set)
for _word, _opposite in [*(pair.split("/") for pair in listed("negation", "opposites")), *PREFIXED.items()]:
    OPPOSITES[_word].add(_opposite)
    OPPOSITES[_opposite].add(_word)
# Words of which two in a sentence cancel out, and words that only support one of them ("no vi nada"). In Turkish,
# Chinese, Arabic and others, it takes more than a list to tell.
_CANCELLING, _SUPPORTING = (
    {language: frozenset(row.split()) for language, row in word_tables()[table].items()}
    for table in ("foreign_negations", "supporting_negations")
)
_DENYING = PLAIN.union(LEXICAL, *_CANCELLING.values(), *_SUPPORTING.values())

_IDIOM = pattern("idiom")
_SENTENCE = re.compile(r"(?<![.!?])[.!?]+(?:\s|$)|\n")
_CLAUSE = re.compile(
    r"[,;:()]|\s-+\s|\b(?:and|but|or|because|cause|cuz|since|while|although|though|whereas|when|if|so|which|who|then)\b"
)
_CUE_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")


class _Polarity(NamedTuple):
    """What a text denies."""

    plain: int  # number of grammatical negations
    cues: int  # the same plus words that deny by their meaning
    denied: int  # number of clauses that deny something; two negations in one clause cancel out


def negation(rewrite: Rewrite) -> str:
    """Complain when a negation was added or lost; in languages without a list of negations, it finds nothing."""
    english = may_be_english(rewrite.source)
    language = "" if english else listed_language(rewrite.source)
    flips, open_flips = _flips(rewrite.source, rewrite.text) if english else (0, 0)
    same = not flips and _denying_words(rewrite.source) == _denying_words(rewrite.text)
    if same or not (english or language):
        return ""
    before, after = _polarity(rewrite.source, language), _polarity(rewrite.text, language)
    more_cues = after.cues - before.cues
    doubles = rewrite.expects.negations == "doubled"
    if after.plain == before.plain and not (doubles and more_cues):
        return "a word became its opposite; keep the meaning" if flips % 2 else ""
    change = after.denied - before.denied
    # "Not possible" for "impossible" doubles nothing, and keeps the meaning.
    halved = doubles and more_cues + open_flips < 2 and (more_cues != 0 or open_flips > 0)
    if abs(change) <= open_flips and (change + open_flips) % 2 == 0 and not halved:
        return ""
    if doubles:
        return "the rewrite says the opposite; a double negation needs two negations in the same clause"
    return "the rewrite denies something else than the text; add and lose no negation"


def listed_language(text: str) -> str:
    """Return the language of a text that is not English if there is a list of its negations; else empty."""
    language = likely_language(text)
    return language if language in _CANCELLING else ""


def _denying_words(text: str) -> list[str]:
    return [word for word in words(text) if word in _DENYING or word.endswith("n't")]


def _flips(source: str, text: str) -> tuple[int, int]:
    """Return how many words became their opposite, and how many of those a count of negations would miss."""
    before, after = set(words(source)), set(words(text))
    lost = {word: OPPOSITES[word] & (after - before) for word in before - after if word in OPPOSITES}
    flipped = {word: gained for word, gained in lost.items() if gained}
    return len(flipped), sum((word in LEXICAL) == (not gained.isdisjoint(LEXICAL)) for word, gained in flipped.items())


@lru_cache(maxsize=256)
def _polarity(text: str, language: str) -> _Polarity:
    text = prose(text).lower()
    if language:
        cancelling, supporting = _CANCELLING[language], _SUPPORTING.get(language, frozenset())
        rows = [words(sentence) for sentence in _SENTENCE.split(text)]
        counts = [sum(word in cancelling for word in row) or int(not supporting.isdisjoint(row)) for row in rows]
        return _Polarity(sum(counts), sum(counts), sum(count % 2 for count in counts))
    sentences = _SENTENCE.split(_IDIOM.sub(" ", text))
    clauses = [_counts(clause) for sentence in sentences for clause in _CLAUSE.split(sentence)]
    plain, lexical = map(sum, zip(*clauses, strict=True))
    return _Polarity(plain, plain + lexical, sum(sum(counts) % 2 for counts in clauses))


def _counts(clause: str) -> tuple[int, int]:
    """Return the numbers of grammatical negations and of other words that deny."""
    cues = _CUE_WORD.findall(clause)
    plain = [word for word in cues if word in PLAIN or word.endswith("n't")]
    paired = sum(word == "nor" and "neither" in cues[:at] for at, word in enumerate(cues))
    return len(plain) - paired, sum(word in LEXICAL and word not in PLAIN for word in cues)
