r"""Which labels can be accepted with a promised error rate.

Learn then Test (Angelopoulos et al., 2021): when $e$ of the $m$ rows at or above a threshold are wrong, the exact
binomial p-value of an error rate above $\alpha$ is $P(\mathrm{Bin}(m,\alpha)\le e)$. Thresholds are tested one after
another, each at the full level of this look, until the first one fails; all that passed hold simultaneously with that
certainty. The levels of all looks together are at most $\delta$. The sequence starts where the test is most likely to
pass if rows are right as often as their confidence says, and continues to looser thresholds.

The share of wrong labels among the accepted *on average* is another promise with its own name: false discoveries (Jin
and Candès, 2023). If $w$ of $n$ gold rows are wrong at or above a threshold, $m (w + 1) / (n + 1)$ of the $m$ rows of a
table are expected to be. The loosest threshold is used at which that is at most $\alpha$ of the accepted
(Benjamini–Hochberg, conformal p-values).
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from pcs_annotator.core.arrays import Codes, Floats, Integers, Mask
from pcs_annotator.core.votes import positions_of
from pcs_annotator.judging.heldout import Judged
from pcs_annotator.judging.metrics.figures import ends_of_runs
from pcs_annotator.judging.metrics.special import bdtr, bdtrin
from pcs_annotator.judging.promise.promise import Promise

EVERY_LABEL = ""
ROUNDING = 1e-9


Thresholds = Mapping[str, float]
"""Label → the minimum confidence to accept it, or `EVERY_LABEL` → one for all; other labels are never accepted."""


def find_thresholds(
    judged: Judged, labels: Sequence[str], promise: Promise, level: float | None = None, table: Judged | None = None
) -> dict[str, float]:
    """Return the loosest thresholds that keep the promise, tested at a level, by default that of a first look.

    `table` are the rows without gold that false discoveries are counted among: which of them are right is unknown.
    Without them, gold rows stand for them.
    """
    about = table or judged
    level = promise.level(len(judged.right)) if level is None else level
    if not promise.divided:
        threshold = _threshold(judged, promise, level, about.confidence)
        return {} if threshold is None else {EVERY_LABEL: threshold}
    # each label or group gets an equal share, so that all thresholds hold simultaneously
    share = level / (promise.division(rows_in(judged, labels), level)[0] if promise.by else len(labels))
    by_label = {
        label: _threshold(judged.take(judged.best == code), promise, share, about.confidence[about.best == code])
        for code, label in enumerate(labels)
    }
    return {label: threshold for label, threshold in by_label.items() if threshold is not None}


def rows_in(judged: Judged, labels: Sequence[str]) -> list[int]:
    """Return how many rows each label has; rows that are judged by group have a group in its place."""
    return [int((judged.best == code).sum()) for code in range(len(labels))]


def accepted(confidence: Floats, best: Codes | Integers, labels: Sequence[str], thresholds: Thresholds) -> Mask:
    """Return which rows are accepted."""
    if EVERY_LABEL in thresholds:
        return np.asarray(confidence >= thresholds[EVERY_LABEL])
    least = np.full(len(labels), np.inf)
    least[positions_of(list(thresholds), labels, "label")] = list(thresholds.values())
    return np.asarray(confidence >= least[best])


class Steps(NamedTuple):
    """The rows that each distinct confidence would accept as a threshold, strictest first."""

    threshold: Floats
    rows: Integers
    wrong: Integers
    expected_error: Floats


def steps_of(judged: Judged) -> Steps:
    """Return the rows that each threshold would accept."""
    order = np.argsort(-judged.confidence, kind="stable")
    return counted_steps(judged.confidence[order], np.ones(len(order), dtype=np.intp), ~judged.right[order])


def counted_steps(confidence: Floats, rows: Integers, wrong: Integers | Mask) -> Steps:
    """Return the same for numbers of rows, and of wrong ones among them, with confidences in descending order.

    `[…, confidence]`: there may be several samples with the same confidences.
    """
    ends = ends_of_runs(confidence)
    total = np.cumsum(rows, axis=-1)[..., ends]
    expected = np.cumsum(rows * (1 - confidence), axis=-1)[..., ends] / np.maximum(total, 1)
    return Steps(confidence[ends], total, np.cumsum(wrong, axis=-1, dtype=np.intp)[..., ends], expected)


def accepted_rows(steps: Steps, promise: Promise, delta: float) -> Integers:
    """Return how many rows of each sample are accepted under the promise, tested at level δ."""
    last = last_passing(steps, promise, delta)[..., np.newaxis]
    rows = np.take_along_axis(steps.rows, np.maximum(last, 0), axis=-1)
    return np.where(last >= 0, rows, 0)[..., 0]


def _threshold(judged: Judged, promise: Promise, delta: float, table: Floats) -> float | None:
    if not len(judged.right):
        return None
    if not promise.tested:
        return _benjamini_hochberg(judged, table, promise.max_error)
    steps = steps_of(judged)
    last = int(last_passing(steps, promise, delta))
    return float(steps.threshold[last]) if last >= 0 else None


def last_passing(steps: Steps, promise: Promise, delta: float) -> Integers:
    """Return the loosest step that keeps the promise; −1 when none does."""
    if promise.tested:
        return _learn_then_test(steps, promise.max_error, delta)
    all_rows = steps.rows[..., -1:]  # loosening may help, so the last that passes counts
    passes = (steps.wrong + 1) * all_rows <= promise.max_error * steps.rows * (all_rows + 1)
    return np.where(passes, np.arange(passes.shape[-1]), -1).max(axis=-1)


def _benjamini_hochberg(judged: Judged, table: Floats, alpha: float) -> float | None:
    """Return the loosest confidence at which few enough of the accepted rows of a table are expected to be wrong."""
    rising, wrong = np.sort(table), np.sort(judged.confidence[~judged.right])
    accepts = len(table) - np.searchsorted(rising, rising)
    false = (len(wrong) - np.searchsorted(wrong, rising) + 1) * len(table) / (len(judged.right) + 1)
    passes = np.flatnonzero((false <= alpha * accepts) & (rising >= 0))
    # a row judged among others may differ in the last digit
    return float(rising[passes[0]]) - ROUNDING if len(passes) else None


def _learn_then_test(steps: Steps, alpha: float, delta: float) -> Integers:
    """Return the last step of the sequence that passes; −1 when the first fails."""
    # the most errors with which a step passes; −1 where there are too few rows even with no error
    most = 1 << int(steps.rows.max()).bit_length()  # a power of two, so that samples of similar sizes share one table
    allowed = np.searchsorted(_least_rows(most, alpha, delta), steps.rows, side="right") - 1
    passes = steps.wrong <= allowed
    if not passes.any():
        return np.full(passes.shape[:-1], -1)
    power = np.where(allowed >= 0, bdtr(np.maximum(allowed, 0), steps.rows, np.clip(steps.expected_error, 0, 1)), 0.0)
    start = np.argmax(power, axis=-1)
    passes = passes | (np.arange(passes.shape[-1]) < start[..., np.newaxis])
    last = np.logical_and.accumulate(passes, axis=-1).sum(axis=-1) - 1
    return np.where(last >= start, last, -1)


@lru_cache(maxsize=64)
def _least_rows(most: int, alpha: float, delta: float) -> Integers:
    """Return the fewest rows with which 0, 1, 2, … errors pass the test, for samples of at most so many rows.

    A level is below one half, so a sample that passes has no more errors than the median of what α makes probable.
    """
    errors = np.arange(int(most * alpha) + 2)
    rows = np.ceil(bdtrin(errors, delta, alpha)).astype(np.intp) - 1
    for _ in range(2):  # the inverse is approximate, so the test itself decides between neighbours
        rows += bdtr(errors, rows, alpha) > delta
    return rows
