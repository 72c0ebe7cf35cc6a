from __future__ import annotations

import json

import pytest

from pcs_annotator.errors import PcsWarning
from pcs_annotator.judging.evaluation.compare import Figures
from pcs_annotator.pipeline.steps import LearnSettings, learn, learn_if_possible
from tests.builders import simulated_votes

QUICK = LearnSettings(optimiser="lr", resamples=20)


def test_learning_gives_weights_calibrator_and_figures_against_the_references() -> None:
    votes, gold = simulated_votes([0.9, 0.6, 0.4])
    learned = learn(votes, gold, QUICK)
    assert [figures.method for figures in learned.figures] == ["lr", "uniform", "majority", "zero-shot model-0"]
    assert learned.model.weights.by_annotator["model-0"] > learned.model.weights.by_annotator["model-2"]
    assert learned.model.calibrator is not None
    assert learned.figures[0].behind is None
    assert learned.figures[0].auroc.n == len(votes)


def test_a_reference_is_not_compared_with_itself() -> None:
    votes, gold = simulated_votes([0.9, 0.6])
    learned = learn(votes, gold, LearnSettings(optimiser="uniform", resamples=20))
    assert [figures.method for figures in learned.figures] == ["uniform", "majority", "zero-shot model-0"]


def test_gold_may_be_a_mapping_or_an_iterator() -> None:
    votes, gold = simulated_votes([0.9, 0.6], items=40)
    by_id = learn(votes, dict(zip(votes.ids, gold, strict=True)), QUICK)
    in_turn = learn(votes, iter(gold), QUICK)
    assert by_id.model.to_dict() == in_turn.model.to_dict()


def test_too_little_gold_still_gives_a_model_and_says_why_there_are_no_figures() -> None:
    votes, gold = simulated_votes([0.9, 0.6], items=50)
    few = [label if row < 5 else None for row, label in enumerate(gold)]
    learned = learn(votes, few, QUICK)
    assert not learned.figures
    assert "at least 10 gold rows" in learned.no_figures
    assert learned.model.calibrator is None


def test_one_class_of_gold_learns_nothing_and_says_so() -> None:
    votes, _ = simulated_votes([0.9, 0.6], items=50)
    with pytest.warns(PcsWarning) as caught:
        learned = learn(votes, ["neutral"] * 50, QUICK)
    assert any("all 50 gold rows say 'neutral'" in str(warning.message) for warning in caught)
    assert learned.model.weights.by_annotator == {"model-0": 0.5, "model-1": 0.5}
    assert "two classes" in learned.no_figures


def test_without_gold_all_votes_count_the_same_and_nothing_is_calibrated() -> None:
    votes, _ = simulated_votes([0.9, 0.6], items=20)
    learned = learn_if_possible(votes, [None] * 20, QUICK)
    assert learned.model.weights.by_annotator == {"model-0": 0.5, "model-1": 0.5}
    assert learned.model.calibrator is None
    assert "no gold labels" in learned.no_figures


def test_figures_come_back_from_plain_values_as_they_were() -> None:
    votes, gold = simulated_votes([0.9, 0.6], items=60)
    for figures in learn(votes, gold, QUICK).figures:
        assert Figures.from_dict(json.loads(json.dumps(figures.to_dict()))) == figures
