"""How many gold rows a promise would probably need, by simulating larger samples."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pcs_annotator.core.arrays import Floats, Integers
from pcs_annotator.judging.heldout import Judged
from pcs_annotator.judging.promise.promise import Promise
from pcs_annotator.judging.promise.thresholds import accepted_rows, counted_steps
from pcs_annotator.judging.promise.whole_table import few_enough

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
