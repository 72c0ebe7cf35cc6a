from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from pcs_annotator.asking.engine.budget import Budget, BudgetTracker
from pcs_annotator.asking.engine.call import Asker, Rewriter
from pcs_annotator.asking.engine.progress import Tally
from pcs_annotator.asking.ledger.sqlite import Ledger
from pcs_annotator.core.chat import THINKING_TOKENS, ChatModel, Reply, Usage
from pcs_annotator.models.reasoning import has_thought, with_room
from pcs_annotator.models.resolve import resolve_model
from tests.models.stub import Answer, Stub, completion, question, run, serving

LIMIT = 20
SHORT = question(max_tokens=LIMIT)


def thinking(sign: dict[str, Any]) -> Answer:
    """A model that thinks before it answers: without room for both, it is cut off."""

    async def handle(request: web.Request) -> web.Response:
        body = await request.json()
        room = body.get("max_tokens", body.get("max_completion_tokens"))
        if room > LIMIT:
            return web.json_response(completion(sign.get("answer", "positive")))
        message = {"role": "assistant", "content": "", **sign.get("message", {})}
        choice = {"finish_reason": sign.get("finish", "length"), "message": message}
        used = {"prompt_tokens": 11, "completion_tokens": LIMIT, **sign.get("usage", {})}
        return web.json_response(completion(choice=choice, usage=used))

    return handle


SIGNS: dict[str, dict[str, Any]] = {
    "reasoning_content (vLLM, DeepSeek)": {"message": {"reasoning_content": "Hm, nice"}},
    "reasoning (Groq, Ollama, OpenRouter)": {"message": {"content": None, "reasoning": "Hm, nice"}},
    "open tag in the text": {"message": {"content": "<think>Hm, nice"}, "answer": "<think>Hm.</think>positive"},
    "nothing but the length": {"message": {"content": ""}},
    "parts (Mistral)": {"message": {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}]}},
    "counted tokens": {"message": {"content": "pos"}, "usage": {"completion_tokens_details": {"reasoning_tokens": 18}}},
}


async def two_questions(model: ChatModel) -> list[Reply]:
    try:
        return [await model.ask(SHORT), await model.ask(SHORT)]
    finally:
        await model.close()


def asked_twice(provider: str, answer: Answer, name: str = "some-model") -> tuple[list[Reply], Stub]:
    async def go() -> tuple[list[Reply], Stub]:
        async with serving(answer) as stub:
            return await two_questions(resolve_model(f"{provider}:{name}", stub.opens(provider))), stub

    return run(go())


def limits(stub: Stub) -> list[int]:
    return [seen.body["max_tokens"] for seen in stub.seen]


@pytest.mark.parametrize("sign", SIGNS.values(), ids=SIGNS)
@pytest.mark.parametrize("provider", ["groq", "ollama", "vllm"])
def test_a_model_that_thinks_is_asked_again_with_room_and_keeps_it(provider: str, sign: dict[str, Any]) -> None:
    replies, stub = asked_twice(provider, thinking(sign))
    assert [reply.finish for reply in replies] == ["stop", "stop"]
    assert limits(stub) == [LIMIT, LIMIT + THINKING_TOKENS, LIMIT + THINKING_TOKENS]


def test_the_tokens_of_both_calls_are_counted_and_what_a_server_does_not_count_stays_unknown() -> None:
    replies, _ = asked_twice("groq", thinking(SIGNS["nothing but the length"]))
    assert [(reply.usage.input_tokens, reply.usage.output_tokens) for reply in replies] == [(22, LIMIT + 2), (11, 2)]
    replies, _ = asked_twice("groq", thinking({"usage": {"prompt_tokens": None}}))
    assert replies[0].usage == Usage(output_tokens=LIMIT + 2)


def test_a_model_that_thinks_within_the_limit_is_not_asked_again() -> None:
    sign = {"message": {"content": "positive", "reasoning": "Hm"}, "finish": "stop"}
    replies, stub = asked_twice("groq", thinking(sign))
    assert [reply.text for reply in replies] == ["positive", "positive"]
    assert limits(stub) == [LIMIT, LIMIT + THINKING_TOKENS]


def test_a_model_that_writes_too_much_is_not_asked_again() -> None:
    replies, stub = asked_twice("groq", thinking({"message": {"content": "positive, because"}}))
    assert [reply.finish for reply in replies] == ["length", "length"]
    assert limits(stub) == [LIMIT, LIMIT]


@pytest.mark.parametrize(
    ("name", "room"),
    [
        ("qwen/qwen3-32b", THINKING_TOKENS),
        ("deepseek-r1:8b", THINKING_TOKENS),
        ("openai/gpt-oss-20b", THINKING_TOKENS),
        ("qwen3-coder:30b", 0),
        ("qwen3-30b-a3b-instruct-2507", 0),
        ("llama-3.1-8b-instant", 0),
    ],
)
def test_models_that_are_known_to_think_have_room_from_the_first_call_on(name: str, room: int) -> None:
    _, stub = asked_twice("groq", thinking({"message": {"content": "positive"}, "finish": "stop"}), name)
    assert limits(stub) == [LIMIT + room] * 2


def test_requests_without_a_limit_stay_without() -> None:
    assert with_room(question(), THINKING_TOKENS) == question()
    assert with_room(SHORT, 0) is SHORT
    assert with_room(SHORT, 5).max_tokens == LIMIT + 5


@pytest.mark.parametrize("usage", [None, 3, {}, {"completion_tokens_details": None}])
def test_strange_usage_is_no_sign_of_thinking(usage: object) -> None:
    assert not has_thought({"content": ["plain", {"type": "text"}], "reasoning": ""}, usage)


def test_an_answer_that_was_paid_for_is_found_whether_the_model_has_room_or_not(tmp_path: Path) -> None:
    async def go() -> tuple[list[str], int]:
        async with serving(thinking(SIGNS["nothing but the length"])) as stub:
            texts = []
            for _ in range(2):
                model = resolve_model("groq:some-model", stub.opens("groq"))
                with Ledger(tmp_path / "ledger.db") as ledger:
                    rewrite = Rewriter(model, Asker(ledger, BudgetTracker(Budget()), Tally(), lambda *_: 0.0))
                    texts += [(await rewrite(SHORT)).text, (await rewrite(SHORT)).text]
                await model.close()
            return texts, len(stub.seen)

    assert run(go()) == (["positive"] * 4, 2)  # the first call, and the same with room
