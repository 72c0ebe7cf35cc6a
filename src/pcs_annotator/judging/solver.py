r"""Softmax regression with a normal prior: one solver for calibrators, logistic optimisers and the model of the texts.

With inputs $x_f$, `[row, label]` each, $P(y_i=k)\propto\exp(c_{ik}+\sum_f\theta_f x_{fik}+b_k)$. The posterior is
log-concave, so Newton's method with step halving ends at its only maximum.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.judging.score import log_softmax

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

NEWTON_STEPS = 50
ENOUGH = 1e-12  # a smaller decrease of the loss is none
LAST = 1e-6  # after a step that was to decrease it by less, the next would be none: errors are squared by every step
HARDLY_ANY = 1e-9  # the precision of a prior that only keeps a slope from growing for ever
RIDGE = 1e-10  # relative; picks one solution when two annotators always agree
NOTHING = 1e-9  # below this, a sum of squares is rounding error and may even be negative


class SoftmaxFit(NamedTuple):
    """The most probable slopes and offsets."""

    slopes: Floats
    offsets: Floats  # of every label; zeros if they were not learned
    loss: float
    steps: int


def fit_softmax(
    inputs: Sequence[Floats] | Floats,
    gold: Codes,
    centre: Floats,
    precision: Floats,
    *,
    offsets: float = 0.0,
    base: Floats | float = 0.0,
) -> SoftmaxFit:
    """Return the fit for a normal prior of the slopes.

    `precision` has one number for each slope, or is a matrix; `offsets` is that of every offset around 0, and 0 learns
    none. `base` is $c$.
    """
    labels, count = inputs[0].shape[1], len(inputs)
    free = labels if offsets else 0
    prior = np.diag(np.append(np.zeros(count), np.full(free, offsets)))
    prior[:count, :count] = precision if precision.ndim == 2 else np.diag(precision)
    problem = _Problem(np.asarray(inputs), np.eye(labels)[gold], base, np.append(centre, np.zeros(free)), prior)
    point, steps = problem.centre, 0
    loss, chances = problem.loss(point)
    while steps < NEWTON_STEPS:
        gradient, hessian = problem.derivatives(point, chances)
        move = -np.linalg.solve(hessian, gradient)
        left = float(-gradient @ move)
        if left < ENOUGH:
            break
        size, steps = 1.0, steps + 1
        while (reached := problem.loss(point + size * move))[0] > loss and size > 1e-6:
            size /= 2
        point, (loss, chances) = point + size * move, reached
        if left < LAST:
            break
    return SoftmaxFit(point[:count], point[count:] if free else np.zeros(labels), loss, steps)


@dataclass(frozen=True, slots=True)
class _Problem:
    """The negative logarithm of the posterior as a function of slopes and, if they are learned, offsets."""

    inputs: Floats  # `[input, row, label]`
    target: Floats
    base: Floats | float
    centre: Floats
    precision: Floats

    def loss(self, point: Floats) -> tuple[float, Floats]:
        """Return the loss and the probability of every label."""
        count = len(self.inputs)
        logits = np.tensordot(point[:count], self.inputs, axes=1) + self.base
        logs = log_softmax(logits + point[count:] if len(point) > count else logits)
        away = point - self.centre
        return float(away @ self.precision @ away / 2 - (logs * self.target).sum()), np.exp(logs)

    def derivatives(self, point: Floats, chances: Floats) -> tuple[Floats, Floats]:
        """Return gradient and Hessian of the loss."""
        count, error = len(self.inputs), chances - self.target
        weighed = chances * self.inputs
        means = weighed @ np.ones(chances.shape[1])
        flat = self.inputs.reshape(count, -1)
        gradient, hessian = self.precision @ (point - self.centre), self.precision.copy()
        gradient[:count] += flat @ error.ravel()
        hessian[:count, :count] += flat @ weighed.reshape(count, -1).T - means @ means.T
        if len(point) > count:
            both = weighed.sum(axis=1) - means @ chances
            gradient[count:] += error.sum(axis=0)
            hessian[:count, count:] += both
            hessian[count:, :count] += both.T
            hessian[count:, count:] += np.diag(chances.sum(axis=0)) - chances.T @ chances
        return gradient, hessian


def non_negative_minimum(quadratic: Floats, linear: Floats) -> Floats:
    """Return the x ≥ 0 that minimises xᵀ·quadratic·x − 2·linear·x.

    To solve without the bounds, drop negative coordinates and solve again is nearly always optimal and far cheaper than
    a general solver, which is used where it is not.
    """
    size = float(quadratic.trace())
    ridged = quadratic.copy()
    ridged.flat[:: len(linear) + 1] += RIDGE * (size if size > NOTHING else 1.0)
    solution: Floats = np.asarray(np.linalg.solve(ridged, linear), dtype=np.float64)
    if solution.min() >= 0:
        return solution
    kept = solution > 0
    while kept.any():
        part = np.linalg.solve(ridged[kept][:, kept], linear[kept])
        if part.min() >= 0:
            solution = np.zeros(len(linear))
            solution[kept] = part
            pull = linear - ridged @ solution
            if pull[~kept].max() <= 0:
                return solution
            break
        kept[kept] = part > 0
    from scipy.optimize import nnls

    root = np.linalg.cholesky(ridged)
    return np.asarray(nnls(root.T, np.linalg.solve(root, linear))[0])


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit linear algebra to one thread: the matrices are tiny, and threads would only wait for each other."""
    with _libraries("scipy.linalg" in sys.modules).limit(limits=1):
        yield


@cache
def _libraries(_scipy_is_loaded: bool) -> ThreadpoolController:
    """Return the libraries of linear algebra, which take longer to find than most fits; SciPy brings another one."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
