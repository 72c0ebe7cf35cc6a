import json
from dataclasses import replace

import numpy as np
import pytest

from pcs_annotator import ABSTAINED, PcsWarning, Votes
from pcs_annotator.base.errors import ConfigError, GoldError
from pcs_annotator.judging.optimisers.regression import LinearRegression
from pcs_annotator.runs.columns import probabilities
from pcs_annotator.runs.learn import (
    KnownRows,
    check_drift,
    evaluation_file,
    fit_for_classifier,
    learn,
    learn_if_possible,
    learned_from,
    needs_gold,
)
from pcs_annotator.runs.settings import LearnSettings
from tests.builders import simulated_votes, the

QUICK = LearnSettings(optimiser="lr", folds=2, resamples=5)


def test_learning_gives_weights_calibrator_and_figures_against_the_references() -> None:
    votes, gold = simulated_votes([0.9, 0.6, 0.4])
    learned = learn(votes, gold, QUICK)
    assert [figures.method for figures in learned.figures] == ["lr", "uniform", "majority", "zero-shot model-0"]
    assert learned.model.weights.by_annotator["model-0"] > learned.model.weights.by_annotator["model-2"]
    assert learned.model.calibrator is not None
    assert learned.figures[0].behind is None
    assert learned.figures[0].auroc.n == len(votes)


def test_too_little_gold_still_gives_a_model_and_the_reason_why_there_are_no_figures() -> None:
    votes, gold = simulated_votes([0.9, 0.6], items=50)
    few = [label if row < 5 else None for row, label in enumerate(gold)]
    learned = learn(votes, few, replace(QUICK, folds=5))
    assert not learned.figures
    assert "at least 10 gold rows" in learned.no_figures
    assert learned.model.calibrator is None


def test_one_class_of_gold_gives_equal_weights_and_a_warning() -> None:
    votes, _ = simulated_votes([0.9, 0.6], items=50)
    with pytest.warns(PcsWarning) as caught:
        learned = learn(votes, ["neutral"] * 50, QUICK)
    assert any("all 50 gold rows say 'neutral'" in str(warning.message) for warning in caught)
    assert learned.model.weights.by_annotator == {"model-0": 0.5, "model-1": 0.5}
    assert "two classes" in learned.no_figures


def test_without_gold_votes_count_the_same_and_nothing_is_accepted_but_it_shows_where_answers_agree() -> None:
    votes, _ = simulated_votes([0.9, 0.6], items=40)
    learned = learn_if_possible(votes, [None] * 40, QUICK)
    assert learned.model.weights.by_annotator == {"model-0": 0.5, "model-1": 0.5}
    assert (learned.model.calibrator, learned.model.certificate) == (None, None)
    assert "no gold labels" in learned.no_figures
    assert {outcome.decision for outcome in learned.model.judge(votes)} == {"agree", "review"}
    assert learned.model.decided_by == "agreement"
    undecided = learn_if_possible(votes, [None] * 40, replace(QUICK, max_error=None)).model
    assert {outcome.decision for outcome in undecided.judge(votes)} == {None}


@pytest.mark.parametrize("gold", [True, False])
@pytest.mark.parametrize("max_error", [0.0, 1.0, -1.0])
def test_a_promise_that_cannot_be_made_is_an_error_with_gold_or_without(max_error: float, gold: bool) -> None:
    votes, labels = simulated_votes([0.9, 0.6], items=40)
    with pytest.raises(ConfigError, match="max_error"):
        learn_if_possible(votes, labels if gold else [None] * 40, replace(QUICK, max_error=max_error))


def test_gold_rows_that_differ_from_the_others_raise_a_warning() -> None:
    votes, gold = simulated_votes([0.9, 0.85, 0.8], items=300)
    settings = replace(QUICK, max_error=0.1)
    one_sided = [label if label == "negative" or row % 5 == 0 else None for row, label in enumerate(gold)]
    with pytest.warns(PcsWarning, match=r"\d+ % of the rows without gold"):
        learn(votes, one_sided, settings)
    alike = [label if row % 2 else None for row, label in enumerate(gold)]
    learn(votes, alike, settings)
    chosen = np.array([row % 2 == 1 for row in range(300)])
    learn(votes, alike, settings, KnownRows(random_sample=chosen))


def test_new_votes_that_differ_from_those_learned_from_are_noticed_and_others_are_not() -> None:
    votes, gold = simulated_votes([0.9, 0.85], items=200)
    model = learn(votes, gold, QUICK).model
    same, _ = simulated_votes([0.9, 0.85], items=200, seed=5)
    alike = the(check_drift(model, same))
    assert alike.sentence == "new texts are answered like the calibration set"
    one_class = same.take(np.flatnonzero(same.codes[:, 0, 0, 0] == 0))
    differ = the(check_drift(model, one_class))
    assert differ.found
    assert "100 % of its answers about new texts" in differ.sentence
    assert check_drift(replace(model, profile=None), one_class) is None


