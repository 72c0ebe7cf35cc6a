"""The description of the service: in OpenAPI 3.1, and as a page that works offline."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pcs_annotator.showing.markup import Markup, joined, tag
from pcs_annotator.version import __version__

Schema = Mapping[str, Any]
TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer", "minimum": 0}
MAYBE_NUMBER: Schema = {"type": ["number", "null"]}
ERRORS = {
    "400": "The request is malformed; the message names the field.",
    "401": "A token is needed.",
    "403": "The request names another server, or comes from a page of another site.",
    "404": "There is no such thing.",
    "413": "The body is too large, or has too many texts.",
    "429": "The queue is full; Retry-After says when to come again.",
    "503": "No model answers, the budget is reached, or the time is up.",
}
ROUTES = (
    (
        "post",
        "/v1/classify",
        "Label a text or a list of texts.",
        "Classified",
        "400 404 413 429 503",
        "ClassifyRequest",
    ),
    ("get", "/v1/models", "The one model there is.", "Models", "", ""),
    ("get", "/health", "Whether the process lives; needs no token.", "Health", "", ""),
    ("get", "/ready", "Whether texts are accepted, and with which model; needs no token.", "Ready", "", ""),
    ("get", "/metrics", "Counters for Prometheus.", "", "", ""),
    ("post", "/predict", "Label tasks, as an ML backend of Label Studio.", "Predictions", "400 413 429 503", "Tasks"),
    ("post", "/setup", "Check the labelling interface of a project.", "Version", "400", "SetupRequest"),
)
"""Method, path, summary, schema of the answer (none for plain text), errors, schema of what is sent (if any)."""
NOT_READY = "The service is stopping, or texts get no label at the moment: `reason` says why."
STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
code, pre { font: 14px/1.4 ui-monospace, monospace; }
pre { overflow-x: auto; padding: .75rem; border: 1px solid #8885; border-radius: .4rem; }
h2 { font-size: 1.1rem; margin-top: 2rem; }
h2 b { text-transform: uppercase; }
"""


def document(labels: Sequence[str]) -> dict[str, Any]:
    """Return the description of a service that gives these labels."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "pcs serve",
            "version": __version__,
            "description": "Labels for texts, with calibrated confidence. Errors are JSON, with a request id.",
        },
        "paths": {path: {method: _route(*about)} for method, path, *about in ROUTES},
        "components": {"schemas": _schemas(labels), "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}, {}],
    }


def _route(summary: str, answer: str, errors: str, body: str) -> dict[str, Any]:
    content = _json_of(answer) if answer else {"text/plain": {"schema": TEXT}}
    statuses = ("401", "403", *errors.split())
    failed = {status: {"description": ERRORS[status], "content": _json_of("Error")} for status in statuses}
    answers = {"200": {"description": summary, "content": content}, **failed}
    if answer == "Ready":
        answers["503"] = {"description": NOT_READY, "content": content}
    sent = {"requestBody": {"required": True, "content": _json_of(body)}} if body else {}
    return {"summary": summary, **sent, "responses": answers}


def _json_of(name: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}


def _object(required: Schema, optional: Schema | None = None) -> dict[str, Any]:
    return {"type": "object", "properties": {**required, **(optional or {})}, "required": list(required)}


def _list(item: Schema, **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": item, **more}


def _schemas(labels: Sequence[str]) -> dict[str, Any]:
    not_blank = {"type": "string", "pattern": r"\S"}
    error = {"message": TEXT, "type": TEXT, "request_id": TEXT}
    return {
        "Error": _object({"error": _object(error)}),
        "ClassifyRequest": _object(
            {"input": {"oneOf": [not_blank, _list(not_blank, minItems=1)]}}, {"model": {"type": ["string", "null"]}}
        ),
        "Classified": _classified(labels),
        "Models": _object({"object": TEXT, "data": _list(_object({"id": TEXT, "object": TEXT}))}),
        "Health": _object({"status": TEXT, "model_version": TEXT}),
        "Ready": _object({"status": TEXT, "reason": TEXT, "model": TEXT, "outdated": TEXT, "queued_texts": COUNT}),
        "Tasks": _object(
            {"tasks": _list(_object({"data": _object({"text": not_blank})}))},
            {"label_config": {"type": ["string", "null"]}},
        ),
        "Predictions": _object(
            {"results": _list(_object({"result": _list({}), "score": {"type": "number"}, "model_version": TEXT}))}
        ),
        "SetupRequest": _object({}, {"schema": {"type": ["string", "null"]}}),
        "Version": _object({"model_version": TEXT}),
    }


def _classified(labels: Sequence[str]) -> dict[str, Any]:
    item = _object(
        {
            "index": COUNT,
            "label": {"enum": [*labels, None], "description": "None if no model gave a usable answer; see error."},
            "probs": _list({"type": "number"}, description="In the order of `labels`; calibrated if the run is."),
            "num_classes": COUNT,
            "confidence": {**MAYBE_NUMBER, "description": "Probability that the label is right."},
            "decision": {"enum": ["accept", "review", "agree", None]},
            "reason": TEXT,
            "cost": _object({"usd": MAYBE_NUMBER, "calls": COUNT}),
        },
        {"label_set": _list(TEXT), "error": _object({"kind": TEXT, "message": TEXT})},
    )
    counts = ("prompt_tokens", "completion_tokens", "total_tokens", "calls", "known_already")
    return _object(
        {
            "id": TEXT,
            "object": {"const": "list"},
            "created": COUNT,
            "model": TEXT,
            "labels": _list(TEXT),
            "data": _list(item),
            "usage": _object(dict.fromkeys(counts, COUNT)),
        },
        {"warning": {**TEXT, "description": "Recent texts differ from those that the model was calibrated on."}},
    )


def page(document: Mapping[str, Any]) -> Markup:
    """Return a page about every route and every kind of value."""
    about = document["info"]
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", about["title"]),
        tag("link", rel="stylesheet", href="/docs.css"),
    )
    body = tag(
        "body",
        tag("h1", f"{about['title']} {about['version']}"),
        tag("p", about["description"], " ", tag("a", "openapi.json", href="/openapi.json")),
        *_routes(document["paths"]),
        tag("h1", "Values"),
        *(
            joined(tag("h2", name, id=name), tag("pre", json.dumps(schema, indent=1, ensure_ascii=False)))
            for name, schema in document["components"]["schemas"].items()
        ),
    )
    return joined(Markup("<!doctype html>"), tag("html", head, body, lang="en"))


def _routes(paths: Mapping[str, Any]) -> Iterator[Markup]:
    for path, methods in paths.items():
        for method, route in methods.items():
            yield tag("h2", tag("b", method), " ", tag("code", path))
            yield tag("p", route["summary"])
            answers = (
                tag("li", tag("code", status), " ", answer["description"], *_kinds(answer))
                for status, answer in route["responses"].items()
            )
            sent = route.get("requestBody")
            yield joined(tag("p", "Takes", *_kinds(sent)) if sent else None, tag("ul", *answers))


def _kinds(content: Mapping[str, Any]) -> Iterator[Markup]:
    for kind, value in content.get("content", {}).items():
        name = value["schema"].get("$ref", "").rpartition("/")[2]
        yield joined(" ", tag("code", kind), " ", tag("a", name, href=f"#{name}") if name else None)
