"""The distribution of a number, given the answers: where gold was, relative to their middle and their spread."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pcs_annotator.core.arrays import Codes, Floats, Integers
from pcs_annotator.core.numbers import values_of

QUANTILES = 199  # how many errors of gold rows stand for all of them
# How much errors of rows without spread weigh against the spread of others, in mean errors; 1e9: spread says nothing.
LEAST_SCALES = (0.25, 0.5, 1.0, 2.0, 4.0, 1e9)
ROUNDING = 1e-9  # far above the rounding of sums


class NumberModel(NamedTuple):
    """What errors of numbers look like."""

    errors: tuple[float, ...]  # quantiles of gold less the middle, divided by the scale of the row
    least: float  # the scale of a row whose answers are all the same
    mean: bool  # whether the middle is the mean of the answers, and not their median

    def distribution(self, scores: Floats, labels: Sequence[str]) -> Floats:
        """Return the probability of every label, `[item, label]`: the errors of gold rows around the row's middle."""
        values = values_of(tuple(labels))
        middle, spread = _middle(scores, values, mean=self.mean), _spread(scores, values)
        points = middle[:, np.newaxis] + np.hypot(self.least, spread)[:, np.newaxis] * np.array(self.errors)
        order = np.argsort(values)
        between = (values[order][1:] + values[order][:-1]) / 2
        places: Integers = order[np.searchsorted(between, points)]
        chances = np.zeros_like(scores)
        np.add.at(chances, (np.arange(len(scores))[:, np.newaxis], places), 1 / len(self.errors))
        return chances


def fit_numbers(scores: Floats, gold: Codes, labels: Sequence[str]) -> NumberModel:
    """Learn from gold rows: mean or median, whichever is nearer to gold, and how errors grow with the spread."""
    values = values_of(tuple(labels))
    truth, spread = values[gold], _spread(scores, values)
    off = {mean: truth - _middle(scores, values, mean=mean) for mean in (False, True)}
    mean = bool(np.abs(off[True]).mean() < np.abs(off[False]).mean())
    typical = max(float(np.abs(off[mean]).mean()), np.diff(np.sort(values)).min() / 4)
    # the profile likelihood of a two-sided exponential, which far errors do not rule
    fits = []
    for times in LEAST_SCALES:
        scale = np.hypot(times * typical, spread)
        fits.append((np.log(np.abs(off[mean] / scale).mean() + 1e-12) + np.log(scale).mean(), times * typical))
    least = min(fits)[1]
    shares = (np.arange(QUANTILES) + 0.5) / QUANTILES
    errors = np.quantile(off[mean] / np.hypot(least, spread), shares, method="hazen")
    return NumberModel(tuple(errors.round(9).tolist()), least, mean)


def _middle(scores: Floats, values: Floats, *, mean: bool) -> Floats:
    """Return the mean of the answers to every row, or their median: half way between two middle ones."""
    if mean:
        return np.asarray(scores @ values / scores.sum(axis=1))
    order = np.argsort(values)
    ends = []
    for direction in (order, order[::-1]):
        up_to = np.cumsum(scores[:, direction], axis=1)
        ends.append(values[direction][(up_to >= 0.5 * up_to[:, -1:] - ROUNDING).argmax(axis=1)])
    return np.asarray((ends[0] + ends[1]) / 2)


def _spread(scores: Floats, values: Floats) -> Floats:
    """Return the mean absolute distance of the answers from their median, for every row."""
    middle = _middle(scores, values, mean=False)
    return np.asarray((scores * np.abs(values - middle[:, np.newaxis])).sum(axis=1) / scores.sum(axis=1))
