"""A row with weight n counts as n rows, and one with weight 0 as none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pcs_annotator import fit_weights, score
from pcs_annotator.base.errors import ConfigError, GoldError
from pcs_annotator.core.arrays import Integers
from pcs_annotator.core.gold import gold_codes, row_counts
from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.fit_model import Learning, fit_model
from pcs_annotator.judging.weighing.crossfit import Splits, cross_fits
from pcs_annotator.judging.weighing.optimiser import optimisers
from pcs_annotator.runs.learn import fit_for_classifier
from tests.builders import simulated_votes

pytestmark = pytest.mark.filterwarnings("ignore::pcs_annotator.PcsWarning")  # weights of so few rows are extreme
ITEMS = 60
VOTES, GOLD = simulated_votes([0.85, 0.6], items=ITEMS, relations=2)
COUNTS: Integers = np.arange(ITEMS) % 4
OPTIMISERS = ["lr", "logit", "naive-bayes", "scaling", "ga", "dawid-skene", "uniform"]
ROWS = np.repeat(np.arange(ITEMS), COUNTS)


def by_hand() -> tuple[Votes, list[str]]:
    """Every row as often as it counts, as somebody would write it into a table."""
    ids = [f"{VOTES.ids[row]}-{turn}" for turn, row in enumerate(ROWS.tolist())]
    return replace(VOTES, codes=VOTES.codes[ROWS], ids=ids), [GOLD[row] for row in ROWS]


@pytest.mark.parametrize("name", OPTIMISERS)
def test_weighted_rows_are_worth_as_much_as_repeated_ones(name: str) -> None:
    votes, gold = by_hand()
    once = fit_weights(VOTES, GOLD, name)
    weighted = fit_weights(VOTES, GOLD, name, sample_weight=COUNTS)
    assert weighted.by_annotator == pytest.approx(fit_weights(votes, gold, name).by_annotator, abs=1e-6)
    if name != "uniform":
        assert weighted.by_annotator != pytest.approx(once.by_annotator, abs=1e-4)


@pytest.mark.parametrize("name", ["auto", "ga"])
def test_a_weight_of_zero_leaves_a_row_out(name: str) -> None:
    kept = np.arange(ITEMS) % 2 == 0
    without = fit_weights(VOTES.take(kept), [GOLD[row] for row in np.flatnonzero(kept)], name)
    assert fit_weights(VOTES, GOLD, name, sample_weight=kept * 1.0).by_relation == pytest.approx(without.by_relation)


def test_weights_of_one_change_nothing() -> None:
    assert fit_weights(VOTES, GOLD, sample_weight=[1] * ITEMS).to_dict() == fit_weights(VOTES, GOLD).to_dict()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [([1, 2], "shape .2,., but there are 60 rows"), ([0.5] * ITEMS, "row 1: 0.5"), ([1] * 59 + [-1], "row 60: -1"),
     ([np.nan] * ITEMS, "row 1: nan"), ([np.inf] * ITEMS, "whole numbers")],
)  # fmt: skip
def test_weights_that_count_nothing_are_refused(wrong: list[float], words: str) -> None:
    with pytest.raises(GoldError, match=words):
        row_counts(wrong, ITEMS)


def test_a_row_is_on_one_side_of_a_split_however_often_it_counts() -> None:
    codes, counts = gold_codes(VOTES, GOLD), np.where(np.arange(ITEMS) % 3, 1, 4)
    splits = Splits(repeats=1, counts=tuple(counts.tolist()))
    (found,) = cross_fits(optimisers.create("naive-bayes"), VOTES, codes, splits)
    fold = splits.fold_of(codes, 0)
    for number in np.unique(fold):
        others = fold != number
        gold = [GOLD[row] for row in np.flatnonzero(others)]
        weights = fit_weights(VOTES.take(others), gold, "naive-bayes", sample_weight=counts[others])
        assert found.scores[~others] == pytest.approx(score(VOTES.take(~others), weights), abs=1e-9)


@pytest.mark.parametrize("optimiser", ["lr", "auto"])
def test_confidence_is_calibrated_on_weighted_rows(optimiser: str) -> None:
    """Wrong rows that count often make the model less confident."""
    codes = gold_codes(VOTES, GOLD)
    how = Learning(optimiser=optimiser)
    once = fit_model(VOTES, codes, how).model
    best = once.judged(VOTES).best
    often = fit_model(VOTES, codes, how, counts=np.where(best == codes, 1, 9)).model
    everything = fit_model(VOTES, codes, how, counts=np.ones(ITEMS, dtype=np.intp), distinct=np.ones(ITEMS, dtype=bool))
    confidence = [model.judged(VOTES).probabilities.max(axis=1).mean() for model in (once, often)]  # type: ignore[union-attr]
    assert confidence[1] < confidence[0] - 0.05
    assert often.gold_rows == once.gold_rows == ITEMS
    assert everything.model.weights.to_dict() == once.weights.to_dict()


def test_no_promise_is_made_about_weighted_rows() -> None:
    with pytest.raises(ConfigError, match="leave out max_error or sample_weight"):
        fit_for_classifier(VOTES, GOLD, "lr", 0, max_error=0.2, counts=np.full(ITEMS, 2))
    assert fit_for_classifier(VOTES, GOLD, "lr", 0, max_error=0.2, counts=np.ones(ITEMS, dtype=np.intp)).certificate
