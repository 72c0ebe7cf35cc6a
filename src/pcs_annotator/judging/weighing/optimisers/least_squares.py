"""`least-squares`: exactly the paper's constraints, no offsets and no shrinkage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.core.votes import Votes
from pcs_annotator.core.weights import Diagnostics, Weights, to_simplex
from pcs_annotator.judging.weighing.optimiser import optimiser
from pcs_annotator.judging.weighing.optimisers.alternating import Step, alternate, non_negative_minimum
from pcs_annotator.judging.weighing.optimisers.lr import normal_equations


@optimiser("least-squares")
@dataclass(frozen=True, kw_only=True)
class LeastSquares:
    r"""Minimises $\sum_{ik}(1[y_i=k]-\sum_{lm}w_L[l]\,w_M[m]\,H_{ilmk})^2$ with both vectors on their simplexes.

    On the simplex the target can be written $\sum_{lm} w_L w_M\,1[y_i=k]$, so the objective is a plain square
    $\lVert Ev\rVert^2$ with residuals $E = H - y$; its minimum over the simplex is the minimum of
    $\lVert Ev\rVert^2 - 2\sum v$ over $v \ge 0$, divided by its sum. Twenty gold rows are too few for it: use `lr`.
    """

    needs_gold: ClassVar[bool] = True

    def fit(self, votes: Votes, gold: Codes, seed: int) -> Weights:
        """Return the weights."""
        products, targets = normal_equations(votes, gold, centred=False)
        residuals = products - targets[:, None, :, None] - targets[None, :, None, :] + len(votes)
        steps = (_step(residuals), _step(residuals.transpose(2, 3, 0, 1)))
        found = alternate(*steps, targets.shape)
        told = Diagnostics(objective=found.objective, iterations=found.iterations)
        return Weights.normalised(votes, found.annotators, found.relations, told)


def _step(residuals: Floats) -> Step:
    def solve(other: Floats) -> tuple[Floats, float]:
        quadratic = residuals @ other @ other
        values = to_simplex(non_negative_minimum(quadratic, np.ones(len(quadratic))))
        return values, float(values @ quadratic @ values)

    return solve
