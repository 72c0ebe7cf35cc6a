"""Figures of merit for scores `[item, label]` against gold codes.

Every function works on complete gold. What cannot be computed raises `UndefinedMetric`; nothing returns nan.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import betaincinv

from pcs_annotator.core.arrays import Codes, Floats, Integers, Mask
from pcs_annotator.core.weights import Interval
from pcs_annotator.errors import UndefinedMetric

Metric = Callable[[Floats, Codes], float]

BINS = 15
MIN_PROBABILITY = 1e-12


class MacroAuroc(NamedTuple):
    """One-vs-rest AUROC averaged over labels.

    Attributes:
        value: The mean over `by_label`.
        by_label: Label code → AUROC, for labels that some but not all rows have.
        left_out: Label codes that no row, or every row, has; they are not in the mean.
    """

    value: float
    by_label: dict[int, float]
    left_out: tuple[int, ...]


class Estimate(NamedTuple):
    """A figure with the number of rows behind it and its bootstrap interval."""

    value: float
    interval: Interval
    n: int


class ReliabilityBin(NamedTuple):
    """Rows of similar confidence: how sure they were, and how often they were right, with its exact 95 % interval."""

    confidence: float
    accuracy: float
    rows: int
    interval: Interval


class RiskCoverage(NamedTuple):
    """Error among the most confident rows, for every distinct confidence that could be a threshold."""

    coverage: Floats
    risk: Floats


def midranks(values: Floats) -> Floats:
    """Return ranks from 1, equal values sharing the mean of theirs."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[inverse])


def binary_auroc(scores: Floats, positive: Mask) -> float:
    """Return the chance that a positive row scores above a negative one, ties counting half."""
    positives = int(positive.sum())
    negatives = len(positive) - positives
    if not positives or not negatives:
        raise UndefinedMetric("AUROC needs rows of the class and rows of another: label more rows")
    rank_sum = float(midranks(scores)[positive].sum())
    return (rank_sum - positives * (positives + 1) / 2) / (positives * negatives)


def macro_auroc(scores: Floats, gold: Codes) -> MacroAuroc:
    """Return the one-vs-rest AUROC of every label present, and their mean."""
    _require_rows(gold)
    codes = range(scores.shape[1])
    counts = np.bincount(gold, minlength=scores.shape[1])
    by_label = {k: binary_auroc(scores[:, k], gold == k) for k in codes if 0 < counts[k] < len(gold)}
    if not by_label:
        raise UndefinedMetric(
            f"AUROC needs two classes, but all {len(gold)} rows have the same gold label: label more rows"
        )
    left_out = tuple(k for k in codes if k not in by_label)
    return MacroAuroc(float(np.mean(list(by_label.values()))), by_label, left_out)


def auroc(scores: Floats, gold: Codes) -> float:
    """Return the macro one-vs-rest AUROC; labels that no row has are left out of the mean."""
    return macro_auroc(scores, gold).value


def accuracy(scores: Floats, gold: Codes) -> float:
    """Return the share of rows whose best label is right; of n tied best labels each counts 1/n."""
    _require_rows(gold)
    return float(_correct(scores, gold).mean())


def _correct(scores: Floats, gold: Codes) -> Floats:
    """Return how right each row's choice is; a tie is a fair draw, so that label order cannot matter."""
    best = scores == scores.max(axis=1, keepdims=True)
    return np.asarray(best[np.arange(len(gold)), gold] / best.sum(axis=1))


def macro_f1(scores: Floats, gold: Codes) -> float:
    """Return the mean F1 over labels that gold or predictions contain; tied best labels share a row."""
    _require_rows(gold)
    best = scores == scores.max(axis=1, keepdims=True)
    predicted = best / best.sum(axis=1, keepdims=True)
    truth = np.eye(scores.shape[1])[gold]
    size = predicted.sum(axis=0) + truth.sum(axis=0)
    seen = size > 0
    return float(np.mean(2 * np.sum(predicted * truth, axis=0)[seen] / size[seen]))


def brier(scores: Floats, gold: Codes) -> float:
    """Return the mean squared distance between scores and one-hot gold, between 0 and 2."""
    _require_rows(gold)
    return float(np.mean(np.sum((scores - np.eye(scores.shape[1])[gold]) ** 2, axis=1)))


def log_loss(scores: Floats, gold: Codes) -> float:
    """Return the mean of −log of the gold label's probability."""
    _require_rows(gold)
    return float(-np.mean(np.log(np.maximum(scores[np.arange(len(gold)), gold], MIN_PROBABILITY))))


def reliability(scores: Floats, gold: Codes, bins: int = BINS) -> list[ReliabilityBin]:
    """Return the reliability diagram: rows in bins of equal mass by the confidence of their best label.

    Rows of equal confidence always share a bin, so there can be fewer bins than asked for.
    """
    sure, right, rows = _binned(scores, gold, bins)
    return [
        ReliabilityBin(float(s / n), float(r / n), int(n), _exact_interval(float(r), int(n)))
        for s, r, n in zip(sure, right, rows, strict=True)
    ]


def ece(scores: Floats, gold: Codes, bins: int = BINS) -> float:
    """Return the expected calibration error over bins of equal mass."""
    sure, right, _ = _binned(scores, gold, bins)
    return float(np.abs(sure - right).sum() / len(gold))


