from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from pcs_annotator import Decision
from pcs_annotator.base.text import series
from pcs_annotator.core.events import Reviewed, Verdict
from pcs_annotator.runs.review_state import ReviewVerdicts
from pcs_annotator.showing.report import view
from pcs_annotator.showing.report.page import render
from pcs_annotator.showing.report.view import certainty, select, view_of
from tests.showing.report.reading import Page, listed, section
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


def test_a_row_without_label_is_marked_and_says_why(tmp_path: Path) -> None:
    result = made_run(tmp_path, Made(votes=False, gold=False, rows=3))
    (row, *_) = select(view_of(result)).rows
    assert row.certainty == -1
    assert row.marks == ("none",)
    (entry, *_) = listed(render(result))
    assert (entry["label"], entry["cells"][0]) == (None, ["said", None, None, ""])
    assert entry["cells"][-1][-1] == row.outcome.reason != ""


def test_rows_are_marked_for_the_filters(tmp_path: Path) -> None:
    result = made_run(tmp_path)
    outcomes = [replace(outcome, label="neutral", confidence=0.4) for outcome in result.outcomes]
    for row in select(view_of(replace(result, outcomes=outcomes))).rows:
        assert ("wrong" in row.marks) == (row.gold != "neutral")
        assert "low" in row.marks


def test_rows_without_gold_are_neither_right_nor_wrong(tmp_path: Path) -> None:
    result = made_run(tmp_path, Made(rows=30))
    half = tuple(label if row < 15 else None for row, label in enumerate(result.dataset.gold))
    shown = replace(result, gold=half, dataset=replace(result.dataset, gold=half))
    assert not any("wrong" in row.marks for row in select(view_of(shown)).rows[15:])
    kinds = Counter(row["cells"][1][0] for row in listed(render(shown)))
    assert kinds["gold right"] + kinds["gold wrong"] == kinds["gold"] == 15


def test_gold_labels_match_regardless_of_case(tmp_path: Path) -> None:
    result = made_run(tmp_path)
    shouted = replace(result.dataset, gold=tuple(str(label).upper() for label in result.dataset.gold))
    assert view_of(replace(result, dataset=shouted)).gold == result.dataset.gold


def test_a_row_has_its_changes_reasons_and_votes(tmp_path: Path) -> None:
    result = made_run(tmp_path, Made(rows=12))
    lines = [row["votes"][0][1] for row in listed(render(result))]
    votes = [[answer for _, *answers in line for answer in answers] for line in lines]
    assert votes == [codes.transpose(1, 0, 2).ravel().tolist() for codes in result.votes.codes]
    voices = [line[1][0] for line in lines]
    assert ["not applicable: no subject in The council approved", []] in voices
    why, parts = voices[0]
    assert why == ""
    assert parts[:4] == [["ins", "It is said that "], "The council ", ["del", "approved"], ["ins", "backed"]]
    assert any(why == "rejected: a negation was added" and parts for why, parts in voices)
    assert all(line[0][0] == 0 for line in lines)


def test_several_draws_are_counted_in_a_cell(tmp_path: Path) -> None:
    rows = listed(render(made_run(tmp_path, Made(draws=5, skills=(1.0, 1.0), rows=12))))
    assert any(answer[0] == "drawn" and answer[1][1] == 5 for row in rows for answer in row["votes"][0][1][0][1:])


def test_a_page_without_recorded_variants_can_be_written(tmp_path: Path) -> None:
    result = made_run(tmp_path)
    result.folder.variants.unlink()
    html = render(replace(result, rewrites=()))
    assert listed(html)[0]["votes"][0][1][1][0] == ["no variant recorded", []]
    assert "Missing rewrites" not in Page(html).text


def test_a_long_text_is_cut_and_the_page_shows_where(tmp_path: Path) -> None:
    (row, *_) = listed(render(made_run(tmp_path, Made(rows=5, text="word " * 1000))))
    assert 1400 < len(row["text"]) <= 1502
    assert row["text"].endswith(" …")


