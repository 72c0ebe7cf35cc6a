"""Charts on held-out gold rows: reliability, risk against coverage, and ROC."""

from collections.abc import Iterator, Sequence
from typing import Any

from pcs_annotator.base.text import counted
from pcs_annotator.judging.evaluate.held_out_curves import Curves
from pcs_annotator.judging.promise.certificate import Certificate
from pcs_annotator.showing import blocks as b
from pcs_annotator.showing.formats import interval, number, percent
from pcs_annotator.showing.markup import Markup
from pcs_annotator.showing.report.view import View
from pcs_annotator.showing.svg_plot import Axes, Axis, LegendEntry, Plot, Point, dot, nice_ticks, path, segment, short

MOST_LISTED = 10
MIN_ROWS = 10  # the risk axis fits the errors among at least this many rows; among fewer, one wrong label makes a spike
WIDE = 560.0
TENTHS = tuple(index / 10 for index in range(1, 11))
MOST_HOVERED = 60
RELIABILITY = Axes(Axis(title="confidence or score"), Axis(title="share of correct labels"))
COVERAGE = Axis(title="coverage: share of rows, most confident first", percent=True)
ROC = Axes(Axis(title="false positive rate"), Axis(title="true positive rate"))


def plots(view: View) -> list[Plot]:
    """Return the charts; none without gold labels."""
    curves = view.result.learned.curves
    if curves is None:
        return []
    certificate = view.result.learned.model.certificate
    return [reliability_diagram(curves), risk_chart(curves, certificate), roc_chart(curves)]


def risk(curves: Curves, certificate: Certificate | None) -> b.Group:
    """Return how many labels are wrong if only the most confident ones are kept."""
    columns = [b.Column("Most confident"), *b.numbers("rows", "wrong"), b.Column("95 %", "number quiet")]
    rows: list[b.Row] = []
    for share in TENTHS:
        coverage, wrong, low, high = _at(curves, share)
        ends = f"{percent(low, 1)} to {percent(high, 1)}"
        rows.append([percent(coverage, 1), round(coverage * curves.rows), percent(wrong, 1), ends])
    numbers = b.Folded("The numbers", [b.Table(columns=columns, rows=rows, kind="narrow")])
    none = None if curves.risk.risk[-1] > 0 else b.note("No held-out label was wrong.")
    return b.titled(
        "How many labels are wrong, if you keep the most confident ones?",
        risk_chart(curves, certificate),
        none,
        numbers,
    )


def calibration(curves: Curves) -> b.Group:
    """Return whether the confidence can be believed."""
    rows: list[b.Row] = [
        [name, group.confidence, group.accuracy, interval(group.interval), group.rows]
        for name, bins in (("confidence", curves.calibrated), ("raw PCS", curves.raw))
        for group in bins
    ]
    columns = [b.Column("Measure"), *b.numbers("mean", "correct", "95 %", "n")]
    numbers = b.Folded("The numbers", [b.Table(columns=columns, rows=rows)])
    return b.titled("Does the confidence match the share of right labels?", reliability_diagram(curves), numbers)


def separation(curves: Curves) -> b.Folded:
    """Return how well each label is told from the others, by its AUROC; the rarest labels are folded away."""
    low = max(0.0, min(roc.auroc.interval.low for roc in curves.roc) - 0.02)
    axis = b.Column(f"{number(low)} to 1", "chart axis")
    columns = [b.Column("Label"), *b.numbers("AUROC"), axis, b.Column("95 %", "number quiet"), *b.numbers("n")]
    rows: list[b.Row] = []
    for roc in curves.roc:
        value, ends, n = roc.auroc
        rows.append([b.name(roc.label), value, b.Spot(value, ends, low, 1.0), interval(ends), n])
    rest = rows[MOST_LISTED:]
    ranking = [
        b.Table(columns=columns, rows=rows[:MOST_LISTED]),
        b.Folded(counted(len(rest), "rarer label"), [b.Table(columns=columns, rows=rest)]) if rest else None,
        b.note("Each label against all others; 0.5 is chance, 1 is perfect. The class AUROC is their mean."),
    ]
    return b.Folded("ROC, and class AUROC per label", [b.Group([roc_chart(curves), b.Group(ranking)], kind="pair")])


def reliability_diagram(curves: Curves) -> Plot:
    """Return the share of correct labels by confidence, if there is one, and by raw score."""
    least, most = (end(group.rows for group in (*curves.raw, *curves.calibrated)) for end in (min, max))
    rows = f"{least}" if least == most else f"{least} to {most}"
    whiskers = f"95 % interval, {rows} rows per point"
    confidence = [LegendEntry(kind="dot c1", shape="dot", text="confidence")] if curves.calibrated else []
    return Plot(
        name="reliability",
        title="Reliability diagram",
        description=f"{counted(curves.rows, 'held-out gold row')}, in groups. "
        + "; ".join(_bin_text(group, bool(curves.calibrated)) for group in curves.calibrated or curves.raw),
        axes=RELIABILITY,
        parts=[
            segment(RELIABILITY.at(0, 0), RELIABILITY.at(1, 1), "ideal"),
            *_points(curves.raw, calibrated=False),
            *_points(curves.calibrated, calibrated=True),
        ],
        legend=[
            *confidence,
            LegendEntry(kind="dot c2", shape="dot", text="raw Perceived Confidence Score"),
            LegendEntry(kind="reach c1" if confidence else "reach c2", text=whiskers),
            LegendEntry(kind="ideal", text="perfect calibration"),
        ],
    )


