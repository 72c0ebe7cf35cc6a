r"""`auto`: one learner that combines what votes and texts say in a conditional logit.

With cells $c$ (an annotator under a relation) and labels $k$, and a single maximum that Newton's method finds:

$$P(k)\propto\exp\Big(a N_k+s W_k+\sum_c d_c V_{ck}+t T_k+b_k\Big)$$

$N$ is the naive Bayes log-likelihood of the votes, $W$ counts votes by how often their cell is right, $V_c$ is the vote
of one cell, and $T$ is what a model of the texts says beside how common labels are. Where a text may have any number
of labels, the priors of each are centred on the slopes that fit all of them best. See `docs/design/fitting.md`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.core.task import MANY_LABELS
from pcs_annotator.core.votes import Votes
from pcs_annotator.core.weights import Diagnostics, Evidence, VoteScale, Weights, worth_of_votes
from pcs_annotator.judging.fit_weights import any_graded, one_hot, optimiser, optimisers, weights_from_evidence
from pcs_annotator.judging.score import read_votes
from pcs_annotator.judging.solver import fit_softmax

PSEUDO_VOTES = 6.0  # as many votes of a guess are added to the confusion table of a cell, per label
LEAST_SKILL = 0.05
RELIABLE, TEXT = 0.2, 0.6  # prior means of s and t; that of a is `_independence`
SLOPE_SD, OFFSET_SD = 0.3, 1.0
SHARED_SD = 0.15  # of a label's slopes around those of all labels of its variable
MOST_SHARED = 10_000  # rows of other labels; from more of them, nothing is learned that is worth the time
LABEL_SD = 0.6  # of the slopes per model and label: small models have strong favourites
HABIT_VOTES = 5.0  # how many graded votes of its own a cell needs to count as much as all cells of its annotator
PRIOR_ROWS = 0.5


class Inputs(NamedTuple):
    """What the regression reads of votes, and how its slopes become evidence."""

    values: Floats  # `[input, row, label]`
    centre: Floats  # the prior mean of every slope
    sd: Floats  # and its standard deviation
    cells_of: Callable[[Floats], tuple[Floats, Floats]]  # makes `Evidence.log_likelihood` of slopes, and cells' worth
    reads: VoteScale


@optimiser("auto")
@dataclass(frozen=True, kw_only=True)
class Combination:
    """Combines votes and texts; of very many labels, most have no gold row, so `lr` learns weights only."""

    needs_gold: ClassVar[bool] = True

    def fit(self, votes: Votes, gold: Codes, seed: int) -> Weights:
        """Return the weights, with the posterior as their evidence; `votes.text_log_probs` is what texts say."""
        if len(votes.labels) > MANY_LABELS:
            weights = optimisers.create("lr").fit(votes, gold, seed)
            return replace(weights, diagnostics=replace(weights.diagnostics, optimiser="lr"))
        inputs = _shared(_inputs(votes, gold), votes, gold)
        fit = fit_softmax(inputs.values, gold, inputs.centre, inputs.sd**-2, offsets=OFFSET_SD**-2)
        with_text = votes.text_log_probs is not None
        table, worth = inputs.cells_of(fit.slopes[:-1] if with_text else fit.slopes)
        text_slope = float(fit.slopes[-1]) if with_text else 0.0
        counts = one_hot(gold, len(votes.labels)).sum(axis=0)
        evidence = Evidence(
            labels=votes.labels,
            log_prior=fit.offsets,
            log_likelihood=table,
            reads=inputs.reads,
            text_slope=text_slope,
            text_offsets=-text_slope * _log_shares(counts),
        )
        return weights_from_evidence(votes, evidence, worth, Diagnostics(objective=fit.loss, iterations=fit.steps))


def _inputs(votes: Votes, gold: Codes) -> Inputs:
    """Return what the regression reads of votes and texts, those of the texts last."""
    inputs = _graded(votes) if any_graded(votes) else _hard(votes, gold)
    if votes.text_log_probs is None:
        return inputs
    target = one_hot(gold, len(votes.labels))
    # of a gold row, the model of the texts did not count its own label
    of_texts = votes.text_log_probs - _log_shares(target.sum(axis=0) - target)
    values = np.concatenate([inputs.values, of_texts[np.newaxis]])
    return inputs._replace(values=values, centre=np.append(inputs.centre, TEXT), sd=np.append(inputs.sd, SLOPE_SD))


def _shared(inputs: Inputs, votes: Votes, gold: Codes) -> Inputs:
    """Return the inputs with priors around the slopes that fit all labels of the variable best, on the same rows.

    A label that few rows have says little about its slopes. So all labels have the same first, and one for how common
    they are; then each learns its own, from tables and with offsets that are its own.
    """
    size, of_all = len(inputs.values), [(inputs.values, gold)]
    for others, codes in votes.siblings[: MOST_SHARED // len(gold)]:
        rows = np.isin(others.ids, votes.ids)
        part, target = others.take(rows), codes[rows]
        alike = all(getattr(part, axis) == getattr(votes, axis) for axis in ("annotators", "relations", "labels"))
        if alike and len(np.unique(target)) > 1 and len(values := _inputs(part, target).values[:size]) == size:
            of_all.append((values, target))
    if len(of_all) == 1:
        return inputs
    shares = [_log_shares(one_hot(target, len(votes.labels)).sum(axis=0)) for _, target in of_all]
    common = np.repeat(shares, [len(target) for _, target in of_all], axis=0)
    values = np.concatenate([np.concatenate([values for values, _ in of_all], axis=1), common[np.newaxis]])
    centre, sd = np.append(inputs.centre, 0.0), np.append(inputs.sd, OFFSET_SD)
    slopes = fit_softmax(values, np.concatenate([target for _, target in of_all]), centre, sd**-2).slopes[:size]
    return inputs._replace(centre=slopes, sd=np.minimum(inputs.sd, SHARED_SD))


def _log_shares(counts: Floats) -> Floats:
    """Return how common each label is, `[…, label]`, as a model of the texts counts it."""
    return np.log(counts + PRIOR_ROWS) - np.log((counts + PRIOR_ROWS).sum(axis=-1, keepdims=True))


def _hard(votes: Votes, gold: Codes) -> Inputs:
    """Return N, W and V; the vote of a gold row is not in the tables by which it is judged itself."""
    shares = votes.shares()
    rows, annotators, relations, labels = shares.shape
    cells, same = annotators * relations, np.eye(labels)
    votes_of = shares.reshape(rows, cells, labels)
    counts = (votes_of.reshape(rows, -1).T @ one_hot(gold, labels)).reshape(cells, labels, labels)
    voted, hits = counts.sum(axis=(1, 2)), np.trace(counts, axis1=1, axis2=2)
    habits = (votes_of.sum(axis=0) + 1) / (voted + labels)[:, np.newaxis]
    pseudo = _pseudo_votes(habits, hits, voted, gold)
    likelihood = log_confusion(counts, pseudo)
    log_odds = np.log((hits + 1) / (voted - hits + 1))
    trust = np.where(voted > 0, 1 + log_odds - log_odds[voted > 0].mean(), 0.0)
    of_all = [_left_out(votes_of, gold, counts, pseudo, likelihood), np.tensordot(trust, votes_of, axes=(0, 1))]
    centre = np.array([_independence(int((voted > 0).sum())), RELIABLE, *[0.0] * cells])

    def cells_of(slopes: Floats) -> tuple[Floats, Floats]:
        slope = slopes[1] * trust + slopes[2:]
        by_cell = slopes[0] * likelihood + slope[:, np.newaxis, np.newaxis] * same
        table = by_cell.reshape(annotators, relations, labels, labels)
        return table, worth_of_votes(table) * (voted > 0).reshape(annotators, relations)

    values = np.concatenate([of_all, votes_of.transpose(1, 0, 2)])
    return Inputs(values, centre, np.full(len(centre), SLOPE_SD), cells_of, "shares")


def _independence(cells: int) -> float:
    """Return what naive Bayes must be multiplied by where errors of two cells have a correlation of a half."""
    return 2 / (cells + 1)


def _pseudo_votes(habits: Floats, hits: Floats, voted: Floats, gold: Codes) -> Floats:
    """Return the pseudo-votes in the tables of cells, `[cell, vote, label]`.

    The less a cell's votes agree with gold beyond chance, the more its pseudo-votes are only its habits.
    """
    chance = habits[:, gold].mean(axis=1)
    skill = np.maximum(((hits + 1) / (voted + 2) - chance) / (1 - chance), LEAST_SKILL)[:, np.newaxis, np.newaxis]
    return np.asarray(PSEUDO_VOTES * ((1 - skill) * habits[:, :, np.newaxis] + skill * np.eye(habits.shape[1])))


def log_confusion(counts: Floats, pseudo: Floats) -> Floats:
    """Return log P(vote | label) from counts `[cell, vote, label]` and pseudo-votes."""
    smoothed = counts + pseudo
    return np.asarray(np.log(smoothed) - np.log(smoothed.sum(axis=1, keepdims=True)))


def _left_out(votes_of: Floats, gold: Codes, counts: Floats, pseudo: Floats, likelihood: Floats) -> Floats:
    """Return the log-likelihood of every label of gold rows, from tables that do not count the row itself.

    Leaving out a row changes only the column of its own label.
    """
    evidence = np.tensordot(votes_of, likelihood, axes=2)
    for label in np.unique(gold).tolist():
        rows = np.flatnonzero(gold == label)
        others = counts[:, :, label] - votes_of[rows] + pseudo[:, :, label]
        logs = np.log(others) - np.log(others.sum(axis=2, keepdims=True))
        evidence[rows, label] = np.sum(votes_of[rows] * logs, axis=(1, 2))
    return evidence


def _graded(votes: Votes) -> Inputs:
    """Return the mean log-odds over models, those of each model, and those of each model and label.

    They are less what each question usually gets, averaged over the questions that a model answered, in units of their
    spread. One more slope for all models together, and one per label, lets a model earn a weight for each label.
    """
    log_odds, averaged = read_votes(votes, "log-odds"), read_votes(votes, "mean log-odds")
    annotators, _, labels = log_odds.shape[1:]
    habits = _graded_habits(log_odds)
    unusual = averaged - averaged.sum(axis=3, keepdims=True) * habits
    means, answered = unusual.sum(axis=2), averaged.sum(axis=(0, 2, 3))
    variance = np.sum(means**2, axis=(0, 2)) / np.maximum(answered, 1) / labels
    spread = np.sqrt(np.where(variance > np.finfo(np.float64).eps, variance, 1.0))
    scaled = means / spread[:, np.newaxis]
    of_models = scaled.transpose(1, 0, 2)
    by_label = of_models[:, np.newaxis] * np.eye(labels)[:, np.newaxis]
    values = np.concatenate([[scaled.sum(axis=1)], of_models, by_label.reshape(-1, *of_models.shape[1:])])
    centre = np.array([1 / max(int((answered > 0).sum()), 1), *[0.0] * (len(values) - 1)])
    sd = np.where(np.arange(len(values)) > annotators, LABEL_SD, SLOPE_SD)

    asked = log_odds.sum(axis=(0, 3))
    share_asked = asked / np.maximum(asked.sum(axis=1, keepdims=True), 1)

    def cells_of(slopes: Floats) -> tuple[Floats, Floats]:
        slope = (
            slopes[0] + slopes[1 : annotators + 1, np.newaxis] + slopes[annotators + 1 :].reshape(annotators, labels)
        )
        weights = (slope / spread[:, np.newaxis])[:, np.newaxis, np.newaxis]
        table = weights * (np.eye(labels) - habits[:, :, np.newaxis])
        # in units of spread: one unit of log-odds is much from a model that is never sure
        return table, np.abs(slope).mean(axis=1, keepdims=True) * share_asked

    return Inputs(values, centre, sd, cells_of, "mean log-odds")


def _graded_habits(log_odds: Floats) -> Floats:
    """Return what every cell says on average, `[annotator, relation, label]`.

    Models have favourite labels, and each question has its own. Without subtracting them, offsets would make up for
    those of all cells together, and would be wrong for an item on which some cell gave no answer.
    """
    total = log_odds.sum(axis=0)
    answered = total.sum(axis=2, keepdims=True)  # an answered cell sums to 1
    by_annotator = (total.sum(axis=1) + 1 / log_odds.shape[3]) / (answered.sum(axis=1) + 1)
    return np.asarray((total + HABIT_VOTES * by_annotator[:, np.newaxis]) / (answered + HABIT_VOTES))
