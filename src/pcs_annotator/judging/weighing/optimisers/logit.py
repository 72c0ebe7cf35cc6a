"""`logit`: multinomial logistic regression with one weight per cell, shared by all labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.core.votes import Votes
from pcs_annotator.core.weights import Diagnostics, Evidence, Weights
from pcs_annotator.judging.weighing.optimiser import one_hot, optimiser, weights_from_evidence
from pcs_annotator.judging.weighing.scoring import log_softmax


@optimiser("logit")
@dataclass(frozen=True, kw_only=True)
class SharedWeightLogit:
    r"""Models $P(y_i=k)\propto\exp(b_k+\sum_{lm}\theta_{lm}H_{ilmk})$ with $\theta\ge0$.

    Minimises the negative log-likelihood plus $\tfrac\lambda2\lVert\theta-\bar\theta\rVert^2$ (cells are shrunk
    towards each other) and unit Gaussian priors on the mean weight and on the offsets. The problem is convex.
    """

    shrinkage: float = 5.0
    needs_gold: ClassVar[bool] = True

    def fit(self, votes: Votes, gold: Codes, seed: int) -> Weights:
        """Return the weights, with the model's posterior as their evidence."""
        shares = votes.shares()
        items, annotators, relations, labels = shares.shape
        cells = annotators * relations
        hits = shares.reshape(items, cells, labels)
        target = one_hot(gold, labels)

        def objective(point: Floats) -> tuple[float, Floats]:
            theta, offsets = point[:cells], point[cells:]
            log_p = log_softmax(np.einsum("ick,c->ik", hits, theta) + offsets)
            error = np.exp(log_p) - target
            mean = theta.mean()
            penalty = self.shrinkage * np.sum((theta - mean) ** 2) + mean**2 + np.sum(offsets**2)
            slope = np.einsum("ick,ik->c", hits, error) + self.shrinkage * (theta - mean) + mean / cells
            return -float(np.sum(log_p * target)) + penalty / 2, np.concatenate([slope, error.sum(axis=0) + offsets])

        bounds = [(0.0, None)] * cells + [(None, None)] * labels
        start = np.concatenate([np.full(cells, 1 / cells), np.zeros(labels)])
        from scipy.optimize import minimize  # takes a fifth of a second to load

        found = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 500})
        theta = found.x[:cells].reshape(annotators, relations)
        evidence = Evidence(
            labels=votes.labels,
            log_prior=found.x[cells:],
            log_likelihood=theta[:, :, np.newaxis, np.newaxis] * np.eye(labels),
        )
        diagnostics = Diagnostics(objective=float(found.fun), iterations=int(found.nit))
        return weights_from_evidence(votes, evidence, theta, diagnostics)
