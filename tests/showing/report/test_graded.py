"""The page of a run whose models gave log-probabilities, or were asked the question in several ways."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from pcs_annotator import RunResult
from pcs_annotator.core.weights import Interval
from pcs_annotator.judging.evaluate.harness import FIRST_QUESTION
from pcs_annotator.judging.evaluate.methods import Calls
from pcs_annotator.showing.report.page import render
from pcs_annotator.showing.report.view import select, view_of
from tests.builders import the
from tests.showing.report.reading import listed, section
from tests.showing.report.results import Made, made_run

MIXED = Made(rows=30, skills=(0.8, 0.7), graded=(True, False), relations=("original", "order", "case"))


def with_votes(result: RunResult, codes: list[int], grades: list[list[float]]) -> RunResult:
    """The run with other votes of the first model about the first row's original text, one per draw."""
    votes = result.votes
    new_codes, new_grades = votes.codes.copy(), the(votes.grades).copy()
    new_codes[0, 0, 0], new_grades[0, 0, 0] = codes, grades
    return replace(result, votes=replace(votes, codes=new_codes, grades=new_grades))


def first_vote(result: RunResult) -> object:
    """What the page shows of the first model's answer about the first row's original text."""
    return listed(render(result))[0]["votes"][0][1][0][1]


def test_a_graded_vote_shows_the_probability_of_each_label_and_a_hard_one_its_label(tmp_path: Path) -> None:
    result = with_votes(made_run(tmp_path, MIXED), [1], [[0.153, 0.801, 0.004]])
    html = render(result)
    answers = [line for row in listed(html) for line in row["votes"][0][1]]
    assert answers[0][1] == ["graded", [1, 0.8], [0, 0.15]]  # what has less than half a percent is left out
    assert sum(isinstance(first, list) for _, first, _ in answers) == int((result.votes.codes[:, 0] >= 0).sum())
    assert all(isinstance(second, int) for _, _, second in answers)
    assert "probabilities that the model gave" in section(html, "rows")


def test_grades_of_several_draws_are_averaged_and_hard_draws_are_left_out(tmp_path: Path) -> None:
    nothing = [float("nan")] * 3
    run = made_run(tmp_path, replace(MIXED, draws=3))
    result = with_votes(run, [1, 1, 0], [[0.1, 0.8, 0.1], [0.3, 0.6, 0.1], nothing])
    assert first_vote(result) == ["graded", [1, 0.7], [0, 0.2], [2, 0.1]]


def test_of_many_labels_only_the_most_probable_are_listed(tmp_path: Path) -> None:
    labels = tuple(f"label-{number}" for number in range(6))
    run = made_run(tmp_path, replace(MIXED, labels=labels, gold=False))
    result = with_votes(run, [0], [[0.4, 0.2, 0.15, 0.1, 0.1, 0.05]])
    assert first_vote(result) == ["graded", [0, 0.4], [1, 0.2], [2, 0.15], [3, 0.1], [4, 0.1]]
    assert first_vote(with_votes(run, [5], [[0, 0, 0, 0, 0, 1]])) == ["graded", [5, 1.0]]


def test_graded_votes_leave_room_for_fewer_rows(tmp_path: Path) -> None:
    questions = ("original", "order", "wording")
    made = replace(MIXED, rows=520, gold=False, relations=questions, skills=(0.8,) * 16, names=(), graded=())
    assert len(select(view_of(made_run(tmp_path, made))).rows) == 14_000 // 48
    assert len(select(view_of(made_run(tmp_path, replace(made, graded=(True,) * 16)))).rows) == 14_000 // (4 * 48)


def test_relations_of_the_question_are_no_rewrites(tmp_path: Path) -> None:
    html = render(made_run(tmp_path, MIXED))
    variants = [row["votes"][0][1] for row in listed(html)]
    assert all((original[0], order[0]) == (0, 1) for original, order, _ in variants)
    assert any(voice[0][1] for _, _, voice in variants)


def test_the_page_says_which_models_gave_log_probabilities(tmp_path: Path) -> None:
    result = made_run(tmp_path, MIXED)
    html = render(result)
    given = int((result.votes.codes[:, 0] >= 0).sum())
    settings = section(html, "method")
    assert f"graded model-0 ({given} with log-probabilities)" in settings
    assert "hard model-1" in settings
    hard = render(made_run(tmp_path, replace(MIXED, graded=())))
    assert "log-prob" not in hard


def test_methods_that_use_log_probabilities_are_marked(tmp_path: Path) -> None:
    quality = section(render(made_run(tmp_path, MIXED)), "quality")
    for line in ("majority vote ", "logprob ", "scaled logprob ", "PCS, first question only "):
        assert line in quality
    assert "questions log-probs n PCS, lr " in quality
    assert "2 no 30 zero-shot model-" in quality
    assert "1 yes 30 scaled logprob" in quality
    assert "Log-probs: methods that use" in quality
    assert quality.count("above noise") == 1
    assert "better than one graded question" in quality or "PCS and one graded question" in quality


def test_one_sentence_says_what_more_questions_bought(tmp_path: Path) -> None:
    result = made_run(tmp_path, MIXED)
    figures = list(result.learned.figures)
    place = [one.method for one in figures].index(FIRST_QUESTION)
    first = figures[place]
    figures[0] = figures[0]._replace(calls=Calls(2.0, 0.0))
    figures[place] = first._replace(
        calls=Calls(1.0, 0.0),
        behind=the(first.behind)._replace(difference=0.003, interval=Interval(-0.005, 0.012)),
        holm=0.4,
        accuracy_behind=the(first.accuracy_behind)._replace(difference=-0.01, interval=Interval(-0.03, 0.0)),
    )
    changed = replace(result, learned=replace(result.learned, figures=figures))
    quality = section(render(changed), "quality")
    assert (
        "Asking twice bought +0.3 points of class AUROC [−0.5, 1.2] and −1.0 points of accuracy [−3.0, 0.0] for 2 × "
        "the calls; a gain in class AUROC cannot be shown on these rows."
    ) in quality
    relations = replace(result.config.relations, rewriter="openai:gpt-4.1-mini")
    rewriting = replace(changed, config=replace(result.config, relations=relations))
    assert "for 2 × the questions" in section(render(rewriting), "quality")


def test_an_average_below_a_whole_number_has_a_decimal(tmp_path: Path) -> None:
    result = made_run(tmp_path, MIXED)
    asked = (result.votes.codes != -2).sum() / 30
    assert asked != round(asked)
    assert f"{asked:.1f} yes 30 PCS, equal weights" in section(render(result), "quality")


def test_answers_that_went_to_no_label_do_not_break_the_page(tmp_path: Path) -> None:
    result = with_votes(made_run(tmp_path, MIXED), [1], [[0.0, 0.0, 0.0]])
    assert first_vote(result) == ["graded", [0, 0.0]]
    assert not np.isnan(result.votes.codes).any()
