from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import binomtest, norm, ttest_rel

from pcs_annotator.base.errors import UndefinedMetric
from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.core.weights import Interval
from pcs_annotator.judging.metrics.bootstrap import resample_counts
from pcs_annotator.judging.metrics.metrics import auroc, auroc_on
from pcs_annotator.judging.metrics.significance import (
    BootstrapTest,
    Difference,
    average_relative_improvement,
    bootstrap_test,
    delong,
    false_discovery_rate,
    holm,
    influence,
    mcnemar,
    mean_difference_test,
    paired_t_test,
    ratio_bound,
    rows_to_tell,
    stars,
)


def noisy_rows(rows: int, labels: int, seed: int, noise: float = 1.0) -> tuple[Floats, Floats, Codes]:
    """Scores of two methods that err together, the second more, rounded so that some tie; and gold."""
    rng = np.random.default_rng(seed)
    gold = rng.integers(labels, size=rows)
    shared = rng.normal(size=(rows, labels))
    ours = np.eye(labels)[gold] + noise * (0.6 * shared + 0.4 * rng.normal(size=(rows, labels)))
    theirs = np.eye(labels)[gold] + noise * (0.6 * shared + 0.8 * rng.normal(size=(rows, labels)))
    return ours.round(1), theirs.round(1), gold.astype(np.int8)


@pytest.mark.parametrize("seed", range(5))
def test_paired_t_test_equals_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ours, theirs = rng.random(9), rng.random(9)
    found, reference = paired_t_test(ours.tolist(), theirs.tolist()), ttest_rel(ours, theirs)
    assert found.statistic == pytest.approx(reference.statistic)
    assert found.p_value == pytest.approx(reference.pvalue)
    assert found.difference == pytest.approx(np.mean(ours - theirs))
    assert found.n == 9


@pytest.mark.parametrize(
    ("theirs", "ours", "improvement", "p_value"),
    [
        (  # one model on three sets: zero-shot and PCS
            [0.68, 0.70, 0.85, 0.54, 0.62, 0.72, 0.88, 0.73, 0.85],
            [0.82, 0.70, 0.87, 0.62, 0.72, 0.80, 0.88, 0.86, 0.86],
            0.093,
            0.010,
        ),
        (  # several models: majority vote and PCS
            [0.87, 0.76, 0.85, 0.86, 0.75, 0.59, 0.67, 0.69, 0.86, 0.88, 0.85, 0.88],
            [0.87, 0.80, 0.88, 0.87, 0.81, 0.70, 0.72, 0.75, 0.91, 0.91, 0.89, 0.91],
            0.058,
            0.000,
        ),
    ],
)
def test_the_papers_tables_give_the_papers_improvement_and_p_value(
    theirs: list[float], ours: list[float], improvement: float, p_value: float
) -> None:
    assert average_relative_improvement(ours, theirs) == pytest.approx(improvement, abs=0.0005)
    assert paired_t_test(ours, theirs).p_value == pytest.approx(p_value, abs=0.0005)


def test_equal_figures_are_no_difference() -> None:
    assert paired_t_test([0.7, 0.8, 0.9], [0.7, 0.8, 0.9]) == (0, 0, 1, 3)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_difference_that_never_varies_is_certain(sign: int) -> None:
    # .8 − .7 and .4 − .3 differ in the last bit
    found = paired_t_test([0.8 * sign, 0.4 * sign, 0.6 * sign], [0.7 * sign, 0.3 * sign, 0.5 * sign])
    assert (found.statistic, found.p_value) == (np.inf * sign, 0)
    assert found.difference == pytest.approx(0.1 * sign)


def test_a_single_pair_cannot_be_tested() -> None:
    with pytest.raises(UndefinedMetric, match="two pairs, got 1"):
        paired_t_test([0.8], [0.7])


@pytest.mark.parametrize("test", [paired_t_test, average_relative_improvement])
def test_figures_come_in_pairs(test: Callable[[list[float], list[float]], object]) -> None:
    with pytest.raises(UndefinedMetric, match="3 figures against 2"):
        test([0.8, 0.7, 0.6], [0.7, 0.8])


def test_relative_improvement_by_hand() -> None:
    assert average_relative_improvement([0.6, 0.9], [0.5, 1.0]) == pytest.approx((0.2 - 0.1) / 2)


@pytest.mark.parametrize(("ours", "theirs"), [([0.5], [0.0]), ([0.5], [-1.0]), ([], [])])
def test_relative_improvement_over_nothing_is_undefined(ours: list[float], theirs: list[float]) -> None:
    with pytest.raises(UndefinedMetric, match="relative improvement"):
        average_relative_improvement(ours, theirs)


