from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import hypergeom

from pcs_annotator.judging.promising.whole_table import most_errors, share_rows


@pytest.mark.parametrize(("rows", "drawn", "wrong"), [(100, 20, 0), (100, 20, 3), (500, 50, 10), (40, 40, 4)])
def test_the_bound_is_the_largest_number_of_errors_that_the_sample_leaves_possible(
    rows: int, drawn: int, wrong: int
) -> None:
    [found] = most_errors(rows, drawn, np.array([wrong]), 0.1)
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
