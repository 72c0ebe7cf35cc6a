from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata
from sklearn.metrics import roc_auc_score

from pcs_annotator.base.errors import UndefinedMetric
from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.judging.metrics import figures as metrics
from pcs_annotator.judging.metrics.figures import auroc, auroc_confidence, reliability
from tests.builders import the
from tests.judging.metrics.alone import accuracy, ece

COVERAGES, TARGETS = (0.3, 0.5, 0.8, 1.0), (0.6, 0.8, 0.9, 1.0)


def figure(name: str, scores: Floats, gold: Codes, place: int | None = None, **options: tuple[float, ...]) -> float:
    """One of the figures of the chosen labels on the rows at hand; `place` for those that have several."""
    found = getattr(metrics.chosen_on(scores, gold, np.ones((len(gold), 1)), **options), name)
    return float(found[0] if place is None else found[place][0])


macro_f1, brier, aurc = (partial(figure, name) for name in ("macro_f1", "brier", "aurc"))


def accuracy_at(scores: Floats, gold: Codes, coverage: float) -> float:
    return figure("accuracy_at", scores, gold, 0, coverages=(coverage,))


def review_share(scores: Floats, gold: Codes, target: float) -> float:
    return figure("review_share", scores, gold, 0, targets=(target,))


METRICS: dict[str, Callable[[Floats, Codes], float]] = {
    "auroc": auroc,
    "accuracy": accuracy,
    "ece": ece,
    "macro_f1": macro_f1,
    "brier": brier,
    "aurc": aurc,
}


def codes(*values: int) -> Codes:
    return np.array(values, dtype=np.int8)


def two_labels(*first: float) -> Floats:
    return np.array([[value, 1 - value] for value in first])


# confidences .9 .8 .7 .6; right, right, wrong, right
SCORES, GOLD = two_labels(0.9, 0.2, 0.7, 0.4), codes(0, 1, 1, 1)


class Resample(NamedTuple):
    scores: Floats
    gold: Codes
    counts: Floats

    @property
    def rows(self) -> tuple[Floats, Codes]:
        """The rows that it drew, each as often as it was drawn."""
        drawn = np.repeat(np.arange(len(self.gold)), self.counts[:, 0].astype(np.intp))
        return self.scores[drawn], self.gold[drawn]


@st.composite
def tied_scores(draw: st.DrawFn) -> tuple[Floats, Codes]:
    """Coarse scores, so that many are equal, and gold with at least two classes."""
    labels, rows = draw(st.integers(2, 4)), draw(st.integers(4, 25))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    counts = rng.multinomial(3, np.full(labels, 1 / labels), size=rows)
    gold = rng.integers(labels, size=rows)
    gold[:labels] = np.arange(labels)
    return counts / 3, gold.astype(np.int8)


