"""Figures of merit for scores `[row, label]` against gold codes, on the rows at hand or on many resamples at once.

A resample is a column of counts: how often it drew each row. Rows are then sorted once for all resamples, and every
figure is a few sums over sorted rows. The figures of the rows at hand are those with all counts 1.

All functions need complete gold. An undefined figure raises `UndefinedMetric`. Only the confidence AUROC is nan on
resamples where it is undefined; `estimate_of` leaves these out.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from pcs_annotator.base.errors import UndefinedMetric
from pcs_annotator.core.arrays import Codes, Floats, Integers
from pcs_annotator.core.weights import Interval
from pcs_annotator.judging.metrics.significance import WIDENING, interval_around
from pcs_annotator.judging.metrics.special import betaincinv

BINS = 15
ROUNDING = 1e-9  # labels that share a row are added up as fractions
# Share of resamples on which a figure must be defined: for the confidence AUROC, about five wrong labels. Measured on
# simulated scores, without widening: intervals of an AUROC of .6 or .8 cover in 25 % of cases with one wrong label,
# 78 % with three, 87 % with five and 93 % with ten; those of .95 in 32, 67, 75 and 82 %.
LEAST_DEFINED = 0.99
MEAN_DISTANCE = float(np.sqrt(2 / np.pi))  # of a normal variable from its mean, in standard deviations


class Estimate(NamedTuple):
    """A figure with its 95 % interval and the number of rows behind it."""

    value: float
    interval: Interval
    n: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"value": self.value, "interval": list(self.interval), "n": self.n}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Estimate":
        """Return what `to_dict` wrote."""
        return cls(values["value"], Interval(*values["interval"]), values["n"])


class ReliabilityBin(NamedTuple):
    """Rows of similar confidence: their mean confidence, and their accuracy with its exact 95 % interval."""

    confidence: float
    accuracy: float
    rows: int
    interval: Interval


class ChosenFigures(NamedTuple):
    """Figures of the chosen labels and their confidence, `[resample]` each."""

    auroc: Floats  # of right against wrong labels; nan where all are right or all wrong
    accuracy: Floats
    macro_f1: Floats
    brier: Floats
    ece: Floats
    aurc: Floats
    accuracy_at: tuple[Floats, ...]
    review_share: tuple[Floats, ...]


def auroc(scores: Floats, gold: Codes) -> float:
    """Return the class AUROC, macro one-vs-rest, ties counting half; labels that no row has are left out."""
    if (gold == gold[:1]).all():
        raise UndefinedMetric(
            f"AUROC needs two classes, but all {len(gold)} rows have the same gold label: label more rows"
        )
    return float(auroc_on(scores, gold, np.ones(len(gold))))


def auroc_confidence(scores: Floats, gold: Codes) -> float:
    """Return the confidence AUROC: how often a right label is more confident than a wrong one, ties counting half."""
    area = float(auroc_confidence_on(scores, gold, np.ones((len(gold), 1)))[0])
    if np.isnan(area):
        raise UndefinedMetric(
            f"confidence AUROC needs right and wrong labels, but all {len(gold)} are alike: label more rows"
        )
    return area


def reliability(scores: Floats, gold: Codes, bins: int = BINS) -> list[ReliabilityBin]:
    """Return the reliability diagram: rows in bins of equal mass by the confidence of their best label.

    Rows of equal confidence always share a bin, so there may be fewer bins than asked for.
    """
    groups = _ByConfidence.of(scores, gold, np.ones((len(gold), 1)))
    size, right = groups.size[:, 0], groups.right[:, 0]
    bin_of = groups.bins(bins)[:, 0]
    sums = zip(*(np.bincount(bin_of, part) for part in (groups.confidence * size, right, size)), strict=True)
    return [
        ReliabilityBin(float(s / n), float(r / n), int(n), exact_interval(float(r), int(n))) for s, r, n in sums if n
    ]


def exact_interval(right: float, rows: int, level: float = 0.95) -> Interval:
    """Return the Clopper–Pearson interval of right/rows; shared ties make `right` a fraction."""
    tail, right = (1 - level) / 2, round(right, 9)
    return Interval(
        float(betaincinv(right, rows - right + 1, tail)) if right > 0 else 0.0,
        float(betaincinv(right + 1, rows - right, 1 - tail)) if right < rows else 1.0,
    )


def accuracy_of(value: float, rows: int) -> Estimate:
    """Return a cross-validated share of right rows; no end of its interval is inside the exact or the widened one."""
    exact, half = exact_interval(value * rows, rows), WIDENING * 1.96 * float(np.sqrt(value * (1 - value) / rows))
    return Estimate(
        value, Interval(max(min(exact.low, value - half), 0.0), min(max(exact.high, value + half), 1.0)), rows
    )


def estimate_of(
    value: float, resampled: Floats, n: int, least: float, *, widening: float = WIDENING, lowest: float = 0.0
) -> Estimate | None:
    """Return a cross-validated figure with its interval; None if undefined (nan) on the rows or too many resamples.

    For `least`, `widening` and `lowest` see `interval_around`.
    """
    defined = resampled[~np.isnan(resampled)]
    if np.isnan(value) or len(defined) < LEAST_DEFINED * len(resampled):
        return None
    return Estimate(value, interval_around(value, defined, least, widening, lowest), n)


def auroc_on(scores: Floats, gold: Codes, counts: Floats) -> Floats:
    """Return the macro one-vs-rest AUROC on every resample (or one, if counts are `[row]`), over labels that it has."""
    values, defined = [], []
    for label in np.unique(gold):
        order = np.argsort(scores[:, label])  # tied rows are added up, so their order does not matter
        starts = _starts_of_runs(scores[order, label])
        ordered = counts[order]
        positive = (ordered.T * (gold[order] == label)).T
        if len(starts) < len(order):
            ordered, positive = (np.add.reduceat(each, starts, axis=0) for each in (ordered, positive))
        negative = ordered - positive
        below = np.cumsum(negative, axis=0) - negative / 2
        pairs = positive.sum(axis=0) * negative.sum(axis=0)
        values.append(np.sum(positive * below, axis=0) / np.maximum(pairs, 1))
        defined.append(pairs > 0)
    return np.asarray(np.sum(values, axis=0) / np.sum(defined, axis=0))


def auroc_confidence_on(scores: Floats, gold: Codes, counts: Floats) -> Floats:
    """Return the confidence AUROC on every resample, `[row, resample]`; nan where all labels are right or all wrong."""
    return _ByConfidence.of(scores, gold, counts).auroc()


def _starts_of_runs(ordered: Floats) -> Integers:
    return np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])).astype(np.intp)


def ends_of_runs(ordered: Floats) -> Integers:
    """Return the last position of each run of equal values, so that tied rows can be taken together."""
    return np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True)).astype(np.intp)


def chosen_on(
    scores: Floats, gold: Codes, counts: Floats, coverages: tuple[float, ...] = (), targets: tuple[float, ...] = ()
) -> ChosenFigures:
    """Return the figures of the chosen labels on every resample, `[row, resample]`; tied best labels share a row.

    Rows of equal confidence enter the area under the risk–coverage curve (AURC) and the accuracy at a coverage in
    random order, in expectation: errors grow linearly among them.

    `coverages` are shares of rows, most confident first, for the accuracy among them; `targets` are accuracies, for the
    share of rows a person must review so that the others reach them, 1 when no threshold does. That looks at gold, so
    it describes these rows and promises nothing for others.
    """
    rows = len(gold)
    truth = np.eye(scores.shape[1])[gold]
    accuracy, macro_f1 = label_figures_on(best_labels(scores), gold, counts)
    groups = _ByConfidence.of(scores, gold, counts)
    curve = _Curve.of(groups.size[::-1], (groups.size - groups.right)[::-1])
    return ChosenFigures(
        auroc=groups.auroc(),
        accuracy=accuracy,
        macro_f1=macro_f1,
        brier=np.sum((scores - truth) ** 2, axis=1) @ counts / rows,
        ece=groups.error_above_noise(),
        aurc=curve.area(),
        accuracy_at=tuple(1 - curve.errors_at(coverage * rows) / (coverage * rows) for coverage in coverages),
        review_share=tuple(1 - curve.widest(1 - target) / rows for target in targets),
    )


def label_figures_on(shares: Floats, gold: Codes, counts: Floats) -> tuple[Floats, Floats]:
    """Return accuracy and macro F1 on every resample; `shares` says how much of each label a row has.

    The mean F1 is over the labels that gold or predictions contain.
    """
    truth = np.eye(shares.shape[1])[gold]
    hits, size = (shares * truth).T @ counts, (shares + truth).T @ counts
    f1 = np.sum(2 * hits / np.where(size > 0, size, 1), axis=0) / (size > 0).sum(axis=0)
    return (shares * truth).sum(axis=1) @ counts / len(gold), np.asarray(f1)


def best_labels(scores: Floats) -> Floats:
    """Return 1 for the best label of each row; tied labels share it, so that their order cannot matter."""
    best = scores == scores.max(axis=1, keepdims=True)
    return np.asarray(best / best.sum(axis=1, keepdims=True))


class _ByConfidence(NamedTuple):
    """Groups of rows that share the confidence of their best label, lowest first."""

    confidence: Floats  # `[group]`
    size: Floats  # rows, `[group, resample]`
    right: Floats  # right labels, `[group, resample]`
    variance: Floats  # that of `right` if the scores were perfectly calibrated, `[group, resample]`

    @classmethod
    def of(cls, scores: Floats, gold: Codes, counts: Floats) -> "_ByConfidence":
        confidence = scores.max(axis=1)
        order = np.argsort(confidence, kind="stable")
        starts = _starts_of_runs(confidence[order])
        best = best_labels(scores)
        ordered, correct = counts[order], best[np.arange(len(gold)), gold][order, np.newaxis]
        # n tied best labels of probability p are right by 1/n with a chance of n·p
        spread = (confidence * np.maximum(best.max(axis=1) - confidence, 0))[order, np.newaxis]
        return cls(
            confidence[order[starts]],
            np.add.reduceat(ordered, starts, axis=0),
            np.add.reduceat(ordered * correct, starts, axis=0),
            np.add.reduceat(ordered**2 * spread, starts, axis=0),  # a row drawn twice is right or wrong twice
        )

    def bins(self, bins: int) -> Integers:
        """Return the bin of every group, `[group, resample]`; it follows from the midrank of its rows."""
        midrank = np.cumsum(self.size, axis=0) - (self.size - 1) / 2
        return np.clip(((midrank - 0.5) / self.size[:, 0].sum() * bins).astype(np.intp), 0, bins - 1)

    def auroc(self) -> Floats:
        """Return how often a right label has a higher confidence than a wrong one; nan if all are right or wrong."""
        wrong = self.size - self.right
        below = np.cumsum(wrong, axis=0) - wrong / 2
        pairs = self.right.sum(axis=0) * wrong.sum(axis=0)
        defined = pairs > ROUNDING
        return np.where(defined, np.sum(self.right * below, axis=0) / np.where(defined, pairs, 1), np.nan)

    def error_above_noise(self) -> Floats:
        """Return the expected calibration error less its noise floor on every resample, never below 0."""
        gaps, variance = self._by_bin(self.confidence[:, np.newaxis] * self.size - self.right, self.variance)
        above = np.abs(gaps) - MEAN_DISTANCE * np.sqrt(variance)
        return np.maximum(above.sum(axis=0) / self.size[:, 0].sum(), 0.0)

    def _by_bin(self, *values: Floats) -> list[Floats]:
        """Return the sums over the groups of each bin, `[bin, resample]`."""
        resamples = self.size.shape[1]
        flat = (self.bins(BINS) * resamples + np.arange(resamples)).ravel()
        sums = [np.bincount(flat, values_of.ravel(), minlength=BINS * resamples) for values_of in values]
        return [np.asarray(values_of, dtype=np.float64).reshape(BINS, resamples) for values_of in sums]


class _Curve(NamedTuple):
    """Rows and errors by falling confidence, `[group, resample]`: in each group, and in those before it."""

    size: Floats
    wrong: Floats
    size_before: Floats
    wrong_before: Floats

    @classmethod
    def of(cls, size: Floats, wrong: Floats) -> "_Curve":
        return cls(size, wrong, np.cumsum(size, axis=0) - size, np.cumsum(wrong, axis=0) - wrong)

    def _rate(self) -> Floats:
        return np.asarray(self.wrong / np.maximum(self.size, 1))

    def area(self) -> Floats:
        """Return the mean over j = 1 … n of the errors among the j most confident rows, divided by j.

        Inside a group errors grow linearly, e + (j − c)·r, so its rows add (e − c·r)·(1/(c+1) + …) + r·size.
        """
        rows = int(self.size[:, 0].sum())
        harmonic = np.append(0.0, np.cumsum(1 / np.arange(1, rows + 1)))
        first = np.round(self.size_before).astype(np.intp)
        last = np.round(self.size_before + self.size).astype(np.intp)
        rate = self._rate()
        parts = (self.wrong_before - self.size_before * rate) * (harmonic[last] - harmonic[first]) + rate * self.size
        return np.asarray(parts.sum(axis=0) / rows)

    def errors_at(self, rows: float) -> Floats:
        """Return the errors among the most confident rows, tied ones in part."""
        taken = np.clip(rows - self.size_before, 0, self.size)
        return np.asarray(np.sum(taken * self._rate(), axis=0))

    def widest(self, risk: float) -> Floats:
        """Return how many of the most confident rows can be taken without exceeding the risk."""
        taken = self.size_before + self.size
        good = self.wrong_before + self.wrong <= (risk + 1e-12) * taken
        return np.asarray(np.where(good, taken, 0.0).max(axis=0))
