"""Examples in the prompt: turns before the text, as many as fit, and never a gold row of their own."""

from pathlib import Path
from typing import Any

import pytest

from pcs_annotator import Annotator, Example, PcsWarning, Task, run
from pcs_annotator.asking.annotators import annotator as annotators
from pcs_annotator.asking.annotators.annotator import Question
from pcs_annotator.asking.annotators.prompt import build_messages
from pcs_annotator.base.errors import ConfigError, LabelError
from pcs_annotator.core.chat import Message
from pcs_annotator.runs.resolve_config import read_settings, task_of
from pcs_annotator.verbs.fit import open_run
from tests.simulated import simulated_models, truth_of, write_texts

SHOWN = (Example("A goal in the last minute.", "sport", "a match"), Example("Shares fell.", "MONEY"))
TASK = Task("What is it about?", ["sport", "money"], examples=SHOWN)


class Short:
    """A model with little room."""

    name, can_constrain, can_grade, context_tokens = "short", False, False, 400


def test_examples_are_turns_between_the_instructions_and_the_text() -> None:
    messages = build_messages(TASK, "The keeper saved it.")
    assert [one.role for one in messages] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert "A goal in the last minute." in messages[1].content
    assert [messages[2].content, messages[4].content] == ["<label>sport</label> a match", "<label>money</label>"]
    assert messages[:5] == build_messages(TASK, "Another text.")[:5]  # so that providers can cache them
    bare = build_messages(TASK, "The keeper saved it.", answer="bare")
    assert [bare[2].content, bare[4].content] == ["sport", "money"]


def test_without_a_system_role_examples_are_in_the_shared_part_of_the_only_message() -> None:
    (message,) = build_messages(TASK, "The keeper saved it.", style="plain")
    assert message.shared is not None
    shared = message.content[: message.shared]
    assert shared.index("A goal in the last minute.") < shared.index("<label>sport</label> a match")
    assert "The keeper saved it." not in shared
    assert isinstance(message, Message)


def test_a_model_with_little_room_gets_fewer_examples_and_that_is_said_once() -> None:
    annotators._warn_of_fewer_examples.cache_clear()
    examples = [Example(f"Match {number}. " * 8, "sport") for number in range(9)]
    task = Task("What is it about?", ["sport", "money"], examples=examples)
    text = "The keeper saved it again and again. " * 4
    model: Any = Short()
    with pytest.warns(PcsWarning, match="too little room for all examples") as caught:
        asked = [Annotator("short").question(task, one, model) for one in (text, f"{text} Once more.")]
    assert len(caught) == 1
    for one in asked:
        assert isinstance(one, Question)
        assert not one.cut
        assert 2 <= len(one.request.messages) < 20
    few = Task("What is it about?", ["sport", "money"], examples=SHOWN)
    assert len(Annotator("short").question(few, "Short.", model).request.messages) == 6  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('text = "a"', "example 1 lacks a text or a label"),
        ('text = "a"\nlabel = "good"\nwhom = "x"', "example 1 has 'whom'"),
        ('text = " "\nlabel = "good"', "example 1 has an empty text"),
        ('text = "a"\nlabel = "great"', "example 1 has the label 'great'"),
        ("text = 3", "must be a list of tables with texts in quotes"),
    ],
)
def test_examples_that_cannot_be_used_are_named(table: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "pcs.toml"
    path.write_text(f'[task]\nlabels = ["good", "bad"]\n[[task.examples]]\n{table}\n', encoding="utf-8")
    with pytest.raises((ConfigError, LabelError), match=message):
        task_of(read_settings(path, tmp_path, {}))


def test_a_gold_row_that_is_an_example_is_not_learned_from(tmp_path: Path) -> None:
    data = write_texts(tmp_path / "data.csv", range(60), 40)
    text = data.read_text(encoding="utf-8").splitlines()[1].split(",")[1]
    (tmp_path / "pcs.toml").write_text(
        f'[task]\nlabels = ["good", "bad"]\n[[task.examples]]\ntext = "{text}"\nlabel = "{truth_of(0)}"\n',
        encoding="utf-8",
    )
    with simulated_models():
        asked: dict[str, Any] = {"models": ["simulated:large@92"], "relations": ["original", "order"]}
        result = run(data, tmp_path / "run", config=tmp_path / "pcs.toml", **asked)
    assert result.config.task.examples == ({"text": text, "label": truth_of(0)},)
    assert result.learned.model.gold_rows == 39
    assert open_run(tmp_path / "run").learned.model.gold_rows == 39


def test_what_models_keep_ends_before_examples_that_are_chosen_for_a_text() -> None:
    chosen = Task("What is it about?", ["sport", "money"], examples=SHOWN, nearest=2)
    assert [one.content for one in build_messages(chosen, "A text.")] == [
        one.content for one in build_messages(TASK, "A text.")
    ]
    assert build_messages(chosen, "A text.")[-1].shared == 0
    (message,) = build_messages(chosen, "A text.", style="plain")
    assert "A goal in the last minute." not in message.content[: message.shared]
    assert "What is it about?" in message.content[: message.shared]
