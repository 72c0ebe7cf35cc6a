from dataclasses import dataclass, replace
from itertools import combinations, count
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcs_annotator import Optimiser, Votes, Weights, score
from pcs_annotator.core.arrays import Codes, Integers
from pcs_annotator.judging import heldout as crossfit
from pcs_annotator.judging.calibrate import Calibrator, fit_calibrator, tempered
from pcs_annotator.judging.fit_weights import fit_optimiser, optimisers
from pcs_annotator.judging.heldout import Splits, calibrated_out_of_fold, cross_fit, cross_fits, stratified_folds
from pcs_annotator.judging.metrics.figures import auroc
from pcs_annotator.judging.optimisers.regression import LinearRegression
from pcs_annotator.judging.score import choose
from tests.builders import simulated_votes, the
from tests.judging.strategies import coded


@given(gold=st.lists(st.integers(0, 3), min_size=1, max_size=60), folds=st.integers(1, 10), seed=st.integers(0, 9))
def test_classes_and_sizes_are_spread_evenly_over_folds(gold: list[int], folds: int, seed: int) -> None:
    codes = np.array(gold, dtype=np.int8)
    fold = stratified_folds(codes, folds, seed)
    sizes = np.bincount(fold, minlength=folds)
    assert len(sizes) == folds
    assert sizes.max() - sizes.min() <= 1
    for label in np.unique(codes):
        rows = np.bincount(fold[codes == label], minlength=folds)
        assert rows.max() - rows.min() <= 1


