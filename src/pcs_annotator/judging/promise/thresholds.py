"""Which labels can be accepted with a promised error rate, and how many gold rows that would probably take.

With certainty: Learn then Test (Angelopoulos et al., 2021) on exact binomial p-values, in a sequence that starts where
the test is most likely to pass. On average: false discoveries (Jin and Candès, 2023), by conformal p-values and
Benjamini–Hochberg. See `docs/design/promises.md`.
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
from pcs_annotator.judging.promise.whole_table import few_enough

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


DRAWS = 40
GROWTH = 1.5
MOST_ROWS = 5_000
WORTHWHILE = 0.05
GROUPS = 5
PSEUDO_ROWS = 10.0


class RowsNeeded(NamedTuple):
    """Gold rows in all with which the promise is made with even odds, and in four cases out of five."""

    even_odds: int
    likely: int


def rows_needed(
    judged: Judged, labels: Sequence[str], promise: Promise, spent: float = 0.0, seed: int = 0
) -> RowsNeeded | None:
    """Return how many gold rows the promise would probably need; None when thousands would not be enough.

    Larger samples are simulated. Their rows have the confidences of the rows at hand, and each fifth of them, by
    confidence, is wrong as often as it may be after what was seen, and after ten more rows with as many errors as the
    promise allows (Beta): luck is not taken for quality. A sample succeeds if it accepts a useful share of its rows.
    """
    rng = np.random.default_rng(seed)
    order = np.argsort(-judged.confidence, kind="stable")
    wrong, right, group = _by_confidence(judged.take(order), promise.max_error)
    confidence, best = judged.confidence[order], judged.best[order]
    parts = [best == code for code in np.unique(best)] if promise.divided else [best >= 0]
    tests = len(labels) if promise.divided else 1

    def odds_of(size: int) -> float:
        rows = rng.multinomial(size, np.full(len(group), 1 / len(group)), size=DRAWS)  # how often each row is drawn
        errors = rng.binomial(rows, rng.beta(wrong, right, size=(DRAWS, GROUPS))[:, group])
        level = promise.level(size, spent) / tests
        steps = (counted_steps(confidence[part], rows[:, part], errors[:, part]) for part in parts)
        taken = sum(accepted_rows(each, promise, level) for each in steps)
        return float(np.mean(taken >= max(WORTHWHILE * size, 1)))

    sizes, odds = [], list[float]()
    size = max(promise.least_rows(spent), len(group) + 1)
    while size <= MOST_ROWS:
        sizes.append(size)
        odds.append(max([odds_of(size), *odds[-1:]]))
        if odds[-1] >= 0.8:
            # between two sizes, the odds rise in proportion
            return RowsNeeded(*(int(np.ceil(np.interp(wanted, odds, sizes))) for wanted in (0.5, 0.8)))
        size = int(size * GROWTH)
    return None


def rows_to_finish(confidence: Floats, judged: Judged, max_error: float, delta: float) -> tuple[int, int]:
    """Return with how many gold rows people have least to label for a finished table, and how many rows that is.

    The second number has gold rows and all others that people label, in about four cases out of five: rows are wrong as
    often as `rows_needed` foresees, and 0.84 standard errors more often in the sample.
    """
    rows, (wrong, right, group) = len(confidence), _by_confidence(judged, max_error)
    lowest = [judged.confidence[group == number].min(initial=1.0) for number in range(1, GROUPS)]
    some = -np.sort(-confidence)[:: -(-rows // MOST_ROWS)]
    errors = np.cumsum((wrong / (wrong + right))[np.searchsorted(lowest, some, side="right")]) / len(some)
    by_goal = {}
    for size in np.unique(np.geomspace(min(30, rows), min(rows, MOST_ROWS), 20).astype(np.intp)).tolist():
        seen = errors * size + 0.84 * np.sqrt(errors * size * (1 + size / (wrong + right).sum()))
        most = int(few_enough(rows, size, np.arange(int(max_error * size) + 2), max_error * rows, delta).sum()) - 1
        by_machine = np.searchsorted(seen, most, side="right") / len(some)
        by_goal[size] = round(rows - by_machine * (rows - size))
    least = min(by_goal, key=by_goal.__getitem__)
    return least, by_goal[least]


def _by_confidence(judged: Judged, limit: float) -> tuple[Floats, Floats, Integers]:
    """Return wrong and right rows of every part, with those that are foreseen, and the part of every row."""
    rank = np.argsort(np.argsort(judged.confidence, kind="stable"), kind="stable")
    group: Integers = rank * GROUPS // len(rank)
    size = np.bincount(group, minlength=GROUPS)
    wrong: Floats = np.bincount(group, ~judged.right, GROUPS).astype(np.float64)
    foreseen = PSEUDO_ROWS * limit
    return wrong + foreseen, size - wrong + PSEUDO_ROWS - foreseen, group
