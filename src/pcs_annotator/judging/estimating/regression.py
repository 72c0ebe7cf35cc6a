r"""Regressions on labels that are known only as probabilities: what is solved, and how far a row pulls the result.

Row $i$ enters once per label $k$, with a weight $a_{ik}$ of its own, with explanatory values $x_{ik}$ and outcome
$t_{ik}$. The coefficients $\theta$ solve

$$\sum_{ik} a_{ik}\, x_{ik}\,\bigl(t_{ik} - \mu(x_{ik}^\top\theta)\bigr) = 0.$$

If the label is the outcome, $x$ is the same for all labels; if the label explains the outcome, $t$ is. Means and shares
are linear regressions on indicators of groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import expit, softmax

from pcs_annotator.base.errors import UndefinedMetric
from pcs_annotator.core.arrays import Floats, Integers, Mask

Link = Literal["linear", "logistic", "multinomial"]
MOST_STEPS = 50
TOLERANCE = 1e-9
FARTHEST = 30.0
"""Coefficients of a logistic regression beyond this, on scaled columns, are on the way to infinity."""


PART = 32_768
"""So many rows are computed at a time: a million must not take gigabytes."""


class Sums(NamedTuple):
    """What Newton's method needs to know at some coefficients."""

    scores: Floats  # the sum of the scores of all rows, `[column × equation]`
    curvature: Floats  # minus its derivative, `[column × equation, column × equation]`