@pytest.mark.parametrize(
    ("p_value", "marks"),
    [(0.0, "***"), (0.00099, "***"), (0.001, "**"), (0.0099, "**"), (0.01, "*"), (0.05, "n.s."), (1.0, "n.s.")],
)
def test_stars_of_the_paper(p_value: float, marks: str) -> None:
    assert stars(p_value) == marks


def test_holm_by_hand() -> None:
    # sorted .01 .02 .03 .04 times 4 3 2 1 is .04 .06 .06 .04, never falling
    assert holm([0.03, 0.01, 0.04, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])


def test_false_discoveries_by_hand() -> None:
    assert false_discovery_rate([0.01, 0.04, 0.03, 0.5]) == pytest.approx([0.04, 0.16 / 3, 0.16 / 3, 0.5])
    assert false_discovery_rate([0.9, 0.6]) == [0.9, 0.9]
    assert false_discovery_rate([]) == []


def test_holm_stays_a_probability_and_keeps_a_family_of_one() -> None:
    assert holm([0.9, 0.6]) == [1, 1]
    assert holm([0.03]) == [0.03]
    assert holm([]) == []


def auroc_test(ours: Floats, theirs: Floats, gold: Codes, resamples: int) -> BootstrapTest:
    drawn = resample_counts(gold, resamples, seed=0)
    differences = np.concatenate([auroc_on(ours, gold, one) - auroc_on(theirs, gold, one) for one in drawn])
    return bootstrap_test(auroc(ours, gold) - auroc(theirs, gold), differences, len(gold))


def test_paired_bootstrap_sees_a_clear_difference() -> None:
    ours, theirs, gold = noisy_rows(150, 3, seed=0, noise=1.5)
    found = auroc_test(ours, theirs, gold, 200)
    assert found.difference == auroc(ours, gold) - auroc(theirs, gold)
    assert 0 < found.interval.low < found.difference < found.interval.high
    assert found.p_value < 0.01
    assert found.n == 150
    turned = auroc_test(theirs, ours, gold, 200)
    assert turned.interval == pytest.approx((-found.interval.high, -found.interval.low))
    assert turned.p_value == found.p_value


def test_paired_bootstrap_of_a_method_with_itself_finds_nothing() -> None:
    ours, _, gold = noisy_rows(40, 2, seed=0)
    found = auroc_test(ours, ours, gold, 50)
    assert (found.difference, found.p_value) == (0, 1)
    # 40 rows without a difference leave room for one
    assert found.interval == pytest.approx((-0.088, 0.088), abs=0.001)


@pytest.mark.parametrize("widening", [1.0, 1.2])
def test_a_p_value_is_below_5_percent_just_where_the_interval_excludes_0(widening: float) -> None:
    resampled = np.random.default_rng(0).normal(size=300)
    for difference in np.linspace(-4, 4, 81):
        found = bootstrap_test(difference, resampled, 30, widening)
        assert (found.p_value < 0.05) is not (found.interval.low <= 0 <= found.interval.high)
        high = difference + 2.045 * widening * resampled.std()
        assert found.interval.high == pytest.approx(high, abs=0.001)


@pytest.mark.parametrize(("spread", "error"), [(1e-6, 0.0075), (0.002, 0.0075), (0.01, 0.012)])
def test_methods_that_hardly_differ_on_these_rows_have_no_tiny_standard_error(spread: float, error: float) -> None:
    found = bootstrap_test(0.012, np.array([0.012 - spread, 0.012 + spread]), 100, widening=1.2)
    assert found.interval.high - found.difference == pytest.approx(1.984 * error, rel=1e-3)
    assert found.p_value > 0.05


def test_few_resamples_can_still_show_a_clear_difference_among_many_methods() -> None:
    found = bootstrap_test(0.2, np.random.default_rng(0).normal(0.2, 0.03, size=50), 100)
    assert max(holm([found.p_value] * 12)) < 0.05


def brute_force_delong(ours: Floats, theirs: Floats, positive: Floats) -> tuple[float, float]:
    """Difference and variance straight from the definition: all pairs, both structural components."""

    def pairs(scores: Floats) -> Floats:
        gap = scores[positive == 1][:, np.newaxis] - scores[positive == 0]
        return np.asarray((gap > 0) + (gap == 0) / 2)

    wins = [pairs(ours), pairs(theirs)]
    v10, v01 = np.array([w.mean(axis=1) for w in wins]), np.array([w.mean(axis=0) for w in wins])
    covariance = np.cov(v10) / v10.shape[1] + np.cov(v01) / v01.shape[1]
    contrast = np.array([1.0, -1.0])
    return wins[0].mean() - wins[1].mean(), float(contrast @ covariance @ contrast)


