"""Bootstrap resamples of rows, and intervals around a figure."""

from collections.abc import Iterator

import numpy as np

from pcs_annotator.base.errors import UndefinedMetric
from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.core.weights import Interval
from pcs_annotator.judging.metrics.special import expit

CHUNK = 1 << 20  # counts held at a time, so that memory stays small however many rows there are
TRIES = 20
TAIL = 0.025
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
    from scipy.optimize import brentq  # takes a fifth of a second to load

    ranks = np.arange(1, positive + 1)

    def above_tail(log_odds: float) -> float:
        return float(-np.log1p(negative / (ranks * np.exp(log_odds))).sum() - np.log(TAIL))

    return float(expit(brentq(above_tail, -30, 30)))
