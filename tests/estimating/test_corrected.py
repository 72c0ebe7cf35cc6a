"""Corrected estimates: against ppi-python, against full data, and coverage in simulated studies."""

import os

import numpy as np
import pytest
from numpy.typing import NDArray

from pcs_annotator.estimating.corrected import LabelRegression, Link, Study
from pcs_annotator.estimating.sampling import Sample

SHARE_OF_SECOND = np.array([[[0.0], [1.0]]])


def made(rows: int, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.intp], NDArray[np.float64]]:
    """Return explanatory columns, true labels and the machine's probabilities, which are biased."""
    rng = np.random.default_rng(seed)
    columns = np.column_stack([np.ones(rows), rng.normal(size=(rows, 2))])
    chance = 1 / (1 + np.exp(-columns @ [0.2, 0.5, -1.0]))
    truth = (rng.random(rows) < chance).astype(np.intp)
    machine = np.clip(0.1 + 0.6 * truth + rng.normal(0, 0.15, rows), 0.01, 0.99)
    return columns, truth, np.column_stack([1 - machine, machine])


def outcome_of(columns: NDArray[np.float64], link: Link = "linear") -> LabelRegression:
    return LabelRegression(explanatory=[columns[:, np.newaxis]], outcome=SHARE_OF_SECOND, link=link)


def study_of(truth: NDArray[np.intp], expected: NDArray[np.float64], rows: NDArray[np.intp], **how: object) -> Study:
    sample = Sample.simple(rows, truth[rows].astype(np.int8), len(truth))
    return Study(expected, expected[rows], sample, **how)  # type: ignore[arg-type]


def test_gold_rows_leave_less_error_only_where_the_rows_are_all_there_are() -> None:
    _, truth, expected = made(500)
    rows = np.arange(100)
    assert study_of(truth, expected, rows, whole=False).left == pytest.approx(np.ones(100))
    assert study_of(truth, expected, rows, whole=True).left == pytest.approx(np.full(100, 0.8))


@pytest.mark.filterwarnings("ignore::FutureWarning")  # the reference calls scikit-learn in an old way
@pytest.mark.parametrize("name", ["mean", "linear", "logistic"])
def test_estimates_agree_with_ppi_python(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "NUMBA_DISABLE_JIT", "1")  # compiling takes longer than computing
    import ppi_py as ppi

    columns, truth, expected = made(500)
    here, gold = slice(0, 400), slice(400, None)
    used = columns[:, :1] if name == "mean" else columns
    y, f = truth.astype(float), expected[:, 1]
    rows = np.arange(400, 500)
    sample = Sample(
        rows=rows,
        truth=truth[rows].astype(np.int8),
        probability=np.full(100, 1e-12),
        stratum=np.zeros(100, dtype=np.intp),
        round=np.zeros(100, dtype=np.intp),
    )
    study = Study(expected, expected[rows], sample, apart=True)
    regression = outcome_of(used, "logistic" if name == "logistic" else "linear")
    for tuning in (None, 0.6, 1.0):
        found = study.corrected(regression, tuning)
        errors = np.sqrt(np.diag(found.covariance))
        if name == "mean":
            point = ppi.ppi_mean_pointestimate(y[gold], f[gold], f[here], lam=tuning)
            ends = ppi.ppi_mean_ci(y[gold], f[gold], f[here], alpha=0.05, lam=found.tuning)
            # its variances divide by n, ours by n - 1
            gold_part = np.var(y[gold] - found.tuning * f[gold], ddof=1) / 100
            rest = found.tuning**2 * np.var(f[here], ddof=1) / 400
            errors = np.array([np.sqrt(gold_part * 99 / 100 + rest * 399 / 400)])
            assert found.covariance.item() == pytest.approx(gold_part + rest, rel=1e-9)
        else:
            estimate, interval = (
                (ppi.ppi_ols_pointestimate, ppi.ppi_ols_ci)
                if name == "linear"
                else (ppi.ppi_logistic_pointestimate, ppi.ppi_logistic_ci)
            )
            arguments = (used[gold], y[gold], f[gold], used[here], f[here])
            point = estimate(*arguments, lam=tuning)
            ends = interval(*arguments, alpha=0.05, lam=found.tuning)
        assert found.value == pytest.approx(np.ravel(point), abs=1e-6)
        assert errors == pytest.approx((ends[1] - ends[0]) / 2 / 1.959963984540054, abs=1e-6)


def test_perfect_labels_leave_the_error_of_two_rows() -> None:
    """That no gold row shows an error does not mean that there is none."""
    columns, truth, _ = made(300)
    study = study_of(truth, np.eye(2)[truth], np.arange(60), whole=True)
    share = study.corrected(outcome_of(np.ones((300, 1))), 1.0)
    # one of the two is wrong, where none of 60 is, and 4/5 of all rows are not known
    assert share.covariance.item() == pytest.approx(1 / 60**2 * 0.8)
    for link in ("linear", "logistic"):
        found = study.corrected(outcome_of(columns, link), 1.0)
        everything = outcome_of(columns, link).solve(np.eye(2)[truth] / 300)
        assert found.value == pytest.approx(everything.ravel(), abs=1e-8)
        assert np.sqrt(np.diag(found.covariance)).max() < 0.12


