"""`scaling`: the mean log-odds of every model, scaled label by label and added up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pcs_annotator.core.arrays import Codes
from pcs_annotator.core.votes import Votes
from pcs_annotator.core.weights import Evidence, Weights
from pcs_annotator.judging.weighing.optimiser import optimiser, weights_from_evidence
from pcs_annotator.judging.weighing.optimisers.logit import (
    Normal,
    fit_logistic,
    habits_of,
    less_habits,
    root_or_one,
    table_less_habits,
)
from pcs_annotator.judging.weighing.scoring import read_votes


@optimiser("scaling")
@dataclass(frozen=True, kw_only=True)
class Scaling:
    r"""Models $P(y_i=k)\propto\exp(b_k+\sum_l w_{lk}\,z_{ilk})$ with $w\ge0$; for graded votes.

    $z_{il}$ are the log-odds of model *l*, less the mean of each question, averaged over the questions that it answered
    and divided by their spread. Minimises the negative log-likelihood plus $\tfrac\lambda2\lVert w-\bar w\rVert^2$
    (models and labels are shrunk towards each other), a prior on $\bar w$ that keeps the sum over models near 1, and a
    unit Gaussian prior on the offsets. The problem is convex.

    Questions to one model share its weights: log-odds of one question say nearly all, and the mean is better than any.
    """

    shrinkage: float = 3.0
    needs_gold: ClassVar[bool] = True

    def fit(self, votes: Votes, gold: Codes, seed: int) -> Weights:
        """Return the weights, with the model's posterior as their evidence."""
        said = read_votes(votes, "log-odds")
        annotators, relations, labels = said.shape[1:]
        habits = habits_of(said)
        averaged = read_votes(votes, "mean log-odds")
        means = less_habits(averaged, habits).sum(axis=2)
        answered = averaged.sum(axis=(2, 3)).round()
        spread = root_or_one(np.sum(means**2, axis=(0, 2)) / np.maximum(answered.sum(axis=0), 1) / labels)
        scaled = means / spread[:, np.newaxis]
        features = (scaled[..., np.newaxis] * np.eye(labels)).reshape(len(votes), -1, labels)
        found = fit_logistic(features, gold, self.shrinkage, Normal(1 / annotators, 1 / annotators))
        by_label = found.theta.reshape(annotators, labels)
        slopes = np.repeat((by_label / spread[:, np.newaxis])[:, np.newaxis], relations, axis=1)
        evidence = Evidence(
            labels=votes.labels,
            log_prior=found.offsets,
            log_likelihood=table_less_habits(slopes, habits),
            reads="mean log-odds",
        )
        asked = said.sum(axis=(0, 3))
        worth = by_label.mean(axis=1, keepdims=True) * asked / np.maximum(asked.sum(axis=1, keepdims=True), 1)
        return weights_from_evidence(votes, evidence, worth, found.diagnostics)
