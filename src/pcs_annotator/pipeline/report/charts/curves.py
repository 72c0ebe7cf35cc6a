"""Receiver operating characteristic: how well each label's score ranks its own rows above the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pcs_annotator.judging.evaluation.curves import Curves
from pcs_annotator.judging.promising.certificate import Certificate
from pcs_annotator.pipeline.report.charts.plot import (
    Axis,
    LegendEntry,
    Plot,
    across,
    dot,
    nice_ticks,
    path,
    segment,
    short,
    up,
)
from pcs_annotator.pipeline.report.formats import counted, interval, number, percent
from pcs_annotator.pipeline.report.markup import Markup

SURE, RIGHT = Axis(title="how sure"), Axis(title="share of right labels")


def reliability_diagram(curves: Curves) -> Plot:
    """Return the diagram of the calibrated confidence, where there is one, and of the raw score."""
    least, most = (end(one.rows for one in (*curves.raw, *curves.calibrated)) for end in (min, max))
    rows = f"{least}" if least == most else f"{least} to {most}"
    whiskers = f"95 % interval, {rows} rows in each"
    calibrated = [LegendEntry(kind="dot c1", shape="dot", text="calibrated confidence")] if curves.calibrated else []
    return Plot(
        name="reliability",
        title="Reliability diagram",
        description=f"Groups of rows by how sure their label is, on {counted(curves.rows, 'held-out gold row')}. "
        + "; ".join(
            f"sure {number(one.confidence)}, right {number(one.accuracy)} {interval(one.interval)}, n {one.rows}"
            for one in curves.calibrated or curves.raw
        ),
        x=SURE,
        y=RIGHT,
        parts=[
            segment((across(SURE, 0), up(RIGHT, 0)), (across(SURE, 1), up(RIGHT, 1)), "ideal"),
            *_points(curves.raw, "c2"),
            *_points(curves.calibrated, "c1"),
        ],
        legend=[
            *calibrated,
            LegendEntry(kind="dot c2", shape="dot", text="raw Perceived Confidence Score"),
            LegendEntry(kind="reach c1" if calibrated else "reach c2", text=whiskers),
            LegendEntry(kind="ideal", text="as right as sure"),
        ],
    )


def _points(bins: Sequence[Any], colour: str) -> list[Markup]:
    parts = []
    for one in bins:
        x = across(SURE, one.confidence)
        told = f"sure {number(one.confidence)}, right {number(one.accuracy)} {interval(one.interval)}, n {one.rows}"
        parts.append(segment((x, up(RIGHT, one.interval.low)), (x, up(RIGHT, one.interval.high)), f"reach {colour}"))
        parts.append(dot(x, up(RIGHT, one.accuracy), f"dot {colour}", told))
    return parts


ALARMS, HITS = Axis(title="share of other rows taken for it"), Axis(title="share of the label's rows found")


def roc_chart(curves: Curves) -> Plot:
    """Return a curve for each of the most frequent labels, each against all others."""
    drawn = [roc for roc in curves.roc if roc.hits]
    return Plot(
        name="roc",
        title="ROC, one label against the rest",
        description=f"On {counted(curves.rows, 'held-out gold row')}. "
        + "; ".join(
            f"{roc.label}: AUROC {number(roc.auroc.value)} {interval(roc.auroc.interval)}, n {roc.auroc.n}"
            for roc in drawn
        ),
        x=ALARMS,
        y=HITS,
        parts=[
            segment((across(ALARMS, 0), up(HITS, 0)), (across(ALARMS, 1), up(HITS, 1)), "ideal"),
            *(
                path(
                    (
                        (across(ALARMS, alarm), up(HITS, hit))
                        for alarm, hit in zip(roc.false_alarms, roc.hits, strict=True)
                    ),
                    f"curve c{place}",
                )
                for place, roc in enumerate(drawn, 1)
            ),
        ],
        legend=[
            *(
                LegendEntry(
                    kind=f"curve c{place}",
                    text=f"{short(roc.label)} AUROC {number(roc.auroc.value)} {interval(roc.auroc.interval)}",
                )
                for place, roc in enumerate(drawn, 1)
            ),
            LegendEntry(kind="ideal", text=f"chance; on {counted(curves.rows, 'gold row')}, intervals 95 %"),
        ],
    )


COVERAGE = Axis(title="share of rows taken, surest first", percent=True)
SETTLED = 10
"""The axis is made for errors among at least so many rows: among fewer, one wrong label is a cliff."""


def risk_chart(curves: Curves, certificate: Certificate | None) -> Plot:
    """Return the curve with the promised error and the accepted share marked, where there are such."""
    risk = curves.risk
    settled = [wrong for taken, wrong in zip(risk.coverage, risk.risk, strict=True) if taken * curves.rows >= SETTLED]
    allowed = certificate.promise.max_error if certificate is not None else 0.0
    ticks = nice_ticks(1.2 * max(*settled, allowed, 0.0))
    errors = Axis(title="share of them that is wrong", high=ticks[-1], ticks=ticks, percent=True)
    lows = [(across(COVERAGE, taken), up(errors, end)) for taken, end in zip(risk.coverage, risk.low, strict=True)]
    highs = [(across(COVERAGE, taken), up(errors, end)) for taken, end in zip(risk.coverage, risk.high, strict=True)]
    curve = [
        (across(COVERAGE, taken), up(errors, wrong)) for taken, wrong in zip(risk.coverage, risk.risk, strict=True)
    ]
    marks, legend = _marks(certificate, errors)
    return Plot(
        name="risk-coverage",
        title="Risk against coverage",
        description=f"On {counted(curves.rows, 'held-out gold row')}: of all labels {percent(risk.risk[-1], 1)} are "
        f"wrong, of the surest half {percent(_at(curves, 0.5), 1)}.",
        x=COVERAGE,
        y=errors,
        parts=[path([*lows, *reversed(highs)], "band", closed=True), *marks, path(curve, "curve c1")],
        legend=[
            LegendEntry(kind="curve c1", text=f"wrong among the rows taken, of {counted(curves.rows, 'gold row')}"),
            LegendEntry(kind="band", shape="area", text="95 % interval at each share"),
            *legend,
        ],
    )


def _at(curves: Curves, coverage: float) -> float:
    return min(zip(curves.risk.coverage, curves.risk.risk, strict=True), key=lambda pair: abs(pair[0] - coverage))[1]


def _marks(certificate: Certificate | None, errors: Axis) -> tuple[list[Markup], list[LegendEntry]]:
    if certificate is None:
        return [], []
    allowed = certificate.promise.max_error
    if certificate.promise.kind == "accepted-and-wrong":
        shares = [place / 50 for place in range(1, 51)]
        limit = [(across(COVERAGE, share), up(errors, allowed / share)) for share in shares]
        told = f"at most {percent(allowed, 1)} of all rows accepted and wrong"
    else:
        limit = [(across(COVERAGE, share), up(errors, allowed)) for share in (0.0, 1.0)]
        told = f"asked for: at most {percent(allowed, 1)} wrong"
    marks, legend = [path(limit, "limit")], [LegendEntry(kind="limit", text=told)]
    if certificate.holds:
        place = across(COVERAGE, certificate.accepted_share)
        marks.append(segment((place, up(errors, 0)), (place, up(errors, errors.high)), "accepted"))
        text = f"accepted: {percent(certificate.accepted_share, 1)} of all rows of the file"
        legend.append(LegendEntry(kind="accepted", text=text))
    return marks, legend
