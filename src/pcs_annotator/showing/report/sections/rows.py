"""The rows: a list to search and filter; each row opens to show its variants and votes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import numpy as np

from pcs_annotator.base.text import counted
from pcs_annotator.core.arrays import Floats
from pcs_annotator.core.outcome import Outcome
from pcs_annotator.core.review import Reviewed
from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.core.vote import ABSTAINED
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.diff import clipped, marked
from pcs_annotator.showing.drawings import bar
from pcs_annotator.showing.formats import count, number
from pcs_annotator.showing.markup import Child, Markup, joined, sentence, tag, user_text
from pcs_annotator.showing.report.view import LOW, Row, Selection, View, select

PREVIEW = 220
LONG_ID = 8
MOST_SCORES = 6
MOST_GRADES = 4
LEAST_GRADE = 0.005
NOT_THE_HIGHEST = "The label is the most probable one after calibration, not the one with the highest score."
SAME_TEXT = "same text, question put differently"
DECISIONS = (("accept", "accepted"), ("agree", "answers agree"), ("review", "to review"), ("none", "no label"))
BY_WHOM = (("reviewed", "reviewed by people"), ("models", "labelled by models alone"))
FILTERS = (("wrong", "differs from gold"), ("low", f"low {{measure}} (below {LOW:.2f})"))
CAUTION = (
    "The fit learned from the gold rows, so counting errors in this list is slightly optimistic; the cross-validated "
    "figures above are not."
)


def rows(view: View) -> b.Section:
    """Return the list of rows, or of the least certain ones when there are too many."""
    selection = select(view)
    columns = _columns(view)
    long_ids = ["long-ids"] if any(len(row.item.id) > LONG_ID for row in selection.rows) else []
    shape = "explorer" + "".join(f" with-{name}" for name in [*columns, *long_ids])
    titles = ["id", "text", "label", _measure(view), *columns]
    listed = explorer(titles, [_row(row, view, selection.room, columns) for row in selection.rows], shape)
    caution = b.note(CAUTION) if view.gold_rows else None
    which = b.text(_which(view, selection))
    return b.section("rows", "Rows", which, caution, _controls(selection, _measure(view)), listed)


def explorer(titles: Sequence[str], rows: Sequence[Markup], shape: str) -> Markup:
    """Return a list of rows with the titles of their columns, and what is said if none matches a filter."""
    return joined(
        tag(
            "div",
            tag("div", *(tag("span", title) for title in titles), class_="rowhead", aria_hidden="true"),
            tag("ol", *rows, class_="rows", id="list"),
            class_=shape,
        ),
        sentence("No matching rows.", kind="note", id="nothing", hidden=True),
        sentence("Only the first 40 rows are printed.", kind="note paper"),
    )


def _columns(view: View) -> tuple[str, ...]:
    """Return the optional columns that are not empty."""
    outcomes = view.result.outcomes
    filled = {
        "gold": bool(view.gold_rows),
        "verdict": bool(view.result.verdicts.by_row),
        "decision": any(outcome.decision for outcome in outcomes),
        "reason": any(outcome.reason for outcome in outcomes),
    }
    return tuple(name for name, applies in filled.items() if applies)


def _measure(view: View) -> str:
    return "confidence" if view.confident else "PCS"


def _which(view: View, selection: Selection) -> str:
    shown, total = len(selection.rows), len(view.result.outcomes)
    opening = "Open a row to see its variants and every vote; votes for the chosen label are in bold."
    if view.result.votes.grades is not None:
        opening += " Numbers beside a vote are the probabilities that the model gave to the labels."
    if shown == total:
        return f"All {counted(total, 'row')}. {opening}"
    some = "".join(
        f", including {count(rows)} {what}"
        for mark, what in (("accept", "accepted ones"), ("agree", "on which all answers agree"))
        if (rows := selection.marked(mark))
    )
    file = view.result.folder.labels.name
    return f"The {count(shown)} least certain of {count(total)} rows{some}; {file} has all of them. {opening}"


def _controls(selection: Selection, measure: str) -> Markup:
    filters = [(name, title.format(measure=measure)) for name, title in FILTERS]
    return controls(
        "file order",
        filter_buttons("Decision", "all decisions", DECISIONS, selection),
        filter_buttons("Which rows", "all rows", filters, selection),
        filter_buttons("Labelled by", "by people or models", BY_WHOM, selection),
    )


def controls(usual_order: str, *filters: Markup | None) -> Markup:
    """Return what finds, orders and filters the rows of a page; shown only where its script runs."""
    search = tag("input", type="search", id="search", placeholder="Search texts, labels, ids", aria_label="Search rows")
    order = tag(
        "select",
        tag("option", usual_order, value="file"),
        tag("option", "least certain first", value="sure"),
        id="order",
        aria_label="Order of rows",
    )
    return tag(
        "div",
        tag("div", search, order, class_="find"),
        *filters,
        tag("p", id="found", class_="note", role="status"),
        class_="controls",
        id="controls",
        hidden=True,
    )


def filter_buttons(
    group: str, everything: str, filters: Sequence[tuple[str, str]], selection: Selection
) -> Markup | None:
    """Return buttons of which one is pressed; None if no row matches any of them."""
    totals = {name: selection.marked(name) for name, _ in filters}
    if not any(totals.values()):
        return None
    buttons = [_button("all", everything, len(selection.rows), pressed=True)]
    buttons += [_button(name, title, totals[name]) for name, title in filters if totals[name]]
    return tag("div", *buttons, class_="filters", role="group", aria_label=group)


def _button(name: str, title: str, total: int, *, pressed: bool = False) -> Markup:
    state = "true" if pressed else "false"
    return tag("button", title, " ", tag("b", count(total)), type="button", data_filter=name, aria_pressed=state)


def _row(row: Row, view: View, room: int, columns: Sequence[str]) -> Markup:
    cells = [label_chip(row.outcome), _certainty(row, view), *(COLUMNS[name](row) for name in columns)]
    return row_entry(row, cells, _opened(row, view, room), room)


def row_entry(row: Row, cells: Sequence[Child], opened: Markup, room: int) -> Markup:
    """Return a row of the list: its id, the beginning of its text and some cells, and what it opens to."""
    preview = clipped(row.item.text, min(PREVIEW, room)) or "(empty text)"
    text = tag("span", preview, class_="text", dir="auto")
    summary = tag("summary", tag("span", row.item.id, class_="id", dir="auto"), text, *cells)
    found, sure = " ".join(row.marks) or None, f"{row.certainty:.4f}"
    return tag("li", tag("details", summary, opened), data_is=found, data_sure=sure)


def label_chip(outcome: Outcome) -> Markup:
    """Return the label of a row, or that it has none."""
    if outcome.label is None:
        return tag("span", tag("span", "no label", class_="chip warn"), class_="label")
    return tag("span", tag("span", outcome.label, class_="chip", dir="auto"), class_="label")


def _certainty(row: Row, view: View) -> Markup:
    outcome = row.outcome
    if outcome.label is None:
        return tag("span", "–", class_="sure")
    value = outcome.confidence if view.confident else outcome.scores[outcome.label]
    kind = "bar doubt" if "low" in row.marks else "bar"
    return tag("span", bar(value or 0.0, kind=kind), number(value), class_="sure")


def _gold(row: Row) -> Markup:
    if row.gold is None:
        return tag("span", class_="gold")
    if row.outcome.label is None:
        return tag("span", user_text(row.gold), class_="gold")
    if "wrong" in row.marks:
        return tag("span", tag("span", "✗ ", aria_hidden="true"), user_text(row.gold), class_="gold wrong")
    right = tag("span", "right", class_="unseen")
    return tag("span", tag("span", "✓", aria_hidden="true"), right, class_="gold right")


def _verdict(row: Row) -> Markup:
    if row.reviewed is None:
        return tag("span", class_="verdict")
    if row.reviewed.deciding is None:
        return tag("span", "people differ" if row.reviewed.in_conflict else "skipped", class_="verdict quiet")
    by = tag("small", row.reviewed.deciding.reviewer, dir="auto")
    return tag("span", user_text(row.reviewed.label or ""), by, class_="verdict")


COLUMNS: Mapping[str, Callable[[Row], Markup]] = {
    "gold": _gold,
    "verdict": _verdict,
    "decision": lambda row: tag("span", row.outcome.decision, class_=f"decision {row.outcome.decision or ''}"),
    "reason": lambda row: tag("span", row.outcome.reason, class_="reason", dir="auto"),
}


def whole_text(text: str, room: int) -> Markup | None:
    """Return the text of a row if its beginning alone was shown."""
    return tag("p", clipped(text, room), class_="whole", dir="auto") if len(text) > min(PREVIEW, room) else None


def _opened(row: Row, view: View, room: int) -> Markup:
    whole = whole_text(row.item.text, room)
    cut = f" (the first {count(room)} characters)" if len(row.item.text) > room else ""
    outcome, highest = row.outcome, max(row.outcome.scores.values(), default=0.0)
    return tag(
        "div",
        tag("h3", f"Text{cut}") if whole else None,
        whole,
        _verdicts(row.reviewed),
        tag("h3", "Variants and votes"),
        votes_table(row, view, room),
        tag("h3", "Perceived Confidence Score per label"),
        _scores(outcome),
        sentence(NOT_THE_HIGHEST, kind="note") if outcome.label and outcome.scores[outcome.label] < highest else None,
        class_="more",
    )


def _verdicts(reviewed: Reviewed | None) -> Markup | None:
    """Return what every person said, with their notes."""
    if reviewed is None:
        return None
    entries = []
    for name, one in reviewed.by_reviewer.items():
        note = joined(" · ", user_text(one.note)) if one.note else None
        entries.append(tag("li", user_text(name), ": ", "skipped" if one.label is None else user_text(one.label), note))
    return joined(tag("h3", "Verdicts"), tag("ul", *entries))


def _scores(outcome: Outcome) -> Markup:
    top = sorted(outcome.scores.items(), key=lambda pair: -pair[1])
    entries = [
        tag("li", user_text(label), bar(score), tag("span", number(score), class_="number"))
        for label, score in top[:MOST_SCORES]
    ]
    more = len(top) - MOST_SCORES
    return tag("ul", *entries, tag("li", f"and {more} more") if more > 0 else None, class_="scores")


def votes_table(row: Row, view: View, room: int) -> Markup:
    """Return the variants of a row, one per relation, each with the votes of all models."""
    votes = view.result.votes
    lines = [
        tag(
            "tr",
            tag("th", relation, scope="row", dir="auto"),
            tag("td", _shown(row, relation, room), class_="variant", dir="auto"),
            *(_vote(row, annotator, position, view) for annotator in range(len(votes.annotators))),
        )
        for position, relation in enumerate(votes.relations)
    ]
    whole = tag("table", _votes_head(tuple(votes.annotators)), tag("tbody", *lines), class_="votes")
    return tag("div", whole, class_="scroll", tabindex="0")


@lru_cache(maxsize=16)
def _votes_head(annotators: tuple[str, ...]) -> Markup:
    titles = [tag("th", name, scope="col", dir="auto") for name in ("relation", "text", *annotators)]
    return tag("thead", tag("tr", *titles))


def _shown(row: Row, relation: str, room: int) -> Markup:
    if relation == ORIGINAL:
        return tag("span", clipped(row.item.text, room) or "(empty text)")
    variant = row.variants.get(relation)
    if variant is None:
        return tag("span", "no variant recorded", class_="quiet")
    if variant.status == "original":
        return tag("span", SAME_TEXT, class_="quiet")
    if variant.text is not None:
        return marked(row.item.text, variant.text, room)
    why = f": {clipped(variant.reason, room)}" if variant.reason else ""
    refused = variant.refused and tag("span", marked(row.item.text, variant.refused, room), class_="refused")
    return joined(tag("span", f"{variant.status.replace('_', ' ')}{why}", class_="quiet"), refused or None)


def _vote(row: Row, annotator: int, relation: int, view: View) -> Markup:
    """Return what a model answered under a relation."""
    name = view.result.votes.annotators[annotator]
    if row.grades is not None and not np.isnan(row.grades[annotator, relation]).any():
        return _graded_cell(row.grades[annotator, relation], view, row.outcome.label, name)
    draws = tuple(row.codes[annotator, relation].tolist())
    return _cell(draws, tuple(view.result.votes.labels), row.outcome.label, name)


def _graded_cell(grades: Floats, view: View, label: str | None, annotator: str) -> Markup:
    """Return the probability of each label, the most probable first; the least probable ones are left out."""
    labels = view.result.votes.labels
    order = np.argsort(-grades, kind="stable").tolist()
    top, *others = order
    known = [code for code in others if grades[code] >= LEAST_GRADE]
    rest = [f"{labels[code]} {number(float(grades[code]))}" for code in known[: MOST_GRADES - 1]]
    rest += ["…"] if len(known) >= MOST_GRADES else []
    return tag(
        "td",
        f"{labels[top]} {number(float(grades[top]))} ",
        tag("small", ", ".join(rest)) if rest else None,
        class_=f"vote graded {'yes' if labels[top] == label else 'no'}",
        data_by=annotator,
        dir="auto",
    )


@lru_cache(maxsize=4096)
def _cell(draws: tuple[int, ...], labels: tuple[str, ...], label: str | None, annotator: str) -> Markup:
    """Return one vote or, with several draws, how often each label was given."""
    given = Counter(code for code in draws if code >= 0)
    if not given:
        if ABSTAINED in draws:
            return tag("td", "no label", class_="vote silent", data_by=annotator)
        return tag("td", "–", class_="vote unasked", data_by=annotator)
    top = given.most_common()
    agrees = labels[top[0][0]] == label
    text = ", ".join(labels[code] if len(draws) == 1 else f"{labels[code]} {times}×" for code, times in top)
    return tag("td", text, class_="vote yes" if agrees else "vote no", data_by=annotator, dir="auto")
