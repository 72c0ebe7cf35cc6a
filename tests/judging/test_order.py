from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pcs_annotator import NOT_ASKED, Weights, score
from pcs_annotator.base.errors import UnknownNameError
from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.core.votes import OPEN, Cell
from pcs_annotator.core.weights import Evidence
from pcs_annotator.judging.early_stop import ExactStop
from pcs_annotator.judging.frugal import order_of, simulate
from pcs_annotator.judging.score import choose
from tests.builders import simulated_votes, votes_of
from tests.judging.strategies import LEARNERS, asked_in, quick, quiet_fit

WEIGHTS = Weights(
    annotators=["a", "b"],
    relations=["original", "passive"],
    annotator_weights=np.array([0.3, 0.7]),
    relation_weights=np.array([1.0, 0.0]),
)


def test_cells_are_asked_by_weight_and_those_without_any_last() -> None:
    assert order_of(WEIGHTS) == [Cell(1, 0), Cell(0, 0), Cell(0, 1), Cell(1, 1)]


def test_a_price_for_an_unknown_annotator_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="'c'"):
        order_of(WEIGHTS, prices={"c": 1.0})


def test_class_aware_weights_are_ordered_by_how_far_a_vote_moves_the_odds() -> None:
    table = np.zeros((2, 2, 2, 2))
    table[0, 1], table[1, 0] = np.eye(2), -3 * np.eye(2)
    votes = votes_of([[[0, 0], [0, 0]]])
    evidence = Evidence(labels=votes.labels, log_prior=np.zeros(2), log_likelihood=table)
    weights = replace(Weights.uniform(votes), evidence=evidence)
    assert order_of(weights)[:2] == [Cell(1, 0), Cell(0, 1)]


class AskTwo:
    """Asks two cells, whatever they answer, as long as there are any."""

    order = (Cell(0, 2), Cell(0, 0), Cell(0, 1))

    def text_prior(self, text: str) -> Floats | None:
        return None

    def needed(self, cells: Codes, said: Floats | None = None) -> int:
        is_open = [cells[cell] == OPEN for cell in self.order]
        return int(sum(is_open) > 1)


def test_a_replay_asks_along_the_order_and_skips_what_was_never_asked() -> None:
    votes = votes_of([[[0, 1, 0, 1]], [[0, 1, NOT_ASKED, 1]], [[-1, 1, 1, 0]], [[0, 1, 0, 1]]])
    stopped = simulate(votes, AskTwo())
    assert asked_in(stopped).tolist() == [2, 1, 2, 2]
    assert stopped.codes[..., 0].tolist() == [[[0, -2, 0, -2]], [[0, -2, -2, -2]], [[-1, -2, 1, -2]], [[0, -2, 0, -2]]]
    assert stopped.ids == votes.ids


@pytest.mark.parametrize("name", [*LEARNERS, "majority", "uniform"])
def test_learned_weights_of_every_kind_stop_early_with_the_same_labels(name: str) -> None:
    votes, names = simulated_votes([0.9, 0.8, 0.6], items=120)
    weights = quiet_fit(votes, [*names], quick(name))
    stopped = simulate(votes, ExactStop(weights, votes.labels, order_of(weights)))
    all_asked, early = (choose(score(one, weights), votes.labels) for one in (votes, stopped))
    np.testing.assert_array_equal(early, all_asked)
    assert asked_in(stopped).mean() < 10