def _bin_text(entry: Any, calibrated: bool) -> str:
    value = f"{'confidence' if calibrated else 'score'} {number(entry.confidence)}"
    return f"{value}, correct {number(entry.accuracy)} {interval(entry.interval)}, n {entry.rows}"


def _points(bins: Sequence[Any], *, calibrated: bool) -> list[Markup]:
    colour = "c1" if calibrated else "c2"
    parts = []
    for entry in bins:
        low, middle, high = (
            RELIABILITY.at(entry.confidence, y) for y in (entry.interval.low, entry.accuracy, entry.interval.high)
        )
        parts += [segment(low, high, f"reach {colour}"), dot(middle, f"dot {colour}", _bin_text(entry, calibrated))]
    return parts


def roc_chart(curves: Curves) -> Plot:
    """Return a curve for each of the most frequent labels, each against all others."""
    drawn = [(roc, f"{number(roc.auroc.value)} {interval(roc.auroc.interval)}") for roc in curves.roc if roc.hits]
    return Plot(
        name="roc",
        title="ROC, one label against the rest",
        description=f"On {counted(curves.rows, 'held-out gold row')}. "
        + "; ".join(f"{roc.label}: AUROC {auroc}, n {roc.auroc.n}" for roc, auroc in drawn),
        axes=ROC,
        parts=[
            segment(ROC.at(0, 0), ROC.at(1, 1), "ideal"),
            *(
                path(map(ROC.at, roc.false_alarms, roc.hits), f"curve c{index}")
                for index, (roc, _) in enumerate(drawn, 1)
            ),
        ],
        legend=[
            *(
                LegendEntry(kind=f"curve c{index}", text=f"{short(roc.label)} AUROC {auroc}")
                for index, (roc, auroc) in enumerate(drawn, 1)
            ),
            LegendEntry(kind="ideal", text=f"chance ({counted(curves.rows, 'gold row')}; brackets: 95 % intervals)"),
        ],
    )


def risk_chart(curves: Curves, certificate: Certificate | None) -> Plot:
    """Return the error among the most confident rows, with the error limit and the accepted share if there are any."""
    risk = curves.risk
    settled = [wrong for taken, wrong in zip(risk.coverage, risk.risk, strict=True) if taken * curves.rows >= MIN_ROWS]
    allowed = certificate.promise.max_error if certificate is not None else 0.0
    ticks = nice_ticks(1.2 * max(*settled, allowed, 0.0))
    errors = Axis(title="risk: share of these that are wrong", high=ticks[-1], ticks=ticks, percent=True)
    axes = Axes(COVERAGE, errors, WIDE)
    lows, highs, curve = (list(map(axes.at, risk.coverage, ends)) for ends in (risk.low, risk.high, risk.risk))
    marks, legend = _marks(certificate, axes)
    return Plot(
        name="risk-coverage",
        title="Risk against coverage",
        description=f"On {counted(curves.rows, 'held-out gold row')}: of all labels {percent(risk.risk[-1], 1)} are "
        f"wrong, of the most confident half {percent(_at(curves, 0.5)[1], 1)}.",
        axes=axes,
        parts=[path([*lows, *reversed(highs)], "band", closed=True), *marks, path(curve, "curve c1")],
        legend=[
            LegendEntry(kind="curve c1", text=f"share wrong, on {counted(curves.rows, 'gold row')}"),
            LegendEntry(kind="band", shape="area", text="95 % interval at each coverage"),
            *legend,
        ],
        hover=[*_hover(curves, axes)],
    )


def _at(curves: Curves, coverage: float) -> tuple[float, ...]:
    """Return coverage, risk and its interval at the point that is nearest."""
    return min(zip(*curves.risk, strict=True), key=lambda point: abs(point[0] - coverage))


def _hover(curves: Curves, axes: Axes) -> Iterator[tuple[Point, str]]:
    step = -(-len(curves.risk.coverage) // MOST_HOVERED)
    for share, wrong, low, high in [*zip(*curves.risk, strict=True)][::-step]:
        ends = f"95 % interval {percent(low, 1)} to {percent(high, 1)}"
        rows = counted(round(share * curves.rows), "gold row")
        yield axes.at(share, wrong), f"most confident {percent(share, 1)} ({rows}): {percent(wrong, 1)} wrong, {ends}"


def _marks(certificate: Certificate | None, axes: Axes) -> tuple[list[Markup], list[LegendEntry]]:
    if certificate is None:
        return [], []
    allowed = certificate.promise.max_error
    limit = [axes.at(share, allowed) for share in (0.0, 1.0)]
    text = f"limit: at most {percent(allowed, 1)} {certificate.promise.far}"
    marks, legend = [path(limit, "limit")], [LegendEntry(kind="limit", text=text)]
    if certificate.holds:
        share = certificate.accepted_share
        marks.append(segment(axes.at(share, 0), axes.at(share, axes.y.high), "accepted"))
        legend.append(LegendEntry(kind="accepted", text=f"accepted: {percent(share, 1)} of all rows in the file"))
    return marks, legend
