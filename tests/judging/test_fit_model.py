import math
import warnings
from dataclasses import replace

import numpy as np
import pytest

from pcs_annotator import ABSTAINED, NOT_ASKED, PcsWarning, Votes
from pcs_annotator.core.arrays import Mask
from pcs_annotator.core.gold_codes import UNLABELLED
from pcs_annotator.core.votes import positions_of
from pcs_annotator.judging.fit_model import Learning, chosen_optimiser, fit_model, labelled_rows, unseen_labels
from pcs_annotator.judging.heldout import Splits
from pcs_annotator.judging.label_shape import LabelShape
from pcs_annotator.judging.metrics.figures import exact_interval
from pcs_annotator.judging.model import Model
from pcs_annotator.judging.optimisers.regression import LinearRegression
from pcs_annotator.judging.promise.certificate import fingerprint
from pcs_annotator.judging.promise.promise import Promise
from tests.builders import learn_model, simulated_votes, the
from tests.judging.strategies import coded

PROMISE = Promise(max_error=0.1)
HOW = Learning(promise=PROMISE)


def quiet_learn(votes: Votes, gold: list[str | None], how: Learning = HOW) -> Model:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PcsWarning)
        return learn_model(votes, gold, how)


def sampled(votes: Votes, gold: list[str], random_sample: Mask) -> Model:
    return fit_model(votes, coded(votes, gold), HOW, random_sample=random_sample).model


def reason_of(model: Model) -> str:
    assert not the(model.certificate).holds
    return the(model.certificate).why_not


def test_enough_gold_gives_weights_calibrator_promise_and_profile() -> None:
    votes, gold = simulated_votes([0.9, 0.8, 0.6], items=100)
    model = learn_model(votes, gold, replace(HOW, version="7"))
    assert model.calibrator is not None
    assert model.certificate is not None
    assert model.certificate.holds
    assert model.certificate.gold_rows == 100
    assert model.certificate.fingerprint == fingerprint(votes, coded(votes, gold), "7")
    assert the(model.profile).items == 100
    assert model.sets is None


def test_confidence_is_called_calibrated_from_50_gold_rows_on() -> None:
    votes, gold = simulated_votes([0.9, 0.8, 0.6], items=50)
    model = learn_model(votes, gold, Learning())
    assert (model.calibrated, model.margin, model.gold_rows) == (True, None, 50)


def test_confidence_from_fewer_rows_is_rough_by_the_interval_of_accuracy() -> None:
    votes, gold = simulated_votes([0.9, 0.8, 0.6], items=49)
    model, trial = fit_model(votes, coded(votes, gold), Learning())
    assert model.calibrator is not None
    assert not model.calibrated
    low, high = exact_interval(int(the(trial).judged.right.sum()), 49)
    assert model.margin == the(trial).margin == (high - low) / 2
    raw = learn_model(votes, gold, Learning(splits=Splits(calibration="none")))
    assert (raw.calibrated, raw.margin) == (False, None)


def test_a_promise_says_how_gold_was_split() -> None:
    votes, gold = simulated_votes([0.9, 0.8, 0.6], items=60)
    few = the(learn_model(votes, gold, HOW).certificate)
    votes, gold = simulated_votes([0.9, 0.8, 0.6], items=500)
    many = the(learn_model(votes, gold, replace(HOW, splits=Splits(folds=4))).certificate)
    assert all(fact in few.split for fact in ("60 gold rows", "5 folds", "3 times"))
    assert all(fact in many.split for fact in ("500 gold rows", "4 folds"))
    assert "times" not in many.split
    assert "carry no promise" not in few.split


@pytest.mark.parametrize("rows", [1, 9])
def test_fewer_than_ten_gold_rows_promise_nothing_and_the_reason_names_the_number_needed(rows: int) -> None:
    votes, gold = simulated_votes([0.9, 0.6], items=40)
    model = quiet_learn(votes, [*gold[:rows], *[None] * (40 - rows)])
    assert reason_of(model).startswith(f"{rows} gold row")
    assert "at least 44" in reason_of(model)
    assert model.calibrator is None
    assert {outcome.decision for outcome in model.judge(votes)} == {"review"}
    assert {outcome.confidence for outcome in model.judge(votes)} == {None}


