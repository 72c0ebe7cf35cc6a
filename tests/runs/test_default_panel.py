"""Which questions are asked when the user names none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pcs_annotator import NOT_ASKED
from pcs_annotator.base.errors import ConfigError
from pcs_annotator.core.bill import Plan
from pcs_annotator.relations.limits import languages_of
from pcs_annotator.runs.default_panel import DefaultPanel, default_panel
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.settings import AskSettings, Config, RelationSettings, TaskSettings
from pcs_annotator.verbs.plan import RunPlan, plan
from pcs_annotator.verbs.run import run
from tests.stub import Behaviour, StubProcess, stub_process

GRADED = ("original", "order")
HARD = ("original", "order", "order:rotated", "wording", "case")


def test_models_with_log_probabilities_are_asked_two_graded_questions() -> None:
    panel = default_panel({"openai:a": True, "vllm:b": True}, 3, rewriter=False)
    assert (panel.relations, panel.questions, panel.graded) == (GRADED, {}, True)
    assert panel.reasons == (
        "openai:a and vllm:b give log-probabilities, so they are asked 2 graded questions: original, order",
    )


def test_models_without_them_are_asked_in_several_ways() -> None:
    panel = default_panel({"groq:a": False}, 3, rewriter=False)
    assert (panel.relations, panel.questions, panel.graded) == (HARD, {}, False)
    assert panel.reasons[0].startswith("groq:a gives labels only, so the question is put in 5 ways: original, order")


def test_a_rewriter_adds_the_papers_relations_for_hard_answers_only() -> None:
    assert default_panel({"groq:a": False}, 3, rewriter=True).relations == (
        *HARD,
        "voice",
        "double-negation",
        "synonym",
    )
    assert default_panel({"openai:a": True}, 3, rewriter=True).relations == GRADED


def test_two_labels_have_only_one_other_order() -> None:
    relations = default_panel({"groq:a": False}, 2, rewriter=False).relations
    assert "order:rotated" not in relations
    assert len(relations) == len(HARD)


def test_in_a_mixed_panel_each_model_has_its_own_questions() -> None:
    panel = default_panel({"openai:a": True, "groq:b": False}, 3, rewriter=False)
    assert panel.relations == HARD
    assert panel.questions == {"openai:a": GRADED}
    assert len(panel.reasons) == 2


def test_an_elicited_annotator_follows_the_models_that_give_labels() -> None:
    panel = default_panel({"openai:a": True, "openai:a/1s-top-2": False}, 3, rewriter=False)
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


def test_a_server_that_gives_log_probabilities_is_asked_twice(
    server: StubProcess, request_of: Callable[..., RunRequest]
) -> None:
    server.reset()
    announced: list[DefaultPanel] = []
    request = replace(request_of(f"{server.url}#m"), announce=announced.append)
    result = run(request)
    assert result.votes.relations == GRADED
    assert result.votes.grades is not None
    assert not np.isnan(result.votes.grades).any()
    assert (result.tally.calls, result.tally.from_ledger, server.stats().requests) == (12, 0, 12)
    assert announced[0].graded


WITH = "with log-probabilities"


def test_without_log_probabilities_the_question_is_put_in_several_ways(request_of: Callable[..., RunRequest]) -> None:
    with stub_process(Behaviour(logprobs="ignored")) as stub:
        planned = plan(request_of(f"{stub.url}#m"))
        assert planned.panel is not None
        assert planned.panel.relations == GRADED
        assert planned.panel.reasons == (
            f"only its first answer will tell whether {stub.url}#m gives log-probabilities: if so, it is asked "
            "2 graded questions: original, order; if not, the question is put in 5 ways: " + ", ".join(HARD),
        )
        assert (planned.plan.calls, planned.alternatives[WITH].calls) == (30, 12)  # at most
        with pytest.warns(UserWarning, match="no log-probabilities"):
            result = run(request_of(f"{stub.url}#m"))
        assert result.votes.relations == HARD
        assert result.votes.grades is None
        planned = plan(request_of(f"{stub.url}#m"))  # the ledger remembers
        assert planned.panel is not None
        assert planned.panel.relations == HARD
        assert WITH not in planned.alternatives


@pytest.mark.parametrize(
    ("model", "environment", "unsure"),
    [
        ("openai:gpt-4o-mini", {}, False),
        ("openai:gpt-4o-mini", {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}, True),
        ("anthropic:claude-3-5-haiku-latest", {}, False),
        ("openrouter:meta-llama/llama-3.1-8b-instruct", {}, True),
        ("embedded:smollm2", {}, False),
    ],
)
def test_a_plan_needs_no_key_and_shows_both_cases_where_only_an_answer_can_tell(
    model: str, environment: dict[str, str], unsure: bool, request_of: Callable[..., RunRequest]
) -> None:
    planned = plan(replace(request_of(model), environment=environment))
    assert (WITH in planned.alternatives) is unsure
    if not model.startswith("embedded"):
        with pytest.raises(ConfigError, match="needs a key"):
            run(replace(request_of(model), environment=environment))


def test_each_model_of_a_mixed_panel_has_its_own_questions(
    server: StubProcess, request_of: Callable[..., RunRequest]
) -> None:
    votes = run(request_of(f"{server.url}#m", "scripted:hash")).votes
    assert votes.relations == HARD
    asked = (votes.codes != NOT_ASKED).any(axis=(0, 3))
    assert asked.tolist() == [[True, True, False, False, False], [True] * 5]


def test_plans_do_not_share_what_one_of_them_adds() -> None:
    planned = RunPlan(Plan(rows=0, models=()), (), languages_of([]))
    with pytest.raises(TypeError):
        planned.alternatives["--answers hard"] = planned.plan  # type: ignore[index]  # that is what is tested


def test_a_plan_shows_what_else_could_be_asked(server: StubProcess, request_of: Callable[..., RunRequest]) -> None:
    planned = plan(request_of(f"{server.url}#m"))
    calls = {option: other.calls for option, other in planned.alternatives.items()}
    assert planned.plan.calls == 30
    assert calls == {
        "--relations original": 6,
        "--relations original,case,frame,typo": 24,
        WITH: 12,
        "--answers hard": 30,
    }
    assert plan(request_of(f"{server.url}#m", answers="hard")).plan.calls == 30


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
