"""Labels against gold, and people against each other: figures, confusion matrix, and precision and recall per label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pcs_annotator.base.text import capital, counted
from pcs_annotator.judging.evaluation.agreement import AgainstGold, AmongCoders
from pcs_annotator.judging.evaluation.agreement_tables import (
    ABOUT_F1,
    ABOUT_INTERVALS,
    ABOUT_KAPPA,
    ABOUT_PAIRS,
    MOST_NAMED,
    NO_LABEL,
    TITLES,
    about_replacing,
)
from pcs_annotator.judging.metrics.metrics import Estimate
from pcs_annotator.showing.report.formats import DASH, bar, count, interval, number, percent
from pcs_annotator.showing.report.markup import Child, Markup, figure, joined, section, sentence, table, tag, user_text
from pcs_annotator.showing.report.view import View

MEANS = ("precision", "recall", "f1")
HEAT = (0.02, 0.1, 0.2, 0.35)
"""Shares of a gold label from which on a wrong label is shown in a stronger colour."""
OTHER_ACCURACY = (
    "The label of a row is that of its mean probability over all splits, while Quality has means of figures over "
    "splits, so the two may differ by a little."
)


def agreement(view: View) -> Markup:
    """Return how far labels agree with gold, and people with each other; or why that is not known."""
    learned = view.result.learned
    found, coders = learned.against_gold, learned.among_coders
    parts: list[Markup | None] = []
    if found is None:
        why = learned.no_figures or "there are no figures of single labels: pcs fit makes them"
        parts.append(sentence(tag("strong", "Not known yet. "), f"{capital(why.rstrip('.'))}."))
    else:
        parts += _against_gold(found)
    if coders is not None:
        parts.append(_coders(coders))
    if found is not None:
        parts.append(sentence("For a paper: pcs table FOLDER writes this with a methods paragraph.", kind="note"))
    return section("agreement", "Agreement", *parts)


def _against_gold(found: AgainstGold) -> list[Markup | None]:
    rare = any("f1" not in figures and "recall" in figures for figures in found.by_label.values())
    silent = int(found.table[-1].sum())
    notes = [ABOUT_INTERVALS, ABOUT_KAPPA, OTHER_ACCURACY, *([ABOUT_F1] if rare else [])]
    if silent:
        notes.append(f"{counted(silent, 'row')} without a label count as wrong; κ and α leave them out.")
    return [
        sentence(
            f"Labels of {counted(found.n, 'gold row')} against gold, each given by fits that did not see the row's own "
            "gold label."
        ),
        _figures(found.figures),
        figure("Confusion matrix", _confusion(found)),
        figure("Per label", _by_label(found)),
        sentence(" ".join(notes), kind="note"),
    ]


def _figures(figures: Mapping[str, Estimate]) -> Markup:
    """Return the figures of all rows; means over labels are in the table of labels."""
    shown = {name: one for name, one in figures.items() if name.removesuffix("_weighted") not in MEANS}
    rows: list[list[Child]] = [[TITLES[name], _cell(one), count(one.n)] for name, one in shown.items()]
    return table([("Figure", ""), ("value", "number"), ("n", "number")], rows, kind="figures narrow")


def _confusion(found: AgainstGold) -> Markup:
    """Return a line per label and a column per gold label; from some number of labels on, columns are numbered."""
    numbered = len(found.labels) > MOST_NAMED
    gold = found.table.sum(axis=0).tolist()
    heads = [
        tag("th", str(place) if numbered else user_text(label), scope="col", class_="number", title=label)
        for place, label in enumerate(found.labels, 1)
    ]
    names = [
        joined(tag("span", f"{place} ", class_="quiet") if numbered else None, user_text(label))
        for place, label in enumerate(found.labels, 1)
    ]
    lines = [
        tag("tr", tag("th", name, scope="row"), *_line(found, line, gold, numbered))
        for line, name in enumerate((*names, Markup(NO_LABEL)))
        if line < len(names) or found.table[line].any()
    ]
    lines.append(
        tag(
            "tr",
            tag("th", "all", scope="row"),
            *_totals(gold),
            tag("td", count(found.n), class_="number quiet"),
            class_="total",
        )
    )
    first = tag("th", "label ↓ gold →", scope="col")
    head = tag("tr", first, *heads, tag("th", "all", scope="col", class_="number"))
    whole = tag(
        "table",
        tag("thead", head),
        tag("tbody", *lines),
        class_="heat confusion many" if numbered else "heat confusion",
    )
    box = tag("div", whole, class_="scroll", tabindex="0", role="region", aria_label="Labels against gold")
    shares = (
        "Counts; point at a cell for its shares. Columns are gold labels by number."
        if numbered
        else "Counts; below them, the share of the gold label (column) and of the given label (line)."
    )
    return joined(box, sentence(f"{shares} Off the diagonal, colour shows the share of the gold label.", kind="note"))


def _line(found: AgainstGold, line: int, gold: Sequence[int], numbered: bool) -> list[Markup]:
    given = int(found.table[line].sum())
    cells = []
    for column, times in enumerate(found.table[line].tolist()):
        of_gold, of_label = percent(times, gold[column]), percent(times, given)
        kind = (
            "same"
            if line == column
            else f"heat-{sum(times > step * gold[column] for step in HEAT)}"
            if times
            else "quiet"
        )
        small = None if numbered or not times else tag("small", f"{of_gold} · {of_label}")
        said = f"{of_gold} of this gold label, {of_label} of this label" if times else None
        shown = "·" if numbered and not times else count(times)
        cells.append(tag("td", shown, small, class_=f"number {kind}", title=said))
    return [*cells, tag("td", count(given), class_="number quiet")]


def _totals(gold: Sequence[int]) -> list[Markup]:
    return [tag("td", count(times), class_="number quiet") for times in gold]


def _by_label(found: AgainstGold) -> Markup:
    columns = [
        ("Label", ""),
        ("precision", "number"),
        ("recall", "number"),
        ("F1", "number"),
        ("0 to 1", "chart axis"),
        ("labelled", "number"),
        ("gold", "number"),
    ]
    rows: list[list[Child]] = []
    for code, (label, figures) in enumerate(found.by_label.items()):
        said, true = int(found.table[code].sum()), int(found.table[:, code].sum())
        f1 = figures.get("f1")
        cells = [_cell(figures.get(name)) for name in MEANS]
        rows.append([user_text(label), *cells, bar(f1.value) if f1 else None, count(said), count(true)])
    for title, ending in (("mean of labels", ""), ("mean weighted by gold", "_weighted")):
        cells = [_cell(found.figures.get(f"{name}{ending}")) for name in MEANS]
        rows.append([tag("em", title), *cells, None, "", count(found.n)])
    return table(columns, rows, kind="figures")


def _coders(found: AmongCoders) -> Markup:
    names = list(dict.fromkeys(name for one in found.pairs for name in one.figures))
    columns = [("Pair", ""), *((TITLES[name], "number") for name in names), ("n", "number")]
    rows: list[list[Child]] = [
        [
            joined(user_text(one.first), " – ", user_text(one.second)),
            *(_cell(one.figures.get(name)) for name in names),
            count(max((each.n for each in one.figures.values()), default=0)),
        ]
        for one in found.pairs
    ]
    alphas = [
        joined(
            tag("strong", f"{TITLES[name]}: {number(one.value)}"),
            f" {interval(one.interval)} on {counted(one.n, 'row')}. ",
        )
        for name, one in found.alpha.items()
    ]
    return figure(
        f"{counted(len(found.names), 'coder')}",
        sentence(*alphas, f"{count(found.tied)} of {counted(found.rows, 'row')} with several labels have no majority."),
        table(columns, rows, kind="figures"),
        sentence(user_text(about_replacing(found))),
        sentence(ABOUT_PAIRS, kind="note"),
    )


def _cell(found: Estimate | None) -> Child:
    if found is None:
        return DASH
    return joined(number(found.value), " ", tag("small", interval(found.interval)))