class _Pull(NamedTuple):
    """What rows, or pairs of row and label if the label explains, have: `residuals` are weighted."""

    columns: Floats
    weights: Floats
    residuals: Floats
    expected: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelRegression:
    """A regression in which the label is the outcome or explains it."""

    # blocks of columns, each `[row, label, column]`, with one row for all if it is the same in all rows, and one label
    # for all if it does not depend on the label
    explanatory: Sequence[Floats]
    # `[row, label, equation]`, with one row for all if the label is the outcome, and one label for all if it explains.
    # A multinomial regression has one equation for every label but the first
    outcome: Floats
    link: Link = "linear"  # what the linear predictor is turned into

    @property
    def is_outcome(self) -> bool:
        """Whether the label is the outcome."""
        return all(block.shape[1] == 1 for block in self.explanatory)

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the coefficients, `[column, equation]`."""
        return sum(block.shape[2] for block in self.explanatory), self.outcome.shape[2]

    def take(self, rows: Integers | Mask | slice) -> LabelRegression:
        """Return the regression on some rows."""
        outcome, *explanatory = (one if len(one) == 1 else one[rows] for one in (self.outcome, *self.explanatory))
        return replace(self, explanatory=explanatory, outcome=outcome)

    def scores(self, coefficients: Floats, weights: Floats) -> Floats:
        """Return how far every row pulls the coefficients, `[row, column × equation]`; weights are `[row, label]`."""
        pull = self._pull(coefficients, weights)
        pulled = (pull.columns[:, :, np.newaxis] * pull.residuals[:, np.newaxis]).reshape(len(pull.columns), -1)
        return pulled if self.is_outcome else pulled.reshape(*weights.shape, -1).sum(axis=1)

    def scores_in_parts(self, coefficients: Floats, weights: Floats) -> Iterator[tuple[slice, Floats]]:
        """Yield which rows, and their scores."""
        for rows in _parts(len(weights)):
            yield rows, self.take(rows).scores(coefficients, weights[rows])

    def sums(self, coefficients: Floats, weights: Floats) -> Sums:
        """Return the summed scores and their curvature; weights are `[row, label]`."""
        if all(len(one) == 1 for one in (self.outcome, *self.explanatory)):
            weights = np.ones((1, len(weights))) @ weights  # all rows are alike
        parts = [self.take(rows)._sums(coefficients, weights[rows]) for rows in _parts(len(weights))]
        return Sums(*(np.sum(one, axis=0) for one in zip(*parts, strict=True)))

    def _sums(self, coefficients: Floats, weights: Floats) -> Sums:
        pull = self._pull(coefficients, weights)
        columns, count = pull.columns, self.shape[1]
        curvature = np.empty((self.shape[0], count, self.shape[0], count))
        for one in range(count):
            for other in range(count):
                slope = pull.weights * self._slope(pull.expected, one, other)
                curvature[:, one, :, other] = (columns * slope[:, np.newaxis]).T @ columns
        return Sums((columns.T @ pull.residuals).ravel(), curvature.reshape(self.shape[0] * count, -1))

    def _pull(self, coefficients: Floats, weights: Floats) -> _Pull:
        width = max(block.shape[1] for block in self.explanatory)
        blocks = [np.broadcast_to(one, (len(weights), width, one.shape[2])) for one in self.explanatory]
        columns = np.concatenate(blocks, axis=2, dtype=np.float64).reshape(-1, self.shape[0])
        expected = self._expected(columns @ coefficients)
        if self.is_outcome:
            total = weights @ np.ones(weights.shape[1])  # many times faster than a sum over few labels
            return _Pull(columns, total, weights @ self.outcome[0] - total[:, np.newaxis] * expected, expected)
        outcome = np.broadcast_to(self.outcome, (len(weights), width, self.shape[1])).reshape(expected.shape)
        return _Pull(columns, weights.ravel(), weights.reshape(-1, 1) * (outcome - expected), expected)

    def solve(self, weights: Floats, start: Floats | None = None) -> Floats:
        """Return the coefficients, given the weight of every row and label, and coefficients that should be near.

        Raises:
            UndefinedMetric: There is no solution: columns are collinear, or tell the outcome perfectly.
        """
        found = np.zeros(self.shape) if start is None else start
        if self.link == "linear":
            scores, curvature = self.sums(found, weights)
            return found + solved(curvature, scores).reshape(self.shape)
        scale = np.concatenate([one.reshape(-1, one.shape[2]).std(axis=0) for one in self.explanatory])
        for _ in range(MOST_STEPS):
            scores, curvature = self.sums(found, weights)
            step = solved(curvature, scores)
            found = found + step.reshape(self.shape)
            if np.abs(found * np.maximum(scale, 1e-12)[:, np.newaxis]).max() > FARTHEST:
                break
            if np.abs(step).max() <= TOLERANCE * max(1.0, float(np.abs(found).max())):
                return found
        raise UndefinedMetric(
            "the regression has no solution, because some column tells the outcome perfectly (separation): leave that "
            "column out, join rare groups, or label more rows"
        )

    def _expected(self, predictor: Floats) -> Floats:
        if self.link == "linear":
            return predictor
        if self.link == "logistic":
            return expit(predictor)
        return softmax(np.concatenate([np.zeros((len(predictor), 1)), predictor], axis=1), axis=1)[:, 1:]

    def _slope(self, expected: Floats, one: int, other: int) -> Floats | float:
        """Return the derivative of an expectation by a predictor, for every row."""
        if self.link == "linear":
            return float(one == other)
        return expected[:, one] * (float(one == other) - expected[:, other])


def _parts(rows: int) -> Iterator[slice]:
    return (slice(start, start + PART) for start in range(0, rows, PART))


def solved(matrix: Floats, right: Floats) -> Floats:
    """Return the solution of a linear system; no unique solution is an error that says what that means."""
    try:
        if np.linalg.cond(matrix) > 1e12:
            raise np.linalg.LinAlgError
        found = np.asarray(np.linalg.solve(matrix, right), dtype=np.float64)
    except np.linalg.LinAlgError:
        raise UndefinedMetric(
            "the columns of the formula are collinear: one is constant, or follows from the others; leave one out"
        ) from None
    return found


def inverted(matrix: Floats) -> Floats:
    """Return the inverse of a matrix; see `solved`."""
    return solved(matrix, np.eye(len(matrix)))
