from __future__ import annotations

import json

import numpy as np
import pytest

from pcs_annotator.core.weights import Weights
from pcs_annotator.judging.calibration import Calibrator
from pcs_annotator.judging.fitting import fit_weights
from pcs_annotator.judging.model import MIN_ROWS_TO_CALIBRATE, Model, fit_out_of_fold_calibrator
from pcs_annotator.judging.optimisers.lr import LinearRegression
from tests.builders import simulated_votes, votes_of
from tests.judging.strategies import coded, silenced


def test_outcomes_of_a_vote_a_tie_and_silence() -> None:
    votes = votes_of([[[0, 0, 0, 1]], [[0, 1, 0, 1]], [[-1, -2, -1, -1]]])
    clear, tied, silent = Model(weights=Weights.uniform(votes), calibrator=None).judge(votes)
    assert (clear.id, clear.label, clear.scores) == ("i0", "fake", {"fake": 0.75, "real": 0.25})
    assert (clear.confidence, clear.decision, clear.reason) == (None, None, "")
    assert (tied.label, tied.reason) == ("fake", "2 labels share the highest score")
    assert (silent.label, silent.decision, silent.reason) == (None, "review", "nobody voted")
    assert (silent.scores, silent.confidence) == ({"fake": 0.5, "real": 0.5}, None)


def test_confidence_is_the_calibrated_probability_of_the_label() -> None:
    votes = votes_of([[[0, 1, 1, 1]], [[-1, -1, -1, -1]]])
    calibrator = Calibrator(labels=("real", "fake"), slope=0.7, offsets=np.array([-0.2, 0.2]))
    first, silent = Model(weights=Weights.uniform(votes), calibrator=calibrator).judge(votes)
    raised = {"fake": (0.27 / 1.04) ** 0.7 * np.exp(0.2), "real": (0.77 / 1.04) ** 0.7 * np.exp(-0.2)}
    assert first.label == "real"
    assert first.confidence == pytest.approx(raised["real"] / sum(raised.values()))
    assert silent.confidence is None


@pytest.mark.parametrize("name", ["lr", "naive-bayes"])
@pytest.mark.parametrize("calibrated", [True, False])
def test_written_and_read_back_it_judges_the_same(name: str, calibrated: bool) -> None:
    votes, gold = simulated_votes([0.8, 0.6], items=40)
    votes = silenced(votes, 0.4)
    weights = fit_weights(votes, gold, name, resamples=3)
    calibrator = fit_out_of_fold_calibrator(LinearRegression(), votes, coded(votes, gold), 5, 0)
    model = Model(weights=weights, calibrator=calibrator if calibrated else None)
    again = Model.from_dict(json.loads(json.dumps(model.to_dict())))
    assert list(again.judge(votes)) == list(model.judge(votes))
    assert (again.calibrator is None) is not calibrated


def test_too_little_gold_is_not_calibrated() -> None:
    votes, gold = simulated_votes([0.8, 0.6], items=MIN_ROWS_TO_CALIBRATE)
    codes = coded(votes, gold)
    few = slice(MIN_ROWS_TO_CALIBRATE - 1)
    assert fit_out_of_fold_calibrator(LinearRegression(), votes, codes, 5, 0) is not None
    assert fit_out_of_fold_calibrator(LinearRegression(), votes.take(few), codes[few], 5, 0) is None


def test_one_class_is_not_calibrated() -> None:
    votes, _ = simulated_votes([0.8, 0.6], items=30)
    assert fit_out_of_fold_calibrator(LinearRegression(), votes, np.zeros(30, dtype=np.int8), 5, 0) is None


def test_confidence_is_nearer_to_how_often_labels_are_right_than_the_score() -> None:
    votes, gold = simulated_votes([0.7, 0.6, 0.5], items=1200)
    truth = dict(zip(votes.ids, gold, strict=True))
    seen, rest = votes.take(slice(300)), votes.take(slice(300, None))
    calibrator = fit_out_of_fold_calibrator(LinearRegression(), seen, coded(votes, gold)[:300], 5, 0)
    outcomes = list(Model(weights=fit_weights(seen, gold[:300]), calibrator=calibrator).judge(rest))
    right = np.mean([outcome.label == truth[outcome.id] for outcome in outcomes])
    said = np.mean([outcome.confidence for outcome in outcomes if outcome.confidence is not None])
    raw = np.mean([max(outcome.scores.values()) for outcome in outcomes])
    assert abs(said - right) < abs(raw - right) / 3
