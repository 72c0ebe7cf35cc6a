import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.judging.heldout import Judged
from pcs_annotator.judging.promise.promise import Promise
from pcs_annotator.judging.promise.thresholds import EVERY_LABEL, accepted, find_thresholds, rows_to_finish
from pcs_annotator.judging.promise.whole_table import share_rows

LABELS = ("no", "yes")


def judged(confidence: list[float], right: list[bool], best: list[int] | None = None) -> Judged:
    codes = [0] * len(right) if best is None else best
    return Judged(np.array(confidence), np.array(codes, dtype=np.int8), np.array(right, dtype=np.bool_))


def drawn(rows: int, seed: int) -> Judged:
    """Return rows whose confidence is exactly the chance of being right."""
    rng = np.random.default_rng(seed)
    confidence = rng.uniform(0.5, 1.0, rows)
    return Judged(confidence, rng.integers(2, size=rows).astype(np.int8), rng.random(rows) < confidence)


@pytest.mark.parametrize("max_error", [0, 0.0, 1, -0.1, 1.5])
def test_an_error_rate_outside_0_to_1_is_refused(max_error: float) -> None:
    with pytest.raises(ConfigError, match=f"max_error is {max_error}"):
        Promise(max_error=max_error)
    with pytest.raises(ConfigError, match="certainty is 1"):
        Promise(max_error=0.1, certainty=1)


@pytest.mark.parametrize(
    ("max_error", "certainty", "rows"), [(0.1, 0.9, 44), (0.05, 0.9, 90), (0.05, 0.95, 104), (0.02, 0.9, 228)]
)
def test_the_fewest_rows_are_those_without_any_error_at_the_level_of_a_first_look(
    max_error: float, certainty: float, rows: int
) -> None:
    promise = Promise(max_error=max_error, certainty=certainty)
    assert promise.least_rows() == rows
    sure = judged([0.9] * rows, [True] * rows)
    assert find_thresholds(sure, LABELS, promise) == {EVERY_LABEL: 0.9}
    assert find_thresholds(sure.take(np.arange(rows - 1)), LABELS, promise) == {}


def test_looks_together_never_use_more_than_all_errors_that_promises_may_have() -> None:
    promise, spent = Promise(max_error=0.1), 0.0
    levels = []
    for rows in (50, 60, 75, 200, 400, 800):
        levels.append(promise.level(rows, spent))
        spent += levels[-1]
    assert levels[:2] == pytest.approx([0.01, 0.009])  # a tenth of what is left, from so few rows
    assert levels[3:] == sorted(levels[3:], reverse=True)
    assert spent < promise.delta


def test_what_earlier_looks_spent_makes_a_promise_harder() -> None:
    promise, rows = Promise(max_error=0.05), judged([0.9] * 150, [False] * 2 + [True] * 148)
    assert find_thresholds(rows, LABELS, promise) == {EVERY_LABEL: 0.9}
    assert find_thresholds(rows, LABELS, promise, promise.level(len(rows.right), 0.09)) == {}
    assert promise.least_rows(0.09) > promise.least_rows()


def test_the_sequence_stops_before_the_rows_that_are_wrong_too_often() -> None:
    confidence = [0.99] * 60 + [0.6] * 40
    right = [True] * 60 + [True, False] * 20
    found = find_thresholds(judged(confidence, right), LABELS, Promise(max_error=0.1))
    assert found == {EVERY_LABEL: 0.99}


def test_an_error_among_the_most_confident_rows_does_not_end_the_search() -> None:
    # with one early error, a search from the strictest threshold would stop at once
    confidence = np.linspace(0.999, 0.97, 200)
    right = np.ones(200, dtype=np.bool_)
    right[3] = False
    rows = Judged(confidence, np.zeros(200, dtype=np.int8), right)
    assert find_thresholds(rows, LABELS, Promise(max_error=0.05)) == {EVERY_LABEL: pytest.approx(0.97)}


