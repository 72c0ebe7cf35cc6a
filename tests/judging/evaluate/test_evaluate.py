from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pcs_annotator import ABSTAINED, Votes
from pcs_annotator.base.errors import UndefinedMetric
from pcs_annotator.core.arrays import Codes
from pcs_annotator.core.gold_codes import UNLABELLED
from pcs_annotator.core.result_table import number_of
from pcs_annotator.judging.baselines import LogProb
from pcs_annotator.judging.evaluate.as_tables import evaluation_tables
from pcs_annotator.judging.evaluate.harness import evaluate
from pcs_annotator.judging.evaluate.methods import Method, OnCells
from pcs_annotator.judging.evaluate.scored import FIGURES, NO_CONFIDENCE_AUROC, EvaluationOptions
from pcs_annotator.judging.fit_weights import optimisers
from pcs_annotator.judging.heldout import Splits, cross_fit
from pcs_annotator.judging.metrics import figures as metrics
from pcs_annotator.judging.metrics.significance import holm
from tests.builders import simulated_votes, the
from tests.judging.evaluate.graded import graded_votes
from tests.judging.evaluate.test_methods import FirstVote
from tests.judging.strategies import coded

QUICK = EvaluationOptions(repeats=2, resamples=60)


def judged(accuracies: list[float] | None = None, items: int = 90, draws: int = 1) -> tuple[Votes, Codes]:
    votes, gold = simulated_votes(accuracies or [0.8, 0.6], items=items)
    codes = coded(votes, gold)
    if draws > 1:
        again = np.random.default_rng(1).integers(3, size=(*votes.codes.shape[:3], draws - 1), dtype=np.int8)
        again[:, :, 1:] = -2
        votes = replace(votes, codes=np.concatenate([votes.codes, again], axis=3))
    return votes, codes


def test_figures_are_those_of_the_same_splits() -> None:
    votes, gold = judged([0.6, 0.45])
    found = evaluate(votes, gold, ["lr", "uniform"], QUICK).methods[0].figures
    fits = [cross_fit(optimisers.create("lr"), votes, gold, Splits(seed=seed)) for seed in (0, 1)]
    assert found["auroc"].value == pytest.approx(np.mean([metrics.auroc(fit.ranks, gold) for fit in fits]))
    once = np.ones((len(gold), 1))
    raw = [metrics.chosen_on(fit.scores, gold, once) for fit in fits]
    sure = [metrics.chosen_on(fit.probabilities, gold, once, (0.5, 0.8), (0.9, 0.95)) for fit in fits]
    labels = metrics.chosen_on(np.mean([fit.probabilities for fit in fits], axis=0), gold, once)
    expected: dict[str, Any] = {
        "auroc_confidence": [one.auroc for one in sure],
        "accuracy": labels.accuracy,
        "macro_f1": labels.macro_f1,
        "ece_score": [one.ece for one in raw],
        "ece_confidence": [one.ece for one in sure],
        "brier": [one.brier for one in sure],
        "aurc": [one.aurc for one in sure],
        "accuracy_at_50": [one.accuracy_at[0] for one in sure],
        "accuracy_at_80": [one.accuracy_at[1] for one in sure],
        "review_share_90": [one.review_share[0] for one in sure],
        "review_share_95": [one.review_share[1] for one in sure],
    }
    for name, values in expected.items():
        assert found[name].value == pytest.approx(np.mean(values)), name
    assert set(found) == set(FIGURES) == {"auroc", "auroc_hard", *expected}


def test_a_figure_that_is_undefined_is_missing() -> None:
    votes, gold = judged([0.95, 0.5], items=60)
    perfect = replace(
        votes, codes=np.where(np.arange(2)[:, np.newaxis, np.newaxis] == 0, gold[:, None, None, None], votes.codes)
    )
    found = evaluate(
        perfect, gold, ["zero-shot", OnCells(name="worse", optimiser="uniform", annotators=["model-1"])], QUICK
    )
    first, second = found.methods
    assert "auroc_confidence" not in first.figures
    assert 0.5 < second.figures["auroc_confidence"].value < 1
    table = evaluation_tables(found)[0]
    column = table.columns.index("Confidence AUROC")
    assert table.rows[0][column] is None
    assert (1, column) in table.best
    assert NO_CONFIDENCE_AUROC in table.notes


def test_the_first_method_is_tested_against_every_other() -> None:
    votes, gold = judged([0.95, 0.4, 0.4], items=150)
    found = evaluate(votes, gold, ["lr", "majority", "uniform"], QUICK)
    first, *others = found.methods
    assert (first.behind, first.accuracy_behind) == (None, None)
    tests = [one.behind for one in others if one.behind]
    by_accuracy = [one.accuracy_behind for one in others if one.accuracy_behind]
    assert len(tests) == len(by_accuracy) == 2
    assert [one.holm for one in others] == holm([test.p_value for test in tests])
    assert [one.holm_accuracy for one in others] == holm([test.p_value for test in by_accuracy])
    assert tests[0].difference == first.auroc.value - others[0].auroc.value > 0
    assert tests[0].interval.low > 0
    assert tests[0].n == 150


def test_rows_without_gold_and_rows_that_no_model_answered_are_left_out() -> None:
    votes, gold = judged()
    rest = np.arange(len(gold)) >= 60
    unlabelled = np.where(rest, UNLABELLED, gold).astype(gold.dtype)
    unanswered = replace(votes, codes=np.where(rest[:, None, None, None], ABSTAINED, votes.codes))
    alone = evaluate(votes.take(slice(60)), gold[:60], ["lr"], QUICK)
    for found in (evaluate(votes, unlabelled, ["lr"], QUICK), evaluate(unanswered, gold, ["lr"], QUICK)):
        assert (found.n, found.methods) == (60, alone.methods)


