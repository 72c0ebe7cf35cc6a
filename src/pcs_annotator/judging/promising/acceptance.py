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

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np

from pcs_annotator.base.display import brief
from pcs_annotator.base.errors import ConfigError
from pcs_annotator.core.arrays import Codes, Floats, Integers, Mask
from pcs_annotator.core.votes import positions_of
from pcs_annotator.judging.metrics.metrics import ends_of_runs
from pcs_annotator.judging.metrics.special import bdtr, bdtrin

PromiseKind = Literal["error-among-accepted", "false-discoveries", "off-by-more-than-one"]
EVERY_LABEL = ""
ERRORS_FOR_HALF, ROUNDING = 7.5, 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """The promise about accepted labels."""

    # α: the share of accepted labels that may be wrong, or off by more than one step of a scale
    max_error: float
    # 1 − δ: how often such promises hold, over draws of the gold rows, however often somebody looks; those that hold on
    # average have none
    certainty: float = 0.9
    kind: PromiseKind = "error-among-accepted"  # which of the promises
    per_label: bool = False  # whether it must hold for each label separately
    tolerance: str = ""  # of numbers, by how much an accepted one may be off; empty for one step of a scale
    by: str = ""  # what groups of texts it must hold for separately, such as `language`; empty for all texts together

    def __post_init__(self) -> None:
        for name, value in (("max_error", self.max_error), ("certainty", self.certainty)):
            if not 0 < value < 1:
                raise ConfigError(f"{name} is {value!r}: {_REMEDIES[name]}")

    @property
    def tested(self) -> bool:
        """Whether it is tested at a level, so that it holds with a certainty."""
        return self.kind != "false-discoveries"

    @property
    def near(self) -> bool:
        """Whether a label that is a step off, or a number within the tolerance, counts as right."""
        return self.kind == "off-by-more-than-one"

    @property
    def far(self) -> str:
        """What labels must not be, in words."""
        return f"off by more than {self.tolerance or 'one step'}" if self.near else "wrong"

    @property
    def divided(self) -> bool:
        """Whether it must hold for parts of the rows separately: those with a label, or groups of texts."""
        return self.per_label or bool(self.by)

    def division(self, rows: Collection[int], level: float) -> tuple[int, int]:
        """Return into how many parts a level is divided for groups of gold rows, and how many of these can pass.

        A group that is too small to pass at a part of the level, even without a single error, needs none. That follows
        from the numbers of rows alone, whatever their labels. So there are at most as many tests as parts.
        """
        tried = range(1, len(rows) + 1)
        found = ((parts, sum(one >= self.rows_at(level / parts) for one in rows)) for parts in tried)
        return next((parts, can_pass) for parts, can_pass in found if can_pass <= parts)

    @property
    def delta(self) -> float:
        """How often such promises are broken at most."""
        return round(1 - self.certainty, 12)

    def level(self, rows: int, spent: float = 0.0) -> float:
        """Return how much of δ a look at this many gold rows may use, when earlier looks have spent some of it.

        Promises from few rows are rarely possible, and then mostly luck, so such a look gets a tenth of what is left at
        most; with 7.5 or more errors allowed among the rows, see `next_level`.
        """
        level = next_level(self.delta, spent)
        return level if rows >= self._rows_for_half else min(level, (self.delta - spent) / 10)

    @property
    def _rows_for_half(self) -> int:
        return int(np.ceil(ERRORS_FOR_HALF / self.max_error - 1e-9))

    def least_rows(self, spent: float = 0.0) -> int:
        """Return the minimum number of rows, all of them right, that the promise needs."""
        if not self.tested:
            return int(np.ceil(round(1 / self.max_error - 1, 9)))
        enough = self._rows_for_half
        few, many = (self.rows_at(self.level(rows, spent)) for rows in (0, enough))
        return few if few < enough else max(many, enough)

    def rows_at(self, level: float) -> int:
        """Return the minimum number of rows, all of them right, with which a test at this level passes."""
        return int(np.ceil(np.log(level) / np.log1p(-self.max_error)))


def next_level(delta: float, spent: float) -> float:
    r"""Return how much of δ the next test may use: half of it, then a sixth, a twelfth, … $\delta / (k (k + 1))$.

    That is what follows from what is spent, so that a level that came back is used again. All tests together never use
    more than δ, and the hundredth is still possible, as it would not be with half of what is left for each.
    """
    left = delta - spent
    return left * left / (delta + left)


_REMEDIES = {
    "max_error": "give a share between 0 and 1, such as 0.05; no number of gold rows shows that all labels are right",
    "certainty": "give a share between 0 and 1, such as 0.9; full certainty would need infinitely many gold rows",
}


class Judged(NamedTuple):
    """Gold rows, each judged by a model that did not see it."""

    confidence: Floats  # calibrated probability that the chosen label is right
    best: Codes | Integers  # code of the chosen label, or of the row's group if the promise is made for groups
    right: Mask  # whether it is the gold label, or near enough

    def __repr__(self) -> str:
        return brief(self)

    def take(self, rows: Integers | Mask) -> "Judged":
        """Return the given rows."""
        return Judged(self.confidence[rows], self.best[rows], self.right[rows])


Thresholds = Mapping[str, float]
"""Label → the minimum confidence to accept it, or `EVERY_LABEL` → one for all; other labels are never accepted."""


def find_thresholds(
    judged: Judged, labels: Sequence[str], promise: Promise, spent: float = 0.0, table: Judged | None = None
) -> dict[str, float]:
    """Return the loosest thresholds that keep the promise; empty when none does.

    `spent` is what earlier looks at the gold labels have used of δ; `table`, the rows without gold that false
    discoveries are counted among: which of them are right is unknown. Without them, gold rows stand for them.
    """
    return thresholds_at(judged, labels, promise, promise.level(len(judged.right), spent), table)


def thresholds_at(
    judged: Judged, labels: Sequence[str], promise: Promise, level: float, table: Judged | None = None
) -> dict[str, float]:
    """Return the same, tested at a level."""
    about = table or judged
    if not promise.divided:
        found = _threshold(judged, promise, level, about.confidence)
        return {} if found is None else {EVERY_LABEL: found}
    # each label or group gets an equal share, so that all thresholds hold simultaneously
    share = level / (promise.division(rows_in(judged, labels), level)[0] if promise.by else len(labels))
    by_label = {
        label: _threshold(judged.take(judged.best == code), promise, share, about.confidence[about.best == code])
        for code, label in enumerate(labels)
    }
    return {label: found for label, found in by_label.items() if found is not None}


def rows_in(judged: Judged, labels: Sequence[str]) -> list[int]:
    """Return how many rows each label has; rows that are judged by group have a group in its place."""
    counts: list[int] = np.bincount(judged.best, minlength=len(labels)).tolist()
    return counts


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


def _last_before_failure(passes: Mask) -> Integers:
    failure = np.zeros((*passes.shape[:-1], 1), dtype=np.bool_)
    return np.asarray(np.argmin(np.concatenate([passes, failure], axis=-1), axis=-1) - 1)


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
    last = _last_before_failure(passes | (np.arange(passes.shape[-1]) < start[..., np.newaxis]))
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
