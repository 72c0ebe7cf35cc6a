"""What each question adds: one table of models and relations."""

from dataclasses import replace
from pathlib import Path

import pytest

from pcs_annotator import RunResult
from pcs_annotator.judging.early_stop import Spending
from pcs_annotator.runs.settings import RelationSettings
from pcs_annotator.showing.report.page import render
from tests.builders import the
from tests.showing.report.reading import section
from tests.showing.report.results import Made, made_run


def shown(result: RunResult) -> str:
    return section(render(result), "questions")


def test_every_model_and_relation_has_a_line(tmp_path: Path) -> None:
    result = made_run(tmp_path, Made(rows=60, relations=("original", "order", "case")))
    text = shown(result)
    models, _, relations = text.partition("Relations")
    low, high = result.learned.model.weights.diagnostics.annotator_intervals["model-0"].rounded(2)
    weight = result.learned.model.weights.by_annotator["model-0"]
    assert f"model-0 {weight:.2f} [{low:.2f}, {high:.2f}] 9" in models  # and then its share of answers
    assert "cannot tell" in relations
    assert "cannot tell" not in models
    assert "Asked weight answered changed adds new texts advice" in text
    assert "All together add" in text


def test_a_relation_shows_how_many_texts_it_applied_to(tmp_path: Path) -> None:
    relations = shown(made_run(tmp_path, Made(rows=60, relations=("original", "order", "case")))).split("Relations")[1]
    order, case = relations[relations.index("order") :], relations[relations.index("case") :]
    assert " 100 % " in order[:40]
    assert " 67 % " in case[:40]


def test_a_rewrite_by_a_model_does_not_stop_the_page(tmp_path: Path) -> None:
    result = made_run(tmp_path, Made(relations=("original", "order", "my-function")))
    used = RelationSettings(use=("original", "order", "my-function"), rewriter="scripted:hash")
    assert "my-function" in shown(replace(result, config=replace(result.config, relations=used)))


def test_without_gold_or_other_relations_it_says_why_nothing_is_known(tmp_path: Path) -> None:
    text = shown(made_run(tmp_path / "a", Made(gold=False)))
    assert "not known: tweets.csv has no gold labels" in text
    assert "Asked weight answered changed Models" in text  # columns without a number are left out
    text = shown(made_run(tmp_path / "b", Made(relations=("original",))))
    assert "not known: no gold row has an answer beside that to 'original'" in text
    assert "changed" not in text


def test_the_share_of_questions_is_shown_per_model_and_per_relation(tmp_path: Path) -> None:
    result = made_run(tmp_path)
    spending = Spending(0.42, {"model-0": 0.9, "model-1": 0.25}, {"original": 1.0, "voice": 0.375})
    text = shown(replace(result, learned=replace(result.learned, spending=spending)))
    assert "A new text needs 42 % of all questions" in text
    assert " 90 % " in text
    assert " 38 % " in text
    assert "new texts" not in shown(replace(result, learned=replace(result.learned, spending=None)))


@pytest.mark.parametrize("made", [Made(gold=False), Made(rows=5)])
def test_without_a_confidence_nothing_is_said_about_savings(made: Made, tmp_path: Path) -> None:
    assert "A new text needs" not in shown(made_run(tmp_path, made))


def test_a_run_measures_the_share_of_questions(tmp_path: Path) -> None:
    spending = the(made_run(tmp_path).learned.spending)
    assert 0 < spending.questions <= 1
    assert spending.by_annotator.keys() == {"model-0", "model-1"}
