import json
from dataclasses import replace

import numpy as np
import pytest

from pcs_annotator import score
from pcs_annotator.base.plain import from_plain, to_plain
from pcs_annotator.judging.baselines import LogProb
from pcs_annotator.judging.evaluate.harness import REFERENCES, cross_validate, evaluate, references
from pcs_annotator.judging.evaluate.scored import EvaluationOptions, MethodFigures
from pcs_annotator.judging.fit_weights import fit_coded, optimisers
from pcs_annotator.judging.heldout import Splits, cross_fits
from pcs_annotator.judging.label_shape import LabelShape
from pcs_annotator.judging.metrics.figures import auroc
from pcs_annotator.runs.learn import KnownRows, learn
from pcs_annotator.runs.settings import LearnSettings
from tests.builders import simulated_votes, the
from tests.judging.evaluate.graded import graded_votes
from tests.judging.metrics.alone import accuracy
from tests.judging.strategies import coded


def test_zero_shot_is_chosen_on_other_rows_than_it_is_judged_on() -> None:
    # eight models that are equally good: the best of them on these very rows is right too often
    votes, names = simulated_votes([0.5] * 8, items=60, relations=1)
    gold = coded(votes, names)
    _, found = cross_validate(votes, gold, ["uniform", "zero-shot"], resamples=20)
    own = votes.codes[:, :, 0, 0] == gold[:, np.newaxis]
    assert found.method == f"zero-shot model-{own.mean(axis=0).argmax()}"
    assert found.accuracy.value < own.mean(axis=0).max()
    assert found.calls.questions == 1


@pytest.mark.parametrize("items", [10, 60])
def test_perfect_figures_still_have_an_interval(items: int) -> None:
    votes, names = simulated_votes([1.0], items=items, labels=2)
    gold = coded(votes, names)
    [found] = cross_validate(votes, gold, ["lr"], resamples=50)
    assert found.accuracy.value == 1
    assert found.accuracy.interval == pytest.approx((0.025 ** (1 / items), 1))
    assert found.auroc.value == found.auroc.interval.high == 1
    assert 0.5 < found.auroc.interval.low < 0.97
    for estimate in (found.figures["ece_score"], found.figures["ece_confidence"]):
        assert estimate.interval.low < estimate.interval.high


def test_the_accuracy_of_a_method_that_learns_nothing_is_that_of_its_own_label() -> None:
    votes, gold = graded_votes([1.0])
    raw = score(votes, optimisers.create("uniform").fit(votes, gold, 0))
    learned, equal, hard = cross_validate(votes, gold, ["auto", "uniform", "zero-shot"], resamples=20)
    [labelling] = cross_validate(votes, gold, ["uniform"], resamples=20)
    fits = cross_fits(optimisers.create("uniform"), votes, gold, Splits())
    together = np.mean([fit.probabilities for fit in fits], axis=0)
    assert labelling.accuracy.value == pytest.approx(accuracy(together, gold))
    assert labelling.accuracy.value > equal.accuracy.value
    assert equal.accuracy.value == pytest.approx(accuracy(raw, gold))
    assert hard.accuracy.value == pytest.approx(np.mean(votes.codes[:, 0, 0, 0] == gold))
    assert learned.accuracy.value > equal.accuracy.value + 0.1  # the models favour one label


def test_methods_that_are_defined_on_labels_see_no_log_probabilities() -> None:
    votes, gold = graded_votes([1.0, 2.0])
    names = ["uniform", "majority", "zero-shot"]
    graded, hard = (cross_validate(one, gold, names, resamples=20) for one in (votes, votes.hard()))
    assert graded[0].auroc.value > hard[0].auroc.value
    for ours, theirs in zip(graded[1:], hard[1:], strict=True):
        assert (ours.auroc, ours.accuracy, ours.graded) == (theirs.auroc, theirs.accuracy, False)
    assert graded[0].graded


