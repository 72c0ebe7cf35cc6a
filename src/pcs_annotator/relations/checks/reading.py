"""A rewrite as the checks read it: in lower case, with plain quotation marks, as words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from pcs_annotator.core.variant import Expectation


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A text, its rewrite, and what the rewrite may do."""

    source: str  # the text that was rewritten
    text: str  # the rewrite
    expects: Expectation = field(default_factory=Expectation)  # what the relation may do to a text


Check = Callable[[Rewrite], str]
"""Returns what is wrong with a rewrite, as an instruction for the rewriting model; empty if nothing is wrong."""


def quoted(words: Iterable[str], most: int = 4) -> str:
    """Return quoted words for a complaint; only the first few if there are many.

    >>> quoted(["a", "b"])
    '"a", "b"'
    """
    shown = [f'"{word}"' for word in words]
    return ", ".join(shown[:most]) + (" and others" if len(shown) > most else "")


_PLAIN = str.maketrans({"’": "'", "‘": "'", "`": "'", "´": "'", "“": '"', "”": '"', "–": "-", "—": "-", "\u00a0": " "})
_WORD = re.compile(r"[^\W_]+(?:'[^\W\d_]+)*")
_ADDRESS = re.compile(r"(?:https?://|www\.)\S+|\b[\w-]+\.(?:com|org|net|ly|co|tv|me|it|be)/\S*", re.IGNORECASE)
_MENTION = re.compile(r"(?<!\w)[@#]\w*[^\W\d]\w*")
_ENTITY = re.compile(r"&(?:#\d+|[a-z]+);")


@lru_cache(maxsize=256)
def plain(text: str) -> str:
    """Return the text with plain quotation marks and dashes.

    >>> plain("“plan” – done")
    '"plan" - done'
    """
    return text.replace("`", "'") if text.isascii() else text.translate(_PLAIN)


@lru_cache(maxsize=256)
def prose(text: str) -> str:
    """Return the text without web addresses, mentions, tags and HTML entities."""
    text = plain(text)
    if "/" in text or "www." in text:
        text = _ADDRESS.sub(" ", text)
    if "@" in text or "#" in text:
        text = _MENTION.sub(" ", text)
    return _ENTITY.sub(" ", text) if "&" in text else text


@lru_cache(maxsize=256)
def words(text: str) -> tuple[str, ...]:
    """Return the words in lower case, without addresses.

    >>> words("Don’t look: http://a.b/c it's 5!")
    ("don't", 'look', "it's", '5')
    """
    return tuple(_WORD.findall(prose(text).lower()))


def addresses(text: str) -> list[str]:
    """Return web addresses without scheme and trailing punctuation."""
    found = _ADDRESS.findall(text) if "/" in text or "www." in text.lower() else []
    return [re.sub(r"^https?://", "", address.lower()).rstrip(".,;:!?)\"'/") for address in found]


def mentions(text: str) -> list[str]:
    """Return the @names and #tags in lower case."""
    return [found.lower() for found in _MENTION.findall(text)] if "@" in text or "#" in text else []


def without_typos(rewrite: Rewrite) -> str:
    """Return the rewrite with typos corrected from the source, so that the other checks can read it."""
    known = set(_WORD.findall(plain(rewrite.source)))
    missing = known - set(_WORD.findall(plain(rewrite.text)))

    def put_back(found: re.Match[str]) -> str:
        word = found.group()
        if word in known:
            return word
        return next((meant for meant in sorted(missing) if one_typo(word, meant)), word)

    return _WORD.sub(put_back, plain(rewrite.text))


def one_typo(typed: str, meant: str) -> bool:
    """Return whether two words differ by one typo: a letter added, missing or changed, or two letters swapped.

    >>> one_typo("hte", "the"), one_typo("cat", "dog"), one_typo("helo", "hello")
    (True, False, True)
    """
    typed, meant = typed.lower(), meant.lower()
    if abs(len(typed) - len(meant)) > 1:
        return False
    start = next((i for i, (a, b) in enumerate(zip(typed, meant, strict=False)) if a != b), min(len(typed), len(meant)))
    a, b = typed[start:], meant[start:]
    swapped = len(a) > 1 and len(b) > 1 and a[0] == b[1] and a[1] == b[0] and a[2:] == b[2:]
    return a == b or a[1:] == b[1:] or a[1:] == b or a == b[1:] or swapped
