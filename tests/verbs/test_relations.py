from pathlib import Path

import pytest

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.runs.resolve_config import read_settings
from pcs_annotator.runs.settings import Config
from pcs_annotator.verbs.relations import list_relations, try_relation


def settings(folder: Path, **given: object) -> Config:
    """Return the settings of `pcs.toml` in a folder, if there is one, with others."""
    return read_settings(None, folder, given)


def test_a_relation_from_a_file_takes_part(tmp_path: Path) -> None:
    config = tmp_path / "pcs.toml"
    config.write_text(
        '[relations]\nuse = ["polite"]\nrewriter = "scripted:hash"\n[relations.polite]\nprompt = "Politely: {text}"\n',
        encoding="utf-8",
    )
    assert "polite" in [relation.name for relation in list_relations(settings(tmp_path))]
    found = try_relation("polite", "It doesn't rain here.", settings(tmp_path, ledger=tmp_path / "ledger.db"))
    assert found.variant.status == "rejected"
    assert (tmp_path / "ledger.db").exists()


def test_a_prompted_relation_without_a_rewriter_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"'llm:paraphrase'.*--rewriter"):
        try_relation("paraphrase", "A text.", settings(tmp_path))


def test_one_text_can_be_tried(tmp_path: Path) -> None:
    text = "The board isn't happy. The mayor rejected the plan."
    tried = try_relation("frame+case", text, settings(tmp_path))
    assert tried.variant.text == f"the text reads: {text.lower()}"
    assert tried.variant.checks
    assert not tried.question


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


def test_needs_are_listed(tmp_path: Path) -> None:
    listed = {relation.name: relation for relation in list_relations(settings(tmp_path))}
    assert listed["llm:voice"].needs == ("rewriter",)
    assert not listed["llm:voice"].deterministic
    assert listed["rule:frame"].needs == ()
    changes = {name: listed[name].changes for name in ("original", "order", "layout", "wording", "rule:frame")}
    assert list(changes.values()) == ["nothing", "question", "question", "question", "text"]
