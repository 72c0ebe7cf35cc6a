import asyncio

import pytest

from pcs_annotator.base.errors import ConfigError, RateLimited
from pcs_annotator.core.chat import Constraint, Reply, Request
from pcs_annotator.models.resolve import resolve_model
from pcs_annotator.models.scripted import ScriptedModel, answer_by_hash
from tests.models.stub import ask_once, question, run


def test_a_list_is_repeated_when_it_ends() -> None:
    model = ScriptedModel(["a", Reply(text="b", finish="length"), RateLimited("slow")], latency=0.001)

    async def go() -> list[str]:
        first, second = await model.ask(question()), await model.ask(question())
        with pytest.raises(RateLimited):
            await model.ask(question())
        return [first.text, second.finish, (await model.ask(question())).text]

    assert run(go()) == ["a", "length", "a"]
    assert model.calls == len(model.requests) == 4


def test_a_text_or_a_function_of_the_request_answers() -> None:
    reply = run(ask_once(ScriptedModel(lambda request: request.messages[-1].content[::-1])))
    assert (reply.text, reply.usage.input_tokens, reply.usage.output_tokens) == ("!eciN", 3, 1)
    assert run(ask_once(ScriptedModel("yes"))).text == "yes"


def test_hash_answers_are_the_same_everywhere() -> None:
    labels = Constraint(choices=["negative", "neutral", "positive"])
    asked = [question(f"text {number}", constraint=labels) for number in range(6)]
    answers = [answer_by_hash(request) for request in asked]
    # Recorded once: benchmarks and docs rely on these being the same on every machine and in every version.
    assert answers == ["negative", "positive", "positive", "negative", "negative", "negative"]
    assert {answer_by_hash(question(str(number), constraint=labels)) for number in range(50)} == set(labels.choices)


def test_another_salt_gives_other_answers() -> None:
    async def go(spec: str) -> list[str]:
        model = resolve_model(spec, {})
        asked = [question(str(number), system="<label>a</label> <label>b</label>") for number in range(30)]
        return [reply.text for reply in await asyncio.gather(*(model.ask(request) for request in asked))]

    first, again, other = run(go("scripted:hash")), run(go("scripted:hash")), run(go("scripted:hash:2"))
    assert first == again != other
    assert set(first) == {"<label>a</label>", "<label>b</label>"}


def test_without_labels_the_answer_is_the_hash_and_other_names_are_refused() -> None:
    assert len(answer_by_hash(question("\ud800"))) == 16
    assert len(answer_by_hash(Request(messages=()))) == 16
    with pytest.raises(ConfigError, match="scripted:hash"):
        resolve_model("scripted:parrot", {})
