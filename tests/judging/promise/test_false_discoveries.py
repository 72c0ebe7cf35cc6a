"""The promise that few of the accepted labels are wrong on average."""

from dataclasses import replace

import numpy as np
import pytest

from pcs_annotator import Votes
from pcs_annotator.base.plain import from_plain, to_plain
from pcs_annotator.core.arrays import Codes
from pcs_annotator.core.gold_codes import UNLABELLED
from pcs_annotator.judging.fit_model import Learning, fit_model
from pcs_annotator.judging.heldout import Judged
from pcs_annotator.judging.model import Model
from pcs_annotator.judging.promise.certificate import Certificate, certify
from pcs_annotator.judging.promise.promise import Promise
from pcs_annotator.judging.promise.thresholds import EVERY_LABEL, find_thresholds
from tests.builders import the
from tests.judging.promise.test_thresholds import LABELS, judged

AVERAGE = Promise(max_error=0.1, kind="false-discoveries")


def table_of(confidence: list[float], best: list[int] | None = None) -> Judged:
    return judged(confidence, [False] * len(confidence), best)


def by_definition(gold: Judged, table: Judged, alpha: float) -> list[bool]:
    """Return which rows Benjamini and Hochberg's procedure selects with conformal p-values, row by row."""
    wrong = gold.confidence[~gold.right]
    p_values = [(1 + int((wrong >= one).sum())) / (len(gold.right) + 1) for one in table.confidence]
    rows, least = len(p_values), 0.0
    for rank, value in enumerate(sorted(p_values), start=1):
        if value <= alpha * rank / rows:
            least = value
    return [value <= least for value in p_values]


def simulated(rows: int = 400, seed: int = 0, accuracy: float = 0.8) -> tuple[Votes, Codes]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=rows).astype(np.int8)
    right = rng.random((rows, 3, 2, 1)) < accuracy
    codes = np.where(right, truth[:, None, None, None], 1 - truth[:, None, None, None]).astype(np.int8)
    ids, groups = [f"{row:04}" for row in range(rows)], ["en" if row % 2 else "de" for row in range(rows)]
    names = {"annotators": list("abc"), "relations": ["original", "x"], "labels": ["yes", "no"]}
    return Votes(codes=codes, ids=ids, groups=groups, **names), truth  # type: ignore[arg-type]  # names of axes


def fitted(votes: Votes, truth: Codes, promise: Promise = AVERAGE, gold: int = 200) -> tuple[Model, Certificate]:
    codes = np.where(np.arange(len(truth)) < gold, truth, UNLABELLED).astype(np.int8)
    model = fit_model(votes, codes, Learning(promise=promise)).model
    return model, the(model.certificate)


