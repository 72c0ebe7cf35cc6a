import numpy as np
import pytest
from scipy.stats import hypergeom

from pcs_annotator.judging.promise.whole_table import once_if_right, share_rows, small_enough


@pytest.mark.parametrize(("rows", "drawn", "wrong"), [(100, 20, 0), (100, 20, 3), (500, 50, 10), (40, 40, 4)])
def test_the_bound_is_the_largest_number_of_errors_that_the_sample_leaves_possible(
    rows: int, drawn: int, wrong: int
) -> None:
    losses = np.repeat([1, 0], [wrong, drawn - wrong])
    found = next((most for most in range(rows) if small_enough(rows, losses, most, 0.1)), rows)
    assert hypergeom.cdf(wrong, rows, found, drawn) > 0.1
    assert found == rows or hypergeom.cdf(wrong, rows, found + 1, drawn) <= 0.1


def test_the_machine_labels_the_most_certain_rows_and_equally_certain_ones_stay_together() -> None:
    confidence = np.repeat([0.99, 0.9, 0.6, 0.5], 100)
    sample = np.arange(400) % 2 == 0
    wrong = confidence < 0.8
    found = share_rows(confidence, sample, wrong, 0.05, 0.1)
    assert sorted(found.by_machine) == list(range(200))
    assert sorted(found.by_people) == list(range(200, 400))
    assert found.by_people[0] >= 300  # the least certain first
    assert found.errors <= 20


def test_without_errors_the_machine_labels_everything_and_with_too_few_rows_nothing() -> None:
    confidence, nothing = np.linspace(0.9, 0.5, 200), np.zeros(200, dtype=np.bool_)
    assert len(share_rows(confidence, ~nothing, nothing, 0.05, 0.1).by_people) == 0
    few = np.arange(200) < 3
    found = share_rows(confidence, few, nothing, 0.05, 0.1)
    assert len(found.by_machine) == 0
    assert found.errors == 0


def test_the_promise_is_kept_in_nine_of_ten_tables() -> None:
    broken = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        confidence = rng.beta(6, 2, size=1000)
        wrong = rng.random(1000) > confidence
        sample = np.zeros(1000, dtype=np.bool_)
        sample[rng.permutation(1000)[:150]] = True
        found = share_rows(confidence, sample, wrong, 0.05, 0.1)
        broken += wrong[found.by_machine].sum() > 50
    assert broken <= 40  # 30 are expected at most; more than 40 happen once in 50 times
    assert broken > 0  # else the bound would be much too wide


def test_a_right_label_counts_once_for_its_text_and_a_wrong_one_in_every_row_that_was_drawn() -> None:
    same = np.array([0, 0, 0, 1, 1, 1, 2])
    sample = np.array([True, True, False, True, True, False, True])
    wrong = np.array([False, False, False, True, True, True, False])
    assert once_if_right(same, sample, wrong).tolist() == [True, False, False, True, True, False, True]
    assert once_if_right(same, sample, wrong / 2).tolist() == [True, False, False, True, True, False, True]


def test_a_row_without_a_label_is_never_the_machine_s() -> None:
    confidence, nothing = np.array([0.9] * 199 + [-1.0]), np.zeros(200, dtype=np.bool_)
    assert share_rows(confidence, ~nothing, nothing, 0.05, 0.1).by_people.tolist() == [199]


def scale_table(seed: int, rows: int = 1000) -> tuple[np.ndarray, np.ndarray]:
    """Return how sure labels on a scale of five are, 1 less what they are expected to be off, and what they are off."""
    rng = np.random.default_rng(seed)
    spread = rng.beta(1.2, 2, rows)
    steps = np.minimum((rng.random((rows, 4)) < spread[:, np.newaxis] / 2).cumprod(axis=1).sum(axis=1), 4)
    powers = (spread[:, np.newaxis] / 2) ** np.arange(1, 5)
    return 1 - powers.sum(axis=1) / 4, steps / 4


def test_the_mean_distance_on_a_scale_is_promised_and_takes_fewer_rows_than_no_errors_would() -> None:
    broken, people, as_wrong = 0, 0, 0
    for seed in range(100):
        confidence, off = scale_table(seed)
        sample = np.zeros(1000, dtype=np.bool_)
        sample[np.random.default_rng(seed + 1000).permutation(1000)[:150]] = True
        found = share_rows(confidence, sample, off, 0.05, 0.1)
        broken += off[found.by_machine].sum() > 50
        people += len(found.by_people)
        as_wrong += len(share_rows(confidence, sample, off > 0, 0.05, 0.1).by_people)
        assert found.errors <= 50
    assert broken <= 16  # 10 are expected at most; more than 16 happen once in 50 times
    assert people < 0.6 * as_wrong


def test_a_bet_is_lost_if_the_sample_alone_has_more_than_is_allowed() -> None:
    assert not small_enough(100, np.array([0.5, 1.0, 0.75, 0.25]), 2.0, 0.1)
    assert small_enough(100, np.array([*[0.0] * 60, 0.25]), 10.0, 0.1)
    assert not small_enough(100, np.full(60, 0.5), 49.0, 0.1)
