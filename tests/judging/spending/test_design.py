"""Panel design: what is chosen, what it costs, and what the curve says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pcs_annotator import NOT_ASKED, PcsWarning, Votes
from pcs_annotator.core.arrays import Codes
from pcs_annotator.core.gold import UNLABELLED, gold_codes
from pcs_annotator.core.vote import Cell
from pcs_annotator.core.votes import read_vote_table
from pcs_annotator.errors import ConfigError, GoldError
from pcs_annotator.judging.spending.design.panel import Prices, choose_panel, design_panel
from pcs_annotator.judging.spending.design.search import affordable, groups_of, search
from pcs_annotator.judging.spending.strategy import only
from tests.judging.strategies import any_votes

RELATIONS = ("original", "synonym", "dummy")


def recorded(accuracy: object, *, items: int = 80, seed: int = 0, labels: int = 2) -> tuple[Votes, Codes]:
    """Independent votes that are right as often as `accuracy[annotator, relation, draw]` says; nan: never asked."""
    chance = np.asarray(accuracy, dtype=np.float64)
    rng = np.random.default_rng(seed)
    gold = np.arange(items) % labels
    truth = gold.reshape(-1, 1, 1, 1)
    wrong = (truth + rng.integers(1, labels, (items, *chance.shape))) % labels
    codes = np.where(rng.random((items, *chance.shape)) < chance, truth, wrong)
    codes = np.where(np.isnan(chance), NOT_ASKED, codes)
    votes = Votes(
        codes=codes.astype(np.int8),
        ids=[str(row) for row in range(items)],
        annotators=[f"a{place}" for place in range(chance.shape[0])],
        relations=RELATIONS[: chance.shape[1]],
        labels=[f"label {code}" for code in range(labels)],
    )
    return votes, gold.astype(np.int8)


@settings(max_examples=40)
@given(any_votes(), st.data())
def test_restricted_votes_keep_the_cells_and_nothing_else(votes: Votes, data: st.DataObject) -> None:
    places = st.tuples(*(st.integers(0, size - 1) for size in votes.codes.shape[1:]))
    cells = [Cell(*place) for place in data.draw(st.lists(places, unique=True))]
    kept = only(votes, cells)
    for place in np.ndindex(votes.codes.shape[1:]):
        expected = votes.codes[:, *place] if Cell(*place) in cells else np.full(len(votes), NOT_ASKED)
        np.testing.assert_array_equal(kept.codes[:, *place], expected)


def test_restricted_votes_forget_what_others_stated() -> None:
    votes, _ = recorded(np.full((1, 2, 1), 0.8), items=3)
    with_stated = replace(votes, stated=np.full((*votes.codes.shape, 2), 0.5))
    stated = only(with_stated, [Cell(0, 1)]).stated
    assert stated is not None
    assert np.isnan(stated[:, 0, 0]).all()
    assert (stated[:, 0, 1] == 0.5).all()


def test_a_rewrite_is_paid_once_for_all_annotators() -> None:
    votes, _ = recorded(np.full((2, 3, 2), 0.8), items=4)
    prices = Prices(by_annotator={"a1": 5.0}, by_relation={"dummy": 0.0, "synonym": 2.0})
    assert prices.cost(votes, [Cell(0, 0), Cell(0, 0, 1)]) == 2.0
    assert prices.cost(votes, [Cell(0, 1), Cell(0, 1, 1), Cell(1, 1)]) == 1.0 + 1.0 + 5.0 + 2.0
    assert prices.cost(votes, [Cell(0, 2)]) == 1.0
    assert Prices().cost(votes, [Cell(0, 2)]) == 2.0


@pytest.mark.parametrize("price", [-1.0, math.nan, math.inf])
def test_a_price_must_be_finite_and_not_negative(price: float) -> None:
    with pytest.raises(ConfigError, match="'a0'"):
        Prices(by_annotator={"a0": price})


def test_the_better_annotator_is_asked_first() -> None:
    votes, gold = recorded([[[0.6]], [[0.95]], [[0.55]]])
    assert choose_panel(votes, gold, 1).cells == (Cell(1, 0),)


def test_an_annotator_that_always_says_the_opposite_is_worth_asking() -> None:
    votes, gold = recorded([[[0.6]], [[0.03]]])
    assert choose_panel(votes, gold, 1).cells == (Cell(1, 0),)


def sure_votes(skill: Sequence[float], *, items: int = 120) -> tuple[Votes, Codes]:
    """Graded votes whose log-odds favour the gold label by that many standard deviations; all say the first label."""
    rng = np.random.default_rng(5)
    gold = np.arange(items) % 2
    odds = rng.normal(np.where(gold, -1, 1)[:, np.newaxis] * np.array(skill), 1.0) + 5.0
    own = 1 / (1 + np.exp(-odds))
    grades = np.stack([own, 1 - own], axis=-1)[:, :, np.newaxis, np.newaxis]
    votes = Votes(
        codes=np.zeros((items, len(skill), 1, 1), dtype=np.int8),
        ids=[str(row) for row in range(items)],
        annotators=[f"a{place}" for place in range(len(skill))],
        relations=["original"],
        labels=["label 0", "label 1"],
        grades=grades,
    )
    return votes, gold.astype(np.int8)


def test_graded_votes_that_all_say_the_same_label_are_told_apart_by_their_log_odds() -> None:
    votes, gold = sure_votes([0.1, 1.5, 0.8])
    assert choose_panel(votes, gold, 1).cells == (Cell(1, 0),)
    assert choose_panel(votes, gold, 2).cells == (Cell(1, 0), Cell(2, 0))
    assert choose_panel(votes, gold, 2).optimiser == "scaling"
    curve = design_panel(votes, gold, 2).curve
    assert curve[0].auroc.value > 0.85
    assert design_panel(votes.hard(), gold, 2).curve[0].auroc.value < 0.6


def test_a_mixed_panel_takes_the_graded_annotator_where_it_says_more_and_the_hard_one_where_that_does() -> None:
    for skill, first in ((1.5, 0), (0.2, 1)):
        graded, gold = sure_votes([skill, 0.0])
        hard, _ = recorded([[[0.75]]], items=120)
        codes, grades = graded.codes.copy(), graded.grades
        assert grades is not None
        codes[:, 1] = hard.codes[:, 0]
        hidden = np.where(np.arange(2)[:, np.newaxis, np.newaxis, np.newaxis] == 1, np.float32(np.nan), grades)
        mixed = replace(graded, codes=codes, grades=hidden)
        assert choose_panel(mixed, gold, 1).cells == (Cell(first, 0),)
        assert set(choose_panel(mixed, gold, 2).cells) <= {Cell(0, 0), Cell(1, 0)}


def test_draws_of_a_graded_question_are_asked_one_after_the_other() -> None:
    votes, gold = sure_votes([1.0, 1.0, 1.0])
    assert votes.grades is not None
    repeated = replace(
        votes.select(annotators=["a0"]),
        codes=np.moveaxis(votes.codes, 1, 3),
        grades=np.moveaxis(votes.grades, 1, 3),
    )
    curve = design_panel(repeated, gold, 3).curve
    assert curve[-1].cells == (Cell(0, 0, 0), Cell(0, 0, 1), Cell(0, 0, 2))
    assert curve[-1].auroc.value > curve[0].auroc.value


def test_a_useless_annotator_is_not_asked_even_if_the_budget_allows() -> None:
    votes, gold = recorded([[[0.9]], [[0.5]]], items=200)
    assert choose_panel(votes, gold, 2).cells == (Cell(0, 0),)


def test_draws_are_asked_in_order_however_lucky_a_later_one_was() -> None:
    votes, gold = recorded([[[0.7, 0.7, 0.95, 0.7]]])
    cells = choose_panel(votes, gold, 2).cells
    assert cells == (Cell(0, 0, 0), Cell(0, 0, 1))


def test_draws_without_a_recorded_vote_are_no_candidates() -> None:
    votes, _ = recorded([[[0.8, math.nan, 0.8], [math.nan, math.nan, math.nan]]])
    assert groups_of(votes) == [(0, 0, (0, 2))]


def test_a_paid_rewrite_loses_against_another_draw_and_a_free_one_wins() -> None:
    votes, gold = recorded([[[0.8, 0.8], [0.85, math.nan]]], items=200)
    paid = choose_panel(votes, gold, 2, Prices(by_relation={"synonym": 1.0}))
    free = choose_panel(votes, gold, 2, Prices(by_relation={"synonym": 0.0}))
    assert set(free.cells) == {Cell(0, 0), Cell(0, 1)}
    assert paid.cost <= 2
    assert paid.cells in {(Cell(0, 0), Cell(0, 0, 1)), (Cell(0, 1),)}


def test_an_expensive_good_annotator_is_found_where_cheap_ones_gain_more_for_their_price() -> None:
    votes, gold = recorded([[[0.75]], [[0.97]]], items=200)
    prices = Prices(by_annotator={"a0": 0.02, "a1": 4.0})
    steps = search(votes, gold, groups_of(votes), prices.tariff(votes), 4.0)
    assert steps[0].cells == (Cell(0, 0),)
    assert affordable(steps, 4.0).cells == (Cell(1, 0),)


@settings(max_examples=25, deadline=None)
@given(st.floats(1, 9), st.integers(0, 50), st.sampled_from([0.0, 0.5, 1.0]))
def test_the_budget_is_never_exceeded(budget: float, seed: int, rewrite: float) -> None:
    votes, gold = recorded(np.full((2, 3, 2), 0.7), items=30, seed=seed)
    prices = Prices(by_annotator={"a1": 1.5}, by_relation={"synonym": rewrite})
    choice = choose_panel(votes, gold, budget, prices, optimisers=["naive-bayes"])
    assert choice.cost <= budget + 1e-9
    assert choice.cost == pytest.approx(prices.cost(votes, choice.cells))
    assert len(set(choice.cells)) == len(choice.cells)


def test_the_curve_grows_in_cost_and_ends_with_the_choice() -> None:
    votes, gold = recorded(np.full((2, 2, 2), 0.75), labels=3)
    found = design_panel(votes, gold, 6, optimisers=["uniform", "naive-bayes"])
    costs = [panel.cost for panel in found.curve]
    assert costs == sorted(set(costs))
    assert costs[-1] <= found.budget == 6
    choice = choose_panel(votes, gold, 6, optimisers=["uniform", "naive-bayes"])
    assert (found.chosen.cells, found.chosen.cost, found.optimiser) == choice
    assert all(panel.auroc.n == len(gold) for panel in found.curve)
    assert all(panel.auroc.interval.low <= panel.auroc.value <= panel.auroc.interval.high for panel in found.curve)
    assert found.chosen.auroc.value > found.curve[0].auroc.value


def test_the_search_does_not_inflate_the_quality_of_uninformative_votes() -> None:
    values = []
    for seed in range(6):
        votes, gold = recorded(np.full((4, 3, 2), 0.5), items=60, seed=seed)
        values.append(design_panel(votes, gold, 4, optimisers=["naive-bayes"]).chosen.auroc.value)
    assert np.mean(values) < 0.58


def test_rows_without_gold_change_nothing() -> None:
    votes, gold = recorded(np.full((2, 2, 1), 0.75), items=80)
    partly = np.where(np.arange(80) < 40, gold, UNLABELLED).astype(np.int8)
    assert choose_panel(votes, partly, 2) == choose_panel(votes.take(slice(40)), gold[:40], 2)


def test_another_optimiser_is_taken_only_when_clearly_better() -> None:
    votes, gold = recorded(np.full((2, 1, 1), 0.9), items=100, labels=3)
    mixed_up = replace(votes, codes=(votes.codes + 1) % 3)
    assert choose_panel(mixed_up, gold, 2, optimisers=["uniform", "naive-bayes"]).optimiser == "naive-bayes"
    assert choose_panel(mixed_up, gold, 2, optimisers=["naive-bayes", "uniform"]).optimiser == "naive-bayes"
    assert choose_panel(mixed_up, gold, 2, optimisers=["uniform"]).optimiser == "uniform"


def test_a_design_is_the_same_every_time() -> None:
    votes, gold = recorded(np.full((2, 2, 2), 0.7), items=30)
    first, again = (design_panel(votes, gold, 3, optimisers=["uniform", "naive-bayes"], seed=3) for _ in range(2))
    assert first == again


def test_what_cannot_be_designed_is_refused_with_a_remedy() -> None:
    votes, gold = recorded(np.full((1, 1, 1), 0.8), items=20)
    with pytest.raises(GoldError, match="9 gold rows are too few"):
        choose_panel(votes, np.where(np.arange(20) < 9, gold, UNLABELLED).astype(np.int8), 1)
    with pytest.raises(GoldError, match="label rows of another class"):
        design_panel(votes, np.zeros(20, dtype=np.int8), 1)
    with pytest.raises(GoldError, match="no gold row has a vote"):
        design_panel(only(votes, []), gold, 1)
    for budget in (0.5, math.nan):
        with pytest.raises(ConfigError, match=r"costs 1$"):
            design_panel(votes, gold, budget)


def test_recorded_votes_of_small_models_give_a_panel_of_better_quality_for_more_calls(shared_data: Path) -> None:
    with pytest.warns(PcsWarning, match="5177"):
        votes, names = read_vote_table(shared_data / "recorded/votes_sentiment.csv.gz")
    votes, gold = votes.select(annotators=["qwen2.5-coder-0.5b@0", "qwen2.5-coder-0.5b@0.7"]), gold_codes(votes, names)
    rows = np.sort(np.random.default_rng(0).permutation(len(votes))[:100])
    found = design_panel(votes.take(rows), gold[rows], 8, optimisers=["naive-bayes"])
    assert found.chosen.cost <= 8
    assert found.chosen.auroc.value > found.curve[0].auroc.value
