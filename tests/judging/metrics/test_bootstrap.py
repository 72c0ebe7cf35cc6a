"""Resamples, and intervals made from them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pytest
from scipy.special import ndtr

from pcs_annotator.base.errors import UndefinedMetric
from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.core.weights import Interval
from pcs_annotator.judging.metrics import significance
from pcs_annotator.judging.metrics.figures import auroc, auroc_on
from pcs_annotator.judging.metrics.significance import interval_around, least_auroc, least_share, resample_counts
from tests.judging.metrics.alone import accuracy


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


def test_interval_stays_in_the_range_of_the_figure() -> None:
    gold = np.array([0, 1] * 5, dtype=np.int8)
    assert interval_of(accuracy, np.eye(2)[gold], gold, resamples=50).high == 1
    wrong = np.eye(2)[1 - gold]
    assert interval_of(accuracy, wrong, gold, resamples=50).low == 0


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


def test_interval_lies_around_the_figure() -> None:
    resampled = np.random.default_rng(0).normal(0.3, 0.1, size=5000)
    assert interval_around(0.25, resampled, 0.9) == pytest.approx((0.25 - 0.196, 0.25 + 0.196), abs=0.01)
    assert interval_around(0.25, resampled, 0.9, 1.1) == pytest.approx((0.25 - 0.216, 0.25 + 0.216), abs=0.01)


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
