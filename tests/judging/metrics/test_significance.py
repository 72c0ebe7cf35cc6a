from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from pcs_annotator.base.errors import UndefinedMetric
from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.core.weights import Interval
from pcs_annotator.judging.metrics.figures import auroc, auroc_on
from pcs_annotator.judging.metrics.significance import (
    BootstrapTest,
    average_relative_improvement,
    bootstrap_test,
    false_discovery_rate,
    holm,
    mcnemar,
    resample_counts,
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


@pytest.mark.parametrize(
    ("theirs", "ours", "improvement"),
    [
        (  # one model on three sets: zero-shot and PCS
            [0.68, 0.70, 0.85, 0.54, 0.62, 0.72, 0.88, 0.73, 0.85],
            [0.82, 0.70, 0.87, 0.62, 0.72, 0.80, 0.88, 0.86, 0.86],
            0.093,
        ),
        (  # several models: majority vote and PCS
            [0.87, 0.76, 0.85, 0.86, 0.75, 0.59, 0.67, 0.69, 0.86, 0.88, 0.85, 0.88],
            [0.87, 0.80, 0.88, 0.87, 0.81, 0.70, 0.72, 0.75, 0.91, 0.91, 0.89, 0.91],
            0.058,
        ),
    ],
)
def test_the_papers_tables_give_the_papers_improvement(
    theirs: list[float], ours: list[float], improvement: float
) -> None:
    assert average_relative_improvement(ours, theirs) == pytest.approx(improvement, abs=0.0005)


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


def auroc_test(ours: Floats, theirs: Floats, gold: Codes, resamples: int) -> BootstrapTest:
    drawn = resample_counts(gold, resamples, seed=0)
    differences = np.concatenate([auroc_on(ours, gold, one) - auroc_on(theirs, gold, one) for one in drawn])
    return bootstrap_test(auroc(ours, gold) - auroc(theirs, gold), float(differences.std()), len(gold))


def test_paired_bootstrap_of_a_method_with_itself_finds_nothing() -> None:
    ours, _, gold = noisy_rows(40, 2, seed=0)
    found = auroc_test(ours, ours, gold, 50)
    assert (found.difference, found.p_value) == (0, 1)
    # 40 rows without a difference leave room for one
    assert found.interval == pytest.approx((-0.088, 0.088), abs=0.001)


@pytest.mark.parametrize("widening", [1.0, 1.2])
def test_a_p_value_is_below_5_percent_just_where_the_interval_excludes_0(widening: float) -> None:
    for difference in np.linspace(-4, 4, 81):
        found = bootstrap_test(difference, 1.0, 30, widening)
        assert (found.p_value < 0.05) is not (found.interval.low <= 0 <= found.interval.high)
        high = difference + 2.045 * widening
        assert found.interval.high == pytest.approx(high, abs=0.001)


@pytest.mark.parametrize(("spread", "error"), [(1e-6, 0.0075), (0.002, 0.0075), (0.01, 0.012)])
def test_methods_that_hardly_differ_on_these_rows_have_no_tiny_standard_error(spread: float, error: float) -> None:
    found = bootstrap_test(0.012, spread, 100, widening=1.2)
    assert found.interval.high - found.difference == pytest.approx(1.984 * error, rel=1e-3)
    assert found.p_value > 0.05


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
