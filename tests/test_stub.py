"""The stub server behaves as configured, and its counters are right."""

import asyncio
import json
import math
import time
from collections import Counter
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest

from tests.stub import Behaviour, Stub, StubServer
from tests.stub.talking import LABELS, SYSTEM, Ask, Got, ask_many, question, talk

pytestmark = pytest.mark.enable_socket


def test_answer_is_a_label_of_the_question_and_has_usage() -> None:
    async def test(stub: Stub, ask: Ask) -> None:
        got = await ask()
        assert got.status == 200
        assert got.text in {f"<label>{label}</label>" for label in LABELS}
        said = json.loads(got.body)
        assert said["choices"][0]["finish_reason"] == "stop"
        assert said["usage"]["prompt_tokens"] == len(SYSTEM + "hello") // 4
        assert {got.text for got in await ask_many(ask, 50)} == {f"<label>{label}</label>" for label in LABELS}

    talk(Behaviour(), test)


def test_anthropic_protocol_is_supported_too() -> None:
    async def test(stub: Stub, ask: Ask) -> None:
        parts = [{"type": "text", "text": "hello"}]
        body = {"model": "m", "system": SYSTEM, "max_tokens": 9, "messages": [{"role": "user", "content": parts}]}
        said = json.loads((await ask(body, "/v1/messages", **{"x-api-key": "secret"})).body)
        same = await ask(question(), Authorization="Bearer secret")
        assert said["content"] == [{"type": "text", "text": same.text}]
        assert said["stop_reason"] == "end_turn"
        assert said["usage"]["input_tokens"] == len(SYSTEM + "hello") // 4
        refused = await ask(body, "/v1/messages", **{"x-api-key": "wrong"})
        assert (refused.status, json.loads(refused.body)["error"]["type"]) == (401, "authentication_error")

    talk(Behaviour(key="secret"), test)


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        ({"guided_choice": ["x1", "x2"]}, {"x1", "x2"}),
        ({"structured_outputs": {"choice": ["x1", "x2"]}}, {"x1", "x2"}),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"schema": {"properties": {"answer": {"enum": ["x1", "x2"]}}}},
                }
            },
            {'{"answer": "x1"}', '{"answer": "x2"}'},
        ),
    ],
)
def test_structured_output_is_honoured(extra: dict[str, Any], expected: set[str]) -> None:
    async def test(stub: Stub, ask: Ask) -> None:
        answers = [(await ask(question(f"text {number}", **extra))).text for number in range(20)]
        assert set(answers) == expected

    talk(Behaviour(), test)


def test_label_depends_on_model_and_fenced_text_only() -> None:
    async def test(stub: Stub, ask: Ask) -> None:
        for number in range(10):
            plain = await ask(question(f"text {number}"))
            fence = await ask(question(f"Data follows.\n<<f00d1234>>\ntext {number}\n<<f00d1234>>\nAnswer."))
            assert plain.text == fence.text
        others = [(await ask(question(f"text {number}", model="other"))).text for number in range(20)]
        assert others != [got.text for got in await ask_many(ask, 20)]

    talk(Behaviour(), test)


def test_rewriting_answers_with_a_text_that_depends_on_the_instructions() -> None:
    async def test(stub: Stub, ask: Ask) -> None:
        prompts = [f"Rewrite the text, way {way}." for way in range(6)]
        texts = [(await ask(question("the cat sat", system=prompt))).text for prompt in prompts]
        assert all(text.endswith(" the cat sat") for text in texts)
        assert len(set(texts)) > 1
        assert texts[0] == (await ask(question("the cat sat", system=prompts[0]))).text

    talk(Behaviour(), test)


def test_logprobs_have_the_label_first_and_all_alternatives() -> None:
    async def test(stub: Stub, ask: Ask) -> None:
        said = json.loads((await ask(question(logprobs=True, top_logprobs=8))).body)["choices"][0]
        tokens = said["logprobs"]["content"]
        assert "".join(token["token"] for token in tokens) == said["message"]["content"]
        token = tokens[3]
        assert token["top_logprobs"][0]["token"] == token["token"]
        assert {rival["token"] for rival in token["top_logprobs"]} > {"good", "bad", "so"}
        assert all(len(token["top_logprobs"]) == 8 for token in tokens)
        assert sum(math.exp(rival["logprob"]) for rival in token["top_logprobs"]) == pytest.approx(1, abs=1e-3)

    talk(Behaviour(), test)


@pytest.mark.parametrize(
    ("share", "status", "holds"),
    [
        ("share_429", 429, lambda got: got.headers["retry-after"] == "1"),
        ("share_500", 500, lambda got: got.code == "server_error"),
        ("share_503", 503, lambda got: "overloaded" in got.body),
        ("share_drop_before", 0, lambda got: True),
        ("share_drop_middle", 0, lambda got: True),
        ("share_reset", 0, lambda got: True),
        ("share_hang", 0, lambda got: True),
        ("share_truncated", 200, lambda got: got.body.startswith("{") and not got.body.endswith("}")),
        ("share_html", 200, lambda got: got.headers["content-type"] == "text/html"),
        ("share_chatter", 200, lambda got: not any(label in got.text for label in LABELS)),
        ("share_empty", 200, lambda got: got.text == ""),
        ("share_filtered", 200, lambda got: '"finish_reason":"content_filter"' in got.body),
    ],
)
def test_every_fault_happens_and_the_retry_succeeds(share: str, status: int, holds: Callable[[Got], bool]) -> None:
    async def test(stub: Stub, ask: Ask) -> None:
        first = await ask(patience=0.2 if share == "share_hang" else 10)
        assert first.status == status
        assert holds(first)
        await asyncio.sleep(0.01)
        paid = stub.stats().answered
        assert paid == (status == 200 and share not in ("share_truncated", "share_html"))
        assert stub.stats().by_kind == {share.removeprefix("share_"): 1}
        assert (await ask()).text.startswith("<label>")
        stats = stub.stats()
        assert (stats.requests, stats.answered, stats.asked_again, stats.answered_twice) == (2, paid + 1, paid, paid)
        assert stats.in_flight == 0
        assert stats.abandoned == (share == "share_hang")

    talk(Behaviour(faults_only_first=True).changed({share: 1.0}), test)


