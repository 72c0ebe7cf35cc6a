import warnings
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from pcs_annotator import PcsWarning, Votes, Weights, fit_weights, score
from pcs_annotator.base.errors import GoldError, UnknownNameError
from pcs_annotator.core.arrays import Codes
from pcs_annotator.core.gold_codes import UNLABELLED
from pcs_annotator.core.weights import Diagnostics
from pcs_annotator.judging.fit_weights import in_canonical_order
from pcs_annotator.judging.optimisers.ga import GeneticAlgorithm
from pcs_annotator.judging.optimisers.regression import LinearRegression
from tests.builders import simulated_votes, the, votes_of
from tests.judging.evaluate.graded import graded_votes


def kinds(weights: Weights) -> list[str]:
    return [flag.kind for flag in weights.diagnostics.flags]


def with_annotator(votes: Votes, position: int, code: int) -> Votes:
    """The votes, with one annotator always giving the same code."""
    codes = votes.codes.copy()
    codes[:, position] = code
    return replace(votes, codes=codes)


def test_diagnostics_describe_the_fit() -> None:
    votes, gold = simulated_votes([0.8, 0.6], items=40)
    diagnostics = fit_weights(votes, [*gold[:30], *[None] * 10]).diagnostics
    assert (diagnostics.optimiser, diagnostics.gold_rows, diagnostics.flags) == ("lr", 30, ())
    assert diagnostics.objective is not None
    assert diagnostics.iterations > 0


def test_an_unregistered_optimiser_is_named_by_its_class() -> None:
    votes, gold = simulated_votes([0.8, 0.6], items=40)
    weights = fit_weights(votes, gold, GeneticAlgorithm(population=8, generations=1))
    assert weights.diagnostics.optimiser == "GeneticAlgorithm"


@dataclass(frozen=True)
class Opinionated:
    """A third-party optimiser that gives itself an unregistered name."""

    needs_gold: ClassVar[bool] = True

    def fit(self, votes: Votes, gold: Codes, seed: int) -> Weights:
        first = np.eye(len(votes.annotators))[0] + 1
        return Weights.normalised(votes, first, np.ones(len(votes.relations)), Diagnostics(optimiser="opinionated"))


@pytest.mark.parametrize("resamples", [0, 3])
def test_an_unregistered_optimiser_may_name_itself(resamples: int) -> None:
    votes, gold = simulated_votes([0.8, 0.6], items=40)
    weights = fit_weights(votes, gold, Opinionated(), resamples=resamples)
    assert weights.diagnostics.optimiser == "opinionated"
    assert weights.by_annotator["model-0"] == pytest.approx(2 / 3)
    assert len(weights.diagnostics.annotator_intervals) == (2 if resamples else 0)


def test_an_unknown_name_is_refused_with_the_nearest_known_one() -> None:
    votes, gold = simulated_votes([0.8], items=10)
    with pytest.raises(UnknownNameError, match="did you mean 'majority'"):
        fit_weights(votes, gold, "majorty")


def test_no_gold_at_all_names_the_remedy() -> None:
    votes, _ = simulated_votes([0.8, 0.6], items=10)
    with pytest.raises(GoldError, match=r"no gold labels.*uniform, majority"):
        fit_weights(votes, [None] * 10)


@pytest.mark.parametrize("name", ["uniform", "majority"])
def test_optimisers_that_need_no_gold_work_without_it(name: str) -> None:
    votes, _ = simulated_votes([0.8, 0.6], items=40)
    weights = fit_weights(votes, {}, name)
    assert (weights.diagnostics.gold_rows, kinds(weights)) == (0, [])


def test_one_class_only_leaves_equal_weights() -> None:
    votes, _ = simulated_votes([0.9, 0.4], items=15, labels=2)
    with pytest.warns(PcsWarning) as caught:
        weights = fit_weights(votes, ["neutral"] * 15)
    assert weights.by_annotator == {"model-0": 0.5, "model-1": 0.5}
    assert kinds(weights) == ["uniform fallback", "label without gold"]
    assert str(caught[0].message).startswith("all 15 gold rows say 'neutral'")
    assert "no gold row says 'negative'" in str(caught[1].message)


def test_silence_on_all_gold_rows_leaves_equal_weights() -> None:
    votes = votes_of([[[-1], [-2]], [[-1], [-1]], [[0], [1]], [[1], [0]]])
    with pytest.warns(PcsWarning, match="voted on a gold row"):
        weights = fit_weights(votes, ["fake", "real", None, None])
    assert kinds(weights) == ["uniform fallback"]
    assert set(weights.by_annotator.values()) == {0.5}


def test_a_constant_annotator_is_named() -> None:
    votes, gold = simulated_votes([0.7, 0.7, 0.7], items=40)
    with pytest.warns(PcsWarning, match=r"model-1 .*'positive' in 100\.0 % of 160 votes"):
        weights = fit_weights(with_annotator(votes, 1, 2), gold)
    assert kinds(weights) == ["constant annotator"]


