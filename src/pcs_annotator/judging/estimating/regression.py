r"""Regressions on labels that are known only as probabilities: what is solved, and how far a row pulls the result.

Row $i$ enters once per label $k$, with a weight $a_{ik}$ of its own, with explanatory values $x_{ik}$ and outcome
$t_{ik}$. The coefficients $\theta$ solve

$$\sum_{ik} a_{ik}\, x_{ik}\,\bigl(t_{ik} - \mu(x_{ik}^\top\theta)\bigr) = 0.$$

If the label is the outcome, $x$ is the same for all labels; if the label explains the outcome, $t$ is. Means and shares
are linear regressions on indicators of groups.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.special import expit, softmax

from pcs_annotator.core.arrays import Floats, Integers, Mask
from pcs_annotator.errors import UndefinedMetric

Link = Literal["linear", "logistic", "multinomial"]
MOST_STEPS = 50
TOLERANCE = 1e-9
FARTHEST = 30.0
"""Coefficients of a logistic regression beyond this, on scaled columns, are on the way to infinity."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelRegression:
    """A regression in which the label is the outcome or explains it.

    Attributes:
        explanatory: `[row, label, column]`, with one label for all if the label is the outcome.
        outcome: `[row, label, equation]`, with one row for all if the label is the outcome, and one label for all if it
            explains. A multinomial regression has one equation for every label but the first.
        link: What the linear predictor is turned into.
    """

    explanatory: Floats
    outcome: Floats
    link: Link = "linear"

    @property
    def is_outcome(self) -> bool:
        """Whether the label is the outcome."""
        return self.explanatory.shape[1] == 1

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the coefficients, `[column, equation]`."""
        return self.explanatory.shape[2], self.outcome.shape[2]

    def take(self, rows: Integers | Mask) -> LabelRegression:
        """Return the regression on some rows."""
        outcome = self.outcome if len(self.outcome) == 1 else self.outcome[rows]
        return replace(self, explanatory=self.explanatory[rows], outcome=outcome)

    def scores(self, coefficients: Floats, weights: Floats) -> Floats:
        """Return how far every row pulls the coefficients, `[row, column × equation]`; weights are `[row, label]`."""
        rest = self.outcome - self._expected(coefficients)
        if self.is_outcome:
            pulled = self.explanatory[:, 0, :, np.newaxis] * np.einsum("ik,ikq->iq", weights, rest)[:, np.newaxis]
        else:
            pulled = np.einsum("ik,ikp,ikq->ipq", weights, self.explanatory, rest)
        return pulled.reshape(len(pulled), -1)

    def moments(self, weights: Floats) -> Floats:
        """Return the weighted products of explanatory values and outcome, summed over rows."""
        return self.scores(np.zeros(self.shape), weights).sum(axis=0)

    def curvature(self, coefficients: Floats, weights: Floats) -> Floats:
        """Return minus the derivative of the summed scores, `[column × equation, column × equation]`."""
        expected = self._expected(coefficients)
        if self.is_outcome:
            weights = weights.sum(axis=1, keepdims=True)
        columns = self.explanatory.reshape(-1, self.shape[0])
        count = self.shape[1]
        slopes = self._slopes(expected).reshape(len(columns), count, count)
        weighted = columns * weights.reshape(-1, 1)
        found = np.empty((self.shape[0], count, self.shape[0], count))
        for one in range(count):
            for other in range(count):
                found[:, one, :, other] = (weighted * slopes[:, one, other, np.newaxis]).T @ columns
        return found.reshape(found.shape[0] * count, -1)

    def solve(self, weights: Floats) -> Floats:
        """Return the coefficients.

        Raises:
            UndefinedMetric: There is no solution: columns are collinear, or tell the outcome perfectly.
        """
        found = np.zeros(self.shape)
        for _ in range(MOST_STEPS):
            step = solved(self.curvature(found, weights), self.scores(found, weights).sum(axis=0))
            found = found + step.reshape(self.shape)
            if self.link != "linear" and np.abs(found * self._scale()[:, np.newaxis]).max() > FARTHEST:
                break
            if np.abs(step).max() <= TOLERANCE * max(1.0, float(np.abs(found).max())):
                return found
        raise UndefinedMetric(
            "the regression has no solution, because some column tells the outcome perfectly (separation): leave that "
            "column out, join rare groups, or label more rows"
        )

    def _scale(self) -> Floats:
        return np.maximum(self.explanatory.reshape(-1, self.shape[0]).std(axis=0), 1e-12)

    def _expected(self, coefficients: Floats) -> Floats:
        predictor: Floats = self.explanatory @ coefficients
        if self.link == "linear":
            return predictor
        if self.link == "logistic":
            return expit(predictor)
        first = np.zeros((*predictor.shape[:-1], 1))
        return softmax(np.concatenate([first, predictor], axis=-1), axis=-1)[..., 1:]

    def _slopes(self, expected: Floats) -> Floats:
        """Return the derivative of expectations by predictors, `[…, equation, equation]`."""
        own = np.eye(expected.shape[-1])
        if self.link == "linear":
            return np.broadcast_to(own, (*expected.shape, len(own)))
        diagonal: Floats = expected[..., np.newaxis] * own
        return diagonal - expected[..., np.newaxis] * expected[..., np.newaxis, :]


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
