r"""Rows drawn for people with known probabilities: drawing, weighting, the error of drawing, and how many are needed.

Rows may be drawn in rounds, each from the rows not drawn before. Round $r$ with $n_r$ rows estimates a total as what is
known from earlier rounds plus $\sum y_i/\pi_i$ for the rest. The estimate is the mean over rounds, weighted by $n_r$.
So a row of round $r$ has the weight $(c_r/\pi_i + \sum_{s>r} c_s)/N$, with $c_r = n_r/n$, and only $c_r/\pi_i$ adds to
the error of drawing. Weights are scaled to add up to 1 (Hájek, 1971).

A review draws one row after the other: each is a round. With $c_r \propto 1 / (L_r (L_r - 1))$, where $L_r$ rows were
left to draw, rows drawn at random weigh the same (Farquhar, Gal and Rainforth, 2021).
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from pcs_annotator.core.arrays import CODE, Codes, Floats, Integers, Mask

LEAST_CHANCE = 0.1  # how probable the surest row is compared with the average row when rows are drawn by confidence


class Round(NamedTuple):
    """Rows drawn at once, from those not drawn before."""

    rows: Sequence[int]  # positions among all rows
    truth: Sequence[int]  # their gold labels, as codes
    probability: Sequence[float]  # how probable it was to draw each
    stratum: Sequence[int]  # rows with the same number vary about one mean; numbers may be those of other rounds
    weight: float  # how much the round counts, such as the number of its rows; it must not depend on labels


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sample:
    """Gold rows, and how they were drawn from all rows."""

    rows: Integers  # positions among all rows
    truth: Codes  # their gold labels, as codes
    probability: Floats  # how probable it was that its round draws the row
    stratum: Integers  # rows of one round and stratum have the same number
    round: Integers  # in which round each row was drawn
    counts: Floats | None = None  # how much each round counts; None if as much as it has rows

    @classmethod
    def in_rounds(cls, rounds: Sequence[Round]) -> "Sample":
        """Return what was drawn in several rounds."""
        rows, truth, probability, stratum, weights = zip(*rounds, strict=True)
        return cls(
            rows=np.concatenate(rows).astype(np.intp),
            truth=np.concatenate(truth).astype(CODE),
            probability=np.concatenate(probability),
            stratum=np.concatenate(stratum).astype(np.intp),
            round=np.repeat(np.arange(len(rounds)), [len(rows_of) for rows_of in rows]),
            counts=np.array(weights) / sum(weights),
        )

    @classmethod
    def simple(cls, rows: Integers, truth: Codes, population: int) -> "Sample":
        """Return a simple random sample; several of them, one after the other, are one."""
        nothing = np.zeros(len(rows), dtype=np.intp)
        share = np.full(len(rows), len(rows) / population)
        return cls(rows=rows, truth=truth, probability=share, stratum=nothing, round=nothing)

    def take(self, chosen: Mask, places: Integers) -> "Sample":
        """Return some rows of the sample; `places` is the new position of every row."""
        parts = {name: getattr(self, name)[chosen] for name in ("truth", "probability", "stratum", "round")}
        return replace(self, rows=places[self.rows[chosen]], **parts, counts=self._counts)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def weights(self) -> Floats:
        """The weight of every row in a mean over all rows; they add up to 1."""
        return self.unscaled / self.unscaled.sum()

    @property
    def unscaled(self) -> Floats:
        """Weights before they are made to add up to 1; sums with them estimate those over all rows without bias."""
        counts = self._counts
        later = counts[::-1].cumsum()[::-1] - counts  # how much later rounds count, in which the row is known
        return self._own + later[self.round]

    @property
    def _own(self) -> Floats:
        return self._counts[self.round] / self.probability

    @property
    def _counts(self) -> Floats:
        if self.counts is not None:
            return self.counts
        sizes = np.bincount(self.round).astype(np.float64)
        return sizes / sizes.sum()

    @property
    def spread(self) -> Floats:
        """The part of each weight that adds to the error of drawing."""
        return self._own / self.unscaled.sum()

    def error_of_drawing(self, values: Floats) -> Floats:
        """Return the covariance of weighted means over the sample, `[value, value]`, for values `[row, value]`.

        It is exact for simple and stratified samples, and Hájek's approximation (1964) for a fixed number of rows with
        unequal probabilities.
        """
        spread = self.spread
        result = np.zeros((values.shape[1], values.shape[1]))
        for stratum in np.unique(self.stratum):
            inside = self.stratum == stratum
            left = 1 - self.probability[inside]
            weighted = spread[inside, np.newaxis] * values[inside]
            count = len(weighted)
            if not left.any():
                continue
            if count > 1:
                weighted = weighted - left @ weighted / left.sum()
            result += (left[:, np.newaxis] * weighted).T @ weighted * count / max(count - 1, 1)
        return result


def counts_in_turn(strength: Floats, rows: int) -> Floats:
    """Return how much each of several draws counts, one row after the other: late ones, of fewer rows left, count more.

    `strength` is how much each draw tells compared with one at random; counts have the same sum.
    """
    left = rows - np.arange(len(strength), dtype=np.float64)
    # if nothing is left, the last draw knows everything
    counts: Floats = strength / (left * np.maximum(left - 1, 1e-6))
    return counts * strength.sum() / counts.sum()


def allocate(sizes: Sequence[int], rows: int) -> list[int]:
    """Return how many rows to draw from strata of these sizes: equally many of each, at least two where there are."""
    order = np.argsort(sizes)
    counts, left = [0] * len(sizes), min(rows, sum(sizes))
    for position, stratum in enumerate(order):
        counts[stratum] = min(sizes[stratum], max(2, left // (len(sizes) - position)))
        left -= counts[stratum]
    return counts


def by_confidence(confidence: Floats, rows: int) -> Floats:
    """Return the probability of every row to be drawn, higher for doubtful ones, adding up to the number of rows.

    The best probability is proportional to the error to expect, the standard deviation of whether the label is right.
    A part is the same for all rows, so that a wrong confidence cannot do much harm.
    """
    doubt = np.sqrt(confidence * (1 - confidence))
    size = doubt + LEAST_CHANCE * max(float(doubt.mean()), 1e-6)
    result = np.zeros(len(size))
    certain = np.zeros(len(size), dtype=np.bool_)
    while True:
        open_rows = ~certain
        result[open_rows] = (rows - certain.sum()) * size[open_rows] / size[open_rows].sum()
        result[certain] = 1.0
        if not (result > 1).any():
            return result
        certain |= result >= 1


def draw_with(probability: Floats, rng: np.random.Generator) -> Integers:
    """Return rows drawn with these probabilities, as many as they add up to: systematically, in random order."""
    order = rng.permutation(len(probability))
    ends = probability[order].cumsum()
    # rounding must not lose the last row
    ends[-1] = round(float(ends[-1]))
    ticks = np.floor(ends - rng.random())
    return np.sort(order[np.diff(ticks, prepend=-1.0) > 0])


Design = Literal["gold only", "simple", "stratified", "confidence"]
"""How gold rows are drawn; `gold only` is a simple random sample without the help of machine labels."""


class Foretold:
    """The errors of a mean to expect if the probabilities of labels are right."""

    def __init__(self, expected: Floats, values: Floats, share: float = 1.0) -> None:
        """Take the probability `[row, label]` and the value of every label; these are a `share` of all rows."""
        self._share = share
        self._mean = expected @ values
        self._own = np.maximum(expected @ values**2 - self._mean**2, 0)
        self._confidence = expected.max(axis=1)
        self._label: Integers = expected.argmax(axis=1)

    def error(self, rows: int, design: Design, inside: Mask | None = None) -> float:
        """Return the standard error of the mean, over all rows or some, with gold for so many of all rows."""
        inside = np.ones(len(self._mean), dtype=np.bool_) if inside is None else inside
        chance, own_error = self._chances(rows, design)[inside], self._own[inside]
        if design == "gold only":
            own_error = own_error + self._mean[inside].var()
        return float(np.sqrt((own_error * (1 / chance - self._share)).sum()) / len(own_error))

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
        return self._fewest(lambda rows: self.error(rows, design) <= error)

    def rows_for_difference(self, error: float, design: Design, groups: tuple[Mask, Mask]) -> int | None:
        """Return the number of gold rows for an error of the difference between two groups."""

        def enough(rows: int) -> bool:
            return math.hypot(*(self.error(rows, design, group) for group in groups)) <= error

        return self._fewest(enough)

    def _fewest(self, enough: Callable[[int], bool]) -> int | None:
        """Return the smallest number of rows that is enough, if more are never too few; None if there is none."""
        most = len(self._mean)
        fewest = 1 + bisect_left(range(1, most + 1), True, key=enough)
        return fewest if fewest <= most else None
