"""Queues: which row comes next, how it was drawn, and whose hands it is in."""

import errno
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pcs_annotator.base.errors import ChangedMeanwhile, LeaseExpired, TableError
from pcs_annotator.core.events import Draw, Queue, Verdict, audit_order, fixed_order, frame_hash
from pcs_annotator.core.gold_codes import UNLABELLED
from pcs_annotator.reviewing.review_queues import unlike_gold_first
from pcs_annotator.reviewing.run_rows import DECISIONS
from pcs_annotator.reviewing.session import Review
from pcs_annotator.reviewing.values import ReviewOptions, Shown
from pcs_annotator.runs import review_state
from pcs_annotator.runs.draw_registry import review_events
from pcs_annotator.runs.gold_labels import FromPeople, gold_of, take_gold
from tests.reviewing.reviewing import judge, verdict


@pytest.fixture
def review(run: Path) -> Iterator[Review]:
    with Review.open(run, ReviewOptions(refit_every=0, seed=1)) as opened:
        yield opened


@pytest.fixture
def doubly(run: Path) -> Iterator[Review]:
    """Every row is to be judged by two people."""
    with Review.open(run, ReviewOptions(refit_every=0, seed=1, double=1.0)) as opened:
        yield opened


class Clock:
    """A clock that a test moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def set_clock(review: Review) -> Clock:
    review.queues.leases.clock = clock = Clock()
    return clock


def frame_of(review: Review) -> list[str]:
    rows = review.rows
    return [rows.ids[place] for place in np.flatnonzero(rows.data_gold == UNLABELLED).tolist()]


def draws_in(review: Review) -> list[Draw]:
    return [event for event in review_events(review.rows.run.folder.draws) if isinstance(event, Draw)]


def take(review: Review, queue: Queue, reviewer: str = "ann") -> Shown:
    shown = review.next_row(reviewer, queue)
    assert shown is not None
    return shown


def test_random_rows_come_in_a_fixed_random_order_and_are_stored_before_they_are_shown(review: Review) -> None:
    frame = frame_of(review)
    shown = [judge(review, "random", "good") for _ in range(10)]
    assert [one.id for one in shown] == fixed_order(frame)[:10]
    stored = draws_in(review)
    assert [one.draw for one in shown] == stored
    assert [one.reached for one in stored] == list(range(1, 11))
    assert [one.probability for one in stored] == pytest.approx([1 / (40 - drawn) for drawn in range(10)])
    assert {one.frame for one in stored} == {frame_hash(frame)}


def test_a_row_is_stored_before_anybody_has_judged_it(review: Review) -> None:
    shown = take(review, "learn")
    assert draws_in(review) == [shown.draw]


def test_learning_draws_prefer_doubtful_rows_with_known_probabilities(review: Review) -> None:
    shown = [judge(review, "learn", "good") for _ in range(15)]
    rows = review.rows
    doubt = rows.judgement.certainty[[rows.places[one.id] for one in shown]]
    rest = rows.judgement.certainty[rows.data_gold == UNLABELLED]
    assert doubt.mean() < rest.mean()
    assert all(one.draw is not None and one.draw.probability and one.draw.probability > 0 for one in shown)
    assert all(one.for_estimates for one in shown)


def test_both_queues_are_one_sequence(review: Review) -> None:
    ids = [judge(review, queue, "good").id for queue in ("random", "learn") * 10]
    assert len(set(ids)) == 20
    assert [draw.pool for draw in draws_in(review)] == list(range(40, 20, -1))
    while review.next_row("ann", "random") is not None:
        judge(review, "random", "bad")
    assert review.next_row("ann", "learn") is None
    assert int((review.state.coders > 0).sum()) == 40


def test_the_sequence_goes_on_after_reopening(review: Review, run: Path) -> None:
    first = [judge(review, "learn", "good").id for _ in range(8)]
    reached = draws_in(review)[-1].reached
    review.close()
    with Review.open(run, ReviewOptions(refit_every=0, seed=2)) as again:
        judge(again, "random", "good")
        last = draws_in(again)[-1]
        assert last.pool == 32
        assert last.reached == reached + 1
        assert last.id not in first


def test_a_row_that_was_judged_otherwise_is_drawn_but_not_shown_again(review: Review) -> None:
    first, second = fixed_order(frame_of(review))[:2]
    review.submit(verdict(review.show(first, "ann"), "good"))
    assert take(review, "random").id == second
    assert [draw.id for draw in draws_in(review)] == [first, second]
    assert review.progress("ann").queues["random"].done == 1


def test_drawing_ends_when_all_rows_have_verdicts(review: Review) -> None:
    for row in range(20, 60):
        review.submit(verdict(review.show(f"t{row}", "ann"), "good"))
    assert review.next_row("ann", "random") is None
    assert draws_in(review) == []  # drawing all of them would only cost time


def test_rows_that_a_person_labelled_in_a_file_are_drawn_but_not_shown(review: Review, run: Path) -> None:
    first, second = fixed_order(frame_of(review))[:2]
    file = run / "mine.csv"
    file.write_text(f"id,gold\n{first},good\n")
    recorded = review.rows.run
    take_gold(FromPeople(gold=file), recorded.folder, recorded.dataset, review.labels)
    review.close()
    with Review.open(run, ReviewOptions(refit_every=0, seed=1)) as again:
        assert again.progress("ann").queues["random"].left == 39
        assert take(again, "random").id == second
        assert [draw.id for draw in draws_in(again)] == [first, second]
        sample = gold_of(recorded.folder, recorded.dataset).random_sample
        assert [sample[again.rows.places[name]] for name in (first, second)] == [True, False]


@pytest.mark.parametrize(
    ("queue", "said"),
    [
        ("random", "Every row has a gold label or a verdict already."),
        ("audit", "No label is accepted, so there is nothing to check"),
        ("conflicts", "No two people differ; --double 0.2"),
    ],
)
def test_an_empty_queue_says_why(review: Review, queue: Queue, said: str) -> None:
    for row in range(20, 60):
        review.submit(verdict(review.show(f"t{row}", "ann"), "good"))
    assert review.next_row("ann", queue) is None
    assert review.why_empty("ann", queue).startswith(said)


def test_an_empty_queue_says_who_has_the_rows(doubly: Review) -> None:
    for row in range(20, 59):
        doubly.submit(verdict(doubly.show(f"t{row}", "ann"), "good"))
    doubly.show("t59", "bob")
    doubly.show("t59", "carl")
    assert doubly.next_row("ann", "random") is None
    assert doubly.why_empty("ann", "random") == "On other people's screens: 1 row. Come again in 5 minutes."
    set_clock(doubly).now = 10**9
    judge(doubly, "random", None)
    assert doubly.why_empty("ann", "learn").startswith("Left for others: 40 rows that you skipped, or were the first")
    judge(doubly, "random", "bad", "bob")
    assert doubly.next_row("bob", "conflicts") is None  # they are one of the two who differ
    assert doubly.why_empty("bob", "conflicts").startswith("You are one of those who differ on 1 row: a third person")


def test_doubtful_rows_come_least_certain_first_and_are_unfit_for_estimates(review: Review) -> None:
    rows = review.rows
    shown = [judge(review, "doubtful", "good") for _ in range(5)]
    expected = np.flatnonzero(rows.gold == UNLABELLED)
    expected = expected[np.argsort(rows.judgement.certainty[expected], kind="stable")]
    assert [rows.places[one.id] for one in shown] == expected[:5].tolist()
    assert [draw.probability for draw in draws_in(review)] == [None] * 5
    assert not any(one.for_estimates for one in shown)


def test_audits_are_of_accepted_rows_without_gold(review: Review) -> None:
    assert review.next_row("ann", "audit") is None  # nothing is accepted yet
    decision = np.where(np.arange(60) < 30, DECISIONS.index("accept"), DECISIONS.index("review")).astype(np.int8)
    rows = review.rows = replace(review.rows, judgement=replace(review.rows.judgement, decision=decision))
    review.queues.take_rows(rows)
    by_hand = audit_order([f"t{row}" for row in range(20, 30)])  # the first 20 rows have gold
    review.submit(verdict(review.show(by_hand[0], "ann"), "good"))  # it has gold now, so it proves nothing
    shown = [judge(review, "audit", "good") for _ in range(3)]
    assert [one.id for one in shown] == by_hand[1:4]
    assert [draw.probability for draw in draws_in(review)] == pytest.approx([1 / 9, 1 / 8, 1 / 7])
    assert [one.queue for one in review.state.given_by["ann"].values()] == ["chosen", "audit", "audit", "audit"]
    assert review.progress("ann").queues["audit"] == (3, 6)
    review.queues.take_rows(rows)  # as after a fit: what was audited stays so
    assert [judge(review, "audit", "good").id for _ in range(6)] == by_hand[4:]
    assert review.next_row("ann", "audit") is None


def test_a_queue_counts_only_if_it_showed_the_row(review: Review) -> None:
    shown = take(review, "random")
    for queue in ("audit", "conflicts", "doubtful"):
        review.submit(verdict(review.show(shown.id, "ann", queue), "good"))
    assert [one.queue for one in review.state.given_by["ann"].values()] == ["chosen"] * 3


def test_a_reload_shows_the_same_row_again(review: Review) -> None:
    first = take(review, "learn")
    again = take(review, "learn")
    assert (again.id, bool(again.lease)) == (first.id, True)
    assert len(draws_in(review)) == 1


def test_two_people_get_different_rows(review: Review) -> None:
    ours, theirs = take(review, "random"), take(review, "random", "bob")
    assert ours.id != theirs.id
    review.submit(verdict(ours, "good"))
    review.submit(verdict(theirs, "bad", "bob"))
    assert review.progress("ann").reviewers == {"ann": 1, "bob": 1}


def test_an_expired_lease_lets_somebody_else_have_the_row(review: Review) -> None:
    clock = set_clock(review)
    ours = take(review, "random")
    clock.now = 299
    assert take(review, "random", "bob").id != ours.id
    clock.now = 301
    theirs = take(review, "random", "carl")
    assert theirs.id == ours.id
    with pytest.raises(LeaseExpired, match="is in the hands of carl now: take the next one"):
        review.submit(verdict(ours, "good"))
    review.submit(verdict(theirs, "bad", "carl"))
    with pytest.raises(ChangedMeanwhile, match="was judged since it was shown to you"):
        review.submit(verdict(ours, "good"))


def test_a_late_verdict_is_accepted_if_nobody_else_took_the_row(review: Review) -> None:
    clock = set_clock(review)
    shown = take(review, "random")
    clock.now = 10_000
    review.submit(verdict(shown, "good"))
    assert review.progress("ann").verdicts == 1


def test_a_row_in_other_hands_can_be_seen_but_not_judged(review: Review) -> None:
    clock = set_clock(review)
    shown = take(review, "random")
    other = review.show(shown.id, "bob")
    assert (other.held_by, other.lease) == ("ann", "")
    with pytest.raises(LeaseExpired, match="in the hands of ann"):
        review.submit(verdict(other, "good", "bob"))
    clock.now = 1000
    with pytest.raises(LeaseExpired, match="open it again"):
        review.submit(verdict(other, "good", "bob"))
    review.submit(verdict(review.show(shown.id, "bob"), "good", "bob"))


def test_a_lease_is_of_one_row_and_one_person(review: Review) -> None:
    ours, theirs = take(review, "random"), take(review, "random", "bob")
    assert ours.lease != theirs.lease
    for lease in ("", "guessed", theirs.lease):
        with pytest.raises(LeaseExpired, match="not in your hands"):
            review.submit(replace(verdict(ours, "good"), lease=lease))
    assert review.show(ours.id, "ann").lease == ours.lease  # the tabs of a person share it
    review.submit(verdict(ours, "good"))


def test_two_tabs_of_one_person_cannot_overwrite_each_other(review: Review) -> None:
    first, second = take(review, "random"), take(review, "random")
    review.submit(verdict(first, "good"))
    with pytest.raises(ChangedMeanwhile):
        review.submit(verdict(second, "bad"))
    review.submit(verdict(review.show(first.id, "ann"), "bad"))  # having seen it
    assert len(review.state.given_by["ann"]) == 2


def test_a_skipped_row_goes_to_somebody_else(review: Review) -> None:
    skipped = judge(review, "random", None)
    assert take(review, "random").id != skipped.id
    assert take(review, "random", "bob").id == skipped.id
    assert review.progress("ann").verdicts == 0


def test_an_undone_row_comes_again(review: Review) -> None:
    first = judge(review, "random", "good")
    judge(review, "random", "good")
    for _ in range(2):
        review.undo("ann")
    assert take(review, "random").id == first.id


def test_a_second_person_judges_the_same_row_without_seeing_the_first_verdict(doubly: Review) -> None:
    ours, theirs = take(doubly, "random"), take(doubly, "random", "bob")
    assert ours.id == theirs.id
    assert take(doubly, "random", "carl").id != ours.id
    doubly.submit(verdict(ours, "good"))
    again = doubly.show(ours.id, "bob")
    assert again.reviewed is None
    assert doubly.listed(doubly.rows.places[ours.id], "bob").reviewed is None
    doubly.submit(verdict(theirs, "bad", "bob"))  # the other verdict does not stop it
    for name in ("ann", "bob", "carl"):
        shown = doubly.show(ours.id, name)
        assert shown.reviewed is not None
        assert shown.reviewed.in_conflict
    assert take(doubly, "random").id != ours.id


def test_conflicts_are_settled_by_whoever_looks_at_both(doubly: Review) -> None:
    ours, theirs = take(doubly, "random"), take(doubly, "random", "bob")
    doubly.submit(verdict(ours, "good"))
    doubly.submit(verdict(theirs, "bad", "bob"))
    assert doubly.progress("ann").queues["conflicts"] == (0, 1)
    settled = judge(doubly, "conflicts", "bad", "carl")
    assert settled.id == ours.id
    assert settled.reviewed is not None
    assert doubly.progress("ann").queues["conflicts"] == (1, 0)
    assert doubly.next_row("carl", "conflicts") is None
    again = doubly.show(ours.id, "carl")
    assert again.reviewed is not None
    assert again.reviewed.label == "bad"
    doubly.submit(verdict(again, "good", "carl"))  # a second thought settles it too
    after = doubly.show(ours.id, "ann").reviewed
    assert after is not None
    assert (after.label, after.in_conflict) == ("good", False)
    agreement = doubly.agreement()
    assert agreement.rows == 1
    assert [(pair.first, pair.second, pair.alike) for pair in agreement.pairs] == [("ann", "bob", 0)]


def test_a_share_of_rows_is_judged_twice(run: Path) -> None:
    with Review.open(run, ReviewOptions(refit_every=0, double=0.4)) as review:
        twice = review.queues.wanted == 2
        assert 0.2 < twice.mean() < 0.6
    with Review.open(run, ReviewOptions(refit_every=0, double=0.6)) as review:
        assert (review.queues.wanted[twice] == 2).all()  # a larger share has the same rows, and more


def test_draws_that_cannot_be_stored_did_not_happen(review: Review, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    judge(review, "random", "good")
    with monkeypatch.context() as patch:
        patch.setattr(review_state, "append_events", full)
        with pytest.raises(TableError, match=r"cannot be written \(No space left on device\), so nothing was saved"):
            review.next_row("ann", "random")
    shown = judge(review, "random", "good")
    assert shown.id == fixed_order(frame_of(review))[1]
    numbers = [event.number for event in review_events(review.rows.run.folder.draws)]
    assert numbers == [1, 2, 4, 5]  # a number that may be in the file is not used again
    kinds = [type(event) for event in review_events(review.rows.run.folder.draws)]
    assert kinds == [Draw, Verdict, Draw, Verdict]


def test_rows_unlike_all_gold_come_first_among_those_as_doubtful() -> None:
    gold = ["The striker scored a late goal.", "The keeper saved a penalty."]
    texts = ["The striker scored a late goal again.", "The bank raised its interest.", "The keeper saved it."]
    order, certainty = np.array([2, 0, 1, 3]), np.array([0.5, 0.5, 0.5, 0.9])
    assert unlike_gold_first(order, certainty, texts, gold).tolist() == [0, 1, 2, 3]
    assert unlike_gold_first(order, certainty, texts, []).tolist() == [2, 0, 1, 3]
    silent = np.array([-1.0, 0.5, 0.5, 0.9])  # a row without a label is not more than doubtful
    assert unlike_gold_first(order, silent, texts, gold)[0] == 0