def test_even_an_easy_promise_needs_as_many_rows_as_a_calibrator() -> None:
    votes, gold = simulated_votes([0.9, 0.6], items=5)
    assert "at least 10" in reason_of(quiet_learn(votes, [*gold], Learning(promise=Promise(max_error=0.5))))


def test_gold_of_one_label_promises_nothing_and_asks_for_another_class() -> None:
    votes, _ = simulated_votes([0.9, 0.6], items=40)
    model = quiet_learn(votes, ["neutral"] * 40)
    assert "all 40 gold rows say 'neutral'" in reason_of(model)
    assert model.calibrator is None


def test_without_calibration_there_is_no_promise() -> None:
    votes, gold = simulated_votes([0.9, 0.6], items=60)
    model = learn_model(votes, gold, replace(HOW, splits=Splits(calibration="none")))
    assert "without calibration" in reason_of(model)
    assert model.calibrator is None
    assert {outcome.decision for outcome in model.judge(votes)} == {"review"}


def test_rows_that_were_not_drawn_at_random_support_no_promise_but_are_learned_from() -> None:
    votes, gold = simulated_votes([0.9, 0.8, 0.6], items=100)
    drawn = np.arange(100) < 60
    everything, part = learn_model(votes, gold, HOW), sampled(votes, gold, drawn)
    assert the(part.certificate).gold_rows == 60
    assert "40 of them" in the(part.certificate).split
    assert part.weights.by_annotator == everything.weights.by_annotator
    no_random_row = sampled(votes, gold, np.zeros(100, dtype=np.bool_))
    assert "drawn at random" in reason_of(no_random_row)
    assert no_random_row.calibrator is not None


def test_gold_rows_that_no_model_answered_support_no_promise() -> None:
    votes, gold = simulated_votes([0.9, 0.8, 0.6], items=120)
    codes = votes.codes.copy()
    codes[:20] = ABSTAINED
    model = quiet_learn(replace(votes, codes=codes), [*gold])
    assert (the(model.certificate).holds, the(model.certificate).gold_rows, model.gold_rows) == (True, 100, 120)
    codes[:] = ABSTAINED
    assert reason_of(quiet_learn(replace(votes, codes=codes), [*gold])).startswith("no gold row has a label")


def test_the_order_of_rows_does_not_change_which_count_as_drawn() -> None:
    votes, gold = simulated_votes([0.8, 0.7], items=80)
    drawn = np.random.default_rng(1).random(80) < 0.7
    order = np.random.default_rng(2).permutation(80)
    before = sampled(votes, gold, drawn).certificate
    after = sampled(votes.take(order), [gold[row] for row in order], drawn[order]).certificate
    assert before == after


def test_prediction_sets_are_learned_when_requested_and_possible() -> None:
    votes, gold = simulated_votes([0.9, 0.6], items=60)
    assert learn_model(votes, gold, Learning(sets=True)).sets is not None
    assert quiet_learn(votes, [*gold[:5], *[None] * 55], Learning(sets=True)).sets is None


def test_questions_that_would_not_be_asked_count_neither_for_confidence_nor_for_the_profile() -> None:
    votes, gold = simulated_votes([0.9, 0.6, 0.6], items=80)

    def first_only(held_out: Votes, weights: object, calibrator: object) -> Votes:
        codes = held_out.codes.copy()
        codes[:, 1:] = -2
        return replace(held_out, codes=codes)

    everything, part = (
        learn_model(votes, gold, HOW),
        fit_model(votes, coded(votes, gold), HOW, ask_policy=first_only).model,
    )
    assert part.weights.by_annotator == everything.weights.by_annotator
    assert the(part.profile).cells[1:].sum() == 0
    assert the(everything.profile).cells[1:].sum() == 80 * 8
    assert part.calibrator != everything.calibrator


def test_a_users_optimiser_is_used_as_it_is() -> None:
    votes, gold = simulated_votes([0.9, 0.6], items=40)
    own = LinearRegression()
    model = learn_model(votes, gold, replace(HOW, optimiser=own))
    assert chosen_optimiser(own, model.weights) is own


