"""What the paper's class `PCS` needs."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from pcs_annotator import Annotator, CollectSettings, Item, PromptedRelation, Task, Variant
from pcs_annotator.base.errors import ConfigError, UnknownNameError
from pcs_annotator.models.scripted import ScriptedModel
from pcs_annotator.runs.classic.asking import (
    NO_KEY,
    annotator_names,
    ask_texts,
    environment_with,
    equal_weights,
    optimiser_named,
    own_relation,
    relation_names,
    scores_by_label,
)
from pcs_annotator.runs.executors import Panel

TASK = Task("Which?", ["a", "b"])


@pytest.fixture
def panel(tmp_path: Path) -> Panel:
    return Panel(
        task=TASK, annotators=["scripted:hash"], ledger=tmp_path / "l.db", settings=CollectSettings(environment={})
    )


def test_given_keys_win_over_every_variable_of_the_provider() -> None:
    before = {"HF_TOKEN": "old", "HUGGINGFACE_API_KEY": "old", "GROQ_API_KEY": "kept", "PATH": "/bin"}
    found = environment_with({"HUGGINGFACE_API_KEY": " new ", "GROQ_API_KEY": ""}, before)
    assert dict(found) == {"HUGGINGFACE_API_KEY": "new", "GROQ_API_KEY": "kept", "PATH": "/bin"}
    assert "new" not in repr(found)


def test_a_redirected_provider_needs_no_key_and_others_still_do() -> None:
    found = environment_with({}, {"GROQ_BASE_URL": "http://127.0.0.1:1/v1"})
    assert found["GROQ_API_KEY"] == NO_KEY
    assert "OPENAI_API_KEY" not in found


def test_keys_of_the_working_folder_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    Path(".env").write_text("OPENAI_API_KEY=from-file\n")
    assert environment_with({})["OPENAI_API_KEY"] == "from-file"


def test_annotators_have_the_names_that_the_user_wrote() -> None:
    given = ["llama3-8b-8192", Annotator("scripted:hash", name="mine"), ScriptedModel("a", name="object"), str.upper]
    assert annotator_names(given) == ["llama3-8b-8192", "mine", "object", "upper"]
    with pytest.raises(ConfigError, match="'x'"):
        annotator_names(["x", "x"])


def test_relations_have_the_names_that_votes_use(panel: Panel) -> None:
    names = ("original", "rule:punctuation|rule:contraction", own_relation("mine", str.upper))
    relations = relation_names(replace(panel, relations=names))
    assert relations == ["original", "rule:punctuation/rule:contraction", "mine"]


def test_prompts_become_checked_relations_and_relations_stay_as_they_are() -> None:
    assert not isinstance(own_relation("mine", "Say it loudly."), str)
    assert isinstance(own_relation("mine", "Say it loudly."), PromptedRelation)
    made = PromptedRelation("mine", "Say it.")
    assert own_relation("mine", made) is made


@pytest.mark.parametrize(("checked", "voted"), [(None, True), (True, False)])
def test_a_checked_function_may_not_change_numbers(panel: Panel, checked: bool | None, voted: bool) -> None:
    more = own_relation("more", lambda text: text.replace("5", "6"), checked)
    asked = asyncio.run(ask_texts(replace(panel, relations=("original", more)), ["The town bought 5 buses."]))
    assert (asked.variants["The town bought 5 buses.", "more"].text is not None) is voted
    assert ("more" in asked.unchanged) is not voted


def test_an_empty_text_is_not_rewritten(panel: Panel) -> None:
    loud = own_relation("loud", lambda text: f"{text}!")
    asked = asyncio.run(ask_texts(replace(panel, relations=("original", loud)), [" ", "Hello there"]))
    assert asked.votes.silent.tolist() == [True, False]
    assert asked.variants["Hello there", "loud"].text == "Hello there!"


def test_equal_texts_are_asked_once_and_every_variant_is_reported(panel: Panel) -> None:
    reported: list[str] = []

    def note(item: Item, variant: Variant) -> None:
        reported.append(item.text)

    settings = replace(panel.settings, on_variant=note)
    asked = asyncio.run(ask_texts(replace(panel, settings=settings), ["x y", "z", "x y"]))
    assert sorted(reported) == ["x y", "z"]
    assert asked.tally.calls == 2
    scores = scores_by_label(asked.votes, equal_weights(["scripted:hash"], ["original"]))
    assert scores[0] == scores[2]
    assert [sum(row.values()) for row in scores] == [1.0, 1.0, 1.0]


def test_optimisers_are_found_in_any_case_and_unknown_names_are_refused() -> None:
    assert optimiser_named(" GA ") == "ga"
    with pytest.raises(UnknownNameError, match="'forest'"):
        optimiser_named("forest")
