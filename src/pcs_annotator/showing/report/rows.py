"""The rows: a list to search, filter and order; each row opens to show its variants and votes.

The rows are data on the page, not elements: its script (`explore.js`) shows 25 at a time.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pcs_annotator.base.text import counted, series, short_names
from pcs_annotator.core.events import Reviewed
from pcs_annotator.core.outcome import Outcome
from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.core.votes import ABSTAINED, NOT_ASKED
from pcs_annotator.judging.text_model import TellingWord
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.diff import changes, clipped
from pcs_annotator.showing.formats import count
from pcs_annotator.showing.markup import Markup, joined, printable, sentence, tag
from pcs_annotator.showing.report.replies import compact_json, replies
from pcs_annotator.showing.report.view import LOW, Row, Selection, View, certainty, select

LONG_ID = 8
MOST_GRADES = 5
LEAST_GRADE = 0.005
THE_TEXT, THE_SAME_TEXT = 0, 1
"""What stands for a variant that is the text itself: as the original, or under a question put differently."""
DECISIONS = (
    ("review", "to review"),
    ("accept", "accepted"),
    ("agree", "answers agree"),
    ("people", "labelled by people"),
    ("none", "no label"),
)
BY_WHOM = (("reviewed", "reviewed by people"), ("models", "labelled by models alone"))
FILTERS = (("wrong", "differs from gold after learning from it"), ("low", f"low {{measure}} (below {LOW:.2f})"))
ORDERS = (
    ("review", "to review first"),
    ("file", "as in the file"),
    ("sure", "least certain first"),
    ("surest", "most certain first"),
    ("label", "by label"),
)
CAUTION = "The fit learned from the gold rows, so their labels here are better than those of other rows."
Cell = tuple[str, str | None, float | None, str]
"""A cell of the list: its class, what it says, a share to draw beside it, and what stands below in small print."""
Entry = dict[str, Any]  # a row of the list, as data for the script


def rows(view: View) -> b.Section | None:
    """Return the list of rows, or of the least certain ones when there are too many; None if there are none."""
    selection = select(view)
    if not selection.rows:
        return None
    columns, words = _columns(view), _words(view, selection)
    entries = [
        entry([row], [said(row.outcome), *(CELLS[name](row) for name in columns)], selection.room) | telling
        for row, telling in zip(selection.rows, words, strict=True)
    ]
    replied = replies(view, selection.rows, len(compact_json(entries).encode("utf-8", "replace")))
    for shown in entries:
        if asked := replied.by_row.get(shown["id"]):
            shown["asked"] = asked
    titles = ["id", "text", f"label and {_measure(view)}", *columns]
    return b.section(
        f"{view.prefix}rows",
        "Rows",
        b.text(_which(view, selection), _whose_replies(len(replied.by_row), len(entries))),
        _controls(view, selection),
        explorer(titles, entries, [("", view)], shape(titles, selection), view.prefix, replied.pool),
        b.note(CAUTION) if view.gold_rows else None,
    )


def shape(titles: Sequence[str], selection: Selection) -> str:
    """Return the class of a list with these columns."""
    long_ids = ["long-ids"] if any(len(row.item.id) > LONG_ID for row in selection.rows) else []
    return " ".join(["explorer", *(f"with-{name}" for name in [*titles[2:], *long_ids] if " " not in name)])


def explorer(
    titles: Sequence[str],
    entries: Sequence[Entry],
    sides: Sequence[tuple[str, View]],
    kind: str,
    prefix: str = "",
    pool: Sequence[Any] = (),
) -> Markup:
    """Return the place of a list of rows, and its data: the rows, and who answered what in each run."""
    asked = []
    for title, view in sides:
        votes = view.result.votes
        names = {"annotators": short_names(votes.annotators), "relations": votes.relations, "labels": votes.labels}
        asked.append({"title": title, **names})
    values = {"titles": titles, "sides": asked, "rows": entries, **({"pool": pool} if pool else {})}
    safe = printable(compact_json(values)).replace("<", "\\u003c")  # a script ends at the first "</script"
    head = tag("div", *(tag("span", title) for title in titles), class_="rowhead", aria_hidden="true")
    return joined(
        tag("noscript", sentence("The rows are listed by a script, which this browser does not run.", kind="note")),
        tag("div", head, tag("ol", class_="rows", id=f"{prefix}list"), class_=kind),
        sentence("No matching rows.", kind="note", id=f"{prefix}nothing", hidden=True),
        tag("button", "Show more", type="button", id=f"{prefix}more", hidden=True, class_="show-more"),
        tag("script", Markup(safe), type="application/json", id=f"{prefix}data"),
    )


def entry(shown: Sequence[Row], cells: Sequence[Cell], room: int) -> Entry:
    """Return a row of the list: its text, some cells, and its variants and votes in each run."""
    row = shown[0]
    return {
        "id": row.item.id,
        "text": clipped(row.item.text, room),
        "label": row.outcome.label,
        "sure": round(row.certainty, 4),
        "is": list(row.marks),
        "cells": cells,
        "votes": [_votes(verdict, room) for verdict in shown],
        **({"people": _people(row.reviewed)} if row.reviewed else {}),
    }


def said(outcome: Outcome) -> Cell:
    """Return the label of a row, or those that are tied, with its confidence."""
    label = series(outcome.tied, "or") if outcome.tied else outcome.label
    return "said", label, None if outcome.label is None else round(certainty(outcome), 3), ""


def _columns(view: View) -> list[str]:
    decided = any(outcome.decision or outcome.reason for outcome in view.result.outcomes)
    filled = {"gold": view.gold_rows, "verdict": view.result.verdicts.by_row, "decision": decided}
    return [name for name, applies in filled.items() if applies]


def _measure(view: View) -> str:
    return "confidence" if view.confident else "score"


def _which(view: View, selection: Selection) -> str:
    shown, total = len(selection.rows), len(view.result.outcomes)
    opening = "Open a row to see every question and answer."
    if view.result.votes.grades is not None:
        opening += " Numbers beside an answer are the probabilities that the model gave to the labels."
    if shown == total:
        return f"All {counted(total, 'row')}. {opening}"
    some, file = "", view.result.folder.labels.name
    for mark, what in (("accept", "accepted ones"), ("agree", "on which all answers agree")):
        if rows := selection.marked(mark):
            some += f", including {count(rows)} {what}"
    return f"The {count(shown)} least certain of {count(total)} rows{some}; {file} has all of them. {opening}"


def _whose_replies(rows: int, listed: int) -> str:
    if not rows:
        return ""
    whose = "" if rows == listed else f" of the {counted(rows, 'least certain row')}"
    return f" Prompts and replies{whose} are below the answers, long texts shortened; pcs review shows all in full."


def _words(view: View, selection: Selection) -> list[Entry]:
    """Return where the words are that speak for or against each label: start, and length, negative if against."""
    model, labels = view.result.model.text, view.result.votes.labels
    texts = [clipped(row.item.text, selection.room) if row.outcome.leaf and model else "" for row in selection.rows]
    codes = [labels.index(row.outcome.leaf or labels[0]) for row in selection.rows]
    telling = model.telling_words(texts, codes) if model else [[] for _ in texts]
    shown = zip(texts, telling, strict=True)
    spans = ([number for word in words for number in _span(text, word)] for text, words in shown)
    return [{"words": span} if span else {} for span in spans]


def _span(text: str, word: TellingWord) -> tuple[int, int]:
    """Return start and length as scripts count them."""
    parts = text[: word.start], text[word.start : word.end]
    start, length = (len(part.encode("utf-16-le", "surrogatepass")) // 2 for part in parts)
    return start, length if word.contribution > 0 else -length


def _controls(view: View, selection: Selection) -> Markup:
    label_counts = Counter(row.outcome.label for row in selection.rows)
    labels = [(name, f"{name} ({count(label_counts[name])})") for name in view.task.labels if label_counts[name]]
    filters = [(name, title.format(measure=_measure(view))) for name, title in FILTERS]
    return controls(
        view.prefix,
        ORDERS if any(row.outcome.decision for row in selection.rows) else ORDERS[1:],
        _choice(f"{view.prefix}label", "Label", [("", "any label"), *labels]) if len(labels) > 1 else None,
        filter_buttons("Decision", DECISIONS, selection),
        filter_buttons("Which rows", filters, selection),
        filter_buttons("Labelled by", BY_WHOM, selection),
    )


def controls(prefix: str, orders: Sequence[tuple[str, str]], labels: Markup | None, *filters: Markup | None) -> Markup:
    """Return what finds, orders and filters the rows of a page; shown only where its script runs."""
    words = {"placeholder": "Search texts, labels, ids", "aria_label": "Search rows"}
    search = tag("input", type="search", id=f"{prefix}search", **words)
    find = tag("div", search, labels, _choice(f"{prefix}order", "Order of rows", orders), class_="find")
    matches = tag("p", id=f"{prefix}found", class_="note", role="status")
    shown = (find, tag("div", *filters, matches, class_="filters"))
    return tag("div", *shown, class_="controls", id=f"{prefix}controls", hidden=True)


def _choice(name: str, title: str, options: Sequence[tuple[str, str]]) -> Markup:
    choices = [tag("option", caption, value=value) for value, caption in options]
    return tag("select", *choices, id=name, aria_label=title)


def filter_buttons(group: str, filters: Sequence[tuple[str, str]], selection: Selection) -> Markup | None:
    """Return buttons of which at most one is pressed; None if they would not tell rows apart."""
    listed = {name: selection.marked(name) for name, _ in filters}
    if not any(0 < times < len(selection.rows) for times in listed.values()):
        return None
    buttons = []
    for name, title in filters:
        total = selection.total(name)
        some = f" ({count(listed[name])} listed)" if listed[name] < total else ""
        shown = (title, " ", tag("b", count(total)), some)
        buttons += [tag("button", *shown, type="button", data_filter=name, aria_pressed="false")] if total else []
    return tag("div", *buttons, role="group", aria_label=group)


def _gold(row: Row) -> Cell:
    right = "" if row.gold is None or row.outcome.label is None else " wrong" if "wrong" in row.marks else " right"
    return f"gold{right}", row.gold, None, ""


def _verdict(row: Row) -> Cell:
    if row.reviewed is None:
        return "verdict", None, None, ""
    if row.reviewed.deciding is None:
        return "verdict quiet", "people differ" if row.reviewed.in_conflict else "skipped", None, ""
    return "verdict", row.reviewed.label, None, row.reviewed.deciding.reviewer


def _decision(row: Row) -> Cell:
    decision = row.outcome.decision
    return f"decision {decision or ''}".strip(), decision, None, row.outcome.reason


CELLS: Mapping[str, Callable[[Row], Cell]] = {"gold": _gold, "verdict": _verdict, "decision": _decision}


def _people(reviewed: Reviewed) -> list[str]:
    lines = []
    for name, verdict in reviewed.by_reviewer.items():
        label = "skipped" if verdict.label is None else verdict.label
        lines.append(f"{name}: {label}{f' · {verdict.note}' if verdict.note else ''}")
    return lines


def _votes(row: Row, room: int) -> list[Any]:
    """Return the label's place, and a line per relation: its variant, and the answer of every model."""
    votes = row.votes
    label = -1 if row.outcome.leaf is None else votes.labels.index(row.outcome.leaf)
    lines = [
        [_variant(row, relation, room), *(_vote(row, at, index) for at in range(len(votes.annotators)))]
        for index, relation in enumerate(votes.relations)
    ]
    return [label, lines]


