"""All labels of a text together: how sure it is that none is wrong, and what is promised."""

import numpy as np
import pytest

from pcs_annotator import Outcome
from pcs_annotator.core.outcome import UNLIKE_GOLD
from pcs_annotator.judging.heldout import HeldOut
from pcs_annotator.judging.promise.promise import USED_UP, Promise
from pcs_annotator.judging.promise.sets import FEW, WHOLE, SetResult, WholeSets, fit_whole_sets, whole_rows
from tests.builders import the

PROMISE = Promise(max_error=0.1)


def trials(rows: int, hard: float = 0.5, labels: int = 4, seed: int = 0) -> list[HeldOut]:
    """Return the trial of every label; errors go together: a share of the texts is hard for all labels."""
    rng = np.random.default_rng(seed)
    is_hard = rng.random(rows) < hard
    found = []
    for _ in range(labels):
        gold, sure = rng.integers(2, size=rows).astype(np.int8), np.where(is_hard, 0.8, 0.99)
        best = np.where(rng.random(rows) < sure, gold, 1 - gold)
        given = np.where(best[:, None] == np.arange(2), sure[:, None], 1 - sure[:, None])
        found.append(HeldOut(gold, given, given, ("yes", "no"), ids=[str(row) for row in range(rows)]))
    return found


def outcomes(*confidence: float | None, reason: str = "") -> list[Outcome]:
    return [
        Outcome(id=str(row), label="yes", scores={}, confidence=one, decision=None, reason=reason)
        for row, one in enumerate(confidence)
    ]


def test_rows_are_those_that_all_trials_may_use() -> None:
    first, second, *_ = trials(20)
    second = second._replace(at_random=np.arange(20) >= 4)
    shuffled = np.random.default_rng(1).permutation(20)
    parts = {name: getattr(first, name)[shuffled] for name in ("gold", "scores", "probabilities")}
    ids, judged = whole_rows([first._replace(**parts, ids=[str(row) for row in shuffled]), second])
    assert ids == sorted(map(str, range(4, 20)))
    rows = [int(one) for one in ids]
    assert judged.confidence.tolist() == pytest.approx(first.judged.confidence[rows] * second.judged.confidence[rows])
    assert judged.right.tolist() == (first.judged.right & second.judged.right)[rows].tolist()
    assert whole_rows([first, None])[0] == []
    assert whole_rows([first, second._replace(at_random=np.zeros(20, dtype=np.bool_))])[0] == []


def test_confidence_is_how_often_sets_are_right_and_the_promise_accepts_the_sure_ones() -> None:
    _, judged = whole_rows(trials(400))
    found = fit_whole_sets(judged, PROMISE)
    assert (found.rows, found.right) == (400, judged.right.sum())
    assert the(found.accuracy).interval.low < judged.right.mean() < the(found.accuracy).interval.high
    sure = found.confidence(judged.confidence)
    assert sure.mean() == pytest.approx(judged.right.mean(), abs=0.01)
    result = SetResult.of(found, [outcomes(0.99, 0.8, None)] * 4)
    assert result.decisions == ["accept", "review", "review"]
    assert result.confidence[0] == pytest.approx(0.99**4, abs=0.03)
    assert result.confidence[2] is None
    assert dict(result.counts.decisions) == {"accept": 1, "review": 2}
    assert the(result.model.certificate).accepted_share == pytest.approx(1 / 3)
    assert SetResult.of(found, [outcomes(0.99)] * 3 + [outcomes(0.99, reason=UNLIKE_GOLD)]).decisions == ["review"]


def test_where_labels_err_together_confidence_is_not_their_product() -> None:
    labels = trials(400, hard=0.3)
    same = [labels[0], *(labels[0] for _ in range(3))]  # four labels that are always wrong at once
    _, judged = whole_rows(same)
    found = fit_whole_sets(judged, None)
    assert abs(judged.confidence.mean() - judged.right.mean()) > 0.1
    assert found.confidence(judged.confidence).mean() == pytest.approx(judged.right.mean(), abs=0.01)
    assert SetResult.of(found, [outcomes(0.99)] * 4).decisions == [None]


def test_promises_about_sets_are_rarely_broken() -> None:
    broken = 0
    for seed in range(25):
        found = fit_whole_sets(whole_rows(trials(300, seed=seed))[1], PROMISE)
        new = whole_rows(trials(1000, seed=1000 + seed))[1]
        accepted = the(found.certificate).accepts(found.confidence(new.confidence), new.best, WHOLE)
        broken += bool(accepted.any() and (~new.right[accepted]).mean() > PROMISE.max_error)
    assert broken <= 4


@pytest.mark.parametrize(
    ("rows", "spent", "refused", "why"),
    [(9, 0.0, "", FEW), (40, 0.1, "", USED_UP), (40, 0.0, "a copy", "a copy"), (9, 0.0, "a copy", "a copy")],
)
def test_without_a_promise_the_certificate_says_why(rows: int, spent: float, refused: str, why: str) -> None:
    _, judged = whole_rows(trials(rows))
    found = fit_whole_sets(judged, PROMISE, spent, refused)
    assert the(found.certificate).why_not == why
    assert (found.calibrator is None) == (rows == 9)
    assert set(SetResult.of(found, [outcomes(0.999)] * 4).decisions) == {"review"}


def test_too_few_rows_leave_the_product() -> None:
    found = fit_whole_sets(whole_rows(trials(5))[1], None)
    assert found == WholeSets()
    assert found.accuracy is None
    assert SetResult.of(found, [outcomes(0.9), outcomes(0.5)]).confidence[0] == pytest.approx(0.45)
