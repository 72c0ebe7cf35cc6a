"""Does the rewrite deny what the text asserts, or assert what it denies?"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from pcs_annotator.relations.checks.base import Rewrite
from pcs_annotator.relations.checks.cues import FOREIGN, LEXICAL, OPPOSITES, PLAIN
from pcs_annotator.relations.checks.reading import prose, words
from pcs_annotator.relations.language import language_of

# They look like negations and deny nothing.
_IDIOM = re.compile(
    r"(?:\bnot|n't) (?:only|just|merely|simply)\b|\bnot (?:to mention|least)\b|\bca(?:n't|nt|nnot) (?:wait|"
    r"help but)\b|\bcannot wait\b|"
    r"\bcan not wait\b|\bno (?:matter|wonder|problem|worries|less than|sooner|end of)\b|\bwhy not\b|\bnever ?mind\b|"
    r"\b(?:or|if) not\b|\boh,? no+\b|^\W*no+\b(?=\W*[,!.])|[.!?]\s+no+\b(?=\s*[,!.])|\bnothing but\b|\bnone other\b|"
    r"\bno\.? ?\d|,\s*\w+n't \w+\s*\?|\bcould(?:n't| not) agree more\b|\bnot for nothing\b|\blol no\b"
)
_SENTENCE = re.compile(r"[.!?]+(?:\s|$)|\n")
_CLAUSE = re.compile(
    r"[,;:()]|\s-+\s|\b(?:and|but|or|because|cause|cuz|since|while|although|though|whereas|when|if|so|which|who|then)\b"
)
_CUE_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
# These deny the whole of what follows, across commas and conjunctions.
_WHOLE = re.compile(
    r"\b(?:not|never|hardly|\w+n't)\s+(?:\w+\s+)?(?:true|untrue|false|wrong|incorrect|the case|the fact|that|"
    r"as if|as though|"
    r"like|inaccurate|impossible|unlikely|untruthful|a lie)\b|\b(?:no ?one|nobody|none)\b.{0,80}\b(?:deny|denies|"
    r"doubt|dispute)|"
    r"\bno (?:way|chance|doubt|denying|question|secret)\b|\b(?:false|untrue|wrong|incorrect|not) to (?:say|"
    r"claim|state)\b"
)


_ANY = PLAIN | LEXICAL | frozenset().union(*FOREIGN.values())


class _Reading(NamedTuple):
    """What a text denies.

    Attributes:
        plain: How many words of grammar deny.
        cues: The same, with words that deny by their meaning.
        denied: How many clauses deny something, after two negations in one have cancelled each other.
    """

    plain: int
    cues: int
    denied: int


def negation(rewrite: Rewrite) -> str:
    """Complain when something is denied that was not, or no longer denied; two negations in one clause are none."""
    flips, open_flips = _flips(rewrite.source, rewrite.text)
    if not flips and _denying(rewrite.source) == _denying(rewrite.text):
        return ""
    before, after = _read(rewrite.source), _read(rewrite.text)
    added = after.plain - before.plain
    doubles = rewrite.expects.negations == "doubled"
    if added == 0 and (not doubles or after.cues == before.cues):
        return _opposite(rewrite) if flips % 2 else ""
    change = after.denied - before.denied
    if abs(change) > open_flips or (change + open_flips) % 2:
        return _single(added, doubles)
    more = after.cues - before.cues
    # "Not possible" for "impossible" doubles nothing, and keeps the meaning.
    if doubles and (more or open_flips) and more + open_flips < 2:
        return _single(added, doubles)
    return ""


def _denying(text: str) -> list[str]:
    """Return all words that may deny something, as they come."""
    return [word for word in words(text) if word in _ANY or word.endswith("n't")]


def _single(added: int, doubles: bool) -> str:
    if doubles:
        return "the rewrite says the opposite; a double negation needs two negations in the same clause"
    if added > 0:
        return "the rewrite denies what the text says; add no negation"
    return "a negation of the text is missing; keep what is denied"


def _opposite(rewrite: Rewrite) -> str:
    before, after = set(words(rewrite.source)), set(words(rewrite.text))
    for word in words(rewrite.source):
        for other in OPPOSITES.get(word, ()):
            if word not in after and other in after and other not in before:
                return f'"{other}" is the opposite of "{word}"; keep the meaning'
    return ""


def _flips(source: str, text: str) -> tuple[int, int]:
    """Return how many words became their opposite, and how many of those are not seen by counting negations."""
    before, after = set(words(source)), set(words(text))
    gained = after - before
    flips = open_flips = 0
    for word in before - after:
        others = OPPOSITES.get(word)
        if others and not gained.isdisjoint(others):
            flips += 1
            open_flips += (word in LEXICAL) == any(other in LEXICAL for other in others & gained)
    return flips, open_flips


@lru_cache(maxsize=64)
def _read(text: str) -> _Reading:
    text = prose(text).lower()
    if not _may_deny(text):
        return _Reading(0, 0, 0)
    language = language_of(text)
    if language in FOREIGN:
        count = sum(word in FOREIGN[language] for word in words(text))
        return _Reading(count, count, count % 2)
    text = _IDIOM.sub(" ", text)
    sentences = [_read_sentence(sentence) for sentence in _SENTENCE.split(text)]
    return _Reading(*map(sum, zip(*sentences, strict=True)))


def _may_deny(text: str) -> bool:
    return any(
        word in PLAIN or word in LEXICAL or word.endswith("n't") or not word.isascii() for word in words(text)
    ) or language_of(text) not in ("en", "")


def _read_sentence(sentence: str) -> _Reading:
    plain = cues = denied = 0
    whole = _WHOLE.search(sentence)
    # "Not untrue" has cancelled itself already.
    if whole and sum(_count(whole.group())) % 2 == 0:
        whole = None
    pending = 0
    place = 0
    for clause in _CLAUSE.split(sentence):
        clause_plain, lexical = _count(clause)
        plain, cues = plain + clause_plain, cues + clause_plain + lexical
        odd = (clause_plain + lexical + pending) % 2
        if clause_plain + lexical:
            pending = 0
        # What denies a whole sentence waits for the negation that it cancels.
        if whole and odd and place <= whole.start() < place + len(clause) + 1:
            pending, odd = 1, 0
        place += len(clause) + 1
        if clause_plain + lexical or pending == 0:
            denied += odd
    return _Reading(plain, cues, denied + pending)


def _count(clause: str) -> tuple[int, int]:
    plain = lexical = 0
    found = _CUE_WORD.findall(clause)
    for place, word in enumerate(found):
        if word in PLAIN or word.endswith("n't"):
            plain += word != "nor" or "neither" not in found[:place]
        elif word in LEXICAL:
            lexical += 1
    return plain, lexical
