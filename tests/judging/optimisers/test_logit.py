from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from pcs_annotator import Votes, Weights, score
from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.judging.optimisers.logit import SharedWeightLogit
from pcs_annotator.judging.score import read_votes
from tests.builders import simulated_votes, the
from tests.judging.evaluate.graded import graded_votes
from tests.judging.metrics.alone import accuracy
from tests.judging.strategies import coded, only_first, opposite_favourites, silenced


def objective(point: Floats, votes: Votes, gold: Codes, shrinkage: float = 5.0) -> float:
    """The docstring's formula, row by row."""
    shares = votes.shares()
    cells = shares.shape[1] * shares.shape[2]
    theta, offsets = point[:cells], point[cells:]
    total = 0.0
    for row, truth in zip(shares.reshape(len(votes), cells, -1), gold, strict=True):
        logits = offsets + theta @ row
        total -= logits[truth] - np.log(np.sum(np.exp(logits)))
    mean = theta.mean()
    return float(total + shrinkage / 2 * np.sum((theta - mean) ** 2) + mean**2 / 2 + np.sum(offsets**2) / 2)


def point_of(weights: Weights) -> Floats:
    theta = the(weights.evidence).log_likelihood[:, :, 0, 0].ravel()
    return np.concatenate([theta, the(weights.evidence).log_prior])


@pytest.mark.parametrize(("seed", "accuracies"), [(0, [0.7, 0.5]), (1, [0.8, 0.05]), (2, [0.34, 0.3])])
def test_no_direction_inside_the_bounds_lowers_the_objective(seed: int, accuracies: list[float]) -> None:
    votes, names = simulated_votes(accuracies, items=40, relations=2, seed=seed)
    votes, gold = silenced(votes, 0.2, seed), coded(votes, names)
    weights = SharedWeightLogit().fit(votes, gold, 0)
    point = point_of(weights)
    assert weights.diagnostics.objective == pytest.approx(objective(point, votes, gold), abs=1e-9)
    slope = approx_fprime(point, objective, 1e-7, votes, gold)
    at_bound = np.append(point[:4] <= 0, np.zeros(3, dtype=np.bool_))
    np.testing.assert_allclose(slope[~at_bound], 0, atol=5e-3)
    assert (slope[at_bound] >= -5e-3).all()


def test_score_is_the_posterior_of_the_model() -> None:
    votes, names = simulated_votes([0.8, 0.6], items=30, relations=2)
    weights = SharedWeightLogit().fit(votes, coded(votes, names), 0)
    point = point_of(weights)
    logits = np.einsum("ick,c->ik", votes.shares().reshape(30, 4, 3), point[:4]) + point[4:]
    expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(score(votes, weights), expected, atol=1e-11)


def test_graded_votes_are_fitted_in_units_of_their_cell() -> None:
    """A model whose log-odds are half as large says the same; so do its weights and scores."""
    votes, gold = graded_votes([2.0, 1.0], items=80)
    softer = the(votes.grades).astype(np.float64) ** np.array([[[[[0.5]]], [[[1.0]]]]])
    halved = replace(votes, grades=softer / softer.sum(axis=-1, keepdims=True))
    ours, theirs = (SharedWeightLogit().fit(one, gold, 0) for one in (votes, halved))
    np.testing.assert_allclose(ours.annotator_weights, theirs.annotator_weights, atol=1e-3)
    np.testing.assert_allclose(score(votes, ours), score(halved, theirs), atol=1e-3)


def test_graded_objective_is_that_of_the_docstring() -> None:
    votes, gold = graded_votes([2.0, 0.5], items=60)
    weights = SharedWeightLogit(graded_shrinkage=4.0).fit(votes, gold, 0)
    assert weights.evidence is not None
    assert weights.evidence.reads == "log-odds"
    odds = read_votes(votes, "log-odds")
    habits = odds.mean(axis=0)
    # with 60 votes a cell leans little on its annotator, but not at all only without pseudo-votes
    smoothed = (60 * habits + 5 * (habits.sum(axis=1, keepdims=True) * 60 + 1 / 3) / 121) / 65
    unusual = odds - smoothed
    squares = (unusual**2).sum(axis=(0, 3)) / 3
    spread = np.sqrt((squares + 5 * squares.sum(axis=1, keepdims=True) / 120) / 65)
    features = (unusual / spread[..., np.newaxis]).reshape(60, 4, 3)
    slopes = np.diagonal(weights.evidence.log_likelihood, axis1=2, axis2=3) / (1 - smoothed)
    theta = (slopes[..., 0] * spread).ravel()
    offsets = weights.evidence.log_prior

    def loss(point: Floats) -> float:
        logits = np.einsum("ick,c->ik", features, point[:4]) + point[4:]
        own = logits[np.arange(60), gold] - np.log(np.exp(logits).sum(axis=1))
        mean = point[:4].mean()
        prior = 4 * np.sum((point[:4] - mean) ** 2) + (4 * mean - 1) ** 2 + np.sum(point[4:] ** 2)
        return float(-own.sum() + prior / 2)

    point = np.concatenate([theta, offsets])
    assert weights.diagnostics.objective == pytest.approx(loss(point), abs=1e-6)
    slope = approx_fprime(point, loss, 1e-7)
    np.testing.assert_allclose(slope[point > 0], 0, atol=1e-2)


def test_an_unanswered_question_leaves_the_others_as_they_are() -> None:
    """Two models with opposite favourites; where one is silent, the favourite of the other is still known."""
    votes, gold = opposite_favourites()
    weights = SharedWeightLogit().fit(votes, gold, 0)
    silent = only_first(votes)
    assert accuracy(score(silent, weights), gold) > accuracy(silent.shares()[:, 0, 0], gold) + 0.1