def test_methods_that_use_log_probabilities_are_marked() -> None:
    votes, gold = graded_votes([1.0, 2.0])
    methods: list[Method] = ["auto", "uniform", "majority", "zero-shot", "scaled logprob", LogProb()]
    found = evaluate(votes, gold, methods, QUICK)
    assert {one.method: (one.graded, one.calls and one.calls.total) for one in found.methods} == {
        "auto": (True, 4),
        "uniform": (True, 4),
        "majority": (False, 2),
        "zero-shot": (False, 1),
        "scaled logprob": (True, 2),
        "logprob": (True, 2),
    }
    table = evaluation_tables(found)[0]
    assert table.columns[:4] == ("Method", "Calls per item", "Log-probs", "Class AUROC")
    assert [row[2] for row in table.rows] == ["yes", "yes", "no", "no", "yes", "yes"]
    assert any(note.startswith("Log-probs:") for note in table.notes)
    assert all(number_of(table.rows[row][column]) is not None for row, column in table.best)


def test_self_consistency_counts_the_labels_of_graded_draws() -> None:
    votes, gold = graded_votes([1.0], relations=1)
    again = np.roll(votes.codes, 1, axis=0)
    both = replace(
        votes,
        codes=np.concatenate([votes.codes, again], axis=3),
        grades=np.concatenate([the(votes.grades), np.roll(the(votes.grades), 1, axis=0)], axis=3),
    )
    for one in (both, both.hard()):
        found = {method.method: method for method in evaluate(one, gold, ["auto"], QUICK).methods}
        assert not found["self-consistency, 2 draws"].graded
        assert not found["self-consistency, 2 draws, auto"].graded
        figures = found["self-consistency, 2 draws, auto"].figures
        assert figures["auroc"].value == pytest.approx(
            np.mean(
                [
                    metrics.auroc(
                        cross_fit(optimisers.create("auto"), both.hard(), gold, Splits(seed=seed)).ranks, gold
                    )
                    for seed in (0, 1)
                ]
            )
        )


def test_self_consistency_at_equal_calls_is_always_included() -> None:
    votes, gold = judged(draws=6)
    one_draw = OnCells(name="pcs", optimiser="lr", draws=1)
    found = evaluate(votes, gold, [one_draw], replace(QUICK, rewritten={"voice", "synonym"}))
    assert [one.method for one in found.methods] == [
        "pcs",
        "self-consistency, 5 draws",
        "self-consistency, 5 draws, pcs",
    ]
    assert [one.calls and one.calls.total for one in found.methods] == [10, 10, 10]
    assert any("10.0 calls per item, pcs 10.0" in note for note in found.notes)
    assert any("voice, synonym" in note for note in found.notes)


def test_too_few_draws_for_equal_calls_are_noted() -> None:
    votes, gold = judged(draws=2)
    found = evaluate(votes, gold, [FirstVote(), "lr"], QUICK)
    assert found.methods[-1].method == "self-consistency, 1 draws"
    found = evaluate(votes, gold, ["lr"], QUICK)
    assert any("at a disadvantage" in note for note in found.notes)


def test_without_draws_a_note_says_what_to_record() -> None:
    votes, gold = judged()
    assert any("--draws 5" in note for note in evaluate(votes, gold, ["lr"], QUICK).notes)


def test_what_cannot_be_evaluated_is_named_with_the_reason() -> None:
    votes, gold = judged()
    absent = OnCells(name="panel of c", optimiser="lr", annotators=["c"])
    found = evaluate(votes, gold, [absent, "no-such-thing", "lr"], QUICK)
    assert list(found.missing) == ["panel of c", "no-such-thing"]
    assert "'c'" in found.missing["panel of c"]
    assert [one.method for one in found.methods] == ["lr"]
    table = evaluation_tables(found)[0]
    assert table.rows[-1] == ["no-such-thing", *[None] * 14]
    assert any(note.startswith("no-such-thing") for note in table.notes)


@pytest.mark.parametrize("methods", [[], ["no-such-thing"]])
def test_nothing_to_evaluate_is_an_error(methods: list[str]) -> None:
    with pytest.raises(UndefinedMetric, match="nothing to evaluate"):
        evaluate(*judged(), methods, QUICK)


@pytest.mark.parametrize(
    ("rows", "classes", "why"),
    [
        (1, 3, "at least 10 gold rows and two classes, there is 1 row of 1: label more rows"),
        (9, 3, "at least 10 gold rows and two classes, there are 9 rows of "),
        (90, 1, "there are 90 rows of 1: label rows of another class too"),
    ],
)
def test_too_few_rows_or_classes_are_an_error_with_a_remedy(rows: int, classes: int, why: str) -> None:
    votes, gold = judged()
    with pytest.raises(UndefinedMetric, match=why):
        evaluate(votes.take(slice(rows)), gold[:rows] % classes, ["lr"])


def test_missing_label_and_missing_original_are_noted() -> None:
    votes, gold = judged()
    kept = gold != 2
    views = votes.select(relations=["voice", "synonym"]).take(kept)
    notes = evaluate(views, gold[kept], ["majority"], QUICK).notes
    assert any("'positive'" in note for note in notes)
    assert any("'original'" in note and "'voice'" in note for note in notes)
