"""Lemmas and inflections of English words."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pcs_annotator.errors import MissingPackage

if TYPE_CHECKING:
    from spacy.tokens import Token


def word_set(words: str) -> frozenset[str]:
    """Return the words of a string as a set.

    >>> sorted(word_set("is are was"))
    ['are', 'is', 'was']
    """
    return frozenset(words.split())


_UPOS = {"V": "VERB", "M": "AUX", "N": "NOUN", "J": "ADJ", "R": "ADV"}


def lemma(token: Token) -> str:
    """Return the dictionary form of a parsed word, in lower case."""
    return lemma_of(token.lower_, token.tag_)


@lru_cache(maxsize=50_000)
def lemma_of(word: str, tag: str) -> str:
    """Return the dictionary form of a word with a Penn tag; the word itself if it is not inflected.

    >>> lemma_of("took", "VBD"), lemma_of("mice", "NNS"), lemma_of("the", "DT")
    ('take', 'mouse', 'the')
    """
    upos = _UPOS.get(tag[:1])
    if upos is None or tag in ("NNP", "NNPS"):
        return word
    if word in ("'s", "'re", "'m", "’s", "’re", "’m") and upos == "VERB":
        return "be"
    found = _lemminflect().getLemma(word, upos=upos)
    return found[0] if found else word


@lru_cache(maxsize=50_000)
def inflect(base: str, tag: str) -> str | None:
    """Return a dictionary form inflected for a Penn tag; None if unknown.

    >>> inflect("take", "VBN"), inflect("mouse", "NNS")
    ('taken', 'mice')
    """
    found = _lemminflect().getInflection(base, tag=tag, inflect_oov=False)
    return found[0] if found else None


def _lemminflect() -> Any:  # the package has no types
    try:
        import lemminflect
    except ModuleNotFoundError as error:
        raise MissingPackage("this relation inflects English: pip install 'pcs-annotator[rules]'") from error
    return lemminflect
