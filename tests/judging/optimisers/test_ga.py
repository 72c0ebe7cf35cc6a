import numpy as np
import pytest
from hypothesis import given, settings

from pcs_annotator import Weights, score
from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.judging.optimisers.ga import GeneticAlgorithm
from tests.builders import simulated_votes, votes_of
from tests.judging.metrics.alone import accuracy
from tests.judging.metrics.test_figures import brier
from tests.judging.strategies import Labelled, coded, labelled_votes, quiet_fit, silenced

SMALL = GeneticAlgorithm(population=12, generations=5)


def loss(scores: Floats, gold: Codes) -> float:
    """The documented objective, from the metrics."""
    return -accuracy(scores, gold) + 1e-3 * brier(scores, gold)


@pytest.mark.parametrize("seed", range(3))
def test_never_worse_than_equal_weights(seed: int) -> None:
    votes, names = simulated_votes([0.7, 0.4, 0.5], items=40, seed=seed)
    votes, gold = silenced(votes, 0.2, seed), coded(votes, names)
    found = SMALL.fit(votes, gold, seed)
    assert loss(score(votes, found), gold) <= loss(score(votes, Weights.uniform(votes)), gold)


@settings(deadline=None, max_examples=20)
@given(given_rows=labelled_votes())
def test_reported_objective_is_that_of_the_weights(given_rows: Labelled) -> None:
    weights = quiet_fit(*given_rows, SMALL)
    reported = weights.diagnostics
    if any(flag.kind == "uniform fallback" for flag in reported.flags):
        assert reported.objective is None
        return
    known = np.array([label is not None for label in given_rows.gold])
    rows = given_rows.votes.take(known)
    gold = coded(rows, [label for label in given_rows.gold if label is not None])
    assert reported.objective == pytest.approx(loss(score(rows, weights), gold), abs=1e-9)


def test_a_tie_is_not_a_hit() -> None:
    # a useless annotator beside a good one: if ties were hits, equal weights would beat the good one alone
    votes, gold = simulated_votes([0.9, 0.5], items=200, relations=1, labels=2)
    weights = GeneticAlgorithm(population=20, generations=15).fit(votes, coded(votes, gold), 0)
    assert weights.by_annotator["model-0"] > 0.5
    assert accuracy(score(votes, weights), coded(votes, gold)) >= 0.85
    assert weights.diagnostics.objective == pytest.approx(loss(score(votes, weights), coded(votes, gold)), abs=1e-9)


def test_genes_that_are_all_zero_mean_equal_weights() -> None:
    # scored as items without votes, they would beat the real score of an annotator that is always wrong
    votes = votes_of([[[0]], [[1]]])
    weights = SMALL.fit(votes, np.array([1, 0], dtype=np.int8), 0)
    assert weights.diagnostics.objective == pytest.approx(1e-3 * 2)


@pytest.mark.parametrize("gold", [[0, 1], [1, 0]])
def test_rounding_cannot_break_ties(gold: list[int]) -> None:
    # all votes agree, so all scores are 1; weights divided by their own sum can miss 1 by the last bit
    votes = votes_of([[[0, 0, 0], [0, 0, 0]], [[0, -1, 0], [0, 0, -1]]])
    weights = SMALL.fit(votes, np.array(gold, dtype=np.int8), 0)
    assert weights.diagnostics.objective == pytest.approx(-0.5 + 1e-3 * 1.0, abs=1e-9)
