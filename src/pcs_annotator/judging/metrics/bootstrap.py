"""All figures of a method on many resamples of the rows at once.

A resample is a column of counts: how often it drew every row. Whatever a figure sorts by is then sorted once for all
resamples, and every figure is a handful of sums over sorted rows. With all counts 1, each equals its namesake in
`metrics`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from pcs_annotator.core.arrays import Codes, Floats, Integers, Mask
from pcs_annotator.core.weights import Interval
from pcs_annotator.errors import UndefinedMetric
from pcs_annotator.judging.metrics.metrics import BINS

CHUNK = 1 << 20
"""Counts held at a time: memory stays small however many rows there are."""
TRIES = 20


class ChosenFigures(NamedTuple):
    """Figures of what the scores choose and how sure they are, `[resample]` each."""

    accuracy: Floats
    macro_f1: Floats
    brier: Floats
    ece: Floats
    aurc: Floats
    accuracy_at: tuple[Floats, ...]
    review_share: tuple[Floats, ...]


def resample_counts(gold: Codes, resamples: int, seed: int) -> Iterator[Floats]:
    """Yield counts `[row, resample]`, some resamples at a time; each has rows of at least two classes."""
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


def auroc_on(scores: Floats, gold: Codes, counts: Floats) -> Floats:
    """Return the macro one-vs-rest AUROC on every resample; labels that it lacks are left out of the mean."""
    values, defined = [], []
    for label in np.unique(gold):
        positive, total = _sums_by_score(scores[:, label], counts, gold == label)
        negative = total - positive
        below = np.cumsum(negative, axis=0) - negative / 2
        pairs = positive.sum(axis=0) * negative.sum(axis=0)
        values.append(np.sum(positive * below, axis=0) / np.maximum(pairs, 1))
        defined.append(pairs > 0)
    return np.asarray(np.sum(values, axis=0) / np.sum(defined, axis=0))


def _sums_by_score(scores: Floats, counts: Floats, positive: Mask) -> tuple[Floats, Floats]:
    """Return how many positive rows and how many rows in all have each distinct score, lowest first."""
    order, starts = _groups(scores)
    ordered = counts[order]
    return (
        np.add.reduceat(ordered * positive[order, np.newaxis], starts, axis=0),
        np.add.reduceat(ordered, starts, axis=0),
    )


def _groups(values: Floats) -> tuple[Integers, Integers]:
    """Return the order of rising values, and where in it every distinct value starts."""
    order = np.argsort(values, kind="stable")
    return order, np.flatnonzero(np.append(True, np.diff(values[order]) != 0)).astype(np.intp)


def chosen_on(
    scores: Floats, gold: Codes, counts: Floats, coverages: tuple[float, ...] = (), targets: tuple[float, ...] = ()
) -> ChosenFigures:
    """Return the other figures on every resample.

    Args:
        scores: `[row, label]`.
        gold: Label code of every row.
        counts: `[row, resample]`.
        coverages: Shares of most confident rows, for the accuracy among them.
        targets: Accuracies, for the share of rows that a person must see to reach them.
    """
    rows = len(gold)
    best = scores == scores.max(axis=1, keepdims=True)
    predicted = best / best.sum(axis=1, keepdims=True)
    truth = np.eye(scores.shape[1])[gold]
    correct = predicted[np.arange(rows), gold]
    order, starts = _groups(scores.max(axis=1))
    ordered = counts[order]
    size = np.add.reduceat(ordered, starts, axis=0)
    right = np.add.reduceat(ordered * correct[order, np.newaxis], starts, axis=0)
    curve = _Curve.of(size[::-1], (size - right)[::-1])
    return ChosenFigures(
        accuracy=right.sum(axis=0) / rows,
        macro_f1=_macro_f1(predicted, truth, counts),
        brier=np.sum((scores - truth) ** 2, axis=1) @ counts / rows,
        ece=_ece(scores.max(axis=1)[order[starts]], size, right, rows),
        aurc=curve.area(),
        accuracy_at=tuple(1 - curve.errors_at(coverage * rows) / (coverage * rows) for coverage in coverages),
        review_share=tuple(1 - curve.widest(1 - target) / rows for target in targets),
    )


def _macro_f1(predicted: Floats, truth: Floats, counts: Floats) -> Floats:
    hits = (predicted * truth).T @ counts
    size = (predicted + truth).T @ counts
    seen = size > 0
    return np.asarray(np.sum(2 * hits / np.where(seen, size, 1), axis=0) / seen.sum(axis=0))


def _ece(confidence: Floats, size: Floats, right: Floats, rows: int) -> Floats:
    """Return the calibration error; equal confidences share a bin, which follows from their midrank."""
    midrank = np.cumsum(size, axis=0) - (size - 1) / 2
    place = np.clip(((midrank - 0.5) / rows * BINS).astype(np.intp), 0, BINS - 1)
    resamples = size.shape[1]
    flat = (place * resamples + np.arange(resamples)).ravel()
    gap = np.bincount(flat, (confidence[:, np.newaxis] * size - right).ravel(), minlength=BINS * resamples)
    return np.asarray(np.abs(gap.reshape(BINS, resamples)).sum(axis=0) / rows)


class _Curve(NamedTuple):
    """Rows and errors by falling confidence, `[group, resample]`: in each group, and in those before it."""

    size: Floats
    wrong: Floats
    size_before: Floats
    wrong_before: Floats

    @classmethod
    def of(cls, size: Floats, wrong: Floats) -> _Curve:
        return cls(size, wrong, np.cumsum(size, axis=0) - size, np.cumsum(wrong, axis=0) - wrong)

    def _rate(self) -> Floats:
        return np.asarray(self.wrong / np.maximum(self.size, 1))

    def area(self) -> Floats:
        """Return the mean over j = 1 … n of the errors among the j surest rows over j.

        Inside a group errors grow linearly, e + (j − c)·r, so its rows add (e − c·r)·(1/(c+1) + … ) + r·size.
        """
        rows = int(self.size[:, 0].sum())
        harmonic = np.append(0.0, np.cumsum(1 / np.arange(1, rows + 1)))
        first = np.round(self.size_before).astype(np.intp)
        last = np.round(self.size_before + self.size).astype(np.intp)
        rate = self._rate()
        parts = (self.wrong_before - self.size_before * rate) * (harmonic[last] - harmonic[first]) + rate * self.size
        return np.asarray(parts.sum(axis=0) / rows)

    def errors_at(self, rows: float) -> Floats:
        """Return the errors among the surest rows, tied ones in part."""
        taken = np.clip(rows - self.size_before, 0, self.size)
        return np.asarray(np.sum(taken * self._rate(), axis=0))

    def widest(self, risk: float) -> Floats:
        """Return how many of the surest rows can be taken at no more than that risk."""
        taken = self.size_before + self.size
        good = self.wrong_before + self.wrong <= (risk + 1e-12) * taken
        return np.asarray(np.where(good, taken, 0.0).max(axis=0))


def interval_around(value: float, resampled: Floats, level: float = 0.95) -> Interval:
    """Return the interval of resampled figures, moved so that their mean lies on the figure itself.

    Resampling repeats rows, which alone raises figures such as an ECE. The figure itself always lies inside, also
    where resampled ones lump together.
    """
    low, high = np.quantile(resampled, [(1 - level) / 2, (1 + level) / 2]) + (value - resampled.mean())
    top = max(value, float(resampled.max()))
    return Interval(max(0.0, min(float(low), value)), min(max(float(high), value), top))
