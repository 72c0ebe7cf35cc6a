from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from pcs_annotator import Weights, score
from pcs_annotator.core.arrays import Floats
from pcs_annotator.judging.metrics.figures import auroc, log_loss
from pcs_annotator.judging.optimisers.logit import HABIT_VOTES, Scaling
from pcs_annotator.judging.score import read_votes
from tests.builders import the
from tests.judging.evaluate.graded import graded_votes
from tests.judging.metrics.alone import accuracy
from tests.judging.strategies import only_first, opposite_favourites


def slopes_of(weights: Weights) -> Floats:
    """The slope of every model and label: how much more a vote for the label adds than one for another."""
    table = the(weights.evidence).log_likelihood[:, 0]
    return np.stack([table[:, label, label] - table[:, label - 1, label] for label in range(table.shape[2])], axis=1)


def test_no_direction_inside_the_bounds_lowers_the_objective() -> None:
    votes, gold = graded_votes([2.0, 0.2], items=50, relations=1)
    weights = Scaling().fit(votes, gold, 0)
    odds = read_votes(votes, "log-odds")[:, :, 0]
    total = odds.sum(axis=0)
    habits = (total + HABIT_VOTES * (total + 1 / 3) / 51) / (50 + HABIT_VOTES)
    unusual = odds - habits
    spread = np.sqrt((unusual**2).mean(axis=(0, 2)))
    features = unusual / spread[:, np.newaxis]

    def loss(point: Floats) -> float:
        by_label, offsets = point[:6].reshape(2, 3), point[6:]
        logits = np.einsum("iak,ak->ik", features, by_label) + offsets
        own = logits[np.arange(50), gold] - np.log(np.exp(logits).sum(axis=1))
        mean = by_label.mean()
        prior = 3 * np.sum((by_label - mean) ** 2) + (2 * mean - 1) ** 2 + np.sum(offsets**2)
        return float(-own.sum() + prior / 2)

    point = np.concatenate([(slopes_of(weights) * spread[:, np.newaxis]).ravel(), the(weights.evidence).log_prior])
    assert weights.diagnostics.objective == pytest.approx(loss(point), abs=1e-6)
    slope = approx_fprime(point, loss, 1e-7)
    at_bound = np.append(point[:6] <= 1e-9, np.zeros(3, dtype=np.bool_))
    np.testing.assert_allclose(slope[~at_bound], 0, atol=1e-2)
    assert (slope[at_bound] >= -1e-2).all()
    by_label = point[:6].reshape(2, 3)
    np.testing.assert_allclose(weights.annotator_weights, by_label.sum(axis=1) / by_label.sum())


def test_a_favourite_label_is_made_up_for() -> None:
    votes, gold = graded_votes([2.0], items=300, bias=4.0)
    learn = np.arange(300) < 100
    weights = Scaling().fit(votes.take(learn), gold[learn], 0)
    test = votes.take(~learn)
    scores, plain = score(test, weights), score(test, Weights.uniform(votes))
    assert accuracy(scores, gold[~learn]) > 0.7
    assert accuracy(plain, gold[~learn]) < 0.5
    assert log_loss(scores, gold[~learn]) < 0.8


def test_log_odds_carry_more_than_labels() -> None:
    votes, gold = graded_votes([1.5, 1.0], items=400)
    learn = np.arange(400) < 100
    graded, hard = (
        auroc(score(one.take(~learn), fit.fit(one.take(learn), gold[learn], 0)), gold[~learn])
        for one, fit in ((votes, Scaling()), (votes.hard(), Scaling()))
    )
    assert graded > hard + 0.03


def test_a_silent_model_leaves_no_trace_of_its_favourite_label() -> None:
    votes, gold = opposite_favourites()
    weights = Scaling().fit(votes, gold, 0)
    silent = only_first(votes)
    assert accuracy(score(silent, weights), gold) > 0.6 > accuracy(silent.shares()[:, 0, 0], gold)


def test_the_same_answer_to_several_questions_counts_once() -> None:
    votes, gold = graded_votes([2.0, 1.0], items=60, relations=1)
    thrice = replace(
        votes,
        relations=["original", "order", "wording"],
        codes=np.repeat(votes.codes, 3, axis=2),
        grades=np.repeat(the(votes.grades), 3, axis=2),
    )
    once, more = (score(one, Scaling().fit(one, gold, 0)) for one in (votes, thrice))
    np.testing.assert_allclose(once, more, atol=1e-3)


def test_relations_are_worth_as_much_as_they_are_answered() -> None:
    votes, gold = graded_votes([2.0, 1.0], items=60)
    asked = np.ones(votes.codes.shape, dtype=np.bool_)
    asked[::2, :, 1] = False
    half = replace(
        votes,
        codes=np.where(asked, votes.codes, -1),
        grades=np.where(asked[..., np.newaxis], the(votes.grades), np.float32(np.nan)),
    )
    weights = Scaling().fit(half, gold, 0)
    assert weights.by_relation == pytest.approx({"original": 2 / 3, "order": 1 / 3})


def test_a_model_that_never_answers_gets_nothing_and_harms_nothing() -> None:
    votes, gold = graded_votes([2.0, 1.0], items=60)
    codes, grades = votes.codes.copy(), the(votes.grades).copy()
    codes[:, 1], grades[:, 1] = -1, np.nan
    silent = replace(votes, codes=codes, grades=grades)
    weights = Scaling().fit(silent, gold, 0)
    assert weights.annotator_weights.tolist() == [1.0, 0.0]
    assert auroc(score(silent, weights), gold) > 0.85
