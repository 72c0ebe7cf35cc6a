"""The page about the service: an example to run, fields and errors, all taken from its description in OpenAPI."""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pcs_annotator.faces.web.guard import error_kind
from pcs_annotator.faces.web.pages import page_head
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.markup import Markup, joined, section, sentence, tag, user_text
from pcs_annotator.showing.to_html import html

EXAMPLE = "Aliens landed in New York yesterday."
MOST_VALUES = 6
CLASSIFY = "/v1/classify"
TOKEN = "Authorization: Bearer $PCS_TOKEN"
FIELDS = [b.Column(title) for title in ("field", "type", "meaning")]


class ExampleCall(NamedTuple):
    """What the example at the top of the page shows."""

    url: str  # the address of the service, without a path
    token: bool  # whether clients need one
    reply: Mapping[str, Any]  # what the service answers
    real: bool  # whether that is its answer to this text, or only looks like one


def curl(example: ExampleCall, text: str = EXAMPLE) -> str:
    """Return the command that labels a text."""
    lines = [f"curl -s {example.url}{CLASSIFY}", "-H 'Content-Type: application/json'"]
    if example.token:
        lines.append(f'-H "{TOKEN}"')
    return " \\\n  ".join([*lines, f"-d {shlex.quote(json.dumps({'input': [text]}, ensure_ascii=False))}"])


def docs_page(document: Mapping[str, Any], name: str, labels: Sequence[str], example: ExampleCall) -> str:
    """Return the page about a service that is called by the name of its run."""
    title = tag("h1", "Label texts with ", user_text(name))
    given = tag("p", "Labels: ", *(joined(tag("span", user_text(one), class_="chip"), " ") for one in labels))
    schemas, paths = document["components"]["schemas"], document["paths"]
    main = tag(
        "main",
        title,
        given,
        section("try", "Try it", *_trial(example)),
        section("request", "What you send", _fields(schemas["ClassifyRequest"])),
        section("reply", "What comes back", _fields(schemas["Classified"])),
        section("errors", "Errors", *_errors(paths)),
        section("routes", "All routes", *_routes(paths, schemas)),
        id="main",
    )
    body = tag("body", tag("a", "Skip to the content", href="#main", class_="skip"), main)
    return f"<!DOCTYPE html>\n{tag('html', page_head(f'{name} · pcs serve', 'docs'), body, lang='en')}\n"


def _trial(example: ExampleCall) -> Iterator[Markup]:
    text = tag("textarea", EXAMPLE, id="text", rows="3", dir="auto", required=True, aria_label="Text to label")
    run = tag("button", "Label it", class_="strong")
    yield tag("form", text, tag("div", run, tag("span", id="said", role="status"), class_="buttons"), id="trial")
    yield tag("h3", "The same from a terminal")
    yield _code(curl(example), "curl", "Command")
    yield tag("h3", "The reply" if example.real else "A reply looks like this", id="reply-title")
    yield _code(json.dumps(example.reply, indent=2, ensure_ascii=False), "answer", "Reply")


def _code(text: str, name: str, title: str) -> Markup:
    return tag("pre", text, id=name, tabindex="0", role="region", aria_label=title)


def _fields(schema: Mapping[str, Any]) -> Markup:
    return html(b.Table(columns=FIELDS, rows=[*_rows(schema)]))


def _rows(schema: Mapping[str, Any], before: str = "") -> Iterator[b.Row]:
    """Yield every field of an object, those inside of others after them."""
    for name, field in schema.get("properties", {}).items():
        place = f"{before}{name}"
        needed = name in schema.get("required", ())
        kind = _kind(field) if needed else f"{_kind(field)}, optional"
        yield [tag("code", place), kind, _words(field.get("description", ""))]
        yield from _rows(field, f"{place}.")
        yield from _rows(field.get("items", {}), f"{place}[].")


def _words(text: str) -> Markup:
    """Return a sentence with names in backticks as code."""
    return joined(*(tag("code", one) if place % 2 else one for place, one in enumerate(text.split("`"))))


def _kind(field: Mapping[str, Any]) -> str:
    if len(field.get("enum", ())) > MOST_VALUES:
        return f"one of {len(field['enum'])} values"
    if "enum" in field:
        return " | ".join(json.dumps(one, ensure_ascii=False) for one in field["enum"])
    if "const" in field:
        return json.dumps(field["const"])
    if "oneOf" in field:
        return " | ".join(map(_kind, field["oneOf"]))
    kind = field.get("type", "any")
    if kind == "array":
        return f"list of {_kind(field['items'])}"
    return kind if isinstance(kind, str) else " | ".join(kind)


def _errors(paths: Mapping[str, Any]) -> Iterator[Markup]:
    """Yield one table of all errors, and how one looks."""
    found: dict[str, tuple[str, list[str]]] = {}
    for path, methods in paths.items():
        for route in methods.values():
            for status, answer in route["responses"].items():
                if status != "200":
                    found.setdefault(status, (answer["description"], []))[1].append(path)
    rows: list[b.Row] = []
    for status, (meaning, at) in sorted(found.items()):
        where = "everywhere" if len(at) == len(paths) else ", ".join(at)
        rows.append([status, tag("code", error_kind(int(status))), meaning, where])
    yield html(b.Table(columns=[b.Column(title) for title in ("status", "type", "meaning", "where")], rows=rows))
    shape = {"error": {"message": "what is wrong, and what to do", "type": "bad_request", "request_id": "5f1e…"}}
    yield sentence("An error is JSON: ", tag("code", json.dumps(shape, ensure_ascii=False)), kind="note")


def _routes(paths: Mapping[str, Any], schemas: Mapping[str, Any]) -> Iterator[Markup]:
    """Yield a line per route, which unfolds to its fields."""
    yield sentence(tag("a", "openapi.json", href="/openapi.json"), " describes them for programs.")
    for path, methods in paths.items():
        for method, route in methods.items():
            title = tag("summary", tag("code", f"{method.upper()} {path}"), " ", route["summary"])
            sent, answered = _schema_in(route.get("requestBody", {})), _schema_in(route["responses"]["200"])
            inside = [
                joined(tag("h3", said), _fields(schemas[name]))
                for said, name in (("Takes", sent), ("Answers", answered))
                if name
            ]
            yield tag("details", title, *inside or [sentence("Answers plain text.")])


def _schema_in(content: Mapping[str, Any]) -> str:
    found = content.get("content", {}).get("application/json", {}).get("schema", {})
    return str(found.get("$ref", "")).rpartition("/")[2]
