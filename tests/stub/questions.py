"""Parses requests: the model, the text, and the labels to choose from."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Literal, NamedTuple

Form = Literal["tag", "bare", "json"]
_TAG = re.compile(r"<label>\s*([^<>]{1,200}?)\s*</label>")
_BULLET = re.compile(r"^\s*[-*•]\s+[`\"']?([^:`\"'\n]{1,80}?)[`\"']?\s*(?::.*)?$", re.MULTILINE)
_PART = re.compile(r"^<(\w+)>: .*\n((?:- .*\n)+)", re.MULTILINE)
_PLACEHOLDERS = {"…", "...", "x", "name", "label", "your label", "the label"}
_NESTED = (dict, list)
_CONVERSATION = ("messages", "system")
_WORD = re.compile(r"\w")
_MARK = re.compile(r"[0-9][0-9A-Za-z_]{5,}")
_OPENING_REST = re.compile(r"^[>\])}]+")
_CLOSING_REST = re.compile(r"[<\[({]+/?[-\w: ]*$")
_DEPLOYMENT = re.compile(r"/deployments/([^/?]+)/")


class Question(NamedTuple):
    """A parsed chat request."""

    model: str
    system: str  # all system messages, joined
    text: str  # the part between markers in the last user message, or all of that message
    labels: tuple[str, ...]  # that the request names, possibly none
    form: Form  # of the answer
    schema: dict[str, Any] | None  # of the answer, if any
    chars: int  # in all messages
    logprobs: bool  # whether log-probabilities are requested
    top_logprobs: int  # how many alternatives of each token
    counted: bool  # whether `logprobs` is their number, as in the older protocol
    stream: bool  # whether a streamed answer is requested
    parts: tuple[tuple[str, tuple[str, ...]], ...] = ()  # name and labels of each of several questions in one call


def read_question(body: dict[str, Any], path: str) -> Question:
    system = _plain(body["system"]) if "system" in body else ""
    chars, last = len(system), ""
    for turn in body["messages"]:
        role, said = turn["role"], _plain(turn["content"])
        chars += len(said)
        if role == "user":
            last = said
        elif role != "assistant":
            system = f"{system}\n{said}" if system else said
    text = fenced(last)
    choices, schema = _structure(body)
    logprobs: Any = body.get("logprobs")
    counted = type(logprobs) is int
    labels = choices or tuple(_strings_of(schema, "enum")) or _labels_in(system)
    if not labels:
        labels = _labels_in(last.replace(text, "") if text != last else last)
    return Question(
        model=str(body.get("model") or _deployment(path)),
        system=system,
        text=text,
        labels=labels,
        form="bare" if choices else "json" if schema else "tag",
        schema=schema,
        chars=chars,
        logprobs=bool(logprobs),
        top_logprobs=logprobs if counted else body.get("top_logprobs", 0),
        counted=counted,
        stream="stream" in body and bool(body["stream"]),
        parts=_parts_in(system),
    )


def _deployment(path: str) -> str:
    """Return the model that Azure names in the path."""
    found = _DEPLOYMENT.search(path)
    return found.group(1) if found else ""


def fenced(message: str) -> str:
    """Return the text between the last two occurrences of a marker near the message's end, or the whole message.

    A marker is a word with six or more characters from its first digit on, such as a hash.
    """
    for mark in reversed(_MARK.findall(message[-200:])):
        close = message.rfind(mark)
        start = message.rfind(mark, 0, close)
        if start < 0:
            continue
        inner = message[start + len(mark) : close]
        first, _, rest = inner.partition("\n")
        if "\n" in rest and (not first or not _WORD.search(first)):
            return rest.rpartition("\n")[0]
        return _CLOSING_REST.sub("", _OPENING_REST.sub("", inner)).strip("\n")
    return message


def _plain(content: object) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return ""


@lru_cache(maxsize=1024)
def _labels_in(prompt: str) -> tuple[str, ...]:
    tagged = [label for label in dict.fromkeys(_TAG.findall(prompt)) if label.lower() not in _PLACEHOLDERS]
    found = tagged if len(tagged) > 1 else [*dict.fromkeys(_BULLET.findall(prompt))]
    return tuple(found if len(found) > 1 else tagged)


@lru_cache(maxsize=1024)
def _parts_in(prompt: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple((name, tuple(_BULLET.findall(menu))) for name, menu in _PART.findall(prompt))


def _structure(body: dict[str, Any]) -> tuple[tuple[str, ...], dict[str, Any] | None]:
    """Return the choices and the schema of any structured-output field."""
    fields = {name: value for name, value in body.items() if name not in _CONVERSATION and type(value) in _NESTED}
    if not fields:
        return (), None
    choices = tuple(_strings_of(fields, "choice", "guided_choice"))
    schema = next((node for node in _nodes(fields) if "properties" in node or "enum" in node), None)
    return choices, schema


def _nodes(value: object) -> Iterator[dict[str, Any]]:
    """Yield every object inside a JSON value, outer ones first."""
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _nodes(inner)


def _strings_of(value: object, *names: str) -> list[str]:
    """Return the first list of strings under one of the names."""
    for node in _nodes(value):
        for name in names:
            if isinstance(node.get(name), list):
                return [item for item in node[name] if isinstance(item, str)]
    return []
