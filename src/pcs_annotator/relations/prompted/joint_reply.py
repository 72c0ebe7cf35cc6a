"""The rewrites in a joint reply, as far as they are complete."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from pcs_annotator.core.chat import Reply

Rewrites = Mapping[str, str | None]
"""What a joint reply says, by the key of the member; None where the model says that it does not apply."""

_TRAILING_COMMA = re.compile(r",\s*([}\]])")
_BEGUN_KEY = re.compile(r",\s*\"([\w:-]{0,60})\"?\s*\Z")
_SEPARATORS = re.compile(r"[\W_]+")
_DECODER = json.JSONDecoder(strict=False)  # line breaks inside a text are forgiven
_BROKEN = object()


def read_rewrites(reply: Reply, keys: Sequence[str]) -> Rewrites:
    """Return the rewrites in a joint reply that are complete, by key.

    >>> read_rewrites(Reply(text='{"voice": "It was seen.", "synonym": "He saw', finish="length"), ["voice", "synonym"])
    {'voice': 'It was seen.'}
    """
    if reply.finish == "filter":
        return {}
    text = reply.text.rpartition("</think>")[2]
    found = _whole_object(text)
    if found is None:
        found = _salvaged(text, keys, cut=reply.finish == "length")
    return _by_key(found, keys)


def _whole_object(text: str) -> dict[str, object] | None:
    start, end = text.find("{"), text.rfind("}")
    if not 0 <= start < end:
        return None
    body = text[start : end + 1]
    for attempt in (body, _TRAILING_COMMA.sub(r"\1", body)):
        try:
            value = json.loads(attempt, strict=False)
        except (ValueError, RecursionError):
            continue
        return value if isinstance(value, dict) else None
    return None


def _salvaged(text: str, keys: Sequence[str], *, cut: bool) -> dict[str, object]:
    """Return the entries of a broken object that can be told apart by their keys."""
    names = "|".join(re.escape(key) for key in keys)
    marks = list(re.finditer(rf"[\"']({names})[\"']\s*:\s*", text, re.IGNORECASE))
    found: dict[str, object] = {}
    for number, mark in enumerate(marks, 1):
        is_last = number == len(marks)
        raw = text[mark.end() :] if is_last else text[mark.end() : marks[number].start()]
        value = _proper_value(_without_begun_key(raw, keys) if is_last else raw)
        # where the reply was cut off, only proper JSON tells a whole last value from half of one
        if value is _BROKEN and not (cut and is_last):
            value = _loose_value(raw)
        if value is not _BROKEN:
            found.setdefault(mark[1], value)
    return found


def _without_begun_key(raw: str, keys: Sequence[str]) -> str:
    """Return a value without the next entry, of which only a part of the key is there."""
    found = _BEGUN_KEY.search(raw)
    return raw[: found.start()] if found is not None and any(key.startswith(found[1]) for key in keys) else raw


def _proper_value(raw: str) -> object:
    """Return a JSON value that nothing follows but the object's end."""
    try:
        value, end = _DECODER.raw_decode(raw)
    except (ValueError, RecursionError):
        return _BROKEN
    return _BROKEN if raw[end:].strip(" \t\r\n,}`") else value


def _loose_value(raw: str) -> object:
    """Return a text with quotation marks inside that the model forgot to escape."""
    inner = raw.rstrip().rstrip("`").rstrip("}, \r\n\t")
    if len(inner) < 2 or inner[0] not in "\"'" or inner[-1] != inner[0] or inner[-2] == "\\":
        return _BROKEN
    return inner[1:-1].replace('\\"', '"').replace("\\n", "\n")


def _by_key(found: Mapping[str, object], keys: Sequence[str]) -> Rewrites:
    given = {plain_key(name): value for name, value in found.items()}
    if len(found) == 1 and not any(plain_key(key) in given for key in keys):
        inner = next(iter(found.values()))  # {"rewrites": {…}}
        if isinstance(inner, dict):
            given = {plain_key(str(name)): value for name, value in inner.items()}
    rewrites: dict[str, str | None] = {}
    for key in keys:
        value = _text_of(given.get(plain_key(key), _BROKEN))
        if value is None or isinstance(value, str):
            rewrites[key] = value
    return rewrites


def _text_of(value: object) -> object:
    """Return the text in a value: the first of several, or the only one in an object."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list) and value and isinstance(value[0], str):
        return value[0]
    return value


def plain_key(name: str) -> str:
    """Return a key as it is compared: `Double_Negation` is `double-negation`."""
    return _SEPARATORS.sub(" ", name.removeprefix("llm:")).strip().lower()
