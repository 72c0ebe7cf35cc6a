"""Vectorised figures must equal those of `metrics` on the rows that a resample drew."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.errors import UndefinedMetric
from pcs_annotator.judging.metrics import bootstrap, metrics
from pcs_annotator.judging.metrics.bootstrap import auroc_on, chosen_on, interval_around, resample_counts

COVERAGES, TARGETS = (0.5, 0.8, 1.0), (0.6, 0.9, 1.0)


@st.composite
def judged_rows(draw: st.DrawFn) -> tuple[Floats, Codes, Floats]:
    """Scores with many ties, gold, and one resample that has two classes."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows, labels = draw(st.integers(2, 30)), draw(st.integers(2, 4))
    scores = rng.dirichlet(np.full(labels, 0.7), size=rows).round(draw(st.integers(1, 3)))
    gold = rng.integers(labels, size=rows).astype(np.int8)
    gold[:2] = 0, 1
    drawn = np.concatenate([[0, 1], rng.integers(rows, size=rows - 2)])
    return scores, gold, drawn


@given(judged_rows())
@settings(max_examples=150, deadline=None)
def test_every_figure_equals_its_namesake(judged: tuple[Floats, Codes, Floats]) -> None:
    scores, gold, drawn = judged
    counts = np.bincount(drawn, minlength=len(gold)).astype(np.float64)[:, np.newaxis]
    own, truth = scores[drawn], gold[drawn]
    found = chosen_on(scores, gold, counts, COVERAGES, TARGETS)
    assert auroc_on(scores, gold, counts)[0] == pytest.approx(metrics.auroc(own, truth))
    for name in ("accuracy", "macro_f1", "brier", "ece", "aurc"):
        assert getattr(found, name)[0] == pytest.approx(getattr(metrics, name)(own, truth)), name
    for coverage, value in zip(COVERAGES, found.accuracy_at, strict=True):
        assert value[0] == pytest.approx(metrics.accuracy_at_coverage(own, truth, coverage))
    for target, value in zip(TARGETS, found.review_share, strict=True):
        assert value[0] == pytest.approx(metrics.review_share(own, truth, target))


def test_resamples_draw_as_many_rows_and_two_classes() -> None:
    gold = np.array([0, 0, 0, 1], dtype=np.int8)
    counts = np.concatenate(list(resample_counts(gold, 500, seed=3)), axis=1)
    assert counts.shape == (4, 500)
    assert (counts.sum(axis=0) == 4).all()
    assert ((counts[3] > 0) & (counts[3] < 4)).all()
    assert counts.mean(axis=1) == pytest.approx([0.83, 0.83, 0.83, 1.5], abs=0.2)


def test_resamples_come_in_parts_that_fit_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "CHUNK", 40)
    gold = np.tile(np.array([0, 1], dtype=np.int8), 5)
    parts = list(resample_counts(gold, 10, seed=0))
    assert [part.shape for part in parts[:2]] == [(10, 4), (10, 4)]
    assert sum(part.shape[1] for part in parts) == 10


def test_one_class_cannot_be_resampled() -> None:
    with pytest.raises(UndefinedMetric, match="too few"):
        list(resample_counts(np.zeros(5, dtype=np.int8), 10, seed=0))


def test_no_resamples_give_no_interval() -> None:
    with pytest.raises(UndefinedMetric, match="at least one"):
        next(resample_counts(np.array([0, 1], dtype=np.int8), 0, seed=0))


def test_interval_lies_around_the_figure() -> None:
    resampled = np.random.default_rng(0).normal(0.3, 0.1, size=5000)
    assert interval_around(0.25, resampled) == pytest.approx((0.25 - 0.196, 0.25 + 0.196), abs=0.01)
    assert interval_around(0.0, np.zeros(10)) == (0, 0)
    assert interval_around(1.0, np.array([0.9, *[1.0] * 99])) == (1, 1)


def test_intervals_of_auroc_agree_with_one_resample_at_a_time() -> None:
    rng = np.random.default_rng(1)
    gold = rng.integers(2, size=200).astype(np.int8)
    scores = np.column_stack([1 - gold, gold]) + rng.normal(size=(200, 2))
    values = np.concatenate([auroc_on(scores, gold, counts) for counts in resample_counts(gold, 2000, seed=0)])
    slow = metrics.bootstrap_estimate(metrics.auroc, scores, gold, resamples=2000, seed=5)
    assert interval_around(slow.value, values) == pytest.approx(slow.interval, abs=0.006)


def test_intervals_cover_the_true_auroc_as_often_as_they_say() -> None:
    """Two normal curves one standard deviation apart have an AUROC of Φ(1/√2)."""
    true = float(ndtr(1 / np.sqrt(2)))
    rng = np.random.default_rng(0)
    covered = []
    for seed in range(600):
        gold = np.repeat([0, 1], 60).astype(np.int8)
        logits = rng.normal(size=120) + gold
        scores = np.stack([-logits, logits], axis=1)
        [counts] = resample_counts(gold, 400, seed)
        value = float(auroc_on(scores, gold, np.ones((120, 1)))[0])
        low, high = interval_around(value, auroc_on(scores, gold, counts))
        covered.append(low <= true <= high)
    assert np.mean(covered) == pytest.approx(0.95, abs=0.02)
