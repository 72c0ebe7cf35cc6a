"""Rivals of the scoreboard that learn from the same votes and gold, and of which one reads the texts too."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.core.votes import Votes
from pcs_annotator.core.weights import Diagnostics, Evidence, Weights, worth_of_votes
from pcs_annotator.judging.fit_weights import weights_from_evidence
from pcs_annotator.judging.score import read_votes, softmax
from pcs_annotator.judging.solver import fit_softmax

ROUNDS, TOLERANCE = 200, 1e-6
PSEUDO_VOTES, TRUST = 3.0, 0.3


@dataclass(frozen=True)
class DawidSkene:
    """Dawid & Skene (1979), every cell an observer: learns confusion tables without gold, with pseudo-votes.

    Its probabilities are far too confident, because cells err together.
    """

    needs_gold: ClassVar[bool] = False

    def fit(self, votes: Votes, gold: Codes, seed: int) -> Weights:
        """Return the weights, with the posterior as their evidence."""
        shares, labels = read_votes(votes, "shares"), len(votes.labels)
        pseudo, mass = 1.0 + 2.0 * np.eye(labels), shares.sum(axis=(1, 2)) + 1e-9
        belief = mass / mass.sum(axis=1, keepdims=True)
        for _ in range(ROUNDS):
            evidence = _tables(votes, shares, belief, pseudo)
            logits = np.tensordot(shares, evidence.log_likelihood, axes=3) + evidence.log_prior
            before, belief = belief, softmax(logits)
            if np.abs(belief - before).max(initial=0.0) < TOLERANCE:
                break
        return _weights(votes, evidence)


@dataclass(frozen=True)
class NaiveBayes:
    """A confusion table per cell from gold, with pseudo-votes for right answers and habits."""

    needs_gold: ClassVar[bool] = True

    def fit(self, votes: Votes, gold: Codes, seed: int) -> Weights:
        """Return the weights, with the posterior as their evidence."""
        shares, labels = read_votes(votes, "shares"), len(votes.labels)
        habits = (shares.sum(axis=0) + 1) / (shares.sum(axis=(0, 3)) + labels)[..., np.newaxis]
        pseudo = PSEUDO_VOTES * ((1 - TRUST) * habits[..., np.newaxis] + TRUST * np.eye(labels))
        return _weights(votes, _tables(votes, shares, np.eye(labels)[gold], pseudo))


@dataclass(frozen=True)
class Stack:
    """A conditional logit of the votes of every cell and of what a model of the texts says, with a wide prior."""

    needs_gold: ClassVar[bool] = True

    def fit(self, votes: Votes, gold: Codes, seed: int) -> Weights:
        """Return the weights, with the posterior as their evidence."""
        shares, labels = read_votes(votes, "shares"), len(votes.labels)
        cells = shares.shape[1] * shares.shape[2]
        values = shares.reshape(len(votes), cells, labels).transpose(1, 0, 2)
        if votes.text_log_probs is not None:
            values = np.concatenate([values, votes.text_log_probs[np.newaxis]])
        fit = fit_softmax(values, gold, np.zeros(len(values)), np.ones(len(values)), offsets=1.0)
        table = fit.slopes[:cells].reshape(*shares.shape[1:3], 1, 1) * np.eye(labels)
        slope = float(fit.slopes[-1]) if votes.text_log_probs is not None else 0.0
        evidence = Evidence(
            labels=votes.labels,
            log_prior=fit.offsets,
            log_likelihood=table,
            text_slope=slope,
            text_offsets=np.zeros(labels),
        )
        return _weights(votes, evidence)


def _tables(votes: Votes, shares: Floats, belief: Floats, pseudo: Floats) -> Evidence:
    """Return confusion tables and how common labels are, from what is believed about rows, `[row, label]`."""
    smoothed = np.einsum("iarv,ik->arvk", shares, belief, optimize=True) + pseudo
    likelihood = np.log(smoothed) - np.log(smoothed.sum(axis=2, keepdims=True))
    log_prior = np.log((belief.sum(axis=0) + 1) / (len(belief) + belief.shape[1]))
    return Evidence(labels=votes.labels, log_prior=log_prior, log_likelihood=likelihood)


def _weights(votes: Votes, evidence: Evidence) -> Weights:
    return weights_from_evidence(votes, evidence, worth_of_votes(evidence.log_likelihood), Diagnostics())
