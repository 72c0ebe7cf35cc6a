import json
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from pcs_annotator.base.errors import MismatchError
from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.judging import solver
from pcs_annotator.judging.calibrate import UNCALIBRATED, CalibrationMethod, Calibrator, fit_calibrator, tempered
from tests.judging.metrics.alone import ece, log_loss

LABELS = ("a", "b", "c")
METHODS = get_args(CalibrationMethod)


def loss(point: Floats, scores: Floats, gold: Codes) -> float:
    """Negative log posterior, row by row."""
    classes = scores.shape[1]
    total = 2 * (point[0] - 1) ** 2 + float(np.sum(point[1:] ** 2)) / 2
    for row, truth in zip(scores, gold, strict=True):
        logits = point[0] * np.log((row + 0.02) / (1 + 0.02 * classes)) + point[1:]
        total -= logits[truth] - np.log(np.sum(np.exp(logits)))
    return float(total)


def point_of(fitted: Calibrator) -> Floats:
    return np.concatenate([[fitted.slope], fitted.offsets])


def random_rows(rows: int, seed: int = 0) -> tuple[Floats, Codes]:
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(3, 0.4), rows), rng.integers(3, size=rows).astype(np.int8)


def test_formula_by_hand() -> None:
    fitted = Calibrator(labels=("x", "y"), slope=0.5, offsets=np.array([0.1, -0.1]))
    raised = [np.sqrt(0.77 / 1.04) * np.exp(0.1), np.sqrt(0.27 / 1.04) * np.exp(-0.1)]
    np.testing.assert_allclose(
        fitted.apply(np.array([[0.75, 0.25]]), ("x", "y")), [np.array(raised) / sum(raised)], atol=1e-12
    )


def test_confidence_from_twenty_rows_does_not_exceed_nine_tenths() -> None:
    gold = (np.arange(20) % 2).astype(np.int8)
    fitted = fit_calibrator(np.eye(2)[gold], gold, ("a", "b"))
    assert fitted.apply(np.eye(2), ("a", "b")).max() < 0.9


def test_shrinking_keeps_labels_and_the_order_of_rows() -> None:
    scores, gold = random_rows(12)
    shrunk = fit_calibrator(scores, gold, LABELS)
    plain = replace(shrunk, shrunk=0.0)
    some, all_of_it = (one.apply(scores, LABELS) for one in (shrunk, plain))
    np.testing.assert_array_equal(some.argmax(axis=1), all_of_it.argmax(axis=1))
    np.testing.assert_array_equal(some.argmax(axis=1), shrunk.strengths(scores, LABELS).argmax(axis=1))
    np.testing.assert_array_equal(np.argsort(some.max(axis=1)), np.argsort(all_of_it.max(axis=1)))
    np.testing.assert_allclose(some.sum(axis=1), 1)
    assert (some.max(axis=1) < all_of_it.max(axis=1)).all()


@pytest.mark.parametrize("seed", range(4))
def test_gradient_is_zero_at_the_fit(seed: int) -> None:
    scores, gold = random_rows(40, seed)
    slope = approx_fprime(point_of(fit_calibrator(scores, gold, LABELS)), loss, 1e-7, scores, gold)
    np.testing.assert_allclose(slope, 0, atol=1e-4)


def test_confident_and_wrong_scores_still_reach_the_maximum() -> None:
    # a full Newton step overshoots here
    gold = (np.arange(100) % 2).astype(np.int8)
    scores = np.eye(2)[1 - gold]
    fitted = fit_calibrator(scores, gold, ("a", "b"))
    np.testing.assert_allclose(approx_fprime(point_of(fitted), loss, 1e-7, scores, gold), 0, atol=1e-3)
    assert point_of(fitted)[0] < 0


def test_a_fit_cut_short_is_still_better_than_none(monkeypatch: pytest.MonkeyPatch) -> None:
    scores, gold = random_rows(40)
    best = loss(point_of(fit_calibrator(scores, gold, LABELS)), scores, gold)
    monkeypatch.setattr(solver, "NEWTON_STEPS", 1)
    reached = loss(point_of(fit_calibrator(scores, gold, LABELS)), scores, gold)
    assert best < reached < loss(np.array([1.0, 0, 0, 0]), scores, gold)


@pytest.mark.parametrize("method", METHODS)
def test_order_of_labels_changes_nothing(method: str) -> None:
    scores, gold = random_rows(50)
    ours = fit_calibrator(scores, gold, LABELS, method)
    turned = fit_calibrator(scores[:, ::-1], (2 - gold).astype(np.int8), LABELS[::-1], method)
    np.testing.assert_allclose(
        turned.apply(scores[:, ::-1], LABELS[::-1])[:, ::-1], ours.apply(scores, LABELS), atol=1e-9
    )
    np.testing.assert_allclose(
        ours.apply(scores[:, ::-1], LABELS[::-1])[:, ::-1], ours.apply(scores, LABELS), atol=1e-12
    )