def test_the_label_of_a_gold_row_is_its_most_probable_one_and_so_is_the_profiles() -> None:
    votes, gold = simulated_votes([0.5, 0.45], items=200, labels=3)
    skewed = ["negative" if row % 3 else name for row, name in enumerate(gold)]
    model, trial = fit_model(votes, coded(votes, skewed), Learning())
    assert trial is not None
    np.testing.assert_array_equal(trial.judged.best, trial.probabilities.argmax(axis=1))
    np.testing.assert_array_equal(trial.judged.confidence, trial.probabilities.max(axis=1))
    assert (trial.judged.best != trial.scores.argmax(axis=1)).any()
    assert the(model.profile).chosen.tolist() == np.bincount(model.judged(votes).best, minlength=3).tolist()


def test_the_promise_is_kept_on_new_rows() -> None:
    repetitions, alpha = 20, 0.1
    broken = accepted_rows = 0
    for seed in range(repetitions):
        votes, gold = simulated_votes([0.75, 0.7, 0.6], items=600, relations=2, seed=seed)
        seen, rest = votes.take(slice(100)), votes.take(slice(100, None))
        model = quiet_learn(seen, [*gold[:100]], replace(HOW, promise=Promise(max_error=alpha)))
        verdicts = model.judged(rest)
        assert verdicts.accepted is not None
        wrong = verdicts.best != coded(votes, gold)[100:]
        accepted_rows += int(verdicts.accepted.sum())
        broken += bool(verdicts.accepted.any() and wrong[verdicts.accepted].mean() > alpha)
    assert broken / repetitions <= 0.1 + 2 * math.sqrt(0.1 * 0.9 / repetitions)
    assert accepted_rows > 0.1 * 500 * repetitions


def test_copies_of_a_text_count_once_for_everything_that_is_learned() -> None:
    votes, gold = simulated_votes([0.9, 0.8, 0.6], items=60)
    rows = np.tile(np.arange(60), 3)
    codes = coded(votes, gold)[rows]
    # ids that sort as those of the originals do
    copies = replace(votes.resampled(rows), ids=[f"{votes.ids[row]}-{turn}" for turn, row in enumerate(rows.tolist())])
    once, again = (
        fit_model(copies.take(kept), codes[kept], HOW, distinct=mask)
        for kept, mask in ((slice(60), None), (slice(None), np.arange(180) < 60))
    )
    assert np.array_equal(the(once.trial).probabilities, the(again.trial).probabilities)
    first, second = once.model.to_dict(), again.model.to_dict()
    assert first["certificate"].pop("fingerprint") != second["certificate"].pop("fingerprint")
    assert first == second
    drawn = np.arange(180) % 2 == 0
    sampled_model = fit_model(copies, codes, HOW, random_sample=drawn, distinct=np.arange(180) < 60).model
    assert the(sampled_model.certificate).gold_rows == 30


def test_a_wrong_label_counts_for_every_row_of_its_text_that_was_drawn_and_a_right_one_once() -> None:
    votes, gold = simulated_votes([0.9, 0.85, 0.8], items=300)
    codes = coded(votes, gold)
    codes[::100] = (codes[::100] + 1) % 3
    plain = fit_model(votes, codes, HOW)
    right = the(plain.trial).judged.right[np.argsort(positions_of(the(plain.trial).ids, votes.ids, "item"))]
    assert not right.all()
    often = the(fit_model(votes, codes, HOW, random_sample=np.where(right, 50, 1)).model.certificate)
    wrong = the(fit_model(votes, codes, HOW, random_sample=np.where(right, 1, 50)).model.certificate)
    assert often.thresholds == the(plain.model.certificate).thresholds
    assert often.gold_rows == wrong.gold_rows == 300
    assert the(plain.model.certificate).holds
    assert min(wrong.thresholds.values(), default=1.0) > min(often.thresholds.values())
    assert "every copy of a text" in wrong.split


@pytest.mark.parametrize("by", ["", "half"])
def test_rows_without_a_decision_count_as_wrong(by: str) -> None:
    votes, gold = simulated_votes([0.95, 0.9, 0.9], items=300)
    votes = replace(votes, groups=["first" if row % 2 else "second" for row in range(300)]) if by else votes
    how = replace(HOW, promise=replace(PROMISE, by=by))
    codes = coded(votes, gold)
    codes[:60] = UNLABELLED
    decided = the(fit_model(votes, codes, how, random_sample=(codes != UNLABELLED).astype(np.intp)).model.certificate)
    tied = the(fit_model(votes, codes, how, random_sample=np.ones(300, dtype=np.intp)).model.certificate)
    assert decided.holds
    assert (decided.undecided_rows, tied.undecided_rows, tied.gold_rows) == (0, 60, 300)
    assert not tied.holds  # a fifth may be wrong


