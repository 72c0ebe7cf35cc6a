"""Questions put differently: what models read, under which label answers are stored, and what they cost."""

import asyncio
from collections.abc import Sequence
from math import log
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcs_annotator import Annotator, CollectSettings, Item, RelationOptions, Task, Votes, collect
from pcs_annotator.asking.engine.job import QuestionForm
from pcs_annotator.base.errors import ConfigError
from pcs_annotator.core.chat import QuestionParts, Reply, Request, TokenPosition
from pcs_annotator.core.task import Phrasing
from pcs_annotator.core.votes import Vote
from pcs_annotator.models.scripted import ScriptedModel
from pcs_annotator.relations.base import rephrased
from pcs_annotator.relations.combine import choose_relations
from pcs_annotator.runs.ask import open_job, plan_job

LABELS = ["positive", "neutral", "negative"]
TASK = Task("How does the writer feel?", LABELS, wordings=["What is the mood?"])
PROBABILITIES = {"positive": 0.2, "neutral": 0.1, "negative": 0.6}
ORDERS = ["original", "order", "order:rotated", "order:2", "order:3", "order:4"]
OTHER = "Which feeling does the author express?"


def items(count: int = 1) -> list[Item]:
    return [
        Item(id=str(row), text=f"Text number {row} is rather nice, and the others are too.") for row in range(count)
    ]


def asked(
    model: object, relations: Sequence[str], ledger: Path, task: Task = TASK, settings: CollectSettings | None = None
) -> Votes:
    settings = settings or CollectSettings(environment={})
    return asyncio.run(collect(task, items(), [model], relations, ledger=ledger, settings=settings))


def graded(request: Request) -> Reply:
    """Answer with the same probabilities whatever the order in which labels are listed."""
    alternatives = tuple((label, log(share)) for label, share in PROBABILITIES.items())
    return Reply(text="negative", logprobs=(TokenPosition("negative", alternatives),))


def first_listed(request: Request) -> str:
    """Answer with the label that is listed first, as a model with a favourite place does."""
    return request.messages[0].content.partition("Labels:\n- ")[2].splitlines()[0]


def test_labels_are_read_in_another_order_and_votes_stored_under_their_own(tmp_path: Path) -> None:
    model = ScriptedModel(first_listed)
    votes = asked(model, ORDERS, tmp_path / "ledger.db")
    put = [rephrased(relation, Phrasing(task=TASK)) for relation in choose_relations(ORDERS, RelationOptions())]
    assert [votes.labels[code] for code in votes.codes[0, 0, :, 0].tolist()] == [
        question.task.labels[0] for question in put
    ]
    assert len({request.messages for request in model.requests}) == len(ORDERS)
    assert all(sorted(request.constraint.choices) == sorted(LABELS) for request in model.requests if request.constraint)


def test_grades_are_stored_under_their_labels_whatever_the_order(tmp_path: Path) -> None:
    votes = asked(ScriptedModel(graded, can_grade=True), ORDERS, tmp_path / "ledger.db")
    assert votes.grades is not None
    expected = [PROBABILITIES[label] for label in votes.labels]
    np.testing.assert_allclose(votes.grades[0, 0, :, 0], [expected] * len(ORDERS), rtol=1e-6)
    assert {votes.labels[code] for code in votes.codes.flatten().tolist()} == {"negative"}


def test_stated_probabilities_are_stored_under_their_labels_whatever_the_order(tmp_path: Path) -> None:
    model = ScriptedModel(["G1: neutral\nP1: 0.7\nG2: negative\nP2: 0.2"])
    votes = asked(Annotator(model, elicitation="1s-top-2"), ORDERS, tmp_path / "ledger.db")
    assert votes.stated is not None
    for stated in votes.stated[0, 0, :, 0]:
        assert dict(zip(votes.labels, stated.tolist(), strict=True))["neutral"] == pytest.approx(0.7)
        assert dict(zip(votes.labels, stated.tolist(), strict=True))["negative"] == pytest.approx(0.2)


@given(st.permutations(range(5)), st.lists(st.floats(0, 0.2), min_size=5, max_size=5))
def test_probabilities_come_back_in_the_order_of_the_task(order: list[int], shares: list[float]) -> None:
    labels = [f"label {number}" for number in range(5)]
    given = dict(zip(labels, shares, strict=True))
    listed = [labels[place] for place in order]
    places = tuple(listed.index(label) for label in labels)
    asking = QuestionForm(Task("Which?", listed), [], places)
    vote = Vote(label=labels[0], grades=tuple(given[label] for label in listed))
    assert asking.in_task_order(vote).grades == tuple(shares)


