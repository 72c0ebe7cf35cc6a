import asyncio
from typing import Any

import pytest

from pcs_annotator.models import http, provider
from pcs_annotator.models.resolve import resolve_model
from tests.models.stub import ask_once, question, run, serving


def test_models_of_one_host_share_a_session_and_its_connections() -> None:
    async def go() -> tuple[int, int]:
        async with serving() as stub:
            models = [resolve_model(f"{host}:m", stub.opens(host)) for host in ("groq", "vllm", "openai")]
            for model in models:
                await model.ask(question())
            sockets = {seen.peer for seen in stub.seen}
            open_sessions = len(provider._shared)
            for model in models:
                await model.close()
            return len(sockets), open_sessions

    assert run(go()) == (1, 1)
    assert not provider._shared


def test_a_session_stays_open_for_the_others() -> None:
    async def go() -> None:
        async with serving() as stub:
            first, second = (resolve_model(f"groq:{name}", stub.opens("groq")) for name in "ab")
            await asyncio.gather(first.ask(question()), second.ask(question()))
            await first.close()
            await second.ask(question())
            await first.ask(question())
            await second.close()
            await first.close()

    run(go())
    assert not provider._shared


def test_a_closed_model_works_again_in_another_loop() -> None:
    model: Any = None

    async def go() -> str:
        nonlocal model
        async with serving() as stub:
            model = model or resolve_model("groq:x", stub.opens("groq"))
            model.url = f"{stub.url}/chat/completions"
            return (await ask_once(model)).text

    assert [run(go()), run(go())] == ["positive", "positive"]


def test_closing_from_another_loop_closes_in_the_right_one() -> None:
    async def go() -> None:
        async with serving() as stub:
            model = resolve_model("groq:x", stub.opens("groq"))
            await model.ask(question())
            ((pool, _),) = provider._shared.values()
            await asyncio.to_thread(asyncio.run, model.close())
            assert pool.closed

    run(go())


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_loop_that_ended_without_closing_does_not_block_the_next() -> None:
    model: Any = None

    async def go(close: bool) -> str:
        nonlocal model
        async with serving() as stub:
            model = model or resolve_model("groq:x", stub.opens("groq"))
            model.url = f"{stub.url}/chat/completions"
            reply = await (ask_once(model) if close else model.ask(question()))
            return str(reply.text)

    assert [run(go(False)), run(go(True))] == ["positive", "positive"]


def test_models_at_different_addresses_share_no_session() -> None:
    async def go() -> int:
        async with serving() as one, serving() as other:
            models = [resolve_model("groq:m", stub.opens("groq")) for stub in (one, other)]
            await asyncio.gather(*(model.ask(question()) for model in models))
            count = len(provider._shared)
            await asyncio.gather(*(model.close() for model in models))
            return count

    assert run(go()) == 2


def test_the_proxy_from_the_environment_is_used_but_not_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("no_proxy", "NO_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    assert http._proxy("https", "api.openai.com") == "http://proxy:3128"
    assert http._proxy("http", "127.0.0.1") is None
    monkeypatch.setenv("no_proxy", "api.openai.com")
    assert http._proxy("https", "api.openai.com") is None
