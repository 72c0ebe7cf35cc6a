"""Asking nothing about texts that are settled by their words alone: how many, at what loss, and what is promised."""

from dataclasses import replace

import numpy as np
import pytest

from pcs_annotator import NOT_ASKED
from pcs_annotator.core.arrays import Floats
from pcs_annotator.core.outcome import UNLIKE_GOLD
from pcs_annotator.core.votes import OPEN
from pcs_annotator.judging.calibrate import Calibrator, settled_from
from pcs_annotator.judging.early_stop import is_checked
from pcs_annotator.judging.fit_model import Learning
from pcs_annotator.judging.frugal import Check, Frugal, Stopped, check_settled, learn_frugal, simulate
from pcs_annotator.judging.model import BY_WORDS, Model
from pcs_annotator.judging.promise.promise import Promise
from tests.judging.written import known, voted, written

TEXTS, GOLD = written(700)
VOTES = voted(TEXTS, GOLD, right=0.8, models=3)
RUN, NEW = VOTES.take(slice(400)), VOTES.take(slice(400, None))
HOW = Learning(text=True, doubtful=True, promise=Promise(max_error=0.1))


@pytest.fixture(scope="module")
def frugal() -> Frugal:
    return learn_frugal(RUN, known(GOLD[:400], 300), HOW)


@pytest.fixture(scope="module")
def simulated(frugal: Frugal) -> Stopped:
    return simulate(NEW, frugal.strategy)


def logs(*rows: tuple[float, float]) -> Floats:
    return np.log(np.array(rows))


def test_words_settle_texts_while_next_to_nothing_is_lost_against_words_and_votes_together() -> None:
    said = logs(*[(0.9, 0.1)] * 300, *[(0.7, 0.3)] * 300)
    agreeing = np.tile([0.95, 0.05], (600, 1))
    assert settled_from(agreeing, said) == pytest.approx(0.7)
    some_differ = agreeing.copy()
    some_differ[300:303] = 0.05, 0.95
    assert settled_from(some_differ, said) == pytest.approx(0.9)  # of texts that are as sure, all are settled or none
    assert settled_from(agreeing[:60], said[:60]) is None  # a quarter of a row is too much of 60
    most_differ = agreeing[:, ::-1]
    assert settled_from(most_differ, said) is None


def test_a_settled_text_has_the_probability_of_its_words_whatever_the_votes_say() -> None:
    usual = Calibrator(labels=("a", "b"), offsets=np.zeros(2), reading=0.3)
    read = logs((0.9, 0.1), (0.8, 0.2))
    settling = replace(usual, settled=0.85, alone=2.0)
    scores = np.array([[0.0, 1.0], [0.0, 1.0]])
    found = settling.apply(scores, ("a", "b"), read)
    np.testing.assert_allclose(found[0], [0.81 / 0.82, 0.01 / 0.82])
    np.testing.assert_array_equal(found[1], usual.apply(scores, ("a", "b"), read)[1])
    assert Calibrator.from_dict(settling.to_dict()).to_dict() == settling.to_dict()
    assert not usual.settles(read).any()
    assert not settling.settles(None)


def test_the_power_of_words_is_learned_from_the_gold_rows_that_they_settle() -> None:
    usual = Calibrator(labels=("a", "b"), offsets=np.zeros(2), reading=0.3)
    read = np.repeat(logs((0.9, 0.1)), 400, axis=0)
    rarely_right = (np.arange(400) % 10 >= 7).astype(np.int8)
    assert usual.settling(0.8, read, rarely_right).alone == pytest.approx(0.39, abs=0.02)  # .9 is .7 in truth
    assert usual.settling(0.95, read, rarely_right).alone == pytest.approx(1.0)  # no row is settled
    assert usual.settling(None, read, rarely_right).settled is None


def test_fewer_questions_are_asked_and_labels_are_as_good(frugal: Frugal, simulated: Stopped) -> None:
    usual = learn_frugal(RUN, known(GOLD[:400], 300), replace(HOW, doubtful=False))
    asked, stopped = simulated, simulate(NEW, usual.strategy)
    assert asked.asked.sum() < 0.8 * stopped.asked.sum()
    assert (asked.asked == 0).mean() > 0.2
    right, as_usual = (
        (model.judged(some.votes).best == GOLD[400:]).mean()
        for model, some in ((frugal.model, asked), (usual.model, stopped))
    )
    assert right > as_usual - 0.02
    assert usual.check is None


