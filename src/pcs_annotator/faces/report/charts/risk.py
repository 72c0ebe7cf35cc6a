"""Risk against coverage: how many labels are wrong when only the surest are taken."""

from __future__ import annotations

from pcs_annotator.faces.report.charts.plot import Axis, Entry, Plot, across, nice_ticks, path, segment, up
from pcs_annotator.faces.report.formats import counted, percent
from pcs_annotator.faces.report.markup import Markup
from pcs_annotator.pipeline.promises import Certificate
from pcs_annotator.pipeline.steps import Curves

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
            Entry(kind="curve c1", text=f"wrong among the rows taken, of {counted(curves.rows, 'gold row')}"),
            Entry(kind="band", shape="area", text="95 % interval at each share"),
            *legend,
        ],
    )


def _at(curves: Curves, coverage: float) -> float:
    return min(zip(curves.risk.coverage, curves.risk.risk, strict=True), key=lambda pair: abs(pair[0] - coverage))[1]


def _marks(certificate: Certificate | None, errors: Axis) -> tuple[list[Markup], list[Entry]]:
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
    marks, legend = [path(limit, "limit")], [Entry(kind="limit", text=told)]
    if certificate.holds:
        place = across(COVERAGE, certificate.accepted_share)
        marks.append(segment((place, up(errors, 0)), (place, up(errors, errors.high)), "accepted"))
        text = f"accepted: {percent(certificate.accepted_share, 1)} of all rows of the file"
        legend.append(Entry(kind="accepted", text=text))
    return marks, legend