@pytest.mark.parametrize("seed", range(5))
def test_delong_equals_its_definition_for_two_labels(seed: int) -> None:
    ours, theirs, gold = noisy_rows(40, 2, seed)
    first, second = (np.column_stack([1 - s[:, 1], s[:, 1]]) for s in (ours, theirs))
    found = delong(first, second, gold)
    difference, variance = brute_force_delong(ours[:, 1], theirs[:, 1], (gold == 1).astype(np.float64))
    assert found.difference == pytest.approx(difference, abs=1e-12)
    assert found.statistic == pytest.approx(difference / np.sqrt(variance))
    assert found.p_value == pytest.approx(2 * norm.sf(abs(found.statistic)))
    assert found.difference == pytest.approx(auroc(first, gold) - auroc(second, gold), abs=1e-12)


# Albumin, total protein and K-G score (where less is better) of DeLong et al.'s own 43 patients with all three tests.
HELPED = """
    4.5/7.4/5 4.3/7.0/5 4.3/7.0/4 4.3/6.5/4 4.2/7.7/6 4.1/8.2/6 4.1/6.6/5 4.0/7.0/7 3.9/6.8/3 3.8/6.8/7 3.8/6.6/6
    3.8/5.7/5 3.7/7.4/5 3.7/6.9/5 3.7/6.7/6 3.7/6.1/5 3.6/6.6/5 3.6/5.7/5 3.5/6.2/5 3.5/5.8/6 3.3/6.3/7 3.3/5.7/6
    3.2/6.3/5 3.2/5.8/3 3.2/5.4/4 3.2/5.1/5 3.1/6.6/6 2.6/4.7/6 2.3/4.4/6 2.1/4.8/7 1.6/5.6/5
"""
NOT_HELPED = """
    4.2/7.6/4 4.0/6.6/6 3.6/6.7/4 3.3/6.8/6 3.0/5.8/10 3.0/4.7/8 2.9/5.7/9 2.8/6.2/8 2.8/4.8/6 2.5/5.7/8 1.7/4.0/7
    0.9/4.0/5
"""


@pytest.mark.parametrize(
    ("test", "difference", "error", "chi_square", "p_value"),
    [("albumin", 0.0108, 0.0953, 0.0127, 0.9102), ("protein", -0.0780, 0.1046, 0.5554, 0.4561)],
)
def test_delong_finds_the_published_differences_from_the_k_g_score(
    test: str, difference: float, error: float, chi_square: float, p_value: float
) -> None:
    """Figures: SAS/STAT User's Guide, LOGISTIC procedure, comparing receiver operating characteristic curves."""
    patients = np.array([patient.split("/") for patient in (HELPED + NOT_HELPED).split()], dtype=np.float64)
    gold = np.repeat([1, 0], [len(HELPED.split()), len(NOT_HELPED.split())]).astype(np.int8)
    albumin, protein, k_g = patients.T * [[1], [1], [-1]]
    scored, reference = (np.column_stack([-s, s]) for s in ({"albumin": albumin, "protein": protein}[test], k_g))
    found = delong(scored, reference, gold)
    assert found.difference == pytest.approx(difference, abs=5e-5)
    assert found.difference / found.statistic == pytest.approx(error, abs=5e-5)
    assert found.statistic**2 == pytest.approx(chi_square, abs=5e-5)
    assert found.p_value == pytest.approx(p_value, abs=5e-5)


def difference(ours: Floats, theirs: Floats, gold: Codes, dataset: str = "one") -> Difference:
    value = auroc(ours, gold) - auroc(theirs, gold)
    return Difference(dataset, value, influence(ours, gold) - influence(theirs, gold), gold)


def overlapping(rng: np.random.Generator, dataset: str) -> list[Difference]:
    """Combinations of three models, each asked in two equally good ways."""
    gold = rng.integers(2, size=60).astype(np.int8)
    both = (np.eye(2)[gold] + rng.normal(size=(2, 3, 60, 2))).round(1)
    panels = [[0, 1], [0, 2], [1, 2], [0, 1, 2]]
    return [difference(both[0, panel].mean(axis=0), both[1, panel].mean(axis=0), gold, dataset) for panel in panels]


