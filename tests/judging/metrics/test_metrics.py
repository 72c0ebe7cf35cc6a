from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn.metrics import f1_score, roc_auc_score
from sklearn.metrics import log_loss as sklearn_log_loss

from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.errors import UndefinedMetric
from pcs_annotator.judging.metrics.metrics import (
    METRICS,
    Metric,
    accuracy,
    accuracy_at_coverage,
    aurc,
    auroc,
    binary_auroc,
    brier,
    ece,
    log_loss,
    macro_auroc,
    macro_f1,
    midranks,
    reliability,
    review_share,
    risk_coverage,
)


def codes(*values: int) -> Codes:
    return np.array(values, dtype=np.int8)


def two_labels(*first: float) -> Floats:
    return np.array([[value, 1 - value] for value in first])


# confidences .9 .8 .7 .6; right, right, wrong, right
SCORES, GOLD = two_labels(0.9, 0.2, 0.7, 0.4), codes(0, 1, 1, 1)


@st.composite
def tied_scores(draw: st.DrawFn) -> tuple[Floats, Codes]:
    """Coarse scores, so that many are equal, and gold with at least two classes."""
    labels, rows = draw(st.integers(2, 4)), draw(st.integers(4, 25))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    counts = rng.multinomial(3, np.full(labels, 1 / labels), size=rows)
    gold = rng.integers(labels, size=rows)
    gold[:labels] = np.arange(labels)
    return counts / 3, gold.astype(np.int8)


@settings(deadline=None)
@given(tied_scores())
def test_auroc_equals_scikit_learn_with_ties(rows: tuple[Floats, Codes]) -> None:
    scores, gold = rows
    for label in range(scores.shape[1]):
        theirs = roc_auc_score(gold == label, scores[:, label])
        assert binary_auroc(scores[:, label], gold == label) == pytest.approx(theirs, abs=1e-12)
    if scores.shape[1] > 2:
        theirs = roc_auc_score(gold, scores, multi_class="ovr", average="macro")
        assert auroc(scores, gold) == pytest.approx(theirs, abs=1e-12)


@settings(deadline=None, max_examples=50)
@given(rows=tied_scores(), seed=st.integers(0, 1000))
def test_no_metric_depends_on_the_order_of_rows_or_labels(rows: tuple[Floats, Codes], seed: int) -> None:
    scores, gold = rows
    rng = np.random.default_rng(seed)
    order, labels = rng.permutation(len(gold)), rng.permutation(scores.shape[1])
    turned = scores[np.ix_(order, labels)]
    regold = np.argsort(labels)[gold[order]].astype(np.int8)
    for name, metric in METRICS.items():
        assert metric(turned, regold) == pytest.approx(metric(scores, gold), abs=1e-12), name
    assert accuracy_at_coverage(turned, regold, 0.3) == pytest.approx(accuracy_at_coverage(scores, gold, 0.3))
    assert review_share(turned, regold, 0.8) == review_share(scores, gold, 0.8)


@settings(deadline=None, max_examples=50)
@given(tied_scores())
def test_no_metric_is_ever_nan(rows: tuple[Floats, Codes]) -> None:
    for metric in METRICS.values():
        assert np.isfinite(metric(*rows))


@settings(deadline=None, max_examples=50)
@given(tied_scores())
def test_log_loss_equals_scikit_learn(rows: tuple[Floats, Codes]) -> None:
    scores = 0.9 * rows[0] + 0.1 / rows[0].shape[1]
    theirs = sklearn_log_loss(rows[1], scores, labels=range(scores.shape[1]))
    assert log_loss(scores, rows[1]) == pytest.approx(theirs, abs=1e-9)


def test_log_loss_of_an_impossible_label_is_finite() -> None:
    assert log_loss(two_labels(0.0), codes(0)) == pytest.approx(-np.log(1e-12))


