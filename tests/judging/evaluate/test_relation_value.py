from dataclasses import replace

import numpy as np
import pytest

from pcs_annotator import NOT_ASKED, Votes
from pcs_annotator.base.errors import UndefinedMetric
from pcs_annotator.core.arrays import Codes
from pcs_annotator.core.gold_codes import UNLABELLED
from pcs_annotator.core.weights import Interval
from pcs_annotator.judging.evaluate.harness import evaluate
from pcs_annotator.judging.evaluate.methods import OnCells
from pcs_annotator.judging.evaluate.relation_value import RelationValue, RelationValues, relation_values
from pcs_annotator.judging.evaluate.scored import EvaluationOptions
from pcs_annotator.judging.metrics.significance import BootstrapTest
from tests.builders import LABELS, the
from tests.judging.evaluate.graded import graded_votes

QUICK = EvaluationOptions(resamples=100, repeats=1)


def votes_with(*, good: float = 0.8, items: int = 300, share: float = 0.5) -> tuple[Votes, Codes]:
    """One model: `good` is right that often, `noise` never looks at the text, `echo` repeats the original.

    `part` is as good as `good`, and applies to the first rows only; `never` to none.
    """
    rng = np.random.default_rng(0)
    gold = rng.integers(3, size=items).astype(np.int8)

    def answers(chance: float) -> Codes:
        wrong = (gold + rng.integers(1, 3, size=items)) % 3
        return np.where(rng.random(items) < chance, gold, wrong).astype(np.int8)

    original, part = answers(0.7), answers(good)
    part[int(share * items) :] = NOT_ASKED
    cells = {
        "original": original,
        "good": answers(good),
        "noise": rng.integers(3, size=items).astype(np.int8),
        "echo": original,
        "part": part,
        "never": np.full(items, NOT_ASKED, dtype=np.int8),
    }
    votes = Votes(
        codes=np.stack([*cells.values()], axis=-1)[:, np.newaxis],
        ids=[f"i{row:04}" for row in range(items)],
        annotators=["model"],
        relations=list(cells),
        labels=LABELS[:3],
    )
    return votes, gold


def by_name(found: RelationValues) -> dict[str, RelationValue]:
    return {one.relation: one for one in found.relations}


def test_a_good_question_is_kept_and_one_that_says_nothing_new_adds_nothing() -> None:
    votes, gold = votes_with()
    found = relation_values(votes, gold, QUICK)
    values = by_name(found)
    assert (found.n, found.original, found.optimiser, found.graded) == (300, "original", "auto", False)
    assert found.relations[0].relation == "good"
    assert values["good"].advice == "keep"
    assert values["good"].gain.interval.low > 0.03
    assert abs(values["echo"].gain.difference) < 0.01
    assert values["noise"].gain.difference < 0.01
    assert "keep" not in (values["echo"].advice, values["noise"].advice)
    assert found.absent == ["never"]
    assert found.together.difference > values["part"].gain.difference


def test_a_gain_is_the_difference_of_the_two_figures_that_evaluate_computes() -> None:
    votes, gold = votes_with(items=90)
    how = replace(QUICK, resamples=20)
    pair = [
        OnCells(name="both", optimiser="auto", relations=["original", "good"]),
        OnCells(name="alone", optimiser="auto", relations=["original"]),
    ]
    both, alone = evaluate(votes, gold, pair, how).methods
    found = relation_values(votes, gold, how)
    assert found.auroc == pytest.approx(alone.figures["auroc"].value)
    gain = by_name(found)["good"].gain
    assert gain.difference == pytest.approx(both.figures["auroc"].value - alone.figures["auroc"].value)
    assert gain.interval == pytest.approx(the(alone.behind).interval)


def test_a_relation_that_applies_to_some_rows_is_judged_there() -> None:
    votes, gold = votes_with(share=0.5)
    half = by_name(relation_values(votes, gold, QUICK))["part"]
    assert (half.covered, half.calls) == (150, 0.5)
    assert the(half.per_question).n == 150
    assert the(half.per_question).difference > half.gain.difference > 0
    whole = by_name(relation_values(votes, gold, QUICK))["good"]
    assert whole.per_question == whole.gain


@pytest.mark.parametrize("share", [0.02, 0.04])
def test_too_few_rows_or_one_class_cannot_show_what_a_question_adds(share: float) -> None:
    votes, gold = votes_with(share=share)
    gold[:20] = 0  # 12 rows of one class, or 6 rows
    found = by_name(relation_values(votes, gold, QUICK))["part"]
    assert (found.per_question, found.p_holm, found.advice) == (None, None, "unknown")
    assert found.gain.n == 300


def test_graded_votes_are_scaled_and_rewriting_calls_count() -> None:
    votes, gold = graded_votes([1.5, 1.0], items=60)
    how = replace(QUICK, rewritten=frozenset({"order"}))
    found = relation_values(votes, gold, how)
    assert (found.optimiser, found.graded) == ("auto", True)
    assert found.relations[0].calls == 3  # two models are asked, and one rewrites
    hard = relation_values(votes.hard(), gold, QUICK, "lr")
    assert (hard.optimiser, hard.graded, hard.relations[0].calls) == ("lr", False, 2)
    assert hard.together == hard.relations[0].gain


def test_one_relation_or_too_little_gold_is_an_error_with_a_remedy() -> None:
    votes, gold = votes_with(items=40)
    with pytest.raises(UndefinedMetric, match="ask with more relations"):
        relation_values(votes.select(relations=["original", "never"]), gold, QUICK)
    with pytest.raises(UndefinedMetric, match="label more rows"):
        relation_values(votes, np.where(np.arange(40) < 6, gold, UNLABELLED).astype(np.int8))


@pytest.mark.parametrize(
    ("low", "high", "p_holm", "advice"),
    [
        (0.02, 0.05, 0.01, "keep"),
        (0.002, 0.008, 0.01, "drop"),  # sure, and too little
        (-0.05, -0.01, 0.01, "drop"),
        (-0.01, 0.009, 1.0, "drop"),
        (0.001, 0.03, 0.2, "unknown"),  # not sure among so many relations
    ],
)
def test_advice_follows_the_interval_and_the_adjusted_p(low: float, high: float, p_holm: float, advice: str) -> None:
    test = BootstrapTest((low + high) / 2, Interval(low, high), p_holm, 100)
    one = RelationValue(relation="order", covered=100, calls=1.0, gain=test, per_question=test, p_holm=p_holm)
    assert one.advice == advice


def test_conclusions_say_what_to_keep_and_what_to_drop() -> None:
    votes, gold = votes_with()
    found = relation_values(votes, gold, QUICK)
    little = BootstrapTest(0.0, Interval(-0.002, 0.002), 1.0, 100)
    changed = [
        replace(one, per_question=little, p_holm=1.0) if one.relation == "echo" else one for one in found.relations
    ]
    said = " ".join(replace(found, relations=changed).conclusions)
    assert "Keep good" in said
    assert "Drop echo" in said
