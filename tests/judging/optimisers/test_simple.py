from dataclasses import replace

import numpy as np
import pytest

from pcs_annotator import PcsWarning, fit_weights, score
from tests.builders import simulated_votes, the, votes_of
from tests.judging.evaluate.graded import graded_votes


def test_uniform_needs_no_gold() -> None:
    votes, _ = simulated_votes([0.8, 0.4], items=30)
    weights = fit_weights(votes, [None] * 30, "uniform")
    assert weights.by_annotator == {"model-0": 0.5, "model-1": 0.5}
    assert set(weights.by_relation.values()) == {0.25}


def test_majority_counts_originals_only() -> None:
    votes = votes_of([[[0, 1, 1], [0, 1, 1], [1, 1, 1]]])
    weights = fit_weights(votes, [None], "majority")
    assert weights.by_relation == {"original": 1, "r1": 0, "r2": 0}
    np.testing.assert_allclose(score(votes, weights), [[2 / 3, 1 / 3]], atol=1e-12)


@pytest.mark.parametrize("relations", [("synonym", "voice"), ("voice", "synonym")])
def test_majority_without_originals_uses_the_first_relation_and_warns(relations: tuple[str, str]) -> None:
    votes = replace(votes_of([[[0, 1]], [[1, 1]]]), relations=relations)
    with pytest.warns(PcsWarning, match=f"'original': '{relations[0]}', the first, stands for it"):
        weights = fit_weights(votes, [None, None], "majority")
    assert weights.by_relation == {relations[0]: 1, relations[1]: 0}
    assert [flag.kind for flag in weights.diagnostics.flags] == ["no original"]


def test_uniform_of_graded_votes_is_the_softmax_of_the_mean_log_odds() -> None:
    votes, _ = graded_votes([1.0, 0.5], items=30)
    weights = fit_weights(votes, {}, "uniform")
    mean = np.log(the(votes.grades)[:, :, :, 0].astype(np.float64)).mean(axis=(1, 2))
    expected = np.exp(mean) / np.exp(mean).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(score(votes, weights), expected, atol=1e-9)
    assert weights.by_annotator == {"model-0": 0.5, "model-1": 0.5}


@pytest.mark.parametrize("hard_cells", [1, 3])
def test_uniform_of_a_panel_with_a_hard_vote_follows_the_equations(hard_cells: int) -> None:
    votes, _ = graded_votes([1.0, 0.5], items=4)
    grades = the(votes.grades).copy()
    grades.reshape(-1, 3)[:hard_cells] = np.nan
    mixed = replace(votes, grades=grades)
    weights = fit_weights(mixed, {}, "uniform")
    assert weights.evidence is None
    shares = mixed.shares()
    by_model = shares.sum(axis=2) / shares.sum(axis=(2, 3))[..., np.newaxis]
    np.testing.assert_allclose(score(mixed, weights), by_model.mean(axis=1), atol=1e-9)
