"""The bulk view: all rows of a query, filters that apply at once, and one button to accept what is proposed."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from math import isfinite
from typing import Any, Literal, NamedTuple

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.base.text import counted
from pcs_annotator.core.outcome import Decision
from pcs_annotator.core.review import Reviewed
from pcs_annotator.faces.review.forms import one_of
from pcs_annotator.faces.review.item import DECIDED, readable
from pcs_annotator.faces.review.layout import chip, link, post_form, undo_button
from pcs_annotator.reviewing.values import FoundRow, FoundRows, Query, Sort
from pcs_annotator.showing.diff import clipped
from pcs_annotator.showing.formats import DASH, count, number
from pcs_annotator.showing.markup import Child, Markup, joined, sentence, tag, user_text
from pcs_annotator.showing.to_html import bar

PREVIEW = 240
SORTS: Mapping[Sort, str] = {
    "row": "as in the data",
    "doubtful": "least certain first",
    "certain": "most certain first",
    "recent": "latest verdicts first",
}
DECISIONS: Mapping[Decision | Literal["none", ""], str] = {"": "any", **DECIDED, "none": "none"}
FLAGS = {"": None, "yes": True, "no": False}
BY_CHIPS = ("variable", "label", "decision", "disagreement", "reviewed", "conflict")  # filters without a field
COLUMN = "column."  # before the name of a user's column in an address
ACCEPTED_IN_BULK = (
    "They count as chosen by you: they correct labels and teach weights, but nothing may be estimated from them, and "
    "they support no promise. U undoes all of them at once."
)


class Choices(NamedTuple):
    """What filters offer: the task's labels, the user's columns, and the people who have reviewed."""

    labels: Sequence[str]
    columns: Sequence[str]
    reviewers: Sequence[str]
    variables: Sequence[str] = ()  # those of a codebook


def query_of(given: Mapping[str, str]) -> Query:
    """Return the query in an address or a form.

    Raises:
        ConfigError: A value is not a number, or not one of those to choose from.
    """
    filters: dict[str, Any] = {
        name: given.get(name, "") for name in ("variable", "label", "reviewer", "verdict", "text")
    }
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
        _chips(found, query, choices),
        _filters(query, choices),
        _totals(found, query),
        _table(found.rows) if found.rows else sentence("No row matches: clear a filter.", kind="card"),
        _pages(found, query),
        class_="bulk",
    )


def _chips(found: FoundRows, query: Query, choices: Choices) -> Markup:
    """Return filters that a click sets or clears: labels with their numbers, decisions, and what people did."""
    labels = {
        label: f"{label} {count(times)}" for label, times in sorted(found.labels.items(), key=lambda one: -one[1])
    }
    groups: Mapping[str, tuple[str, Mapping[Any, str]]] = {
        "Variable": ("variable", {name: name for name in choices.variables}),
        "Proposed": ("label", {query.label: query.label, **labels} if query.label else labels),
        "Decision": ("decision", {name: title for name, title in DECISIONS.items() if name}),
        "Models": ("disagreement", {True: "disagree", False: "agree"}),
        "Verdict": ("reviewed", {False: "none yet", True: "given"}),
        "Reviewers": ("conflict", {True: "differ"}),
    }
    lists = [
        tag(
            "li",
            tag("span", title, class_="quiet"),
            *(_toggle(query, name, value, shown) for value, shown in options.items()),
        )
        for title, (name, options) in groups.items()
        if options
    ]
    return tag("ul", *lists, class_="chips", aria_label="Filters that apply at once")


def _toggle(query: Query, name: str, value: Any, shown: str) -> Markup:
    """Return the link that sets a filter, or clears it if it is set."""
    on = getattr(query, name) == value
    unset = None if isinstance(value, bool) else ""
    changed: dict[str, Any] = {name: unset if on else value, "page": 0}
    if name == "variable":  # it has other labels
        changed |= {"label": "", "verdict": ""}
    there = address_of(replace(query, **changed))
    keep = f"{name}={_written(value)}"
    marks = {"data_go": "", "data_keep": keep, "class_": "chip toggle", "aria_current": "true" if on else None}
    return tag("a", user_text(shown), tag("span", " ×", aria_hidden="true") if on else None, href=there, **marks)


def _filters(query: Query, choices: Choices) -> Markup:
    """Return the fields, which apply as soon as one is changed."""
    labels = {"": "any", **{label: label for label in choices.labels}}
    people = {"": "anybody", **{name: name for name in choices.reviewers}}
    shown = [
        _text("Text contains", "text", query.text),
        _range("Confidence", query),
        _choice("Verdict", "verdict", labels, query.verdict),
        _choice("Verdict by", "reviewer", people, query.reviewer),
        _choice("Order", "sort", SORTS, query.sort),
    ]
    own = [_text(f"{name} is", COLUMN + name, query.columns.get(name, "")) for name in choices.columns]
    values = _values(query)
    by_chips = {name: values[name] for name in BY_CHIPS if name in values}
    form = tag(
        "form",
        *(tag("input", type="hidden", name_=name, value=value) for name, value in by_chips.items()),
        *shown,
        *own,
        tag("noscript", tag("button", "Show", class_="strong")),
        action="/rows",
        class_="fields",
        aria_label="Filters",
        data_live="",
    )
    return tag("details", tag("summary", "More filters"), form, open=bool(values.keys() - {*BY_CHIPS, "page"}))


def _text(title: str, name: str, value: str) -> Markup:
    field = tag("input", name_=name, value=value, dir="auto", data_keep=name)
    return tag("label", tag("span", title, dir="auto"), field)


def _choice(title: str, name: str, options: Mapping[Any, str], value: str) -> Markup:
    entries = [tag("option", shown, value=key, selected=key == value) for key, shown in options.items()]
    return tag("label", tag("span", title), tag("select", *entries, name_=name, data_keep=name))


def _range(title: str, query: Query) -> Markup:
    ends = [
        tag(
            "input",
            name_=name,
            value=_written(value),
            inputmode="decimal",
            placeholder=hint,
            data_keep=name,
            aria_label=f"{title}, {said}",
        )
        for name, value, hint, said in (("least", query.least, "0", "at least"), ("most", query.most, "1", "at most"))
    ]
    return tag(
        "div", tag("span", title), tag("span", ends[0], "–", ends[1], class_="range"), role="group", aria_label=title
    )


def _totals(found: FoundRows, query: Query) -> Markup:
    clear = tag("a", "clear all filters", href="/rows", data_go="") if _values(query) else None
    accept = _accept(found, query) if found.acceptable else None
    if not query.narrows:
        accept = tag("span", "Filter the list to accept labels together.", class_="quiet")
    return tag(
        "div",
        tag("p", tag("b", counted(found.total, "row")), clear),
        tag("div", accept, undo_button(), class_="buttons"),
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
            f"Gives {counted(found.acceptable, 'verdict')} in your name, on all pages of this list; rows with a gold "
            f"label or a verdict stay as they are. {ACCEPTED_IN_BULK}"
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
