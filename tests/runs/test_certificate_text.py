from dataclasses import replace

import numpy as np
import pytest

from pcs_annotator import Weights
from pcs_annotator.core.weights import Interval
from pcs_annotator.judging.evaluate.harness import cross_validate, references
from pcs_annotator.judging.fit_model import Learning
from pcs_annotator.judging.metrics.significance import BootstrapTest
from pcs_annotator.judging.model import Model
from pcs_annotator.judging.promise.certificate import Certificate, audit, no_promise
from pcs_annotator.judging.promise.promise import Promise
from pcs_annotator.judging.promise.thresholds import EVERY_LABEL
from pcs_annotator.runs.certificate_text import about_confidence, fallen_away, promised
from pcs_annotator.showing.report.quality import what_more_questions_bought
from tests.builders import learn_model, simulated_votes, votes_of
from tests.judging.evaluate.graded import graded_votes

PROMISE = Promise(max_error=0.05)
HOLDING = Certificate(promise=PROMISE, gold_rows=100, thresholds={EVERY_LABEL: 0.9123}, split="100 gold rows")


def test_rough_confidence_is_said_to_be_and_how_rough() -> None:
    votes, gold = simulated_votes([0.9, 0.8], items=24)
    model = learn_model(votes, gold, Learning())
    assert model.margin is not None
    said = about_confidence(model)
    assert said.startswith(f"confidence is rough: from 24 gold rows, ± {100 * model.margin:.0f} points on average;")
    by_an_earlier_version = about_confidence(replace(model, margin=None))
    assert by_an_earlier_version.startswith("confidence is rough: from 24 gold rows;")


def test_a_promise_is_one_sentence_and_what_it_is_based_on() -> None:
    text = promised(HOLDING)
    assert text.headline == "promise: at most 5 % of the accepted labels are wrong, with 90 % certainty"
    guaranteed, threshold, basis = text.details
    assert "at most 10 % make a promise that fails; not guaranteed: that this one holds" in guaranteed
    assert threshold.endswith("confidence ≥ 0.912")
    assert basis.endswith("100 gold rows")


def test_a_promise_says_what_it_assumes_about_gold_that_we_did_not_draw() -> None:
    headline = promised(replace(HOLDING, assumed_rows=60)).headline
    assert headline.endswith("wrong, with 90 % certainty, if the 60 gold rows in the data were drawn at random")


def test_a_promise_says_how_many_rows_wait_for_a_decision() -> None:
    details = promised(replace(HOLDING, undecided_rows=1)).details
    assert (
        "1 row that was drawn at random has no decision of people, and every label there counts as wrong" in details[-1]
    )


def test_without_a_promise_the_reason_is_given() -> None:
    text = promised(no_promise(PROMISE, 3, "3 gold rows are too few"))
    assert text.headline == (
        "no promise that at most 5 % of the accepted labels are wrong, with 90 % certainty: 3 gold rows are too few"
    )
    assert text.details == ()


def test_a_promise_per_label_names_every_threshold() -> None:
    by_label = replace(HOLDING, promise=replace(PROMISE, per_label=True), thresholds={"bad": 0.8, "good": 0.95})
    text = promised(by_label)
    assert text.headline.endswith("per label")
    assert "bad ≥ 0.800, good ≥ 0.950; other labels" in text.details[1]


def test_a_promise_about_a_tree_names_the_threshold_of_every_level() -> None:
    text = promised(replace(HOLDING, upper=({EVERY_LABEL: 0.8}, {})))
    assert text.headline.endswith(", at every level of the tree")
    said = "accepted at confidence ≥ 0.912; otherwise its parent at ≥ 0.800, the one above it at no confidence"
    assert text.details[1] == said


def test_a_promise_on_average_says_whose_rows_it_is_about_and_what_fitting_again_means() -> None:
    text = promised(replace(HOLDING, promise=replace(PROMISE, kind="false-discoveries")))
    assert text.headline.endswith("of the accepted labels are wrong, on average")
    assert text.details[0].endswith("error-among-accepted is stricter")
    assert "covers the rows without gold at this fit, and nearly holds for later texts" in text.details[1]
    assert "fitting again until something is accepted brings more errors" in text.details[1]


