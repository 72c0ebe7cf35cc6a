from dataclasses import replace
from typing import Any

import pytest

from pcs_annotator import Annotator, CollectSettings, Expectation, Item, PromptedRelation, RelationOptions, Task
from pcs_annotator.asking.annotators.annotator import Question
from pcs_annotator.asking.engine.budget import expected_tokens
from pcs_annotator.asking.engine.job import Job, job_digest, make_plan
from pcs_annotator.base.errors import ConfigError
from pcs_annotator.core.chat import Reply
from pcs_annotator.models.scripted import ScriptedModel
from pcs_annotator.relations.base import Original
from pcs_annotator.relations.function import FunctionRelation
from pcs_annotator.runs.ask import open_job

TASK = Task("How does the writer feel?", ["positive", "negative"])


def a_job(draws: int = 1) -> Job:
    cheap, expensive = ScriptedModel([], name="scripted:cheap"), ScriptedModel([], name="scripted:expensive")
    return Job(
        task=TASK,
        annotators=[(Annotator(cheap), cheap), (Annotator(expensive), expensive)],
        relations=[Original(), PromptedRelation("voice", "Rewrite."), PromptedRelation("synonym", "Rewrite.")],
        rewriter=cheap,
        draws=draws,
    )


def items(*texts: str) -> list[Item]:
    return [Item(id=str(row), text=text) for row, text in enumerate(texts)]


def per_token(model: str, tokens_in: int, tokens_out: int) -> float | None:
    return tokens_in * 1e-6 + tokens_out * 2e-6 if model == "scripted:cheap" else None


def test_a_plan_counts_labels_and_rewrites_per_model() -> None:
    job = a_job(draws=2)
    plan = make_plan(job, items("One text.", "Another text."), per_token)
    counted = {(model.model, model.purpose): model.calls for model in plan.models}
    assert counted == {
        ("scripted:cheap", "label"): 2 * 3 * 2,
        ("scripted:expensive", "label"): 2 * 3 * 2,
        ("scripted:cheap", "rewrite"): 2 * 2,
    }
    assert plan.rows == 2
    assert plan.calls == 28


def test_an_unknown_price_makes_the_whole_price_unknown() -> None:
    plan = make_plan(a_job(), items("One text."), per_token)
    assert plan.usd is None
    priced = make_plan(a_job(), items("One text."), lambda model, tokens_in, tokens_out: 0.25)
    assert priced.usd == pytest.approx(0.75)


def test_longer_texts_cost_more_and_empty_ones_nothing() -> None:
    short, long = (make_plan(a_job(), items(text), per_token) for text in ("Short.", "Long and longer. " * 100))
    assert long.models[0].input_tokens > 2 * short.models[0].input_tokens
    empty = make_plan(a_job(), items(" "), per_token)
    assert {model.purpose for model in empty.models} <= {"rewrite"}


@pytest.mark.parametrize(("kind", "calls"), [("1s-top-2", 1), ("ling-1s", 1), ("2s-top-2", 2)])
def test_a_plan_counts_both_questions_of_a_two_step_elicitation(kind: str, calls: int) -> None:
    model = ScriptedModel([], name="scripted:cheap")
    job = Job(task=TASK, annotators=[(Annotator(model, elicitation=kind), model)], draws=3)
    (bill,) = make_plan(job, items("One text.", "Another text."), per_token).models
    assert bill.calls == 2 * 3 * calls


@pytest.mark.parametrize("kind", ["2s-top-2"])
def test_the_planned_tokens_are_more_than_two_questions_take(kind: str) -> None:
    replies = ["G1: positive\nG2: negative", "P1: 0.7\nP2: 0.2"] if kind == "2s-top-2" else ["positive", "A"]
    model = ScriptedModel([], name="scripted:cheap")
    annotator, (item,) = Annotator(model, elicitation=kind), items("One text.")
    question = annotator.question(TASK, item.text, model)
    assert isinstance(question, Question)
    following = annotator.parse_reply(question, [Reply(text=replies[0])], model)
    assert isinstance(following, Question)
    (bill,) = make_plan(Job(task=TASK, annotators=[(annotator, model)]), [item], per_token).models
    sent = [expected_tokens(model, one.request) for one in (question, following)]
    assert bill.input_tokens >= sum(tokens.input for tokens in sent)
    assert bill.output_tokens >= sum(tokens.output for tokens in sent)


