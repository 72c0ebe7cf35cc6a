"""How many gold rows a promise would probably need, foretold from the rows at hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pcs_annotator.core.arrays import Floats, Integers
from pcs_annotator.judging.promising.acceptance import Judged, Promise, accepted, find_thresholds

DRAWS = 40
GROWTH = 1.5
MOST_ROWS = 5_000
WORTHWHILE = 0.05
ENOUGH_TO_FORETELL = 200
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
    confidence, is wrong as often as it may be after what was seen: the errors of the fifth, and of ten more rows with
    as many errors as the promise allows (Beta). So errors that a small sample has not seen yet are foreseen, and luck
    is not taken for quality. A sample succeeds if it accepts a useful share of its rows.
    """
    rng = np.random.default_rng(seed)
    wrong, right, group = _by_confidence(judged, promise.max_error)

    def succeeds(size: int) -> bool:
        rows = rng.integers(len(group), size=size)
        rate = rng.beta(wrong, right)[group[rows]]
        drawn = Judged(judged.confidence[rows], judged.best[rows], rng.random(size) >= rate)
        thresholds = find_thresholds(drawn, labels, promise, spent)
        return bool(thresholds and accepted(drawn.confidence, drawn.best, labels, thresholds).mean() >= WORTHWHILE)

    sizes, odds = [], list[float]()
    size = max(promise.least_rows(spent), len(group) + 1)
    while size <= MOST_ROWS:
        sizes.append(size)
        odds.append(max([float(np.mean([succeeds(size) for _ in range(DRAWS)])), *odds[-1:]]))
        if odds[-1] >= 0.8:
            return RowsNeeded(*(_first(sizes, odds, wanted) for wanted in (0.5, 0.8)))
        size = int(size * GROWTH)
    return None


def _by_confidence(judged: Judged, limit: float) -> tuple[Floats, Floats, Integers]:
    """Return wrong and right rows of every part, with those that are foreseen, and the part of every row."""
    rank = np.argsort(np.argsort(judged.confidence, kind="stable"), kind="stable")
    group: Integers = rank * GROUPS // len(rank)
    size = np.bincount(group, minlength=GROUPS)
    wrong: Floats = np.bincount(group, ~judged.right, GROUPS).astype(np.float64)
    foreseen = PSEUDO_ROWS * limit
    return wrong + foreseen, size - wrong + PSEUDO_ROWS - foreseen, group


def _first(sizes: Sequence[int], odds: Sequence[float], wanted: float) -> int:
    """Return the size at which the odds reach what is wanted, between two sizes in proportion."""
    return int(np.ceil(np.interp(wanted, odds, sizes)))