def test_same_seed_gives_the_same_faults_and_answers_in_any_order() -> None:
    faults = Behaviour(share_429=0.2, share_500=0.1, share_drop_before=0.1, share_chatter=0.1)
    seen: list[dict[str, tuple[int, str]]] = []

    async def test(stub: Stub, ask: Ask) -> None:
        texts = [f"text {number}" for number in range(150)]
        got = await asyncio.gather(*(ask(question(text)) for text in (texts if len(seen) % 2 else texts[::-1])))
        bodies = texts if len(seen) % 2 else texts[::-1]
        seen.append({text: (reply.status, reply.body) for text, reply in zip(bodies, got, strict=True)})

    for behaviour in (faults, faults, faults.changed({"seed": 1})):
        talk(behaviour, test)
    assert seen[0] == seen[1] != seen[2]
    shares = Counter(status for status, _ in seen[0].values())
    assert 15 <= shares[429] <= 45
    assert 75 <= shares[200] <= 125


def test_answers_overlap_during_the_latency() -> None:
    async def test(stub: Stub, ask: Ask) -> None:
        began = time.monotonic()
        assert all(got.status == 200 for got in await ask_many(ask, 40))
        assert time.monotonic() - began >= 0.05
        stats = stub.stats(full=True)
        assert stats.max_in_flight == 40
        assert len(stats.arrivals) == len(stats.answered_at) == stats.questions == 40

    talk(Behaviour(latency_s=0.05, record_times=True), test)


def test_calls_beyond_the_rate_get_429_and_how_long_to_wait() -> None:
    async def test(stub: Stub, ask: Ask) -> None:
        got = await ask_many(ask, 30)
        passed = [reply for reply in got if reply.status == 200]
        refused = [reply for reply in got if reply.status == 429]
        assert 5 <= len(passed) <= 10
        assert stub.stats().by_kind == {"answer": len(passed), "limited": len(refused)}
        assert refused[0].headers["retry-after"] == "1"
        stub.change(retry_after="none")
        refused = [reply for reply in await ask_many(ask, 30) if reply.status == 429]
        assert "retry-after" not in refused[0].headers
        stub.change(retry_after="exact")
        refused = [reply for reply in await ask_many(ask, 30) if reply.status == 429]
        assert 0 < float(refused[0].headers["retry-after"]) <= 0.5

    talk(Behaviour(rate=2, burst=5), test)


def test_refused_questions_get_the_code_of_the_reason() -> None:
    async def test(stub: Stub, ask: Ask) -> None:
        key = {"Authorization": "Bearer k"}
        wrong_key, wrong_model = await ask(Authorization="Bearer x"), await ask(question(model="n"), **key)
        too_long, filtered = await ask(question("x" * 900), **key), await ask(question("a BOMB b"), **key)
        assert (wrong_key.status, wrong_key.code) == (401, "invalid_api_key")
        assert (wrong_model.status, wrong_model.code) == (404, "model_not_found")
        assert (too_long.status, too_long.code) == (400, "context_length_exceeded")
        assert (filtered.status, filtered.code) == (400, "content_filter")
        assert (await ask(**key)).status == 200
        assert stub.stats().by_status == {401: 1, 404: 1, 400: 2, 200: 1}

    talk(Behaviour(key="k", models=("m",), max_chars=500, filter_word="BOMB", latency_s=0.01), test)


def test_unusual_requests_do_not_crash_the_stub() -> None:
    async def test(stub: Stub, ask: Ask) -> None:
        assert (await ask([])).code == "invalid_json"
        assert (await ask({"model": "m"})).code == "invalid_json"
        assert (await ask(question(stream=True))).code == "unsupported_value"
        assert (await ask(question("lone \ud800 and \0 and 🙂"))).status == 200
        assert (await ask(question("x" * 2_000_000))).status == 200
        assert (await ask(question("x" * (8 * 2**20)))).status == 413
        assert (await ask(path="/nowhere")).status == 404
        assert (await ask(path="/openai/deployments/azure/chat/completions?api-version=1")).status == 200

    talk(Behaviour(), test)


def test_models_are_listed() -> None:
    async def run() -> None:
        async with StubServer(Behaviour(models=("a", "b"))) as stub, aiohttp.ClientSession() as session:
            async with session.get(stub.url + "/models") as response:
                assert [model["id"] for model in (await response.json())["data"]] == ["a", "b"]
            assert stub.stats().requests == 0

    asyncio.run(run())


def test_pipelined_and_split_requests_are_answered_in_order() -> None:
    async def run() -> None:
        async with StubServer(Behaviour(latency_s=0.01)) as stub:
            reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(stub.root).port)
            body = json.dumps(question()).encode()
            raw = b"POST /v1/chat/completions HTTP/1.1\r\nCONTENT-LENGTH: %d\r\n\r\n%b" % (len(body), body)
            last = raw.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1)
            for piece in (raw[:20], raw[20:90], raw[90:] + raw, last):
                writer.write(piece)
                await asyncio.sleep(0.005)
            assert (await reader.read()).count(b"HTTP/1.1 200 OK") == 3
            writer.close()
            await writer.wait_closed()

    asyncio.run(run())
