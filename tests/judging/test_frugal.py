from dataclasses import replace

import numpy as np
import pytest

from pcs_annotator import NOT_ASKED, PcsWarning, score
from pcs_annotator.core.gold_codes import UNLABELLED
from pcs_annotator.judging.early_stop import Frugal, exact_stop, learn_frugal, simulate, spending_of
from pcs_annotator.judging.fit_model import Learning, fit_model
from pcs_annotator.judging.heldout import Splits
from pcs_annotator.judging.promise.promise import Promise
from pcs_annotator.judging.score import choose
from tests.builders import learn_model, simulated_votes, the
from tests.judging.panels import KINDS, Kind, graded_votes
from tests.judging.strategies import coded

HOW = Learning(promise=Promise(max_error=0.1))
VOTES, GOLD = simulated_votes([0.85, 0.75, 0.4], items=100, relations=2)
CODES = coded(VOTES, GOLD)
NEW, _ = simulated_votes([0.85, 0.75, 0.4], items=150, relations=2, seed=9)


def learned() -> Frugal:
    return learn_frugal(VOTES, CODES, HOW)


def test_the_exact_stop_asks_less_and_gives_the_labels_of_asking_everything() -> None:
    frugal = learned()
    everything = learn_model(VOTES, GOLD, HOW)
    asked = simulate(NEW, frugal.strategy)
    assert (asked.codes != NOT_ASKED).mean() < 0.8
    assert frugal.model.judged(asked).best.tolist() == everything.judged(NEW).best.tolist()
    assert frugal.model.weights.by_annotator == everything.weights.by_annotator


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("optimiser", ["lr", "auto"])
def test_no_label_differs_from_that_of_asking_everything(kind: Kind, optimiser: str) -> None:
    votes, gold = simulated_votes([0.7, 0.6, 0.55], items=90, relations=3, seed=1)
    skewed = ["negative" if row % 4 == 0 else name for row, name in enumerate(gold)]
    new, _ = simulated_votes([0.7, 0.6, 0.55], items=60, relations=3, seed=2)
    known, unknown = graded_votes(votes, kind, 3), graded_votes(new, kind, 4)
    how = Learning(optimiser=optimiser, splits=Splits(repeats=1))
    frugal, everything = learn_frugal(known, coded(votes, skewed), how), learn_model(known, skewed, how)
    stopped = simulate(unknown, frugal.strategy)
    late, early = everything.judged(unknown), frugal.model.judged(stopped)
    np.testing.assert_array_equal(early.best, late.best)
    np.testing.assert_array_equal(early.best, the(early.probabilities).argmax(axis=1))
    if kind == "hard":
        assert (stopped.codes != NOT_ASKED).mean() < 0.9
    if optimiser == "lr":
        assert (late.best != late.scores.argmax(axis=1)).any()


def test_promise_and_confidence_are_about_texts_asked_in_part() -> None:
    frugal = learned()
    everything = learn_model(VOTES, GOLD, HOW)
    assert the(frugal.model.certificate).fingerprint == the(everything.certificate).fingerprint
    assert the(frugal.model.calibrator).to_dict() != the(everything.calibrator).to_dict()


def test_spending_adds_up() -> None:
    frugal = learned()
    asked = simulate(VOTES, frugal.strategy).codes != NOT_ASKED
    spending = frugal.spending
    assert spending.questions == pytest.approx(asked.mean())
    assert spending.by_annotator == pytest.approx(dict(zip(VOTES.annotators, asked.mean(axis=(0, 2, 3)), strict=True)))
    seen = asked.any(axis=(1, 3)).mean(axis=0)
    assert spending.by_relation == pytest.approx(dict(zip(VOTES.relations, seen, strict=True)))
    assert np.mean(list(spending.by_annotator.values())) == pytest.approx(spending.questions)


def test_of_graded_votes_every_question_is_asked() -> None:
    graded = graded_votes(VOTES, "mixed")
    strategy = exact_stop(graded, learn_model(graded, GOLD, Learning()))
    stopped = simulate(graded, strategy)
    np.testing.assert_array_equal(stopped.codes, graded.codes)
    np.testing.assert_array_equal(stopped.grades, graded.grades)
    assert spending_of(graded, strategy).questions == 1


@pytest.mark.parametrize(("gold_rows", "calibration"), [(8, "softmax"), (100, "none")])
def test_without_a_calibrator_asking_stops_when_the_highest_score_is_settled(gold_rows: int, calibration: str) -> None:
    gold = np.where(np.arange(100) < gold_rows, CODES, UNLABELLED).astype(np.int8)
    frugal = learn_frugal(VOTES, gold, Learning(splits=Splits(calibration=calibration)))
    assert frugal.model.calibrator is None
    assert (frugal.trial is None) == (gold_rows < 10)
    asked = simulate(NEW, frugal.strategy)
    expected = choose(score(NEW, frugal.model.weights), NEW.labels)
    assert frugal.model.judged(asked).best.tolist() == expected.tolist()
    assert (asked.codes != NOT_ASKED).mean() < 0.8


def test_cells_that_were_never_asked_are_not_counted_as_questions() -> None:
    codes = VOTES.codes.copy()
    codes[:, 2] = NOT_ASKED
    with pytest.warns(PcsWarning, match="model-2 never gave a usable label"):
        spending = learn_frugal(replace(VOTES, codes=codes), CODES, HOW).spending
    assert spending.by_annotator["model-2"] == 0
    assert 0 < spending.questions <= 1


def test_the_trial_judges_gold_rows_asked_about_in_the_same_way() -> None:
    frugal = learned()
    assert frugal.trial is not None
    assert len(frugal.trial.gold) == 100
    full = the(fit_model(VOTES, CODES, HOW).trial)
    assert np.mean(frugal.trial.judged.best == full.judged.best) >= 0.95  # labels of means over several splits
    assert not np.array_equal(frugal.trial.scores, full.scores)
