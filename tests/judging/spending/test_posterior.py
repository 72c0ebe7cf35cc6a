from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcs_annotator.core.vote import OPEN, Cell
from pcs_annotator.core.votes import Votes
from pcs_annotator.core.weights import Weights
from pcs_annotator.errors import GoldError
from pcs_annotator.judging.spending.posterior import (
    Checkpoints,
    PosteriorStop,
    fit_checkpoints,
)
from pcs_annotator.judging.spending.stopping import ExactStop
from pcs_annotator.judging.spending.strategy import only, order_of, simulate, tier_ends
from pcs_annotator.judging.weighing.calibration import SoftmaxCalibrator
from pcs_annotator.judging.weighing.crossfit import Splits
from pcs_annotator.judging.weighing.optimisers import optimisers
from pcs_annotator.judging.weighing.scoring import score
from tests.builders import simulated_votes, votes_of
from tests.judging.spending.test_stopping import OneByOne, Panel, all_cells, exact, panels
from tests.judging.strategies import coded

LR = optimisers.create("lr")


def posterior(votes: Votes, level: float, ends: list[int]) -> PosteriorStop:
    rule = ExactStop(Weights.uniform(votes), votes.labels, 1, all_cells(votes))
    calibrators = [SoftmaxCalibrator(labels=votes.labels, slope=1.0, offsets=np.zeros(2)) for _ in ends]
    return PosteriorStop(level, rule, Checkpoints(order=rule.order, ends=ends, calibrators=calibrators))


def test_a_sure_leader_ends_the_asking_at_a_checkpoint_only() -> None:
    votes = votes_of([[[0, 0, 0, 0], [0, 0, 0, 0]]])
    assert simulate(votes, posterior(votes, 0.9, [1, 4])).asked.tolist() == [1]
    assert simulate(votes, posterior(votes, 0.9, [4])).asked.tolist() == [4]
    assert simulate(votes, posterior(votes, 0.9, [])).asked.tolist() == [5]


def test_an_unsure_leader_goes_on_to_the_next_checkpoint() -> None:
    votes = votes_of([[[0, 1, 1, 1], [1, 1, 1, 1]]])
    assert simulate(votes, posterior(votes, 0.7, [2, 4])).asked.tolist() == [4]
    assert simulate(votes, posterior(votes, 0.9, [2, 4])).asked.tolist() == [6]


def test_a_checkpoint_without_a_vote_ends_nothing() -> None:
    votes = votes_of([[[-1, 1, 1, 1]]])
    assert simulate(votes, posterior(votes, 0.5, [1, 2])).asked.tolist() == [2]


def test_a_checkpoint_does_not_judge_votes_behind_it() -> None:
    votes = votes_of([[[0, 0, 0, 0, 0, 0]]])
    rule = posterior(votes, 0.9, [1])
    cells = np.array([[[0], [0], [OPEN], [OPEN], [OPEN], [OPEN]]], dtype=np.int8)
    assert rule.needed(cells) == 2
    assert rule.urgency(cells) == rule.exact.urgency(cells)


@given(panels(), st.floats(0.4, 1.0), st.sets(st.integers(1, 40)))
def test_a_posterior_stop_asks_at_once_what_it_asks_one_by_one(panel: Panel, level: float, ends: set[int]) -> None:
    inner = exact(panel)
    reached = [end for end in sorted(ends) if end <= len(panel.order)]
    plain = SoftmaxCalibrator(labels=panel.votes.labels, slope=1.0, offsets=np.zeros(len(panel.votes.labels)))
    points = Checkpoints(order=inner.order, ends=reached, calibrators=[plain] * len(reached))
    rule = PosteriorStop(level, inner, points)
    once = simulate(panel.votes, rule).asked
    np.testing.assert_array_equal(once, simulate(panel.votes, OneByOne(rule)).asked)
    assert (once <= simulate(panel.votes, inner).asked).all()


def test_probabilities_come_from_the_checkpoint_where_a_row_was_stopped() -> None:
    votes = votes_of([[[0, -2, -2]], [[0, 0, -2]], [[0, 0, 0]], [[-2, -2, -2]]])
    flat, steep = (SoftmaxCalibrator(labels=votes.labels, slope=slope, offsets=np.zeros(2)) for slope in (0.1, 1.0))
    points = Checkpoints(order=all_cells(votes), ends=[1, 2], calibrators=[flat, steep])
    found = points.probabilities(votes, Weights.uniform(votes))[:, 0]
    assert found[0] < 0.6 < found[1] == found[2]
    assert found[3] == pytest.approx(0.5)


def test_the_longer_the_prefix_the_surer_its_calibrator() -> None:
    votes, names = simulated_votes([0.7, 0.65, 0.6], items=300)
    gold = coded(votes, names)
    order = order_of(Weights.uniform(votes))
    points = fit_checkpoints(votes, gold, LR, order, [1, 6, 12], Splits(repeats=1))
    assert (points.order, points.ends) == (tuple(order), (1, 6, 12))
    sure = [one.apply(np.array([[1.0, 0.0, 0.0]]), votes.labels)[0, 0] for one in points.calibrators]
    assert sure[0] < sure[1] < sure[2]


def test_a_cascade_asks_the_dear_annotator_only_where_the_cheap_are_undecided() -> None:
    votes, names = simulated_votes([0.8, 0.8, 0.9], items=400)
    gold = coded(votes, names)
    prices = {"model-0": 1.0, "model-1": 1.0, "model-2": 20.0}
    weights = LR.fit(votes, gold, 0)
    order = order_of(weights, prices=prices)
    points = fit_checkpoints(votes, gold, LR, order, tier_ends(order, weights, prices), Splits(repeats=1))
    rule = PosteriorStop(0.9, ExactStop(weights, votes.labels, 1, order), points)
    stopped = simulate(votes, rule).votes
    dear = (stopped.codes[:, 2] != -2).any(axis=(1, 2))
    assert 0.05 < dear.mean() < 0.8
    cheap = points.calibrators[0].apply(score(only(votes, order[:8]), weights), votes.labels).max(axis=1)
    assert cheap[dear].max() < 0.9


def test_too_little_gold_is_refused_with_a_remedy() -> None:
    votes, names = simulated_votes([0.8], items=9)
    with pytest.raises(GoldError, match="label at least 10 rows"):
        fit_checkpoints(votes, coded(votes, names), LR, [Cell(0, 0)], [1], Splits())
    same = np.zeros(40, dtype=np.int8)
    with pytest.raises(GoldError, match="of two classes"):
        fit_checkpoints(simulated_votes([0.8], items=40)[0], same, LR, [Cell(0, 0)], [1], Splits())