@given(st.integers(1, 600), st.floats(0, 1.2), st.sampled_from([0.01, 0.05, 0.1, 0.3, 0.5]), st.floats(0, 0.099))
def test_rows_of_one_confidence_are_accepted_exactly_if_they_pass_the_binomial_test(
    rows: int, part: float, max_error: float, spent: float
) -> None:
    promise, wrong = Promise(max_error=max_error), min(int(part * max_error * rows), rows)
    sample = judged([0.9] * rows, [False] * wrong + [True] * (rows - wrong))
    passes = binom.cdf(wrong, rows, max_error) <= promise.level(rows, spent)
    assert bool(find_thresholds(sample, LABELS, promise, promise.level(len(sample.right), spent))) == passes


def test_the_promise_is_kept_in_simulation() -> None:
    """The true error is known here: confidence is the chance of being right."""
    promise = Promise(max_error=0.15)
    broken, used = 0, 0
    for seed in range(400):
        found = find_thresholds(drawn(200, seed), LABELS, promise)
        least = found.get(EVERY_LABEL, 1.0)
        error = (1 - least) / 2  # confidence is uniform above the threshold
        broken += error > promise.max_error
        used += bool(found)
    assert used > 250
    assert broken / 400 <= promise.delta + 2 * np.sqrt(promise.delta * promise.certainty / 400)


def test_per_label_a_label_without_rows_is_never_accepted() -> None:
    sure = judged([0.9] * 60, [True] * 60)
    found = find_thresholds(sure, LABELS, Promise(max_error=0.1, per_label=True))
    assert found == {"no": 0.9}
    taken = accepted(np.array([0.95, 0.95, 0.5]), np.array([0, 1, 0], dtype=np.int8), LABELS, found)
    assert taken.tolist() == [True, False, False]


def test_per_label_each_label_has_its_own_threshold() -> None:
    rng = np.random.default_rng(0)
    best = np.repeat([0, 1], 300).astype(np.int8)
    confidence = rng.uniform(0.5, 1, 600)
    right = np.where(best == 0, True, rng.random(600) < confidence)  # one label is always right
    found = find_thresholds(Judged(confidence, best, right), LABELS, Promise(max_error=0.1, per_label=True))
    assert found["no"] < found["yes"]


def pilot_of(confidence: np.ndarray, wrong: np.ndarray, rows: int) -> Judged:
    return Judged(confidence[:rows], np.zeros(rows, dtype=np.intp), ~wrong[:rows])


@pytest.mark.parametrize("sharp", [4, 12])
def test_the_rows_named_are_enough_for_a_finished_table(sharp: int) -> None:
    enough, ratios = 0, []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        confidence = rng.beta(0.8 * sharp, 0.2 * sharp, size=1500)
        wrong = rng.random(1500) > confidence
        gold, in_all = rows_to_finish(confidence, pilot_of(confidence, wrong, 60), 0.1, 0.075)
        sample = rng.permutation(1500) < gold
        people = share_rows(confidence, sample, wrong, 0.1, 0.075).by_people
        done = len(np.union1d(people, np.flatnonzero(sample)))
        enough += done <= 1.1 * in_all
        ratios.append(done / in_all)
    assert enough >= 15
    assert 0.5 < np.median(ratios) < 1.1


def test_useless_machines_leave_all_rows_and_perfect_ones_few() -> None:
    confidence = np.linspace(0.99, 0.5, 500)
    nothing = np.zeros(500, dtype=np.bool_)
    gold, in_all = rows_to_finish(confidence, pilot_of(confidence, nothing, 500), 0.1, 0.075)
    assert gold <= in_all < 150
    assert rows_to_finish(confidence, pilot_of(confidence, ~nothing, 500), 0.02, 0.075)[1] > 490
    assert rows_to_finish(confidence[:3], pilot_of(confidence, nothing, 3), 0.1, 0.075)[1] == 3  # hardly a table
