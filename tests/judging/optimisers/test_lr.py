import numpy as np
import pytest
from scipy.optimize import minimize

from pcs_annotator import PcsWarning, Votes, fit_weights
from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.core.weights import to_simplex
from pcs_annotator.judging.optimisers.regression import LinearRegression, normal_equations
from tests.builders import simulated_votes, votes_of
from tests.judging.strategies import coded, silenced

SHRINKAGE = 10.0


def best_objective(votes: Votes, gold: Codes, annotators: Floats, relations: Floats) -> float:
    """The objective of `lr` at the best scale and offsets for given weights."""
    pooled = np.einsum("iark,a,r->ik", votes.shares(), annotators, relations)
    target = np.eye(len(votes.labels))[gold]
    pooled, target = pooled - pooled.mean(axis=0), target - target.mean(axis=0)
    spread = sum(len(w) * np.sum((w - 1 / len(w)) ** 2) for w in (annotators, relations))
    curvature = np.sum(pooled**2) + SHRINKAGE / 4 * spread
    scale = max(0.0, float(np.sum(pooled * target) / curvature))
    return float(np.sum((target - scale * pooled) ** 2) + SHRINKAGE / 4 * scale**2 * spread)


def multistart_minimum(votes: Votes, gold: Codes, starts: int = 8) -> float:
    rng = np.random.default_rng(0)
    split = len(votes.annotators)
    size = split + len(votes.relations)

    def objective(point: Floats) -> float:
        return best_objective(votes, gold, to_simplex(point[:split]), to_simplex(point[split:]))

    found = [
        minimize(objective, rng.random(size), bounds=[(1e-9, 1.0)] * size, method="SLSQP").fun for _ in range(starts)
    ]
    return float(min(found))


@pytest.mark.parametrize(("seed", "accuracies"), [(0, [0.8, 0.5, 0.4]), (1, [0.35, 0.5]), (2, [0.9, 0.2, 0.6])])
def test_no_general_solver_finds_a_lower_objective(seed: int, accuracies: list[float]) -> None:
    votes, names = simulated_votes(accuracies, items=40, relations=3, seed=seed)
    votes, gold = silenced(votes, 0.15, seed), coded(votes, names)
    weights = LinearRegression().fit(votes, gold, 0)
    ours = best_objective(votes, gold, weights.annotator_weights, weights.relation_weights)
    assert ours <= multistart_minimum(votes, gold) + 1e-6


def test_reported_objective_is_the_formula_less_what_offsets_alone_leave() -> None:
    votes, names = simulated_votes([0.8, 0.5, 0.4], items=50, relations=3)
    gold = coded(votes, names)
    weights = LinearRegression().fit(votes, gold, 0)
    target = np.eye(3)[gold]
    offsets_alone = float(np.sum((target - target.mean(axis=0)) ** 2))
    ours = best_objective(votes, gold, weights.annotator_weights, weights.relation_weights)
    assert weights.diagnostics.objective == pytest.approx(ours - offsets_alone, abs=1e-6)


@pytest.mark.parametrize("relations", [1, 3])
def test_constant_votes_carry_nothing(relations: int) -> None:
    votes = votes_of(np.zeros((6, 2, relations)))
    with pytest.warns(PcsWarning, match="say nothing about"):
        weights = fit_weights(votes, ["fake", "real"] * 3)
    assert weights.by_annotator == {"a0": 0.5, "a1": 0.5}
    assert [flag.kind for flag in weights.diagnostics.flags] == ["uniform fallback"]


def test_votes_unrelated_to_the_gold_carry_nothing_despite_rounding() -> None:
    # thirds are not exact in binary, so subtracting means leaves 1e-17 to learn from
    votes = votes_of(
        [[[a], [b]] for a, b in zip([0, 1, 2] * 3, [2, 0, 1, 1, 2, 0, 0, 1, 2], strict=True)], tuple("abc")
    )
    with pytest.warns(PcsWarning, match="say nothing about"):
        weights = fit_weights(votes, list("aaabbbccc"))
    assert weights.by_annotator == {"a0": 0.5, "a1": 0.5}


def test_offsets_equal_centring_the_sums() -> None:
    votes, names = simulated_votes([0.7, 0.5], items=25, relations=2)
    gold = coded(votes, names)
    products, targets = normal_equations(votes, gold)
    hits = votes.shares() - votes.shares().mean(axis=0)
    truth = np.eye(3)[gold] - np.eye(3)[gold].mean(axis=0)
    np.testing.assert_allclose(products, np.einsum("iark,ibsk->abrs", hits, hits), atol=1e-9)
    np.testing.assert_allclose(targets, np.einsum("iark,ik->ar", hits, truth), atol=1e-9)
