"""`lr`: regression of gold on votes, the default."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.core.task import MANY_LABELS
from pcs_annotator.core.votes import Votes
from pcs_annotator.core.weights import Diagnostics, Flag, Weights
from pcs_annotator.judging.fit_weights import one_hot, optimiser
from pcs_annotator.judging.score import read_votes
from pcs_annotator.judging.solver import non_negative_minimum

NEGLIGIBLE = 1e-20  # explained squared error per row; centring leaves rounding errors of about 1e-33
TOLERANCE = 1e-10  # relative, of the objective
Step = Callable[[Floats], tuple[Floats, float]]  # given one vector, returns the best other vector and the objective


class _Solution(NamedTuple):
    """Both vectors, up to a common scale, and the objective there."""

    annotators: Floats
    relations: Floats
    objective: float
    iterations: int


@optimiser("lr")
@dataclass(frozen=True, kw_only=True)
class LinearRegression:
    r"""Shrunk, constrained least squares; the default.

    Minimises over $s \ge 0$, $w_L$ and $w_M$ on their simplexes and label offsets $b_k$

    $$\sum_{ik}\Big(1[y_i=k]-b_k-s\sum_{lm} w_L[l]\,w_M[m]\,H_{ilmk}\Big)^2
      +\tfrac{\lambda}{4}s^2\big(L\,\lVert w_L-\tfrac1L\rVert^2+M\,\lVert w_M-\tfrac1M\rVert^2\big).$$

    Without offsets, a frequent label would inflate every annotator that favours it; without shrinkage, 20 gold rows
    could give all weight to one model. With $v = s\,w_L$ the penalty is quadratic in $v$, so each half step is a
    non-negative least-squares problem on sums over items: its cost does not grow with rows.
    """

    shrinkage: float = 10.0
    rounds: int = 500
    needs_gold: ClassVar[bool] = True

    def fit(self, votes: Votes, gold: Codes, seed: int) -> Weights:
        """Return the weights; equal ones, with a flag, when the votes carry no information about the gold."""
        products, targets = normal_equations(votes, gold)
        steps = self._step(products, targets), self._step(products.transpose(2, 3, 0, 1), targets.T)
        best, *others = [self._descend(*steps, start) for start in _starts(len(votes.relations))]
        for solution in others:
            if solution.objective < best.objective - TOLERANCE * abs(best.objective):
                best = solution
        if best.objective >= -NEGLIGIBLE * len(votes):
            flag = Flag("uniform fallback", "the votes say nothing about the gold labels, so the weights stay equal")
            return Weights.uniform(votes, Diagnostics(iterations=best.iterations, flags=(flag,)))
        diagnostics = Diagnostics(objective=best.objective, iterations=best.iterations)
        return Weights.normalised(votes, best.annotators, best.relations, diagnostics)

    def _descend(self, for_annotators: Step, for_relations: Step, relations: Floats) -> _Solution:
        """Alternate half steps; none can raise the objective, so that converges."""
        objective = np.inf
        for iteration in range(1, self.rounds + 1):
            annotators, _ = for_annotators(relations)
            if not annotators.any():
                return _Solution(annotators, relations, 0.0, iteration)
            relations, reached = for_relations(annotators)
            if not relations.any() or objective - reached <= TOLERANCE * abs(reached):
                break
            objective = reached
        return _Solution(annotators, relations, reached, iteration)

    def _step(self, products: Floats, targets: Floats) -> Step:
        """Return the half step that solves for the first axis with the second held fixed."""
        size, other_size = targets.shape
        own_penalty = self.shrinkage / 4 * (size * np.eye(size) - 1)

        def solve(other: Floats) -> tuple[Floats, float]:
            other = other / other.sum()
            spread = other_size * float(other @ other) - 1  # M·‖w − 1/M‖²
            quadratic = products @ other @ other + own_penalty + self.shrinkage / 4 * spread
            linear = targets @ other
            values = non_negative_minimum(quadratic, linear)
            return values, float(values @ quadratic @ values - 2 * linear @ values)

        return solve


def normal_equations(votes: Votes, gold: Codes) -> tuple[Floats, Floats]:
    """Return H·H `[a, a', r, r']` and H·y `[a, r]`, summed over items and labels: all that least squares needs.

    The mean of every label is subtracted first, which is the same as fitting one offset per label.
    """
    if len(votes.labels) > MANY_LABELS and votes.grades is None:
        return _from_codes(votes, gold)
    shares = read_votes(votes, "shares")
    labels = len(votes.labels)
    cells = len(votes.annotators) * len(votes.relations)
    target = one_hot(gold, labels)
    gram, cross = np.zeros((cells, cells)), np.zeros(cells)
    for label in range(labels):
        hits, truth = shares[..., label].reshape(-1, cells), target[:, label]
        hits, truth = hits - hits.mean(axis=0), truth - truth.mean()
        gram += hits.T @ hits
        cross += hits.T @ truth
    shape = (len(votes.annotators), len(votes.relations))
    return gram.reshape(*shape, *shape).transpose(0, 2, 1, 3), cross.reshape(shape)


def _from_codes(votes: Votes, gold: Codes) -> tuple[Floats, Floats]:
    """Return the same from answers that are equal; of very many labels, nearly all shares are 0."""
    items, labels = len(votes), len(votes.labels)
    shape = (len(votes.annotators), len(votes.relations))
    cells, codes = shape[0] * shape[1], votes.codes.reshape(items, -1)
    answered = votes.codes >= 0
    weight = (answered / np.maximum(answered.sum(axis=3, keepdims=True), 1)).reshape(items, -1)
    agreed = np.zeros((codes.shape[1], codes.shape[1]))
    for column in range(codes.shape[1]):
        agreed[column] = weight[:, column] @ (weight * (codes == codes[:, column : column + 1]))
    owner = np.repeat(np.arange(cells), votes.codes.shape[3])
    draws = (owner[:, np.newaxis] == np.arange(cells)).astype(np.float64)
    where = (owner * labels + np.maximum(codes, 0)).ravel()
    total = np.bincount(where, weight.ravel(), minlength=cells * labels).reshape(cells, labels)
    gram = draws.T @ agreed @ draws - total @ total.T / items
    right = (weight * (codes == gold[:, np.newaxis])).sum(axis=0) @ draws
    cross = right - total @ np.bincount(gold, minlength=labels) / items
    return gram.reshape(*shape, *shape).transpose(0, 2, 1, 3), cross.reshape(shape)


def _starts(relations: int) -> Iterator[Floats]:
    """Yield starts that treat all relations alike: equal weights, and every relation once with most of the weight."""
    yield np.full(relations, 1 / relations)
    if relations > 1:
        for relation in range(relations):
            yield np.where(np.arange(relations) == relation, 0.9, 0.1 / (relations - 1))
