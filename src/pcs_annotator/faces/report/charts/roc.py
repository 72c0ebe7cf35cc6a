"""Receiver operating characteristic: how well each label's score ranks its own rows above the others."""

from __future__ import annotations

from pcs_annotator.faces.report.charts.plot import Axis, Entry, Plot, across, path, segment, short, up
from pcs_annotator.faces.report.formats import counted, interval, number
from pcs_annotator.pipeline.steps import Curves

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
                Entry(
                    kind=f"curve c{place}",
                    text=f"{short(roc.label)} AUROC {number(roc.auroc.value)} {interval(roc.auroc.interval)}",
                )
                for place, roc in enumerate(drawn, 1)
            ),
            Entry(kind="ideal", text=f"chance; on {counted(curves.rows, 'gold row')}, intervals 95 %"),
        ],
    )
