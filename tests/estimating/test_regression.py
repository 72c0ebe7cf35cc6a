import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from pcs_annotator.base.errors import UndefinedMetric
from pcs_annotator.estimating import corrected as module
from pcs_annotator.estimating.corrected import LabelRegression, Link

RNG = np.random.default_rng(4)
ROWS = 400
X = np.column_stack([np.ones(ROWS), RNG.normal(size=(ROWS, 2))])
TRUTH = (X @ np.array([[0.2, -0.3], [0.5, 0.1], [-1.0, 0.4]])).argmax(axis=1) + RNG.integers(0, 2, ROWS)


def label_as_outcome(codes: np.ndarray, link: Link) -> tuple[LabelRegression, np.ndarray]:
    labels = int(codes.max()) + 1
    values = np.eye(labels)[:, 1:] if link == "multinomial" else np.eye(labels)[:, [1]]
    regression = LabelRegression(explanatory=[X[:, np.newaxis]], outcome=values[np.newaxis], link=link)
    return regression, np.eye(labels)[codes] / ROWS


def test_a_linear_regression_is_least_squares() -> None:
    regression, weights = label_as_outcome(TRUTH, "linear")
    expected = np.linalg.lstsq(X, (TRUTH == 1).astype(float), rcond=None)[0]
    assert regression.solve(weights).ravel() == pytest.approx(expected, abs=1e-10)


def test_a_logistic_regression_agrees_with_scikit_learn() -> None:
    regression, weights = label_as_outcome(TRUTH, "logistic")
    reference = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-12, max_iter=1000).fit(X, TRUTH == 1)
    assert regression.solve(weights).ravel() == pytest.approx(reference.coef_[0], abs=1e-6)


def test_a_multinomial_regression_agrees_with_scikit_learn() -> None:
    regression, weights = label_as_outcome(TRUTH, "multinomial")
    reference = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-12, max_iter=5000).fit(X, TRUTH)
    against_first = (reference.coef_ - reference.coef_[0])[1:].T
    assert regression.solve(weights) == pytest.approx(against_first, abs=1e-5)


def test_a_label_that_explains_is_a_column() -> None:
    outcome = RNG.normal(size=ROWS) + 2.0 * (TRUTH == 1)
    codes = (TRUTH == 1).astype(int)
    regression = LabelRegression(
        explanatory=[X[:, np.newaxis], np.array([[[0.0], [1.0]]])], outcome=outcome[:, np.newaxis, np.newaxis]
    )
    expected = np.linalg.lstsq(np.column_stack([X, codes]), outcome, rcond=None)[0]
    assert regression.solve(np.eye(2)[codes]).ravel() == pytest.approx(expected, abs=1e-9)
    half = regression.take(np.arange(ROWS) < 200)
    assert [one.shape for one in half.explanatory] == [(200, 1, 3), (1, 2, 1)]
    assert half.outcome.shape == (200, 1, 1)


def test_the_curvature_is_the_derivative_of_the_scores() -> None:
    regression, weights = label_as_outcome(TRUTH, "multinomial")
    at, step = np.full(regression.shape, 0.1), 1e-6
    found = regression.sums(at, weights).curvature
    for place in range(at.size):
        moved = at + step * np.eye(at.size)[place].reshape(at.shape)
        change = (regression.scores(moved, weights) - regression.scores(at, weights)).sum(axis=0) / step
        assert -change == pytest.approx(found[:, place], abs=1e-5)


def test_columns_that_tell_the_outcome_perfectly_are_refused() -> None:
    separated = (X[:, 1] > 0).astype(int)
    regression, weights = label_as_outcome(separated, "logistic")
    with pytest.raises(UndefinedMetric, match=r"tells the outcome perfectly \(separation\): leave that column out"):
        regression.solve(weights)


def test_collinear_columns_are_refused() -> None:
    regression, weights = label_as_outcome(TRUTH, "linear")
    twice = [*regression.explanatory, X[:, np.newaxis, 1:2]]
    with pytest.raises(UndefinedMetric, match="collinear"):
        LabelRegression(explanatory=twice, outcome=regression.outcome).solve(weights)


def test_a_regression_that_does_not_settle_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_STEPS", 1)
    regression, weights = label_as_outcome(TRUTH, "logistic")
    with pytest.raises(UndefinedMetric, match="has no solution"):
        regression.solve(weights)


def test_rows_that_are_alike_are_computed_as_one() -> None:
    values = np.eye(3)[np.newaxis, :, [1]]
    weights = np.eye(3)[TRUTH] / ROWS
    one, many = (LabelRegression(explanatory=[np.ones((rows, 1, 1))], outcome=values) for rows in (1, ROWS))
    assert one.solve(weights) == pytest.approx(many.solve(weights))
    assert one.scores(np.zeros((1, 1)), weights) == pytest.approx(many.scores(np.zeros((1, 1)), weights))


def test_parts_of_the_rows_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    regression, weights = label_as_outcome(TRUTH, "multinomial")
    at = np.full(regression.shape, 0.1)
    together = regression.sums(at, weights)
    monkeypatch.setattr(module, "PART", 150)
    assert regression.sums(at, weights).curvature == pytest.approx(together.curvature)
    assert regression.sums(at, weights).scores == pytest.approx(together.scores)
