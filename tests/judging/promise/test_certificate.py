"""Promises that are tested again and again while gold rows come in; the large version is `benchmarks/looks.py`."""

from dataclasses import replace

import numpy as np
import pytest

from pcs_annotator import Votes
from pcs_annotator.core.arrays import Floats
from pcs_annotator.judging.heldout import Judged
from pcs_annotator.judging.promise.certificate import Fingerprint, audit, certify, fingerprint, in_force, ratio_bound
from pcs_annotator.judging.promise.promise import Promise
from pcs_annotator.judging.promise.thresholds import EVERY_LABEL
from tests.judging.promise.test_thresholds import LABELS, judged

PROMISE = Promise(max_error=0.1)


def test_enough_right_rows_support_the_promise() -> None:
    found = certify(judged([0.9] * 50, [True] * 50), LABELS, PROMISE)
    assert found.holds
    assert found.gold_rows == 50
    assert found.thresholds == {EVERY_LABEL: 0.9}
    assert found.why_not == ""


def test_with_too_few_rows_the_certificate_says_how_many_are_needed() -> None:
    found = certify(judged([0.9] * 12, [True] * 12), LABELS, PROMISE)
    assert not found.holds
    assert "12 gold rows" in found.why_not
    assert "it takes 44" in found.why_not
    assert found.level == 0  # nothing was tested, so nothing is used up


def test_rows_that_are_wrong_a_little_too_often_need_more() -> None:
    sure = judged([0.99] * 120 + [0.7] * 80, [False] * 2 + [True] * 118 + [True, False] * 40)
    found = certify(sure, LABELS, Promise(max_error=0.05))
    assert not found.holds
    assert "on 200 gold rows not even" in found.why_not
    assert found.rows_needed is not None
    assert 200 < found.rows_needed.even_odds <= found.rows_needed.likely
    assert f"with {found.rows_needed.likely:,} about 80 %" in found.why_not
    assert found.level == pytest.approx(0.05)


def test_more_rows_do_not_help_where_labels_are_never_reliable() -> None:
    found = certify(judged([0.6] * 200, [True, False] * 100), LABELS, PROMISE)
    assert found.rows_needed is None
    assert found.why_not.endswith("; label more random rows, or use better models")  # a number, or nothing about it


def test_a_sequence_that_passed_to_its_end_gives_its_level_back_and_one_that_failed_anywhere_does_not() -> None:
    every = certify(judged([0.95] * 60 + [0.9] * 60, [True] * 120), LABELS, PROMISE)
    assert (every.thresholds, every.used) == ({EVERY_LABEL: 0.9}, 0.0)
    some = certify(judged([0.95] * 100 + [0.6] * 100, [True] * 100 + [False] * 100), LABELS, PROMISE)
    assert some.thresholds == {EVERY_LABEL: 0.95}
    assert some.used == some.level == pytest.approx(0.05)
    none = certify(judged([0.6] * 200, [True, False] * 100), LABELS, PROMISE)
    assert none.used == none.level


def test_of_labels_those_with_rows_that_are_not_accepted_use_their_part() -> None:
    sample = judged([0.95] * 160 + [0.6] * 20, [True] * 160 + [False] * 20, [0] * 80 + [1] * 100)
    found = certify(sample, ("a", "b", "c"), Promise(max_error=0.1, per_label=True))
    assert set(found.thresholds) == {"a", "b"}
    assert found.used == pytest.approx(found.level / 3)


def test_a_certificate_says_what_it_means_for_the_rows_at_hand() -> None:
    found = certify(judged([0.9] * 50, [True] * 50), LABELS, PROMISE)
    taken = found.accepts(np.array([0.95, 0.9, 0.5, 0.2]), np.array([0, 1, 0, 0]), LABELS)
    shown = found.with_coverage(taken)
    assert (shown.accepted_share, shown.review_rows) == (0.5, 2)
    assert found.with_coverage(np.zeros(0, dtype=np.bool_)).accepted_share == 0


def test_a_revoked_certificate_accepts_nothing() -> None:
    found = certify(judged([0.9] * 50, [True] * 50), LABELS, PROMISE)
    revoked = replace(found, audit=audit(PROMISE, 20, 9))
    assert not revoked.holds
    assert not revoked.accepts(np.array([1.0]), np.array([0]), LABELS).any()


@pytest.mark.parametrize(
    ("rows", "wrong", "finding"),
    [(60, 0, "confirmed"), (30, 0, "open"), (30, 2, "open"), (30, 11, "revoked"), (5, 5, "revoked"), (5, 0, "open")],
)
def test_an_audit_confirms_or_revokes_only_with_enough_evidence(rows: int, wrong: int, finding: str) -> None:
    found = audit(PROMISE, rows, wrong)
    assert found.finding == finding
    assert found.error.low <= wrong / rows <= found.error.high
    assert found.level == PROMISE.certainty
    assert (found.finding == "revoked") == (found.error.low > PROMISE.max_error)
    assert (found.finding == "confirmed") == (found.error.high <= PROMISE.max_error)


@pytest.mark.slow
def test_an_audit_that_grows_until_it_decides_is_rarely_wrong() -> None:
    rng, found = np.random.default_rng(0), []
    for _ in range(200):
        wrong = np.cumsum(rng.random(400) < PROMISE.max_error)
        looks = (audit(PROMISE, rows, int(wrong[rows - 1])).finding for rows in range(10, 401, 10))
        found.append(next((one for one in looks if one != "open"), "open"))
    assert found.count("confirmed") + found.count("revoked") <= 0.1 * len(found)


