"""The stub's answers: a label by hash, a rewritten text, or a bad answer of some kind."""

import json
import re
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from pcs_annotator.models.scripted import DEFINE, defined
from tests.stub.behaviour import Behaviour, pick
from tests.stub.questions import Question

_OPENERS = ("Indeed,", "Notably,", "Frankly,", "Clearly,", "Honestly,", "Actually,", "Truly,", "Plainly,")
_REWRITE_TAG = re.compile(r"<(rewrit\w*)>")
_EMPTY_VALUES = {"number": 0, "integer": 0, "boolean": False, "array": [], "object": {}, "null": None}
CHATTER = "Thank you for sharing this! Let me know how else I may be of help today."


class Answer(NamedTuple):
    """The text of an answer, its finish reason, and the label in it, if one was chosen; or several, in tags."""

    text: str
    finish: Literal["stop", "filter"] = "stop"
    label: str = ""
    parts: tuple[tuple[str, str], ...] = ()


_FIXED = {"chatter": Answer(CHATTER), "empty": Answer(""), "filtered": Answer("", finish="filter")}


def labels_of(question: Question, behaviour: Behaviour) -> tuple[str, ...]:
    """Return the labels that an answer is chosen from."""
    return behaviour.labels or question.labels or ("positive", "negative")


def chosen_label(question: Question, behaviour: Behaviour) -> str:
    """Return the label that this model always gives to this text."""
    labels = labels_of(question, behaviour)
    return labels[pick(len(labels), str(behaviour.seed), question.model, question.text)]


def answer(kind: str, question: Question, behaviour: Behaviour) -> Answer:
    """Return the answer of a kind: `answer`, or the name of a share for bad answers."""
    if kind in _FIXED:
        return _FIXED[kind]
    if DEFINE in question.text or _asks_for_rewriting(question.system):
        return _written(question)
    label = chosen_label(question, behaviour)
    return several(question, behaviour) if question.parts else Answer(in_form(label, question, behaviour), label=label)


def several(question: Question, behaviour: Behaviour) -> Answer:
    """Return the answer to several questions: a line for each."""
    said = tuple(
        (name, labels[pick(len(labels), str(behaviour.seed), question.model, question.text, name)])
        for name, labels in question.parts
    )
    return Answer("\n".join(f"<{name}>{label}</{name}>" for name, label in said), parts=said)


def _written(question: Question) -> Answer:
    if DEFINE in question.text:
        return Answer(defined(question.text))
    keys = _ways_of_rewriting(question.system)
    return Answer(_rewritten_in_all_ways(question, keys) if keys else rewritten(question))


@lru_cache(maxsize=1024)
def _asks_for_rewriting(system: str) -> bool:
    return "rewrite" in system.lower()


@lru_cache(maxsize=1024)
def _ways_of_rewriting(system: str) -> tuple[str, ...]:
    """Return the keys of the JSON object that the instructions have on a separate line; none if there is none."""
    for line in system.splitlines():
        if line.startswith('{"') and line.endswith("}"):
            return tuple(json.loads(line))
    return ()


def _rewritten_in_all_ways(question: Question, keys: tuple[str, ...]) -> str:
    ways = (question._replace(system=f"{key}\n{question.system}") for key in keys)
    return json.dumps(dict(zip(keys, map(rewritten, ways), strict=True)))


def rewritten(question: Question) -> str:
    """Return the text after an opening word that depends on the instructions, which replaces any other such word."""
    opener = _OPENERS[pick(len(_OPENERS), question.system)]
    first, _, rest = question.text.partition(" ")
    text = f"{opener} {rest if first in _OPENERS and first != opener else question.text}"
    tag = _REWRITE_TAG.search(question.system)
    return f"<{tag.group(1)}>{text}</{tag.group(1)}>" if tag else text


def in_form(label: str, question: Question, behaviour: Behaviour) -> str:
    """Return a label in the form that was asked for."""
    match question.form if behaviour.answer == "auto" else behaviour.answer:
        case "bare":
            return label
        case "json":
            return json.dumps(_filled(question.schema or {"properties": {"label": {"enum": []}}}, label))
        case _:
            return f"<label>{label}</label>"


def _filled(schema: dict[str, Any], label: str) -> Any:
    """Return a JSON value of the schema, with the label as the value of choices."""
    if "enum" in schema or "$ref" in schema or "anyOf" in schema:
        return label
    if "properties" in schema:
        return {name: _filled(inner, label) for name, inner in schema["properties"].items()}
    return _EMPTY_VALUES.get(str(schema.get("type")), "")
