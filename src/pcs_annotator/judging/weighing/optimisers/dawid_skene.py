"""`dawid-skene`: confusion tables without any gold, by expectation maximisation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pcs_annotator.core.arrays import Codes
from pcs_annotator.core.votes import Votes
from pcs_annotator.core.weights import Diagnostics, Evidence, Weights
from pcs_annotator.judging.weighing.optimiser import log_confusion, mutual_information, optimiser, weights_from_evidence
from pcs_annotator.judging.weighing.scoring import softmax


@optimiser("dawid-skene")
@dataclass(frozen=True, kw_only=True)
class DawidSkene:
    """Dawid & Skene (1979), every cell an observer, with pseudo-votes that take observers to be right more often.

    Gold is not looked at. Good for ranking; its probabilities are far too sure, because cells err together.
    """

    rounds: int = 200
    tolerance: float = 1e-6
    needs_gold: ClassVar[bool] = False

    def fit(self, votes: Votes, gold: Codes, seed: int) -> Weights:
        """Return the weights, with the model's posterior as their evidence."""
        shares = votes.shares()
        labels = len(votes.labels)
        pseudo = 1.0 + 2.0 * np.eye(labels)
        mass = shares.sum(axis=(1, 2)) + 1e-9
        belief = mass / mass.sum(axis=1, keepdims=True)
        iterations = 0
        while iterations < self.rounds:
            iterations += 1
            likelihood = log_confusion(np.einsum("iarv,ik->arvk", shares, belief, optimize=True), pseudo)
            log_prior = np.log((belief.sum(axis=0) + 1) / (len(votes) + labels))
            updated = softmax(np.tensordot(shares, likelihood, axes=3) + log_prior)
            change = np.abs(updated - belief).max(initial=0.0)
            belief = updated
            if change < self.tolerance:
                break
        evidence = Evidence(labels=votes.labels, log_prior=log_prior, log_likelihood=likelihood)
        told = Diagnostics(iterations=iterations)
        return weights_from_evidence(votes, evidence, mutual_information(likelihood, log_prior), told)