def test_useless_labels_are_not_used() -> None:
    _, truth, _ = made(400)
    study = study_of(truth, np.full((400, 2), 0.5), np.arange(80), whole=True)
    found = study.corrected(outcome_of(np.ones((400, 1))))
    alone = study.gold_only(outcome_of(np.ones((400, 1))))
    assert found.tuning == 0.0
    assert found.value == pytest.approx(alone.value)
    assert found.value.item() == pytest.approx(truth[:80].mean())
    assert found.covariance == pytest.approx(alone.covariance)


def test_the_naive_estimate_counts_the_most_probable_labels() -> None:
    _, truth, expected = made(400)
    found = study_of(truth, expected, np.arange(80)).naive(outcome_of(np.ones((400, 1))))
    assert found.value.item() == pytest.approx((expected[:, 1] > 0.5).mean())


def test_a_difference_is_a_contrast() -> None:
    columns, truth, expected = made(400)
    groups = np.column_stack([columns[:, 1] > 0, columns[:, 1] <= 0]).astype(float)
    found = study_of(truth, expected, np.arange(120), whole=True).corrected(outcome_of(groups))
    difference = found.contrast(np.array([[1.0, -1.0]]))
    assert difference.value.item() == pytest.approx(found.value[0] - found.value[1])
    expected_error = found.covariance[0, 0] + found.covariance[1, 1] - 2 * found.covariance[0, 1]
    assert difference.covariance.item() == pytest.approx(expected_error)


def test_errors_in_common_widen_the_interval() -> None:
    """If every row is there five times, clusters of five have the error of one row each."""
    columns, truth, expected = made(200)
    every = np.repeat(np.arange(200), 5)
    copies = columns[every], truth[every], expected[every]
    rows = np.arange(0, 200)
    single = study_of(truth, expected, np.arange(40), clusters=np.arange(200)).corrected(outcome_of(columns), 1.0)
    together = study_of(copies[1], copies[2], rows, clusters=np.repeat(np.arange(200), 5))
    found = together.corrected(outcome_of(copies[0]), 1.0)
    assert found.covariance == pytest.approx(single.covariance, rel=1e-9)
    apart = study_of(copies[1], copies[2], rows).corrected(outcome_of(copies[0]), 1.0)
    assert np.diag(apart.covariance) == pytest.approx(np.diag(found.covariance) / 5, rel=0.5)


def test_a_label_that_explains_is_corrected() -> None:
    rng = np.random.default_rng(5)
    _, truth, expected = made(4000, seed=5)
    outcome = 1.0 + 2.0 * truth + rng.normal(size=4000)
    values = np.concatenate([np.ones((4000, 2, 1)), np.broadcast_to(SHARE_OF_SECOND, (4000, 2, 1))], axis=2)
    regression = LabelRegression(explanatory=[values], outcome=outcome[:, np.newaxis, np.newaxis])
    study = study_of(truth, expected, np.arange(400))
    corrected, alone, naive = study.corrected(regression), study.gold_only(regression), study.naive(regression)
    assert corrected.covariance[1, 1] < alone.covariance[1, 1]
    assert abs(corrected.value[1] - 2.0) < 3 * np.sqrt(corrected.covariance[1, 1])
    assert naive.value[1] < 1.9


@pytest.mark.system
@pytest.mark.parametrize("larger", [False, True])
def test_intervals_hold_the_truth_as_often_as_they_say(larger: bool) -> None:
    """Against all rows, or against the source that they are a sample of."""
    from scipy.stats import t as student

    held = {"corrected": 0, "naive": 0}
    studies, rows = 200, 600
    for seed in range(studies):
        _, truth, expected = made(rows, seed)
        gold = np.random.default_rng(seed).choice(rows, 100, replace=False)
        study = study_of(truth, expected, gold, whole=not larger)
        aim = 0.5329 if larger else truth.mean()
        for name in held:
            one = getattr(study, name)(outcome_of(np.ones((rows, 1))))
            reach = student.ppf(0.975, one.freedom) * np.sqrt(one.covariance.item())
            held[name] += abs(one.value.item() - aim) <= reach
    assert 0.91 <= held["corrected"] / studies <= 0.985
    assert held["naive"] / studies < 0.8


def test_with_one_tuning_for_all_labels_their_shares_add_up_to_one() -> None:
    columns, truth, expected = made(500)
    study = study_of(truth, expected, np.arange(100))
    second = outcome_of(columns[:, :1])
    first = LabelRegression(explanatory=second.explanatory, outcome=1 - SHARE_OF_SECOND)
    tuning = study.joint_tuning([first, second])
    assert 0 < tuning <= 1
    assert sum(study.corrected(one, tuning).value.item() for one in (first, second)) == pytest.approx(1)
    same = study_of(truth, np.full((500, 2), 0.5), np.arange(100))
    assert same.joint_tuning([first, second]) == 0  # machine labels that are all alike tell nothing
