"""Bootstrap resamples of rows, and intervals around a figure."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pcs_annotator.core.arrays import Codes, Floats, Integers
from pcs_annotator.core.weights import Interval
from pcs_annotator.errors import UndefinedMetric

CHUNK = 1 << 20
"""Counts held at a time, so that memory stays small however many rows there are."""
TRIES = 20
LEVEL = 0.95


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
            yield _counted(drawn, rows)
        if not left:
            return
    raise UndefinedMetric(f"{rows} rows are too few for a bootstrap interval: label more rows")


def _counted(drawn: Integers, rows: int) -> Floats:
    places = drawn + rows * np.arange(len(drawn))[:, np.newaxis]
    counts = np.bincount(places.ravel(), minlength=rows * len(drawn)).reshape(len(drawn), rows)
    return np.ascontiguousarray(counts.T, dtype=np.float64)


def interval_around(value: float, resampled: Floats) -> Interval:
    """Return the 95 % interval of resampled figures, shifted so that their mean is the figure itself.

    Resampling repeats rows, and that alone raises figures such as the ECE. The interval always contains the figure,
    even where many resampled figures are equal.
    """
    low, high = np.quantile(resampled, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]) + (value - resampled.mean())
    top = max(value, float(resampled.max()))
    return Interval(max(0.0, min(float(low), value)), min(max(float(high), value), top))
