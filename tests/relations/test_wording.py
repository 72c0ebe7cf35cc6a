from __future__ import annotations

import pytest

from pcs_annotator import RelationOptions, Task
from pcs_annotator.base.errors import ConfigError
from pcs_annotator.core.task import Phrasing
from pcs_annotator.relations.base import rephrased
from pcs_annotator.relations.combine import choose_relations

FEELING = Task("How does the writer feel?", ["positive", "neutral", "negative"])
IN_GERMAN = Task("Wie fühlt sich der Autor? {genau} lesen!", ["gut", "schlecht"])
OTHER = "Which feeling does the author express?"


def asked(name: str, task: Task) -> str:
    (relation,) = choose_relations([name], RelationOptions())
    return rephrased(relation, Phrasing(task=task)).task.instruction


@pytest.mark.parametrize("task", [FEELING, IN_GERMAN])
def test_templates_keep_the_instruction_word_for_word(task: Task) -> None:
    wordings = [asked(name, task) for name in ("wording", "wording:2", "wording:3")]
    assert all(task.instruction in wording and wording != task.instruction for wording in wordings)
    assert len(set(wordings)) == 3


def test_the_user_s_own_come_first() -> None:
    task = Task(FEELING.instruction, FEELING.labels, wordings=[OTHER, "What is the mood?"])
    assert [asked(name, task) for name in ("wording", "wording:2")] == [OTHER, "What is the mood?"]
    assert FEELING.instruction in asked("wording:3", task)
    with pytest.raises(ConfigError, match="'wording:6': there are only 5 wordings, 2 of your own and 3 built in"):
        asked("wording:6", task)
