"""The rows themselves: a list to search and filter, each with its variants and votes to unfold."""

from __future__ import annotations

from collections.abc import Sequence

from pcs_annotator.core.outcome import Outcome
from pcs_annotator.faces.report.bars import bar
from pcs_annotator.faces.report.diff import clipped
from pcs_annotator.faces.report.formats import count, counted, number
from pcs_annotator.faces.report.markup import Child, Markup, joined, section, sentence, tag
from pcs_annotator.faces.report.sections.votes import votes_table
from pcs_annotator.faces.report.selection import LOW, Row, Selection, select
from pcs_annotator.faces.report.view import View

PREVIEW = 220
MOST_SCORES = 6
FILTERS = (
    ("wrong", "wrong against gold"),
    ("low", f"low {{measure}} (below {LOW:.2f})"),
    ("review", "to review"),
    ("unlabelled", "without label"),
)


def rows(view: View) -> Markup:
    """Return the list of rows, or of the least certain ones when there are too many."""
    selection = select(view)
    columns = _columns(view)
    shape = "rows" + "".join(f" with-{name}" for name in columns)
    return section(
        "rows",
        "Row by row",
        sentence(_which(view, selection)),
        sentence(_caution(), kind="note") if view.gold_rows else None,
        _controls(selection, _measure(view)),
        _head(columns, view),
        tag("ol", *(_row(row, view, selection.room, columns) for row in selection.rows), class_=shape, id="list"),
        sentence("No row fits.", kind="note", id="nothing", hidden=True),
        sentence("On paper only the first 40 rows are listed.", kind="note paper"),
    )


def _columns(view: View) -> tuple[str, ...]:
    """Return which columns there is something to say in."""
    decided = any(outcome.decision for outcome in view.result.outcomes)
    return (*(("gold",) if view.gold_rows else ()), *(("decision",) if decided else ()))


def _measure(view: View) -> str:
    return "confidence" if view.calibrated else "PCS"


def _which(view: View, selection: Selection) -> str:
    shown, total = len(selection.rows), len(view.result.outcomes)
    unfold = "Unfold a row to see its variants and every vote; votes for the chosen label are set in bold."
    if shown == total:
        return f"All {counted(total, 'row')}. {unfold}"
    return f"The {count(shown)} least certain of {count(total)} rows; all of them are in labels.csv. {unfold}"


def _caution() -> str:
    return (
        "The gold rows took part in learning, so a count of wrong ones in this list flatters a little; the "
        "cross-validated figures above do not."
    )


def _controls(selection: Selection, measure: str) -> Markup:
    totals = {name: sum(name in row.marks for row in selection.rows) for name, _ in FILTERS}
    buttons = [_button("all", "all", len(selection.rows), pressed=True)]
    buttons += [_button(name, title.format(measure=measure), totals[name]) for name, title in FILTERS if totals[name]]
    search = tag("input", type="search", id="search", placeholder="Search texts, labels, ids", aria_label="Search rows")
    order = tag(
        "select",
        tag("option", "in the order of the file", value="file"),
        tag("option", "least certain first", value="sure"),
        id="order",
        aria_label="Order of rows",
    )
    return tag(
        "div",
        tag("div", search, order, class_="find"),
        tag("div", *buttons, class_="filters", role="group", aria_label="Which rows"),
        tag("p", id="found", class_="note", role="status"),
        class_="controls",
        id="controls",
        hidden=True,
    )


def _button(name: str, title: str, total: int, *, pressed: bool = False) -> Markup:
    state = "true" if pressed else "false"
    return tag("button", title, " ", tag("b", count(total)), type="button", data_filter=name, aria_pressed=state)


def _head(columns: Sequence[str], view: View) -> Markup:
    titles = ["id", "text", "label", _measure(view), *columns]
    return tag(
        "div", *(tag("span", title) for title in titles), class_=f"rowhead cols-{len(columns)}", aria_hidden="true"
    )


def _row(row: Row, view: View, room: int, columns: Sequence[str]) -> Markup:
    outcome = row.outcome
    summary = tag(
        "summary",
        tag("span", row.item.id, class_="id", dir="auto"),
        tag("span", clipped(row.item.text, min(PREVIEW, room)) or "(empty text)", class_="text", dir="auto"),
        _label(outcome),
        _certainty(row, view),
        *(_gold(row) if name == "gold" else tag("span", outcome.decision, class_="decision") for name in columns),
        class_=f"cols-{len(columns)}",
    )
    return tag(
        "li",
        tag("details", summary, _unfolded(row, view, room)),
        data_is=" ".join(row.marks) or None,
        data_sure=f"{row.certainty:.4f}",
    )


def _label(outcome: Outcome) -> Markup:
    if outcome.label is None:
        return tag("span", tag("span", "no label", class_="chip warn"), class_="label")
    return tag("span", tag("span", outcome.label, class_="chip", dir="auto"), class_="label")


def _certainty(row: Row, view: View) -> Markup:
    outcome = row.outcome
    if outcome.label is None:
        return tag("span", "–", class_="sure")
    value = outcome.confidence if view.calibrated else outcome.scores[outcome.label]
    kind = "bar doubt" if "low" in row.marks else "bar"
    return tag("span", bar(value or 0.0, kind=kind), number(value), class_="sure")


def _gold(row: Row) -> Markup:
    if row.gold is None:
        return tag("span", class_="gold")
    if "wrong" in row.marks:
        return tag("span", tag("span", "✗ ", aria_hidden="true"), tag("bdi", row.gold, dir="auto"), class_="gold wrong")
    right = tag("span", "right", class_="unseen")
    return tag("span", tag("span", "✓", aria_hidden="true"), right, class_="gold right")


def _unfolded(row: Row, view: View, room: int) -> Markup:
    text = row.item.text
    whole: Child = None
    if len(text) > min(PREVIEW, room):
        cut = f" (the first {count(room)} characters)" if len(text) > room else ""
        whole = joined(tag("h3", f"Text{cut}"), tag("p", clipped(text, room), class_="whole", dir="auto"))
    reason = sentence(f"{row.outcome.reason[:1].upper()}{row.outcome.reason[1:]}.") if row.outcome.reason else None
    return tag(
        "div",
        whole,
        reason,
        tag("h3", "Variants and votes"),
        votes_table(row, view, room),
        tag("h3", "Perceived Confidence Score of each label"),
        _scores(row.outcome),
        class_="more",
    )


def _scores(outcome: Outcome) -> Markup:
    top = sorted(outcome.scores.items(), key=lambda pair: -pair[1])
    entries = [
        tag("li", tag("bdi", label, dir="auto"), bar(score), tag("span", number(score), class_="number"))
        for label, score in top[:MOST_SCORES]
    ]
    more = len(top) - MOST_SCORES
    return tag("ul", *entries, tag("li", f"and {more} more") if more > 0 else None, class_="scores")
