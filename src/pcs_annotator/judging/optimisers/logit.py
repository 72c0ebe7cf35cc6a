"""Multinomial logistic regressions: `logit` with one weight per cell, `scaling` with one per model and label."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.core.votes import Votes
from pcs_annotator.core.weights import Diagnostics, Evidence, Weights
from pcs_annotator.judging.fit_weights import any_graded, optimiser, weights_from_evidence
from pcs_annotator.judging.score import read_votes
from pcs_annotator.judging.solver import SoftmaxFit, fit_softmax

HABIT_VOTES = 5.0  # how many votes of its own a cell needs to count as much as all cells of its annotator


@optimiser("logit")
@dataclass(frozen=True, kw_only=True)
class SharedWeightLogit:
    r"""Models $P(y_i=k)\propto\exp(b_k+\sum_{lm}\theta_{lm}H_{ilmk})$ with $\theta\ge0$.

    Minimises the negative log-likelihood plus $\tfrac\lambda2\lVert\theta-\bar\theta\rVert^2$ (cells are shrunk
    towards each other) and unit Gaussian priors on the mean weight and on the offsets. The problem is convex.

    With graded votes, $H$ is replaced by log-odds in units of the cell: less their mean, divided by their spread. Cells
    then carry more, and more of the same, so they are shrunk harder.
    """

    shrinkage: float = 5.0
    graded_shrinkage: float = 30.0
    needs_gold: ClassVar[bool] = True

    def fit(self, votes: Votes, gold: Codes, seed: int) -> Weights:
        """Return the weights, with the model's posterior as their evidence."""
        return (self._fit_graded if any_graded(votes) else self._fit_hard)(votes, gold)

    def _fit_hard(self, votes: Votes, gold: Codes) -> Weights:
        shares = votes.shares()
        items, annotators, relations, labels = shares.shape
        fit = fit_logistic(shares.reshape(items, -1, labels), gold, self.shrinkage, 0.0, 1.0)
        theta = fit.slopes.reshape(annotators, relations)
        table = theta[:, :, np.newaxis, np.newaxis] * np.eye(labels)
        evidence = Evidence(labels=votes.labels, log_prior=fit.offsets, log_likelihood=table)
        return weights_from_evidence(votes, evidence, theta, Diagnostics(objective=fit.loss, iterations=fit.steps))

    def _fit_graded(self, votes: Votes, gold: Codes) -> Weights:
        log_odds = read_votes(votes, "log-odds")
        items, annotators, relations, labels = log_odds.shape
        cells = annotators * relations
        habits = habits_of(log_odds)
        unusual = less_habits(log_odds, habits)
        spread = _spread_of_cells(log_odds, unusual)
        features = (unusual / spread[..., np.newaxis]).reshape(items, cells, labels)
        fit = fit_logistic(features, gold, self.graded_shrinkage, 1 / cells, 1 / cells)
        theta = fit.slopes.reshape(annotators, relations)
        slopes = np.broadcast_to((theta / spread)[..., np.newaxis], habits.shape)
        evidence = Evidence(
            labels=votes.labels,
            log_prior=fit.offsets,
            log_likelihood=table_less_habits(slopes, habits),
            reads="log-odds",
        )
        return weights_from_evidence(votes, evidence, theta, Diagnostics(objective=fit.loss, iterations=fit.steps))


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
        log_odds = read_votes(votes, "log-odds")
        annotators, relations, labels = log_odds.shape[1:]
        habits = habits_of(log_odds)
        averaged = read_votes(votes, "mean log-odds")
        means = less_habits(averaged, habits).sum(axis=2)
        answered = averaged.sum(axis=(2, 3)).round()
        spread = root_or_one(np.sum(means**2, axis=(0, 2)) / np.maximum(answered.sum(axis=0), 1) / labels)
        scaled = means / spread[:, np.newaxis]
        features = (scaled[..., np.newaxis] * np.eye(labels)).reshape(len(votes), -1, labels)
        fit = fit_logistic(features, gold, self.shrinkage, 1 / annotators, 1 / annotators)
        by_label = fit.slopes.reshape(annotators, labels)
        slopes = np.repeat((by_label / spread[:, np.newaxis])[:, np.newaxis], relations, axis=1)
        evidence = Evidence(
            labels=votes.labels,
            log_prior=fit.offsets,
            log_likelihood=table_less_habits(slopes, habits),
            reads="mean log-odds",
        )
        asked = log_odds.sum(axis=(0, 3))
        worth = by_label.mean(axis=1, keepdims=True) * asked / np.maximum(asked.sum(axis=1, keepdims=True), 1)
        return weights_from_evidence(votes, evidence, worth, Diagnostics(objective=fit.loss, iterations=fit.steps))


def fit_logistic(features: Floats, gold: Codes, shrinkage: float, mean_weight: float, sd: float) -> SoftmaxFit:
    """Return the regression of gold on features `[item, feature, label]`, one weight ≥ 0 for each feature.

    Weights are shrunk towards their mean, which has a normal prior; offsets have a unit Gaussian prior.
    """
    count = features.shape[1]
    mean = np.full((count, count), 1 / count)
    precision = shrinkage * (np.eye(count) - mean) + mean / (count * sd**2)
    inputs = features.transpose(1, 0, 2)
    return fit_softmax(inputs, gold, np.full(count, mean_weight), precision, offsets=1.0, non_negative=True)


def habits_of(log_odds: Floats) -> Floats:
    """Return what every cell says on average, `[annotator, relation, label]`, from log-odds.

    Models have favourite labels, and each question has its own. Without subtracting them, offsets would make up for
    those of all cells together, and would be wrong for an item on which some cell gave no answer.
    """
    total = log_odds.sum(axis=0)
    votes = total.sum(axis=2, keepdims=True)  # an answered cell sums to 1
    by_annotator = (total.sum(axis=1) + 1 / log_odds.shape[3]) / (votes.sum(axis=1) + 1)
    return np.asarray((total + HABIT_VOTES * by_annotator[:, np.newaxis]) / (votes + HABIT_VOTES))


def less_habits(log_odds: Floats, habits: Floats) -> Floats:
    """Return how far each answered cell is from what it says on average; 0 where there is no answer."""
    return np.asarray(log_odds - log_odds.sum(axis=3, keepdims=True) * habits)


def table_less_habits(slopes: Floats, habits: Floats) -> Floats:
    """Return the evidence `[annotator, relation, vote, label]` that multiplies the unusual part of a cell by slopes."""
    return np.asarray(slopes[:, :, np.newaxis] * (np.eye(slopes.shape[2]) - habits[:, :, np.newaxis]))


def _spread_of_cells(log_odds: Floats, unusual: Floats) -> Floats:
    """Return the standard deviation of every cell's log-odds, `[annotator, relation]`; 1 where all are the same."""
    votes = log_odds.sum(axis=(0, 3))
    squares = np.sum(unusual**2, axis=(0, 3)) / log_odds.shape[3]
    by_annotator = squares.sum(axis=1) / np.maximum(votes.sum(axis=1), 1)
    variance = (squares + HABIT_VOTES * by_annotator[:, np.newaxis]) / (votes + HABIT_VOTES)
    return root_or_one(variance)


def root_or_one(variance: Floats) -> Floats:
    """Return the square root; 1 where there is nothing but rounding error."""
    return np.sqrt(np.where(variance > np.finfo(np.float64).eps, variance, 1.0))