def test_the_wording_and_the_layout_change_what_models_read(tmp_path: Path) -> None:
    model = ScriptedModel(["positive"])
    asked(model, ["original", "wording", "wording:2", "layout", "wording+layout"], tmp_path / "ledger.db")
    usual, own, template, one, both = [request.messages for request in model.requests]
    assert TASK.instruction in usual[0].content
    assert "What is the mood?" in own[0].content
    assert TASK.instruction not in own[0].content
    assert TASK.instruction in template[0].content != usual[0].content
    assert [[message.role for message in messages] for messages in (usual, one)] == [["system", "user"], ["user"]]
    assert one[0].content == f"{usual[0].content}\n\n{usual[1].content}"
    assert [message.role for message in both] == ["user"]
    assert "What is the mood?" in both[0].content


@pytest.mark.parametrize(
    ("task", "relations", "complaint"),
    [
        (
            Task("Is it?", ["yes", "no"]),
            ["order", "order:rotated"],
            "'order' and 'order:rotated'.*two labels.*leave one",
        ),
        (Task("Is it?", ["yes", "no"]), ["order+typo", "order:rotated+typo"], "'order.typo'.*same question"),
        (Task("Is it?", ["yes", "no"]), ["original", "order:2"], "'order:2'.*one other order"),
        (
            Task("Which?", LABELS, wordings=["Which?"]),
            ["original", "wording"],
            "'original' and 'wording'.*same question",
        ),
        (Task("Which?", LABELS), ["wording", "wording:9"], "'wording:9'.*only 3 wordings"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_any_call(
    task: Task, relations: list[str], complaint: str, tmp_path: Path
) -> None:
    model = ScriptedModel(["positive"])
    with pytest.raises(ConfigError, match=complaint):
        asked(model, relations, tmp_path / "ledger.db", task)
    assert model.calls == 0


def test_models_without_a_system_message_have_one_layout_only(tmp_path: Path) -> None:
    plain = Annotator(ScriptedModel(["positive"]), style="plain")
    with pytest.raises(ConfigError, match=r"'original' and 'layout' ask the same question: leave one of them out"):
        asked(plain, ["original", "layout"], tmp_path / "ledger.db")


def planned(relations: Sequence[str], rewriter: ScriptedModel | None = None) -> dict[str, tuple[int, int]]:
    settings = CollectSettings(environment={}, rewriter=rewriter)
    task = Task(TASK.instruction, LABELS, wordings=["What is the mood? " * 100])
    job = open_job(task, [ScriptedModel(["positive"])], relations, settings)
    return {bill.purpose: (bill.calls, bill.input_tokens) for bill in plan_job(job, items(5), settings).models}


def test_a_plan_counts_what_is_really_asked_and_no_rewriting() -> None:
    (one, tokens), (two, more), (_, many) = (
        planned(relations)["label"] for relations in (["original"], ["original", "order"], ["original", "wording"])
    )
    assert (one, two) == (5, 10)
    assert more == 2 * tokens
    assert many > 3 * tokens
    rewriter = ScriptedModel([OTHER], name="scripted:writer")
    assert set(planned(["original", "order", "wording", "layout", "case"], rewriter)) == {"label"}
    assert rewriter.calls == 0


@pytest.mark.parametrize(
    ("name", "instruction", "menu"),
    [
        ("original", TASK.instruction, "- positive\n- neutral\n- negative"),
        ("order", TASK.instruction, "- negative\n- neutral\n- positive"),
        ("wording", "What is the mood?", "- positive\n- neutral\n- negative"),
        ("layout", TASK.instruction, "- positive\n- neutral\n- negative"),
    ],
)
def test_the_embedded_model_reads_the_order_and_the_wording_but_no_layout(
    name: str, instruction: str, menu: str, tmp_path: Path
) -> None:
    model = ScriptedModel(["positive"])
    asked(model, [name], tmp_path / "ledger.db")
    (request,) = model.requests
    assert request.parts == QuestionParts(instruction, menu, items()[0].text)
    assert request.constraint is not None
    assert "".join(f"\n- {label}" for label in request.constraint.choices).strip() == menu
