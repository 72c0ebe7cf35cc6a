"""The bulk view: all rows of a query, with filters for the whole query, and one button to accept what is proposed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from math import isfinite
from typing import Any, Literal, NamedTuple

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.base.text import counted
from pcs_annotator.core.outcome import Decision
from pcs_annotator.core.review import Reviewed
from pcs_annotator.faces.review.forms import one_of
from pcs_annotator.faces.review.item import readable
from pcs_annotator.faces.review.layout import chip, link, post_form, undo_button
from pcs_annotator.runs.review.values import FoundRow, FoundRows, Query, Sort
from pcs_annotator.showing.diff import clipped
from pcs_annotator.showing.drawings import bar
from pcs_annotator.showing.formats import DASH, count, number
from pcs_annotator.showing.markup import Child, Markup, joined, sentence, tag, user_text

PREVIEW = 240
SORTS: Mapping[Sort, str] = {
    "row": "as in the data",
    "doubtful": "least certain first",
    "certain": "most certain first",
    "recent": "latest verdicts first",
}
DECISIONS: Mapping[Decision | Literal["none", ""], str] = {
    "": "any",
    "accept": "accepted",
    "agree": "answers agree",
    "review": "to review",
    "none": "none",
}
FLAGS = {"": None, "yes": True, "no": False}
YES_NO = {"": "any", "yes": "yes", "no": "no"}
COLUMN = "column."
"""Before the name of a user's column in an address."""
ACCEPTED_IN_BULK = (
    "They count as chosen by you: they correct labels and teach weights, but nothing may be estimated from them, and "
    "they support no promise. U undoes all of them at once."
)


class Choices(NamedTuple):
    """What filters offer: the task's labels, the user's columns, and the people who have reviewed."""

    labels: Sequence[str]
    columns: Sequence[str]
    reviewers: Sequence[str]


def query_of(given: Mapping[str, str]) -> Query:
    """Return the query in an address or a form.

    Raises:
        ConfigError: A value is not a number, or not one of those to choose from.
    """
    filters: dict[str, Any] = {name: given.get(name, "") for name in ("label", "reviewer", "verdict", "text")}
    filters |= {name: _number(given, name) for name in ("least", "most")}
    filters |= {name: FLAGS[one_of(FLAGS, given, name, "")] for name in ("disagreement", "reviewed", "conflict")}
    return Query(
        **filters,
        decision=one_of(DECISIONS, given, "decision", ""),
        columns={name[len(COLUMN) :]: value for name, value in given.items() if name.startswith(COLUMN) and value},
        sort=one_of(SORTS, given, "sort", "row"),
        page=min(max(int(_number(given, "page") or 0), 0), 10**6),
    )


def _number(given: Mapping[str, str], name: str) -> float | None:
    value = given.get(name, "").strip()
    try:
        found = float(value) if value else None
    except ValueError:
        found = float("nan")
    if found is not None and not isfinite(found):
        raise ConfigError(f"{name}={value!r} is not a number: write one such as 0.8")
    return found


def address_of(query: Query, page: int | None = None) -> str:
    """Return the address of a query."""
    return link("/rows", **_values(query, page))


def _values(query: Query, page: int | None = None) -> dict[str, str]:
    """Return the fields that `query_of` reads."""
    named = {one.name: getattr(query, one.name) for one in fields(query) if one.name not in ("columns", "size")}
    named |= {"page": query.page if page is None else page, "sort": "" if query.sort == "row" else query.sort}
    named |= {COLUMN + name: value for name, value in query.columns.items()}
    return {name: _written(value) for name, value in named.items() if _written(value) and (name, value) != ("page", 0)}


def _written(value: object) -> str:
    if value is None or isinstance(value, bool):
        return {None: "", True: "yes", False: "no"}[value]
    return f"{value:g}" if isinstance(value, float) else str(value)


def rows_view(found: FoundRows, query: Query, choices: Choices) -> Markup:
    """Return the filters, the button to accept, and one page of the table."""
    return tag(
        "div",
        tag("h1", "Rows"),
        _filters(query, choices),
        _totals(found, query),
        _table(found.rows) if found.rows else sentence("No row matches; clear a filter.", kind="card"),
        _pages(found, query),
        class_="bulk",
    )


def _filters(query: Query, choices: Choices) -> Markup:
    labels = {"": "any", **{label: label for label in choices.labels}}
    people = {"": "anybody", **{name: name for name in choices.reviewers}}
    to_choose: Sequence[tuple[str, str, Mapping[Any, str]]] = (
        ("Proposed label", "label", labels),
        ("Decision", "decision", DECISIONS),
        ("Models disagree", "disagreement", YES_NO),
        ("Has a verdict", "reviewed", YES_NO),
        ("Verdict", "verdict", labels),
        ("Verdict by", "reviewer", people),
        ("Reviewers differ", "conflict", YES_NO),
        ("Order", "sort", SORTS),
    )
    chosen = [_choice(title, name, options, _written(getattr(query, name))) for title, name, options in to_choose]
    shown = [_text("Text contains", "text", query.text), *chosen[:2], _range("Confidence", query), *chosen[2:]]
    own = [_text(name, COLUMN + name, query.columns.get(name, "")) for name in choices.columns]
    titled = tag("summary", "Your columns (whole values)"), tag("div", *own, class_="fields")
    return tag(
        "form",
        tag("div", *shown, class_="fields"),
        tag("details", *titled, open=bool(query.columns)) if own else None,
        tag(
            "div",
            tag("button", "Show", class_="strong"),
            tag("a", "Clear", href="/rows", data_go="", class_="button"),
            class_="buttons",
        ),
        action="/rows",
        class_="card filters",
        aria_label="Filters",
    )