def _variant(row: Row, relation: str, room: int) -> Any:
    """Return the text that was asked about, as what stands for it, or why there is none and its changes."""
    if relation == ORIGINAL:
        return THE_TEXT
    variant = row.variants.get(relation)
    if variant is None:
        return ["no variant recorded", []]
    if variant.status == "original":
        return THE_SAME_TEXT
    if variant.text is not None:
        return ["", changes(row.item.text, variant.text, room)]
    why = f": {clipped(variant.reason, room)}" if variant.reason else ""
    refused = changes(row.item.text, variant.refused, room) if variant.refused else []
    return [f"{variant.status.replace('_', ' ')}{why}", refused]


def _vote(row: Row, annotator: int, relation: int) -> Any:
    """Return an answer: the place of its label; with several draws or probabilities, those of the first labels."""
    if row.grades is not None and not np.isnan(row.grades[annotator, relation]).any():
        grades = row.grades[annotator, relation]
        first, *others = np.argsort(-grades, kind="stable").tolist()
        shown_codes = [first, *(code for code in others if grades[code] >= LEAST_GRADE)][:MOST_GRADES]
        return ["graded", *([code, round(float(grades[code]), 2)] for code in shown_codes)]
    draws = row.codes[annotator, relation].tolist()
    answers = Counter(code for code in draws if code >= 0).most_common()
    if not answers:
        return ABSTAINED if ABSTAINED in draws else NOT_ASKED
    return answers[0][0] if len(draws) == 1 else ["drawn", *map(list, answers)]
