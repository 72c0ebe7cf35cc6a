"""Resamples, and intervals made from them."""

from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binomtest

from pcs_annotator.base.errors import UndefinedMetric
from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.core.weights import Interval
from pcs_annotator.judging.metrics import significance
from pcs_annotator.judging.metrics.figures import auroc, auroc_on
from pcs_annotator.judging.metrics.significance import (
    BootstrapTest,
    average_relative_improvement,
    bootstrap_test,
    false_discovery_rate,
    holm,
    interval_around,
    least_auroc,
    least_share,
    mcnemar,
    resample_counts,
    rows_to_tell,
    stars,
)
from tests.judging.metrics.alone import accuracy


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


def rows(count: int, seed: int = 0) -> tuple[Floats, Codes]:
    rng = np.random.default_rng(seed)
    gold = rng.integers(3, size=count)
    return rng.dirichlet(np.ones(3), count) * 0.6 + 0.4 * np.eye(3)[gold], gold.astype(np.int8)


def interval_of(
    metric: Callable[[Floats, Codes], float], scores: Floats, gold: Codes, resamples: int = 1000, seed: int = 0
) -> Interval:
    """Return the interval of a figure from resamples that have two classes."""
    rng, values = np.random.default_rng(seed), list[float]()
    while len(values) < resamples:
        drawn = rng.integers(len(gold), size=len(gold))
        with suppress(UndefinedMetric):
            values.append(metric(scores[drawn], gold[drawn]))
    least = min(least_share(len(gold)), least_auroc(gold))  # the figure may rank rows or count them
    return interval_around(metric(scores, gold), np.array(values), least)


def test_interval_has_about_the_width_of_theory() -> None:
    rng = np.random.default_rng(0)
    gold = np.zeros(400, dtype=np.int8)
    scores = np.where(rng.random((400, 1)) < 0.8, [[1.0, 0.0]], [[0.0, 1.0]])
    low, high = interval_of(accuracy, scores, gold)
    assert high - low == pytest.approx(2 * 1.96 * np.sqrt(0.8 * 0.2 / 400), rel=0.15)


@pytest.mark.parametrize("resamples", [0, -1])
def test_no_resamples_give_no_interval(resamples: int) -> None:
    with pytest.raises(UndefinedMetric, match=f"at least one resample, not {resamples}"):
        next(resample_counts(np.array([0, 1], dtype=np.int8), resamples, seed=0))


def test_resamples_draw_as_many_rows_and_two_classes() -> None:
    gold = np.array([0, 0, 0, 1], dtype=np.int8)
    counts = np.concatenate(list(resample_counts(gold, 500, seed=3)), axis=1)
    assert counts.shape == (4, 500)
    assert (counts.sum(axis=0) == 4).all()
    assert ((counts[3] > 0) & (counts[3] < 4)).all()
    assert counts.mean(axis=1) == pytest.approx([0.83, 0.83, 0.83, 1.5], abs=0.2)


def test_resamples_come_in_parts_that_fit_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(significance, "CHUNK", 40)
    gold = np.tile(np.array([0, 1], dtype=np.int8), 5)
    parts = list(resample_counts(gold, 10, seed=0))
    assert [part.shape for part in parts[:2]] == [(10, 4), (10, 4)]
    assert sum(part.shape[1] for part in parts) == 10


def test_one_class_cannot_be_resampled() -> None:
    with pytest.raises(UndefinedMetric, match="5 rows are too few"):
        list(resample_counts(np.zeros(5, dtype=np.int8), 10, seed=0))


def test_no_interval_is_narrower_than_that_of_a_perfect_figure() -> None:
    assert interval_around(1.0, np.ones(10), 0.7) == (0.7, 1)
    assert interval_around(0.0, np.zeros(10), 0.7) == pytest.approx((0, 0.3))
    nearly = np.array([0.97, *[0.99] * 98, 1.0])
    assert interval_around(0.99, nearly, 0.7).low == 0.7


@pytest.mark.parametrize(("positive", "negative"), [(1, 1), (5, 5), (2, 30), (30, 30)])
def test_a_perfect_auroc_is_as_rare_at_its_lower_end_as_claimed(positive: int, negative: int) -> None:
    """Draws from Hanley and McNeil's model: the larger of θ normal scores, here by its distribution function."""
    gold = np.repeat([1, 0], [positive, negative]).astype(np.int8)
    low = least_auroc(gold)
    theta = low / (1 - low)
    rng = np.random.default_rng(0)
    shares = []
    for raised in (gold == 1, gold == 0):
        draws = rng.random((20_000, len(gold)))
        draws[:, raised] **= 1 / theta
        shares.append(np.mean(draws[:, raised].min(axis=1) > draws[:, ~raised].max(axis=1)))
    assert max(shares) == pytest.approx(0.025, abs=0.004)


def test_one_class_has_no_auroc_to_bound() -> None:
    assert least_auroc(np.zeros(5, dtype=np.int8)) == 1


@pytest.mark.slow
def test_intervals_cover_the_true_auroc_as_often_as_claimed() -> None:
    """Two normal curves one standard deviation apart have an AUROC of Φ(1/√2)."""
    true = float(ndtr(1 / np.sqrt(2)))
    rng = np.random.default_rng(0)
    covered = []
    for seed in range(600):
        gold = np.repeat([0, 1], 60).astype(np.int8)
        logits = rng.normal(size=120) + gold
        scores = np.stack([-logits, logits], axis=1)
        [counts] = resample_counts(gold, 400, seed)
        low, high = interval_around(auroc(scores, gold), auroc_on(scores, gold, counts), least_auroc(gold))
        covered.append(low <= true <= high)
    assert np.mean(covered) == pytest.approx(0.95, abs=0.02)
