"""Labels against gold, and people against each other: confusion matrix, figures per label, κ and α."""

from __future__ import annotations

from collections.abc import Sequence

from pcs_annotator.base.text import counted
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
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.formats import count, interval, number, percent

MEANS = ("precision", "recall", "f1")
ELSEWHERE = ("accuracy", *MEANS)
FOR_A_PAPER = "For a paper: pcs paper FOLDER writes this with a methods paragraph."
HEAT = (0.02, 0.1, 0.2, 0.35)
"""Shares of a gold label from which on a wrong label is shown in a stronger colour."""


def against_gold(found: AgainstGold) -> b.Group:
    """Return the confusion matrix."""
    table, shares = _confusion(found)
    return b.titled("Which labels are confused?", table, shares)


def per_label(found: AgainstGold) -> b.Group:
    """Return precision and recall per label."""
    rare = any("f1" not in figures and "recall" in figures for figures in found.by_label.values())
    notes = [ABOUT_INTERVALS, *([ABOUT_F1] if rare else [])]
    if silent := int(found.table[-1].sum()):
        notes.append(f"{counted(silent, 'row')} without a label count as wrong; κ and α leave them out.")
    return b.titled("Per label", _by_label(found), b.note(" ".join(notes)))


def beyond_chance(found: AgainstGold) -> b.Folded:
    """Return κ and α; accuracy and means over labels are shown elsewhere."""
    shown = {key: one for key, one in found.figures.items() if key.removesuffix("_weighted") not in ELSEWHERE}
    rows = [[TITLES[key], b.figure(one), one.n] for key, one in shown.items()]
    table = b.Table(columns=[b.Column("Figure"), *b.numbers("value", "n")], rows=rows, kind="figures narrow")
    return b.Folded("Agreement beyond chance: κ and α", [table, b.note(f"{ABOUT_KAPPA} {FOR_A_PAPER}")])


def _confusion(found: AgainstGold) -> tuple[b.Table, b.Block]:
    """Return a line per label and a column per gold label; from some number of labels on, columns are numbered."""
    numbered = len(found.labels) > MOST_NAMED
    gold = found.table.sum(axis=0).tolist()
    columns, lines = [b.Column("label ↓ gold →")], []
    for place, label in enumerate(found.labels, 1):
        columns.append(b.Column(str(place) if numbered else b.name(label), "number", label))
        lines.append((b.Styled(f"{place} ", "quiet"), b.name(label)) if numbered else b.name(label))
    rows = [
        [line, *_line(found, at, gold, numbered)]
        for at, line in enumerate((*lines, NO_LABEL))
        if at < len(lines) or found.table[at].any()
    ]
    rows.append(["all", *(b.Shaded(count(times), "number quiet") for times in (*gold, found.n))])
    shares = (
        "Point at a cell for its shares. Columns are gold labels by number."
        if numbered
        else "Below each count: its share of the gold label (column) and of the given label (line)."
    )
    table = b.Table(
        columns=[*columns, *b.numbers("all")],
        rows=rows,
        kind="heat confusion many" if numbered else "heat confusion",
        label="Labels against gold",
        total=True,
    )
    return table, b.note(shares)


def _line(found: AgainstGold, line: int, gold: Sequence[int], numbered: bool) -> b.Row:
    given = int(found.table[line].sum())
    cells: b.Row = []
    for column, times in enumerate(found.table[line].tolist()):
        of_gold, of_label = percent(times, gold[column]), percent(times, given)
        heat = f"heat-{sum(times > step * gold[column] for step in HEAT)}" if times else "quiet"
        shares = () if numbered or not times else (b.Styled(f"{of_gold} · {of_label}", "small"),)
        said = f"{of_gold} of this gold label, {of_label} of this label" if times else None
        shown = "·" if numbered and not times else count(times)
        cells.append(b.Shaded((shown, *shares), f"number {'same' if line == column else heat}", said))
    return [*cells, b.Shaded(count(given), "number quiet")]


def _by_label(found: AgainstGold) -> b.Table:
    rows: list[b.Row] = []
    for code, (label, figures) in enumerate(found.by_label.items()):
        said, true = int(found.table[code].sum()), int(found.table[:, code].sum())
        rows.append([b.name(label), *(b.figure(figures.get(mean)) for mean in MEANS), said, true])
    for title, ending in (("mean of labels", ""), ("mean weighted by gold", "_weighted")):
        cells = [b.figure(found.figures.get(f"{mean}{ending}")) for mean in MEANS]
        rows.append([b.Styled(title, "em"), *cells, "", found.n])
    columns = [b.Column("Label"), *b.numbers("precision", "recall", "F1", "labelled", "gold")]
    return b.Table(columns=columns, rows=rows, kind="figures")


def coders(found: AmongCoders) -> b.Group:
    """Return how far people agree with each other and with the labels."""
    kinds = list(dict.fromkeys(kind for one in found.pairs for kind in one.figures))
    rows: list[b.Row] = []
    for one in found.pairs:
        pair: b.Words = (b.name(one.first), " – ", b.name(one.second))
        n = max((each.n for each in one.figures.values()), default=0)
        rows.append([pair, *(b.figure(one.figures.get(kind)) for kind in kinds), n])
    alphas: list[str | b.Styled] = []
    for kind, alpha in found.alpha.items():
        alphas.append(b.strong(f"{TITLES[kind]}: {number(alpha.value)}"))
        alphas.append(f" {interval(alpha.interval)} on {counted(alpha.n, 'row')}. ")
    tied = f"{count(found.tied)} of {counted(found.rows, 'row')} with several labels have no majority."
    columns = [b.Column("Pair"), *b.numbers(*(TITLES[kind] for kind in kinds), "n")]
    return b.titled(
        counted(len(found.names), "coder"),
        b.text(*alphas, tied),
        b.Table(columns=columns, rows=rows, kind="figures"),
        b.text(b.name(about_replacing(found))),
        b.note(ABOUT_PAIRS),
    )