def test_copies_of_a_new_text_count_once_and_raise_no_alarm() -> None:
    votes, gold = simulated_votes([0.9, 0.85], items=200)
    model = learn(votes, gold, QUICK).model
    rows = np.repeat(np.arange(15), 30)
    copies, texts = votes.resampled(rows), [f"Text  {row}" for row in rows]
    found = the(check_drift(model, copies, texts))
    assert found.sentence == "15 texts are too few to compare: 20 are needed on both sides"
    assert the(check_drift(model, copies)).found


def test_a_promise_comes_with_how_the_other_rows_compare() -> None:
    votes, gold = simulated_votes([0.9, 0.85, 0.8], items=300)
    settings = replace(QUICK, max_error=0.1)
    learned = learn(votes, [label if row % 2 else None for row, label in enumerate(gold)], settings)
    assert the(learned.drift).sentence == "the rows without gold are answered like those with"
    written = json.loads(json.dumps(evaluation_file(learned)))
    assert learned_from(learned.model, written).drift == learned.drift
    assert learned_from(learned.model, {**written, "drift": None}).drift is None
    assert learn(votes, gold, settings).drift is None


def repeated(times: int, items: int = 60) -> tuple[Votes, list[str], list[str]]:
    """Return votes on texts that each occur several times, their gold, and the texts."""
    votes, gold = simulated_votes([0.9, 0.8, 0.6], items=items)
    rows = np.tile(np.arange(items), times)
    return votes.resampled(rows), [gold[row] for row in rows], [f"text {row}" for row in rows]


def test_gold_rows_that_repeat_a_text_count_once_and_are_counted() -> None:
    votes, gold, texts = repeated(3)
    learned, plain = learn(votes, gold, QUICK, KnownRows(texts=texts)), learn(*repeated(1)[:2], QUICK)
    assert the(learned.model.certificate).gold_rows == the(learned.model.certificate).assumed_rows == 60
    assert learned.model.weights.diagnostics.gold_rows == 60
    assert [figures.auroc.n for figures in learned.figures] == [60] * len(plain.figures)
    assert [flag.detail for flag in learned.model.weights.diagnostics.flags] == [
        "120 gold rows repeat a text and count once: copies say nothing new"
    ]
    assert not plain.model.weights.diagnostics.flags
    twice = learn(votes.take(slice(61)), gold[:61], QUICK, KnownRows(texts=texts[:61]))
    assert "1 gold row repeats a text and counts once" in twice.model.weights.diagnostics.flags[0].detail


def test_copies_with_different_gold_are_not_learned_from_and_named() -> None:
    votes, gold, texts = repeated(2)
    gold[0] = next(label for label in votes.labels if label != gold[60])
    learned = learn(votes, gold, QUICK, KnownRows(texts=texts))
    kinds = {flag.kind: flag.detail for flag in learned.model.weights.diagnostics.flags}
    assert "these 2 rows are not learned from: '0', '60'; correct them" in kinds["gold contradictory"]
    assert learned.model.weights.diagnostics.gold_rows == 59


def test_gold_that_all_contradicts_itself_is_an_error() -> None:
    votes, gold, texts = repeated(2)
    others = [next(one for one in votes.labels if one != label) for label in gold[:60]]
    with pytest.raises(GoldError, match=r"these 120 rows are not learned from: '0', '1', .*; correct them"):
        learn_if_possible(votes, [*gold[:60], *others], QUICK, KnownRows(texts=texts))


def test_copies_count_once_for_the_classifier_too() -> None:
    votes, gold, texts = repeated(3)
    model = fit_for_classifier(replace(votes, texts=texts), gold, "lr", seed=0, max_error=0.1)
    assert the(model.certificate).gold_rows == 60
    gold[:120] = [next(one for one in votes.labels if one != gold[120])] * 60 + gold[60:120]
    gold[60] = next(one for one in votes.labels if one not in (gold[0], gold[120]))
    with pytest.warns(PcsWarning, match="these 3 rows are not learned from: '0', '60', '120'"):
        fit_for_classifier(replace(votes, texts=texts), gold, "lr", seed=0)


def test_the_model_is_the_one_that_a_run_learns() -> None:
    votes, gold = simulated_votes([0.9, 0.6], items=60)
    from_run = learn(votes, gold, LearnSettings(optimiser="lr", resamples=20)).model
    here = fit_for_classifier(votes, gold, "lr", seed=0)
    assert here.weights.by_annotator == from_run.weights.by_annotator
    assert the(here.calibrator).to_dict() == the(from_run.calibrator).to_dict()


