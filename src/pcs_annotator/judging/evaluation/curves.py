"""Curves for the report: reliability, ROC, and error against coverage.

All are made from gold rows judged by fits that did not see them, and thinned to as many points as a plot can show.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pcs_annotator.base.display import brief
from pcs_annotator.core.arrays import CODE, Codes, Floats, Integers
from pcs_annotator.core.task import MANY_LABELS
from pcs_annotator.core.weights import Interval
from pcs_annotator.judging.fit_model import Trial
from pcs_annotator.judging.metrics.bootstrap import WIDENING, interval_around, least_auroc, resample_counts
from pcs_annotator.judging.metrics.metrics import (
    Estimate,
    ReliabilityBin,
    auroc,
    auroc_on,
    ends_of_runs,
    exact_interval,
    reliability,
)
from pcs_annotator.judging.promising.acceptance import steps_of

MOST_POINTS = 200
MOST_ROC = 6
MOST_BINS = 10
ROWS_PER_BIN = 12
DIGITS = 5


class Roc(NamedTuple):
    """One label against all others."""

    label: str  # its name
    auroc: Estimate  # area under the curve; `n` counts the rows of this label
    # share of other rows that score at or above each threshold, rising; empty for rarer labels
    false_alarms: Sequence[float]
    hits: Sequence[float]  # share of this label's rows that do


class Risk(NamedTuple):
    """The error among the most confident rows, with its exact 95 % interval at every coverage."""

    coverage: Sequence[float]
    risk: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]

    def __repr__(self) -> str:
        return brief(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """The curves of a report."""

    rows: int  # number of gold rows behind them
    raw: Sequence[ReliabilityBin]  # the reliability diagram of the Perceived Confidence Score
    calibrated: Sequence[ReliabilityBin]  # the same of the calibrated confidence; empty when nothing is calibrated
    # every label that some but not all rows have, most frequent first; the first few with their curve
    roc: Sequence[Roc]
    risk: Risk  # error against coverage

    __repr__ = brief

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        bins = {"raw": self.raw, "calibrated": self.calibrated}
        return {
            "rows": self.rows,
            **{name: [{**one._asdict(), "interval": list(one.interval)} for one in own] for name, own in bins.items()},
            "roc": [{**one._asdict(), "auroc": one.auroc.to_dict()} for one in self.roc],
            "risk": self.risk._asdict(),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Curves:
        """Return the curves that `to_dict` wrote."""
        raw, calibrated = (
            [ReliabilityBin(**{**one, "interval": Interval(*one["interval"])}) for one in values[name]]
            for name in ("raw", "calibrated")
        )
        roc = [Roc(**{**one, "auroc": Estimate.from_dict(one["auroc"])}) for one in values["roc"]]
        return cls(rows=values["rows"], raw=raw, calibrated=calibrated, roc=roc, risk=Risk(**values["risk"]))


def curves_of(trial: Trial, *, calibrated: bool = True, resamples: int = 200, seed: int = 0) -> Curves:
    """Return the curves of gold rows that were judged by fits that did not see them, with resampled intervals."""
    rows = len(trial.gold)
    bins = int(np.clip(rows // ROWS_PER_BIN, 3, MOST_BINS))
    return Curves(
        rows=rows,
        raw=_rounded_bins(reliability(trial.scores, trial.gold, bins)),
        calibrated=_rounded_bins(reliability(trial.probabilities, trial.gold, bins)) if calibrated else [],
        roc=_rocs(trial, resamples, seed),
        risk=_risk(trial),
    )


def _rocs(trial: Trial, resamples: int, seed: int) -> list[Roc]:
    counts = np.bincount(trial.gold, minlength=len(trial.labels))
    present = [int(label) for label in np.argsort(-counts, kind="stable") if 0 < counts[label] < len(trial.gold)]
    del present[MANY_LABELS:]
    return [_roc_of(trial, label, place < MOST_ROC, resamples, seed) for place, label in enumerate(present)]


def _roc_of(trial: Trial, label: int, drawn: bool, resamples: int, seed: int) -> Roc:
    scores, positive = trial.scores[:, label], trial.gold == label
    codes: Codes = positive.astype(CODE)
    both = np.stack([-scores, scores], axis=1)  # either side of a binary question ranks the same
    value = auroc(both, codes)
    found = np.concatenate([auroc_on(both, codes, times) for times in resample_counts(codes, resamples, seed)])
    interval = _ends(interval_around(value, found, least_auroc(codes), WIDENING))
    roc = Roc(trial.labels[label], Estimate(round(value, DIGITS), interval, int(positive.sum())), [], [])
    if not drawn:
        return roc
    order = np.argsort(-scores, kind="stable")
    ends = ends_of_runs(scores[order])
    hits = np.append(0.0, np.cumsum(positive[order])[ends] / positive.sum())
    false_alarms = np.append(0.0, np.cumsum(~positive[order])[ends] / (~positive).sum())
    kept = _kept(len(hits))
    return roc._replace(false_alarms=_rounded(false_alarms[kept]), hits=_rounded(hits[kept]))


def _risk(trial: Trial) -> Risk:
    steps = steps_of(trial.judged)
    kept = _kept(len(steps.rows))
    seen, wrong = steps.rows[kept], steps.wrong[kept]
    low, high = np.array([exact_interval(*pair) for pair in zip(wrong.tolist(), seen.tolist(), strict=True)]).T
    return Risk(*(_rounded(values) for values in (seen / len(trial.gold), wrong / seen, low, high)))


def _kept(points: int) -> Integers:
    """Return which points to keep, the first and the last among them."""
    return np.unique(np.linspace(0, points - 1, min(points, MOST_POINTS)).round()).astype(np.intp)


def _rounded(values: Floats) -> list[float]:
    return [float(value) for value in np.round(values, DIGITS)]


def _ends(interval: Interval) -> Interval:
    return Interval(*(round(end, DIGITS) for end in interval))


def _rounded_bins(bins: Sequence[ReliabilityBin]) -> list[ReliabilityBin]:
    return [
        ReliabilityBin(round(one.confidence, DIGITS), round(one.accuracy, DIGITS), one.rows, _ends(one.interval))
        for one in bins
    ]
