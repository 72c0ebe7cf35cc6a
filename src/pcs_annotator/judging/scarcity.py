"""How many gold rows a promise would take, simulated from the rows at hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pcs_annotator.judging.acceptance import Judged, Promise, accepted, find_thresholds

DRAWS = 40
LIKELY = 0.8
WORTHWHILE = 0.05
HALVINGS = 3
MOST_ROWS = 5_000


def rows_needed(judged: Judged, labels: Sequence[str], promise: Promise, seed: int = 0) -> int | None:
    """Return how many gold rows would probably carry the promise; None when thousands would not.

    Rows like those at hand are drawn with replacement, more and more of them, until four of five draws would accept a
    share of rows worth having. Few rows at hand make this a rough guess: it is no promise itself.
    """
    rng = np.random.default_rng(seed)

    def enough(size: int) -> bool:
        draws = (rng.integers(len(judged.right), size=size) for _ in range(DRAWS))
        return bool(np.mean([_worthwhile(judged.take(rows), labels, promise) for rows in draws]) >= LIKELY)

    too_few, size = len(judged.right), max(promise.least_rows, len(judged.right) + 1)
    while not enough(size):
        too_few, size = size, 2 * size
        if size > MOST_ROWS:
            return None
    for _ in range(HALVINGS):
        middle = (too_few + size) // 2
        if middle >= promise.least_rows and enough(middle):
            size = middle
        else:
            too_few = middle
    return size


def _worthwhile(judged: Judged, labels: Sequence[str], promise: Promise) -> bool:
    thresholds = find_thresholds(judged, labels, promise)
    if not thresholds:
        return False
    return bool(accepted(judged.confidence, judged.best, labels, thresholds).mean() >= WORTHWHILE)
