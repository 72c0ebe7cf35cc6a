"""A rival of the scoreboard: Dawid & Skene (1979), every cell an observer, with pseudo-votes for right answers."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pcs_annotator.core.arrays import Codes
from pcs_annotator.core.votes import Votes
from pcs_annotator.core.weights import Diagnostics, Evidence, Weights
from pcs_annotator.judging.fit_weights import weights_from_evidence
from pcs_annotator.judging.score import read_votes, softmax

ROUNDS, TOLERANCE = 200, 1e-6


@dataclass(frozen=True)
class DawidSkene:
    """Learns confusion tables without gold; its probabilities are far too confident, because cells err together."""

    needs_gold: ClassVar[bool] = False

    def fit(self, votes: Votes, gold: Codes, seed: int) -> Weights:
        """Return the weights, with the posterior as their evidence."""
        shares, labels = read_votes(votes, "shares"), len(votes.labels)
        pseudo, mass = 1.0 + 2.0 * np.eye(labels), shares.sum(axis=(1, 2)) + 1e-9
        belief = mass / mass.sum(axis=1, keepdims=True)
        for _ in range(ROUNDS):
            smoothed = np.einsum("iarv,ik->arvk", shares, belief, optimize=True) + pseudo
            likelihood = np.log(smoothed) - np.log(smoothed.sum(axis=2, keepdims=True))
            log_prior = np.log((belief.sum(axis=0) + 1) / (len(votes) + labels))
            before, belief = belief, softmax(np.tensordot(shares, likelihood, axes=3) + log_prior)
            if np.abs(belief - before).max(initial=0.0) < TOLERANCE:
                break
        evidence = Evidence(labels=votes.labels, log_prior=log_prior, log_likelihood=likelihood)
        return weights_from_evidence(votes, evidence, likelihood.std(axis=3).mean(axis=2), Diagnostics())