def _text(title: str, name: str, value: str) -> Markup:
    return tag("label", tag("span", title, dir="auto"), tag("input", name_=name, value=value, dir="auto"))


def _choice(title: str, name: str, options: Mapping[Any, str], value: str) -> Markup:
    entries = [tag("option", shown, value=key, selected=key == value) for key, shown in options.items()]
    return tag("label", tag("span", title), tag("select", *entries, name_=name))


def _range(title: str, query: Query) -> Markup:
    ends = [
        tag(
            "input",
            name_=name,
            value=_written(value),
            inputmode="decimal",
            placeholder=hint,
            aria_label=f"{title}, {said}",
        )
        for name, value, hint, said in (("least", query.least, "0", "at least"), ("most", query.most, "1", "at most"))
    ]
    return tag(
        "div", tag("span", title), tag("span", ends[0], "–", ends[1], class_="range"), role="group", aria_label=title
    )


def _totals(found: FoundRows, query: Query) -> Markup:
    shares = [
        joined(tag("b", count(times)), " ", user_text(name or "no label"))
        for name, times in sorted(found.labels.items(), key=lambda pair: -pair[1])[:6]
    ]
    return tag(
        "div",
        tag("p", tag("b", counted(found.total, "row")), *(tag("span", one, class_="share") for one in shares)),
        tag("div", _accept(found, query) if found.acceptable else None, undo_button(), class_="buttons"),
        class_="totals",
    )


def _accept(found: FoundRows, query: Query) -> Markup:
    """Return the button that accepts all, and the question before it does."""
    many = counted(found.acceptable, "row")
    carried = {**_values(query), "expected": str(found.acceptable), "fits": str(found.fits)}
    sure = tag(
        "dialog",
        tag("h2", f"Accept the proposed labels of {many}?", id="sure-title"),
        sentence(
            f"Gives {counted(found.acceptable, 'verdict')} in your name, on all pages of this list. {ACCEPTED_IN_BULK}"
        ),
        tag(
            "div",
            post_form("accept", carried, tag("button", f"Accept {many}", class_="strong")),
            tag("form", tag("button", "Cancel"), method="dialog"),
            class_="buttons",
        ),
        id="sure",
        aria_labelledby="sure-title",
    )
    opens = {"type": "button", "data_opens": "sure", "class_": "needs-script"}
    return joined(tag("button", f"Accept all {count(found.acceptable)} …", **opens), sure)


def _table(rows: Sequence[FoundRow]) -> Markup:
    titles = {"id": "", "text": "text-cell", "proposed": "", "confidence": "sure", "decision": "", "verdict": ""}
    head = [tag("th", title, scope="col", class_=kind or None) for title, kind in titles.items()]
    whole = tag("table", tag("thead", tag("tr", *head)), tag("tbody", *map(_row, rows)), class_="list")
    return tag("div", whole, class_="scroll card", tabindex="0", role="region", aria_label="Rows")


def _row(row: FoundRow) -> Markup:
    sure = joined(bar(row.confidence), number(row.confidence)) if row.confidence is not None else DASH
    return tag(
        "tr",
        tag("th", tag("a", row.id, href=link("/row", id=row.id), data_go="", dir="auto"), scope="row"),
        tag("td", readable(clipped(row.text, PREVIEW)), dir="auto", class_="text-cell"),
        tag("td", chip("no label", kind="warn") if row.label is None else chip(row.label, dir="auto")),
        tag("td", tag("span", sure), class_="sure"),
        tag("td", row.decision or DASH, class_=f"decision {row.decision}"),
        tag("td", _verdict(row.reviewed, row.gold), class_="by-people"),
    )


def _verdict(reviewed: Reviewed | None, gold: str | None) -> Child:
    """Return what people say about a row, so that it cannot be taken for what models say."""
    if reviewed is None or not reviewed.by_reviewer:
        return joined("gold: ", user_text(gold)) if gold is not None else DASH
    names = tag("small", ", ".join(reviewed.by_reviewer), dir="auto")
    if reviewed.in_conflict:
        return joined(chip("reviewers differ", kind="warn"), " ", names)
    if reviewed.label is None:
        return joined(tag("span", "skipped", class_="quiet"), " ", names)
    return joined(chip("✓ ", user_text(reviewed.label), kind="good"), " ", names)


def _pages(found: FoundRows, query: Query) -> Markup | None:
    last = max((found.total - 1) // query.size, 0)
    if not last:
        return None
    first = query.page * query.size
    steps = [
        tag("a", title, href=address_of(query, page), data_go="", rel=kind, class_="button")
        for page, title, kind in ((query.page - 1, "← Before", "prev"), (query.page + 1, "After →", "next"))
        if 0 <= page <= last
    ]
    shown = f"{count(first + 1)} to {count(min(first + query.size, found.total))} of {count(found.total)}"
    return tag("nav", tag("span", shown), *steps, class_="pages", aria_label="Pages of the list")
