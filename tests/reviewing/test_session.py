"""`Review`: rows in, verdicts out."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyarrow.parquet import read_table, write_table

from pcs_annotator import UserError
from pcs_annotator.base.errors import ConfigError, LabelError, UnknownRow
from pcs_annotator.core.events import Queue, Undo, Verdict
from pcs_annotator.reviewing.session import Review
from pcs_annotator.reviewing.values import ReviewOptions
from pcs_annotator.runs.draw_registry import read_events
from tests.builders import the
from tests.reviewing.reviewing import judge, verdict
from tests.simulated import QUICK, simulated_models, simulated_run

OPTIONS = ReviewOptions(refit_every=0, seed=1)
"""All rows."""


@pytest.fixture
def review(run: Path) -> Iterator[Review]:
    with Review.open(run, OPTIONS) as opened:
        yield opened


def test_a_row_is_shown_with_everything_about_it(review: Review) -> None:
    shown = review.next_row("ann", "learn")
    assert shown is not None
    assert shown.outcome is not None
    assert shown.text.startswith("Case ")
    assert {vote.relation for vote in shown.votes} == {"original", "frame"}
    assert len(shown.votes) == 6
    [variant] = shown.variants
    assert variant.relation == "frame"
    assert variant.text is not None
    assert list(shown.probabilities) == ["good", "bad"]  # in the order of the task
    assert sum(shown.probabilities.values()) == pytest.approx(1)
    assert max(shown.probabilities, key=shown.probabilities.__getitem__) == shown.outcome.label
    assert "- good\n- bad" in shown.question
    assert shown.gold is None
    assert shown.reviewed is None
    assert review.show("t3", "ann").gold in ("good", "bad")


@pytest.mark.parametrize(
    ("blind", "hidden"),
    [(None, ["random", "audit"]), (True, ["random", "learn", "audit", "doubtful", "chosen"]), (False, [])],
)
def test_what_models_and_others_say_is_hidden_until_the_verdict(
    run: Path, blind: bool | None, hidden: list[Queue]
) -> None:
    queues: list[Queue] = ["random", "learn", "audit", "doubtful", "chosen"]
    with Review.open(run, replace(OPTIONS, blind=blind)) as review:
        review.submit(verdict(review.show("t50", "bob"), "good", "bob"))
        shown = {queue: review.show("t50", "ann", queue) for queue in queues}
        assert [queue for queue, one in shown.items() if one.outcome is None] == hidden
        for queue, one in shown.items():
            nothing = not (one.probabilities or one.votes or one.variants or one.reviewed or one.gold)
            assert nothing == (queue in hidden)
        saved = review.submit(verdict(shown["random"], "bad"))
        assert saved.blind == ("random" in hidden)
        assert saved.proposed in ("good", "bad")
        after = review.show("t50", "ann", "random")
        assert after.outcome is not None
        assert after.votes
        assert after.reviewed is not None
        assert not review.submit(verdict(after, "good")).blind  # having seen it


def test_variants_that_cannot_be_read_are_said_to_be(review: Review, run: Path) -> None:
    (run / "variables/label/variants.parquet").write_bytes(b"nothing")
    shown = review.show("t3", "ann")
    assert shown.variants == []
    assert "variants.parquet is damaged or not a file of variants" in shown.unread
    review.close()
    with Review.open(run, OPTIONS) as again:
        assert any("variants.parquet is damaged" in note and "rewrites are not shown" in note for note in again.notes)


def test_verdicts_are_stored_with_all_that_is_known(review: Review, run: Path) -> None:
    shown = review.next_row("Ann  Lee ", "learn")
    assert shown is not None
    assert shown.outcome is not None
    given = replace(verdict(shown, "BAD", " Ann Lee"), note="sarcasm", seconds=3.5)
    saved = review.submit(given)
    assert (saved.id, saved.number) == (shown.id, 2)
    stored = read_events(run / "draws.jsonl")[-1]
    assert isinstance(stored, Verdict)
    assert (stored.label, stored.reviewer, stored.queue, stored.note) == ("bad", "Ann Lee", "learn", "sarcasm")
    assert (stored.proposed, stored.confidence) == (shown.outcome.label, shown.outcome.confidence)
    assert stored.text_hash == review.rows.text_hash(review.rows.places[shown.id])
    assert stored.seconds == 3.5


def test_verdicts_are_there_after_reopening(review: Review, run: Path) -> None:
    first = judge(review, "random", "good")
    review.close()
    with Review.open(run, OPTIONS) as again:
        shown = again.show(first.id, "ann")
        assert shown.reviewed is not None
        assert shown.reviewed.label == "good"
        assert again.trail("ann") == {first.id: "random"}
        second = again.next_row("ann", "random")
        assert second is not None
        assert second.id != first.id


def test_a_second_review_of_the_folder_is_refused(review: Review, run: Path) -> None:
    with pytest.raises(ConfigError, match=r"is being reviewed already, by .*process \d+"):
        Review.open(run, OPTIONS)
    review.close()
    Review.open(run, OPTIONS).close()


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no run folder"):
        Review.open(tmp_path / "nowhere", OPTIONS)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="is not a run folder"):
        Review.open(tmp_path / "empty", OPTIONS)


def test_rows_labels_queues_and_names_that_do_not_exist(review: Review) -> None:
    shown = review.next_row("ann", "random")
    assert shown is not None
    with pytest.raises(LabelError, match="'fine' is not one of the labels"):
        review.submit(verdict(shown, "fine"))
    with pytest.raises(UnknownRow, match="the run has no row 'nobody'"):
        review.submit(replace(verdict(shown, "good"), id="nobody"))
    with pytest.raises(UnknownRow):
        review.show("nobody", "ann")
    with pytest.raises(ConfigError, match="no queue is called 'all'"):
        review.next_row("ann", "all")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="who reviews"):
        review.next_row(" ", "random")
    assert review.progress("ann").verdicts == 0


def test_undo_takes_back_any_number_of_verdicts(review: Review, run: Path) -> None:
    shown = [judge(review, "random", "good") for _ in range(5)]
    review.submit(verdict(review.show(shown[0].id, "ann"), "bad"))
    undone = [review.undo("ann") for _ in range(6)]
    assert [[one.id for one in taken] for taken in undone] == [[shown[0].id], *([one.id] for one in reversed(shown))]
    assert undone[1][0].queue == "random"
    assert review.undo("ann") == []
    assert review.progress("ann").reviewed == 0
    assert sum(isinstance(event, Undo) for event in read_events(run / "draws.jsonl")) == 6


def test_undoing_a_change_restores_the_verdict_before_it(review: Review) -> None:
    shown = judge(review, "random", "good")
    review.submit(verdict(review.show(shown.id, "ann"), "bad"))
    review.undo("ann")
    reviewed = review.show(shown.id, "ann").reviewed
    assert reviewed is not None
    assert reviewed.label == "good"


def test_only_own_verdicts_are_undone(review: Review) -> None:
    judge(review, "random", "good", "ann")
    judge(review, "random", "good", "bob")
    review.undo("ann")
    assert review.progress("ann").reviewers == {"bob": 1}


def test_progress_tells_pace_and_what_is_left(review: Review) -> None:
    assert review.progress("").seconds is None
    for seconds in (1.0, 3.0, 4_000.0, 2.0):
        shown = review.next_row("ann", "random")
        assert shown is not None
        review.submit(replace(verdict(shown, "good"), seconds=seconds))
    judge(review, "learn", None)
    found = review.progress("ann")
    assert (found.rows, found.reviewed, found.verdicts) == (60, 4, 4)
    assert found.seconds == 2.0  # the one of more than an hour was a pause
    assert found.per_hour == pytest.approx(1800)
    assert found.queues["random"].done == 4
    assert found.queues["random"].left == 36
    assert found.queues["doubtful"].left == 36
    assert found.reviewers == {"ann": 5}
    assert found.fit.standing == "none"
    assert found.fit.promise.startswith("no promise that at most 10 %")


def test_agreement_of_reviewers(run: Path) -> None:
    with Review.open(run, replace(OPTIONS, double=1.0)) as review:
        assert review.agreement().pairs == []
        assert review.agreement().alpha is None
        for row in range(4):
            judge(review, "random", "good" if row % 2 else "bad", "ann")
            judge(review, "random", "good" if row == 1 else "bad", "bob")
        judge(review, "random", "good", "ann")  # alone
        found = review.agreement()
        [pair] = found.pairs
        assert (pair.first, pair.second, pair.rows, pair.alike) == ("ann", "bob", 4, 3)
        assert pair.kappa == pytest.approx(0.5)
        assert found.alpha == pytest.approx(1 - 7 * 2 / (2 * 3 * 5))
        assert found.rows == 4


def test_verdicts_on_changed_texts_are_not_used(review: Review, run: Path) -> None:
    shown = judge(review, "random", "good")
    review.close()
    table = read_table(run / "items.parquet")
    texts = [text.replace("Case", "Story") for text in table["text"].to_pylist()]
    write_table(table.set_column(1, "text", [texts]), run / "items.parquet")
    with Review.open(run, OPTIONS) as again:
        assert again.progress("ann").reviewed == 0
        assert again.show(shown.id, "ann").reviewed is None
        [note] = [note for note in again.notes if "texts that have changed" in note]
        assert repr(shown.id) in note
        second = again.next_row("ann", "random")
        assert second is not None
        assert second.id == shown.id  # it is still part of the random sample


def test_what_is_not_ready_is_said_at_the_start(review: Review, run: Path) -> None:
    assert review.notes == []
    review.close()
    (run / "variables/label/model.json").unlink()
    table = read_table(run / "variables/label/votes.parquet")
    note = json.loads(table.schema.metadata[b"pcs"])
    note["tally"]["failed"] = {"timeout": 90}
    note["ledger"]["calls"] = 10_000  # nothing has come since
    write_table(table.replace_schema_metadata({"pcs": json.dumps(note)}), run / "variables/label/votes.parquet")
    with Review.open(run, OPTIONS) as again:
        unfinished, not_fitted = again.notes
        assert "the run is not finished: 360 votes are there, about 80.0% of all" in unfinished
        assert not_fitted.startswith("this run was not fitted yet")
        shown = judge(again, "learn", "good")
        assert shown.outcome is not None
        assert shown.outcome.confidence is None


def test_guidelines(review: Review, run: Path, tmp_path: Path) -> None:
    assert review.guidelines.startswith("Which label fits the text best: good, bad?\n\n- **good**")
    review.close()
    path = tmp_path / "guide.md"
    path.write_text("# Be kind", encoding="utf-8")
    with Review.open(run, replace(OPTIONS, guidelines=path)) as again:
        assert again.guidelines == "# Be kind"
    with pytest.raises(ConfigError, match=r"guidelines .* cannot be read"):
        Review.open(run, replace(OPTIONS, guidelines=tmp_path / "none.md"))
    Review.open(run, OPTIONS).close()  # the lock was given back


def test_prompts_and_replies_are_hidden_until_a_blind_verdict(run: Path) -> None:
    with simulated_models(), Review.open(run, OPTIONS) as review:
        shown = review.next_row("ann", "random")
        assert shown is not None
        review.show(shown.id, "ann")  # somebody who goes to the row has not judged it by that
        assert "judge this row first" in review.evidence(shown.id, "ann").missing
        assert review.evidence(shown.id, "ann").exchanges == ()
        assert len(review.evidence(shown.id, "bob").exchanges[0]) == 6
        review.submit(verdict(shown, "good"))
        assert len(review.evidence(shown.id, "ann").exchanges[0]) == 6
        with pytest.raises(UnknownRow):
            review.evidence("nowhere", "ann")


def test_words_that_tell_are_shown_unless_the_row_is_blind(tmp_path: Path) -> None:
    made = simulated_run(tmp_path, rows=80, gold_rows=60, learn=replace(QUICK, text=True))
    with Review.open(made.folder.path, OPTIONS) as review:
        assert review.rows.judgement.model.text is not None
        shown = review.show("t70", "ann")
        marked = {shown.text[word.start : word.end]: word.contribution for word in shown.words}
        assert shown.outcome is not None
        assert (marked[the(re.search("good|bad", shown.text))[0]] > 0) == (the(shown.outcome.label) in shown.text)
        assert review.show("t70", "ann", "random").words == []
