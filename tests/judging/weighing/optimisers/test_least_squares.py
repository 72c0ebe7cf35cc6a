from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from pcs_annotator import Votes
from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.core.weights import to_simplex
from pcs_annotator.judging.weighing.optimisers.regression import LeastSquares
from tests.builders import simulated_votes
from tests.judging.strategies import coded, silenced


def squared_error(votes: Votes, gold: Codes, annotators: Floats, relations: Floats) -> float:
    pooled = np.einsum("iark,a,r->ik", votes.shares(), annotators, relations)
    return float(np.sum((np.eye(len(votes.labels))[gold] - pooled) ** 2))


def best_of_many_starts(votes: Votes, gold: Codes, starts: int = 20) -> float:
    rng = np.random.default_rng(0)
    split = len(votes.annotators)
    size = split + len(votes.relations)

    def objective(point: Floats) -> float:
        return squared_error(votes, gold, to_simplex(point[:split]), to_simplex(point[split:]))

    bounds = [(0.0, 1.0)] * size
    found = [minimize(objective, rng.random(size), bounds=bounds, method="SLSQP", tol=1e-12) for _ in range(starts)]
    return float(min(one.fun for one in found))


@pytest.mark.parametrize(
    ("seed", "accuracies", "labels", "silence"),
    [
        (0, [0.8, 0.5, 0.4], 3, 0.0),
        (1, [0.35, 0.5], 2, 0.2),
        (2, [0.9, 0.1, 0.6], 3, 0.3),
        (3, [0.3, 0.3, 0.3], 3, 0.1),
    ],
)
def test_as_good_as_the_best_of_twenty_general_searches(
    seed: int, accuracies: list[float], labels: int, silence: float
) -> None:
    votes, names = simulated_votes(accuracies, items=30, relations=3, labels=labels, seed=seed)
    votes, gold = silenced(votes, silence, seed), coded(votes, names)
    weights = LeastSquares().fit(votes, gold, 0)
    ours = squared_error(votes, gold, weights.annotator_weights, weights.relation_weights)
    assert ours == pytest.approx(best_of_many_starts(votes, gold), abs=1e-6)
    assert weights.diagnostics.objective == pytest.approx(ours, abs=1e-6)


def test_a_perfect_annotator_decides_alone() -> None:
    votes, names = simulated_votes([0.6, 1.0, 0.7], items=40)
    weights = LeastSquares().fit(votes, coded(votes, names), 0)
    assert weights.by_annotator["model-1"] == pytest.approx(1, abs=1e-6)
    assert weights.diagnostics.objective == pytest.approx(0, abs=1e-6)


def test_perfect_annotators_share_equally() -> None:
    votes, names = simulated_votes([1.0, 1.0], items=40)
    weights = LeastSquares().fit(votes, coded(votes, names), 0)
    np.testing.assert_allclose(weights.annotator_weights, 0.5, atol=1e-9)
