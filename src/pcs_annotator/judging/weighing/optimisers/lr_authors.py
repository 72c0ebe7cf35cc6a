"""`lr-authors`: the arithmetic of the authors' own library, kept for comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.optimize import nnls

from pcs_annotator.core.arrays import Codes
from pcs_annotator.core.votes import Votes
from pcs_annotator.core.weights import Diagnostics, Weights
from pcs_annotator.judging.weighing.optimiser import one_hot, optimiser


@optimiser("lr-authors")
@dataclass(frozen=True, kw_only=True)
class AuthorsLinearRegression:
    """Positive regression of one-hot gold on one-hot cells, coefficients summed over output classes.

    Summing over classes forgets which label a cell spoke for: a model that is always wrong predicts the other label
    well and can get all the weight. Equal to `LinearRegression(positive=True)` of scikit-learn.
    """

    needs_gold: ClassVar[bool] = True

    def fit(self, votes: Votes, gold: Codes, seed: int) -> Weights:
        """Return the weights."""
        shares = votes.shares()
        design = shares.reshape(len(votes), -1)
        design = design - design.mean(axis=0)
        target = one_hot(gold, len(votes.labels))
        target = target - target.mean(axis=0)
        solutions = [nnls(design, column) for column in target.T]
        total = np.sum([coefficients for coefficients, _ in solutions], axis=0)
        cells = total.reshape(shares.shape[1:])
        told = Diagnostics(objective=float(sum(residual**2 for _, residual in solutions)), iterations=1)
        return Weights.normalised(votes, cells.sum(axis=(1, 2)), cells.sum(axis=(0, 2)), told)