@pytest.mark.parametrize("method", METHODS)
def test_a_calibrator_survives_json(method: str) -> None:
    scores, gold = random_rows(60)
    fitted = fit_calibrator(scores, gold, LABELS, method)
    again = Calibrator.from_dict(json.loads(json.dumps(fitted.to_dict())))
    assert (type(again), again.method, again.to_dict()) == (type(fitted), method, fitted.to_dict())
    np.testing.assert_array_equal(again.apply(scores, LABELS), fitted.apply(scores, LABELS))


@pytest.mark.parametrize("method", METHODS)
def test_the_strongest_label_is_the_most_probable_and_strength_rises_with_the_labels_own_score_alone(
    method: str,
) -> None:
    scores, gold = random_rows(80)
    fitted = fit_calibrator(scores, gold, LABELS, method)
    strengths = fitted.strengths(scores, LABELS)
    np.testing.assert_array_equal(strengths.argmax(axis=1), fitted.apply(scores, LABELS).argmax(axis=1))
    assert fitted.rising
    for column in range(3):
        order = np.argsort(scores[:, column])
        assert (np.diff(strengths[order, column]) >= 0).all()
    np.testing.assert_array_equal(fitted.strengths(scores[:, np.newaxis], LABELS)[:, 0], strengths)


def test_a_slope_below_zero_does_not_rise() -> None:
    scores = np.repeat([[0.9, 0.1], [0.1, 0.9]], 100, axis=0)
    fitted = fit_calibrator(scores, np.repeat(np.array([1, 0], dtype=np.int8), 100), ("a", "b"))
    assert not fitted.rising
    assert fitted.apply(scores, ("a", "b"))[0].argmax() == 1


@pytest.mark.parametrize("method", METHODS)
def test_a_power_changes_probabilities_and_no_label(method: str) -> None:
    scores, gold = random_rows(80)
    fitted = fit_calibrator(scores, gold, LABELS, method)
    before, after = (one.apply(scores, LABELS) for one in (fitted, fitted.raised_to(0.3).raised_to(2.0)))
    np.testing.assert_array_equal(before.argmax(axis=1), after.argmax(axis=1))
    if method != "none":
        raised = before**0.6
        np.testing.assert_allclose(after, raised / raised.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("sharper", [0.5, 2.0])
def test_tempering_undoes_how_much_sharper_scores_became(sharper: float) -> None:
    rng = np.random.default_rng(4)
    usual = fit_calibrator(*random_rows(80), LABELS)
    whole = rng.dirichlet(np.full(3, 0.4), 5000)
    honest = usual.apply(whole, LABELS)
    gold = (rng.random((5000, 1)) > honest.cumsum(axis=1)).sum(axis=1).astype(np.int8)
    assert tempered(usual, whole, whole, gold, LABELS).to_dict() == usual.to_dict()
    part = whole**sharper / np.sum(whole**sharper, axis=1, keepdims=True)
    found = tempered(usual, whole, part, gold, LABELS)
    before, after = usual.apply(part, LABELS), found.apply(part, LABELS)
    assert (before.max(axis=1).mean() > after.max(axis=1).mean()) == (sharper > 1)
    assert log_loss(after, gold) < log_loss(before, gold)
    np.testing.assert_array_equal(before.argmax(axis=1), after.argmax(axis=1))


def test_tempering_on_no_rows_and_of_raw_scores_changes_nothing() -> None:
    usual = fit_calibrator(*random_rows(80), LABELS)
    scores, gold = random_rows(2)
    same = tempered(usual, scores[:0], scores[:0], gold[:0], LABELS)
    assert point_of(same).tolist() == pytest.approx(point_of(usual).tolist())
    assert tempered(UNCALIBRATED, scores, scores, gold, LABELS) is UNCALIBRATED


def test_a_calibrator_of_an_unknown_method_is_refused() -> None:
    with pytest.raises(MismatchError, match="'platt'"):
        Calibrator.from_dict({"method": "platt"})


def test_a_label_that_was_not_calibrated_is_refused() -> None:
    fitted = fit_calibrator(*random_rows(60), LABELS)
    with pytest.raises(MismatchError, match="'z'"):
        fitted.apply(np.full((1, 3), 1 / 3), ("a", "b", "z"))


def test_overconfident_scores_become_calibrated_on_unseen_rows() -> None:
    rng = np.random.default_rng(3)
    sharp = rng.dirichlet(np.full(3, 0.3), 6000)
    honest = Calibrator(labels=LABELS, slope=0.5, offsets=np.zeros(3)).apply(sharp, LABELS)
    gold = (rng.random((6000, 1)) > honest.cumsum(axis=1)).sum(axis=1).astype(np.int8)
    fitted = fit_calibrator(sharp[:1000], gold[:1000], LABELS)
    said = fitted.apply(sharp[1000:], LABELS)
    assert ece(sharp[1000:], gold[1000:]) > 0.1
    assert ece(said, gold[1000:]) < 0.04
    assert log_loss(said, gold[1000:]) < log_loss(sharp[1000:], gold[1000:])
