from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pcs_annotator.core.vote import NOT_ASKED
from pcs_annotator.errors import ConfigError, PcsWarning, UnknownNameError
from pcs_annotator.judging.fit_model import Learning, fit_model, learn_model
from pcs_annotator.judging.promising.acceptance import Promise
from pcs_annotator.judging.spending.frugal import Frugal, StoppingOptions, learn_frugal
from pcs_annotator.judging.spending.strategy import simulate
from tests.builders import simulated_votes

HOW = Learning(promise=Promise(max_error=0.1))
VOTES, GOLD = simulated_votes([0.85, 0.75, 0.4], items=100, relations=2)
NEW, _ = simulated_votes([0.85, 0.75, 0.4], items=150, relations=2, seed=9)


def learned(**how: object) -> Frugal:
    return learn_frugal(VOTES, GOLD, HOW, StoppingOptions(**how))  # type: ignore[arg-type]  # one of several settings


@pytest.mark.parametrize("level", [0, 1, 1.5, -0.1])
def test_a_level_that_is_no_probability_is_refused(level: float) -> None:
    with pytest.raises(ConfigError, match="between 0 and 1"):
        StoppingOptions(level=level)


def test_the_exact_stop_asks_less_and_gives_the_labels_of_asking_everything() -> None:
    frugal = learned()
    everything = learn_model(VOTES, GOLD, HOW)
    asked = simulate(NEW, frugal.strategy).votes
    assert (asked.codes != NOT_ASKED).mean() < 0.8
    assert frugal.model.judged(asked).best.tolist() == everything.judged(NEW).best.tolist()
    assert frugal.model.weights.by_annotator == everything.weights.by_annotator


def test_promise_and_confidence_are_about_texts_asked_in_part() -> None:
    frugal = learned()
    everything = learn_model(VOTES, GOLD, HOW)
    assert frugal.model.certificate is not None
    assert everything.certificate is not None
    assert frugal.model.certificate.fingerprint == everything.certificate.fingerprint
    assert frugal.model.calibrator is not None
    assert everything.calibrator is not None
    assert frugal.model.calibrator.to_dict() != everything.calibrator.to_dict()


def test_spending_adds_up() -> None:
    frugal = learned()
    asked = simulate(VOTES, frugal.strategy).votes.codes != NOT_ASKED
    spending = frugal.spending
    assert spending.questions == pytest.approx(asked.mean())
    assert spending.by_annotator == pytest.approx(dict(zip(VOTES.annotators, asked.mean(axis=(0, 2, 3)), strict=True)))
    seen = asked.any(axis=(1, 3)).mean(axis=0)
    assert spending.by_relation == pytest.approx(dict(zip(VOTES.relations, seen, strict=True)))
    assert np.mean(list(spending.by_annotator.values())) == pytest.approx(spending.questions)


def test_what_was_never_asked_is_no_part_of_the_questions() -> None:
    codes = VOTES.codes.copy()
    codes[:, 2] = NOT_ASKED
    with pytest.warns(PcsWarning, match="model-2 never gave a usable label"):
        spending = learn_frugal(replace(VOTES, codes=codes), GOLD, HOW, StoppingOptions()).spending
    assert spending.by_annotator["model-2"] == 0
    assert 0 < spending.questions <= 1


def test_a_posterior_stop_asks_no_more_than_the_exact_one_and_less_at_a_lower_level() -> None:
    exact, sure, unsure = learned(), learned(stop="posterior", level=0.99), learned(stop="posterior", level=0.7)
    assert unsure.spending.questions < sure.spending.questions <= exact.spending.questions


def test_pruned_cells_are_never_asked() -> None:
    pruned = learned(prune=True)
    assert len(pruned.strategy.order) < 6
    asked = simulate(NEW, pruned.strategy).votes
    kept = {(cell.annotator, cell.relation) for cell in pruned.strategy.order}
    for annotator in range(3):
        for relation in range(2):
            if (annotator, relation) not in kept:
                assert (asked.codes[:, annotator, relation] == NOT_ASKED).all()


def test_a_cascade_asks_the_dear_annotator_least() -> None:
    frugal = learned(prices={"model-0": 10.0, "model-1": 1.0, "model-2": 1.0}, level=0.8)
    shares = frugal.spending.by_annotator
    assert shares["model-0"] < shares["model-1"]
    assert shares["model-0"] < learned().spending.by_annotator["model-0"]


def test_an_unknown_name_with_a_price_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="nobody"):
        learned(prices={"nobody": 1.0})


def test_the_order_of_annotators_and_relations_does_not_matter() -> None:
    turned = replace(
        VOTES,
        codes=VOTES.codes[:, ::-1, ::-1],
        annotators=VOTES.annotators[::-1],
        relations=VOTES.relations[::-1],
    )
    before, after = learned(stop="posterior"), learn_frugal(turned, GOLD, HOW, StoppingOptions(stop="posterior"))
    assert after.spending.by_annotator == pytest.approx(before.spending.by_annotator)
    assert after.spending.by_relation == pytest.approx(before.spending.by_relation)


def test_the_trial_judges_gold_rows_asked_about_in_the_same_way() -> None:
    frugal = learned()
    assert frugal.trial is not None
    assert len(frugal.trial.gold) == 100
    full = fit_model(VOTES, GOLD, HOW).trial
    assert full is not None
    assert np.mean(frugal.trial.judged.best == full.judged.best) >= 0.95  # labels of means over several splits
    assert not np.array_equal(frugal.trial.scores, full.scores)