@pytest.mark.filterwarnings("ignore:no relation is called")
@pytest.mark.parametrize("relations", [("original", "voice"), ("voice", "synonym")])
def test_majority_is_the_same_in_fit_and_evaluate(relations: tuple[str, ...]) -> None:
    votes, names = simulated_votes([0.7, 0.5, 0.5], items=60, relations=2)
    gold = coded(votes, names)
    again = np.random.default_rng(0).integers(3, size=votes.codes.shape, dtype=np.int8)
    asked = replace(votes, relations=relations, codes=np.concatenate([votes.codes, again], axis=3))
    how = EvaluationOptions(repeats=3, seed=3, resamples=20)
    _, fitted = cross_validate(asked, gold, ["lr", "majority"], Splits(seed=3), resamples=20)
    majority = evaluate(asked, gold, ["lr", "majority"], how).methods[1]
    assert (fitted.auroc, fitted.accuracy) == (majority.figures["auroc"], majority.figures["accuracy"])
    assert fitted.calls.questions == majority.calls.questions == 3
    [own] = cross_validate(asked, gold, ["majority"], resamples=20)
    weights = fit_coded(asked, gold, "majority")
    assert own.auroc.value == pytest.approx(auroc(score(asked, weights), gold))
    assert weights.by_relation == {relations[0]: 1, relations[1]: 0}
    shares = asked.select(relations=relations[:1], draws=1).shares()[:, :, 0].mean(axis=1)
    assert fitted.auroc.value == pytest.approx(auroc(shares, gold))


def test_graded_votes_are_compared_with_what_one_graded_question_gives() -> None:
    votes, gold = graded_votes([1.0, 2.0])
    assert references(votes) == (*REFERENCES, "logprob", "scaled logprob", "first question only")
    assert references(votes.hard()) == REFERENCES
    assert references(votes.select(relations=["original"])) == (*REFERENCES, "logprob", "scaled logprob")
    assert references(votes.select(relations=["order"])) == REFERENCES

    found = {one.method: one for one in cross_validate(votes, gold, ["auto", *references(votes)], resamples=20)}
    assert [one.calls.questions for one in found.values()] == [4, 4, 2, 1, 2, 2, 2]
    assert [name for name, one in found.items() if one.graded] == [
        "auto", "uniform", "logprob", "scaled logprob", "first question only"
    ]  # fmt: skip
    assert found["logprob"].auroc.value == pytest.approx(auroc(LogProb().scores(votes), gold))
    assert found["scaled logprob"].accuracy.value > found["logprob"].accuracy.value + 0.1
    [first] = cross_validate(votes.select(relations=["original"]), gold, ["auto"], resamples=20)
    assert found["first question only"].auroc == first.auroc


def test_what_more_questions_bought_is_seen_with_the_texts_on_both_sides() -> None:
    votes, gold = graded_votes([0.1, 0.1])
    read = np.log(np.where(np.eye(len(votes.labels))[gold] > 0, 0.98, 0.02))
    names = ["auto", "uniform", "first question only"]
    both, alone, _, first = cross_validate(replace(votes, text_log_probs=read), gold, names, resamples=20)
    assert [both.accuracy.value, first.accuracy.value] == [1, 1]
    assert alone.accuracy.value < 0.9
    assert the(first.accuracy_behind).difference == 0


def test_on_a_scale_the_first_question_is_not_judged_with_the_place_of_all_answers() -> None:
    votes, gold = graded_votes([1.0, 2.0], items=40)
    labels = [votes.labels[code] for code in gold]
    for kind in ("one", "scale"):
        known = KnownRows(shape=LabelShape.of(kind, votes.labels))
        found = learn(votes, labels, LearnSettings(optimiser="uniform", resamples=20), known)
        assert ("first question only" in [one.method for one in found.figures]) == (kind == "one")


def test_figures_survive_json() -> None:
    votes, gold = graded_votes([1.0], items=30)
    perfect = replace(votes, codes=np.broadcast_to(gold[:, np.newaxis, np.newaxis, np.newaxis], votes.codes.shape))
    graded, hard, undefined = (
        *cross_validate(votes, gold, ["uniform", "majority"], resamples=20),
        *cross_validate(perfect.hard(), gold, ["uniform"], resamples=20),
    )
    assert graded.figures.get("auroc_confidence") is not None
    assert undefined.figures.get("auroc_confidence") is None
    for figures in (graded, hard, undefined):
        assert from_plain(MethodFigures, json.loads(json.dumps(to_plain(figures)))) == figures
