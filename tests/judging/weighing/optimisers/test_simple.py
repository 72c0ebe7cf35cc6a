from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pcs_annotator import PcsWarning, fit_weights, score
from tests.builders import simulated_votes, votes_of


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


def test_majority_without_originals_uses_all_votes_and_warns() -> None:
    votes = replace(votes_of([[[0, 1]], [[1, 1]]]), relations=("synonym", "voice"))
    with pytest.warns(PcsWarning, match="'original'"):
        weights = fit_weights(votes, [None, None], "majority")
    assert weights.by_relation == {"synonym": 0.5, "voice": 0.5}
    assert [flag.kind for flag in weights.diagnostics.flags] == ["no original"]