def _binned(scores: Floats, gold: Codes, bins: int) -> tuple[Floats, Floats, Integers]:
    """Return summed confidence, right choices and number of rows of every bin that has any."""
    _require_rows(gold)
    confidence, correct = scores.max(axis=1), _correct(scores, gold)
    # a row's bin follows from its midrank, which equal confidences share
    place = np.minimum(((midranks(confidence) - 0.5) / len(gold) * bins).astype(np.intp), bins - 1)
    _, place, rows = np.unique(place, return_inverse=True, return_counts=True)
    return np.asarray(np.bincount(place, confidence)), np.asarray(np.bincount(place, correct)), rows


def _exact_interval(right: float, rows: int, level: float = 0.95) -> Interval:
    """Return the Clopper–Pearson interval of right/rows.

    Shared ties make `right` a fraction; the beta quantiles then lie between those of the whole numbers around it.
    """
    tail, right = (1 - level) / 2, round(right, 9)
    return Interval(
        float(betaincinv(right, rows - right + 1, tail)) if right > 0 else 0.0,
        float(betaincinv(right + 1, rows - right, 1 - tail)) if right < rows else 1.0,
    )


def risk_coverage(scores: Floats, gold: Codes) -> RiskCoverage:
    """Return the error among the rows at or above each distinct confidence, most confident first."""
    _require_rows(gold)
    confidence, wrong = scores.max(axis=1), 1 - _correct(scores, gold)
    order = np.argsort(-confidence, kind="stable")
    ends = ends_of_runs(confidence[order])
    seen = ends + 1
    return RiskCoverage(seen / len(gold), np.cumsum(wrong[order])[ends] / seen)


def ends_of_runs(ordered: Floats) -> Integers:
    """Return the last position of every run of equal values: rows that tie are taken together or not at all."""
    return np.flatnonzero(np.append(np.diff(ordered) != 0, True)).astype(np.intp)


def aurc(scores: Floats, gold: Codes) -> float:
    """Return the area under the risk–coverage curve: the mean risk over all coverages; lower is better.

    Rows of equal confidence are taken in a random order, in expectation: the risk moves linearly in their errors.
    """
    curve = risk_coverage(scores, gold)
    errors = np.concatenate([[0.0], curve.risk * curve.coverage])
    coverage = np.concatenate([[0.0], curve.coverage])
    steps = np.arange(1, len(gold) + 1) / len(gold)
    return float(np.mean(np.interp(steps, coverage, errors) / steps))


def accuracy_at_coverage(scores: Floats, gold: Codes, coverage: float) -> float:
    """Return the accuracy among the most confident share of rows; rows tied at the border count in part."""
    if not 0 < coverage <= 1:
        raise UndefinedMetric(f"coverage is a share of rows above 0 and up to 1, not {coverage}")
    curve = risk_coverage(scores, gold)
    errors = np.interp(coverage, np.append(0.0, curve.coverage), np.append(0.0, curve.risk * curve.coverage))
    return float(1 - errors / coverage)


def review_share(scores: Floats, gold: Codes, target: float) -> float:
    """Return the share of rows a person must see so that the others reach the target accuracy.

    1.0 when no threshold reaches it. This looks at gold, so it describes these rows; it promises nothing for others.
    """
    curve = risk_coverage(scores, gold)
    good = curve.coverage[curve.risk <= 1 - target + 1e-12]
    return float(1 - good.max(initial=0.0))


METRICS: dict[str, Metric] = {
    "auroc": auroc,
    "accuracy": accuracy,
    "macro_f1": macro_f1,
    "ece": ece,
    "brier": brier,
    "log_loss": log_loss,
    "aurc": aurc,
}


def bootstrap_estimate(
    metric: Metric, scores: Floats, gold: Codes, *, resamples: int = 1000, seed: int = 0, level: float = 0.95
) -> Estimate:
    """Return the figure with a bootstrap interval over rows.

    The interval is that of the resampled figures, moved so that their mean lies on the figure itself: resampling
    repeats rows, which alone raises an ECE.
    """
    value = metric(scores, gold)
    values = np.array(resampled(lambda rows: metric(scores[rows], gold[rows]), len(gold), resamples, seed))
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2]) + (value - values.mean())
    return Estimate(value, Interval(max(0.0, float(low)), min(float(high), max(value, float(values.max())))), len(gold))


def resampled(figure: Callable[[Integers], float], n: int, resamples: int, seed: int) -> list[float]:
    """Return a figure of rows drawn with replacement, many times.

    Draws in which the figure is undefined, such as AUROC when chance drew a single class, are drawn again.
    """
    if resamples < 1:
        raise UndefinedMetric(f"a bootstrap interval needs at least one resample, not {resamples}")
    rng = np.random.default_rng(seed)
    values: list[float] = []
    for _ in range(10 * resamples):
        if len(values) == resamples:
            break
        try:
            values.append(figure(rng.integers(n, size=n)))
        except UndefinedMetric:
            continue
    if len(values) < resamples:
        raise UndefinedMetric(f"{n} rows are too few for a bootstrap interval: label more rows")
    return values


def _require_rows(gold: Codes) -> None:
    if not len(gold):
        raise UndefinedMetric("no rows to judge: give at least one row with a gold label")
