"""Texts from which passages or a value are quoted, in a review."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pcs_annotator.base.errors import ConfigError, LabelError
from pcs_annotator.core.events import Verdict
from pcs_annotator.reviewing.book_review import ANOTHER, BookReview, answers_of
from pcs_annotator.reviewing.session import Review
from pcs_annotator.reviewing.values import Given, ReviewOptions, Shown
from pcs_annotator.runs.book import Book
from pcs_annotator.runs.opened import Run
from pcs_annotator.runs.passage_run import PassageRun
from pcs_annotator.runs.settings import TaskSettings
from tests.faces.review.extracted import gold_of, make_extraction, text_of
from tests.made_once import made_once
from tests.simulated import copy_run

OPTIONS = ReviewOptions(refit_every=0, seed=1)
TEXT = text_of(41)


@pytest.fixture(scope="session")
def extraction(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_once(tmp_path_factory, "extraction", make_extraction) / "run"


@pytest.fixture
def run(extraction: Path, tmp_path: Path) -> Path:
    return copy_run(extraction, tmp_path / "run")


def answer(shown: Shown, label: str | None, reviewer: str = "Ana") -> Given:
    return Given(
        id=shown.id, label=label, reviewer=reviewer, queue=shown.queue, lease=shown.lease, version=shown.version
    )


def submitted(review: Review, label: str, id: str = "t41", reviewer: str = "Ana") -> Verdict:
    return review.submit(answer(review.show(id, reviewer), label, reviewer))


def reviewing(run: Path, part: str, options: ReviewOptions = OPTIONS) -> Review:
    return Review.open(Book.open(run).parts[part].home, options)


def passage(words: str, type_: str = "claim") -> dict[str, object]:
    return {"start": TEXT.index(words), "end": TEXT.index(words) + len(words), "type": type_}


def test_equal_verdicts_are_written_alike(run: Path) -> None:
    with reviewing(run, "claims") as review:
        rows = [
            passage("cafe\u0301s are worse 👩🏽‍🚀", "Claim"),
            passage("tar harms lungs"),
            passage("tar harms lungs"),
        ]
        verdict = submitted(review, json.dumps(rows, indent=2))
        first, second = passage("tar harms lungs"), passage("cafe\u0301s are worse 👩🏽‍🚀")
        assert verdict.label == json.dumps([first, second], separators=(",", ":"))
        assert verdict.proposed == gold_of(41)
        assert submitted(review, " [] ").label == "[]"


@pytest.mark.parametrize(
    ("label", "why"),
    [
        ("[{", "not valid JSON"),
        ('[{"start":0,"end":999,"type":"claim"}]', "no passage from 0 to 999"),
        ('[{"start":4,"end":4,"type":"claim"}]', "no passage from 4 to 4"),
        ('[{"start":0,"end":4,"type":"doubt"}]', "'doubt' is not a type of passages"),
        ('[{"start":true,"end":4,"type":"claim"}]', "no passage from True to 4"),
        ("null", "mark passages, or say that there is none"),
        (json.dumps([passage("tar harms lungs"), passage("tar harms")]), "nearly the same passage"),
    ],
)
def test_passages_that_cannot_be_are_refused_and_nothing_is_stored(run: Path, label: str, why: str) -> None:
    with reviewing(run, "claims") as review:
        shown = review.show("t41", "Ana")
        with pytest.raises(LabelError, match="t41") as refused:
            review.submit(answer(shown, label))
        assert why in str(refused.value)
        assert review.state.reviewed(review.rows.place("t41")) is None
        assert review.submit(answer(shown, gold_of(41))).label == gold_of(41)  # what was shown still holds


def test_values_are_written_in_their_form_and_others_refused(run: Path) -> None:
    with reviewing(run, "year") as review:
        assert submitted(review, " 2,001.0 ").label == "2001"
        assert submitted(review, "None").label == "none"
        with pytest.raises(LabelError, match="no unambiguous number"):
            submitted(review, "long ago")


def test_candidates_come_with_what_became_of_them_unless_it_is_judged_blind(run: Path) -> None:
    with reviewing(run, "claims") as review:
        shown = review.show("t41", "Ana", "doubtful")
        quoted = [TEXT[one.passage.start : one.passage.end] for one in shown.candidates]
        assert quoted[1:] == ["tar harms lungs", "a study of 2001 shows it", "cafe\u0301s are worse 👩🏽‍🚀 by far"]
        assert all(one.confidence is not None and one.decision for one in shown.candidates)
        assert shown.outcome is not None
        assert shown.outcome.label == gold_of(41)
        blind = review.show("t42", "Ana", "random")
        assert blind.candidates
        assert {one[1:] for one in blind.candidates} == {(None, None)}
        assert (blind.outcome, blind.votes, blind.gold) == (None, [], None)
        assert review.rows.gold_label(1) == gold_of(1)


def test_votes_say_how_many_candidates_or_which_value_a_question_quotes(run: Path) -> None:
    with reviewing(run, "claims") as review:
        votes = {vote.annotator: vote.label for vote in review.show("t41", "Ana").votes}
        assert sorted(filter(None, votes.values())) == ["2 of 4", "3 of 4"]
    with reviewing(run, "year") as review:
        assert {vote.label for vote in review.show("t41", "Ana").votes} == {"2001", "41"}


def test_people_differ_if_their_passages_do_and_verdicts_are_learned_from(run: Path) -> None:
    with reviewing(run, "claims", replace(OPTIONS, double=1.0)) as review:
        submitted(review, gold_of(45), "t45", "Ana")
        submitted(review, gold_of(45), "t45", "Ben")
        submitted(review, gold_of(46), "t46", "Ana")
        submitted(review, "[]", "t46", "Ben")
        assert [row.id for row in review.conflicts("Cleo")] == ["t46"]
        agreement = review.agreement()
        assert (agreement.rows, agreement.pairs[0].alike) == (2, 1)
    opened = Run.of(Book.open(run).parts["claims"])
    assert isinstance(opened, PassageRun)
    marked = opened.marked[45]
    assert marked is not None
    assert [one[:3] for one in marked] == [(row["start"], row["end"], row["type"]) for row in json.loads(gold_of(45))]
    with reviewing(run, "claims") as again:
        assert again.state.conflict.sum() == 1
        assert again.rows.gold_label(45) is None


def test_the_review_of_all_variables_draws_and_stores_them_together(run: Path) -> None:
    with BookReview.open(Book.open(run), OPTIONS) as review:
        shown = review.next_row("Ana", "learn")
        assert shown is not None
        given = answer(shown, None)
        with pytest.raises(LabelError, match="no passage from 0 to 999"):
            review.submit(given, {"tone": "calm", "year": "2001", "claims": '[[0, 999, "claim"]]'})
        assert review.progress("Ana").reviewed == 0
        stored = review.submit(given, {"tone": "calm", "year": "2001", "claims": '[[0, 4, "claim"]]'})
        assert stored["claims"].label == '[{"start":0,"end":4,"type":"claim"}]'
        assert {part.id for part in review.undo("Ana")} == {shown.id}
        assert "**value**" not in review.guidelines


def test_a_value_that_is_written_down_replaces_the_choice() -> None:
    task = TaskSettings(kind="value", format="text")
    form = {"year": ANOTHER, "year=typed": " in 1999 "}
    assert dict(answers_of("year", task, form)) == {"year": "in 1999"}
    assert dict(answers_of("year", task, {**form, "year": "2001"})) == {"year": "2001"}
    assert dict(answers_of("year", task, {**form, "year": ""})) == {"year": None}
    with pytest.raises(ConfigError, match="write it down"):
        dict(answers_of("year", task, {"year": ANOTHER}))


def test_a_fit_in_the_background_learns_from_passages(run: Path) -> None:
    with reviewing(run, "claims", replace(OPTIONS, refit_every=3)) as review:
        for row in range(40, 43):
            submitted(review, gold_of(row), f"t{row}")
        review.refits.wait()
        review.take_new_model()
        assert review.refits.news().failed == ""
        assert review.refits.news().fits == 1
        assert review.show("t50", "Ana").candidates
