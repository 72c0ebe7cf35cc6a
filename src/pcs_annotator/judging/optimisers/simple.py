"""`uniform` and `majority`, which learn nothing; and weights of numbers, by how far they are off."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.core.numbers import values_of
from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.core.votes import Votes
from pcs_annotator.core.weights import Diagnostics, Evidence, Flag, Weights
from pcs_annotator.judging.fit_weights import all_graded, optimiser

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