NOW = Fingerprint("v", "g", "1")


def test_a_certificate_without_a_fingerprint_cannot_be_checked_and_stays() -> None:
    found = certify(judged([0.9] * 50, [True] * 50), LABELS, PROMISE)
    assert in_force(found, NOW) is found


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"votes": "w"}, "votes changed"),
        ({"gold": "h"}, "gold changed"),
        ({"version": "2"}, "version changed"),
        ({"votes": "w", "gold": "h"}, "votes and gold changed"),
    ],
)
def test_a_certificate_is_void_and_says_why_when_votes_gold_or_version_changed(
    changes: dict[str, str], named: str
) -> None:
    found = replace(
        certify(judged([0.9] * 50, [True] * 50), LABELS, PROMISE), fingerprint=NOW, audit=audit(PROMISE, 30, 0)
    )
    void = in_force(found, NOW._replace(**changes))
    assert void.why_not.startswith(named)
    assert "pcs fit" in void.why_not
    assert not void.holds
    assert not void.thresholds
    assert void.audit is None
    assert (void.promise, void.gold_rows, void.fingerprint) == (PROMISE, 50, NOW)
    assert not void.accepts(np.array([1.0]), np.array([0]), LABELS).any()


VOTES = Votes(
    codes=np.array([[[0, 1]], [[1, -1]], [[0, 0]]]),
    ids=["a", "b", "c"],
    annotators=["m"],
    relations=["original", "voice"],
    labels=["no", "yes"],
)
GOLD = np.array([0, -1, 1], dtype=np.int8)


def test_the_fingerprint_names_what_changed() -> None:
    before = fingerprint(VOTES, GOLD, "1")
    other_vote = replace(VOTES, codes=np.where(VOTES.codes == -1, 0, VOTES.codes))
    assert fingerprint(other_vote, GOLD, "1").changed_since(before) == ["votes"]
    assert fingerprint(VOTES, np.array([0, 0, 1], dtype=np.int8), "1").changed_since(before) == ["gold"]
    assert fingerprint(VOTES, GOLD, "2").changed_since(before) == ["version"]
    assert before.changed_since(before) == []


def test_the_fingerprint_notices_changed_grades_and_not_how_their_absence_is_written() -> None:
    graded = np.where((VOTES.codes >= 0)[..., np.newaxis], np.array([0.25, 0.5], dtype=np.float32), np.float32(np.nan))
    before = fingerprint(replace(VOTES, grades=graded), GOLD, "1")
    turned = replace(VOTES, grades=graded).take(np.array([2, 0, 1])).select(relations=["voice", "original"])
    assert fingerprint(turned, GOLD[[2, 0, 1]], "1") == before
    assert fingerprint(VOTES, GOLD, "1").changed_since(before) == ["votes"]
    other = graded.copy()
    other[0, 0, 0, 0, 0] = 0.3
    assert fingerprint(replace(VOTES, grades=other), GOLD, "1").changed_since(before) == ["votes"]
    assert fingerprint(replace(VOTES, grades=-graded * np.float32(-1)), GOLD, "1") == before
    assert fingerprint(replace(VOTES, grades=np.full_like(graded, np.nan)), GOLD, "1") == fingerprint(VOTES, GOLD, "1")


@pytest.mark.parametrize(("rate", "level"), [(0.05, 0.1), (0.2, 0.05)])
def test_the_bound_of_a_likelihood_ratio_is_reached_as_often_as_the_level_says(rate: float, level: float) -> None:
    bound = ratio_bound(rate, 2 * rate, level)
    assert 0 < bound < -np.log(level)
    wrong = np.random.default_rng(1).random((4000, 2000)) < rate
    steps = np.where(wrong, np.log(2), np.log1p(-2 * rate) - np.log1p(-rate))
    assert (steps.cumsum(axis=1).max(axis=1) >= bound).mean() == pytest.approx(level, abs=0.015)


SEQUENCES, LOOKS, FIRST, EVERY = 120, 30, 200, 20
CONFIDENCE, ERROR, TOP = np.array([0.98, 0.78]), np.array([0.02, 0.22]), 0.6
"""Two kinds of rows: those with the higher confidence may be accepted; both together are wrong in just 10 %."""


def rows_of(kind: Floats, right: Floats) -> Judged:
    return Judged(CONFIDENCE[kind.astype(int)], np.zeros(len(kind), dtype=np.int8), right.astype(bool))


def test_few_sequences_of_looks_have_a_broken_promise_though_every_look_finds_one() -> None:
    promise, rng, broken, found = Promise(max_error=0.0999), np.random.default_rng(0), 0, 0
    for _ in range(SEQUENCES):
        kind = (rng.random(FIRST + LOOKS * EVERY) > TOP).astype(float)
        right = rng.random(len(kind)) > ERROR[kind.astype(int)]
        spent, failed = 0.0, False
        for look in range(LOOKS):
            rows = FIRST + look * EVERY
            certificate = certify(rows_of(kind[:rows], right[:rows]), ("a", "b"), promise, spent)
            spent += certificate.used
            found += certificate.holds
            failed |= certificate.thresholds.get(EVERY_LABEL) == CONFIDENCE[1]
        broken += failed
    assert found > 0.8 * SEQUENCES * LOOKS
    assert broken / SEQUENCES <= 0.1