def test_equal_values_share_their_mean_rank() -> None:
    assert midranks(np.array([3.0, 1.0, 3.0, 2.0, 3.0])).tolist() == [4, 1, 4, 2, 4]


def test_absent_class_is_left_out_of_the_mean_and_named() -> None:
    scores = np.array([[0.8, 0.1, 0.1], [0.3, 0.6, 0.1], [0.4, 0.5, 0.1]])
    found = macro_auroc(scores, codes(0, 1, 0))
    assert found.left_out == (2,)
    assert set(found.by_label) == {0, 1}
    assert found.value == np.mean(list(found.by_label.values()))


@pytest.mark.parametrize("metric", [auroc, lambda scores, gold: binary_auroc(scores[:, 0], gold == 0)])
def test_auroc_of_a_single_class_is_undefined(metric: Metric) -> None:
    with pytest.raises(UndefinedMetric, match="label more rows"):
        metric(two_labels(0.1, 0.9), codes(1, 1))


@pytest.mark.parametrize("name", METRICS)
def test_no_rows_give_no_figure(name: str) -> None:
    with pytest.raises(UndefinedMetric, match="no rows to judge"):
        METRICS[name](np.empty((0, 2)), codes())


def test_accuracy_shares_ties() -> None:
    scores = np.array([[0.4, 0.4, 0.2], [1, 0, 0], [1 / 3, 1 / 3, 1 / 3], [0.5, 0.0, 0.5]])
    assert accuracy(scores, codes(0, 0, 2, 1)) == pytest.approx((1 / 2 + 1 + 1 / 3 + 0) / 4)


def test_macro_f1_by_hand() -> None:
    # predicted 0 1 0 1, true 0 1 1 1: F1 is 2·1/(2+1) and 2·2/(2+3)
    assert macro_f1(SCORES, GOLD) == pytest.approx((2 / 3 + 4 / 5) / 2)


def test_macro_f1_leaves_out_labels_that_nobody_speaks_of() -> None:
    padded = np.column_stack([SCORES, np.zeros(4)])
    assert macro_f1(padded, GOLD) == pytest.approx(macro_f1(SCORES, GOLD))


def test_macro_f1_equals_scikit_learn_without_ties() -> None:
    rng = np.random.default_rng(0)
    scores, gold = rng.dirichlet(np.ones(3), 60), rng.integers(3, size=60).astype(np.int8)
    assert macro_f1(scores, gold) == pytest.approx(f1_score(gold, scores.argmax(axis=1), average="macro"))


def test_macro_f1_shares_tied_rows() -> None:
    # the tied row is half a 0 and half a 1; both labels then have 1 predicted, ½ right, of 1 true
    assert macro_f1(two_labels(0.5, 0.5), codes(0, 1)) == pytest.approx(0.5)


def test_brier_by_hand() -> None:
    assert brier(two_labels(0.9, 0.2), codes(0, 0)) == pytest.approx((2 * 0.1**2 + 2 * 0.8**2) / 2)
    assert brier(two_labels(0.0), codes(0)) == 2


def test_ece_by_hand() -> None:
    # bins {.6, .7} and {.8, .9}: sure .65 and right ½, sure .85 and right 1
    assert ece(SCORES, GOLD, bins=2) == pytest.approx((abs(0.65 - 0.5) * 2 + abs(0.85 - 1) * 2) / 4)
    assert [one.rows for one in reliability(SCORES, GOLD, bins=2)] == [2, 2]


def test_ece_with_a_bin_per_row_is_the_mean_distance() -> None:
    assert ece(SCORES, GOLD) == pytest.approx(np.mean([0.1, 0.2, 0.7, 0.4]))


def test_rows_of_equal_confidence_share_a_bin() -> None:
    diagram = reliability(two_labels(0.8, 0.8, 0.8, 0.8, 0.9), codes(0, 0, 0, 1, 0), bins=5)
    assert [(one.rows, one.accuracy) for one in diagram] == [(4, 0.75), (1, 1.0)]
    assert diagram[0].confidence == pytest.approx(0.8)


