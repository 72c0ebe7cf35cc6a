import numpy as np
import pytest

from pcs_annotator.judging.optimisers.simple import (
    MAX_TEMPER,
    NaiveBayes,
    _held_out_evidence,
    log_confusion,
    pseudo_counts,
)
from tests.builders import simulated_votes, the, votes_of
from tests.judging.strategies import coded, silenced


@pytest.mark.parametrize("seed", range(4))
def test_held_out_evidence_equals_counting_again_without_the_row(seed: int) -> None:
    votes, names = simulated_votes([0.7, 0.5], items=15, relations=2, seed=seed)
    votes, gold = silenced(votes, 0.3, seed), coded(votes, names)
    shares, target = votes.shares(), np.eye(3)[gold]
    pseudo = pseudo_counts(shares)
    counts = np.einsum("iarv,ik->arvk", shares, target)
    quick = _held_out_evidence(shares, gold, counts, pseudo, log_confusion(counts, pseudo))
    for row in range(len(votes)):
        others = np.arange(len(votes)) != row
        recounted = np.einsum("iarv,ik->arvk", shares[others], target[others])
        slow = np.einsum("arv,arvk->k", shares[row], log_confusion(recounted, pseudo))
        np.testing.assert_allclose(quick[row], slow, atol=1e-10)


def test_confusion_table_by_hand() -> None:
    # one cell; gold fake: votes fake, fake, real; gold real: one vote real
    votes = votes_of([[[0]], [[0]], [[1]], [[1]]])
    weights = NaiveBayes(pseudo=2.0, trust=0.5).fit(votes, np.array([0, 0, 0, 1], dtype=np.int8), 0)
    # smoothed vote shares are (2 + 1) / (4 + 2) for both labels, so a column gets ½ + ½·1[right] and ½
    by_hand = np.log([[(2 + 1.5) / 5, 0.5 / 3], [(1 + 0.5) / 5, (1 + 1.5) / 3]])
    np.testing.assert_allclose(np.exp(the(weights.evidence).log_prior), [4 / 6, 2 / 6])
    temper = the(weights.evidence).log_likelihood[0, 0] / by_hand
    np.testing.assert_allclose(temper, temper[0, 0])
    assert 0 <= temper[0, 0] <= MAX_TEMPER


def test_correlated_errors_are_tempered() -> None:
    votes, names = simulated_votes([0.7], items=200, relations=1, labels=2)
    gold = coded(votes, names)
    copied = votes_of(np.repeat(votes.codes[..., 0], 8, axis=2), labels=tuple(votes.labels))
    alone, together = (NaiveBayes().fit(rows, gold, 0).evidence for rows in (votes, copied))
    # eight copies carry no more information than one
    strength = float(np.abs(the(together).log_likelihood[0, 0]).max() / np.abs(the(alone).log_likelihood[0, 0]).max())
    assert strength == pytest.approx(1 / 8, rel=0.1)
