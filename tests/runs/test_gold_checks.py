"""The rank-sum test by which gold rows are compared with the others."""

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from pcs_annotator.runs.gold_checks import rank_sum


def test_p_values_are_those_of_scipy_with_many_ties() -> None:
    rng = np.random.default_rng(1)
    for steps in (2, 3, 8, 1000):
        some, others = rng.integers(0, steps, 30) / 7, rng.integers(0, steps, 45) / 7 + rng.choice([0, 0.1])
        assert rank_sum(some, others) == pytest.approx(mannwhitneyu(some, others, method="asymptotic").pvalue)


def test_nothing_is_found_where_there_is_nothing_to_compare() -> None:
    assert rank_sum(np.zeros(0), np.ones(3)) == 1
    assert rank_sum(np.ones(4), np.ones(3)) == 1
