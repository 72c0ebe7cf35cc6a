"""What resampled rows tell: intervals around a figure, whether two methods differ, and how p-values are shown."""

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np

from pcs_annotator.base.errors import UndefinedMetric
from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.core.weights import Interval
from pcs_annotator.judging.metrics.special import bdtr, expit, ndtri, stdtr, stdtrit

CHUNK = 1 << 20  # counts held at a time, so that memory stays small however many rows there are
TRIES = 20
TAIL = 0.025
BISECTIONS = 50  # of 60 log-odds: what is left is rounding
# How much wider the intervals of cross-validated figures are than resampled rows alone would make them: resamples keep
# the fits, but other gold rows would also have learned other weights. See `docs/design/intervals.md`.
WIDENING = 1.2


def resample_counts(gold: Codes, resamples: int, seed: int) -> Iterator[Floats]:
    """Yield how often each row was drawn, `[row, resample]`, some resamples at a time; each has two classes or more."""
    if resamples < 1:
        raise UndefinedMetric(f"a bootstrap interval needs at least one resample, not {resamples}")
    rng, rows = np.random.default_rng(seed), len(gold)
    size, left = max(1, CHUNK // rows), resamples
    for _ in range(TRIES + resamples // size):
        drawn = rng.integers(rows, size=(min(size, left), rows))
        drawn = drawn[(gold[drawn] != gold[drawn[:, :1]]).any(axis=1)]
        left -= len(drawn)
        if len(drawn):
            places = drawn + rows * np.arange(len(drawn))[:, np.newaxis]
            counts = np.bincount(places.ravel(), minlength=rows * len(drawn)).reshape(len(drawn), rows)
            yield np.ascontiguousarray(counts.T, dtype=np.float64)
        if not left:
            return
    raise UndefinedMetric(f"{rows} rows are too few for a bootstrap interval: label more rows")


def interval_around(
    value: float, resampled: Floats, least: float, widening: float = 1.0, lowest: float = 0.0
) -> Interval:
    """Return the 95 % interval of a figure, at least `lowest`, from its values on resampled rows.

    Their quantiles are shifted so that their mean is the figure itself, because resampling repeats rows and that alone
    raises figures such as the ECE. No interval has a higher lower end than a perfect figure has on these rows (`least`,
    see `least_share` and `least_auroc`), nor a lower upper end than a figure of 0.
    """
    low, high = value + widening * (np.quantile(resampled, [TAIL, 1 - TAIL]) - resampled.mean())
    most = max(1.0, float(resampled.max()))
    return Interval(max(lowest, min(float(low), value, least)), min(max(float(high), value, 1 - least), most))


def least_share(rows: int) -> float:
    """Return the lower end of the exact 95 % interval of a share when all rows are right (Clopper–Pearson)."""
    return float(TAIL ** (1 / rows))


def least_auroc(gold: Codes) -> float:
    """Return the lower end of the 95 % interval of a perfect AUROC; the mean over labels, each against the others.

    It is exact under Hanley and McNeil's model of scores (1982), in which one class has the other's distribution raised
    to a power θ, so that AUROC is θ / (1 + θ): n positive rows all rank above m others with probability
    ∏ iθ / (iθ + m), i = 1 … n. The class that is raised is the one that gives the lower end.
    """
    counts = np.unique(gold, return_counts=True)[1]
    if len(counts) < 2:
        return 1.0  # there is no AUROC to bound
    return float(np.mean([min(_least(a, len(gold) - a), _least(len(gold) - a, a)) for a in counts.tolist()]))


def _least(positive: int, negative: int) -> float:
    ranks, low, high = np.arange(1, positive + 1), -30.0, 30.0
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if -np.log1p(negative / (ranks * np.exp(middle))).sum() < np.log(TAIL):
            low = middle
        else:
            high = middle
    return float(expit(high))


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
