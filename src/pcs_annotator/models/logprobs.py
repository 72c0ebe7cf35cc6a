"""Reads the log-probabilities in a server's reply, and writes them compactly for the ledger.

Of all tokens, only those from the start of the answer itself are kept: markup before it (`<label>`, `{"answer": "`) and
whatever follows it decide nothing, and would make most of the work and of the ledger. Of a reply to several questions,
those of each answer are kept, after a position without alternatives that names the question: `<topic>`.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any

import orjson

from pcs_annotator.base.thinking import thinking_spans
from pcs_annotator.core.chat import LONGEST_ANSWER, TokenPosition

MOST_POSITIONS = 12
DECIMALS = 4
# How servers write "not at all": OpenAI and vLLM send -9999.
NEVER = -1000.0
# Rounded like this, the logarithm of 1.
CERTAIN = -0.5 * 10**-DECIMALS
UNKNOWN_FORM = "log-probabilities in an unknown form"
OTHER_TEXT = "tokens that do not add up to the reply"
NOT_MARKED = "an answer without its tag"
_TAG = "<label>"
OPENING_TAG = r"<\s*+label\s*+>"
ANSWER_KEY = r"""["'](?:label|answer|category|class|sentiment)["']\s*+:\s*+"""
"""What comes before a label in a tag and in JSON, as patterns; possessive, because a reply can be hostile."""
_OPENING = re.compile(rf"{OPENING_TAG}|{ANSWER_KEY}\[?+\s*+", re.IGNORECASE)
# What follows the answer in these two forms; the token it is in may also end the answer.
_CLOSING, _BRACKET = re.compile(r"""<|["'}\]\n]"""), re.compile("<")
# What comes before each of several answers.
_HEADING = re.compile(r"""<\s*+([^\W\d]\w*+)\s*+>|["']([^\W\d]\w*+)["']\s*+:\s*+\[?+\s*+""")


def read_logprobs(choice: Mapping[str, Any], text: str) -> tuple[TokenPosition, ...] | str | None:
    """Return the tokens of an answer and their alternatives; a text says why what the server sent is of no use.

    A choice of a chat completion has OpenAI's `logprobs.content`, or lists of `tokens`, `token_logprobs` and
    `top_logprobs`, as in the older protocol that Together and llama-cpp-python use. `text` is the reply's, as it was
    sent.
    """
    sent = choice.get("logprobs")
    if not sent:
        return None
    try:
        entries = sent.get("content")
        if entries is None and "tokens" in sent:
            entries = _entries(sent, choice)
        return _answer(entries, text) if entries else None
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
        return UNKNOWN_FORM


def _entries(logprobs: Mapping[str, Any], choice: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the tokens of the older protocol in the form of the newer one."""
    tokens, logs = logprobs["tokens"], logprobs["token_logprobs"]
    tops = logprobs.get("top_logprobs") or choice.get("top_logprobs") or [{}] * len(tokens)
    return [
        {
            "token": token,
            "logprob": log,
            "top_logprobs": [{"token": other, "logprob": its} for other, its in (top or {}).items()],
        }
        for token, log, top in zip(tokens, logs, tops, strict=True)
    ]


def _answer(entries: Sequence[Mapping[str, Any]], text: str) -> tuple[TokenPosition, ...] | str:
    pieces = [entry["token"] for entry in entries]
    tokens_text, wanted = "".join(pieces), text.strip()
    if not _plain(tokens_text):
        pieces = [_token(entry) for entry in entries]
        tokens_text = "".join(pieces)
        raw = tokens_text.encode("utf-8", "surrogateescape")
        if raw.decode("utf-8", "surrogateescape") != tokens_text:
            # two tokens share a character: one sign per byte, so that places fit again
            pieces = [piece.encode("utf-8", "surrogateescape").decode("latin-1") for piece in pieces]
            tokens_text, wanted = "".join(pieces), wanted.encode("utf-8", "replace").decode("latin-1")
    if wanted not in tokens_text or len(tokens_text) > LONGEST_ANSWER:
        return OTHER_TEXT
    ends = list(accumulate(map(len, pieces)))
    positions: list[TokenPosition] = []
    for heading, (start, end) in _regions(tokens_text, wanted).items():
        positions += [TokenPosition(heading, ())] if heading else []
        first = min(bisect_right(ends, start), len(ends) - 1)
        for number in range(first, min(first + MOST_POSITIONS, len(ends))):
            start_of_token = ends[number] - len(pieces[number])
            if start_of_token > end:
                break
            positions.append(_position(entries[number], closing=start_of_token == end))
    return tuple(positions)


def part_of(logprobs: tuple[TokenPosition, ...] | str | None, name: str) -> tuple[TokenPosition, ...] | str | None:
    """Return the tokens of the answer to one of several questions; a text says why there are none."""
    if not isinstance(logprobs, tuple):
        return logprobs
    headings = [
        index
        for index, heading in enumerate(logprobs)
        if not heading.alternatives and _HEADING.fullmatch(heading.token)
    ]
    for start, end in pairwise([*headings, len(logprobs)]):
        if logprobs[start].token == f"<{name.casefold()}>":
            return logprobs[start + 1 : end]
    return NOT_MARKED


@lru_cache(maxsize=1024)
def _regions(tokens_text: str, wanted: str) -> dict[str, tuple[int, int]]:
    """Return where each answer starts and ends, by its heading; a single one has none, and may be the whole text."""
    tag = tokens_text.rfind(_TAG)
    if tag >= 0:
        return {"": _until(tokens_text, tag + len(_TAG), _BRACKET)}
    start = -1
    for opening in _OPENING.finditer(tokens_text):
        start = opening.end()
    if start >= 0:
        return {"": _until(tokens_text, start, _CLOSING)}
    # reasoning may come before the text, and the name of a control token after it
    opened = tokens_text.lstrip()
    start = len(tokens_text) - len(opened) if opened.startswith(wanted) else tokens_text.rindex(wanted)
    end, thought = start + len(wanted), max((last for _, last in thinking_spans(wanted)), default=0)
    headings = _HEADING.finditer(tokens_text, start + thought, end)
    several = {
        f"<{(heading[1] or heading[2]).casefold()}>": _until(
            tokens_text, heading.end(), _BRACKET if heading[1] else _CLOSING
        )
        for heading in headings
    }
    return several or {"": (start, end)}


def _until(tokens_text: str, start: int, closing: re.Pattern[str]) -> tuple[int, int]:
    end = closing.search(tokens_text, start + (closing is _CLOSING))  # JSON starts with a quotation mark
    return start, end.start() if end else len(tokens_text)


def _position(entry: Mapping[str, Any], *, closing: bool) -> TokenPosition:
    """Return a token with its alternatives; `closing` if the answer was complete before it."""
    token, tops = _token(entry), entry.get("top_logprobs") or ()
    if closing and entry["logprob"] > CERTAIN and tops:  # the answer could not have been longer
        return TokenPosition(token, ((token, 0.0),))
    alternatives = [(_token(top), float(round(top["logprob"], DECIMALS))) for top in tops]
    if alternatives and all(other != token for other, _ in alternatives):
        alternatives.append((token, float(round(entry["logprob"], DECIMALS))))
    return TokenPosition(token, tuple(alternatives))


def _token(entry: Mapping[str, Any]) -> str:
    token: str = entry["token"]
    if not _plain(token) and entry.get("bytes"):
        return bytes(entry["bytes"]).decode("utf-8", "surrogateescape")
    return token


def _plain(text: str) -> bool:
    # OpenAI writes cut characters as \\xe2, with a backslash
    return text.isascii() and "\\" not in text


def tells(logprobs: tuple[TokenPosition, ...] | str | None) -> bool:
    """Return whether log-probabilities say what else a model might have answered, not only what was chosen."""
    positions = logprobs if isinstance(logprobs, tuple) else ()
    return any(other != token and NEVER < log <= 0 for token, others in positions for other, log in others)


def pack(logprobs: tuple[TokenPosition, ...] | str | None) -> bytes | None:
    """Return log-probabilities as they are stored: as JSON."""
    if logprobs is None:
        return None
    plain = logprobs if isinstance(logprobs, str) else [tuple(position) for position in logprobs]
    with suppress(TypeError):  # a token that is part of a character is kept as surrogates
        written = orjson.dumps(plain)
        if b"null" not in written:  # as which NaN and infinities would be written
            return written
    return json.dumps(plain, separators=(",", ":")).encode()


def unpack(stored: bytes | None) -> tuple[TokenPosition, ...] | str | None:
    """Return log-probabilities from their stored form."""
    if stored is None:
        return None
    plain = json.loads(stored)
    if isinstance(plain, str):
        return plain
    return tuple(TokenPosition(token, tuple(map(tuple, alternatives))) for token, alternatives in plain)