@pytest.mark.parametrize("text", ["The council approved the plan. ", "议会星期一批准了这个计划。"])
def test_300_rows_stay_small_however_long_the_texts_are(text: str, tmp_path: Path) -> None:
    made = Made(rows=300, text=text * 80, relations=("original", "voice", "synonym", "order"), learn=QUICKER)
    assert len(render(made_run(tmp_path, made)).encode()) <= 400_000


def test_every_row_shows_its_decision_and_reason(tmp_path: Path) -> None:
    result = made_run(tmp_path, Made(rows=12))
    outcomes = [
        replace(outcome, decision="accept" if row < 5 else "review", reason=f"reason {row}")
        for row, outcome in enumerate(result.outcomes)
    ]
    html = render(replace(result, outcomes=outcomes))
    cells = [row["cells"][-1] for row in listed(html)]
    assert cells[4:6] == [
        ["decision accept", "accept", None, "reason 4"],
        ["decision review", "review", None, "reason 5"],
    ]
    assert "accepted 5 labelled by people 7" in Page(html).text
    unknown = replace(result, outcomes=outcomes, gold=(), dataset=replace(result.dataset, gold=()))
    assert "to review 7 accepted 5" in Page(render(unknown)).text


def test_rows_on_which_answers_agree_have_a_filter_of_their_own(tmp_path: Path) -> None:
    result = made_run(tmp_path, Made(gold=False))
    agreeing = sum(outcome.decision == "agree" for outcome in result.outcomes)
    html = render(result)
    assert sum("agree" in row["is"] for row in listed(html)) == agreeing > 0
    assert f"to review {40 - agreeing} answers agree {agreeing}" in Page(html).text


def test_without_decisions_and_reasons_there_are_no_such_columns(tmp_path: Path) -> None:
    result = made_run(tmp_path, Made(rows=12))
    outcomes = [replace(outcome, decision=None, reason="") for outcome in result.outcomes]
    html = render(replace(result, outcomes=outcomes))
    assert all(len(row["cells"]) == 2 for row in listed(html))
    assert "to review" not in section(html, "rows")


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
    html = render(shown)
    first, second, third, *_ = listed(html)
    assert first["people"] == ["<b>anna</b>: positive · irony & more"]
    assert first["cells"][2] == ["verdict", "positive", None, "<b>anna</b>"]
    assert second["cells"][2][1] == "people differ"
    assert third["people"] == ["ben: skipped"]
    assert "3 rows reviewed" in Page(html).text
    assert "reviewed by people 3" in Page(html).text
    assert "reviewed by people" not in Page(render(result)).text


def test_buttons_that_would_tell_no_rows_apart_are_left_out(tmp_path: Path) -> None:
    result = made_run(tmp_path, Made(rows=12))
    outcomes = [replace(outcome, decision="accept") for outcome in result.outcomes]
    assert "accepted 12" not in section(render(replace(result, outcomes=outcomes)), "rows")


def test_without_rows_there_is_no_list(tmp_path: Path) -> None:
    assert '<section id="rows"' not in render(made_run(tmp_path, Made(rows=0, gold=False)))


def verdict(label: str | None, reviewer: str, note: str = "") -> Verdict:
    return Verdict(number=1, id="r0", text_hash="h", label=label, reviewer=reviewer, at="", queue="learn", note=note)


def test_labels_that_are_tied_are_shown_together(tmp_path: Path) -> None:
    result = made_run(tmp_path, Made(rows=12))
    first, *rest = result.outcomes
    names = list(first.scores)
    even = replace(first, label=names[0], confidence=None, scores=dict.fromkeys(names, 1 / len(names)))
    html = render(replace(result, outcomes=[even, *rest], gold=(), dataset=replace(result.dataset, gold=())))
    assert listed(html)[0]["cells"][0][1] == series(names, "or")
    assert "Label more rows → pcs review" in Page(html).text
