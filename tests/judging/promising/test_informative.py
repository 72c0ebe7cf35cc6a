from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcs_annotator import Votes, score
from pcs_annotator.base.errors import GoldError
from pcs_annotator.core.arrays import Codes, Integers, Mask
from pcs_annotator.core.gold import UNLABELLED, gold_codes
from pcs_annotator.judging.metrics.metrics import auroc
from pcs_annotator.judging.promising import informative
from pcs_annotator.judging.promising.informative import review_order, rows_to_label, unlike_gold_first
from pcs_annotator.judging.weighing.optimiser import fit_optimiser, optimisers
from pcs_annotator.judging.weighing.scoring import choose
from pcs_annotator.tables.votes import read_vote_table
from tests.builders import simulated_votes, votes_of
from tests.judging.strategies import Labelled, any_votes, coded, labelled_votes

SILENT, UNASKED = -1, -2


def auroc_after(votes: Votes, gold: Codes, rows: Integers, test: Integers) -> float:
    weights = fit_optimiser(optimisers.create("lr"), votes.take(rows), gold[rows], 0)
    return auroc(score(votes.take(test), weights), gold[test])


def rows_seen(right: Mask, order: Integers) -> int:
    """Number of rows a person corrects until 95 % of all are right."""
    left = np.append((~right[order])[::-1].cumsum()[::-1], 0)
    return int((left > 0.05 * len(order)).sum())


@given(labelled_votes(), st.integers(0, 15), st.integers(0, 3))
def test_rows_are_distinct_without_gold_and_as_many_as_there_are(labelled: Labelled, k: int, seed: int) -> None:
    votes = labelled.votes
    gold = gold_codes(votes, labelled.gold)
    rows = rows_to_label(votes, k, gold=gold, seed=seed)
    assert len(set(rows.tolist())) == len(rows) == min(k, int((gold == UNLABELLED).sum()))
    assert (gold[rows] == UNLABELLED).all()
    # rows without a vote come last
    assert (np.diff(votes.silent[rows].astype(int)) >= 0).all()


@given(any_votes(), st.integers(1, 8))
def test_more_rows_begin_with_the_same_ones(votes: Votes, k: int) -> None:
    assert rows_to_label(votes, k).tolist() == rows_to_label(votes, 8)[:k].tolist()


def test_a_seed_fixes_the_choice() -> None:
    votes, _ = simulated_votes([0.9, 0.7], items=200)
    assert rows_to_label(votes, 20, seed=3).tolist() == rows_to_label(votes, 20, seed=3).tolist()
    assert rows_to_label(votes, 20, seed=3).tolist() != rows_to_label(votes, 20, seed=4).tolist()


def test_rare_classes_are_labelled_as_often_as_common_ones() -> None:
    votes, gold = simulated_votes([0.9, 0.85, 0.8], items=600, labels=2)
    codes = coded(votes, gold)
    kept = np.concatenate([np.flatnonzero(codes == 0)[:20], np.flatnonzero(codes == 1)[:250]])
    chosen = codes[kept][rows_to_label(votes.take(kept), 20)]
    assert 7 <= (chosen == 0).sum() <= 13


def test_classes_with_known_gold_are_chosen_less() -> None:
    votes, gold = simulated_votes([0.95, 0.9, 0.9], items=300, labels=2)
    codes = coded(votes, gold)
    known = np.full(300, UNLABELLED, dtype=np.int8)
    first = np.flatnonzero(codes == 0)[:10]
    known[first] = 0
    chosen = codes[rows_to_label(votes, 10, gold=known)]
    assert (chosen == 1).sum() >= 8


def test_models_that_differ_are_preferred_to_a_row_on_which_all_agree() -> None:
    agreed = [[0, 0], [0, 0], [0, 0]]
    votes = votes_of([agreed, agreed, agreed, [[0, 0], [0, 0], [1, 1]], [[1, 1], [1, 1], [1, 1]]])
    # of the rows predicted 0, the second choice is the one on which the models differ
    rows = [row for row in rows_to_label(votes, 5).tolist() if row != 4]
    assert rows.index(3) <= 1


def test_nothing_to_choose_from_gives_nothing() -> None:
    votes = votes_of([[[SILENT]], [[UNASKED]]])
    assert sorted(rows_to_label(votes, 5).tolist()) == [0, 1]
    assert rows_to_label(votes, 5, gold=np.zeros(2, dtype=np.int8)).tolist() == []
    assert rows_to_label(votes.take(slice(0, 0)), 5).tolist() == []


