"""Confusion tables, one per cell: `naive-bayes` learns them from gold, `dawid-skene` without gold."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.core.votes import Votes
from pcs_annotator.core.weights import Diagnostics, Evidence, Weights
from pcs_annotator.judging.weighing.optimiser import one_hot, optimiser, weights_from_evidence
from pcs_annotator.judging.weighing.scoring import log_softmax, read_votes, softmax

MAX_TEMPER = 1.5


@optimiser("naive-bayes")
@dataclass(frozen=True, kw_only=True)
class NaiveBayes:
    r"""Models $P(y_i=k)\propto\pi_k\prod_{lm}P_{lm}(v_{ilm}\mid k)^\tau$.

    Tables are smoothed with `pseudo` votes; a share `trust` of them is right, and the rest follows how often the cell
    gives each label. Variants of one text to one model err together, so treating them as independent would be far
    too confident: the temper $\tau$ is the one that predicts every gold row best from the other rows.
    """

    pseudo: float = 3.0
    trust: float = 0.3
    needs_gold: ClassVar[bool] = True

    def fit(self, votes: Votes, gold: Codes, seed: int) -> Weights:
        """Return the weights, with the model's posterior as their evidence."""
        shares = read_votes(votes, "shares")
        labels = len(votes.labels)
        target = one_hot(gold, labels)
        counts = np.einsum("iarv,ik->arvk", shares, target)
        pseudo = pseudo_counts(shares, self.pseudo, self.trust)
        likelihood = log_confusion(counts, pseudo)
        log_prior = np.log((target.sum(axis=0) + 1) / (len(gold) + labels))
        held_out = _held_out_evidence(shares, gold, counts, pseudo, likelihood)

        def loss(temper: float) -> float:
            return -float(np.sum(log_softmax(temper * held_out + log_prior) * target))

        from scipy.optimize import minimize_scalar  # takes a fifth of a second to load

        found = minimize_scalar(loss, bounds=(0.0, MAX_TEMPER), method="bounded", options={"xatol": 1e-4})
        evidence = Evidence(labels=votes.labels, log_prior=log_prior, log_likelihood=float(found.x) * likelihood)
        diagnostics = Diagnostics(objective=float(found.fun), iterations=int(found.nfev))
        return weights_from_evidence(votes, evidence, mutual_information(likelihood, log_prior), diagnostics)


def pseudo_counts(shares: Floats, pseudo: float = 3.0, trust: float = 0.3) -> Floats:
    """Return the pseudo-votes of every cell, `[…, vote, label]`, from vote shares `[item, …, vote]`."""
    labels = shares.shape[-1]
    habits = (shares.sum(axis=0) + 1) / (shares.sum(axis=(0, -1)) + labels)[..., np.newaxis]
    return np.asarray(pseudo * ((1 - trust) * habits[..., np.newaxis] + trust * np.eye(labels)))


def log_confusion(counts: Floats, pseudo: Floats) -> Floats:
    """Return log P(vote | label) from counts `[…, vote, label]` and pseudo-counts."""
    smoothed = counts + pseudo
    return np.asarray(np.log(smoothed) - np.log(smoothed.sum(axis=-2, keepdims=True)))


def mutual_information(log_likelihood: Floats, log_prior: Floats) -> Floats:
    """Return how much information a cell's vote gives about the label, in nats, `[annotator, relation]`."""
    prior = np.exp(log_prior)
    joint = np.exp(log_likelihood) * prior
    marginal = joint.sum(axis=3, keepdims=True)
    return np.maximum(np.sum(joint * (log_likelihood - np.log(marginal)), axis=(2, 3)), 0.0)


def _held_out_evidence(shares: Floats, gold: Codes, counts: Floats, pseudo: Floats, likelihood: Floats) -> Floats:
    """Return the evidence for every label of every gold row, from tables that do not count that row.

    Leaving out a row changes only the column of its own label.
    """
    evidence = np.tensordot(shares, likelihood, axes=3)
    for label in range(shares.shape[3]):
        rows = np.flatnonzero(gold == label)
        others = counts[..., label] - shares[rows]
        table = log_confusion(others[..., np.newaxis], pseudo[..., label, np.newaxis])[..., 0]
        evidence[rows, label] = np.sum(shares[rows] * table, axis=(1, 2, 3))
    return evidence


@optimiser("dawid-skene")
@dataclass(frozen=True, kw_only=True)
class DawidSkene:
    """Dawid & Skene (1979) with every cell as an observer, and pseudo-votes that favour right answers.

    Gold is not used. Good for ranking; its probabilities are far too confident, because cells err together.
    """

    rounds: int = 200
    tolerance: float = 1e-6
    needs_gold: ClassVar[bool] = False

    def fit(self, votes: Votes, gold: Codes, seed: int) -> Weights:
        """Return the weights, with the model's posterior as their evidence."""
        shares = read_votes(votes, "shares")
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
        diagnostics = Diagnostics(iterations=iterations)
        return weights_from_evidence(votes, evidence, mutual_information(likelihood, log_prior), diagnostics)
