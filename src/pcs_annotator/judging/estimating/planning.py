"""How many gold rows an estimate needs, foretold from the probabilities of labels before anybody labels them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np

from pcs_annotator.core.arrays import Floats, Integers, Mask
from pcs_annotator.judging.estimating.sampling import allocate, by_confidence

Design = Literal["gold only", "simple", "stratified", "confidence"]
"""How gold rows are drawn; `gold only` is a simple random sample without the help of machine labels."""


class Foretold:
    """The errors of a mean to expect if the probabilities of labels are right."""

    def __init__(self, expected: Floats, values: Floats, share: float = 1.0) -> None:
        """Take the probability of every label, `[row, label]`, and the value of every label, such as 0 and 1.

        `share` says which part of all rows these are, if they are a random sample.
        """
        self._share = share
        self._mean = expected @ values
        self._own = np.maximum(expected @ values**2 - self._mean**2, 0)
        self._confidence = expected.max(axis=1)
        self._label: Integers = expected.argmax(axis=1)

    def error(self, rows: int, design: Design, inside: Mask | None = None) -> float:
        """Return the standard error of the mean, over all rows or some, with gold for so many of all rows.

        Rows of a group have gold as often as all others do.
        """
        inside = np.ones(len(self._mean), dtype=np.bool_) if inside is None else inside
        chance, own = self._chances(rows, design)[inside], self._own[inside]
        if design == "gold only":
            own = own + self._mean[inside].var()
        return float(np.sqrt((own * (1 / chance - self._share)).sum()) / len(own))

    def _chances(self, rows: int, design: Design) -> Floats:
        """Return how probable each row is to get a gold label."""
        total = len(self._mean)
        rows = min(rows, total)
        if design == "confidence":
            return by_confidence(self._confidence, rows)
        if design == "stratified":
            sizes = np.bincount(self._label)
            drawn = np.array(allocate(sizes.tolist(), rows))
            return (drawn / np.maximum(sizes, 1))[self._label]
        return np.full(total, rows / total)

    def rows_for(self, error: float, design: Design) -> int | None:
        """Return the number of gold rows for an error of the mean; None if all rows would not be enough."""
        return fewest(lambda rows: self.error(rows, design) <= error, len(self._mean))

    def rows_for_difference(self, error: float, design: Design, groups: tuple[Mask, Mask]) -> int | None:
        """Return the number of gold rows for an error of the difference between two groups."""

        def enough(rows: int) -> bool:
            return math.hypot(*(self.error(rows, design, group) for group in groups)) <= error

        return fewest(enough, len(self._mean))


def fewest(enough: Callable[[int], bool], most: int) -> int | None:
    """Return the smallest number up to `most` that is enough; None if there is none. More must never be too little."""
    low, high = 1, most
    if not enough(most):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return low
