"""`Review`: rows in, verdicts out."""

from __future__ import annotations

from pathlib import Path

import pytest

from pcs_annotator.errors import ChangedMeanwhile, ConfigError, LabelError, LeaseExpired, UnknownRow
from pcs_annotator.pipeline.review.session import Review
from pcs_annotator.pipeline.review.values import Query, ReviewOptions
from tests.pipeline.review.reviewing import verdict

OPTIONS = ReviewOptions(refit_every=0, seed=1)


def test_a_row_is_shown_with_everything_about_it(run: Path) -> None:
    with Review.open(run, OPTIONS) as review:
        shown = review.next_row("ann", "random")
    assert shown is not None
    assert shown.text.startswith("Case ")
    assert {vote.relation for vote in shown.votes} == {"original", "frame"}
    assert len(shown.votes) == 6
    [variant] = shown.variants
    assert variant.relation == "frame"
    assert variant.text is not None
    assert sum(value for _, value in shown.probabilities) == pytest.approx(1)
    assert shown.probabilities[0][0] == shown.outcome.label
    assert shown.draw is not None
    assert shown.draw.probability == pytest.approx(1 / 40)
    assert shown.for_estimates


def test_verdicts_are_there_after_reopening(run: Path) -> None:
    with Review.open(run, OPTIONS) as review:
        first = review.next_row("ann", "random")
        assert first is not None
        review.submit(verdict(first, "good"))
    with Review.open(run, OPTIONS) as review:
        shown = review.show(first.id, "ann")
        assert shown.reviewed is not None
        assert shown.reviewed.label == "good"
        second = review.next_row("ann", "random")
        assert second is not None
        assert second.id != first.id


def test_a_second_review_of_the_folder_is_refused(run: Path) -> None:
    with Review.open(run, OPTIONS), pytest.raises(ConfigError, match="is being reviewed already, by"):
        Review.open(run, OPTIONS)
    Review.open(run, OPTIONS).close()


def test_undo_and_bulk_accept(run: Path) -> None:
    with Review.open(run, OPTIONS) as review:
        query = Query(reviewed=False, label="good")
        found = review.find(query, "ann")
        saved = review.accept_all(query, "ann", found.acceptable)
        assert len(saved.ids) == found.acceptable > 0
        assert review.find(query, "ann").total == 0
        undone = review.undo("ann")
        assert undone is not None
        assert sorted(undone.ids) == sorted(saved.ids)
        assert review.find(query, "ann").total == found.total
        assert review.undo("ann") is None


def test_bad_verdicts_are_refused_with_a_sentence(run: Path) -> None:
    with Review.open(run, OPTIONS) as review:
        shown = review.next_row("ann", "random")
        assert shown is not None
        with pytest.raises(LabelError, match="'fine' is not one of the labels"):
            review.submit(verdict(shown, "fine"))
        with pytest.raises(UnknownRow):
            review.show("nobody", "ann")
        other = review.show(shown.id, "bob")
        assert other.held_by == "ann"
        with pytest.raises(LeaseExpired, match="in the hands of ann"):
            review.submit(verdict(other, "good", "bob"))
        review.submit(verdict(shown, "good"))
        with pytest.raises(ChangedMeanwhile):
            review.submit(verdict(other, "bad", "bob"))
