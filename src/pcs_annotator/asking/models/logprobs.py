"""Reads the log-probabilities in a server's reply, and writes them compactly for the ledger.

Of all tokens, only those from the start of the answer itself are kept: markup before it (`<label>`, `{"answer": "`) and
whatever follows it decide nothing, and would make most of the work and of the ledger.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pcs_annotator.core.chat import TokenPosition

MOST_POSITIONS = 12
DECIMALS = 4
UNKNOWN_FORM = "log-probabilities in an unknown form"
OTHER_TEXT = "tokens that do not add up to the reply"
_OPENING = re.compile(
    r"""<\s*+label\s*+>|["'](?:label|answer|category|class|sentiment)["']\s*+:\s*+\[?+\s*+""", re.IGNORECASE
)
# What follows the answer in these two forms; the token it is in may also end the answer.
_CLOSING = re.compile(r"""<|["'}\]\n]""")


class _Listed(NamedTuple):
    """A token with what could have been in its place, as the server sent it."""

    token: Any
    tops: Sequence[Any]


def read_logprobs(choice: Mapping[str, Any], text: str) -> tuple[TokenPosition, ...] | str | None:
    """Return the tokens of an answer and their alternatives; a text says why what the server sent is of no use.

    Args:
        choice: A choice of a chat completion: with OpenAI's `logprobs.content`, or with lists of `tokens`,
            `token_logprobs` and `top_logprobs`, as in the older protocol that Together and llama-cpp-python use.
        text: The reply's text as the server sent it.
    """
    given = choice.get("logprobs")
    if not given:
        return None
    try:
        listed = _listed(choice, given)
        if not listed:
            return None
        return _answer(listed, text)
    except (LookupError, TypeError, ValueError, AttributeError):
        return UNKNOWN_FORM


def _listed(choice: Mapping[str, Any], given: Mapping[str, Any]) -> list[_Listed]:
    content = given.get("content")
    if content is not None or "tokens" not in given:
        return [_Listed(entry, entry.get("top_logprobs") or ()) for entry in content or ()]
    tokens, logs = given["tokens"], given["token_logprobs"]
    tops = given.get("top_logprobs") or choice.get("top_logprobs") or [{}] * len(tokens)
    return [
        _Listed(_entry(token, log), [_entry(*pair) for pair in top.items()])
        for token, log, top in zip(tokens, logs, tops, strict=True)
    ]


def _entry(token: str, log: float) -> dict[str, Any]:
    return {"token": token, "logprob": log}


def _answer(listed: Sequence[_Listed], text: str) -> tuple[TokenPosition, ...] | str:
    pieces = [entry["token"] for entry, _ in listed]
    said, wanted = "".join(pieces), text.strip()
    if not _plain(said):
        # one character per byte, so that a character which two tokens share can be put together again
        pieces = [_token(entry).decode("latin-1") for entry, _ in listed]
        said, wanted = "".join(pieces), wanted.encode("utf-8", "replace").decode("latin-1")
    if wanted not in said:
        return OTHER_TEXT
    start, end = _region(said, wanted)
    found, place = [], 0
    for piece, one in zip(pieces, listed, strict=True):
        before, place = place, place + len(piece)
        if place > start:
            found.append(_position(*one))
        if before > end or len(found) == MOST_POSITIONS:
            break
    return tuple(found)


def _region(said: str, wanted: str) -> tuple[int, int]:
    """Return where the answer starts and where it ends; the whole text if nothing marks it."""
    start = -1
    for found in _OPENING.finditer(said):
        start = found.end()
    if start < 0:
        # reasoning may come before the text, and the name of a control token after it
        opened = said.lstrip()
        start = len(said) - len(opened) if opened.startswith(wanted) else said.rindex(wanted)
        return start, start + len(wanted)
    closing = _CLOSING.search(said, start + 1)
    return start, closing.start() if closing else len(said)


def _position(entry: Mapping[str, Any], tops: Iterable[Mapping[str, Any]]) -> TokenPosition:
    token = _token(entry)
    alternatives = [(_token(top), round(top["logprob"], DECIMALS)) for top in tops]
    if alternatives and all(other != token for other, _ in alternatives):
        alternatives.append((token, round(entry["logprob"], DECIMALS)))
    return TokenPosition(token, tuple(alternatives))


def _token(entry: Mapping[str, Any]) -> bytes:
    token: str = entry["token"]
    if not _plain(token) and entry.get("bytes"):
        return bytes(entry["bytes"])
    return token.encode("utf-8", "replace")


def _plain(text: str) -> bool:
    # OpenAI writes cut characters as \\xe2, with a backslash
    return text.isascii() and "\\" not in text


def pack(logprobs: tuple[TokenPosition, ...] | str | None) -> bytes | None:
    """Return log-probabilities as they are stored: JSON in which each byte of a token is a character."""
    if logprobs is None:
        return None
    if isinstance(logprobs, str):
        return json.dumps(logprobs).encode()
    rows = []
    for token, alternatives in logprobs:
        row: list[object] = [token.decode("latin-1")]
        for other, log in alternatives:
            row.append(0 if other == token else other.decode("latin-1"))
            row.append(log)
        rows.append(row)
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":")).encode("latin-1")


def unpack(stored: bytes | None) -> tuple[TokenPosition, ...] | str | None:
    """Return log-probabilities from their stored form."""
    if stored is None:
        return None
    rows = json.loads(stored.decode("latin-1"))
    if isinstance(rows, str):
        return rows
    found = []
    for said, *rest in rows:
        token = said.encode("latin-1")
        others = (other.encode("latin-1") if other else token if other == 0 else b"" for other in rest[::2])
        found.append(TokenPosition(token, tuple(zip(others, rest[1::2], strict=True))))
    return tuple(found)
