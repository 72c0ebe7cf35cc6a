"""How far the confidence can be believed, and what accepting fewer labels would gain: three charts."""

from __future__ import annotations

from pcs_annotator.judging.evaluation.curves import Curves
from pcs_annotator.pipeline.report.bars import span
from pcs_annotator.pipeline.report.charts.curves import reliability_diagram, risk_chart, roc_chart
from pcs_annotator.pipeline.report.charts.plot import Plot
from pcs_annotator.pipeline.report.formats import count, counted, interval, number
from pcs_annotator.pipeline.report.markup import (
    Child,
    ColumnHead,
    Markup,
    figure,
    joined,
    section,
    sentence,
    table,
    tag,
    user_text,
)
from pcs_annotator.pipeline.report.view import View

MOST_LISTED = 10


def plots(view: View) -> list[Plot]:
    """Return every chart that there are numbers for."""
    curves = view.result.learned.curves
    if curves is None:
        return []
    certificate = view.result.learned.model.certificate
    return [reliability_diagram(curves), risk_chart(curves, certificate), roc_chart(curves)]


def curves(view: View) -> Markup:
    """Return the charts, each with its numbers as a table; or what is missing."""
    found = view.result.learned.curves
    if found is None:
        why = tag("div", sentence(tag("strong", "Nothing to draw yet.")), sentence(_missing(view)), class_="callout")
        return section("curves", "How far to believe it", why)
    reliability, risk, roc = plots(view)
    return section(
        "curves",
        "How far to believe it",
        sentence(f"From {counted(found.rows, 'gold row')}, each judged by a fit that did not see it."),
        tag(
            "div",
            figure("Is it as right as it is sure?", reliability.inline(), _reliability_table(found)),
            figure("How wrong are the surest?", risk.inline(), sentence(_half(found), kind="note")),
            figure("Does each label rank its own rows first?", roc.inline()),
            figure("Label by label", _ranking(found)),
            class_="charts",
        ),
    )


def _missing(view: View) -> str:
    learned = view.result.learned
    if learned.figures:
        return "This run was learned by an earlier version, or from too few rows: pcs fit FOLDER draws them if it can."
    have = counted(view.gold_rows, "row has one", "rows have one")
    return f"Reliability, risk and ROC take gold labels on at least 10 rows, of two classes; {have}."


def _half(curves: Curves) -> str:
    return (
        "Left are the rows with the highest confidence, right all of them. A line that rises late means that the "
        "confidence knows where the errors are."
        if curves.risk.risk[-1] > 0
        else "No held-out label was wrong."
    )


def _reliability_table(curves: Curves) -> Markup:
    rows: list[list[Child]] = [
        [name, number(one.confidence), number(one.accuracy), interval(one.interval), str(one.rows)]
        for name, bins in (("calibrated", curves.calibrated), ("raw PCS", curves.raw))
        for one in bins
    ]
    columns = [ColumnHead("Score"), *(ColumnHead(title, "number") for title in ("sure", "right", "95 %", "n"))]
    return tag("details", tag("summary", "The numbers"), table(columns, rows), class_="numbers")


def _ranking(curves: Curves) -> Markup:
    """Return every label's AUROC with its interval, those too rare for a line of their own folded."""
    low = max(0.0, min(roc.auroc.interval.low for roc in curves.roc) - 0.02)
    columns = [
        ColumnHead("Label"),
        ColumnHead("AUROC", "number"),
        ColumnHead(f"{number(low)} to 1", "chart axis"),
        ColumnHead("95 %", "number quiet"),
        ColumnHead("n", "number"),
    ]
    rows: list[list[Child]] = [
        [
            user_text(roc.label),
            number(roc.auroc.value),
            span(roc.auroc.value, roc.auroc.interval, low=low, high=1.0),
            interval(roc.auroc.interval),
            count(roc.auroc.n),
        ]
        for roc in curves.roc
    ]
    rest = rows[MOST_LISTED:]
    return joined(
        table(columns, rows[:MOST_LISTED]),
        tag("details", tag("summary", counted(len(rest), "rarer label")), table(columns, rest), class_="numbers")
        if rest
        else None,
        sentence("Each label against all others: 0.5 is chance, 1 is perfect.", kind="note"),
    )
