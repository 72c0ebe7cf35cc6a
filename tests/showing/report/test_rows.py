from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pcs_annotator.core.outcome import Decision
from pcs_annotator.core.review import Reviewed, Verdict
from pcs_annotator.runs.review_state import ReviewVerdicts
from pcs_annotator.showing.report import view
from pcs_annotator.showing.report.page import render
from pcs_annotator.showing.report.view import certainty, select, view_of
from tests.showing.report.reading import Page
from tests.showing.report.results import QUICKER, Made, made_run

MANY = Made(rows=120, learn=replace(QUICKER, max_error=None))


@pytest.fixture
def at_most_100_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view, "MOST_ROWS", 100)


def test_all_rows_are_listed_in_the_order_of_the_file(tmp_path: Path) -> None:
    result = made_run(tmp_path)
    rows = select(view_of(result)).rows
    assert [row.item.id for row in rows] == [f"r{row}" for row in range(40)]
    assert "All 40 rows." in Page(render(result)).text


@pytest.mark.usefixtures("at_most_100_rows")
def test_of_too_many_rows_the_least_certain_are_listed_and_counted(tmp_path: Path) -> None:
    result = made_run(tmp_path, MANY)
    listed = select(view_of(result)).rows
    shown = {row.item.id for row in listed}
    hidden = [certainty(outcome) for outcome in result.outcomes if outcome.id not in shown]
    assert len(listed) == 100
    assert max(row.certainty for row in listed) <= min(hidden)
    text = Page(render(result)).text
    assert "The 100 least certain of 120 rows;" in text


@pytest.mark.usefixtures("at_most_100_rows")
@pytest.mark.parametrize(("decision", "named"), [("accept", "accepted ones"), ("agree", "on which all answers agree")])
def test_of_too_many_rows_some_certain_ones_are_listed(decision: Decision, named: str, tmp_path: Path) -> None:
    result = made_run(tmp_path, MANY)
    surest = sorted(result.outcomes, key=certainty)[-40:]
    kept = {outcome.id for outcome in surest}
    outcomes = [replace(one, decision=decision if one.id in kept else "review") for one in result.outcomes]
    shown = replace(result, outcomes=outcomes)
    listed = select(view_of(shown))
    assert listed.marked(decision) == 30
    assert len(listed.rows) == 100
    assert min(row.certainty for row in listed.rows) == min(map(certainty, outcomes))
    assert f"The 100 least certain of 120 rows, including 30 {named};" in Page(render(shown)).text


def test_many_models_and_relations_leave_room_for_fewer_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view, "MOST_CELLS", 150)
    assert len(select(view_of(made_run(tmp_path))).rows) == 25


def test_a_row_without_label_comes_first_among_the_uncertain(tmp_path: Path) -> None:
    result = made_run(tmp_path, Made(votes=False, gold=False, rows=3))
    (row, *_) = select(view_of(result)).rows
    assert row.certainty == -1
    assert row.marks == ("none",)
    text = Page(render(result)).text
    assert "no label 3" in text
    assert row.outcome.reason.lower() in text.lower()


def test_rows_are_marked_for_the_filters(tmp_path: Path) -> None:
    result = made_run(tmp_path)
    outcomes = [replace(outcome, label="neutral", confidence=0.4) for outcome in result.outcomes]
    for row in select(view_of(replace(result, outcomes=outcomes))).rows:
        assert ("wrong" in row.marks) == (row.gold != "neutral")
        assert "low" in row.marks


def test_rows_without_gold_are_neither_right_nor_wrong(tmp_path: Path) -> None:
    result = made_run(tmp_path, Made(rows=30))
    half = tuple(label if row < 15 else None for row, label in enumerate(result.dataset.gold))
    shown = replace(result, dataset=replace(result.dataset, gold=half))
    assert not any("wrong" in row.marks for row in select(view_of(shown)).rows[15:])
    page = Page(render(shown))
    assert len(page.with_class("right")) + len(page.with_class("wrong")) == 15


def test_gold_labels_match_regardless_of_case(tmp_path: Path) -> None:
    result = made_run(tmp_path)
    shouted = replace(result.dataset, gold=tuple(str(label).upper() for label in result.dataset.gold))
    assert view_of(replace(result, dataset=shouted)).gold == result.dataset.gold


