from __future__ import annotations

import numpy as np
import pytest

from pcs_annotator import fit_weights, score
from pcs_annotator.judging.metrics.metrics import accuracy
from pcs_annotator.judging.weighing.optimisers.confusion import DawidSkene, mutual_information
from tests.builders import simulated_votes, votes_of
from tests.judging.strategies import coded, silenced


def test_ranks_annotators_by_quality_without_gold() -> None:
    votes, _ = simulated_votes([0.45, 0.9, 0.65], items=200)
    weights = fit_weights(votes, [None] * 200, "dawid-skene").by_annotator
    assert weights["model-1"] > weights["model-2"] > weights["model-0"]


def test_does_not_look_at_gold() -> None:
    votes, gold = simulated_votes([0.5, 0.8], items=60)
    votes = silenced(votes, 0.2)
    shuffled = [gold[row] for row in np.random.default_rng(1).permutation(60)]
    first, second = (fit_weights(votes, labels, "dawid-skene") for labels in (gold, shuffled))
    assert first.to_dict() == second.to_dict()


def test_scores_beat_every_single_vote() -> None:
    votes, names = simulated_votes([0.6, 0.6, 0.6], items=300)
    gold = coded(votes, names)
    weights = DawidSkene().fit(votes, gold, 0)
    assert accuracy(score(votes, weights), gold) > 0.8


def test_stops_after_the_rounds_it_was_given() -> None:
    votes, names = simulated_votes([0.6, 0.5], items=60)
    diagnostics = DawidSkene(rounds=2).fit(votes, coded(votes, names), 0).diagnostics
    assert diagnostics.iterations == 2
    assert DawidSkene().fit(votes, coded(votes, names), 0).diagnostics.iterations < DawidSkene().rounds


def test_without_any_vote_weights_are_equal() -> None:
    votes = votes_of(np.full((5, 2, 2), -1))
    weights = DawidSkene().fit(votes, np.zeros(5, dtype=np.int8), 0)
    np.testing.assert_allclose(weights.annotator_weights, 0.5)


def test_mutual_information_of_a_known_channel() -> None:
    uniform = np.log([0.5, 0.5])
    assert mutual_information(np.log(np.full((1, 1, 2, 2), 0.5)), uniform) == pytest.approx(0)
    right = np.log(np.array([[[[0.9, 0.1], [0.1, 0.9]]]]))
    by_hand = np.log(2) + 0.9 * np.log(0.9) + 0.1 * np.log(0.1)
    assert mutual_information(right, uniform)[0, 0] == pytest.approx(by_hand)
