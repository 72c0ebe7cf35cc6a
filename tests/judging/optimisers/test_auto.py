"""`auto`: what its inputs mean, that no gold row vouches for itself, and how it uses good, useless and wrong models."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from pcs_annotator import Votes, Weights, score
from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.judging.calibrate import joint_calibrator
from pcs_annotator.judging.fit_model import Learning, fit_model
from pcs_annotator.judging.optimisers import auto
from pcs_annotator.judging.optimisers.auto import Combination, log_confusion
from pcs_annotator.judging.score import softmax
from pcs_annotator.judging.solver import SoftmaxFit, fit_softmax
from tests.builders import simulated_votes, votes_of
from tests.judging.evaluate.graded import graded_votes
from tests.judging.metrics.alone import accuracy, log_loss
from tests.judging.strategies import coded, only_first, opposite_favourites, silenced
from tests.judging.written import known, voted, written


def of_models(gold: Codes, right: list[float], labels: int = 3, seed: int = 0) -> Votes:
    """Votes of models that are right with these probabilities, and else give one of the other labels."""
    rng = np.random.default_rng(seed)
    shape = (len(gold), len(right))
    wrong = (gold[:, np.newaxis] + rng.integers(1, labels, shape)) % labels
    codes = np.where(rng.random(shape) < right, gold[:, np.newaxis], wrong)
    return votes_of(codes[:, :, np.newaxis].tolist(), labels=tuple("abc"[:labels]))


def truth(rows: int, labels: int = 3, seed: int = 5) -> Codes:
    return np.random.default_rng(seed).integers(labels, size=rows).astype(np.int8)


def learned(votes: Votes, gold: Codes, rows: int) -> float:
    """Accuracy on the rows after the first ones, which have gold."""
    part = np.arange(len(gold)) < rows
    weights = Combination().fit(votes.take(part), gold[part], 0)
    return accuracy(score(votes.take(~part), weights), gold[~part])


@pytest.mark.parametrize("seed", range(3))
def test_a_gold_row_is_not_counted_in_the_tables_by_which_it_is_judged(seed: int) -> None:
    votes, names = simulated_votes([0.7, 0.5], items=15, relations=2, seed=seed)
    votes, gold = silenced(votes, 0.3, seed), coded(votes, names)
    shares, target = votes.shares().reshape(15, -1, 3), np.eye(3)[gold]
    pseudo = 1.0 + np.zeros((shares.shape[1], 3, 3))
    counts = np.einsum("icv,ik->icvk", shares, target)
    quick = auto._left_out(shares, gold, counts.sum(axis=0), pseudo, log_confusion(counts.sum(axis=0), pseudo))
    for row in range(15):
        recounted = log_confusion(np.delete(counts, row, axis=0).sum(axis=0), pseudo)
        np.testing.assert_allclose(quick[row], np.einsum("cv,cvk->k", shares[row], recounted), atol=1e-10)


def fitted(graded: bool) -> tuple[Votes, Codes, auto.Inputs, SoftmaxFit]:
    """Votes and gold, what is read of them, and the regression on that."""
    votes, gold = graded_votes([2.0, 0.4], items=60)
    votes = votes if graded else votes.hard()
    inputs = auto._graded(votes) if graded else auto._hard(votes, gold)
    return votes, gold, inputs, fit_softmax(inputs.values, gold, inputs.centre, inputs.sd**-2, offsets=1.0)


@pytest.mark.parametrize("graded", [False, True])
def test_no_direction_lowers_the_objective(graded: bool) -> None:
    votes, gold, inputs, fit = fitted(graded)

    def loss(point: Floats) -> float:
        slopes, offsets = point[: len(inputs.centre)], point[len(inputs.centre) :]
        logits = np.tensordot(slopes, inputs.values, axes=1) + offsets
        own = logits[np.arange(len(gold)), gold] - np.log(np.exp(logits).sum(axis=1))
        prior = np.sum(((slopes - inputs.centre) / inputs.sd) ** 2) + np.sum(offsets**2)
        return float(prior / 2 - own.sum())

    point = np.append(fit.slopes, fit.offsets)
    assert Combination().fit(votes, gold, 0).diagnostics.objective == pytest.approx(loss(point))
    np.testing.assert_allclose(approx_fprime(point, loss, 1e-7), 0, atol=1e-3)


@pytest.mark.parametrize("graded", [False, True])
def test_evidence_is_the_posterior_of_the_fit(graded: bool) -> None:
    votes, gold, inputs, fit = fitted(graded)
    values = inputs.values.copy()
    if not graded:  # of gold rows, N is left out; new rows have it from the whole tables
        shares = votes.shares().reshape(len(votes), -1, 3)
        table = inputs.cells_of(np.eye(len(fit.slopes))[0])[0].reshape(shares.shape[1], 3, 3)
        values[0] = np.einsum("icv,cvk->ik", shares, table)
    expected = softmax(np.tensordot(fit.slopes, values, axes=1) + fit.offsets)
    np.testing.assert_allclose(score(votes, Combination().fit(votes, gold, 0)), expected, atol=1e-9)


def test_gold_turns_the_votes_of_a_model_round_that_is_mostly_wrong() -> None:
    gold = truth(400, labels=2)
    assert learned(of_models(gold, [0.15, 0.2, 0.6], labels=2), gold, 100) > 0.8


def test_few_gold_rows_are_as_good_as_the_majority_and_many_are_better() -> None:
    gold = truth(3000)
    votes = of_models(gold, [0.9, 0.5, 0.5, 0.5])
    majority = accuracy(score(votes, Weights.uniform(votes)), gold)
    assert learned(votes, gold, 30) > majority
    assert learned(votes, gold, 300) > majority + 0.1


def test_texts_are_weighed_together_with_votes() -> None:
    texts, gold = written(600)
    votes = voted(texts, gold, right=0.65)
    how = Learning(optimiser="auto", text=True)
    both, alone = (fit_model(votes, known(gold, 200), one).model for one in (how, replace(how, text=False)))
    right = [accuracy(model.judged(votes).deciding[200:], gold[200:]) for model in (both, alone)]
    assert right[0] > right[1] + 0.05
    assert both.weights.evidence is not None
    assert both.calibrator is not None
    assert (both.calibrator.method, both.calibrator.reading) == ("joint", both.weights.evidence.text_slope)
    assert joint_calibrator(alone.weights, 200, "softmax") is not None
    assert joint_calibrator(alone.weights, 200, "none") is None


def test_confidence_is_the_share_of_right_labels() -> None:
    texts, gold = written(1200, telling=0.65)
    votes = voted(texts, gold, right=0.68)
    model, trial = fit_model(votes, known(gold, 300), Learning(optimiser="auto", text=True))
    probabilities = model.judged(votes).deciding[300:]
    assert probabilities.max(axis=1).mean() == pytest.approx(accuracy(probabilities, gold[300:]), abs=0.04)
    assert trial is not None
    assert trial.judged.confidence.mean() == pytest.approx(trial.judged.right.mean(), abs=0.04)


def test_a_model_is_not_worth_more_for_being_less_sure_of_everything() -> None:
    votes, gold = graded_votes([2.0, 2.0], items=200, bias=0.0)
    assert votes.grades is not None
    logs = np.log(votes.grades)
    logs[:, 1] /= 4
    shy = replace(votes, grades=softmax(logs).astype(np.float32))
    before, after = (Combination().fit(rows, gold, 0).annotator_weights for rows in (votes, shy))
    np.testing.assert_allclose(after, before, atol=0.02)


def test_a_favourite_label_is_made_up_for() -> None:
    votes, gold = graded_votes([2.0], items=300, bias=4.0)
    learn = np.arange(300) < 100
    weights = Combination().fit(votes.take(learn), gold[learn], 0)
    test = votes.take(~learn)
    scores, plain = score(test, weights), score(test, Weights.uniform(votes))
    assert accuracy(scores, gold[~learn]) > 0.7
    assert accuracy(plain, gold[~learn]) < 0.5
    assert log_loss(scores, gold[~learn]) < 0.8


def test_a_silent_model_leaves_no_trace_of_its_favourite_label() -> None:
    votes, gold = opposite_favourites()
    weights = Combination().fit(votes, gold, 0)
    silent = only_first(votes)
    assert accuracy(score(silent, weights), gold) > 0.6 > accuracy(silent.shares()[:, 0, 0], gold)


def test_the_same_graded_answer_to_several_questions_counts_once() -> None:
    votes, gold = graded_votes([2.0, 1.0], items=60, relations=1)
    assert votes.grades is not None
    thrice = replace(
        votes,
        relations=["original", "order", "wording"],
        codes=np.repeat(votes.codes, 3, axis=2),
        grades=np.repeat(votes.grades, 3, axis=2),
    )
    once, more = (score(rows, Combination().fit(rows, gold, 0)) for rows in (votes, thrice))
    np.testing.assert_allclose(once, more, atol=1e-2)


def labels_of_texts(rows: int = 260, gold_rows: int = 60, seed: int = 0) -> list[tuple[Votes, Codes]]:
    """Votes and gold of one rare label and five others, about which two models are equally good, and one is useless."""
    rng, both = np.random.default_rng(seed), []
    for share in (0.07, 0.3, 0.4, 0.5, 0.3, 0.2):
        gold = (rng.random(rows) < share).astype(np.int8)
        gold[:gold_rows][:4] = [1, 1, 1, 0]
        wrong = rng.random((rows, 3)) < [0.1, 0.1, 0.5]
        both.append((votes_of((gold[:, np.newaxis] ^ wrong)[:, :, np.newaxis].tolist(), labels=("no", "yes")), gold))
    return both


def sharing(both: list[tuple[Votes, Codes]], rows: int = 60) -> tuple[Votes, Codes]:
    """Return the first rows of the first label, with those of the others."""
    (votes, gold), *others = [(votes.take(slice(rows)), gold[:rows]) for votes, gold in both]
    return replace(votes, siblings=others), gold


def test_a_rare_label_learns_from_the_others() -> None:
    losses = []
    for seed in range(8):
        both = labels_of_texts(seed=seed)
        votes, gold = sharing(both)
        test, target = both[0][0].take(slice(60, None)), both[0][1][60:]
        fits = [Combination().fit(rows, gold, 0) for rows in (votes, replace(votes, siblings=()))]
        losses.append([log_loss(score(test, weights), target) for weights in fits])
    together, alone = np.mean(losses, axis=0)
    assert together < alone - 0.002


def test_a_fold_learns_nothing_from_rows_that_it_was_not_given() -> None:
    both = labels_of_texts()
    votes, gold = sharing(both)
    part = votes.take(slice(40))
    others = [(rows.take(slice(40)), codes[:40]) for rows, codes in votes.siblings]
    turned = [(rows, np.where(np.arange(60) < 40, codes, 1 - codes)) for rows, codes in votes.siblings]
    expected = score(both[0][0], Combination().fit(replace(part, siblings=others), gold[:40], 0))
    for siblings in (votes.siblings, turned):
        weights = Combination().fit(replace(part, siblings=siblings), gold[:40], 0)
        np.testing.assert_array_equal(score(both[0][0], weights), expected)


def test_labels_that_say_nothing_or_were_asked_otherwise_are_not_learned_from() -> None:
    votes, gold = sharing(labels_of_texts())
    (rows, codes), *_ = votes.siblings
    unknown = replace(rows, ids=[f"other {name}" for name in rows.ids])
    useless = [(rows.without(annotator=rows.annotators[0]), codes), (rows, 0 * codes), (unknown, codes)]
    shared, alone = (
        Combination().fit(replace(votes, siblings=siblings), gold, 0).evidence for siblings in (useless, [])
    )
    assert shared is not None
    assert alone is not None
    np.testing.assert_array_equal(shared.log_likelihood, alone.log_likelihood)


def test_the_texts_of_other_labels_count_where_the_label_has_texts() -> None:
    votes, gold = sharing(labels_of_texts())
    texts = np.log(np.where(np.eye(2)[gold] > 0, 0.7, 0.3))
    (rows, codes), *_ = votes.siblings
    telling = replace(rows, text_log_probs=np.log(np.where(np.eye(2)[codes] > 0, 0.9, 0.1)))
    slopes = []
    for own, others in ((texts, telling), (texts, rows), (texts, None), (None, telling), (None, rows)):
        siblings = [] if others is None else [(others, codes)]
        fit = Combination().fit(replace(votes, text_log_probs=own, siblings=siblings), gold, 0)
        assert fit.evidence is not None
        slopes.append(fit.evidence.text_slope)
    assert slopes[0] != slopes[1] == slopes[2]
    assert slopes[3:] == [0, 0]


def test_resamples_are_learned_from_alone() -> None:
    votes, _ = sharing(labels_of_texts())
    assert len(votes.take(slice(10)).siblings) == 5
    assert not votes.resampled(np.arange(10)).siblings
