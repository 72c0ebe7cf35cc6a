import numpy as np
import pytest

from pcs_annotator.estimating.sampling import Design, Foretold
from tests.builders import the

RNG = np.random.default_rng(2)
CHANCE = np.concatenate([RNG.uniform(0.02, 0.1, 800), RNG.uniform(0.2, 0.8, 200)])
EXPECTED = np.column_stack([1 - CHANCE, CHANCE])
SECOND = np.array([0.0, 1.0])


def simulated_error(rows: int, *, corrected: bool) -> float:
    """Return the standard deviation of estimates over many draws of labels and gold rows."""
    means = []
    for seed in range(800):
        rng = np.random.default_rng(seed)
        truth = rng.random(1000) < CHANCE
        gold = rng.choice(1000, rows, replace=False)
        known = truth[gold].mean() + (CHANCE.mean() - CHANCE[gold].mean() if corrected else 0.0)
        means.append(known - truth.mean())
    return float(np.std(means))


@pytest.mark.parametrize(("design", "corrected"), [("gold only", False), ("simple", True)])
def test_foretold_errors_come_true(design: Design, corrected: bool) -> None:
    foretold = Foretold(EXPECTED, SECOND).error(100, design)
    assert foretold == pytest.approx(simulated_error(100, corrected=corrected), rel=0.1)


def test_a_sample_foretells_the_error_of_all_rows() -> None:
    rows = np.tile(EXPECTED, (5, 1))
    everything = Foretold(rows, SECOND).error(500, "simple")
    assert Foretold(EXPECTED, SECOND, 1 / 5).error(500, "simple") == pytest.approx(everything)


def test_machine_labels_and_doubtful_rows_save_gold_rows() -> None:
    foretold = Foretold(EXPECTED, SECOND)
    needed = {design: foretold.rows_for(0.015, design) for design in ("gold only", "simple", "confidence")}
    assert needed["gold only"] > needed["simple"] > needed["confidence"] > 0  # type: ignore[operator]
    assert foretold.error(needed["simple"], "simple") <= 0.015  # type: ignore[arg-type]
    assert foretold.error(needed["simple"] - 1, "simple") > 0.015  # type: ignore[operator]


def test_strata_are_drawn_from_equally() -> None:
    foretold = Foretold(EXPECTED, SECOND)
    assert foretold.error(100, "stratified") > 0
    assert foretold.error(1000, "stratified") == pytest.approx(0, abs=1e-9)


def test_a_difference_between_groups_needs_more_rows_than_a_mean() -> None:
    foretold = Foretold(EXPECTED, SECOND)
    half = np.arange(1000) % 2 == 0
    assert foretold.rows_for_difference(0.03, "simple", (half, ~half)) > foretold.rows_for(0.03, "simple")  # type: ignore[operator]


def test_the_fewest_rows_that_are_enough_are_found_or_none() -> None:
    foretold = Foretold(np.tile([0.5, 0.5], (100, 1)), np.array([0.0, 1.0]))
    fewest = the(foretold.rows_for(0.05, "simple"))
    assert foretold.error(fewest, "simple") <= 0.05 < foretold.error(fewest - 1, "simple")
    assert foretold.rows_for(1.0, "simple") == 1
    assert foretold.rows_for(-1.0, "simple") is None
