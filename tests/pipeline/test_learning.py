from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pcs_annotator.core.vote import ABSTAINED
from pcs_annotator.files.config import LearnSettings
from pcs_annotator.judging.weighing.optimisers.regression import LinearRegression
from pcs_annotator.pipeline.learn import fit_for_classifier, learn, needs_gold, probabilities
from tests.builders import simulated_votes


def test_the_model_is_the_one_that_a_run_learns() -> None:
    votes, gold = simulated_votes([0.9, 0.6], items=60)
    from_run = learn(votes, gold, LearnSettings(optimiser="lr", resamples=20)).model
    here = fit_for_classifier(votes, gold, "lr", seed=0)
    assert here.weights.by_annotator == from_run.weights.by_annotator
    assert here.calibrator is not None
    assert from_run.calibrator is not None
    assert here.calibrator.to_dict() == from_run.calibrator.to_dict()


def test_an_optimiser_may_be_named_or_given() -> None:
    votes, gold = simulated_votes([0.9, 0.6], items=60)
    named, given = (fit_for_classifier(votes, gold, one, seed=0) for one in ("lr", LinearRegression()))
    assert named.weights.by_annotator == given.weights.by_annotator
    assert needs_gold("lr")
    assert needs_gold(LinearRegression())
    assert not needs_gold("dawid-skene")


def test_probabilities_come_in_the_order_asked_for_and_are_uniform_where_nobody_voted() -> None:
    votes, gold = simulated_votes([0.9, 0.6], items=60)
    codes = np.array(votes.codes)
    codes[0] = ABSTAINED
    silent = replace(votes, codes=codes)
    model = fit_for_classifier(silent, gold, "lr", seed=0)
    there, back = (probabilities(model, silent, labels) for labels in (votes.labels, votes.labels[::-1]))
    assert (there == back[:, ::-1]).all()
    assert there.sum(axis=1) == pytest.approx(1)
    assert there[0] == pytest.approx(1 / len(votes.labels))
    confidences = [outcome.confidence for outcome in model.judge(silent)]
    assert confidences[0] is None
    assert all(confidence in row for confidence, row in zip(confidences[1:], there[1:].tolist(), strict=True))
