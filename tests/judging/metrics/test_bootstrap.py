"""Bootstrap estimates of `metrics.py`."""

from __future__ import annotations

import numpy as np
import pytest

from pcs_annotator.core.arrays import Codes, Floats, Integers
from pcs_annotator.errors import UndefinedMetric
from pcs_annotator.judging.metrics.metrics import METRICS, accuracy, auroc, bootstrap_estimate, resampled


def rows(count: int, seed: int = 0) -> tuple[Floats, Codes]:
    rng = np.random.default_rng(seed)
    gold = rng.integers(3, size=count)
    return rng.dirichlet(np.ones(3), count) * 0.6 + 0.4 * np.eye(3)[gold], gold.astype(np.int8)


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("count", [6, 60])
def test_interval_contains_the_figure(name: str, count: int) -> None:
    for seed in range(5):
        scores, gold = rows(count, seed)
        found = bootstrap_estimate(METRICS[name], scores, gold, resamples=100, seed=seed)
        assert found.value == METRICS[name](scores, gold)
        assert 0 <= found.interval.low <= found.value <= found.interval.high
        assert found.n == count


def test_interval_has_about_the_width_of_theory() -> None:
    rng = np.random.default_rng(0)
    gold = np.zeros(400, dtype=np.int8)
    scores = np.where(rng.random((400, 1)) < 0.8, [[1.0, 0.0]], [[0.0, 1.0]])
    low, high = bootstrap_estimate(accuracy, scores, gold).interval
    assert high - low == pytest.approx(2 * 1.96 * np.sqrt(0.8 * 0.2 / 400), rel=0.15)


def test_higher_level_is_wider() -> None:
    narrow, wide = (
        bootstrap_estimate(accuracy, *rows(50), resamples=200, level=level).interval for level in (0.5, 0.99)
    )
    assert wide.low < narrow.low < narrow.high < wide.high


def test_interval_does_not_leave_what_the_figure_can_be() -> None:
    gold = np.array([0, 1] * 5, dtype=np.int8)
    assert bootstrap_estimate(accuracy, np.eye(2)[gold], gold, resamples=50).interval == (1, 1)
    wrong = np.eye(2)[1 - gold]
    assert bootstrap_estimate(accuracy, wrong, gold, resamples=50).interval == (0, 0)


def test_seed_fixes_the_interval() -> None:
    first, again, other = (bootstrap_estimate(auroc, *rows(40), resamples=50, seed=seed) for seed in (1, 1, 2))
    assert first == again != other


def test_draws_without_a_figure_are_drawn_again() -> None:
    # of two rows, half of all draws have a single class
    gold = np.array([0, 1], dtype=np.int8)
    found = bootstrap_estimate(auroc, np.eye(2)[gold], gold, resamples=100)
    assert found.interval == (1, 1)


def test_gives_up_where_hardly_any_draw_has_a_figure() -> None:
    calls = []

    def undefined(drawn: Integers) -> float:
        calls.append(drawn)
        raise UndefinedMetric("never")

    with pytest.raises(UndefinedMetric, match="4 rows are too few for a bootstrap interval: label more rows"):
        resampled(undefined, 4, 10, seed=0)
    assert len(calls) == 100


def test_draws_have_as_many_rows_as_there_are() -> None:
    sizes = resampled(lambda drawn: float(len(drawn)) if drawn.max() < 7 else -1.0, 7, 20, seed=0)
    assert sizes == [7.0] * 20


def test_no_resamples_give_no_interval() -> None:
    with pytest.raises(UndefinedMetric, match="at least one resample"):
        bootstrap_estimate(accuracy, *rows(10), resamples=0)
