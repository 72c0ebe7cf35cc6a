"""Whether one method is better than another: the paper's tests, and stricter ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import ndtr, stdtr

from pcs_annotator.core.arrays import Codes, Floats, Integers, Mask
from pcs_annotator.core.weights import Interval
from pcs_annotator.errors import UndefinedMetric
from pcs_annotator.judging.metrics.metrics import Metric, macro_auroc, midranks, resampled

Stars = Literal["***", "**", "*", "n.s."]


class PairedTest(NamedTuple):
    """Result of a two-sided paired test.

    Attributes:
        difference: Mean of the first minus the second.
        statistic: t or z; infinite when the difference never varies.
        p_value: Two-sided.
        n: Number of pairs, or of rows.
    """

    difference: float
    statistic: float
    p_value: float
    n: int


class BootstrapTest(NamedTuple):
    """Difference of a metric between two methods on the same rows."""

    difference: float
    interval: Interval
    p_value: float
    n: int


def paired_t_test(ours: Sequence[float], theirs: Sequence[float]) -> PairedTest:
    """Return the two-sided paired t-test, Eq. 3 of Salimian et al., over (model, dataset) pairs."""
    differences = _paired(ours, theirs)
    n = len(differences)
    if n < 2:
        raise UndefinedMetric(f"a paired t-test needs at least two pairs, got {n}")
    mean = float(differences.mean())
    error = float(differences.std(ddof=1)) / np.sqrt(n)
    if error <= 1e-12 * max(1.0, abs(mean)):  # rounding apart, every difference is the same
        return _certain(mean, n)
    statistic = mean / error
    return PairedTest(mean, statistic, float(2 * stdtr(n - 1, -abs(statistic))), n)


def average_relative_improvement(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return the mean of (ours − theirs) / theirs, the paper's ARI; 0.05 means +5 %."""
    baseline = np.asarray(theirs, dtype=np.float64)
    if not len(baseline):
        raise UndefinedMetric("relative improvement needs at least one pair, got none")
    if (baseline <= 0).any():
        raise UndefinedMetric("relative improvement is undefined against a baseline of zero: leave that pair out")
    return float(np.mean(_paired(ours, theirs) / baseline))


def stars(p_value: float) -> Stars:
    """Return the paper's marks: *** p < .001, ** p < .01, * p < .05, n.s. otherwise."""
    if p_value < 0.001:
        return "***"
    if p_value < 0.01:
        return "**"
    return "*" if p_value < 0.05 else "n.s."


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted by Holm's step-down method for a family of tests."""
    order = np.argsort(p_values, kind="stable")
    scaled = np.asarray(p_values)[order] * np.arange(len(order), 0, -1)
    adjusted = np.empty(len(order))
    adjusted[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return [float(value) for value in adjusted]


def paired_bootstrap(
    metric: Metric,
    ours: Floats,
    theirs: Floats,
    gold: Codes,
    *,
    resamples: int = 2000,
    seed: int = 0,
) -> BootstrapTest:
    """Return the difference of a metric with its 95 % interval, both methods resampled on the same rows.

    The p-value is never below 2 / (resamples + 1).
    """
    observed = metric(ours, gold) - metric(theirs, gold)

    def difference(rows: Integers) -> float:
        return metric(ours[rows], gold[rows]) - metric(theirs[rows], gold[rows])

    return bootstrap_test(observed, np.array(resampled(difference, len(gold), resamples, seed)), len(gold))


def bootstrap_test(difference: float, resampled: Floats, n: int) -> BootstrapTest:
    """Return a difference with its 95 % interval; p is twice the smaller share of resamples on one side of zero."""
    tail = min(np.sum(resampled <= 0), np.sum(resampled >= 0))
    low, high = np.quantile(resampled, [0.025, 0.975])
    p_value = min(1.0, 2 * (float(tail) + 1) / (len(resampled) + 1))
    return BootstrapTest(difference, Interval(float(low), float(high)), p_value, n)


def delong(ours: Floats, theirs: Floats, gold: Codes) -> PairedTest:
    """Return DeLong's test for two correlated AUROCs on the same rows (DeLong et al. 1988).

    For more than two labels it compares the macro means: a row's structural components are averaged over labels, and
    variances are taken within every true class. With two labels this is DeLong's own formula.
    """
    difference = macro_auroc(ours, gold).value - macro_auroc(theirs, gold).value
    influence = _influence(ours, gold) - _influence(theirs, gold)
    variance = 0.0
    for label in np.unique(gold):
        part = influence[gold == label]
        if len(part) < 2:
            raise UndefinedMetric("DeLong's test needs at least two rows of every class: label more rows")
        variance += len(part) / (len(part) - 1) * float(np.sum((part - part.mean()) ** 2))
    if variance <= 1e-24:
        return _certain(difference, len(gold))
    statistic = difference / np.sqrt(variance)
    return PairedTest(difference, float(statistic), float(2 * ndtr(-abs(statistic))), len(gold))


def _influence(scores: Floats, gold: Codes) -> Floats:
    """Return how much every row moves the macro AUROC: its structural component over the size of its side."""
    present = [int(label) for label in np.unique(gold)]
    parts = [_components(scores[:, label], gold == label) for label in present]
    return np.asarray(np.mean(parts, axis=0))


def _components(scores: Floats, positive: Mask) -> Floats:
    """Return V10 / n₁ for positive rows and V01 / n₀ for negative ones, from midranks (Sun & Xu 2014)."""
    overall = midranks(scores)
    positives, negatives = int(positive.sum()), int((~positive).sum())
    result = np.empty(len(scores))
    result[positive] = (overall[positive] - midranks(scores[positive])) / negatives / positives
    result[~positive] = (1 - (overall[~positive] - midranks(scores[~positive])) / positives) / negatives
    return result


def _certain(difference: float, n: int) -> PairedTest:
    """Return the result for a difference that does not vary: there is none, or no doubt about it."""
    unchanged = abs(difference) <= 1e-12
    return PairedTest(difference, 0.0 if unchanged else float(np.inf * np.sign(difference)), float(unchanged), n)


def _paired(ours: Sequence[float], theirs: Sequence[float]) -> Floats:
    if len(ours) != len(theirs):
        raise UndefinedMetric(f"{len(ours)} figures against {len(theirs)}: give one of each per pair")
    return np.asarray(ours, dtype=np.float64) - np.asarray(theirs, dtype=np.float64)
