import numpy as np
import pytest
from scipy.optimize import nnls

from pcs_annotator.core.arrays import Floats
from pcs_annotator.judging.optimisers.regression import alternate
from pcs_annotator.judging.solver import non_negative_minimum


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


def test_the_best_of_the_starts_wins() -> None:
    last = np.zeros(3)

    def from_start(other: Floats) -> tuple[Floats, float]:
        last[:] = other
        return np.ones(2), 0.0

    # relations never move, so that each start ends at a different objective
    def stay(annotators: Floats) -> tuple[Floats, float]:
        return last.copy(), -float(last[1])

    found = alternate(from_start, stay, (2, 3))
    np.testing.assert_allclose(found.relations, [0.05, 0.9, 0.05])
    assert found.objective == -0.9


def test_descent_stops_after_the_rounds_it_was_given() -> None:
    values = iter(range(100, 0, -1))

    def never_settles(other: Floats) -> tuple[Floats, float]:
        return np.ones(1), float(next(values))

    found = alternate(never_settles, never_settles, (1, 1), rounds=7)
    assert found.iterations == 7
    assert found.objective == 100 - 13


def test_descent_ends_when_no_annotator_is_worth_anything() -> None:
    def worthless(other: Floats) -> tuple[Floats, float]:
        return np.zeros(2), 0.0

    def not_called(other: Floats) -> tuple[Floats, float]:
        raise AssertionError("there is nothing left to solve")

    found = alternate(worthless, not_called, (2, 3))
    assert not found.annotators.any()
    assert (found.objective, found.iterations) == (0.0, 1)


@pytest.mark.parametrize("quadratic", [-3e-17, 3e-17, -7e-35])
def test_a_sum_of_squares_that_is_only_rounding_counts_as_nothing(quadratic: float) -> None:
    """A single annotator with constant votes leaves this much, with either sign."""
    assert non_negative_minimum(np.array([[quadratic]]), np.array([3e-17])) == pytest.approx(0, abs=1e-6)
