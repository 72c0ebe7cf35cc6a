"""What clients send, checked: every error names the field and says what is expected."""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson
from starlette.exceptions import HTTPException
from starlette.requests import Request


class Asked(NamedTuple):
    """A request for labels."""

    texts: list[str]
    model: str | None


async def read_object(request: Request) -> dict[str, Any]:
    """Return the JSON object that a request has as its body."""
    try:
        found = orjson.loads(await request.body())
    except orjson.JSONDecodeError as error:
        raise HTTPException(400, f"the body is not valid JSON: {error}") from None
    if not isinstance(found, dict):
        raise HTTPException(400, f"the body must be a JSON object, not {_kind(found)}")
    return found


def asked(values: dict[str, Any], most: int) -> Asked:
    """Return the texts and the model that a body names."""
    model = values.get("model")
    if model is not None and not isinstance(model, str):
        raise HTTPException(400, f"`model` must be a text, not {_kind(model)}")
    if "input" not in values:
        raise HTTPException(400, "`input` is missing: give a text, or a list of texts")
    given = values["input"]
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not texts:
        raise HTTPException(400, "`input` must be a text, or a list of one or more texts")
    check_number(len(texts), most)
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise HTTPException(400, f"`input[{place}]` must be a text, not {_kind(text)}")
        if not text.strip():
            raise HTTPException(400, f"`input[{place}]` is empty: leave it out")
    return Asked(texts, model)


def check_number(texts: int, most: int) -> None:
    """Raise if a request has more texts than the queue can ever hold."""
    if texts > most:
        raise HTTPException(413, f"{texts:,} texts in one request, at most {most:,} are taken: use pcs label")


class Tasks(NamedTuple):
    """Tasks of Label Studio, and the labelling interface of their project; empty if it was not sent."""

    tasks: list[dict[str, Any]]
    interface: str


def label_studio_tasks(values: dict[str, Any], most: int) -> Tasks:
    """Return the tasks in a request of Label Studio."""
    tasks = values.get("tasks")
    if not isinstance(tasks, list):
        raise HTTPException(400, "`tasks` must be a list of tasks")
    check_number(len(tasks), most)
    for place, task in enumerate(tasks):
        if not isinstance(task, dict) or not isinstance(task.get("data"), dict):
            raise HTTPException(400, f"`tasks[{place}]` must be an object with an object `data`")
    return Tasks(tasks, interface_of(values, "label_config"))


def interface_of(values: dict[str, Any], name: str) -> str:
    """Return the labelling interface in a request of Label Studio; empty if it has none."""
    given = values.get(name)
    if given is not None and not isinstance(given, str):
        raise HTTPException(400, f"`{name}` must be the XML of a labelling interface, not {_kind(given)}")
    return given or ""


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
