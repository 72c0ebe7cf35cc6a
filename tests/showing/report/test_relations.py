from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pcs_annotator.runs.run_result import RunResult
from pcs_annotator.runs.settings import RelationSettings
from pcs_annotator.showing.report.sections.relations import relations
from pcs_annotator.showing.report.view import view_of
from pcs_annotator.showing.to_html import html
from tests.showing.report.reading import Page
from tests.showing.report.results import Made, made_run


def shown(result: RunResult) -> str:
    return Page(html(relations(view_of(result)))).text


def test_every_relation_has_a_line_and_what_to_do_with_it(tmp_path: Path) -> None:
    text = shown(made_run(tmp_path, Made(rows=60, relations=("original", "order", "voice"))))
    assert "on 60 gold rows" in text
    assert "order 100 % 2.00 " in text
    assert "voice 67 % 1.3" in text
    assert "cannot tell" in text
    assert "All together add" in text


def test_a_rewrite_by_a_model_costs_a_call(tmp_path: Path) -> None:
    result = made_run(tmp_path, Made(relations=("original", "order", "voice")))
    assert "voice 68 % 1.3" in shown(result)
    used = RelationSettings(use=("original", "order", "voice"), rewriter="scripted:hash")
    text = shown(replace(result, config=replace(result.config, relations=used)))
    assert "voice 68 % 2.0" in text
    assert "order 100 % 2.00" in text


def test_a_users_function_that_the_folder_knows_by_name_alone_is_measured_too(tmp_path: Path) -> None:
    text = shown(made_run(tmp_path, Made(relations=("original", "order", "my-function"))))
    assert "my-function 68 % 1.3" in text


def test_copies_of_a_text_count_once(tmp_path: Path) -> None:
    result = made_run(tmp_path)
    items = [replace(item, text="The same.") if row < 3 else item for row, item in enumerate(result.dataset.items)]
    gold = ["negative"] * 3 + list(result.dataset.gold[3:])
    copied = replace(result, dataset=replace(result.dataset, items=tuple(items), gold=tuple(gold)))
    assert "on 38 gold rows" in shown(copied)


def test_without_gold_or_other_relations_it_says_why_nothing_is_known(tmp_path: Path) -> None:
    assert "Not known: tweets.csv has no gold labels" in shown(made_run(tmp_path / "a", Made(gold=False)))
    text = shown(made_run(tmp_path / "b", Made(relations=("original",))))
    assert "Not known: no gold row has an answer beside that to 'original'" in text
