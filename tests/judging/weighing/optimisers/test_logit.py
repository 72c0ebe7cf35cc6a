from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from pcs_annotator import Votes, Weights, score
from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.judging.weighing.optimisers.logit import SharedWeightLogit
from tests.builders import simulated_votes
from tests.judging.strategies import coded, silenced


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
    assert weights.evidence is not None
    theta = weights.evidence.log_likelihood[:, :, 0, 0].ravel()
    return np.concatenate([theta, weights.evidence.log_prior])


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


def test_an_always_wrong_annotator_is_held_at_zero() -> None:
    votes, names = simulated_votes([0.8, 0.0], items=100, relations=2)
    weights = SharedWeightLogit(shrinkage=0.0).fit(votes, coded(votes, names), 0)
    assert weights.by_annotator["model-1"] == 0


def test_more_shrinkage_means_more_equal_cells() -> None:
    votes, names = simulated_votes([0.9, 0.5], items=80, relations=2)
    gold = coded(votes, names)
    spreads = [np.std(point_of(SharedWeightLogit(shrinkage=by).fit(votes, gold, 0))[:4]) for by in (0.0, 5.0, 1e6)]
    assert spreads[0] > spreads[1] > spreads[2]
    assert spreads[2] < 1e-4


def test_score_is_the_posterior_of_the_model() -> None:
    votes, names = simulated_votes([0.8, 0.6], items=30, relations=2)
    weights = SharedWeightLogit().fit(votes, coded(votes, names), 0)
    point = point_of(weights)
    logits = np.einsum("ick,c->ik", votes.shares().reshape(30, 4, 3), point[:4]) + point[4:]
    expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(score(votes, weights), expected, atol=1e-11)