@pytest.mark.parametrize(
    ("wrong", "words"), [(0, "confirms it"), (2, "neither confirms nor revokes it yet"), (30, "revokes it")]
)
def test_an_audit_is_reported_in_numbers(wrong: int, words: str) -> None:
    text = promised(replace(HOLDING, audit=audit(PROMISE, 120, wrong)))
    sentence = text.headline if wrong == 30 else text.details[-1]
    assert words in sentence
    assert f"{wrong} of 120 accepted rows" in sentence
    assert "(90 % interval, valid at every look while the audit grows)" in sentence
    assert text.headline.startswith("no promise") == (wrong == 30)


def test_a_promise_that_fell_away_is_flagged_until_one_holds_again() -> None:
    held = Model(weights=Weights.uniform(votes_of([[[0]], [[1]]])), calibrator=None, certificate=HOLDING)
    void = replace(held, certificate=no_promise(PROMISE, 3, "3 gold rows are too few"))

    def flags(earlier: Model, now: Model) -> list[str]:
        return [flag.detail for flag in fallen_away(earlier, now).weights.diagnostics.flags]

    fallen = fallen_away(held, void)
    why = "an earlier fit promised that at most 5 % of the accepted labels are wrong, with 90 % certainty; now nothing "
    assert flags(held, void) == [f"{why}is promised: 3 gold rows are too few"]
    assert flags(fallen, void) == flags(held, void)
    assert flags(held, replace(held, certificate=None)) == [f"{why}is promised: --max-error requests it"]
    for earlier, now in ((held, held), (void, void), (fallen, held), (fallen, replace(held, certificate=None))):
        assert flags(earlier, now) == []


def test_what_more_questions_bought_is_said_where_it_was_measured() -> None:
    votes, gold = graded_votes([1.0], items=200, relations=3)
    two = votes.select(relations=["original", "order"])
    found = cross_validate(two, gold, ["auto", *references(two)], resamples=50)
    assert what_more_questions_bought(found).startswith("Asking twice bought +")
    assert what_more_questions_bought(found).endswith("] for 2 × the questions.")
    all_three = cross_validate(votes, gold, ["auto", *references(votes)], resamples=50)
    assert what_more_questions_bought(all_three, "calls").startswith(
        "Asking every question, not just the first, bought"
    )
    assert what_more_questions_bought(all_three, "calls").endswith("] for 3 × the calls.")
    assert what_more_questions_bought(found[:-1]) == ""


def test_a_gain_counts_as_shown_by_its_adjusted_p_value() -> None:
    votes, gold = graded_votes([1.0])
    first, second = cross_validate(votes, gold, ["uniform", "first question only"], resamples=50)
    test = BootstrapTest(0.02, Interval(0.001, 0.039), 0.04, 90)
    assert "cannot be shown" not in what_more_questions_bought([first, second._replace(behind=test, holm=0.04)])
    assert "cannot be shown" in what_more_questions_bought([first, second._replace(behind=test, holm=0.08)])


def test_a_gain_that_cannot_be_shown_is_not_claimed() -> None:
    votes, gold = graded_votes([1.0])
    assert votes.grades is not None
    same = replace(
        votes, codes=np.repeat(votes.codes[:, :, :1], 2, axis=2), grades=np.repeat(votes.grades[:, :, :1], 2, axis=2)
    )
    found = cross_validate(same, gold, ["uniform", "first question only"], resamples=50)
    assert what_more_questions_bought(found) == (
        "Asking twice bought +0.0 points of class AUROC [−4.1, 4.1] and +0.0 points of accuracy [−4.1, 4.1] for 2 × "
        "the questions; a gain in class AUROC cannot be shown on these rows."
    )


def test_a_promise_says_what_earlier_looks_used() -> None:
    details = promised(replace(HOLDING, level=0.025, spent=0.05)).details
    assert any("tested at 2.5 %" in detail and "used 5 % of the 10 %" in detail for detail in details)