def test_reliability_has_exact_binomial_intervals() -> None:
    rows = 30
    for right in (0, 1, 17, 30):
        gold = codes(*([0] * right + [1] * (rows - right)))
        (only,) = reliability(two_labels(*[0.8] * rows), gold)
        exact = binomtest(right, rows).proportion_ci(method="exact")
        assert only.interval == pytest.approx((exact.low, exact.high), abs=1e-9)


def test_a_tied_choice_counts_in_part_in_the_interval() -> None:
    # two tied rows are half right each, so 1 of 2; a third makes it 1½ of 3, between 1 and 2 of 3
    (two,) = reliability(two_labels(0.5, 0.5), codes(0, 1))
    exact = binomtest(1, 2).proportion_ci(method="exact")
    assert two.interval == pytest.approx((exact.low, exact.high), abs=1e-9)
    (three,) = reliability(two_labels(0.5, 0.5, 0.5), codes(0, 1, 0))
    below, above = (binomtest(right, 3).proportion_ci(method="exact") for right in (1, 2))
    assert below.low < three.interval.low < above.low
    assert below.high < three.interval.high < above.high


@settings(deadline=None, max_examples=50)
@given(tied_scores())
def test_every_accuracy_lies_inside_its_interval(rows: tuple[Floats, Codes]) -> None:
    for one in reliability(*rows):
        assert 0 <= one.interval.low <= one.accuracy + 1e-9
        assert one.accuracy - 1e-9 <= one.interval.high <= 1
        assert one.interval.high > one.interval.low


def test_risk_coverage_by_hand() -> None:
    curve = risk_coverage(SCORES, GOLD)
    assert curve.coverage.tolist() == [0.25, 0.5, 0.75, 1]
    np.testing.assert_allclose(curve.risk, [0, 0, 1 / 3, 1 / 4])


def test_risk_coverage_has_one_point_per_distinct_confidence() -> None:
    curve = risk_coverage(two_labels(0.8, 0.8, 0.6), codes(0, 1, 0))
    np.testing.assert_allclose(curve.coverage, [2 / 3, 1])
    np.testing.assert_allclose(curve.risk, [1 / 2, 1 / 3])


def test_aurc_by_hand() -> None:
    assert aurc(SCORES, GOLD) == pytest.approx((0 + 0 + 1 / 3 + 1 / 4) / 4)
    # a wrong and a right row tie in front: after one row half an error is expected
    assert aurc(two_labels(0.8, 0.8, 0.6), codes(0, 1, 0)) == pytest.approx((1 / 2 + 1 / 2 + 1 / 3) / 3)


@pytest.mark.parametrize(("coverage", "expected"), [(0.25, 1), (0.5, 1), (0.75, 2 / 3), (1.0, 3 / 4), (0.625, 0.8)])
def test_accuracy_at_coverage_by_hand(coverage: float, expected: float) -> None:
    assert accuracy_at_coverage(SCORES, GOLD, coverage) == pytest.approx(expected)


@pytest.mark.parametrize("coverage", [0.0, -0.1, 1.1])
def test_coverage_is_a_share_of_rows(coverage: float) -> None:
    with pytest.raises(UndefinedMetric, match="coverage is a share of rows"):
        accuracy_at_coverage(SCORES, GOLD, coverage)


@pytest.mark.parametrize(("target", "expected"), [(1.0, 0.5), (0.75, 0.0), (0.7, 0.0), (0.8, 0.5)])
def test_review_share_by_hand(target: float, expected: float) -> None:
    assert review_share(SCORES, GOLD, target) == pytest.approx(expected)


def test_all_rows_are_reviewed_when_no_threshold_reaches_the_target() -> None:
    assert review_share(two_labels(0.9, 0.8), codes(1, 0), 0.9) == 1
