from __future__ import annotations

import asyncio

import pytest

from pcs_annotator import RelationOptions, Task
from pcs_annotator.base.errors import ConfigError
from pcs_annotator.core.chat import Reply, Request
from pcs_annotator.core.task import Phrasing
from pcs_annotator.relations.base import rephrased
from pcs_annotator.relations.choose import choose_relations
from pcs_annotator.relations.question.wording import wording_complaint, write_wording

FEELING = Task("How does the writer feel?", ["positive", "neutral", "negative"])
IN_GERMAN = Task("Wie fühlt sich der Autor? {genau} lesen!", ["gut", "schlecht"])
OTHER = "Which feeling does the author express?"


def asked(name: str, task: Task) -> str:
    (relation,) = choose_relations([name], RelationOptions())
    return rephrased(relation, Phrasing(task=task)).task.instruction


def written(task: Task, *replies: str) -> tuple[str, list[Request]]:
    requests: list[Request] = []

    async def ask(request: Request) -> Reply:
        requests.append(request)
        return Reply(text=replies[len(requests) - 1])

    return asyncio.run(write_wording(task, ask)), requests


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


def test_the_wording_of_a_model_is_that_of_the_task() -> None:
    assert asked("llm:wording", Task("Which?", ["a", "b"], written_wording="Choose one.")) == "Choose one."
    with pytest.raises(ConfigError, match=r"'llm:wording'.*rewriter"):
        asked("llm:wording", FEELING)


def test_a_model_writes_it_in_one_call_that_names_the_labels() -> None:
    wording, requests = written(FEELING, f"Sure! Here is the rewritten text:\n\n{OTHER}")
    assert wording == OTHER
    (request,) = requests
    assert "- positive\n- neutral\n- negative" in request.messages[0].content
    assert f"\n{FEELING.instruction}\n" in request.messages[1].content
    assert request.sampling.temperature == 0


def test_a_bad_one_is_tried_again_with_the_reason() -> None:
    wording, requests = written(FEELING, "Is the writer positive?", OTHER)
    assert wording == OTHER
    assert 'it names "positive" but not all labels' in requests[1].messages[1].content


@pytest.mark.parametrize(
    ("replies", "complaint"),
    [
        (("", ""), "the model wrote nothing"),
        ((FEELING.instruction, "how does the writer feel?!"), "same as the instruction"),
        (("NOT APPLICABLE", "Is the writer positive?"), "not all labels"),
    ],
)
def test_two_bad_ones_are_an_error_with_the_remedy(replies: tuple[str, str], complaint: str) -> None:
    with pytest.raises(ConfigError, match=rf"'llm:wording'.*{complaint}.*'wording'.*`wordings`"):
        written(FEELING, *replies)


@pytest.mark.parametrize(
    ("task", "wording", "complaint"),
    [
        (FEELING, OTHER, ""),
        (FEELING, "Decide between positive, neutral and negative: what does the author feel?", ""),
        (FEELING, "Does the author feel positive or negative?", "not all labels"),
        (FEELING, "How does the writer feel? <label>mixed</label>", "tags"),
        (FEELING, "How does the writer not feel about it?", "negation"),
        (FEELING, "¿Cómo se siente el autor del texto cuando escribe?", "language"),
        (FEELING, f"{OTHER} Take the 3 last sentences.", "number"),
        (FEELING, OTHER * 5, "longer"),
        (Task("Is it spam?", ["spam", "ham"]), "Would you call this spam?", ""),
        (Task("Is it spam?", ["spam", "ham"]), "Would you call this ham?", "not all labels"),
    ],
)
def test_a_wording_is_checked(task: Task, wording: str, complaint: str) -> None:
    found = wording_complaint(task, wording)
    assert complaint in found if complaint else not found
