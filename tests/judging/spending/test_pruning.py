from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pcs_annotator.core.arrays import Codes
from pcs_annotator.core.vote import Cell
from pcs_annotator.core.votes import Votes
from pcs_annotator.errors import GoldError
from pcs_annotator.judging.metrics.metrics import auroc
from pcs_annotator.judging.spending.pruning import CurvePoint, Pruned, _expected_auroc, prune
from pcs_annotator.judging.weighing.crossfit import Splits
from pcs_annotator.judging.weighing.optimisers import optimisers
from tests.builders import simulated_votes
from tests.judging.strategies import coded

LR = optimisers.create("lr")
ONCE = Splits(repeats=1)


def one_good_annotator(items: int = 150) -> tuple[Votes, Codes]:
    """Votes of one good annotator and two that say anything."""
    votes, names = simulated_votes([0.9, 1 / 3, 1 / 3], items=items)
    return votes, coded(votes, names)


def test_annotators_that_carry_nothing_are_dropped() -> None:
    votes, gold = one_good_annotator()
    pruned = prune(votes, gold, LR, ONCE)
    assert pruned.keep[0].any()
    assert not pruned.keep[1:].any()
    assert [point.cells for point in pruned.curve] == list(range(1, 13))


def test_cells_that_all_count_are_all_kept_when_no_loss_is_allowed() -> None:
    votes, names = simulated_votes([0.65, 0.65], items=400, relations=2)
    pruned = prune(votes, coded(votes, names), LR, ONCE, tolerance=0.0)
    assert pruned.keep.all()


def test_a_larger_tolerance_never_keeps_more() -> None:
    votes, names = simulated_votes([0.8, 0.7, 0.6], items=100)
    gold = coded(votes, names)
    kept = [prune(votes, gold, LR, ONCE, tolerance).keep.sum() for tolerance in (0.0, 0.005, 0.02, 0.1, 1.0)]
    assert kept == sorted(kept, reverse=True)
    assert kept[-1] == 1


def test_rows_without_gold_change_nothing() -> None:
    votes, gold = one_good_annotator(60)
    more = replace(votes, codes=np.concatenate([votes.codes, votes.codes]), ids=[str(row) for row in range(120)])
    unlabelled = np.full(60, -1, dtype=np.int8)
    one, two = prune(votes, gold, LR, ONCE), prune(more, np.concatenate([gold, unlabelled]), LR, ONCE)
    assert one.curve == two.curve


def test_a_dropped_cell_is_neither_asked_nor_counted() -> None:
    votes, gold = one_good_annotator(40)
    keep = np.zeros((3, 4), dtype=np.bool_)
    keep[0, 1] = True
    pruned = Pruned(keep=keep, curve=[])
    left = pruned.of(votes).codes
    np.testing.assert_array_equal(left[:, 0, 1], votes.codes[:, 0, 1])
    assert (left != -2).sum() == len(gold)
    assert pruned.order([Cell(0, 0), Cell(0, 1, 1), Cell(2, 1)]) == [Cell(0, 1, 1)]


def test_quality_is_mostly_the_steadier_figure_and_less_for_weight_left_out() -> None:
    whole = CurvePoint(2, 0.8, 0.8, 1.0)
    assert whole._replace(expected=0.9).quality > whole._replace(auroc=0.9).quality > whole.quality
    assert whole._replace(weight=0.5).quality < whole.quality


def test_a_cell_that_repeats_another_goes_first_however_heavy() -> None:
    """The best annotator's relations say the same four times over; the two others agree by chance only."""
    votes, names = simulated_votes([0.85, 0.75, 0.75], items=300)
    codes = votes.codes.copy()
    codes[:, 0] = codes[:, 0, :1]
    votes = replace(votes, codes=codes)
    kept = prune(votes, coded(votes, names), LR, ONCE).keep.sum(axis=1)
    assert kept[0] == 1
    assert kept[1:].min() > 1


def test_every_point_of_the_curve_leaves_out_weight_of_the_next() -> None:
    votes, names = simulated_votes([0.8, 0.7, 0.6], items=60)
    weight = [point.weight for point in prune(votes, coded(votes, names), LR, ONCE).curve]
    assert weight == sorted(weight)
    assert weight[-1] == pytest.approx(1)


@pytest.mark.parametrize("silence", [-1, -2])
def test_a_cell_that_never_gave_a_usable_vote_is_dropped(silence: int) -> None:
    votes, names = simulated_votes([0.7, 0.7], items=60)
    codes = votes.codes.copy()
    codes[:, 1] = silence
    assert not prune(replace(votes, codes=codes), coded(votes, names), LR, ONCE).keep[1].any()


def test_votes_that_are_all_missing_leave_one_cell_and_no_nan() -> None:
    votes, gold = one_good_annotator(40)
    pruned = prune(replace(votes, codes=np.full_like(votes.codes, -1)), gold, LR, ONCE, tolerance=1.0)
    assert pruned.keep.sum() == 1
    assert np.isfinite([point.quality for point in pruned.curve]).all()


@pytest.mark.parametrize("optimiser", ["naive-bayes", "uniform"])
def test_any_optimiser_can_score_the_parts(optimiser: str) -> None:
    votes, gold = one_good_annotator(60)
    pruned = prune(votes, gold, optimisers.create(optimiser), ONCE)
    assert pruned.keep[0].any()
    assert pruned.keep.sum() in [point.cells for point in pruned.curve]


def test_too_little_gold_is_refused_with_a_remedy() -> None:
    votes, gold = one_good_annotator(8)
    with pytest.raises(GoldError, match="label at least 10"):
        prune(votes, gold, LR)


def test_expected_auroc_of_certain_labels_is_the_auroc() -> None:
    rng = np.random.default_rng(0)
    gold = rng.integers(3, size=50).astype(np.int8)
    scores = rng.integers(5, size=(50, 3)) / 5
    assert _expected_auroc(scores, np.eye(3)[gold]) == pytest.approx(auroc(scores, gold))


def test_expected_auroc_is_the_mean_over_possible_labels() -> None:
    """Two rows, one label: pairs are weighed by the chance that they are a pair of the class and another."""
    scores, chance = np.array([[0.9], [0.4]]), np.array([[0.8], [0.3]])
    right, wrong = 0.8 * 0.7, 0.3 * 0.2
    assert _expected_auroc(scores, chance) == pytest.approx(right / (right + wrong))
