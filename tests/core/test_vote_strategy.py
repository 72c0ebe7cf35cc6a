from __future__ import annotations

import numpy as np

from pcs_annotator import Weights
from pcs_annotator.core.votes import OPEN, Cell, Strategy
from pcs_annotator.judging.early_stop import ExactStop
from tests.builders import votes_of


def test_the_rule_of_judging_is_a_strategy_for_asking() -> None:
    votes = votes_of([[[0, 0, 1]]])
    order = [Cell(0, 2), Cell(0, 0), Cell(0, 1)]
    strategy: Strategy = ExactStop(Weights.uniform(votes), votes.labels, order)
    unasked = np.full((1, 3, 1), OPEN, dtype=np.int8)

    assert list(strategy.order) == order
    assert strategy.needed(unasked) > 0
    assert strategy.needed(votes.codes[0]) == 0
    assert (unasked == OPEN).all()
