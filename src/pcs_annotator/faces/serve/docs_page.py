"""The description of the service as a page that works offline."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pcs_annotator.showing.markup import Markup, joined, tag

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
code, pre { font: 14px/1.4 ui-monospace, monospace; }
pre { overflow-x: auto; padding: .75rem; border: 1px solid #8885; border-radius: .4rem; }
h2 { font-size: 1.1rem; margin-top: 2rem; }
h2 b { text-transform: uppercase; }
"""


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
            joined(tag("h2", name, id=name), _json(schema))
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


def _json(schema: object) -> Markup:
    return tag("pre", json.dumps(schema, indent=1, ensure_ascii=False))
