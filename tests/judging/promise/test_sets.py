import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.judging.promise.sets import PredictionSets, fit_prediction_sets


def rows_of(count: int, rng: np.random.Generator, steps: int = 0) -> tuple[Floats, Codes]:
    """Overconfident probabilities, and gold; with steps they are coarse, so that many are equal."""
    honest = rng.dirichlet(np.full(3, 0.6), count)
    gold = (rng.random((count, 1)) > honest.cumsum(axis=1)).sum(axis=1).astype(np.int8)
    sharp = honest**3 / np.sum(honest**3, axis=1, keepdims=True)
    return (np.round(sharp * steps) / steps if steps else sharp), gold


def hits(sets: PredictionSets, probabilities: Floats, gold: Codes) -> float:
    return float(sets.of(probabilities)[np.arange(len(gold)), gold].mean())


def test_threshold_by_hand() -> None:
    # of 9 rows the 9th best may decide for 10 %, the 8th for 20 %
    chance = np.array([0.9, 0.8, 0.7, 0.6, 0.55, 0.5, 0.4, 0.3, 0.2])
    probabilities, gold = np.column_stack([chance, 1 - chance]), np.zeros(9, dtype=np.int8)
    assert fit_prediction_sets(probabilities, gold, 0.1).threshold == pytest.approx(0.2)
    sets = fit_prediction_sets(probabilities, gold, 0.2)
    assert sets == PredictionSets(threshold=0.3, miss_rate=0.2, rows=9)
    assert sets.of(np.array([[0.75, 0.25], [0.7, 0.3], [0.5, 0.5]])).tolist() == [[True, False], [True] * 2, [True] * 2]


@pytest.mark.parametrize("steps", [0, 4])
@pytest.mark.parametrize(("rows", "miss_rate"), [(20, 0.1), (60, 0.1), (60, 0.3)])
def test_the_right_label_is_in_the_set_as_often_as_promised(rows: int, miss_rate: float, steps: int) -> None:
    repetitions = 2000
    rng = np.random.default_rng(rows)
    # all rows are drawn at once, which is faster; each repetition has its own rows
    seen, seen_gold = rows_of(rows * repetitions, rng, steps)
    new, new_gold = rows_of(50 * repetitions, rng, steps)
    drawn = zip(*(np.split(values, repetitions) for values in (seen, seen_gold, new, new_gold)), strict=True)
    found = [hits(fit_prediction_sets(one, gold, miss_rate), other, truth) for one, gold, other, truth in drawn]
    error = float(np.std(found, ddof=1)) / np.sqrt(repetitions)
    assert np.mean(found) >= 1 - miss_rate - 3 * error
    # without ties, and where a set is rarely empty, the sets are no larger than needed
    if not steps and miss_rate == 0.1:
        assert np.mean(found) <= 1 - miss_rate + 1 / (rows + 1) + 3 * error


@given(
    rows=st.integers(0, 40),
    miss_rate=st.floats(0.01, 0.99),
    steps=st.sampled_from([0, 2, 5]),
    seed=st.integers(0, 10_000),
)
def test_no_set_is_empty_and_each_has_the_best_label(rows: int, miss_rate: float, steps: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    probabilities, gold = rows_of(rows, rng, steps)
    sets = fit_prediction_sets(probabilities, gold, miss_rate)
    new, _ = rows_of(20, rng, steps)
    chosen = sets.of(new)
    assert chosen[new == new.max(axis=1, keepdims=True)].all()
    if rows < (1 - miss_rate) / miss_rate - 1e-9:
        assert chosen.all()
    else:
        assert hits(sets, probabilities, gold) >= 1 - miss_rate - 1e-9


@pytest.mark.parametrize(("miss_rate", "needed"), [(0.1, 9), (0.05, 19), (0.01, 99), (0.3, 3), (0.5, 1), (0.9, 1)])
def test_too_few_rows_give_all_labels(miss_rate: float, needed: int) -> None:
    probabilities, gold = rows_of(needed, np.random.default_rng(0))
    enough = fit_prediction_sets(probabilities, gold, miss_rate)
    assert enough.threshold == probabilities[np.arange(needed), gold].min() or miss_rate == 0.9
    short = fit_prediction_sets(probabilities[1:], gold[1:], miss_rate)
    assert short.threshold == 0
    assert short.of(np.array([[1.0, 0.0, 0.0]])).all()


@pytest.mark.parametrize("miss_rate", [0.0, 1.0, -0.1, float("nan")])
def test_a_miss_rate_outside_0_to_1_is_refused(miss_rate: float) -> None:
    with pytest.raises(ConfigError, match=f"not {miss_rate}"):
        fit_prediction_sets(*rows_of(30, np.random.default_rng(0)), miss_rate)