def test_unasked_texts_have_a_label_with_its_reason_and_may_be_accepted(frugal: Frugal, simulated: Stopped) -> None:
    votes = simulated.votes
    outcomes = list(frugal.model.judge(votes))
    unasked = [one for one, silent in zip(outcomes, votes.silent, strict=True) if silent]
    assert all(one.label and one.confidence and one.reason == BY_WORDS for one in unasked)
    assert "accept" in {one.decision for one in unasked}
    assert not frugal.model.unlabelled(votes).any()
    drifted = replace(frugal.model, unlike_gold=True).judge(votes.take(votes.silent))
    assert {(one.decision, one.reason) for one in drifted} == {("review", f"{UNLIKE_GOLD}: {BY_WORDS}")}


def test_a_doubtful_text_that_nobody_answers_has_no_label(frugal: Frugal) -> None:
    silent = replace(NEW, codes=np.full_like(NEW.codes, NOT_ASKED))
    nobody = frugal.model.unlabelled(silent)
    assert 0 < nobody.mean() < 1
    assert [one.label is None for one in frugal.model.judge(silent)] == nobody.tolist()


def test_promise_and_confidence_are_about_texts_asked_in_this_way(frugal: Frugal, simulated: Stopped) -> None:
    votes = simulated.votes
    judged = frugal.model.judged(votes)
    assert judged.probabilities is not None
    assert judged.accepted is not None
    right = judged.best == GOLD[400:]
    assert judged.probabilities.max(axis=1).mean() == pytest.approx(right.mean(), abs=0.05)
    assert judged.accepted.mean() > 0.3
    assert right[judged.accepted].mean() > 0.9
    trial = frugal.trial
    assert trial is not None
    assert (trial.scores == 0.5).all(axis=1).mean() > 0.1  # no vote of theirs was looked at


def test_one_settled_text_in_twenty_is_asked_about(frugal: Frugal) -> None:
    untouched = np.full((3, 2, 1), OPEN, dtype=np.int8)
    said = [frugal.strategy.said_of(text) for text in NEW.texts or ()]
    assert frugal.model.text is not None
    assert frugal.model.calibrator is not None
    settled = frugal.model.calibrator.settles(frugal.model.text.read(NEW.texts or (), NEW.labels))
    asked = np.array([frugal.strategy.needed(untouched, one) > 0 for one in said])
    checked = np.array([is_checked(text) for text in NEW.texts or ()])
    np.testing.assert_array_equal(asked, ~settled | checked)
    assert 0.02 < checked.mean() < 0.09


def test_checked_texts_tell_whether_words_still_settle_labels(frugal: Frugal, simulated: Stopped) -> None:
    here = check_settled(frugal.model, simulated.votes)
    assert here is not None
    assert frugal.check is not None
    assert 0 < here.texts < frugal.check.texts
    assert not here.worse_than(frugal.check)
    assert frugal.check.others / frugal.check.texts < 0.05
    others = replace(NEW, codes=(1 - NEW.codes).astype(np.int8))
    turned = check_settled(frugal.model, simulate(others, frugal.strategy).votes)
    assert turned is not None
    assert turned.others > here.others
    assert Check(40, 12).worse_than(Check(400, 4))
    assert check_settled(Model(weights=frugal.model.weights, calibrator=None), NEW) is None


def test_graded_answers_are_spared_too() -> None:
    grades = np.full((*RUN.codes.shape, 2), 0.2, dtype=np.float32)
    np.put_along_axis(grades, RUN.codes[..., np.newaxis].astype(np.intp), np.float32(0.8), axis=-1)
    votes = replace(RUN, grades=grades)
    found = learn_frugal(votes, known(GOLD[:400], 300), replace(HOW, optimiser="scaling"))
    asked = simulate(votes, found.strategy).asked
    assert set(asked.tolist()) == {0, 6}


def test_nothing_is_settled_without_texts_that_tell() -> None:
    alone = learn_frugal(replace(RUN, texts=None), known(GOLD[:400], 300), HOW)
    assert alone.check is None
    noise = replace(RUN, texts=[f"{row * 7919 % 1000:x}" for row in range(400)])
    assert learn_frugal(noise, known(GOLD[:400], 300), HOW).check is None
