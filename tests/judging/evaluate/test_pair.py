import numpy as np
import pytest

from pcs_annotator import Votes
from pcs_annotator.base.errors import MismatchError, UndefinedMetric
from pcs_annotator.core.arrays import Codes
from pcs_annotator.core.gold_codes import UNLABELLED, gold_codes
from pcs_annotator.judging.evaluate.harness import Contender, compare_pair
from pcs_annotator.judging.evaluate.scored import EvaluationOptions
from tests.builders import simulated_votes

QUICK = EvaluationOptions(resamples=200)


def contenders(*skills: list[float], items: int = 120, optimiser: str = "uniform") -> tuple[list[Contender], Codes]:
    """Panels with these skills that label the same rows, each with errors of its own; and gold."""
    votes, gold = simulated_votes([one for panel in skills for one in panel], items=items, relations=2)
    names = iter(votes.annotators)
    panels = [votes.select(annotators=[next(names) for _ in panel]) for panel in skills]
    return [Contender(panel, optimiser) for panel in panels], gold_codes(votes, gold)


def test_the_same_votes_differ_in_nothing() -> None:
    (one, _), gold = contenders([0.8], [0.5])
    found = compare_pair([one, one], gold, QUICK)
    assert found.accuracy.difference == found.auroc.difference == 0
    assert found.accuracy.p_value == found.auroc.p_value == 1
    assert (found.right.only_first, found.right.only_second) == (0, 0)
    assert found.figures[0] == found.figures[1]


def test_a_better_panel_is_found_and_differences_are_second_minus_first() -> None:
    (weak, strong), gold = contenders([0.5], [0.9])
    found = compare_pair([weak, strong], gold, QUICK)
    assert found.n == sum(found.right) == 120
    assert found.accuracy.difference == pytest.approx(
        found.figures[1]["accuracy"].value - found.figures[0]["accuracy"].value
    )
    assert found.accuracy.difference > 0.2
    assert found.accuracy.interval.low > 0
    assert max(found.accuracy.p_value, found.auroc.p_value) < 0.001
    turned = compare_pair([strong, weak], gold, QUICK)
    assert turned.accuracy.difference == pytest.approx(-found.accuracy.difference)
    assert turned.accuracy.p_value == pytest.approx(found.accuracy.p_value)


def test_other_rows_or_too_little_gold_is_an_error() -> None:
    (one, other), gold = contenders([0.7], [0.7])
    with pytest.raises(MismatchError, match="the same ones, in the same order"):
        compare_pair([one, other._replace(votes=other.votes.take(slice(10)))], gold)
    with pytest.raises(UndefinedMetric, match="label more rows"):
        compare_pair([one, other], np.full(len(gold), UNLABELLED, dtype=np.int8))


@pytest.mark.slow
def test_equal_panels_are_told_apart_in_no_more_than_seven_percent_of_comparisons() -> None:
    """200 comparisons of panels that are equally good, with hard rows on which both err more often."""
    rng = np.random.default_rng(1)
    rejected = np.zeros(2)
    for _ in range(200):
        truth = rng.integers(3, size=100).astype(np.int8)
        hard = rng.random(100) < 0.25
        found = compare_pair([Contender(_panel(truth, hard, rng), "lr") for _ in range(2)], truth, QUICK)
        p_values = [found.accuracy.p_value, found.auroc.p_value]
        rejected += np.array(p_values) < 0.05
    assert (rejected <= 14).all(), rejected


def _panel(truth: Codes, hard: np.ndarray, rng: np.random.Generator) -> Votes:
    chance = np.array([0.75, 0.7]) - 0.3 * hard[:, np.newaxis]
    right = rng.random((len(truth), 2, 2)) < chance[:, :, np.newaxis]
    wrong = (truth[:, np.newaxis, np.newaxis] + rng.integers(1, 3, size=right.shape)) % 3
    return Votes(
        codes=np.where(right, truth[:, np.newaxis, np.newaxis], wrong),
        ids=[f"i{row:03d}" for row in range(len(truth))],
        annotators=["one", "two"],
        relations=["original", "order"],
        labels=["a", "b", "c"],
    )
