"""Answers of batch APIs that are not as expected; what is expected is tested with the stub server."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from pcs_annotator.base.errors import AccessDenied, ModelError, RateLimited, ServerTrouble
from pcs_annotator.models.batch_apis import BatchApi, BatchLine, BatchState, LostBatch, batch_api
from pcs_annotator.models.resolve import resolve_model
from tests.models.stub import Answer, Stub, completion, question, run, says, serving

pytestmark = pytest.mark.enable_socket

MODELS = {"openai": "openai:m", "groq": "groq:m", "anthropic": "anthropic:m"}


async def with_api(answer: Answer, provider: str, use: Any) -> Any:
    """Use the batch API of a provider with a server that always answers alike."""
    async with serving(answer) as stub:
        model = resolve_model(MODELS[provider], stub.opens(provider))
        api = batch_api(model)
        assert api is not None
        try:
            return await use(api, stub)
        finally:
            await model.close()


def created(provider: str, body: object, folder: Path, status: int = 200) -> str:
    async def use(api: BatchApi, stub: Stub) -> str:
        return await api.create(requests, "file-1")

    requests = folder / "requests.jsonl"
    requests.write_bytes(b"{}\n")
    name: str = run(with_api(says(body, status), provider, use))
    return name


def looked(provider: str, body: object, status: int = 200) -> BatchState:
    async def use(api: BatchApi, stub: Stub) -> BatchState:
        return await api.look("b1")

    state: BatchState = run(with_api(says(body, status), provider, use))
    return state


def results(provider: str, *lines: str | Mapping[str, object]) -> list[BatchLine]:
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)

    async def use(api: BatchApi, stub: Stub) -> list[BatchLine]:
        return [line async for line in api.results(BatchState("done", files=("f1",)))]

    found: list[BatchLine] = run(with_api(says(text), provider, use))
    return found


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"errors": {"data": [{"code": "c", "message": "m"}, {"code": "c", "message": "m"}]}}, "c m"),
        ({"errors": [{"message": "m"}, "odd"]}, "m"),
        ({"error": "plain words"}, "plain words"),
        ({"errors": {"message": "alone"}}, "alone"),
        ({}, "no reason was given"),
    ],
)
def test_why_a_batch_failed_is_told_in_many_shapes(body: Mapping[str, object], words: str) -> None:
    state = looked("openai", {"status": "failed", **body})
    assert (state.end, state.trouble, state.over_quota) == ("failed", words, False)


def statuses(lines: list[BatchLine]) -> list[tuple[str, int | None]]:
    return [(line.custom_id, line.answer and line.answer.status) for line in lines]


@pytest.mark.parametrize("provider", MODELS)
def test_a_batch_or_results_that_are_unknown_there_are_gone_and_an_unknown_status_is_under_way(provider: str) -> None:
    assert looked(provider, {"error": {"message": "none"}}, 404).end == "gone"
    assert looked(provider, {"status": "dreaming", "processing_status": "dreaming"}).end is None
    assert looked("anthropic", {"processing_status": "ended", "results_url": None}).end == "gone"


@pytest.mark.parametrize("body", ["<html>", "[]", "7", "null", '"text"'])
@pytest.mark.parametrize("provider", MODELS)
def test_an_answer_that_is_no_object_is_trouble_and_can_be_asked_again(
    provider: str, body: str, tmp_path: Path
) -> None:
    with pytest.raises(ServerTrouble):
        looked(provider, body)
    with pytest.raises(ServerTrouble):
        created(provider, body, tmp_path)


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (429, {"error": {"message": "slow down"}}, RateLimited),
        (400, {"error": {"code": "token_limit_exceeded", "message": "Enqueued token limit reached"}}, RateLimited),
        (401, {"error": {"message": "wrong key"}}, AccessDenied),
        (503, {"error": {"message": "overloaded"}}, ServerTrouble),
    ],
)
def test_refusals_are_the_errors_of_live_calls(
    status: int, body: object, kind: type[ModelError], tmp_path: Path
) -> None:
    for provider in MODELS:
        with pytest.raises(kind):
            created(provider, body, tmp_path, status)
    with pytest.raises(kind):
        looked("openai", body, status)


def test_lines_that_cannot_be_read_are_left_out_and_errors_have_a_status() -> None:
    good = {"custom_id": "a", "response": {"status_code": 200, "body": completion()}}
    found = results(
        "openai",
        "",
        "{",
        "[]",
        {"response": {}},
        good,
        {"custom_id": "b", "response": None, "error": {"code": "batch_expired", "message": "late"}},
        {"custom_id": "c", "response": None, "error": {"code": "429", "message": "slow"}},
        {"custom_id": "d", "error": {"code": "odd", "message": "broken"}},
        {"custom_id": "e", "response": {"status_code": "x"}},
    )
    assert statuses(found) == [("a", 200), ("b", None), ("c", 429), ("d", 500)]


def test_results_of_messages_have_the_status_of_a_live_error() -> None:
    def told(name: str, **result: object) -> dict[str, object]:
        return {"custom_id": name, "result": result}

    found = results(
        "anthropic",
        "nonsense",
        told("a", type="succeeded", message={"content": []}),
        told("b", type="errored", error={"type": "error", "error": {"type": "invalid_request_error", "message": "m"}}),
        told("c", type="errored", error={"type": "overloaded_error", "message": "m"}),
        told("d", type="errored", error={"type": "new_error", "message": "m"}),
        told("e", type="expired"),
    )
    assert statuses(found) == [("a", 200), ("b", 400), ("c", 529), ("d", 500), ("e", None)]


def test_a_line_larger_than_a_reply_may_be_is_left_out() -> None:
    small = {"custom_id": "small", "response": {"body": {}}}
    found = results("openai", small, {"custom_id": "huge", "response": {"body": "x" * 5 * 2**20}}, small)
    assert [line.custom_id for line in found] == ["small", "small"]


def test_a_lost_batch_is_found_by_its_file() -> None:
    kept = {"id": "b7", "input_file_id": "f1"}

    async def use(api: BatchApi, stub: Stub) -> tuple[str | None, str | None]:
        return await api.find(LostBatch("f1", 3, 0.0, ())), await api.find(LostBatch("f2", 3, 0.0, ()))

    assert run(with_api(says({"data": [{"id": "b1"}, kept]}), "openai", use)) == ("b7", None)


def test_a_lost_batch_without_a_file_is_found_by_size_and_time() -> None:
    def kept(name: str, count: int, created: str) -> dict[str, object]:
        return {"id": name, "created_at": created, "request_counts": {"processing": count, "succeeded": 0}}

    listed = [kept("new", 4, "2026-01-02T00:00:00Z"), kept("mine", 3, "2026-01-01T12:00:00Z")]
    listed += [kept("known", 3, "2026-01-01T12:00:00Z"), kept("old", 3, "2025-01-01T12:00:00Z")]
    since = 1767268800.0 - 60  # noon on the first day of 2026, with clocks a minute apart

    async def use(api: BatchApi, stub: Stub) -> list[str | None]:
        lost = LostBatch("", 3, since, {"known"})
        return [await api.find(lost), await api.find(lost._replace(others={"known", "mine"}))]

    assert run(with_api(says({"data": listed}), "anthropic", use)) == ["mine", None]


def test_a_file_kept_elsewhere_is_fetched_without_the_key() -> None:
    seen: list[Mapping[str, str]] = []

    async def elsewhere(request: web.Request) -> web.StreamResponse:
        seen.append(request.headers.copy())
        return web.Response(text=json.dumps({"custom_id": "a", "response": {"body": completion()}}))

    async def test() -> list[str]:
        async with serving(elsewhere) as other:

            async def moved(request: web.Request) -> web.StreamResponse:
                raise web.HTTPFound(f"http://localhost:{other.port}/kept")

            async def use(api: BatchApi, stub: Stub) -> list[str]:
                return [line.custom_id async for line in api.results(BatchState("done", files=("f1",)))]

            found: list[str] = await with_api(moved, "groq", use)
            return found

    assert run(test()) == ["a"]
    assert [request for request in seen if "Authorization" in request] == []


def test_requests_are_those_of_live_calls() -> None:
    async def use(api: BatchApi, stub: Stub) -> Any:
        return json.loads(api.line("k", question("Nice \ud800!")))

    for provider in MODELS:
        line = run(with_api(says(), provider, use))
        body = line.get("body") or line["params"]
        assert line["custom_id"] == "k"
        assert body["model"] == "m"
        assert body["messages"][-1] == {"role": "user", "content": "Nice ?!"}
