import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from pcs_annotator.base.plain import from_plain, to_plain
from pcs_annotator.core.weights import Interval
from pcs_annotator.judging.evaluate.held_out_figures import MOST_POINTS, MOST_ROC, Curves, curves_of
from pcs_annotator.judging.heldout import HeldOut
from pcs_annotator.judging.metrics.figures import reliability


def trial_of(scores: object, gold: object, probabilities: object = None) -> HeldOut:
    given = np.asarray(scores, dtype=np.float64)
    sure = given if probabilities is None else np.asarray(probabilities, dtype=np.float64)
    labels = [f"label-{place}" for place in range(given.shape[1])]
    return HeldOut(np.asarray(gold, dtype=np.int8), given, sure, labels)


def made_trial(rows: int, labels: int = 3, seed: int = 0) -> HeldOut:
    """Scores that are mostly highest for the gold label, rounded so that some tie."""
    rng = np.random.default_rng(seed)
    gold = np.append(np.arange(labels), rng.integers(labels, size=rows - labels))
    scores = rng.random((rows, labels)) + 0.6 * np.eye(labels)[gold]
    scores = np.round(scores / scores.sum(axis=1, keepdims=True), 2)
    return trial_of(scores, gold, scores**2 / (scores**2).sum(axis=1, keepdims=True))


FOUR = trial_of([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6]], [0, 1, 1, 1])


def test_risk_is_the_error_among_the_most_confident_rows_by_hand() -> None:
    risk = curves_of(FOUR, resamples=10).risk
    assert risk.coverage == [0.25, 0.5, 0.75, 1.0]
    assert risk.risk == [0.0, 0.5, round(1 / 3, 5), 0.25]
    # Clopper–Pearson for 1 of 4, as tables give it
    assert (risk.low[-1], risk.high[-1]) == pytest.approx((0.0063, 0.8059), abs=1e-4)
    assert (risk.low[0], risk.high[0]) == pytest.approx((0.0, 0.975), abs=1e-5)


def test_the_roc_of_each_label_by_hand() -> None:
    second, first = curves_of(FOUR, resamples=10).roc
    assert (second.label, first.label) == ("label-1", "label-0")
    assert first.false_alarms == [0.0, 0.0, round(1 / 3, 5), round(2 / 3, 5), 1.0]
    assert first.hits == [0.0, 1.0, 1.0, 1.0, 1.0]
    assert (first.auroc.value, first.auroc.n) == (1.0, 1)
    assert (second.auroc.value, second.auroc.n) == (1.0, 3)


@given(st.integers(20, 400), st.integers(2, 9), st.integers(0, 99))
def test_curves_rise_from_corner_to_corner_and_enclose_their_auroc(rows: int, labels: int, seed: int) -> None:
    trial = made_trial(rows, labels, seed)
    curves = curves_of(trial, resamples=20)
    assert len(curves.roc) == labels
    assert [bool(roc.hits) for roc in curves.roc] == [place < MOST_ROC for place in range(labels)]
    for roc in curves.roc:
        label = trial.labels.index(roc.label)
        assert roc.auroc.value == pytest.approx(roc_auc_score(trial.gold == label, trial.scores[:, label]), abs=1e-5)
        assert roc.auroc.interval.low <= roc.auroc.value <= roc.auroc.interval.high
    for roc in curves.roc[:MOST_ROC]:
        assert (roc.false_alarms[0], roc.hits[0]) == (0, 0)
        assert (roc.false_alarms[-1], roc.hits[-1]) == (1, 1)
        for axis in (roc.false_alarms, roc.hits):
            assert all(earlier <= later for earlier, later in pairwise(axis))
        assert np.trapezoid(roc.hits, roc.false_alarms) == pytest.approx(roc.auroc.value, abs=0.02)
    assert curves.risk.coverage[-1] == 1
    assert curves.risk.risk[-1] == pytest.approx(1 - trial.judged.right.mean(), abs=1e-5)
    for low, risk, high in zip(curves.risk.low, curves.risk.risk, curves.risk.high, strict=True):
        assert 0 <= low <= risk <= high <= 1


def test_the_reliability_diagram_covers_every_row_once_and_has_fewer_bins_for_few_rows() -> None:
    for rows, bins in ((20, 3), (60, 5), (1000, 10)):
        trial = made_trial(rows)
        curves = curves_of(trial, resamples=10)
        assert len(curves.raw) <= bins
        assert sum(one.rows for one in curves.raw) == sum(one.rows for one in curves.calibrated) == rows
        for shown, exact in zip(curves.calibrated, reliability(trial.probabilities, trial.gold, bins), strict=True):
            assert shown.confidence == pytest.approx(exact.confidence, abs=1e-5)
            assert shown.interval == pytest.approx(exact.interval, abs=1e-5)


def test_long_curves_are_thinned_but_keep_their_ends() -> None:
    rng = np.random.default_rng(0)
    sure = rng.random(3000)
    curves = curves_of(trial_of(np.stack([sure, 1 - sure], axis=1), rng.integers(2, size=3000)), resamples=10)
    assert len(curves.risk.coverage) == MOST_POINTS
    assert all(len(roc.hits) == MOST_POINTS for roc in curves.roc)
    assert curves.risk.coverage[-1] == 1
    assert curves.roc[0].hits[-1] == 1


def test_curves_survive_json() -> None:
    curves = curves_of(made_trial(80, labels=8), resamples=10)
    back = from_plain(Curves, json.loads(json.dumps(to_plain(curves), allow_nan=False)))
    assert back == curves
    assert isinstance(back.raw[0].interval, Interval)
