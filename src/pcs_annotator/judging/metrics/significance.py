"""Whether one method is better than another on the same rows, and how p-values are adjusted and shown."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from pcs_annotator.base.errors import UndefinedMetric
from pcs_annotator.core.weights import Interval
from pcs_annotator.judging.metrics.bootstrap import TAIL, least_share
from pcs_annotator.judging.metrics.special import bdtr, ndtri, stdtr, stdtrit

Stars = Literal["***", "**", "*", "n.s."]
# Least standard error of a resampled difference, in rows: a fit on few rows can happen to differ hardly at all from the
# method it is compared with, and then its resamples show hardly any spread. See `docs/design/intervals.md`.
LEAST_ERROR = 0.75


class BootstrapTest(NamedTuple):
    """Difference of a figure between two methods on the same rows, with its 95 % interval."""

    difference: float
    interval: Interval
    p_value: float
    n: int


def average_relative_improvement(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return the mean of (ours − theirs) / theirs, the paper's ARI; 0.05 means +5 %."""
    baseline = np.asarray(theirs, dtype=np.float64)
    if not len(baseline):
        raise UndefinedMetric("relative improvement needs at least one pair, got none")
    if (baseline <= 0).any():
        raise UndefinedMetric("relative improvement is undefined against a baseline of zero: leave that pair out")
    return float(np.mean((np.asarray(ours, dtype=np.float64) - baseline) / baseline))


def stars(p_value: float) -> Stars:
    """Return the paper's marks: *** p < .001, ** p < .01, * p < .05, n.s. otherwise."""
    if p_value < 0.001:
        return "***"
    if p_value < 0.01:
        return "**"
    return "*" if p_value < 0.05 else "n.s."


def p_value_text(p_value: float) -> str:
    """Return a p-value as the paper prints it, such as `0.010` or `<0.001`."""
    return "<0.001" if p_value < 0.001 else f"{p_value:.3f}"


def p_text(p_value: float) -> str:
    """Return a p-value as part of a sentence, such as `p = 0.020` or `p < 0.001`."""
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
    from scipy.stats import false_discovery_control

    return [float(value) for value in false_discovery_control(p_values)] if p_values else []


def bootstrap_test(difference: float, spread: float, n: int, widening: float = 1.0) -> BootstrapTest:
    """Return the paired test of a difference between two methods, both resampled on the same n rows.

    The standard error is the `spread` of the resampled differences, times `widening`, with Student's t and n − 1
    degrees of freedom. It is never smaller than three quarters of a row; where the difference never varies, the
    interval is as wide as that of a share without a single case among n rows.
    """
    quantile = float(stdtrit(n - 1, 1 - TAIL))
    error = max(widening * spread, LEAST_ERROR / n) if spread else (1 - least_share(n)) / quantile
    interval = Interval(difference - quantile * error, difference + quantile * error)
    return BootstrapTest(difference, interval, float(2 * stdtr(n - 1, -abs(difference) / error)), n)


def rows_to_tell(test: BootstrapTest, difference: float, power: float = 0.8) -> int:
    """Return about how many rows like these a test needs to find a difference of this size, with this chance."""
    error = (test.interval.high - test.interval.low) / 2 / float(stdtrit(test.n - 1, 1 - TAIL))
    needed = float(ndtri(1 - TAIL) + ndtri(power)) * error / abs(difference)
    return int(np.ceil(test.n * needed**2))


def mcnemar(only_first: int, only_second: int) -> float:
    """Return the two-sided p-value of McNemar's exact test, from the rows that only one of two methods has right."""
    return min(1.0, 2 * float(bdtr(min(only_first, only_second), only_first + only_second, 0.5)))
