from itertools import combinations

import numpy as np
import pytest

from pcs_annotator.estimating.sampling import Sample, allocate, by_confidence, draw_with

VALUES = np.array([1.0, 4.0, 2.0, 8.0, 5.0, 7.0])


def sample(rows: list[int], probability: float | np.ndarray, stratum: list[int], turn: list[int]) -> Sample:
    count = len(rows)
    return Sample(
        rows=np.array(rows),
        truth=np.zeros(count, dtype=np.int8),
        probability=np.broadcast_to(np.asarray(probability, dtype=float), count),
        stratum=np.array(stratum),
        round=np.array(turn),
    )


def test_the_error_of_a_simple_sample_is_right_on_average_over_all_samples() -> None:
    means, errors = [], []
    for rows in combinations(range(6), 3):
        one = Sample.simple(np.array(rows), np.zeros(3, dtype=np.int8), 6)
        means.append(one.weights @ VALUES[one.rows])
        errors.append(one.error_of_drawing(VALUES[one.rows, np.newaxis]).item())
    assert np.mean(means) == pytest.approx(VALUES.mean())
    assert np.mean(errors) == pytest.approx(np.var(means))


def test_the_error_of_a_stratified_sample_is_right_on_average_over_all_samples() -> None:
    means, errors = [], []
    for first in combinations((0, 1, 2), 2):
        for second in combinations((3, 4, 5), 2):
            one = sample([*first, *second], 2 / 3, [0, 0, 1, 1], [0] * 4)
            means.append(one.weights @ VALUES[one.rows])
            errors.append(one.error_of_drawing(VALUES[one.rows, np.newaxis]).item())
    assert np.mean(means) == pytest.approx(VALUES.mean())
    assert np.mean(errors) == pytest.approx(np.var(means))


def test_a_sample_of_all_rows_has_no_error() -> None:
    everything = Sample.simple(np.arange(6), np.zeros(6, dtype=np.int8), 6)
    assert everything.error_of_drawing(VALUES[:, np.newaxis]).item() == pytest.approx(0, abs=1e-15)


def test_a_single_row_of_a_stratum_counts_as_if_its_mean_were_zero() -> None:
    alone = sample([0, 3, 4], np.array([1 / 3, 2 / 3, 2 / 3]), [0, 1, 1], [0] * 3)
    paired = sample([3, 4], 2 / 3, [1, 1], [0, 0])
    assert alone.error_of_drawing(VALUES[alone.rows, np.newaxis]).item() > 0
    assert len(paired) == 2


def test_rounds_are_unbiased_whatever_the_second_draws() -> None:
    """A second round may prefer rows because of what the first found."""
    means = []
    for first in range(6):
        left = [row for row in range(6) if row != first]
        preferred = np.array([2.0 if row > first else 1.0 for row in left])
        chances = preferred / preferred.sum()
        for row, chance in zip(left, chances, strict=True):
            one = sample([first, row], np.array([1 / 6, chance]), [0, 1], [0, 1])
            # without scaling the weights to 1, the estimate is exactly unbiased
            weights = (0.5 / one.probability + np.array([0.5, 0.0])) / 6
            means.append((chance / 6, weights @ VALUES[one.rows]))
            assert one.weights == pytest.approx(weights / weights.sum())
    assert sum(chance * mean for chance, mean in means) == pytest.approx(VALUES.mean())


def test_some_rows_of_a_sample_keep_their_probabilities() -> None:
    one = sample([1, 3, 5], np.array([0.1, 0.2, 0.3]), [0, 0, 1], [0, 0, 0])
    part = one.take(np.array([False, True, True]), np.array([0, 0, 0, 1, 0, 2]))
    assert part.rows.tolist() == [1, 2]
    assert part.probability.tolist() == [0.2, 0.3]
    assert part.stratum.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("sizes", "rows", "expected"),
    [([100, 100], 50, [25, 25]), ([1, 100, 100], 31, [1, 15, 15]), ([0, 50], 10, [0, 10]), ([3, 3], 100, [3, 3])],
)
def test_rows_are_spread_evenly_over_strata(sizes: list[int], rows: int, expected: list[int]) -> None:
    assert allocate(sizes, rows) == expected


def test_doubtful_rows_are_drawn_more_often_and_sure_ones_sometimes() -> None:
    confidence = np.repeat([0.5, 0.9, 1.0], 100)
    chances = by_confidence(confidence, 60)
    assert chances.sum() == pytest.approx(60)
    assert chances[0] > chances[100] > chances[200] > 0
    crowded = by_confidence(np.array([0.5, *[0.999] * 9]), 8)
    assert crowded.max() == 1.0
    assert crowded.sum() == pytest.approx(8)


def test_rows_are_drawn_as_often_as_they_should_be() -> None:
    chances = by_confidence(np.linspace(0.5, 1, 40), 10)
    rng = np.random.default_rng(1)
    drawn = np.zeros(40)
    for _ in range(4000):
        rows = draw_with(chances, rng)
        assert len(rows) == 10
        drawn[rows] += 1
    assert drawn / 4000 == pytest.approx(chances, abs=0.03)
