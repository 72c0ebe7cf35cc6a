"""The description of the service in OpenAPI 3.1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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


def document(labels: Sequence[str]) -> dict[str, Any]:
    """Return the description of a service that gives these labels."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "pcs serve",
            "version": __version__,
            "description": "Labels for texts, with calibrated confidence. Errors are JSON, with a request id.",
        },
        "paths": _paths(),
        "components": {"schemas": _schemas(labels), "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}, {}],
    }


def _paths() -> dict[str, Any]:
    return {
        "/v1/classify": {
            "post": _route(
                "Label a text or a list of texts.", "Classified", "400 404 413 429 503", _takes("ClassifyRequest")
            )
        },
        "/v1/models": {"get": _route("The one model there is.", "Models")},
        "/health": {"get": _route("Whether the process lives; needs no token.", "Health")},
        "/ready": {"get": _ready()},
        "/metrics": {"get": _metrics()},
        "/predict": {
            "post": _route(
                "Label tasks, as an ML backend of Label Studio.", "Predictions", "400 413 429 503", _takes("Tasks")
            )
        },
        "/setup": {
            "post": _route("Check the labelling interface of a project.", "Version", "400", _takes("SetupRequest"))
        },
    }


def _route(summary: str, answer: str, errors: str = "", more: Schema | None = None) -> dict[str, Any]:
    content = {"application/json": {"schema": _reference(answer)}}
    answers = {"200": {"description": summary, "content": content}, **_errors(errors)}
    return {"summary": summary, **(more or {}), "responses": answers}


def _metrics() -> dict[str, Any]:
    summary = "Counters for Prometheus."
    answer = {"description": summary, "content": {"text/plain": {"schema": TEXT}}}
    return {"summary": summary, "responses": {"200": answer, **_errors("")}}


def _ready() -> dict[str, Any]:
    route = _route("Whether texts are accepted, and with which model; needs no token.", "Ready")
    why = "The service is stopping, or texts get no label at the moment: `reason` says why."
    return {**route, "responses": {**route["responses"], "503": {**route["responses"]["200"], "description": why}}}


def _takes(body: str) -> dict[str, Any]:
    content = {"application/json": {"schema": _reference(body)}}
    return {"requestBody": {"required": True, "content": content}}


def _errors(statuses: str) -> dict[str, Any]:
    content = {"application/json": {"schema": _reference("Error")}}
    return {status: {"description": ERRORS[status], "content": content} for status in ("401", "403", *statuses.split())}


def _reference(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


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
