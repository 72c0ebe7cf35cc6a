"""Whether one method is better than another: the paper's tests, and stricter ones."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np

from pcs_annotator.base.errors import UndefinedMetric
from pcs_annotator.core.arrays import Codes, Floats, Mask
from pcs_annotator.core.weights import Interval
from pcs_annotator.judging.metrics.bootstrap import TAIL, least_share
from pcs_annotator.judging.metrics.metrics import auroc
from pcs_annotator.judging.metrics.special import bdtr, ndtr, ndtri, stdtr, stdtrit

ERRORS, HALVINGS = 80, 20
Stars = Literal["***", "**", "*", "n.s."]
LEAST_ERROR = 0.75
"""Least standard error of a resampled difference, in rows.

A fit on few rows can happen to differ hardly at all from the method it is compared with. Resamples of these rows then
show hardly any spread, but other rows would have shown more of a difference. See `docs/design/intervals.md`.
"""


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
    """Difference of a figure between two methods on the same rows, with its 95 % interval."""

    difference: float
    interval: Interval
    p_value: float
    n: int


class Difference(NamedTuple):
    """A difference between the AUROCs of two methods on the same rows.

    Attributes:
        dataset: Which rows these are; rows of two datasets are independent.
        value: First minus second.
        influence: How much every row moves it.
        gold: Label code of every row.
    """

    dataset: str
    value: float
    influence: Floats
    gold: Codes


def paired_t_test(ours: Sequence[float], theirs: Sequence[float]) -> PairedTest:
    """Return the two-sided paired t-test, Eq. 3 of Salimian et al., over (model, dataset) pairs.

    It takes pairs as independent. Those on the same rows or with the same models are not, so that it finds differences
    too often where there are none; `mean_difference_test` needs the scores of every row and does not.
    """
    differences = _paired(ours, theirs)
    n = len(differences)
    if n < 2:
        raise UndefinedMetric(f"a paired t-test needs at least two pairs, got {n}")
    mean = float(differences.mean())
    error = float(differences.std(ddof=1)) / np.sqrt(n)
    if error <= 1e-12 * max(1.0, abs(mean)):  # all differences are equal up to rounding
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


def p_value_text(p_value: float) -> str:
    """Return a p-value as the paper prints it.

    >>> p_value_text(0.00027), p_value_text(0.0102)
    ('<0.001', '0.010')
    """
    return "<0.001" if p_value < 0.001 else f"{p_value:.3f}"


def p_text(p_value: float) -> str:
    """Return a p-value as part of a sentence.

    >>> p_text(0.0204), p_text(0.0001)
    ('p = 0.020', 'p < 0.001')
    """
    return f"p = {p_value_text(p_value)}".replace("= <", "< ")


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted by Holm's step-down method for a family of tests."""
    order = np.argsort(p_values, kind="stable")
    scaled = np.asarray(p_values)[order] * np.arange(len(order), 0, -1)
    adjusted = np.empty(len(order))
    adjusted[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return [float(value) for value in adjusted]


def false_discovery_rate(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted by Benjamini and Hochberg's step-up method (1995) for a family of tests."""
    order = np.argsort(p_values, kind="stable")[::-1]
    scaled = np.asarray(p_values)[order] * len(order) / np.arange(len(order), 0, -1)
    adjusted = np.empty(len(order))
    adjusted[order] = np.minimum.accumulate(np.minimum(scaled, 1.0))
    return [float(value) for value in adjusted]


def bootstrap_test(difference: float, resampled: Floats, n: int, widening: float = 1.0) -> BootstrapTest:
    """Return the paired test of a difference between two methods, both resampled on the same n rows.

    The standard error is that of the resampled differences, times `widening`; interval and p-value come from it and
    Student's t with n − 1 degrees of freedom, so p is below .05 if and only if the 95 % interval excludes 0. It is
    never smaller than three quarters of a row; where the difference never varies, the interval is as wide as that of a
    share without a single case among n rows.
    """
    quantile = float(stdtrit(n - 1, 1 - TAIL))
    spread = float(resampled.std())
    error = max(widening * spread, LEAST_ERROR / n) if spread else (1 - least_share(n)) / quantile
    interval = Interval(difference - quantile * error, difference + quantile * error)
    return BootstrapTest(difference, interval, float(2 * stdtr(n - 1, -abs(difference) / error)), n)


def rows_to_tell(test: BootstrapTest, difference: float, power: float = 0.8) -> int:
    """Return about how many rows like these a test needs to find a difference of this size, with this chance."""
    error = (test.interval.high - test.interval.low) / 2 / float(stdtrit(test.n - 1, 1 - TAIL))
    needed = float(ndtri(1 - TAIL) + ndtri(power)) * error / abs(difference)
    return int(np.ceil(test.n * needed**2))


def mcnemar(only_first: int, only_second: int) -> float:
    """Return the two-sided p-value of McNemar's exact test, from the rows that only one of two methods has right.

    >>> round(mcnemar(5, 15), 4)  # the sign test's table
    0.0414
    """
    return min(1.0, 2 * float(bdtr(min(only_first, only_second), only_first + only_second, 0.5)))


def delong(ours: Floats, theirs: Floats, gold: Codes, widening: float = 1.0) -> PairedTest:
    """Return DeLong's test for two correlated AUROCs on the same rows (DeLong et al. 1988).

    For more than two labels it compares the macro means: a row's structural components are averaged over labels, and
    variances are taken within every true class. With two labels this is DeLong's own formula.
    """
    difference = auroc(ours, gold) - auroc(theirs, gold)
    moved = influence(ours, gold) - influence(theirs, gold)
    return mean_difference_test([Difference("", difference, moved, gold)], widening)


def mean_difference_test(differences: Sequence[Difference], widening: float = 1.0) -> PairedTest:
    """Return DeLong's test of the mean of several differences, such as those of overlapping combinations of models.

    A row moves all differences on its dataset at once: its influences are added before variances are taken, so that
    nothing is assumed about how much the combinations share. The test is about new rows of these datasets, with these
    models. `widening` is a factor on the standard error.
    """
    if not differences:
        raise UndefinedMetric("a test needs at least one difference, got none")
    datasets = {one.dataset: one.gold for one in differences}
    moved = {name: np.zeros(len(gold)) for name, gold in datasets.items()}
    for one in differences:
        moved[one.dataset] += one.influence / len(differences)
    variance = sum(_variance(moved[name], gold) for name, gold in datasets.items())
    mean, rows = float(np.mean([one.value for one in differences])), sum(map(len, datasets.values()))
    if variance <= 1e-24:
        return _certain(mean, rows)
    statistic = mean / (widening * np.sqrt(variance))
    return PairedTest(mean, float(statistic), float(2 * ndtr(-abs(statistic))), rows)


def _variance(influence: Floats, gold: Codes) -> float:
    """Return the variance of a sum of influences, within every true class."""
    parts = [influence[gold == label] for label in np.unique(gold)]
    if min(map(len, parts)) < 2:
        raise UndefinedMetric("DeLong's test needs at least two rows of every class: label more rows")
    return sum(len(part) / (len(part) - 1) * float(np.sum((part - part.mean()) ** 2)) for part in parts)


def influence(scores: Floats, gold: Codes) -> Floats:
    """Return how much every row moves the macro AUROC: its structural component over the size of its side."""
    present = [int(label) for label in np.unique(gold)]
    parts = [_components(scores[:, label], gold == label) for label in present]
    return np.asarray(np.mean(parts, axis=0))


def _components(scores: Floats, positive: Mask) -> Floats:
    """Return V10 / n₁ for positive rows and V01 / n₀ for negative ones, from midranks (Sun & Xu 2014)."""
    overall = _midranks(scores)
    positives, negatives = int(positive.sum()), int((~positive).sum())
    result = np.empty(len(scores))
    result[positive] = (overall[positive] - _midranks(scores[positive])) / negatives / positives
    result[~positive] = (1 - (overall[~positive] - _midranks(scores[~positive])) / positives) / negatives
    return result


def _midranks(values: Floats) -> Floats:
    """Return ranks from 1; equal values share the mean of theirs."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[inverse])


def _certain(difference: float, n: int) -> PairedTest:
    """Return the result for a difference that does not vary: p is 1 for no difference, else 0."""
    unchanged = abs(difference) <= 1e-12
    return PairedTest(difference, 0.0 if unchanged else float(np.inf * np.sign(difference)), float(unchanged), n)


def _paired(ours: Sequence[float], theirs: Sequence[float]) -> Floats:
    if len(ours) != len(theirs):
        raise UndefinedMetric(f"{len(ours)} figures against {len(theirs)}: give one of each per pair")
    return np.asarray(ours, dtype=np.float64) - np.asarray(theirs, dtype=np.float64)


@lru_cache
def ratio_bound(low: float, high: float, level: float) -> float:
    r"""Return what the log-likelihood ratio of two error rates ever reaches with this probability at the lower rate.

    $-\log$ of the level always holds (Ville), but is passed by up to the size of a step. Here the probability is exact,
    but for sequences that first reach the bound after eighty errors.
    """
    too_low, enough = 0.0, -np.log(level)
    for _ in range(HALVINGS):
        middle = (too_low + enough) / 2
        above = _ever_reaches(middle, low, high) > level
        too_low, enough = (middle, enough) if above else (too_low, middle)
    return float(enough)


def _ever_reaches(bound: float, low: float, high: float) -> float:
    up, down = np.log(high / low), np.log1p(-low) - np.log1p(-high)
    right = np.arange(ERRORS * up / down)  # how many labels are right before an error
    all_right = (1 - low) ** right
    ways = np.where(right == 0, 1.0, 0.0)  # in which the bound was not reached, times the probability of their errors
    reached = 0.0
    for errors in range(1, ERRORS + 1):
        ways = low * ways.cumsum()
        above = int(max((errors * up - bound) / down + 1, 0))
        reached += float(ways[:above] @ all_right[:above])
        ways[:above] = 0.0
    return reached
