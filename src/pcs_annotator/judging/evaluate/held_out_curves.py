"""Curves for the report: reliability, ROC, error against coverage, of gold rows judged by fits that did not see them.

They are thinned to as many points as a plot can show.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pcs_annotator.base.display import brief
from pcs_annotator.core.arrays import CODE, Codes, Integers
from pcs_annotator.core.task import MANY_LABELS
from pcs_annotator.judging.heldout import HeldOut
from pcs_annotator.judging.metrics import figures as metrics
from pcs_annotator.judging.metrics.bootstrap import WIDENING, interval_around, least_auroc, resample_counts
from pcs_annotator.judging.promise.thresholds import steps_of

MOST_POINTS, MOST_ROC, MOST_BINS, ROWS_PER_BIN, DIGITS = 200, 6, 10, 12, 5


class Roc(NamedTuple):
    """One label against all others."""

    label: str  # its name
    auroc: metrics.Estimate  # area under the curve; `n` counts the rows of this label
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
    raw: Sequence[metrics.ReliabilityBin]  # the reliability diagram of the Perceived Confidence Score
    # the same of the calibrated confidence; empty when nothing is calibrated
    calibrated: Sequence[metrics.ReliabilityBin]
    # every label that some but not all rows have, most frequent first; the first few with their curve
    roc: Sequence[Roc]
    risk: Risk  # error against coverage

    __repr__ = brief


def curves_of(trial: HeldOut, *, calibrated: bool = True, resamples: int = 200, seed: int = 0) -> Curves:
    """Return the curves of gold rows that were judged by fits that did not see them, with resampled intervals."""
    rows = len(trial.gold)
    bins = int(np.clip(rows // ROWS_PER_BIN, 3, MOST_BINS))
    counts = np.bincount(trial.gold, minlength=len(trial.labels))
    present = [int(label) for label in np.argsort(-counts, kind="stable") if 0 < counts[label] < rows][:MANY_LABELS]
    steps = steps_of(trial.judged)
    kept = _kept(len(steps.rows))
    seen, wrong = steps.rows[kept], steps.wrong[kept]
    low, high = np.array([metrics.exact_interval(*pair) for pair in zip(wrong.tolist(), seen.tolist(), strict=True)]).T
    return Curves(
        rows=rows,
        raw=_rounded(metrics.reliability(trial.scores, trial.gold, bins)),
        calibrated=_rounded(metrics.reliability(trial.probabilities, trial.gold, bins)) if calibrated else [],
        roc=[_roc_of(trial, label, position < MOST_ROC, resamples, seed) for position, label in enumerate(present)],
        risk=Risk(*(_rounded(values) for values in (seen / rows, wrong / seen, low, high))),
    )


def _roc_of(trial: HeldOut, label: int, drawn: bool, resamples: int, seed: int) -> Roc:
    scores, positive = trial.scores[:, label], trial.gold == label
    codes: Codes = positive.astype(CODE)
    both = np.stack([-scores, scores], axis=1)  # either side of a binary question ranks the same
    value = metrics.auroc(both, codes)
    aurocs = np.concatenate([metrics.auroc_on(both, codes, times) for times in resample_counts(codes, resamples, seed)])
    interval = interval_around(value, aurocs, least_auroc(codes), WIDENING)
    roc = Roc(trial.labels[label], _rounded(metrics.Estimate(value, interval, int(positive.sum()))), [], [])
    if not drawn:
        return roc
    order = np.argsort(-scores, kind="stable")
    ends = metrics.ends_of_runs(scores[order])
    hits = np.append(0.0, np.cumsum(positive[order])[ends] / positive.sum())
    false_alarms = np.append(0.0, np.cumsum(~positive[order])[ends] / (~positive).sum())
    kept = _kept(len(hits))
    return roc._replace(false_alarms=_rounded(false_alarms[kept]), hits=_rounded(hits[kept]))


def _kept(points: int) -> Integers:
    """Return which points to keep, the first and the last among them."""
    return np.unique(np.linspace(0, points - 1, min(points, MOST_POINTS)).round()).astype(np.intp)


def _rounded(values: Any) -> Any:
    """Return all numbers of arrays, or of nested tuples, with few digits."""
    if isinstance(values, np.ndarray):
        return np.round(values, DIGITS).tolist()
    if isinstance(values, float):
        return round(values, DIGITS)
    if isinstance(values, tuple):
        parts = map(_rounded, values)
        return type(values)(*parts) if hasattr(values, "_fields") else tuple(parts)
    return [_rounded(part) for part in values] if isinstance(values, list) else values
