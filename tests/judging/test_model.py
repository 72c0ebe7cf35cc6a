import json
from dataclasses import replace

import numpy as np
import pytest

from pcs_annotator import ABSTAINED, NOT_ASKED, Votes, Weights, fit_weights
from pcs_annotator.base.plain import from_plain
from pcs_annotator.judging.calibrate import Calibrator
from pcs_annotator.judging.fit_model import Learning
from pcs_annotator.judging.model import Model
from pcs_annotator.judging.promise.certificate import Certificate
from pcs_annotator.judging.promise.promise import Promise
from pcs_annotator.judging.promise.sets import PredictionSets
from pcs_annotator.judging.promise.thresholds import EVERY_LABEL
from tests.builders import learn_model, simulated_votes, the, votes_of


def test_outcomes_of_a_vote_a_tie_and_silence() -> None:
    votes = votes_of([[[0, 0, 0, 1]], [[0, 1, 0, 1]], [[-1, -2, -1, -1]]])
    clear, tied, silent = Model(weights=Weights.uniform(votes), calibrator=None).judge(votes)
    assert (clear.id, clear.label, clear.scores) == ("i0", "fake", {"fake": 0.75, "real": 0.25})
    assert (clear.confidence, clear.decision, clear.reason) == (None, None, "the model changed its answer under r3")
    assert (tied.label, tied.reason) == ("fake", "fake and real are tied")
    assert (silent.label, silent.decision, silent.reason) == (None, "review", "no model gave a usable answer")
    assert (silent.scores, silent.confidence) == ({"fake": 0.5, "real": 0.5}, None)


def test_the_label_is_the_most_probable_one_even_if_another_has_the_higher_score() -> None:
    votes = votes_of([[[0, 1, 1, 1]], [[1, 1, 1, 1]]])
    calibrator = Calibrator(labels=votes.labels, slope=1.0, offsets=np.array([2.0, 0.0]))
    sets = PredictionSets(threshold=0.9, miss_rate=0.1, rows=30)
    model = Model(weights=Weights.uniform(votes), calibrator=calibrator, certificate=promising(0.7), sets=sets)
    verdicts = model.judged(votes)
    assert verdicts.best.tolist() == the(verdicts.probabilities).argmax(axis=1).tolist() == [0, 1]
    assert verdicts.scores.argmax(axis=1).tolist() == [1, 1]
    first, second = model.judge(votes)
    assert (first.label, first.decision, first.label_set) == ("fake", "accept", ("fake",))
    assert first.confidence == pytest.approx(0.27 * np.exp(2) / (0.27 * np.exp(2) + 0.77))
    assert second.label == "real"
    assert second.confidence == pytest.approx(1.02 / (1.02 + 0.02 * np.exp(2)))
    without = Model(weights=model.weights, calibrator=None)
    assert [outcome.label for outcome in without.judge(votes)] == ["real", "real"]


def test_offsets_break_a_tie_of_scores_and_the_reason_does_not_call_it_one() -> None:
    votes = votes_of([[[0, 1], [1, 0]]])
    calibrator = Calibrator(labels=votes.labels, slope=1.0, offsets=np.array([0.0, 0.1]))
    (one,) = Model(weights=Weights.uniform(votes), calibrator=calibrator).judge(votes)
    assert one.label == "real"
    assert "tied" not in one.reason
    (even,) = Model(weights=Weights.uniform(votes), calibrator=EVEN).judge(votes)
    assert (even.label, even.confidence, even.reason) == ("fake", 0.5, "fake and real are tied")


PROMISE = Promise(max_error=0.1)
THREE = votes_of([[[0, 0, 0, 0]], [[0, 0, 1, 0]], [[-1, -1, -1, -1]]])
EVEN = Calibrator(labels=("fake", "real"), slope=1.0, offsets=np.zeros(2))


def promising(threshold: float) -> Certificate:
    return Certificate(promise=PROMISE, gold_rows=30, thresholds={EVERY_LABEL: threshold})


def decisions(model: Model) -> list[str | None]:
    return [outcome.decision for outcome in model.judge(THREE)]


def test_labels_are_accepted_at_the_threshold_or_above_and_never_without_answers() -> None:
    weights = Weights.uniform(THREE)
    assert decisions(Model(weights=weights, calibrator=EVEN, certificate=promising(0.9))) == [
        "accept",
        "review",
        "review",
    ]
    assert decisions(Model(weights=weights, calibrator=EVEN, certificate=promising(0.0))) == [
        "accept",
        "accept",
        "review",
    ]


