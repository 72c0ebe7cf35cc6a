"""The description of the service in OpenAPI 3.1; its page is made from it."""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

import orjson

from pcs_annotator.runs.settings import TaskSettings
from pcs_annotator.version import __version__

ABOUT = (files(__package__) / "assets" / "openapi.json").read_bytes()
"""A frame, errors, routes with the names of their schemas, and schemas; the labels of a run are filled in."""
NOT_READY = "The service is stopping, or texts get no label at the moment: `reason` says why."


def document(
    labels: Sequence[str], variables: Mapping[str, TaskSettings] | None = None, *, pairs: bool = False
) -> dict[str, Any]:
    """Return the description of a service that gives these labels or, for a codebook, those of several variables."""
    about = orjson.loads(ABOUT)
    schemas, errors = about["schemas"], about["errors"]
    classified = schemas["Classified"]["properties"]
    classified["data"]["items"]["properties"]["label"]["enum"] = [*labels, None]
    if pairs:
        pair = schemas["Pair"]
        either = [pair, {"type": "array", "items": pair, "minItems": 1}]
        schemas["ClassifyRequest"]["properties"]["input"] = {"oneOf": either, "description": "A pair, or a list."}
    if variables:
        _describe(classified, variables)
    frame: dict[str, Any] = about["frame"]
    frame["info"]["version"], frame["components"]["schemas"] = __version__, schemas
    frame["paths"] = {route.pop("path"): {route.pop("method"): _route(errors, **route)} for route in about["routes"]}
    return frame


def _describe(classified: dict[str, Any], variables: Mapping[str, TaskSettings]) -> None:
    """Describe a reply with a field per variable; one that may have several labels is a list of all of them."""
    item = classified["data"]["items"]
    fields: dict[str, Any] = {"index": item["properties"].pop("index")}
    required = [name for name in item["required"] if name in item["properties"]]
    for name, task in variables.items():
        label = {"enum": [*task.labels, None]} if task.kind != "tree" else {"type": ["string", "null"]}
        about = {**item, "properties": {**item["properties"], "label": label}, "required": required}
        fields[name] = about
        if task.kind == "many":
            applies = {"type": ["boolean", "null"], "description": "Whether the label applies."}
            each = {**about, "properties": {**about["properties"], "applies": applies}}
            fields[name] = {"type": "array", "items": each, "description": "All labels."}
    items = {"type": "object", "properties": fields, "required": list(fields)}
    classified["data"] |= {"items": items, "description": "One for each text, with a field per variable."}
    classified["labels"] = {"type": "object", "description": "The labels of every variable."}


def _route(meanings: Mapping[str, str], summary: str, answer: str, errors: str, body: str) -> dict[str, Any]:
    content = _json_of(answer) if answer else {"text/plain": {"schema": {"type": "string"}}}
    statuses = ("401", "403", *errors.split())
    failed = {status: {"description": meanings[status], "content": _json_of("Error")} for status in statuses}
    answers = {"200": {"description": summary, "content": content}, **failed}
    if answer == "Ready":
        answers["503"] = {"description": NOT_READY, "content": content}
    sent = {"requestBody": {"required": True, "content": _json_of(body)}} if body else {}
    return {"summary": summary, **sent, "responses": answers}


def _json_of(name: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}
