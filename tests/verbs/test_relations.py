from __future__ import annotations

import csv
from pathlib import Path

import pytest

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.runs.resolve_config import read_settings
from pcs_annotator.runs.settings import Config
from pcs_annotator.verbs.relations import (
    check_relations,
    list_relations,
    try_relation,
)


def settings(folder: Path, **given: object) -> Config:
    """Return the settings of `pcs.toml` in a folder, if there is one, with others."""
    return read_settings(None, folder, given)


TEXTS = [
    "The committee rejected the plan on Monday.",
    "It doesn't rain here.",
    "",
    "¿Dónde está la biblioteca de la ciudad nueva?",
    "https://example.org/a/b",
]


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    path = tmp_path / "texts.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "text"])
        writer.writerows((f"t{row}", text) for row, text in enumerate(TEXTS))
    return path


def test_every_text_gets_a_status_under_every_relation(texts: Path, tmp_path: Path) -> None:
    config = settings(tmp_path, relations=["rule:voice", "rule:case"])
    found = check_relations(file=texts, config=config, out=tmp_path / "variants.csv")
    assert list(found) == ["rule:voice", "rule:case"]
    for coverage in found.values():
        assert coverage.texts == len(TEXTS)
        assert set(coverage.statuses) <= {"changed", "not_applicable", "rejected"}
        assert coverage.causes.total() == len(TEXTS) - coverage.statuses["changed"]
    with (tmp_path / "variants.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["id", "relation", "status", "text", "reason"]
    assert [row["id"] for row in rows] == 2 * [f"t{row}" for row in range(len(TEXTS))]
    by_cell = {(row["id"], row["relation"]): row for row in rows}
    assert by_cell["t0", "rule:voice"]["text"] == "The plan was rejected by the committee on Monday."
    assert by_cell["t1", "rule:case"]["text"] == "it doesn't rain here."
    assert {row["status"] for row in rows if row["id"] in ("t2", "t4")} == {"not_applicable"}
    assert all(row["reason"] for row in rows if row["status"] != "changed")


def test_without_names_the_paper_s_three_are_measured(texts: Path, tmp_path: Path) -> None:
    found = check_relations(file=texts, config=settings(tmp_path), limit=1)
    assert list(found) == ["voice", "double-negation", "synonym"]
    assert found["voice"].texts == 1


def test_a_relation_from_a_file_takes_part(texts: Path, tmp_path: Path) -> None:
    config = tmp_path / "pcs.toml"
    config.write_text(
        '[relations]\nuse = ["polite"]\nrewriter = "scripted:hash"\n[relations.polite]\nprompt = "Politely: {text}"\n',
        encoding="utf-8",
    )
    assert "polite" in [relation.name for relation in list_relations(settings(tmp_path))]
    found = check_relations(file=texts, config=settings(tmp_path, ledger=tmp_path / "ledger.db"))
    assert list(found) == ["polite"]
    assert set(found["polite"].statuses) <= {"rejected", "not_applicable"}
    assert (tmp_path / "ledger.db").exists()


def test_a_prompted_relation_without_a_rewriter_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"'llm:paraphrase'.*--rewriter"):
        try_relation("paraphrase", "A text.", settings(tmp_path))


def test_one_text_can_be_tried(tmp_path: Path) -> None:
    text = "The board isn't happy. The mayor rejected the plan."
    tried = try_relation("voice+case", text, settings(tmp_path))
    assert tried.variant.text == "the board isn't happy. the plan was rejected by the mayor."
    assert tried.variant.checks
    assert not tried.question


def test_a_task_about_truth_is_tried_as_it_would_be_asked(tmp_path: Path) -> None:
    (tmp_path / "pcs.toml").write_text('[task]\nlabels = ["hoax", "report"]\n', encoding="utf-8")
    tried = try_relation("double-negation", "Many people liked the old harbour.", settings(tmp_path))
    assert tried.variant.cause == "the task asks if texts are true"


def test_a_relation_of_the_question_shows_what_models_read(tmp_path: Path) -> None:
    tried = try_relation("order", "A text.", settings(tmp_path))
    assert (tried.variant.status, tried.variant.text) == ("original", "A text.")
    assert "- negative\n- neutral\n- positive" in tried.question
    assert "- positive\n- neutral\n- negative" in tried.usual_question
    assert tried.example
    (tmp_path / "pcs.toml").write_text(
        '[task]\nlabels = ["spam", "ham"]\nwordings = ["Is it spam?"]\n', encoding="utf-8"
    )
    tried = try_relation("wording+layout", "A text.", settings(tmp_path))
    assert "Is it spam?" in tried.question
    assert (tried.question.count("["), tried.usual_question.count("[system]")) == (4, 1)
    assert not tried.example
    with pytest.raises(ConfigError, match="'order:2': two labels"):
        try_relation("order:2", "A text.", settings(tmp_path))


def test_a_question_is_no_rewrite(texts: Path, tmp_path: Path) -> None:
    found = check_relations(file=texts, config=settings(tmp_path, relations=["order", "order+case"]))
    assert (found["order"].statuses["original"], found["order"].causes) == (len(TEXTS), {})
    assert found["order+case"].statuses["changed"] == 3
    assert "original" not in found["order+case"].statuses


def test_needs_are_listed(tmp_path: Path) -> None:
    listed = {relation.name: relation for relation in list_relations(settings(tmp_path))}
    assert listed["rule:voice"].needs == ("parser",)
    assert listed["rule:voice"].usable
    assert listed["llm:voice"].needs == ("rewriter",)
    assert not listed["llm:voice"].deterministic
    assert listed["rule:frame"].needs == ()
    changes = {name: listed[name].changes for name in ("original", "order", "layout", "wording", "rule:frame")}
    assert list(changes.values()) == ["nothing", "question", "question", "question", "text"]