def test_a_promise_without_a_confidence_accepts_nothing() -> None:
    assert (
        decisions(Model(weights=Weights.uniform(THREE), calibrator=None, certificate=promising(0.0))) == ["review"] * 3
    )


def test_without_a_requested_promise_only_rows_without_answers_get_a_decision() -> None:
    model = Model(weights=Weights.uniform(THREE), calibrator=EVEN)
    assert decisions(model) == [None, None, "review"]
    assert model.decided_by == ""
    assert model.with_coverage(THREE) is model


def test_without_gold_unanimous_rows_agree_and_none_is_accepted() -> None:
    model = Model(weights=Weights.uniform(THREE), calibrator=None, by_agreement=True)
    clear, split, silent = model.judge(THREE)
    assert [clear.decision, split.decision, silent.decision] == ["agree", "review", "review"]
    accepted = the(model.judged(THREE).accepted)
    assert not accepted.any()
    assert clear.reason.startswith("uncalibrated: ")
    assert split.reason.startswith("uncalibrated: ")
    assert silent.reason == "no model gave a usable answer"
    assert (clear.confidence, model.decided_by) == (None, "agreement")
    assert model.with_coverage(THREE) is model


def test_a_single_answer_never_agrees() -> None:
    codes = np.full((3, 1, 2, 1), NOT_ASKED, dtype=np.int8)
    codes[:, 0, 0, 0] = 0
    codes[1, 0, 1, 0] = ABSTAINED
    codes[2, 0, 1, 0] = 0
    votes = Votes(
        codes=codes, ids=["1", "2", "3"], annotators=["a"], relations=["original", "order"], labels=["x", "y"]
    )
    model = Model(weights=Weights.uniform(votes), calibrator=None, by_agreement=True)
    one, unreadable, two = model.judge(votes)
    assert [one.decision, unreadable.decision, two.decision] == ["review", "review", "agree"]
    assert one.reason == "uncalibrated: the only answer says x"


def test_agreement_is_about_answers_and_not_about_how_sure_they_are() -> None:
    grades = np.full((3, 1, 4, 1, 2), np.nan)
    grades[0] = [0.6, 0.4]  # all say fake
    grades[1, 0, :2] = [[[0.9, 0.0]], [[0.9, 0.1]]]  # one of the hard votes says real
    votes = replace(THREE, grades=grades)
    model = Model(weights=fit_weights(votes, {}, "uniform"), calibrator=None, by_agreement=True)
    assert [one.decision for one in model.judge(votes)] == ["agree", "review", "review"]
    assert model.judged(votes).scores.max() < 1
    contradicted = replace(votes, grades=np.where(np.isnan(grades), np.nan, grades[..., ::-1]))
    assert [one.decision for one in model.judge(contradicted)] == ["review"] * 3


def test_with_coverage_counts_the_rows_at_hand() -> None:
    model = Model(weights=Weights.uniform(THREE), calibrator=EVEN, certificate=promising(0.9))
    found = the(model.with_coverage(THREE).certificate)
    assert found.accepted_share == pytest.approx(1 / 3)
    assert found.review_rows == 2


def test_label_sets_contain_the_label_and_grow_with_uncertainty() -> None:
    votes, gold = simulated_votes([0.6, 0.5], items=120)
    model = learn_model(votes, gold, Learning(sets=True))
    outcomes = list(model.judge(votes))
    sizes = [len(outcome.label_set) for outcome in outcomes]
    confidence = [outcome.confidence or 0.0 for outcome in outcomes]
    assert np.mean([label in one.label_set for one, label in zip(outcomes, gold, strict=True)]) > 0.8
    assert np.corrcoef(sizes, confidence)[0, 1] < 0
    bare = Model(weights=model.weights, calibrator=None, sets=model.sets)
    assert {outcome.label_set for outcome in bare.judge(votes)} == {()}


def test_everything_learned_survives_json() -> None:
    votes, gold = simulated_votes([0.9, 0.8], items=80)
    model = learn_model(votes, gold, Learning(promise=PROMISE, sets=True, version="1")).with_coverage(votes)
    again = from_plain(Model, json.loads(json.dumps(model.to_dict())))
    assert list(again.judge(votes)) == list(model.judge(votes))
    assert again.certificate == model.certificate
    assert again.to_dict() == model.to_dict()
