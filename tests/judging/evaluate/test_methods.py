from dataclasses import dataclass

import numpy as np
import pytest

from pcs_annotator import Votes
from pcs_annotator.base.errors import UndefinedMetric
from pcs_annotator.core.arrays import Floats
from pcs_annotator.judging.baselines import Asks
from pcs_annotator.judging.evaluate.methods import Calls, OnCells, original_of, ready, self_consistency
from pcs_annotator.judging.heldout import Splits
from pcs_annotator.judging.optimisers.simple import Uniform
from tests.builders import simulated_votes
from tests.judging.strategies import coded


@dataclass(frozen=True)
class FirstVote:
    """A baseline: what the first annotator says about the first two relations, the second one rewritten."""

    name: str = "first-vote"

    def scores(self, votes: Votes) -> Floats:
        return votes.shares()[:, 0, :2].mean(axis=1)

    def asks(self, votes: Votes) -> Asks:
        cells = np.zeros(votes.codes.shape[1:], dtype=np.bool_)
        cells[0, :2, 0] = True
        return Asks(cells, frozenset(votes.relations[1:2]))


def panel(draws: int = 1, names: tuple[str, ...] = ("a", "b")) -> Votes:
    """Four items; the original has all draws, voice only the first, and not for the last two items."""
    codes = np.full((4, len(names), 2, draws), -2, dtype=np.int8)
    codes[:, :, 0] = 0
    codes[:2, :, 1, 0] = 1
    return Votes(
        codes=codes, ids=list("wxyz"), annotators=names, relations=["original", "voice"], labels=["fake", "real"]
    )


def test_every_question_and_every_variant_is_a_call() -> None:
    assert ready("lr", panel()).calls == (3, 0)
    assert ready("lr", panel(), {"voice", "original"}).calls == Calls(3, 0.5)
    assert ready("lr", panel(), {"voice"}).calls.total == 3.5
    assert ready("lr", panel(draws=3)).calls.questions == 7


def test_zero_shot_and_majority_pay_for_the_original_alone() -> None:
    assert ready("zero-shot", panel(draws=3), {"voice"}).calls == (1, 0)
    assert ready("majority", panel(draws=3), {"voice"}).calls == (2, 0)


def test_a_baseline_pays_for_what_it_asks() -> None:
    found = ready(FirstVote(), panel(draws=3), {"voice"})
    assert found.calls == (1.5, 0.5)
    assert ready(FirstVote(), panel()).calls == (1.5, 0)


def test_an_answer_in_two_steps_costs_two_calls() -> None:
    votes = panel(names=("a", "a/2s-top-2"))
    everything = OnCells(name="both", optimiser="uniform", annotators=votes.annotators, relations=["original"])
    assert ready(everything, votes).calls.questions == 3


def test_optimisers_do_not_see_annotators_that_state_a_confidence() -> None:
    votes = panel(names=("a", "a/1s-top-2"))
    assert ready("lr", votes).votes.annotators == ("a",)
    assert ready(OnCells(name="x", optimiser=Uniform()), votes).votes.annotators == ("a",)


def test_a_baseline_is_scored_once_and_calibrated_out_of_fold() -> None:
    votes, gold = simulated_votes([0.8], items=40)
    codes = coded(votes, gold)
    entrant = ready(FirstVote(), votes)
    fits = entrant.cross_fits(codes, Splits(folds=4, repeats=2))
    assert (fits[0].scores == FirstVote().scores(votes)).all()
    assert (fits[0].probabilities != fits[1].probabilities).any()


def test_the_first_relation_stands_for_a_missing_original() -> None:
    assert original_of(panel()) == "original"
    assert original_of(panel().select(relations=["voice"])) == "voice"
    with pytest.raises(UndefinedMetric, match="no model or no relation"):
        original_of(panel().select(relations=[]))


@pytest.mark.parametrize(("budget", "draws"), [(2, 1), (6.4, 3), (100, 5)])
def test_self_consistency_spends_the_budget_as_far_as_draws_allow(budget: float, draws: int) -> None:
    votes = panel(draws=5, names=("a", "b", "a/ling-1s"))
    found = self_consistency(votes, budget)
    assert (found.draws, found.annotators, found.relations) == (draws, ["a", "b"], ["original"])
    assert ready(found, votes).calls.total == 2 * draws


def test_self_consistency_needs_several_draws() -> None:
    with pytest.raises(UndefinedMetric, match="--draws 5"):
        self_consistency(panel(), 4)
