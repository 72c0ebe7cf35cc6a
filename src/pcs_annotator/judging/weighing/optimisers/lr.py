"""`lr`: the paper's linear regression, with label offsets and shrinkage towards equal weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.core.votes import Votes
from pcs_annotator.core.weights import Diagnostics, Flag, Weights
from pcs_annotator.judging.weighing.optimiser import one_hot, optimiser
from pcs_annotator.judging.weighing.optimisers.alternating import Step, alternate, non_negative_minimum

NEGLIGIBLE = 1e-20  # squared error explained per row; means taken off leave rounding of about 1e-33


@optimiser("lr")
@dataclass(frozen=True, kw_only=True)
class LinearRegression:
    r"""Shrunk, constrained least squares; the default.

    Minimises over $s \ge 0$, $w_L$ and $w_M$ on their simplexes and label offsets $b_k$

    $$\sum_{ik}\Big(1[y_i=k]-b_k-s\sum_{lm} w_L[l]\,w_M[m]\,H_{ilmk}\Big)^2
      +\tfrac{\lambda}{4}s^2\big(L\,\lVert w_L-\tfrac1L\rVert^2+M\,\lVert w_M-\tfrac1M\rVert^2\big).$$

    Offsets stop a frequent label from inflating every annotator that favours it; the shrinkage keeps 20 gold rows
    from deciding for a single model. With $v = s\,w_L$ the penalty is quadratic in $v$, so each half step is a
    non-negative least-squares problem on sums over items: the cost does not grow with rows.
    """

    shrinkage: float = 10.0
    needs_gold: ClassVar[bool] = True

    def fit(self, votes: Votes, gold: Codes, seed: int) -> Weights:
        """Return the weights; equal ones, flagged, when the votes say nothing about the gold."""
        shape = (len(votes.annotators), len(votes.relations))
        products, targets = normal_equations(votes, gold, centred=True)
        steps = (
            self._step(products, targets),
            self._step(products.transpose(2, 3, 0, 1), targets.T),
        )
        found = alternate(*steps, shape)
        if found.objective >= -NEGLIGIBLE * len(votes):
            flag = Flag("uniform fallback", "the votes carry nothing about the gold labels, so the weights stay equal")
            return Weights.uniform(votes, Diagnostics(iterations=found.iterations, flags=(flag,)))
        told = Diagnostics(objective=found.objective, iterations=found.iterations)
        return Weights.normalised(votes, found.annotators, found.relations, told)

    def _step(self, products: Floats, targets: Floats) -> Step:
        """Return the half step that solves for the first axis while the second rests."""
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


def normal_equations(votes: Votes, gold: Codes, *, centred: bool) -> tuple[Floats, Floats]:
    """Return what least squares needs of the data: H·H `[a, a', r, r']` and H·y `[a, r]`, summed over items and labels.

    `centred` takes the mean of every label off first, which is the same as fitting one offset per label.
    """
    shares = votes.shares()
    labels = len(votes.labels)
    cells = len(votes.annotators) * len(votes.relations)
    target = one_hot(gold, labels)
    gram, cross = np.zeros((cells, cells)), np.zeros(cells)
    for label in range(labels):
        hits, truth = shares[..., label].reshape(-1, cells), target[:, label]
        if centred:
            hits, truth = hits - hits.mean(axis=0), truth - truth.mean()
        gram += hits.T @ hits
        cross += hits.T @ truth
    shape = (len(votes.annotators), len(votes.relations))
    return gram.reshape(*shape, *shape).transpose(0, 2, 1, 3), cross.reshape(shape)