def test_an_opened_row_shows_changes_reasons_and_votes(tmp_path: Path) -> None:
    page = Page(render(made_run(tmp_path, Made(rows=12))))
    assert page.of("ins")
    assert page.of("del")
    assert "not applicable: no subject in The council approved" in page.text
    assert "rejected: a negation was added" in page.text
    votes = page.with_class("vote")
    assert len(votes) == 12 * 2 * 3
    assert {attributes["data-by"] for attributes in votes} == {"model-0", "model-1"}


def test_a_label_without_the_highest_score_is_explained(tmp_path: Path) -> None:
    result = made_run(tmp_path, Made(rows=12))
    first, *others = result.outcomes
    assert "not the one with the highest score" not in render(
        replace(result, outcomes=[replace(first, label=None), *others])
    )
    lowest = min(first.scores, key=first.scores.__getitem__)
    shown = Page(render(replace(result, outcomes=[replace(first, label=lowest), *others]))).text
    assert "most probable one after calibration, not the one with the highest score" in shown


def test_several_draws_are_counted_in_a_cell(tmp_path: Path) -> None:
    assert "5×" in Page(render(made_run(tmp_path, Made(draws=5, skills=(1.0, 1.0), rows=12)))).text


def test_a_page_without_recorded_variants_can_be_written(tmp_path: Path) -> None:
    result = made_run(tmp_path)
    result.folder.variants.unlink()
    text = Page(render(replace(result, rewrites=()))).text
    assert "no variant recorded" in text
    assert "No rewrites are recorded." in text


def test_a_long_text_is_cut_and_the_page_shows_where(tmp_path: Path) -> None:
    text = Page(render(made_run(tmp_path, Made(rows=5, text="word " * 1000)))).text
    assert "Text (the first 1,500 characters)" in text


def test_every_row_shows_its_decision_and_reason(tmp_path: Path) -> None:
    result = made_run(tmp_path, Made(rows=12))
    outcomes = [
        replace(outcome, decision="accept" if row < 5 else "review", reason=f"reason {row}")
        for row, outcome in enumerate(result.outcomes)
    ]
    page = Page(render(replace(result, outcomes=outcomes)))
    assert len(page.with_class("accept")) == 5
    assert len(page.with_class("reason")) == 12
    assert "all decisions 12 accepted 5 to review 7" in page.text


def test_rows_on_which_answers_agree_have_a_filter_of_their_own(tmp_path: Path) -> None:
    result = made_run(tmp_path, Made(gold=False))
    agreeing = sum(outcome.decision == "agree" for outcome in result.outcomes)
    page = Page(render(result))
    assert len(page.with_class("agree")) == agreeing > 0
    assert f"all decisions 40 answers agree {agreeing} to review {40 - agreeing}" in page.text


def test_the_gold_of_a_row_without_label_is_neither_right_nor_wrong(tmp_path: Path) -> None:
    page = Page(render(made_run(tmp_path, Made(rows=3, votes=False))))
    assert len(page.with_class("gold")) == 3
    assert not page.with_class("right")
    assert not page.with_class("wrong")


def test_without_decisions_and_reasons_there_are_no_such_columns(tmp_path: Path) -> None:
    result = made_run(tmp_path, Made(rows=12))
    outcomes = [replace(outcome, decision=None, reason="") for outcome in result.outcomes]
    page = Page(render(replace(result, outcomes=outcomes)))
    assert not page.with_class("decision")
    assert not page.with_class("reason")
    assert "all decisions" not in page.text


def test_what_people_said_is_shown_with_who_said_it_and_their_notes(tmp_path: Path) -> None:
    result = made_run(tmp_path, Made(rows=5))
    people = {
        0: [verdict("positive", "<b>anna</b>", note="irony & more")],
        1: [verdict("positive", "anna"), verdict("negative", "ben")],
        2: [verdict(None, "ben")],
    }
    verdicts = ReviewVerdicts(by_row={row: Reviewed.of(given) for row, given in people.items()})
    shown = replace(result, verdicts=verdicts)
    marks = [row.marks[-1] for row in select(view_of(shown)).rows]
    assert marks == ["reviewed", "reviewed", "reviewed", "models", "models"]
    page = Page(render(shown))
    assert "<b>anna</b> : positive · irony & more" in page.text
    assert "people differ" in page.text
    assert "ben : skipped" in page.text
    assert "3 rows reviewed" in page.text
    assert "reviewed by people" not in Page(render(result)).text


def verdict(label: str | None, reviewer: str, note: str = "") -> Verdict:
    return Verdict(number=1, id="r0", text_hash="h", label=label, reviewer=reviewer, at="", queue="learn", note=note)
