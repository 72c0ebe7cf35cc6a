"""A text as the checks read it: in lower case, with plain quotation marks, as a row of words."""

from __future__ import annotations

import re
from functools import lru_cache

from pcs_annotator.relations.checks.base import Rewrite

_PLAIN = str.maketrans({"’": "'", "‘": "'", "`": "'", "´": "'", "“": '"', "”": '"', "–": "-", "—": "-", "\u00a0": " "})
_WORD = re.compile(r"[^\W_]+(?:'[^\W\d_]+)*")
# The same for plain English, in half the time.
_ASCII_WORD = re.compile(r"[a-z0-9]+(?:'[a-z]+)*", re.ASCII)
_ADDRESS = re.compile(r"(?:https?://|www\.)\S+|\b[\w-]+\.(?:com|org|net|ly|co|tv|me|it|be)/\S*", re.IGNORECASE)
_MENTION = re.compile(r"(?<!\w)[@#]\w*[^\W\d]\w*")
_ENTITY = re.compile(r"&(?:#\d+|[a-z]+);")


@lru_cache(maxsize=64)
def plain(text: str) -> str:
    """Return the text with plain quotation marks and dashes.

    >>> plain("“plan” – done")
    '"plan" - done'
    """
    return text.replace("`", "'") if text.isascii() else text.translate(_PLAIN)


@lru_cache(maxsize=64)
def prose(text: str) -> str:
    """Return the text without web addresses, mentions, tags and HTML entities: what is left to read."""
    text = plain(text)
    if "/" in text or "www." in text:
        text = _ADDRESS.sub(" ", text)
    if "@" in text or "#" in text:
        text = _MENTION.sub(" ", text)
    return _ENTITY.sub(" ", text) if "&" in text else text


@lru_cache(maxsize=64)
def words(text: str) -> tuple[str, ...]:
    """Return the words in lower case, addresses left out.

    >>> words("Don’t look: http://a.b/c it's 5!")
    ("don't", 'look', "it's", '5')
    """
    low = prose(text).lower()
    return tuple((_ASCII_WORD if low.isascii() else _WORD).findall(low))


def addresses(text: str) -> list[str]:
    """Return web addresses, without their scheme and closing punctuation."""
    found = _ADDRESS.findall(text) if "/" in text or "www." in text.lower() else []
    return [re.sub(r"^https?://", "", address.lower()).rstrip(".,;:!?)\"'/") for address in found]


def mentions(text: str) -> list[str]:
    """Return the @names and #tags in lower case."""
    return [found.lower() for found in _MENTION.findall(text)] if "@" in text or "#" in text else []


def without_typos(rewrite: Rewrite) -> str:
    """Return the rewrite with every misspelt word put back, so that the checks see what was meant."""
    known = set(_WORD.findall(plain(rewrite.source)))
    missing = known - set(_WORD.findall(plain(rewrite.text)))

    def put_back(found: re.Match[str]) -> str:
        word = found.group()
        if word in known:
            return word
        return next((meant for meant in sorted(missing) if one_slip(word, meant)), word)

    return _WORD.sub(put_back, plain(rewrite.text))


def one_slip(typed: str, meant: str) -> bool:
    """Return whether one slip of the finger, or two letters in the wrong order, makes the one of the other.

    >>> one_slip("hte", "the"), one_slip("cat", "dog"), one_slip("helo", "hello")
    (True, False, True)
    """
    typed, meant = typed.lower(), meant.lower()
    if abs(len(typed) - len(meant)) > 1:
        return False
    start = next((i for i, (a, b) in enumerate(zip(typed, meant, strict=False)) if a != b), min(len(typed), len(meant)))
    a, b = typed[start:], meant[start:]
    swapped = len(a) > 1 and len(b) > 1 and a[0] == b[1] and a[1] == b[0] and a[2:] == b[2:]
    return a == b or a[1:] == b[1:] or a[1:] == b or a == b[1:] or swapped
