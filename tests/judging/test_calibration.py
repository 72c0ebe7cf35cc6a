from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import approx_fprime

from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.errors import MismatchError
from pcs_annotator.judging import calibration
from pcs_annotator.judging.calibration import Calibrator, fit_calibrator

LABELS = ("a", "b", "c")


def loss(point: Floats, scores: Floats, gold: Codes) -> float:
    """Negative log posterior as METHOD.md §4 writes it, row by row."""
    classes = scores.shape[1]
    total = 2 * (point[0] - 1) ** 2 + 2 * float(np.sum(point[1:] ** 2))
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


def test_slope_and_offsets_are_recovered_from_many_rows() -> None:
    rng = np.random.default_rng(0)
    truth = Calibrator(labels=LABELS, slope=0.6, offsets=np.array([0.5, -0.2, -0.3]))
    scores = rng.dirichlet(np.full(3, 0.5), 20_000)
    chance = truth.apply(scores, LABELS).cumsum(axis=1)
    gold = (rng.random((20_000, 1)) > chance).sum(axis=1).astype(np.int8)
    fitted = fit_calibrator(scores, gold, LABELS)
    assert fitted.slope == pytest.approx(0.6, abs=0.03)
    np.testing.assert_allclose(fitted.offsets, truth.offsets, atol=0.08)


@pytest.mark.parametrize("seed", range(4))
def test_gradient_is_zero_at_the_fit(seed: int) -> None:
    scores, gold = random_rows(40, seed)
    slope = approx_fprime(point_of(fit_calibrator(scores, gold, LABELS)), loss, 1e-7, scores, gold)
    np.testing.assert_allclose(slope, 0, atol=1e-4)


def test_sure_and_wrong_scores_still_end_at_the_maximum() -> None:
    # a full Newton step overshoots here
    gold = (np.arange(100) % 2).astype(np.int8)
    scores = np.eye(2)[1 - gold]
    fitted = fit_calibrator(scores, gold, ("a", "b"))
    np.testing.assert_allclose(approx_fprime(point_of(fitted), loss, 1e-7, scores, gold), 0, atol=1e-3)
    assert fitted.slope < 0


def test_a_fit_cut_short_is_still_better_than_none(monkeypatch: pytest.MonkeyPatch) -> None:
    scores, gold = random_rows(40)
    best = loss(point_of(fit_calibrator(scores, gold, LABELS)), scores, gold)
    monkeypatch.setattr(calibration, "NEWTON_STEPS", 1)
    reached = loss(point_of(fit_calibrator(scores, gold, LABELS)), scores, gold)
    assert best < reached < loss(np.array([1.0, 0, 0, 0]), scores, gold)


def test_no_rows_leave_the_prior() -> None:
    fitted = fit_calibrator(np.empty((0, 3)), np.empty(0, dtype=np.int8), LABELS)
    assert (fitted.slope, fitted.offsets.tolist()) == (1.0, [0.0, 0.0, 0.0])


def test_order_of_labels_changes_nothing() -> None:
    scores, gold = random_rows(50)
    ours = fit_calibrator(scores, gold, LABELS)
    turned = fit_calibrator(scores[:, ::-1], (2 - gold).astype(np.int8), LABELS[::-1])
    np.testing.assert_allclose(
        turned.apply(scores[:, ::-1], LABELS[::-1])[:, ::-1], ours.apply(scores, LABELS), atol=1e-9
    )
    np.testing.assert_allclose(
        ours.apply(scores[:, ::-1], LABELS[::-1])[:, ::-1], ours.apply(scores, LABELS), atol=1e-12
    )


@settings(deadline=None, max_examples=60)
@given(
    hits=arrays(np.float64, (12, 3), elements=st.sampled_from([0.0, 1e-300, 1e-12, 0.5, 1.0])),
    gold=arrays(np.int8, 12, elements=st.integers(0, 2)),
)
def test_extreme_scores_give_probabilities(hits: Floats, gold: Codes) -> None:
    fitted = fit_calibrator(hits, gold, LABELS)
    probabilities = fitted.apply(hits, LABELS)
    assert np.isfinite(point_of(fitted)).all()
    assert ((probabilities > 0) & (probabilities < 1)).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-9)


def test_overconfident_scores_get_a_slope_below_one() -> None:
    rng = np.random.default_rng(1)
    gold = rng.integers(3, size=300).astype(np.int8)
    said = np.where(rng.random(300) < 0.6, gold, (gold + 1) % 3)
    assert fit_calibrator(np.eye(3)[said], gold, LABELS).slope < 0.7


def test_written_and_read_back_it_is_the_same() -> None:
    scores, gold = random_rows(30)
    fitted = fit_calibrator(scores, gold, LABELS)
    again = Calibrator.from_dict(json.loads(json.dumps(fitted.to_dict())))
    assert again.to_dict() == fitted.to_dict()
    np.testing.assert_array_equal(again.apply(scores, LABELS), fitted.apply(scores, LABELS))


def test_a_label_that_was_not_calibrated_is_refused() -> None:
    fitted = fit_calibrator(*random_rows(30), LABELS)
    with pytest.raises(MismatchError, match=r"no calibrated label is called 'z'.*learn again"):
        fitted.apply(np.full((1, 3), 1 / 3), ("a", "b", "z"))


def test_offsets_cannot_be_changed_from_outside() -> None:
    offsets = np.zeros(2)
    fitted = Calibrator(labels=["x", "y"], slope=1.0, offsets=offsets)
    offsets[0] = 5
    assert fitted.offsets.tolist() == [0, 0]
    assert fitted.labels == ("x", "y")
