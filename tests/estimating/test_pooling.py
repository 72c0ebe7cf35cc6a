import numpy as np
import pytest

from pcs_annotator.estimating.confusion import LEVELS, calibrated, levels
from pcs_annotator.estimating.pooling import NORMAL, _critical, pooled


def test_without_bias_the_interval_is_the_usual_one_and_grows_with_bias() -> None:
    assert _critical(0.0) == pytest.approx(NORMAL)
    found = [_critical(bias) for bias in (0.1, 1.0, 4.0)]
    assert found == pytest.approx([2.0645, 3.2587, 7.2151], abs=0.001)


def test_the_worst_distribution_of_biases_is_covered() -> None:
    """All biases alike, or half of them none and the others larger, with the same mean square."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=200_000)
    for share in (1.0, 0.5, 0.1):
        bias = np.where(rng.random(len(noise)) < share, 1 / np.sqrt(share), 0.0)
        assert (np.abs(noise + bias) <= _critical(1.0)).mean() >= 0.949


def test_groups_that_are_alike_are_pooled_and_others_left_alone() -> None:
    rows = np.full(20, 10.0)
    rng = np.random.default_rng(1)
    alike = 0.3 + rng.normal(0, 0.1, 20)
    means, reach = pooled(alike, np.full(20, 0.01), rows)
    assert np.abs(means - alike.mean()).max() < 0.4 * np.abs(alike - alike.mean()).max()
    assert reach.max() < NORMAL * 0.1
    apart = np.linspace(0, 1, 20)
    means, reach = pooled(apart, np.full(20, 1e-4), rows)
    assert means == pytest.approx(apart, abs=0.01)
    assert reach == pytest.approx(np.full(20, NORMAL * 0.01), rel=0.02)
    assert pooled(apart, np.zeros(20), rows)[1] == pytest.approx(np.zeros(20), abs=1e-9)


def test_gold_rows_are_judged_by_others() -> None:
    said, truth = np.repeat([0, 1], 30), np.repeat([0, 1], 30)
    rows = np.arange(60)
    expected, held_out = calibrated([said], rows, truth, 3)
    assert expected.sum(axis=1) == pytest.approx(np.ones(60))
    assert 0.95 < expected[0, 0] < 1
    assert expected[0, 2] > 0  # a label that nobody has seen may exist
    # a row alone with its label says nothing about itself
    truth = truth.copy()
    truth[7] = 2
    expected, held_out = calibrated([said], rows, truth, 3)
    assert held_out[7, 2] < 0.02 < expected[7, 2]


def test_levels_are_parts_of_equal_size_and_rows_without_confidence_another() -> None:
    found = levels(np.array([*np.arange(50.0), np.nan]))
    assert np.bincount(found).tolist() == [11, 10, 10, 9, 10, 1] or np.bincount(found)[:LEVELS].min() >= 9
    assert found[-1] == LEVELS