@pytest.mark.slow
def test_overlapping_combinations_are_significant_by_chance_no_more_often_than_stated() -> None:
    rng = np.random.default_rng(0)
    drawn = [[one for name in "abc" for one in overlapping(rng, name)] for _ in range(400)]
    ours = np.array([mean_difference_test(one).p_value for one in drawn])
    papers = np.array([paired_t_test([each.value for each in one], [0] * len(one)).p_value for one in drawn])
    assert 0.02 < np.mean(ours < 0.05) <= 0.07
    assert np.mean(papers < 0.05) > 0.2


def test_a_mean_over_datasets_adds_their_variances() -> None:
    parts = [difference(*noisy_rows(60 + 40 * seed, 2, seed), f"set {seed}") for seed in (0, 1)]
    errors = [one.difference / one.statistic for one in map(mean_difference_test, ([parts[0]], [parts[1]]))]
    found = mean_difference_test(parts)
    assert found.difference == pytest.approx((parts[0].value + parts[1].value) / 2)
    assert found.difference / found.statistic == pytest.approx(np.hypot(errors[0], errors[1]) / 2)
    assert found.n == 160


def test_widening_is_a_factor_on_the_standard_error() -> None:
    ours, theirs, gold = noisy_rows(60, 3, seed=0)
    plain, wide = delong(ours, theirs, gold), delong(ours, theirs, gold, 1.2)
    assert wide.difference == plain.difference
    assert wide.statistic == pytest.approx(plain.statistic / 1.2)
    assert wide.p_value > plain.p_value


def test_no_difference_cannot_be_tested() -> None:
    with pytest.raises(UndefinedMetric, match="at least one difference"):
        mean_difference_test([])


def test_delong_agrees_with_the_bootstrap_for_three_labels() -> None:
    ours, theirs, gold = noisy_rows(250, 3, seed=1, noise=1.5)
    found = delong(ours, theirs, gold)
    low, high = auroc_test(ours, theirs, gold, 600).interval
    assert found.difference / found.statistic == pytest.approx((high - low) / (2 * 1.96), rel=0.15)


def test_delong_of_a_method_with_itself_finds_nothing() -> None:
    ours, _, gold = noisy_rows(40, 3, seed=0)
    assert delong(ours, ours, gold) == (0, 0, 1, 40)


@pytest.mark.parametrize("sign", [1, -1])
def test_delong_is_certain_of_a_difference_that_cannot_vary(sign: int) -> None:
    gold = np.array([0, 0, 0, 1, 1, 1], dtype=np.int8)
    methods = [np.eye(2)[gold], np.full((6, 2), 0.5)][::sign]
    found = delong(methods[0], methods[1], gold)
    assert found == (0.5 * sign, np.inf * sign, 0, 6)


def test_delong_needs_two_rows_of_every_class() -> None:
    ours, theirs, _ = noisy_rows(5, 2, seed=0)
    with pytest.raises(UndefinedMetric, match="two rows of every class"):
        delong(ours, theirs, np.array([0, 0, 0, 0, 1], dtype=np.int8))


@pytest.mark.parametrize(("ours", "theirs"), [(0, 0), (0, 5), (3, 3), (5, 15), (40, 41), (200, 120)])
def test_mcnemars_exact_test_is_the_sign_test_on_rows_that_only_one_has_right(ours: int, theirs: int) -> None:
    expected = binomtest(ours, ours + theirs).pvalue if ours + theirs else 1.0
    assert mcnemar(ours, theirs) == pytest.approx(expected, abs=1e-12) == mcnemar(theirs, ours)


def test_rows_to_tell_a_difference_are_those_of_the_textbook() -> None:
    # a mean with standard error .02 on 100 rows: the standard deviation is .2, and n = (1.96 + 0.8416)² · .2² / .05²
    quantile = 1.9842169515086827
    test = BootstrapTest(0.01, Interval(0.01 - quantile * 0.02, 0.01 + quantile * 0.02), 0.6, 100)
    assert rows_to_tell(test, 0.05) == rows_to_tell(test, -0.05) == 126
    assert rows_to_tell(test, 0.025) == pytest.approx(4 * 125.6, abs=1)


@pytest.mark.parametrize(("rate", "level"), [(0.05, 0.1), (0.2, 0.05)])
def test_the_bound_of_a_likelihood_ratio_is_reached_as_often_as_the_level_says(rate: float, level: float) -> None:
    bound = ratio_bound(rate, 2 * rate, level)
    assert 0 < bound < -np.log(level)
    wrong = np.random.default_rng(1).random((4000, 2000)) < rate
    steps = np.where(wrong, np.log(2), np.log1p(-2 * rate) - np.log1p(-rate))
    assert (steps.cumsum(axis=1).max(axis=1) >= bound).mean() == pytest.approx(level, abs=0.015)
