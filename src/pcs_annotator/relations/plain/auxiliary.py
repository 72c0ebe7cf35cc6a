"""What `'s` and `'d` stand for, judged by the words that follow."""

from __future__ import annotations

import re

from pcs_annotator.relations.facts import listed, word_set

# Of a contracted word, only the part before the contraction counts.
_NEXT = re.compile(r"\s+[\"“'‘(]*(?:([A-Za-z]+?(?:-[A-Za-z]+)*)(?:[nN]?['’][A-Za-z]+)*(?![A-Za-z'’-])|([$£€#]?\d))")

_ADVERBS = listed("auxiliary", "adverbs")
_PARTICIPLES = listed("auxiliary", "participles")
_BOTH = listed("auxiliary", "both")
_HAS_ONLY = listed("auxiliary", "has_only")
_NOT_PAST = listed("auxiliary", "not_past")
_BASES = listed("auxiliary", "bases")
_OTHERS_IN_EN = listed("auxiliary", "others_in_en")
_AFTER_WHO = listed("auxiliary", "after_who")
_PRONOUNS = word_set("i you he she it we they this that")
_D_SUBJECTS = word_set("i you he she we they it there who")
_S_SUBJECTS = word_set("he she it that this there here who what where how")
_QUESTION = word_set("what where how")
_NOT_AFTER_S = word_set("own and or but if of")


def what_s_means(subject: str, following: str) -> str:
    """Return `is`, `has` or `us` for the `'s` after a lower-case subject; empty when unclear.

    >>> what_s_means("it", " been raining"), what_s_means("it", " raining"), what_s_means("it", " finished")
    ('has', 'is', '')
    """
    words = next_words(following)
    if subject == "let":
        return "us" if words else ""
    if subject not in _S_SUBJECTS or not words or words[0] in _NOT_AFTER_S:
        return ""
    telling = after_adverbs(words)
    if telling in _HAS_ONLY:
        return "has"
    if not telling or _may_be_participle(telling) or (subject in _QUESTION and words[0] in _PRONOUNS):
        return ""
    doubtful = subject == "who" and telling not in _AFTER_WHO and not telling.endswith("ing")
    return "" if doubtful else "is"


def what_d_means(subject: str, following: str) -> str:
    """Return `had` or `would` for the `'d` after a lower-case subject; empty when unclear.

    >>> what_d_means("she", " never seen it"), what_d_means("she", " like it"), what_d_means("she", " put it")
    ('had', 'would', '')
    """
    words = next_words(following)
    if subject not in _D_SUBJECTS or not words:
        return ""
    telling = after_adverbs(words)
    if telling == "better":
        return "had" if words[0] == "better" else ""
    if telling in _BASES:
        return "would"
    if telling in _BOTH or telling in _NOT_PAST:
        return ""
    return "had" if telling in _PARTICIPLES or telling.endswith("ed") else ""


def next_words(following: str) -> list[str]:
    """Return up to four words that follow without a break, in lower case."""
    words: list[str] = []
    position = 0
    while len(words) < 4 and (match := _NEXT.match(following, position)):
        words.append((match[1] or match[2]).lower())
        position = match.end()
    return words


def after_adverbs(words: list[str]) -> str:
    """Return the first word that is not an adverb; empty when there is none."""
    for word in words:
        if word not in _ADVERBS and not (word.endswith("ly") and len(word) > 5):
            return word
    return ""


def _may_be_participle(word: str) -> bool:
    if word in _PARTICIPLES:
        return True
    if word.endswith("ed"):
        return word not in _NOT_PAST
    return word.endswith("en") and word not in _OTHERS_IN_EN
