"""The description of the service in OpenAPI 3.1; its page is made from it."""

from collections.abc import Mapping, Sequence
from typing import Any

from pcs_annotator.runs.settings import TaskSettings
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


def document(labels: Sequence[str], variables: Mapping[str, TaskSettings] | None = None) -> dict[str, Any]:
    """Return the description of a service that gives these labels or, for a codebook, those of several variables."""
    schemas = _schemas(labels)
    if variables:
        _describe(schemas["Classified"]["properties"], variables)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "pcs serve",
            "version": __version__,
            "description": "Labels for texts, with calibrated confidence. Errors are JSON, with a request id.",
        },
        "paths": {path: {method: _route(*about)} for method, path, *about in ROUTES},
        "components": {"schemas": schemas, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}, {}],
    }


def _describe(classified: dict[str, Any], variables: Mapping[str, TaskSettings]) -> None:
    """Describe a reply with a field per variable; one that may have several labels is a list of all of them."""
    one = classified["data"]["items"]
    fields: dict[str, Any] = {"index": one["properties"].pop("index")}
    required = [name for name in one["required"] if name in one["properties"]]
    for name, task in variables.items():
        label = {"enum": [*task.labels, None]} if task.kind != "tree" else {"type": ["string", "null"]}
        about = {**one, "properties": {**one["properties"], "label": label}, "required": required}
        fields[name] = about
        if task.kind == "many":
            applies = _about({"type": ["boolean", "null"]}, "Whether the label applies.")
            fields[name] = _list({**about, "properties": {**about["properties"], "applies": applies}}, "All labels.")
    classified["data"] = _list(_object(fields), "One for each text, with a field per variable.")
    classified["labels"] = _about({"type": "object"}, "The labels of every variable.")


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


def _list(item: Schema, about: str = "", **more: Any) -> dict[str, Any]:
    return _about({"type": "array", "items": item, **more}, about)


def _about(schema: Schema, about: str) -> dict[str, Any]:
    return {**schema, "description": about} if about else {**schema}


def _schemas(labels: Sequence[str]) -> dict[str, Any]:
    not_blank = {"type": "string", "pattern": r"\S"}
    maybe_text = {"type": ["string", "null"]}
    error = {"message": TEXT, "type": TEXT, "request_id": TEXT}
    texts = {"oneOf": [not_blank, _list(not_blank, minItems=1)]}
    version = _about(TEXT, "The model that answered: the run and its fit.")
    task = _object({"data": _object({"text": not_blank})})
    prediction = _object({"result": _list({}), "score": {"type": "number"}, "model_version": version})
    return {
        "Error": _object({"error": _object(error)}),
        "ClassifyRequest": _object(
            {"input": _about(texts, "A text, or a list of texts.")},
            {
                "model": _about(maybe_text, "The name of the run, as in /v1/models; leave it out."),
                "groups": _list(
                    maybe_text, "The group of each text, if the promise is made for groups (pcs run --by)."
                ),
                "group": _about(maybe_text, "The group of all texts."),
            },
        ),
        "Classified": _classified(labels, version),
        "Models": _object({"object": TEXT, "data": _list(_object({"id": TEXT, "object": TEXT}))}),
        "Health": _object({"status": _about(TEXT, "UP."), "model_version": version}),
        "Ready": _object(
            {
                "status": _about(TEXT, "ready, not ready, or stopping."),
                "reason": _about(TEXT, "Why texts get no label; empty if they do."),
                "model": version,
                "outdated": _about(TEXT, "Why a newer fit is not in use; empty if there is none."),
                "queued_texts": _about(COUNT, "Texts in progress and waiting."),
            }
        ),
        "Tasks": _object(
            {"tasks": _list(task, "Tasks of a project; `text` is what its labelling interface calls it.")},
            {"label_config": _about(maybe_text, "The labelling interface of the project, in XML.")},
        ),
        "Predictions": _object({"results": _list(prediction, "One for each task, in their order.")}),
        "SetupRequest": _object({}, {"schema": _about(maybe_text, "The labelling interface of the project, in XML.")}),
        "Version": _object({"model_version": version}),
    }


def _classified(labels: Sequence[str], version: Schema) -> dict[str, Any]:
    why = {"kind": _about(TEXT, "For programs."), "message": _about(TEXT, "For people.")}
    cost = {"usd": _about(MAYBE_NUMBER, "Null if a price is unknown."), "calls": _about(COUNT, "Calls paid for.")}
    item = _object(
        {
            "index": _about(COUNT, "The place of the text in `input`."),
            "label": _about({"enum": [*labels, None]}, "Null if no model gave a usable answer; see error."),
            "probs": _list({"type": "number"}, "In the order of `labels`; calibrated if the run is."),
            "num_classes": _about(COUNT, "How many labels there are; 0 without a label."),
            "confidence": _about(MAYBE_NUMBER, "Probability that the label is right; null if the run has no gold."),
            "decision": _about(
                {"enum": ["accept", "review", "agree", None]},
                "accept: as the promise allows. review: for a person. agree: all answers agree, but no promise.",
            ),
            "reason": _about(TEXT, "Why this decision, in words."),
            "id": _about(TEXT, "Its name for pcs review, if a person should see it, and for pcs forget."),
            "cost": _about(_object(cost), "What this text cost; a repeated text costs nothing."),
        },
        {
            "label_set": _list(TEXT, "Labels that are possible, if the run gives sets."),
            "within_one": _about({"type": "number"}, "On a scale, probability that the label is at most a step off."),
            "low": _about(TEXT, "On a scale, the lowest label that is plausible."),
            "high": _about(TEXT, "On a scale, the highest label that is plausible."),
            "level": _about(COUNT, "In a tree, how many levels of the label are given."),
            "error": _about(_object(why), "Why there is no label."),
        },
    )
    counts = {
        "prompt_tokens": _about(COUNT, "Tokens sent."),
        "completion_tokens": _about(COUNT, "Tokens written by models."),
        "total_tokens": _about(COUNT, "Both."),
        "calls": _about(COUNT, "Calls to models that were paid for."),
        "known_already": _about(COUNT, "Answers that were known, free of charge."),
    }
    return _object(
        {
            "id": _about(TEXT, "With the request id."),
            "object": _about({"const": "list"}, "As in the protocol of OpenAI."),
            "created": _about(COUNT, "Seconds since 1970."),
            "model": version,
            "labels": _list(TEXT, "All labels, in the order of `probs`."),
            "data": _list(item, "One for each text."),
            "usage": _about(_object(counts), "Of all texts together."),
        },
        {"warning": _about(TEXT, "Recent texts differ from those that the model was calibrated on.")},
    )
