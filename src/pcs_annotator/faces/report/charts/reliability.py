"""The reliability diagram: how sure the labels are, against how often they are right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pcs_annotator.faces.report.charts.plot import Axis, Entry, Plot, across, dot, segment, up
from pcs_annotator.faces.report.formats import counted, interval, number
from pcs_annotator.faces.report.markup import Markup
from pcs_annotator.pipeline.steps import Curves

SURE, RIGHT = Axis(title="how sure"), Axis(title="share of right labels")


def reliability_diagram(curves: Curves) -> Plot:
    """Return the diagram of the calibrated confidence, where there is one, and of the raw score."""
    least, most = (end(one.rows for one in (*curves.raw, *curves.calibrated)) for end in (min, max))
    rows = f"{least}" if least == most else f"{least} to {most}"
    whiskers = f"95 % interval, {rows} rows in each"
    calibrated = [Entry(kind="dot c1", shape="dot", text="calibrated confidence")] if curves.calibrated else []
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
            Entry(kind="dot c2", shape="dot", text="raw Perceived Confidence Score"),
            Entry(kind="reach c1" if calibrated else "reach c2", text=whiskers),
            Entry(kind="ideal", text="as right as sure"),
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
