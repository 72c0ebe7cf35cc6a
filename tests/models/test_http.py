import asyncio
from typing import Any

import pytest

from pcs_annotator.base.errors import ModelError
from pcs_annotator.models import http, provider
from pcs_annotator.models.resolve import resolve_model
from tests.models.stub import ask_once, question, run, says, serving


def test_models_of_one_host_share_a_session_and_its_connections_and_others_do_not() -> None:
    async def go() -> None:
        async with serving() as stub, serving() as other:
            models = [resolve_model(f"{host}:m", stub.opens(host)) for host in ("groq", "vllm", "openai")]
            for model in models:
                await model.ask(question())
            assert (len({seen.peer for seen in stub.seen}), len(provider._shared)) == (1, 1)
            models.append(resolve_model("groq:m", other.opens("groq")))
            await models[-1].ask(question())
            assert len(provider._shared) == 2
            await models[0].close()
            await models[1].ask(question())  # the session stays open for the others
            for model in models:
                await model.close()

    run(go())
    assert not provider._shared


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
@pytest.mark.parametrize("closed", [False, True])
def test_a_model_works_again_in_another_loop_closed_or_not(closed: bool) -> None:
    model: Any = None

    async def go(close: bool) -> str:
        nonlocal model
        async with serving() as stub:
            model = model or resolve_model("groq:x", stub.opens("groq"))
            model.url = f"{stub.url}/chat/completions"
            reply = await (ask_once(model) if close else model.ask(question()))
            return str(reply.text)

    assert [run(go(closed)), run(go(True))] == ["positive", "positive"]


def test_the_proxy_from_the_environment_is_used_but_not_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("no_proxy", "NO_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    assert http._proxy("https", "api.openai.com") == "http://proxy:3128"
    assert http._proxy("http", "127.0.0.1") is None
    monkeypatch.setenv("no_proxy", "api.openai.com")
    assert http._proxy("https", "api.openai.com") is None


@pytest.mark.parametrize("host", ["openai", "anthropic"])
def test_a_redirect_is_not_followed_so_no_other_host_gets_the_key(host: str) -> None:
    async def go() -> None:
        async with serving() as other, serving(says("", 307, {"Location": f"{other.url}/elsewhere"})) as stub:
            model = resolve_model(f"{host}:m", stub.opens(host))
            with pytest.raises(ModelError):
                await model.ask(question())
            await model.close()
            assert len(stub.seen) == 1
            assert other.seen == []

    run(go())
