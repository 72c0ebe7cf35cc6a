"""Fits in the background while people review."""

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pcs_annotator.judging.promise.certificate import Certificate
from pcs_annotator.judging.promise.promise import Promise
from pcs_annotator.judging.promise.thresholds import RowsNeeded
from pcs_annotator.reviewing.refit import Refits, changes_between, rows_to_go
from pcs_annotator.reviewing.session import Review
from pcs_annotator.reviewing.values import ReviewOptions
from tests.reviewing.reviewing import judge
from tests.simulated import truth_of

pytestmark = pytest.mark.system  # whole runs, one after the other

ENOUGH = 120.0


def gold_rows(run: Path) -> int:
    rows: int = json.loads((run / "variables/label/model.json").read_text())["weights"]["diagnostics"]["gold_rows"]
    return rows


def judge_rows(review: Review, rows: int) -> None:
    for _ in range(rows):
        judge(review, "random", lambda shown: truth_of(int(shown.id[1:])))


def test_verdicts_are_learned_from_while_people_go_on(run: Path) -> None:
    with Review.open(run, ReviewOptions(refit_every=5, seed=3)) as review:
        judge_rows(review, 4)
        assert not review.progress("ann").fit.running
        judge_rows(review, 1)
        assert review.progress("ann").fit.running
        judge_rows(review, 3)  # these come while it runs
        review.refits.wait(ENOUGH)
        news = review.progress("ann").fit
        assert (news.running, news.fits, news.failed) == (False, 1, "")
        assert news.waiting == 8 - (gold_rows(run) - 20)  # the fit may have read the log after the three came
        assert gold_rows(run) >= 25
        judge_rows(review, 5)
        assert review.progress("ann").fit.running


def test_taking_verdicts_back_starts_no_fit(run: Path) -> None:
    with Review.open(run, ReviewOptions(refit_every=3)) as review:
        judge_rows(review, 2)
        review.undo("ann")
        review.undo("ann")
        assert not review.refits.running
        assert review.progress("ann").fit.waiting == 0  # everybody says what they said at the last fit
        judge_rows(review, 2)
        assert not review.refits.running
        review.refits.fit.command = (sys.executable, "-c", "")
        judge_rows(review, 1)
        assert review.refits.running


@pytest.mark.slow
def test_a_failed_fit_is_a_sentence_and_loses_nothing(run: Path) -> None:
    with Review.open(run, ReviewOptions(refit_every=2, seed=3)) as review:
        (run / "variables/label/votes.parquet").write_bytes(b"broken")
        (run / "ledger.db").unlink()
        judge_rows(review, 2)
        review.refits.wait(ENOUGH)
        news = review.progress("ann").fit
        assert news.failed.startswith("the fit in the background failed: ")
        assert "has no answers yet" in news.failed
        assert "(no verdict is lost)" in news.failed
        assert (news.waiting, news.running) == (2, False)
        judge_rows(review, 1)
        assert not review.refits.running  # it would fail likewise; it is tried again after two more
        judge_rows(review, 1)
        assert review.refits.running


def test_a_model_that_cannot_be_read_is_a_sentence_too(run: Path) -> None:
    with Review.open(run, ReviewOptions(refit_every=1)) as review:
        spoil = f"open({str(run / 'variables/label/model.json')!r}, 'w').write('[]')"
        review.refits.fit.command = (sys.executable, "-c", spoil)
        judge_rows(review, 1)
        review.refits.wait(ENOUGH)
        assert "model.json is damaged" in review.progress("ann").fit.failed
        assert review.next_row("ann", "random") is not None  # with the model from before


def test_a_fit_is_stopped_when_the_review_ends(run: Path) -> None:
    review = Review.open(run, ReviewOptions(refit_every=1))
    review.refits.fit.command = (sys.executable, "-c", "import time; time.sleep(600)")
    judge_rows(review, 1)
    while review.refits.fit.process is None:
        time.sleep(0.01)
    review.close()
    assert review.refits.fit.process.poll() is not None
    judged = Review.open(run, ReviewOptions(refit_every=0))
    assert judged.progress("ann").verdicts == 1
    assert judged.progress("ann").fit.waiting == 1
    judged.close()


@pytest.mark.slow
def test_verdicts_of_an_earlier_session_wait_for_a_fit(run: Path) -> None:
    with Review.open(run, ReviewOptions(refit_every=0)) as review:
        judge_rows(review, 3)
    with Review.open(run, ReviewOptions(refit_every=4)) as review:
        assert review.progress("ann").fit.waiting == 3
        judge_rows(review, 1)
        review.refits.wait(ENOUGH)
        assert review.progress("ann").fit.waiting == 0
    with Review.open(run, ReviewOptions(refit_every=4)) as review:
        assert review.progress("ann").fit.waiting == 0


@pytest.fixture
def review(run: Path) -> Iterator[Review]:
    with Review.open(run, ReviewOptions(refit_every=0)) as opened:
        yield opened


def certificate(*, holds: bool, needed: RowsNeeded | None = None) -> Certificate:
    promise = Promise(max_error=0.1)
    found = Certificate(promise=promise, gold_rows=100, thresholds={}, why_not="too few", rows_needed=needed)
    return Certificate(promise=promise, gold_rows=100, thresholds={"": 0.9}) if holds else found


def test_what_a_fit_changed_is_said_in_words(review: Review) -> None:
    before = review.rows.judgement
    decision = before.decision.copy()
    decision[:12] = 1
    model = replace(before.model, certificate=certificate(holds=True))
    kept = replace(before, decision=np.full_like(decision, 3))
    after = replace(kept, decision=np.where(np.arange(len(decision)) < 12, 1, 3).astype(np.int8), model=model)
    assert list(changes_between(kept, after)) == ["promise reached", "12 fewer rows to review"]
    assert list(changes_between(after, kept)) == ["the promise does not hold any more", "12 more rows to review"]
    other = before.label.copy()
    other[0] = 1 - other[0]
    without = replace(before, model=replace(before.model, calibrator=None))
    foretold = replace(before.model, certificate=certificate(holds=False, needed=RowsNeeded(140, 190)))
    assert list(changes_between(without, replace(before, label=other, model=foretold))) == [
        "labels have a confidence now",
        "1 row has another label",
        "about 40–90 more random rows to go until a promise",
    ]


def test_rows_to_go_are_unknown_with_a_promise_or_without_a_forecast() -> None:
    assert rows_to_go(certificate(holds=True)) is None
    assert rows_to_go(certificate(holds=False)) is None
    assert rows_to_go(certificate(holds=False, needed=RowsNeeded(90, 90))) == (1, 1)


def test_no_fits_if_none_are_wanted(review: Review) -> None:
    refits = Refits(review.rows, every=0, since=lambda _: 50)
    refits.start_if_due()
    assert not refits.running
    refits.close()