@pytest.mark.parametrize("seed", range(20))
def test_rows_are_accepted_as_benjamini_and_hochberg_select_them(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sure = rng.uniform(0.5, 1, 60).round(2)  # with ties
    gold = judged(sure.tolist(), (rng.random(60) < sure**0.3).tolist())
    table = table_of(rng.uniform(0.5, 1, 80).round(2).tolist())
    found = find_thresholds(gold, LABELS, AVERAGE, table=table)
    taken = table.confidence >= found.get(EVERY_LABEL, np.inf)
    assert taken.tolist() == by_definition(gold, table, 0.1)


def test_on_average_at_most_the_promised_share_is_wrong_and_more_is_accepted_than_with_certainty() -> None:
    shares, accepted, certain = [], 0, 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        sure = rng.uniform(0.5, 1, 400)
        right = rng.random(400) < sure
        gold = Judged(sure[:200], np.zeros(200, dtype=np.intp), right[:200])
        table = table_of(sure[200:].tolist())
        taken = table.confidence >= find_thresholds(gold, LABELS, AVERAGE, table=table).get(EVERY_LABEL, np.inf)
        shares.append(float((~right[200:][taken]).mean()) if taken.any() else 0.0)
        accepted += int(taken.sum())
        strict = find_thresholds(gold, LABELS, replace(AVERAGE, kind="error-among-accepted"))
        certain += int((table.confidence >= strict.get(EVERY_LABEL, np.inf)).sum())
    assert np.mean(shares) <= 0.1 + 2 * np.std(shares) / 20
    assert accepted > 1.2 * certain


def test_fewer_gold_rows_than_one_per_share_of_error_promise_nothing() -> None:
    table = table_of([0.9] * 50)
    assert AVERAGE.least_rows() == 9
    assert find_thresholds(judged([0.9] * 9, [True] * 9), LABELS, AVERAGE, table=table) == {
        EVERY_LABEL: pytest.approx(0.9)
    }
    few = certify(judged([0.9] * 8, [True] * 8), LABELS, AVERAGE, table=table)
    assert not few.holds
    assert few.why_not.startswith("8 gold rows are too few: even without an error it takes 9 of them")


def test_without_a_table_the_gold_rows_say_how_many_are_accepted() -> None:
    gold = judged([0.9] * 50 + [0.6] * 50, [True] * 50 + [False] * 50)
    assert find_thresholds(gold, LABELS, AVERAGE) == {EVERY_LABEL: pytest.approx(0.9)}
    assert find_thresholds(gold, LABELS, AVERAGE, table=table_of([0.9] * 50 + [0.6] * 50)) == {
        EVERY_LABEL: pytest.approx(0.9)
    }


def test_rows_without_a_label_are_never_accepted_but_count_as_rows_of_the_table() -> None:
    gold = judged([0.9] * 30, [True] * 30)
    assert find_thresholds(gold, LABELS, AVERAGE, table=table_of([0.9] * 50 + [-1.0] * 20)) == {
        EVERY_LABEL: pytest.approx(0.9)
    }
    # one of thirty could be wrong, which is a tenth of the few rows that have a label
    assert find_thresholds(gold, LABELS, AVERAGE, table=table_of([0.9] * 10 + [-1.0] * 90)) == {}


def test_each_label_and_each_group_has_its_own_threshold() -> None:
    gold = judged([0.9] * 100, [True] * 50 + [False] * 50, [0] * 50 + [1] * 50)
    table = table_of([0.9] * 80, [0] * 40 + [1] * 40)
    for promise in (replace(AVERAGE, per_label=True), replace(AVERAGE, by="language")):
        assert certify(gold, LABELS, promise, table=table).thresholds == {"no": pytest.approx(0.9)}


@pytest.mark.parametrize("more", [{}, {"per_label": True}, {"by": "language"}])
def test_a_fit_keeps_the_promise_for_its_rows_without_gold(more: dict[str, object]) -> None:
    votes, truth = simulated()
    model, certificate = fitted(votes, truth, replace(AVERAGE, **more))  # type: ignore[arg-type]  # by name
    assert certificate.holds
    assert (certificate.level, certificate.gold_rows) == (0.0, 200)
    assert from_plain(Certificate, to_plain(certificate)) == certificate
    accepted = the(model.judged(votes).accepted)
    wrong = model.judged(votes).best[accepted] != truth[accepted]
    assert accepted[200:].sum() > 100
    assert wrong.mean() < 0.15


def test_if_all_rows_have_gold_it_is_about_texts_like_these() -> None:
    votes, truth = simulated(300)
    model, certificate = fitted(votes, truth, gold=300)
    assert certificate.holds
    new, unseen = simulated(300, seed=1)
    found = model.judged(new)
    assert the(found.accepted).sum() > 100
    assert (found.best != unseen)[the(found.accepted)].mean() < 0.15


def test_gold_that_was_not_drawn_at_random_carries_no_promise() -> None:
    votes, truth = simulated()
    codes = np.where(np.arange(400) < 200, truth, UNLABELLED).astype(np.int8)
    how = Learning(promise=AVERAGE)
    chosen = the(fit_model(votes, codes, how, random_sample=np.zeros(400, dtype=np.bool_)).model.certificate)
    assert not chosen.holds
    assert "no gold row was drawn at random" in chosen.why_not