def test_false_discoveries_are_counted_among_all_copies_of_texts_without_gold() -> None:
    votes, gold = simulated_votes([0.8, 0.75, 0.7], items=400)
    codes = coded(votes, gold)
    codes[200:] = UNLABELLED
    how = replace(HOW, promise=replace(PROMISE, kind="false-discoveries"))
    first = the(fit_model(votes, codes, how).model.judged(votes).confidence)
    unsure = np.argsort(first[:200])[:80:2]
    codes[unsure] = (codes[unsure] + 1) % 3
    model = fit_model(votes, codes, how).model
    sure = the(model.judged(votes).confidence)
    doubtful = np.where(sure < np.median(sure), 20, 1)
    often = fit_model(votes, codes, how, copies=doubtful).model
    assert the(model.certificate).thresholds != the(often.certificate).thresholds


def test_a_promise_that_is_refused_or_used_up_says_so() -> None:
    votes, gold = simulated_votes([0.95, 0.9], items=200)
    promise = Promise(max_error=0.2)
    refused, used_up = (
        learn_model(votes, gold, Learning(promise=promise, **more)).certificate
        for more in ({"refused": "this folder is a copy"}, {"spent": 0.1})
    )
    assert (the(refused).why_not, the(refused).level) == ("this folder is a copy", 0)
    assert "used up all errors" in the(used_up).why_not


def test_labels_of_gold_rows_come_from_fits_that_did_not_see_them_and_others_from_the_model() -> None:
    votes, gold = simulated_votes([0.8, 0.7, 0.6], items=60)
    codes = np.where(votes.codes >= 0, len(votes.labels) - 1 - votes.codes, votes.codes)
    codes[[5, 50]] = NOT_ASKED
    votes = replace(votes, codes=codes, labels=votes.labels[::-1])  # not in the order of the alphabet
    truth = coded(votes, gold)
    truth[40:] = UNLABELLED
    distinct = np.arange(60) != 7
    model, trial = fit_model(votes, truth, Learning(), distinct=distinct)
    assert trial is not None
    gold_rows, _ = labelled_rows(votes.take(distinct), truth[distinct])
    found = unseen_labels(votes, distinct, model, gold_rows, trial.judged.best)
    assert (found[[5, 7, 50]] == UNLABELLED).all()
    assert [*trial.ids] == sorted(name for row, name in enumerate(votes.ids[:40]) if row not in (5, 7))
    held_out = {name: trial.labels[best] for name, best in zip(trial.ids, trial.judged.best, strict=True)}
    for row in (0, 11, 39):
        assert votes.labels[found[row]] == held_out[votes.ids[row]]
    assert (found[51:] == model.judged(votes).best[51:]).all()
    assert trial.judged.right.sum() == (found[:40] == truth[:40]).sum()


def test_gold_of_one_label_gives_no_interval_of_weights() -> None:
    votes, names = simulated_votes([0.9, 0.8], items=30)
    model = quiet_learn(votes, [names[0]] * 30, replace(HOW, resamples=5))
    assert (model.calibrator, model.margin) == (None, None)
    assert not model.weights.diagnostics.annotator_intervals


def test_candidates_that_are_all_right_promise_nothing() -> None:
    codes = np.random.default_rng(0).integers(2, size=(40, 2, 1, 1)).astype(np.int8)
    names = [f"t{row}:passage" for row in range(40)]
    votes = Votes(codes=codes, ids=names, annotators=["m", "n"], relations=["original"], labels=("yes", "no"))
    votes = replace(votes, units=[f"t{row // 2}" for row in range(40)])
    with pytest.warns(PcsWarning):
        model = fit_model(
            votes, np.zeros(40, dtype=np.int8), replace(HOW, shape=LabelShape.of("passages", ("yes", "no")))
        ).model
    assert "all candidates in gold texts are right" in reason_of(model)