@pytest.mark.parametrize("name", ["lr", "auto"])
def test_a_rows_results_do_not_depend_on_its_own_gold(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    votes, names = simulated_votes([0.8, 0.6], items=30)
    gold = coded(votes, names)
    fold = stratified_folds(gold, 5, seed=0)
    # folds follow the classes, so they would move with the gold that is changed here
    monkeypatch.setattr(crossfit, "stratified_folds", lambda *_: fold)
    changed = gold.copy()
    changed[7] = (gold[7] + 1) % 3
    before, after = (cross_fit(optimisers.create(name), votes, codes, Splits()) for codes in (gold, changed))
    np.testing.assert_array_equal(before.scores[7], after.scores[7])
    # rows of other folds are scored by weights that did see row 7
    assert (before.scores[fold != fold[7]] != after.scores[fold != fold[7]]).any()
    same_fold = fold == fold[7]
    np.testing.assert_array_equal(before.scores[same_fold], after.scores[same_fold])


def test_each_fold_is_scored_by_weights_of_the_others() -> None:
    votes, names = simulated_votes([0.8, 0.6], items=30)
    gold = coded(votes, names)
    fold = stratified_folds(gold, 5, seed=4)
    found = cross_fit(LinearRegression(), votes, gold, Splits(seed=4))
    for held_out in range(5):
        weights = LinearRegression().fit(votes.take(fold != held_out), gold[fold != held_out], 4)
        mine = votes.take(fold == held_out)
        np.testing.assert_array_equal(found.scores[fold == held_out], score(mine, weights))


def test_each_fold_is_calibrated_on_the_others() -> None:
    rng = np.random.default_rng(0)
    scores, gold = rng.dirichlet(np.ones(2), 20), (np.arange(20) % 2).astype(np.int8)
    fold: Integers = np.arange(20) % 4
    found = calibrated_out_of_fold(scores, gold, fold, ("a", "b"))
    for held_out in range(4):
        inside = fold != held_out
        fitted = fit_calibrator(scores[inside], gold[inside], ("a", "b"), "softmax", 20)
        np.testing.assert_allclose(found[~inside], fitted.apply(scores[~inside], ("a", "b")), atol=1e-12)


def test_folds_are_calibrated_by_the_requested_method() -> None:
    votes, names = simulated_votes([0.8, 0.6], items=50)
    raw, curved = (
        cross_fit(LinearRegression(), votes, coded(votes, names), Splits(calibration=name))
        for name in ("none", "softmax")
    )
    np.testing.assert_array_equal(raw.probabilities, raw.scores)
    np.testing.assert_array_equal(curved.scores, raw.scores)
    assert not np.allclose(curved.probabilities, raw.scores)


@pytest.mark.parametrize("calibration", ["softmax", "none"])
def test_rows_asked_in_part_keep_the_label_that_the_calibrator_of_all_votes_gives_them(calibration: str) -> None:
    votes, names = simulated_votes([0.8, 0.6], items=60)
    gold, splits = coded(votes, names), Splits(calibration=calibration)
    policies: list[tuple[Votes, Weights, Calibrator | None]] = []

    def first_annotator(held_out: Votes, weights: Weights, calibrator: Calibrator | None) -> Votes:
        policies.append((held_out, weights, calibrator))
        return held_out.only(np.array([[[True]], [[False]]]))

    found, whole = (cross_fit(LinearRegression(), votes, gold, splits, policy) for policy in (first_annotator, None))
    fold = stratified_folds(gold, 5, seed=0)
    for number, (held_out, weights, calibrator) in enumerate(policies):
        rows = fold == number
        assert list(held_out.ids) == [votes.ids[row] for row in np.flatnonzero(rows).tolist()]
        assert calibrator is not None
        usual = (
            fit_calibrator(whole.scores[~rows], gold[~rows], votes.labels, calibration, 60)
            if calibration == "softmax"
            else calibrator
        )
        assert calibrator.to_dict() == usual.to_dict()
        part = score(held_out.only(np.array([[[True]], [[False]]])), weights)
        np.testing.assert_allclose(found.scores[rows], part, atol=1e-12)
        mine = tempered(calibrator, whole.scores[~rows], found.scores[~rows], gold[~rows], votes.labels)
        np.testing.assert_allclose(found.probabilities[rows], mine.apply(part, votes.labels), atol=1e-10)
        expected = choose(calibrator.apply(part, votes.labels), votes.labels)
        np.testing.assert_array_equal(choose(found.probabilities[rows], votes.labels), expected)
    assert len(policies) == 5


@dataclass(frozen=True)
class Recording:
    """Records which rows it was given."""

    seen: list[frozenset[str]]
    needs_gold: ClassVar[bool] = False

    def fit(self, votes: Votes, gold: Codes, seed: int) -> Weights:
        self.seen.append(frozenset(votes.ids))
        return Weights.uniform(votes)


def test_fits_of_built_in_optimisers_are_cached_and_those_of_other_optimisers_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    votes, names = simulated_votes([0.8, 0.6], items=40, seed=77)
    gold = coded(votes, names)
    fits: list[Optimiser] = []

    def counted(chosen: Optimiser, *rest: Any) -> Weights:
        fits.append(chosen)
        return fit_optimiser(chosen, *rest)

    monkeypatch.setattr(crossfit, "fit_optimiser", counted)
    splits = Splits(repeats=1)
    first, again = (cross_fits(LinearRegression(), votes, gold, splits) for _ in range(2))
    np.testing.assert_array_equal(first[0].probabilities, again[0].probabilities)
    assert len(fits) == 5
    cross_fits(LinearRegression(shrinkage=3.0), votes, gold, splits)
    assert len(fits) == 10
    mine = Recording([])
    for _ in range(2):
        cross_fits(mine, votes, gold, splits)
    assert len(fits) == 20
    monkeypatch.setattr(crossfit, "_REMEMBERED", {})
    monkeypatch.setattr(crossfit, "MAX_REMEMBERED", 1)
    for shrinkage in (1.0, 2.0, 1.0):
        cross_fits(LinearRegression(shrinkage=shrinkage), votes, gold, splits)
    assert len(fits) == 35


def test_rounding_errors_break_no_ties(monkeypatch: pytest.MonkeyPatch) -> None:
    votes, names = simulated_votes([0.8, 0.6], items=40)
    gold, rng = coded(votes, names), np.random.default_rng(0)
    exact = cross_fit(LinearRegression(), votes, gold, Splits())

    def as_elsewhere(*given: Any) -> Any:  # another processor differs in the last digit
        return score(*given) * (1 + rng.uniform(-2e-16, 2e-16, (len(given[0]), len(votes.labels))))

    monkeypatch.setattr(crossfit, "score", as_elsewhere)
    again = cross_fit(LinearRegression(), votes, gold, Splits())
    assert np.array_equal(again.scores, exact.scores)
    assert len(np.unique(again.probabilities)) == len(np.unique(exact.probabilities))


def test_folds_that_score_on_different_scales_are_ranked_alike() -> None:
    turns = count()

    class Shifting:
        """Learns as naive Bayes does, but with another offset in every fold."""

        needs_gold: ClassVar[bool] = True

        def fit(self, votes: Votes, gold: Codes, seed: int) -> Weights:
            weights = fit_optimiser(optimisers.create("auto"), votes, gold, seed)
            prior = the(weights.evidence).log_prior + np.array([2.0 * next(turns), 0.0])
            return replace(weights, evidence=replace(the(weights.evidence), log_prior=prior))

    votes, names = simulated_votes([0.7, 0.6, 0.5], items=100, labels=2)
    gold = coded(votes, names)
    found = cross_fit(Shifting(), votes, gold, Splits())
    steady = cross_fit(optimisers.create("auto"), votes, gold, Splits())
    assert auroc(found.scores, gold) < auroc(found.ranks, gold) - 0.02
    assert auroc(found.ranks, gold) == pytest.approx(auroc(steady.ranks, gold))


def test_folds_are_remembered_by_what_is_known_of_other_labels() -> None:
    votes, names = simulated_votes([0.8, 0.6], items=80, labels=2)
    gold, auto = coded(votes, names), optimisers.create("auto")
    order = np.argsort(votes.ids)
    rows = votes.take(order)
    siblings = [[], [(rows, gold[order])], [(rows, np.roll(gold, 3)[order])]]
    fits = [cross_fit(auto, replace(votes, siblings=others), gold, Splits()).scores for others in siblings]
    again = cross_fit(auto, replace(votes, siblings=siblings[1]), gold, Splits()).scores
    np.testing.assert_array_equal(fits[1], again)
    assert not any(np.array_equal(one, other) for one, other in combinations(fits, 2))


def test_passages_of_a_text_are_in_the_same_fold() -> None:
    units = np.repeat(np.arange(40), np.arange(40) % 4 + 1)
    for turn in range(3):
        fold = Splits().fold_of(np.zeros(len(units), dtype=np.int16), turn, units)
        assert {len({*fold[units == unit].tolist()}) for unit in range(40)} == {1}
        assert sorted(np.bincount(fold[np.unique(units, return_index=True)[1]]).tolist()) == [8] * 5