@st.composite
def resamples(draw: st.DrawFn) -> Resample:
    """Scores with many ties, gold, and one resample that has two classes."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows, labels = draw(st.integers(2, 30)), draw(st.integers(2, 4))
    scores = rng.dirichlet(np.full(labels, 0.7), size=rows).round(draw(st.integers(1, 3)))
    gold = rng.integers(labels, size=rows).astype(np.int8)
    gold[:2] = 0, 1
    drawn = np.concatenate([[0, 1], rng.integers(rows, size=rows - 2)])
    return Resample(scores, gold, np.bincount(drawn, minlength=rows).astype(np.float64)[:, np.newaxis])


def hits_of(scores: Floats, gold: Codes) -> Floats:
    """How right each row is: 1, or its share of a tie."""
    best = scores == scores.max(axis=1, keepdims=True)
    return np.asarray(best[np.arange(len(gold)), gold] / best.sum(axis=1))


def expected_errors(scores: Floats, gold: Codes) -> list[float]:
    """Errors among the 0, 1, …, n most confident rows; rows that tie come in random order."""
    sure, wrong, errors = scores.max(axis=1), 1 - hits_of(scores, gold), [0.0]
    for value in sorted(set(sure.tolist()), reverse=True):
        tied = wrong[sure == value]
        errors += [errors[-1] + tied.mean() * (row + 1) for row in range(len(tied))]
    return errors


def slow_ece(drawn: Resample) -> float:
    """The mean gap of all bins, less the mean size of a normal variable with the variance of a calibrated bin."""
    (scores, gold), counts = drawn.rows, drawn.counts[:, 0]
    sure, right = scores.max(axis=1), hits_of(scores, gold)
    place = np.floor((rankdata(sure) - 0.5) / len(gold) * metrics.BINS)
    total = 0.0
    for one in set(place.tolist()):
        inside = np.isin(drawn.scores.max(axis=1), sure[place == one])
        variance = 0.0
        for row, count in zip(drawn.scores[inside], counts[inside], strict=True):
            chance, tied = row.max(), (row == row.max()).sum()
            variance += count**2 * max(chance / tied - chance**2, 0)
        total += abs((sure - right)[place == one].sum()) - np.sqrt(2 / np.pi * variance)
    return max(total / len(gold), 0.0)


def raw_ece(scores: Floats, gold: Codes) -> float:
    gaps = [one.rows * abs(one.confidence - one.accuracy) for one in reliability(scores, gold)]
    return sum(gaps) / len(gold)


def slow_review_share(scores: Floats, gold: Codes, target: float) -> float:
    sure, right = scores.max(axis=1), hits_of(scores, gold)
    good = [(sure >= least).mean() for least in sure if right[sure >= least].mean() >= target - 1e-12]
    return 1 - max(good, default=0.0)


@given(resamples())
def test_every_figure_on_counts_equals_its_definition_on_the_rows_drawn(drawn: Resample) -> None:
    scores, gold = drawn.rows
    found = metrics.chosen_on(*drawn, coverages=COVERAGES, targets=TARGETS)
    assert metrics.auroc_on(*drawn)[0] == pytest.approx(auroc(scores, gold))
    assert found.accuracy[0] == pytest.approx(hits_of(scores, gold).mean())
    assert found.brier[0] == pytest.approx(np.mean(np.sum((scores - np.eye(scores.shape[1])[gold]) ** 2, axis=1)))
    assert found.macro_f1[0] == pytest.approx(macro_f1(scores, gold))
    assert found.ece[0] == pytest.approx(slow_ece(drawn))
    rows, errors = len(gold), expected_errors(scores, gold)
    assert found.aurc[0] == pytest.approx(np.mean([errors[taken] / taken for taken in range(1, rows + 1)]))
    for coverage, value in zip(COVERAGES, found.accuracy_at, strict=True):
        assert value[0] == pytest.approx(1 - np.interp(coverage * rows, range(rows + 1), errors) / (coverage * rows))
    for target, value in zip(TARGETS, found.review_share, strict=True):
        assert value[0] == pytest.approx(slow_review_share(scores, gold, target))


@given(tied_scores())
def test_auroc_equals_scikit_learn_with_ties(rows: tuple[Floats, Codes]) -> None:
    scores, gold = rows
    for label in range(scores.shape[1]):
        theirs = roc_auc_score(gold == label, scores[:, label])
        against_the_rest = np.stack([-scores[:, label], scores[:, label]], axis=1)
        assert auroc(against_the_rest, (gold == label).astype(np.int8)) == pytest.approx(theirs, abs=1e-12)
    if scores.shape[1] > 2:
        theirs = roc_auc_score(gold, scores, multi_class="ovr", average="macro")
        assert auroc(scores, gold) == pytest.approx(theirs, abs=1e-12)


@given(rows=tied_scores(), seed=st.integers(0, 1000))
def test_no_metric_depends_on_the_order_of_rows_or_labels(rows: tuple[Floats, Codes], seed: int) -> None:
    scores, gold = rows
    rng = np.random.default_rng(seed)
    order, labels = rng.permutation(len(gold)), rng.permutation(scores.shape[1])
    turned = scores[np.ix_(order, labels)]
    regold = np.argsort(labels)[gold[order]].astype(np.int8)
    for name, metric in METRICS.items():
        assert metric(turned, regold) == pytest.approx(metric(scores, gold), abs=1e-12), name
    assert accuracy_at(turned, regold, 0.3) == pytest.approx(accuracy_at(scores, gold, 0.3))
    assert review_share(turned, regold, 0.8) == review_share(scores, gold, 0.8)


def test_auroc_of_a_single_class_is_undefined() -> None:
    with pytest.raises(UndefinedMetric, match="all 2 rows"):
        auroc(two_labels(0.1, 0.9), codes(1, 1))


@given(tied_scores())
def test_confidence_auroc_equals_scikit_learn_on_right_and_wrong_labels(rows: tuple[Floats, Codes]) -> None:
    scores, gold = rows
    hits = hits_of(scores, gold)
    right, wrong = hits.sum(), (1 - hits).sum()
    if right < 1e-9 or wrong < 1e-9:
        with pytest.raises(UndefinedMetric, match="right and wrong labels"):
            auroc_confidence(scores, gold)
        return
    confidence, truth = np.tile(scores.max(axis=1), 2), np.repeat([1, 0], len(gold))
    expected = roc_auc_score(truth, confidence, sample_weight=np.append(hits, 1 - hits))
    assert auroc_confidence(scores, gold) == pytest.approx(expected)


def test_a_figure_needs_nearly_all_resamples() -> None:
    resampled = np.append(np.linspace(0.4, 0.8, 99), np.nan)
    found = the(metrics.estimate_of(0.6, resampled, 50, 0.9))
    assert (found.value, found.n) == (0.6, 50)
    assert found.interval == pytest.approx((0.6 - 1.2 * 0.19, 0.6 + 1.2 * 0.19), abs=0.001)
    resampled[0] = np.nan
    assert metrics.estimate_of(0.6, resampled, 50, 0.9) is None
    assert metrics.estimate_of(np.nan, np.linspace(0.4, 0.8, 9), 50, 0.9) is None


def test_reliability_by_hand() -> None:
    # bins {.6, .7} and {.8, .9}: mean confidence .65 and ½ right, mean confidence .85 and all right
    low, high = reliability(SCORES, GOLD, bins=2)
    assert (low.rows, high.rows) == (2, 2)
    assert (low.confidence, low.accuracy) == pytest.approx((0.65, 0.5))
    assert (high.confidence, high.accuracy) == pytest.approx((0.85, 1))


def test_ece_is_the_mean_gap_less_what_chance_would_show() -> None:
    # one bin per row: each is off by .1 .2 .7 .4, and by chance by a standard deviation times √(2/π)
    floor = np.sqrt(2 / np.pi) * np.mean(np.sqrt([0.09, 0.16, 0.21, 0.24]))
    assert ece(SCORES, GOLD) == pytest.approx(np.mean([0.1, 0.2, 0.7, 0.4]) - floor)
    right = codes(0, 1, 0, 1)
    assert ece(SCORES, right) == 0 < np.mean([0.1, 0.2, 0.3, 0.4]) < floor


@pytest.mark.parametrize(("rows", "labels", "sharpness"), [(60, 2, 1.0), (300, 3, 1.0), (300, 3, 0.2)])
def test_ece_of_a_perfectly_calibrated_model_is_hardly_above_0(rows: int, labels: int, sharpness: float) -> None:
    rng = np.random.default_rng(1)
    scores = rng.dirichlet(np.full(labels, sharpness), size=rows)
    raw, shown = [], []
    for _ in range(200):
        gold = (scores.cumsum(axis=1) > rng.random((rows, 1))).argmax(axis=1).astype(np.int8)
        raw.append(raw_ece(scores, gold))
        shown.append(ece(scores, gold))
    assert np.mean(shown) < 0.15 * np.mean(raw)


def test_rows_that_a_resample_repeats_are_not_new_evidence() -> None:
    rng = np.random.default_rng(2)
    scores = rng.dirichlet(np.ones(2), size=400)
    gold = (scores[:, 1] > rng.random(400)).astype(np.int8)
    counts = np.bincount(rng.integers(400, size=400), minlength=400).astype(np.float64)[:, np.newaxis]
    drawn = Resample(scores, gold, counts)
    assert metrics.chosen_on(*drawn).ece[0] < ece(*drawn.rows)


@pytest.mark.parametrize(("right", "rows"), [(0, 60), (1, 60), (30, 60), (59, 60), (60, 60), (10, 10), (58.5, 60)])
def test_the_interval_of_accuracy_is_never_narrower_than_the_exact_one(right: float, rows: int) -> None:
    value, (low, high), n = metrics.accuracy_of(right / rows, rows)
    exact = metrics.exact_interval(right, rows)
    assert 0 <= low <= exact.low <= value <= exact.high <= high <= 1
    assert n == rows
    if right in (59, 60):
        assert low == exact.low == pytest.approx({59: 0.9106, 60: 0.9404}[int(right)], abs=1e-4)
    if right == 30:
        assert (low, high) == pytest.approx((0.3482, 0.6518), abs=1e-4)
