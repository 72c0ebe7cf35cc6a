import numpy as np
import pytest

from pcs_annotator.judging.heldout import Judged
from pcs_annotator.judging.promise.thresholds import rows_to_finish
from pcs_annotator.judging.promise.whole_table import share_rows


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
