import numpy as np
import pytest
from scipy.optimize import nnls

from pcs_annotator.core.arrays import Floats
from pcs_annotator.judging.optimisers.regression import LinearRegression
from pcs_annotator.judging.solver import non_negative_minimum
from tests.builders import simulated_votes, the
from tests.judging.strategies import coded


def least_squares_problem(seed: int) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 8))
    return rng.normal(size=(size + 3, size)), rng.normal(size=size + 3)


@pytest.mark.parametrize("seed", range(60))
def test_non_negative_minimum_equals_nnls(seed: int) -> None:
    design, target = least_squares_problem(seed)
    found = non_negative_minimum(design.T @ design, design.T @ target)
    np.testing.assert_allclose(found, nnls(design, target)[0], atol=1e-6)


@pytest.mark.parametrize(
    ("quadratic", "linear", "expected"),
    [
        pytest.param([[1, 0], [0, 1]], [-1, -2], [0, 0], id="nothing is positive at first"),
        pytest.param([[1, 0.9], [0.9, 1]], [-1, -2], [0, 0], id="nothing stays positive"),
    ],
)
def test_general_solver_takes_over_when_nothing_is_left(
    quadratic: list[list[float]], linear: list[float], expected: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = count_general_solver(monkeypatch)
    found = non_negative_minimum(np.array(quadratic, dtype=float), np.array(linear, dtype=float))
    np.testing.assert_allclose(found, expected, atol=1e-9)
    assert len(calls) == 1


def test_general_solver_takes_over_where_a_dropped_variable_should_return(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = count_general_solver(monkeypatch)
    for seed in range(200):
        design, target = least_squares_problem(seed)
        before = len(calls)
        found = non_negative_minimum(design.T @ design, design.T @ target)
        if len(calls) > before and found.any():
            np.testing.assert_allclose(found, nnls(design, target)[0], atol=1e-6)
            return
    pytest.fail("none of 200 problems needed the general solver")


def count_general_solver(monkeypatch: pytest.MonkeyPatch) -> list[Floats]:
    calls: list[Floats] = []

    def counted(design: Floats, target: Floats) -> tuple[Floats, float]:
        calls.append(target)
        solution, residual = nnls(design, target)
        return np.asarray(solution), float(residual)

    monkeypatch.setattr("scipy.optimize.nnls", counted)
    return calls


def test_descent_stops_after_the_rounds_it_was_given() -> None:
    votes, names = simulated_votes([0.8, 0.6], items=60, relations=3)
    one, all_of_them = (LinearRegression(rounds=rounds).fit(votes, coded(votes, names), 0) for rounds in (1, 500))
    assert one.diagnostics.iterations == 1 < all_of_them.diagnostics.iterations
    assert the(one.diagnostics.objective) > the(all_of_them.diagnostics.objective)


@pytest.mark.parametrize("quadratic", [-3e-17, 3e-17, -7e-35])
def test_a_sum_of_squares_that_is_only_rounding_counts_as_nothing(quadratic: float) -> None:
    """A single annotator with constant votes leaves this much, with either sign."""
    assert non_negative_minimum(np.array([[quadratic]]), np.array([3e-17])) == pytest.approx(0, abs=1e-6)
