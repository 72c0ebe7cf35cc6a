"""The page of the service: a box that labels a text, the same from a program, the fields of a reply, how it is."""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from types import MappingProxyType
from typing import Any, NamedTuple

from pcs_annotator.core.task import Task
from pcs_annotator.runs.settings import TaskSettings
from pcs_annotator.showing.markup import Child, Markup, joined, section, sentence, tag, user_text
from pcs_annotator.showing.svg_plot import Plot

SCRIPT = files(__package__) / "assets" / "serve.js"
REPORT = files("pcs_annotator.showing.report")
STYLES = (REPORT / "colours.css", REPORT / "charts.css", files(__package__) / "assets" / "serve.css")
ICON = files("pcs_annotator.faces.review") / "assets" / "icon.svg"
ASSETS = {
    "icon.svg": ("image/svg+xml", ICON.read_bytes()),
    "serve.js": ("text/javascript", SCRIPT.read_bytes()),
    "serve.css": ("text/css", b"".join(style.read_bytes() for style in STYLES)),
}
"""File → type and content, all read once: no path from a request is opened."""
EXAMPLE = "I waited an hour, and nobody came."


class Standing(NamedTuple):
    """How the service is, as the page shows it."""

    ready: bool
    lines: Mapping[str, str]  # what → how
    charts: Mapping[str, Plot] = MappingProxyType({})  # variable, or an empty name → how its fits have changed


class Door(NamedTuple):
    """How clients reach the service."""

    url: str
    token: bool  # whether they need one
    pairs: bool  # whether they send pairs of texts


def service_page(
    model: str, tasks: Mapping[str, Task | TaskSettings], about: Mapping[str, Any], standing: Standing, door: Door
) -> str:
    """Return the page of a service; `about` is its description in OpenAPI."""
    label_it = tag("button", "Label it", class_="strong")
    names = {"a": "First text", "b": "Second text"} if door.pairs else {"text": "Text"}
    boxes = [tag("label", title, tag("textarea", name_=name, rows="3", required=True)) for name, title in names.items()]
    form = tag("form", *boxes, label_it, id="form")
    questions = [_question(name, task) for name, task in tasks.items()]
    main = (
        section("try", "Label a text", *questions, form, tag("div", id="answer", role="status")),
        section("program", "From a program", *_from_program(door)),
        section("state", "How the service is", _table([*standing.lines.items()])),
        section("fits", "Quality over time", *_over_time(standing.charts)) if standing.charts else None,
        section("fields", "What a reply says of each text", _table(_fields(about))),
        section("errors", "Errors", _table(_errors(about))),
    )
    state, kind = ("ready", "good") if standing.ready else ("not ready", "warn")
    chip = tag("span", state, class_=f"chip {kind}")
    body = tag("body", tag("header", tag("h1", user_text(model)), chip), tag("main", *main))
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        tag("title", f"{model} · pcs serve"),
        tag("link", rel="icon", href="/assets/icon.svg"),
        tag("link", rel="stylesheet", href="/assets/serve.css"),
        tag("script", src="/assets/serve.js", defer=True),
    )
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}"


def _question(name: str, task: Task | TaskSettings) -> Markup:
    labels = joined(*(tag("span", user_text(label), class_="chip") for label in task.labels[:30]))
    more = f" and {len(task.labels) - 30:,} more" if len(task.labels) > 30 else None
    return sentence(tag("strong", f"{name}: ") if name else None, user_text(task.instruction), " ", labels, more)


def _from_program(door: Door) -> Sequence[Child]:
    sent = json.dumps({"input": [{"a": EXAMPLE, "b": "Great!"} if door.pairs else EXAMPLE]})
    curl = ["curl", f"{door.url}/v1/classify", "-d", sent]
    line = shlex.join(curl) + (' -H "Authorization: Bearer $TOKEN"' if door.token else "")
    rest = sentence(
        "All routes: ", tag("a", "openapi.json", href="/openapi.json"), ", ", tag("a", "ready", href="/ready"), ", ",
        tag("a", "metrics", href="/metrics"), ".",
    )  # fmt: skip
    reply = tag("details", tag("summary", "The reply to the text above, as JSON"), tag("pre", id="reply"))
    return [tag("pre", line, id="curl", data_start=line.partition("-d ")[0]), reply, rest]


def _over_time(charts: Mapping[str, Plot]) -> Iterator[Child]:
    for name, plot in charts.items():
        yield sentence(user_text(name)) if name else None
        yield plot.inline()


def _fields(about: Mapping[str, Any]) -> list[tuple[str, str]]:
    items = about["components"]["schemas"]["Classified"]["properties"]["data"]["items"]["properties"]
    nested = [each.get("items", each) for each in items.values() if "label" not in items]
    values = next((each["properties"] for each in nested if "properties" in each), items)
    return [(name, values[name].get("description", "").replace("`", "")) for name in values]


def _errors(about: Mapping[str, Any]) -> list[tuple[str, str]]:
    answers = about["paths"]["/v1/classify"]["post"]["responses"]
    return [(status, answer["description"]) for status, answer in sorted(answers.items()) if status != "200"]


def _table(rows: Sequence[tuple[str, str]]) -> Markup:
    lines = [tag("tr", tag("th", name, scope="row"), tag("td", value)) for name, value in rows]
    return tag("table", tag("tbody", *lines))
