"""Which questions are asked when the user names none."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.core.task import AskedTogether, Part, Task
from pcs_annotator.runs.default_panel import default_panel, hard_questions
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.settings import AskSettings, Config, RelationSettings, TaskSettings
from pcs_annotator.verbs.plan import plan
from tests.builders import the
from tests.simulated import run
from tests.stub import Behaviour, StubProcess, stub_process

GRADED = ("original", "order")
HARD = ("original", "definitions", "suggestion", "suggestion:2", "suggestion:3")


def test_models_with_log_probabilities_are_asked_two_graded_questions() -> None:
    panel = default_panel({"openai:a": True, "vllm:b": True}, HARD, rewriter=False)
    assert (panel.relations, panel.questions, panel.graded) == (GRADED, {}, True)
    assert panel.reasons == ("a and b give log-probabilities, so they are asked 2 graded questions: original, order",)


def test_models_without_them_are_asked_in_several_ways() -> None:
    panel = default_panel({"groq:a": False}, HARD, rewriter=False)
    assert (panel.relations, panel.questions, panel.graded) == (HARD, {}, False)
    assert panel.reasons[0].startswith("a gives labels only, so the question is put in 5 ways: original, definitions")


def test_a_rewriter_adds_the_papers_relations_for_hard_answers_only() -> None:
    assert default_panel({"groq:a": False}, HARD, rewriter=True).relations == (
        *HARD,
        "voice",
        "double-negation",
        "synonym",
    )
    assert default_panel({"openai:a": True}, HARD, rewriter=True).relations == GRADED


@pytest.mark.parametrize(
    ("changes", "labels", "relations"),
    [
        ({}, 2, ("original", "definitions", "suggestion", "suggestion:2")),
        ({}, 3, HARD),
        ({"meanings": {"1": "First.", "2": "Second."}}, 2, ("original", "suggestion", "suggestion:2")),
        ({}, 5, ("original", "definitions", "order", "order:rotated", "case")),
        ({}, 13, ("original", "order", "order:rotated", "case")),
        (
            {"together": AskedTogether((Part("topic", "Which?", ("1", "2")),), "topic")},
            2,
            ("original", "order", "case"),
        ),
    ],
)
def test_hard_answers_are_asked_for_with_definitions_and_suggestions(
    changes: dict[str, Any], labels: int, relations: tuple[str, ...]
) -> None:
    task = Task("Which?", [str(number) for number in range(1, labels + 1)], **changes)
    assert hard_questions(task) == relations


def test_in_a_mixed_panel_each_model_has_its_own_questions() -> None:
    panel = default_panel({"openai:a": True, "groq:b": False}, HARD, rewriter=False)
    assert panel.relations == (*HARD, "order")
    assert panel.questions == {"openai:a": GRADED, "groq:b": HARD}
    assert len(panel.reasons) == 2


def test_an_elicited_annotator_follows_the_models_that_give_labels() -> None:
    panel = default_panel({"openai:a": True, "openai:a/1s-top-2": False}, HARD, rewriter=False)
    assert (panel.relations, len(panel.reasons)) == (GRADED, 1)


@pytest.fixture
def request_of(tmp_path: Path) -> Callable[..., RunRequest]:
    data = tmp_path / "data.csv"
    rows = [f"{row},Text number {row} is nice." for row in range(6)]
    data.write_text("\n".join(["id,text", *rows]), encoding="utf-8")

    def make(*models: str, **asking: Any) -> RunRequest:
        config = Config(task=TaskSettings(labels=("good", "so-so", "bad")), ask=AskSettings(models=models, **asking))
        return RunRequest(data=data, folder=tmp_path / "run", config=config, environment={}, to_label=0)

    return make


@pytest.fixture(scope="module")
def server() -> Iterator[StubProcess]:
    with stub_process(Behaviour()) as stub:
        yield stub


def test_a_server_that_may_give_labels_only_is_asked_in_several_ways(
    server: StubProcess, request_of: Callable[..., RunRequest]
) -> None:
    announced: list[Sequence[str]] = []
    request = replace(request_of(f"{server.url}#m"), announce=announced.append)
    planned = plan(request)
    assert (planned.plan.calls, planned.panel and planned.panel.relations) == (30, HARD)
    result = run(request)
    assert (result.votes.relations, result.tally.calls) == (HARD, 30)
    assert announced[0] == (
        f"m may give labels only, so the question is put in 5 ways: {', '.join(HARD)}; "
        "with --answers graded, 2 graded questions: original, order",
    )


def test_graded_answers_say_that_the_server_gives_log_probabilities(
    server: StubProcess, request_of: Callable[..., RunRequest]
) -> None:
    server.reset()
    result = run(request_of(f"{server.url}#m", answers="graded"))
    assert result.votes.relations == GRADED
    assert result.votes.grades is not None
    assert not np.isnan(result.votes.grades).any()
    assert (result.tally.calls, server.stats().requests) == (12, 12)


def test_the_ledger_remembers_which_models_give_log_probabilities(
    server: StubProcess, request_of: Callable[..., RunRequest], tmp_path: Path
) -> None:
    shared = {"ledger": str(tmp_path / "shared.db")}
    run(request_of(f"{server.url}#m", answers="graded", **shared))
    again = replace(request_of(f"{server.url}#m", **shared), folder=tmp_path / "another")
    planned = plan(again)
    assert the(planned.panel).relations == GRADED


@pytest.mark.parametrize(
    ("model", "environment", "relations"),
    [
        ("openai:gpt-4o-mini", {}, GRADED),
        ("openai:gpt-4o-mini", {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}, HARD),
        ("anthropic:claude-3-5-haiku-latest", {}, HARD),
        ("openrouter:meta-llama/llama-3.1-8b-instruct", {}, HARD),
        ("embedded:smollm2", {}, GRADED),
    ],
)
def test_a_plan_needs_no_key(
    model: str, environment: dict[str, str], relations: tuple[str, ...], request_of: Callable[..., RunRequest]
) -> None:
    planned = plan(replace(request_of(model), environment=environment))
    assert the(planned.panel).relations == relations
    if not model.startswith("embedded"):
        with pytest.raises(ConfigError, match="needs a key"):
            run(replace(request_of(model), environment=environment))


def test_relations_that_are_named_are_not_questioned(
    server: StubProcess, request_of: Callable[..., RunRequest]
) -> None:
    request = request_of(f"{server.url}#m")
    named = replace(request, config=replace(request.config, relations=RelationSettings(use=("original", "frame"))))
    assert plan(named).panel is None
    assert run(named).votes.relations == ("original", "frame")


def test_going_on_with_a_run_keeps_its_questions_and_pays_for_nothing_again(
    server: StubProcess, request_of: Callable[..., RunRequest]
) -> None:
    hard = request_of(f"{server.url}#m", answers="hard")
    before = replace(hard, config=replace(hard.config, relations=RelationSettings(use=("original", "frame"))))
    run(before)
    server.reset()
    again = run(request_of(f"{server.url}#m"))
    assert again.votes.relations == ("original", "frame")
    assert again.votes.grades is None
    assert server.stats().requests == 0
    asked = run(request_of(f"{server.url}#m", answers="graded"))
    assert asked.votes.relations == GRADED
    assert asked.votes.grades is not None
    assert server.stats().requests == 12