def test_a_negative_number_of_rows_is_refused() -> None:
    with pytest.raises(GoldError, match="-1"):
        rows_to_label(votes_of([[[0]]]), -1)


def test_of_very_many_rows_a_random_part_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(informative, "CANDIDATES", 50)
    votes, gold = simulated_votes([0.7, 0.6], items=400, relations=2)
    assert len(set(rows_to_label(votes, 80).tolist())) == 80
    codes = coded(votes, gold)
    seen = review_order(votes)
    right = choose(score(votes, informative._dawid_skene(votes)), votes.labels) == codes
    assert right[seen[:100]].mean() < right[seen[-100:]].mean()


@pytest.mark.parametrize("name", ["sentiment", "gossipcop", "politifact"])
def test_chosen_rows_teach_more_than_random_ones(shared_data: Path, name: str) -> None:
    votes, names = read_vote_table(shared_data / "simulated" / f"{name}.csv.gz")
    gold = gold_codes(votes, names)
    gains = []
    for seed in range(12):
        order = np.random.default_rng(100 + seed).permutation(len(votes))
        pool, test = order[:400], order[400:]
        chosen = pool[rows_to_label(votes.take(pool), 30, seed=seed)]
        gains.append(auroc_after(votes, gold, chosen, test) - auroc_after(votes, gold, pool[:30], test))
    assert np.mean(gains) > 0


@given(any_votes())
def test_review_shows_every_row_once_and_silent_rows_first(votes: Votes) -> None:
    for order in (review_order(votes), review_order(votes, np.linspace(1, 0, len(votes)))):
        assert sorted(order.tolist()) == list(range(len(votes)))
        assert (np.diff(votes.silent[order].astype(int)) <= 0).all()


def test_review_with_confidence_begins_with_the_least() -> None:
    votes = votes_of([[[0]], [[1]], [[SILENT]], [[0]]])
    assert review_order(votes, np.array([0.9, 0.6, 0.99, 0.7])).tolist() == [2, 1, 3, 0]


def test_review_breaks_ties_of_the_posterior_by_agreement() -> None:
    votes, _ = simulated_votes([0.95] * 4, items=300, labels=2)
    codes = votes.codes.copy()
    codes[0] = 0
    codes[1] = 0
    codes[1, 0, 0] = 1
    order = review_order(replace(votes, codes=codes)).tolist()
    assert order.index(1) < order.index(0)


def test_review_without_gold_needs_fewer_rows_than_a_random_order() -> None:
    votes, gold = simulated_votes([0.75, 0.65, 0.55], items=800, relations=2)
    right = choose(score(votes, informative._dawid_skene(votes)), votes.labels) == coded(votes, gold)
    by_chance = rows_seen(right, np.random.default_rng(0).permutation(800))
    assert rows_seen(right, review_order(votes)) <= 0.8 * by_chance


@pytest.mark.parametrize("mass", [1.0, 1e-3])
def test_grades_change_neither_the_rows_to_label_nor_the_order_of_review(mass: float) -> None:
    votes, _ = simulated_votes([0.9, 0.6, 0.5], items=60)
    grades = np.float32(mass) * np.random.default_rng(0).dirichlet(np.ones(3), votes.codes.shape).astype(np.float32)
    graded = replace(votes, grades=grades)
    assert rows_to_label(graded, 20).tolist() == rows_to_label(votes, 20).tolist()
    assert review_order(graded).tolist() == review_order(votes).tolist()


def test_rows_unlike_all_gold_come_first_among_those_as_doubtful() -> None:
    gold = ["The striker scored a late goal.", "The keeper saved a penalty."]
    texts = ["The striker scored a late goal again.", "The bank raised its interest.", "The keeper saved it."]
    order, certainty = np.array([2, 0, 1, 3]), np.array([0.5, 0.5, 0.5, 0.9])
    assert unlike_gold_first(order, certainty, texts, gold).tolist() == [0, 1, 2, 3]
    assert unlike_gold_first(order, certainty, texts, []).tolist() == [2, 0, 1, 3]
    silent = np.array([-1.0, 0.5, 0.5, 0.9])  # a row without a label is not more than doubtful
    assert unlike_gold_first(order, silent, texts, gold)[0] == 0