@pytest.mark.parametrize(
    ("grades", "flags"), [("alike", ["constant annotator"]), ("unlike", []), ("none", ["constant annotator"])]
)
def test_an_annotator_with_one_label_says_something_if_its_grades_differ(grades: str, flags: list[str]) -> None:
    votes, gold = graded_votes([2.0, 2.0], items=40)
    given = the(votes.grades).copy()
    if grades != "unlike":
        given[:, 1] = [0.8, 0.1, 0.1] if grades == "alike" else np.nan
    codes = np.where(np.arange(2)[:, np.newaxis, np.newaxis] == 1, 0, votes.codes)
    found = replace(votes, codes=codes, grades=given)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PcsWarning)
        weights = fit_weights(found, [votes.labels[code] for code in gold])
    assert kinds(weights) == flags


def test_a_silent_annotator_is_named() -> None:
    votes, gold = simulated_votes([0.7, 0.7, 0.7], items=40)
    with pytest.warns(PcsWarning, match="model-2 never"):
        weights = fit_weights(with_annotator(votes, 2, -1), gold)
    assert kinds(weights) == ["silent annotator"]


def test_an_annotator_that_decides_alone_is_named() -> None:
    votes, gold = simulated_votes([1.0, 0.4], items=80)
    with pytest.warns(PcsWarning, match="model-0 has 100 % of the weight"):
        weights = fit_weights(votes, gold, LinearRegression(shrinkage=0.0))
    assert kinds(weights) == ["one annotator decides alone"]


def test_labels_without_gold_are_named_where_gold_matters() -> None:
    votes, gold = simulated_votes([0.7, 0.6], items=60)
    known = [label if label != "neutral" else None for label in gold]
    with pytest.warns(PcsWarning, match="no gold row says 'neutral'"):
        assert kinds(fit_weights(votes, known)) == ["label without gold"]
    assert kinds(fit_weights(votes, known, "uniform")) == []


def test_stability_ranges_contain_the_weight() -> None:
    for seed in range(8):
        votes, gold = simulated_votes([0.8, 0.6, 0.5], items=80, seed=seed)
        weights = fit_weights(votes, gold, resamples=3, seed=seed)
        diagnostics = weights.diagnostics
        for shares, intervals in (
            (weights.by_annotator, diagnostics.annotator_intervals),
            (weights.by_relation, diagnostics.relation_intervals),
        ):
            assert set(intervals) == set(shares)
            assert all(intervals[name].low <= share <= intervals[name].high for name, share in shares.items())
            assert all(0 <= low <= high <= 1 for low, high in intervals.values())


def test_canonical_order_keeps_every_vote_with_its_names() -> None:
    votes = Votes(
        codes=np.array([[[2, -1], [0, 1]], [[-2, 1], [2, 2]]], dtype=np.int8),
        ids=["z", "b"],
        annotators=["y", "x"],
        relations=["s", "original"],
        labels=["c", "a", "b"],
        stated=np.zeros((2, 2, 2, 1, 3)),
    )
    ordered, gold = in_canonical_order(votes, np.array([0, UNLABELLED], dtype=np.int8))
    assert (ordered.ids, ordered.annotators, ordered.relations) == (("b", "z"), ("x", "y"), ("original", "s"))
    assert ordered.labels == ("a", "b", "c")
    assert ordered.stated is None
    assert ordered.codes[..., 0].tolist() == [[[1, 1], [0, -2]], [[0, 2], [-1, 1]]]
    assert gold.tolist() == [UNLABELLED, 2]
    without = replace(votes, relations=["s", "o"])
    assert in_canonical_order(without, gold)[0].relations == ("s", "o")  # the first stands for the original


def test_without_two_classes_graded_votes_count_equally_by_their_log_odds() -> None:
    votes, _ = graded_votes([2.0, 0.5], items=20)
    with pytest.warns(PcsWarning) as caught:
        weights = fit_weights(votes, [votes.labels[0]] * 20, "auto")
    assert "all 20 gold rows" in str(caught[0].message)
    assert kinds(weights)[0] == "uniform fallback"
    expected = fit_weights(votes, {}, "uniform")
    np.testing.assert_array_equal(score(votes, weights), score(votes, expected))
    assert the(weights.evidence).reads == "mean log-odds"


def test_canonical_order_keeps_grades_with_their_votes() -> None:
    votes, gold = graded_votes([2.0, 0.5], items=6, relations=1)
    turned = votes.select(annotators=["model-1", "model-0"]).take(np.arange(6)[::-1])
    turned = replace(
        turned,
        labels=turned.labels[::-1],
        codes=(2 - turned.codes).astype(np.int8),
        grades=None if turned.grades is None else turned.grades[..., ::-1],
    )
    ordered, codes = in_canonical_order(turned, (2 - gold[::-1]).astype(np.int8))
    np.testing.assert_array_equal(the(ordered.grades), the(votes.grades))
    np.testing.assert_array_equal(ordered.codes, votes.codes)
    np.testing.assert_array_equal(codes, gold)
