"""`uniform` and `majority`, which learn nothing; `naive-bayes`; and weights of numbers, by how far they are off."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.core.numbers import values_of
from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.core.votes import Votes
from pcs_annotator.core.weights import Diagnostics, Evidence, Flag, Weights
from pcs_annotator.judging.fit_weights import all_graded, one_hot, optimiser, weights_from_evidence
from pcs_annotator.judging.score import log_softmax, read_votes

MAX_TEMPER = 1.5
PRIOR_ROWS = 5
"""As many rows of the mean error are added to those of every model and relation, so that few rows say little."""


@optimiser("uniform")
@dataclass(frozen=True, kw_only=True)
class Uniform:
    """Every annotator and every relation counts the same; if all votes are graded, by their log-odds."""

    needs_gold: ClassVar[bool] = False

    def fit(self, votes: Votes, gold: Codes, seed: int) -> Weights:
        """Return equal weights; the score of graded votes is the softmax of their mean log-odds."""
        equal = Weights.uniform(votes)
        if not all_graded(votes):
            return equal
        annotators, relations, labels = len(votes.annotators), len(votes.relations), len(votes.labels)
        evidence = Evidence(
            labels=votes.labels,
            log_prior=np.zeros(labels),
            log_likelihood=np.broadcast_to(np.eye(labels) / annotators, (annotators, relations, labels, labels)),
            reads="mean log-odds",
        )
        return replace(equal, evidence=evidence)


@optimiser("majority")
@dataclass(frozen=True, kw_only=True)
class Majority:
    """Every annotator counts the same, and only its votes on the original text count."""

    needs_gold: ClassVar[bool] = False

    def fit(self, votes: Votes, gold: Codes, seed: int) -> Weights:
        """Return equal weights over annotators, on the original only; without one, on the first relation, flagged."""
        flags: tuple[Flag, ...] = ()
        if ORIGINAL not in votes.relations:
            detail = f"no relation is called {ORIGINAL!r}: {votes.original!r}, the first, stands for it"
            flags = (Flag("no original", detail),)
        relations = np.array([name == votes.original for name in votes.relations], dtype=np.float64)
        return Weights.normalised(votes, np.ones(len(votes.annotators)), relations, Diagnostics(flags=flags))


@dataclass(frozen=True, kw_only=True)
class Distance:
    """Weights are one over the squared mean error of a model's numbers, or of those under a relation."""

    needs_gold: ClassVar[bool] = True
    numeric: ClassVar[bool] = True

    def fit(self, votes: Votes, gold: Codes, seed: int) -> Weights:
        """Return the weights; labels that are not numbers are an error."""
        values, answered = values_of(tuple(votes.labels)), votes.codes >= 0
        off = np.where(answered, np.abs(values[votes.codes] - values[gold][:, np.newaxis, np.newaxis, np.newaxis]), 0.0)
        usual = max(float(off.sum() / max(answered.sum(), 1)), np.diff(np.sort(values)).min() / 4)

        def worth(axes: tuple[int, ...]) -> Floats:
            mean = (off.sum(axis=axes) + PRIOR_ROWS * usual) / (answered.sum(axis=axes) + PRIOR_ROWS)
            return np.asarray(mean**-2.0)

        return Weights.normalised(votes, worth((0, 2, 3)), worth((0, 1, 3)), Diagnostics())


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

        search = minimize_scalar(loss, bounds=(0.0, MAX_TEMPER), method="bounded", options={"xatol": 1e-4})
        evidence = Evidence(labels=votes.labels, log_prior=log_prior, log_likelihood=float(search.x) * likelihood)
        diagnostics = Diagnostics(objective=float(search.fun), iterations=int(search.nfev))
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
