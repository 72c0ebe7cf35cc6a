"""Does a rewrite name the same people and places, and deny the same? And all checks together."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from pcs_annotator.core.variant import CheckResult
from pcs_annotator.relations.check_words import (
    SPELT,
    Rewrite,
    addresses,
    language,
    length,
    mentions,
    numbers,
    prose,
    quoted,
    unchanged,
    without_typos,
    words,
)
from pcs_annotator.relations.language import LOUD, SMALL, likely_language, listed, may_be_english, pattern, word_tables

_TOKEN = re.compile(r"[^\W_]+(?:['&-][^\W_]+)*|[^\w\s]+|\n")
_PARTS = re.compile("[-&]")
_INSIDE = ",/$%&)"  # marks after which no sentence, line or quotation begins
_PARTICLES = frozenset(["de", "del", "della", "von", "van", "der", "den", "la", "le", "al", "bin"])
_INITIALS = re.compile(r"\b(?:[A-Z]\.){2,}|\b(?:[A-Z]\.)+(?=[A-Z]\b)")
_UNITED = re.compile(r"\bUnited ([SK])(?:tates|ingdom)\b")
_SAME = {"usa": "us", "america": "us", "american": "us", "americans": "us", "britain": "uk", "british": "uk"}
_CONTRACTED = re.compile(r"(?:n't|'(?:re|ve|ll|d|m))\Z")
_ORDINARY = SMALL | LOUD | SPELT | {"cannot"}
_LONGEST_ACRONYM = 5
_STEM = 4  # letters that two forms of a name share, at least
_SMALL_IN_TITLES = listed("names", "small_in_titles")
_LEAST_WORDS, _LEAST_CAPITALS = 2, 0.9


def names(rewrite: Rewrite) -> str:
    """Complain when a name is missing or new; part of a longer name is enough."""
    source, text = rewrite.source, rewrite.text
    if lost := _lost_addresses(source, text):
        return f"missing: {quoted(lost)}; keep addresses, @names and #tags as they are"
    if _lost_addresses(text, source):
        return "there is a new address, @name or #tag; add none"
    nouns = likely_language(source) == "de"
    before, after = (names_in(part, nouns) for part in (source, text))
    missing = [" ".join(name) for name in before if len(_not_in(text, name)) == len(name)]
    if missing:
        return f"missing: {quoted(missing)}; keep every name"
    new = [word for name in after for word in _not_in(source, name)]
    return f"new: {quoted(new)}; add no name that is not in the text" if new else ""


def _lost_addresses(source: str, text: str) -> list[str]:
    low = text.lower()
    marked = addresses(source) + mentions(source)
    return [address for address in marked if address not in low and address.lstrip("@#") not in low]


@lru_cache(maxsize=256)
def names_in(text: str, nouns: bool = False) -> tuple[tuple[str, ...], ...]:
    """Return the words of each name, as far as capitals show names.

    Where all nouns have capitals, as in German, only short forms are names. A single word at the start of a sentence
    has its capital from there.
    """
    text = _one_spelling(text)
    shouted = sum(map(str.isupper, text)) > sum(map(str.islower, text))
    return () if shouted or is_title(text) else tuple(_runs(text, nouns))


def _runs(text: str, nouns: bool) -> Iterator[tuple[str, ...]]:
    """Yield every run of adjacent words that may be names."""
    run, opens, run_opens = list[str](), True, False
    for token in [*_TOKEN.findall(text), "\n"]:
        if _may_be_name(token, nouns):
            run_opens = run_opens if run else opens
            run.append(token.casefold())
        elif token not in _PARTICLES:
            parts = [part for word in run for part in _PARTS.split(word) if len(part) > 1]
            if parts and (len(run) > 1 or not run_opens):
                yield tuple(_SAME.get(part, part) for part in parts)
            run = []
        opens = not token[0].isalnum() and token.strip(_INSIDE) != ""


def _may_be_name(word: str, nouns: bool) -> bool:
    low = word.casefold()
    if not word[0].isupper() or _CONTRACTED.search(low) or (low in _ORDINARY and word != "US"):
        return False
    return len(word) <= _LONGEST_ACRONYM if word.isupper() else not nouns


def is_title(text: str) -> bool:
    """Return whether nearly every word but the small ones has a capital, so that capitals do not mark names."""
    words = [word for word in _TOKEN.findall(text)[1:] if word[0].isalpha() and word not in _SMALL_IN_TITLES]
    return len(words) >= _LEAST_WORDS and sum(not word.islower() for word in words) >= _LEAST_CAPITALS * len(words)


def _not_in(text: str, name: Iterable[str]) -> list[str]:
    """Return the words of a name that are not in a text, whatever their endings: Russia and Russian."""
    by_stem = _words_by_stem(text)
    return [word for word in name if not any(_is_declined(word, other) for other in by_stem.get(word[:_STEM], ()))]


def _is_declined(word: str, other: str) -> bool:
    same = max(_STEM, 2 * max(len(word), len(other)) // 3)
    return word[:same] == other[:same]


@lru_cache(maxsize=256)
def _words_by_stem(text: str) -> dict[str, set[str]]:
    by_stem: dict[str, set[str]] = {}
    for word in [*_TOKEN.findall(_one_spelling(text).casefold()), *(mention[1:] for mention in mentions(text))]:
        for part in {_SAME.get(part, part) for part in (word, *_PARTS.split(word))}:
            by_stem.setdefault(part[:_STEM], set()).add(part)
    return by_stem


def _one_spelling(text: str) -> str:
    """Return the prose of a text, with US for U.S. and United States, and a comma for a possessive ending."""
    text = _UNITED.sub(r"U\1", prose(text))
    return _INITIALS.sub(lambda initials: initials[0].replace(".", ""), text).replace("'s ", " , ")


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


# the checks made on every rewrite, by name
CHECKS = {check.__name__: check for check in (unchanged, length, language, numbers, negation, names)}


def run_checks(rewrite: Rewrite) -> tuple[CheckResult, ...]:
    """Return the verdict of every check; the detail of one that was left out says why."""
    meant = replace(rewrite, text=without_typos(rewrite)) if rewrite.expects.misspells else rewrite
    unmade = _unmade(rewrite.source)
    complaints = {name: check(rewrite if check is unchanged else meant) for name, check in CHECKS.items()}
    return tuple(CheckResult(name, not wrong, wrong or unmade.get(name, "")) for name, wrong in complaints.items())


def _unmade(source: str) -> dict[str, str]:
    """Return the checks that cannot be made on rewrites of a text, and why."""
    if may_be_english(source):
        return {}
    unlisted = "" if listed_language(source) else "not checked: no list of negations in this language"
    caseless = "only addresses are checked: the script has no capitals" if source.lower() == source.upper() else ""
    return {"negation": unlisted, "names": caseless}


def passes(rewrite: Rewrite) -> bool:
    """Return whether a rewrite passes all checks that read only the words."""
    return all(verdict.passed for verdict in run_checks(rewrite))
