"""`compare.html`: two sides on one page, made of the pieces of the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pcs_annotator.base.text import capital, counted
from pcs_annotator.judging.evaluation.figures import ABOUT_AUROC, ABOUT_ECE, about_intervals
from pcs_annotator.judging.metrics.metrics import Estimate
from pcs_annotator.judging.metrics.significance import BootstrapTest, p_text
from pcs_annotator.showing.report.diff import clipped, marked
from pcs_annotator.showing.report.document import STYLES, document, title_of
from pcs_annotator.showing.report.formats import (
    DASH,
    bar,
    count,
    dollars,
    interval,
    number,
    percent,
    signed,
    total_cost,
)
from pcs_annotator.showing.report.markup import (
    Child,
    Markup,
    figure,
    joined,
    section,
    sentence,
    table,
    tag,
    tile,
    user_text,
)
from pcs_annotator.showing.report.sections.answers import heat_cell, heat_table
from pcs_annotator.showing.report.sections.rows import PREVIEW, controls, filter_buttons, votes_table
from pcs_annotator.showing.report.view import MOST_CELLS, Row, Selection, View, certainty, rows_at, view_of
from pcs_annotator.studies.compare.comparison import SURE, Comparison, Example, Setting
from pcs_annotator.studies.compare.costs import PER_ROWS
from pcs_annotator.studies.compare.sides import Side
from pcs_annotator.studies.compare.verdict import promise_of, verdict
from pcs_annotator.tables.files import check_ending, make_way, refuse_existing, write_page
from pcs_annotator.version import __version__

MOST_EXAMPLES = 200
MOST_LABELS = 20
LONGEST_SETTING = 2_000
NAMES = ("A", "B")
FIGURES = (
    ("accuracy", "accuracy"),
    ("macro_f1", "macro F1"),
    ("auroc", "class AUROC"),
    ("auroc_confidence", "confidence AUROC"),
    ("ece_confidence", "ECE of confidence"),
    ("accuracy_at_80", "accuracy of the surest 80 %"),
)
FILTERS = (
    ("a-right", "only A is right"),
    ("b-right", "only B is right"),
    ("none-right", "neither is right"),
    ("sure", f"both are sure ({SURE} or more)"),
)
CAUTION = (
    "Labels here are those of the runs, which learned from the gold rows; the figures above are of rows that the fits "
    "did not see."
)


def write_comparison(found: Comparison, path: Path, *, replace: bool = False) -> Path:
    """Write the page; a file that is not a comparison of the same two is an error or, with `replace`, kept aside."""
    check_ending(path, (".html", ".htm"))
    page = render(found)
    if path.exists() and str(title_of(_name(found))).encode("utf-8", "replace") not in path.read_bytes():
        refuse_existing(path, replace=replace)
        make_way(path)
    write_page(path, page)
    return path


def render(found: Comparison) -> str:
    """Return the page; the same comparison gives the same page."""
    sections = [
        ("verdict", "Verdict", _verdict(found)),
        ("quality", "Quality", _quality(found)),
        ("labels", "Labels", _labels(found)),
        ("promises", "Promises", _promises(found)),
        ("cost", "Cost", _cost(found)),
        ("settings", "Settings", _settings(found)),
        ("rows", "Rows", _rows(found)),
    ]
    return document(_name(found), _header(found), sections, (*STYLES, "compare.css"))


def _name(found: Comparison) -> str:
    return f"{found.a.name} and {found.b.name}"


def _header(found: Comparison) -> Markup:
    sides = [_side(name, side) for name, side in zip(NAMES, found.sides, strict=True)]
    figures = found.figures
    tiles = [
        tile(count(found.rows), "rows compared", f"{counted(found.gold_rows, 'gold row')} among them"),
        tile(percent(found.differing, found.rows), "different labels", counted(found.differing, "row")),
    ]
    if figures is not None:
        tiles += [
            tile(number(one["accuracy"].value), f"accuracy of {name}", f"{interval(one['accuracy'].interval)} held out")
            for name, one in zip(NAMES, figures.figures, strict=True)
        ]
    tiles += [
        tile(
            count(one.calls) if one.usd is None else dollars(one.usd),
            f"cost of {name}" if one.usd is not None else f"calls of {name}",
            f"per {count(PER_ROWS)} rows",
        )
        for name, one in zip(NAMES, found.costs, strict=True)
    ]
    return tag(
        "header",
        tag("p", f"perceived-confidence {__version__} · comparison", class_="overline"),
        tag("h1", "A and B on the same rows"),
        tag("ul", *sides, class_="sides"),
        tag("div", *tiles, class_="tiles"),
    )


def _side(name: str, side: Side) -> Markup:
    votes, labelled = side.result.votes, ("models", "relations")
    axes = zip(labelled, (votes.annotators, votes.relations), strict=True)
    facts = [tag("small", f" · {what}: ", user_text(", ".join(names))) for what, names in axes]
    return tag("li", tag("b", name), user_text(side.name), *facts)


def _verdict(found: Comparison) -> Markup:
    said = [tag("li", one) for one in verdict(found)]
    notes = [sentence(user_text(note, "span"), kind="note") for note in found.notes]
    return section("verdict", "Verdict", tag("ul", *said, class_="spoken"), *notes)


def _quality(found: Comparison) -> Markup:
    figures = found.figures
    if figures is None:
        why = sentence(f"{capital(found.no_figures.rstrip('.'))}.")
        unknown = tag("div", sentence(tag("strong", "Not known yet.")), why, class_="callout")
        return section("quality", "Quality", unknown)
    tests = {"accuracy": figures.accuracy, "auroc": figures.auroc}
    rows = [
        [title, *(_figure(one.get(name)) for one in figures.figures), *_difference(tests.get(name))]
        for name, title in FIGURES
    ]
    columns = [("Figure", ""), *((name, "number") for name in (*NAMES, "B − A", "p"))]
    right = figures.right
    mcnemar = (
        f"Of {counted(figures.n, 'gold row')}, both are right on {count(right.both)}, only A on "
        f"{count(right.only_first)}, only B on {count(right.only_second)}, and neither on {count(right.neither)}: "
        f"{p_text(figures.mcnemar)} by McNemar's exact test."
    )
    delong = "" if figures.delong is None else f" Class AUROC by DeLong's test: {p_text(figures.delong.p_value)}."
    how = figures.how
    return section(
        "quality",
        "Quality",
        sentence(
            f"Cross-validated on {counted(figures.n, 'gold row')} in {how.folds} folds, {how.repeats} times, with the "
            "same folds for both: each row is labelled by what was learned without it."
        ),
        table(columns, rows, kind="two"),
        sentence(mcnemar, delong),
        sentence(
            f"p is of a paired bootstrap test, from which the intervals come, too. {about_intervals(how.resamples)} "
            f"McNemar's test takes the labels as they are. {ABOUT_AUROC} {ABOUT_ECE}",
            kind="note",
        ),
    )


def _figure(found: Estimate | None) -> Child:
    if found is None:
        return DASH
    return joined(number(found.value, 3), " ", tag("small", interval(found.interval, 3)))


def _difference(test: BootstrapTest | None) -> list[Child]:
    if test is None:
        return ["", ""]
    shown = joined(signed(test.difference), " ", tag("small", interval(test.interval, 3)))
    return [shown, p_text(test.p_value).removeprefix("p ").removeprefix("= ")]


def _labels(found: Comparison) -> Markup:
    names = [*found.labels, *(["no label"] if found.table[-1].any() or found.table[:, -1].any() else [])]
    agreed = sentence(
        f"Rows by the label of A (down) and of B (across). On {count(found.rows - found.differing)} of "
        f"{counted(found.rows, 'row')} both say the same."
    )
    if len(names) > MOST_LABELS:
        return section("labels", "Labels", agreed, _changes(found))
    head = [tag("th", "A ↓ B →", scope="col")]
    head += [tag("th", user_text(name), scope="col", class_="number") for name in names]
    lines = [
        tag(
            "tr",
            tag("th", user_text(name), scope="row"),
            *(
                heat_cell(int(found.table[row, column]), int(found.table[row].sum()), same=row == column)
                for column in range(len(names))
            ),
        )
        for row, name in enumerate(names)
    ]
    return section("labels", "Labels", agreed, heat_table("Labels of A and B", head, lines))


def _changes(found: Comparison) -> Markup:
    """Return the most frequent pairs of different labels; a matrix of many labels would be mostly empty."""
    names = [*found.labels, "no label"]
    pairs = [
        (int(found.table[row, column]), names[row], names[column])
        for row in range(len(names))
        for column in range(len(names))
        if row != column and found.table[row, column]
    ]
    rows = [[user_text(one), user_text(other), count(times)] for times, one, other in sorted(pairs, reverse=True)]
    return table([("A", ""), ("B", ""), ("rows", "number")], rows[:MOST_LABELS])


def _promises(found: Comparison) -> Markup:
    sides = []
    for name, side in zip(NAMES, found.sides, strict=True):
        accepted = found.accepted(side)
        share = f"{percent(accepted, found.rows)} accepted ({counted(accepted, 'row')})"
        sides.append(figure(name, sentence(tag("strong", share)), sentence(f"{capital(promise_of(side))}.")))
    return section("promises", "Promises", tag("div", *sides, class_="pair"))


def _cost(found: Comparison) -> Markup:
    rows: list[list[Child]] = []
    for name, one in zip(NAMES, found.costs, strict=True):
        for bill in one.bills:
            tokens = (count(bill.input_tokens), count(bill.output_tokens))
            rows.append(
                [
                    joined(f"{name} · ", user_text(bill.model)),
                    bill.purpose,
                    count(bill.calls),
                    *tokens,
                    dollars(bill.usd),
                ]
            )
        prices = [bill.usd for bill in one.bills]
        rows.append([tag("b", f"{name}, total"), "", count(one.calls), *map(count, one.tokens), total_cost(prices)])
    numbers = ((title, "number") for title in ("calls", "tokens in", "tokens out", "cost"))
    return section(
        "cost",
        "Cost",
        sentence(
            f"Per {count(PER_ROWS)} rows, if every question were asked and paid for: also what a ledger already had, "
            "and whoever paid for it. Tokens are those of the calls of each run, on average."
        ),
        table([("Model", ""), ("purpose", ""), *numbers], rows),
    )


def _settings(found: Comparison) -> Markup:
    if not found.settings:
        return section("settings", "Settings that differ", sentence("None: the two runs have the same settings."))
    rows = [[one.name, user_text(one.first), _changed(one)] for one in found.settings]
    columns = [("Setting", ""), ("A", ""), ("B", "")]
    return section("settings", "Settings that differ", table(columns, rows, kind="differing"))


def _changed(one: Setting) -> Markup:
    """Return the setting of B, with what differs from A marked."""
    if DASH in (one.first, one.second):
        return user_text(one.second)
    return tag("span", marked(one.first, one.second, LONGEST_SETTING), dir="auto")


def _rows(found: Comparison) -> Markup:
    shown = _shown(found)
    views = [view_of(side.result) for side in found.sides]
    sides = [rows_at(view, [one.rows[at] for one in shown]) for at, view in enumerate(views)]
    marks = [
        replace(row, marks=one.marks, certainty=one.certainty) for row, one in zip(sides[0].rows, shown, strict=True)
    ]
    listed = Selection(rows=tuple(marks), room=min(side.room for side in sides))
    gold = any(one.gold is not None for one in shown)
    entries = [
        _row(one, (first, second), views, listed.room)
        for one, first, second in zip(shown, listed.rows, sides[1].rows, strict=True)
    ]
    titles = ("id", "text", *NAMES, *(["gold"] if gold else []))
    return section(
        "rows",
        "Rows on which they differ",
        sentence(_which(found, len(shown))),
        sentence(CAUTION, kind="note") if gold else None,
        controls("both sure first", filter_buttons("Which rows", "all rows", FILTERS, listed)),
        tag(
            "div",
            tag("div", *(tag("span", title) for title in titles), class_="rowhead", aria_hidden="true"),
            tag("ol", *entries, class_="rows", id="list"),
            class_="explorer compared with-gold" if gold else "explorer compared",
        ),
        sentence("No matching rows.", kind="note", id="nothing", hidden=True),
        sentence("Only the first 40 rows are printed.", kind="note paper"),
    )


def _shown(found: Comparison) -> list[Example]:
    """Return the rows to list, those on which both are sure first; if there are too many, those with gold go first."""
    cells = sum(len(side.result.votes.annotators) * len(side.result.votes.relations) for side in found.sides)
    most = max(20, min(MOST_EXAMPLES, MOST_CELLS // max(cells, 1)))
    kept = sorted(found.examples, key=lambda one: one.gold is None)[:most]
    return sorted(kept, key=lambda one: -one.certainty)


def _which(found: Comparison, shown: int) -> str:
    if not found.differing:
        return "None: both give the same label to every row."
    order = "Those on which both are sure come first. Open a row to see the votes of both."
    if shown == found.differing:
        return f"All {counted(shown, 'row')}. {order}"
    return f"{count(shown)} of {counted(found.differing, 'row')}, those with gold labels among them. {order}"


def _row(one: Example, rows: tuple[Row, Row], views: Sequence[View], room: int) -> Markup:
    text = rows[0].item.text
    summary = tag(
        "summary",
        tag("span", rows[0].item.id, class_="id", dir="auto"),
        tag("span", clipped(text, min(PREVIEW, room)) or "(empty text)", class_="text", dir="auto"),
        *(_said(one, at) for at in range(len(NAMES))),
        None if one.gold is None else tag("span", tag("bdi", one.gold, dir="auto"), class_="gold"),
    )
    votes = [figure(name, votes_table(row, view, room)) for name, row, view in zip(NAMES, rows, views, strict=True)]
    whole = tag("p", clipped(text, room), class_="whole", dir="auto") if len(text) > min(PREVIEW, room) else None
    more = tag("div", whole, *votes, class_="more")
    marks = " ".join(one.marks) or None
    return tag("li", tag("details", summary, more), data_is=marks, data_sure=f"{one.certainty:.4f}")


def _said(one: Example, at: int) -> Markup:
    outcome = one.outcomes[at]
    if outcome.label is None:
        return tag("span", tag("span", "no label", class_="chip warn"), class_="said", data_by=NAMES[at])
    right = outcome.label == one.gold
    sure = certainty(outcome)
    return tag(
        "span",
        tag("span", tag("span", outcome.label, class_="chip", dir="auto"), class_="label"),
        tag("span", "right", class_="unseen") if right else None,
        tag("span", bar(sure), number(sure), class_="sure"),
        class_="said right" if right else "said",
        data_by=NAMES[at],
    )
