import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from pcs_annotator.base.errors import UndefinedMetric
from pcs_annotator.judging.promising.acceptance import Target, precision_threshold, recall_threshold


def made(rows: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return calibrated probabilities of a label, and which rows have it."""
    rng = np.random.default_rng(seed)
    chance = rng.beta(0.6, 1.2, rows)
    return chance, rng.random(rows) < chance


def test_recall_is_the_highest_threshold_that_passes_the_binomial_test() -> None:
    chance, positive = made(300, 1)
    found = recall_threshold(chance, positive, Target(0.8, 0.1))
    count = int(positive.sum())
    assert found.rows == count
    assert found.failures == int((chance[positive] < found.least).sum())
    assert binom.cdf(found.failures, count, 0.2) <= 0.1 < binom.cdf(found.failures + 1, count, 0.2)


def test_precision_counts_wrong_rows_above_the_threshold() -> None:
    chance, positive = made(400, 2)
    found = precision_threshold(chance, positive, Target(0.7, 0.1))
    taken = chance >= found.least
    assert (found.rows, found.failures) == (int(taken.sum()), int((taken & ~positive).sum()))
    assert binom.cdf(found.failures, found.rows, 0.3) <= 0.1


@pytest.mark.parametrize("kind", ["recall", "precision"])
def test_promises_are_broken_no_more_often_than_they_say(kind: str) -> None:
    """Over draws of gold rows, judged on 200,000 others."""
    everything, truth = made(200_000, 0)
    find, least = (recall_threshold, 0.85) if kind == "recall" else (precision_threshold, 0.7)
    broken, shown = 0, 0
    for seed in range(1, 301):
        rows = np.random.default_rng(seed).integers(0, 200_000, 250)
        try:
            found = find(everything[rows], truth[rows], Target(least, 0.1))
        except UndefinedMetric:
            continue
        taken = everything >= found.least
        right = (taken & truth).sum()
        shown += 1
        broken += bool(right / (truth if kind == "recall" else taken).sum() < least)
    assert shown > 150
    assert broken / 300 <= 0.1 + 2 * np.sqrt(0.1 * 0.9 / 300)


def test_what_cannot_be_promised_says_what_it_would_take() -> None:
    chance, positive = made(20, 3)
    with pytest.raises(UndefinedMetric, match=r"and a recall of 0.95 needs 45, none of them missed: draw about"):
        recall_threshold(chance, positive, Target(0.95, 0.1))
    with pytest.raises(UndefinedMetric, match="0 gold rows have the label"):
        recall_threshold(chance, np.zeros(20, dtype=np.bool_), Target(0.95, 0.1))
    with pytest.raises(UndefinedMetric, match=r"no threshold has a precision of 0.99 .* takes at least 230 gold rows"):
        precision_threshold(chance, positive, Target(0.99, 0.1))