def test_an_annotator_can_be_asked_under_some_relations_only() -> None:
    job = replace(a_job(), questions={"scripted:expensive": ("original",)})
    assert [job.asked_under(relation) for relation in range(3)] == [[0, 1], [0], [0]]
    counted = {(one.model, one.purpose): one.calls for one in make_plan(job, items("One text."), per_token).models}
    assert counted == {
        ("scripted:cheap", "label"): 3,
        ("scripted:expensive", "label"): 1,
        ("scripted:cheap", "rewrite"): 2,
    }


@pytest.mark.parametrize(
    ("questions", "message"),
    [
        ({"groq:x": ("original",)}, "listed for 'groq:x', which is not asked"),
        ({"scripted:cheap": ("frame",)}, "the relation 'frame' is not used here; choose from original, voice, synonym"),
        ({"scripted:cheap": ()}, "the list is empty"),
    ],
)
def test_questions_that_cannot_be_asked_are_refused(questions: dict[str, tuple[str, ...]], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        replace(a_job(), questions=questions)


OWN = PromptedRelation("own", "Rewrite it: {text}")
SAME = {"models": ["scripted:hash"], "relations": ["original", "case", OWN], "task": TASK, "texts": ["One", "Two"]}


def digest_of(**changes: Any) -> str:
    given = {**SAME, **changes}
    settings = CollectSettings(rewriter=given.pop("rewriter", "scripted:hash"), **given.pop("settings", {}))
    items = [Item(id=str(row), text=text) for row, text in enumerate(given["texts"])]
    return job_digest(open_job(given["task"], given["models"], given["relations"], settings), items)


def test_a_digest_tells_jobs_apart_by_all_that_their_votes_depend_on(monkeypatch: pytest.MonkeyPatch) -> None:
    longer = Annotator("scripted:hash", max_tokens=100)
    digests = [
        digest_of(),
        digest_of(texts=["One", "Two "]),
        digest_of(texts=["One", "Two", "Three"]),
        digest_of(texts=["O", "neTwo"]),
        digest_of(models=["scripted:hash:2"]),
        digest_of(models=[Annotator("scripted:hash", version="2")]),
        digest_of(models=["scripted:hash", "scripted:hash/ling-1s"]),
        digest_of(models=[longer]),
        digest_of(relations=["original", "case"]),
        digest_of(relations=["original", OWN, "case"]),
        digest_of(relations=["original", "case", replace(OWN, prompt="Write it: {text}")]),
        digest_of(relations=["original", "case", replace(OWN, expects=Expectation(longest=3.0))]),
        digest_of(rewriter="scripted:hash:2"),
        digest_of(task=replace(TASK, instruction="Another question?")),
        digest_of(task=replace(TASK, meanings={TASK.labels[0]: "a meaning"})),
        digest_of(task=replace(TASK, labels=tuple(reversed(TASK.labels)))),
        digest_of(settings={"draws": 2}),
        digest_of(settings={"answers": "hard"}),
        digest_of(settings={"questions": {"scripted:hash": ["original"]}}),
        digest_of(settings={"choosing": RelationOptions(checked=False)}),
    ]
    with monkeypatch.context() as patch:
        patch.setattr("pcs_annotator.asking.engine.job.code_stamp", lambda: "another version")
        digests.append(digest_of())
    assert len(set(digests)) == len(digests)
    assert digest_of() == digests[0]


def test_code_from_elsewhere_may_have_changed_so_no_two_digests_are_the_same() -> None:
    loud = FunctionRelation("loud", str.upper)
    assert digest_of(relations=["original", loud]) != digest_of(relations=["original", loud])