def test_an_optimiser_may_be_named_or_given() -> None:
    votes, gold = simulated_votes([0.9, 0.6], items=60)
    named, given = (fit_for_classifier(votes, gold, one, seed=0) for one in ("lr", LinearRegression()))
    assert named.weights.by_annotator == given.weights.by_annotator
    assert needs_gold("lr")
    assert needs_gold(LinearRegression())
    assert not needs_gold("uniform")


def test_probabilities_are_in_the_requested_order_and_as_given_for_items_without_votes() -> None:
    votes, gold = simulated_votes([0.9, 0.6], items=60)
    codes = np.array(votes.codes)
    codes[0] = ABSTAINED
    silent = replace(votes, codes=codes)
    model = fit_for_classifier(silent, gold, "lr", seed=0)
    shares = np.array([0.2, 0.3, 0.5])
    there = probabilities(model, silent, votes.labels, shares)
    assert (there == probabilities(model, silent, votes.labels[::-1], shares[::-1])[:, ::-1]).all()
    assert there.sum(axis=1) == pytest.approx(1)
    assert there[0].tolist() == shares.tolist()
    confidences = [outcome.confidence for outcome in model.judge(silent)]
    assert confidences[0] is None
    assert confidences[1:] == there[1:].max(axis=1).tolist()


AVERAGE = replace(QUICK, promise="false-discoveries", max_error=0.1, text=False)


def part_of(gold: list[str], rows: int) -> list[str | None]:
    return [label if row < rows else None for row, label in enumerate(gold)]


def test_a_promise_on_average_is_made_for_the_rows_without_gold_and_uses_up_no_certainty() -> None:
    votes, gold = simulated_votes([0.9, 0.85, 0.8], items=400)
    learned = learn(votes, part_of(gold, 200), AVERAGE)
    certificate = the(learned.model.certificate)
    assert certificate.holds
    assert certificate.level == 0
    strict = learn(votes, part_of(gold, 200), replace(AVERAGE, promise="error-among-accepted"))
    average, tested = (one.model.judged(votes).accepted for one in (learned, strict))
    assert average is not None
    assert tested is not None
    assert average[200:].sum() >= tested[200:].sum() > 0


def test_chosen_gold_promises_nothing() -> None:
    votes, gold = simulated_votes([0.9, 0.85, 0.8], items=300)
    chosen = KnownRows(random_sample=np.zeros(300, dtype=np.bool_))
    learned = learn(votes, part_of(gold, 200), AVERAGE, chosen)
    assert "no gold row was drawn at random" in the(learned.model.certificate).why_not


def test_gold_only_where_models_agree_is_warned_about() -> None:
    votes, gold = simulated_votes([0.8, 0.75, 0.7], items=600)
    codes = votes.codes.reshape(len(votes), -1)
    agreeing = (codes == codes[:, :1]).mean(axis=1) > 0.8
    only = [label if agrees else None for label, agrees in zip(gold, agreeing.tolist(), strict=True)]
    with pytest.warns(PcsWarning, match="the gold rows differ from the others"):
        learned = learn(votes, only, AVERAGE)
    assert the(learned.drift).found


def test_a_gold_label_that_no_model_gives_is_wrong_wherever_it_occurs() -> None:
    votes, gold = simulated_votes([0.95, 0.95, 0.95], items=400)
    rare = replace(votes, labels=(*votes.labels, "never"))
    said = ["never" if row % 4 == 0 else label for row, label in enumerate(gold)]
    learned = learn(rare, part_of(said, 200), AVERAGE)
    assert the(learned.against_gold).by_label["never"]["recall"].value == 0


def test_quality_is_that_of_gold_rows_with_a_label_and_rows_that_no_model_answered_have_none() -> None:
    votes, gold = simulated_votes([0.9, 0.7, 0.6], items=120)
    silent = np.arange(120) % 6 == 0
    codes = votes.codes.copy()
    codes[silent] = ABSTAINED
    votes, how = replace(votes, codes=codes), replace(QUICK, max_error=0.3)
    found = learn(votes, gold, how)
    alone = learn(votes.take(~silent), [label for label, none in zip(gold, silent, strict=True) if not none], how)
    assert found.figures == alone.figures
    assert found.figures[0].accuracy.n == 100
    assert found.curves == alone.curves
    assert len(the(found.trial).gold) == 100
    certificate = the(found.model.certificate)
    assert (certificate.gold_rows, certificate.assumed_rows, found.model.gold_rows) == (100, 100, 120)
    assert "100 gold rows in 2 folds" in certificate.split
    assert "not drawn at random" not in certificate.split
