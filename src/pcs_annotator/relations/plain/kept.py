"""Parts of a text that rules for letters leave alone: addresses, mentions, tags, numbers, emoticons."""

from __future__ import annotations

import re

_KEPT = re.compile(
    r"""
      (?:https?://|www\.)\S+
    | \S+@\S+\.\w+
    | [@\#]\w+
    | &\#?\w+;
    | \S*\w[/\\_.]\w\S*            # a path, a domain, a file, an abbreviation
    | \w*\d\w*(?:[.,:/-]\w*\d\w*)*
    | [:;=8xX][-'^o]?[DPpOoSsXxCcLl3](?!\w)
    | \b[xX]D+\b
    """,
    re.VERBOSE,
)


def kept_as_they_are(text: str) -> bytearray:
    """Return, for every character of a text, 1 if it belongs to such a part and 0 otherwise.

    >>> "".join("x" if kept else "." for kept in kept_as_they_are("See @Bob, 5pm: https://a.b/C"))
    '....xxxx..xxx..xxxxxxxxxxxxx'
    """
    kept = bytearray(len(text))
    for found in _KEPT.finditer(text):
        kept[found.start() : found.end()] = b"\1" * (found.end() - found.start())
    return kept


_ADDRESS = re.compile(r"(?:https?://|www\.)\S*$")
_LOOK_BACK = 200


def is_address(found: re.Match[str]) -> bool:
    """Return whether a match is within an address."""
    return _ADDRESS.search(found.string, max(0, found.start() - _LOOK_BACK), found.start()) is not None
