from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import SecretStr

from pcs_annotator.base.errors import (
    AccessDenied,
    ConfigError,
    MissingPackage,
    ModelError,
    RateLimited,
    ServerTrouble,
    Unanswerable,
)
from pcs_annotator.core.chat import ChatModel, Message, Request
from pcs_annotator.models.objects import LangChainModel
from pcs_annotator.models.resolve import resolve_model
from tests.models.stub import KEY, Answer, Stub, ask_once, completion, question, run, says, serving

if TYPE_CHECKING:  # importing them takes a second, in every test process
    from langchain_core.language_models import BaseChatModel
    from langchain_openai import ChatOpenAI


def fake(kind: str, **settings: Any) -> BaseChatModel:
    from langchain_core.language_models import fake_chat_models

    made: BaseChatModel = getattr(fake_chat_models, kind)(**settings)
    return made


def saying(content: Any, **more: Any) -> BaseChatModel:
    from langchain_core.messages import AIMessage

    return fake("GenericFakeChatModel", messages=iter([AIMessage(content, **more)]))


def test_a_model_answers_in_order_and_bound_settings_do_not_change_its_name() -> None:
    model = fake("FakeListChatModel", responses=["positive", "negative"])

    async def go(given: ChatModel) -> list[str]:
        return [(await given.ask(question(max_tokens=5))).text for _ in range(2)]

    for given in (resolve_model(model), resolve_model(model.bind(stop=["x"]))):
        assert given.name == "langchain:FakeListChatModel"
        assert run(go(given)) == ["positive", "negative"]


def test_parts_are_joined_and_a_plain_text_is_taken() -> None:
    class Chain:
        async def ainvoke(self, turns: object) -> str:
            return "text"

    model = saying([{"type": "text", "text": "posi"}, {"type": "text", "text": "tive"}])
    assert run(ask_once(resolve_model(model))).text == "positive"
    assert run(ask_once(LangChainModel(Chain(), name="langchain:mine"))).text == "text"


def test_the_conversation_arrives_with_lone_surrogates_replaced() -> None:
    turns = (Message("system", "s"), Message("user", "u"), Message("assistant", "a"), Message("user", "x\ud800"))
    assert run(ask_once(resolve_model(fake("ParrotFakeChatModel")), Request(messages=turns))).text == "x\ufffd"


def chat_openai(url: str, **more: Any) -> ChatOpenAI:
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(model="gpt-4o-mini", base_url=url, api_key=SecretStr(KEY), **more)


def exchange(answer: Answer | None = None) -> tuple[Any, Stub]:
    async def go() -> tuple[Any, Stub]:
        async with serving(answer) as stub:
            model = resolve_model(chat_openai(stub.url, max_retries=0, temperature=0.7))
            assert model.name == "langchain:ChatOpenAI:gpt-4o-mini"
            assert model.context_tokens == 128_000
            try:
                return await ask_once(model, question(max_tokens=5)), stub
            except ModelError as error:
                return error, stub

    return run(go())


def test_chat_openai_asks_a_real_server() -> None:
    body = completion(id="x", object="chat.completion", created=1, model="m")
    body["usage"]["total_tokens"] = 13
    reply, stub = exchange(says(body))
    assert (reply.text, reply.finish, reply.usage.input_tokens) == ("positive", "stop", 11)
    sent = stub.seen[0].body
    assert (sent["temperature"], sent["max_completion_tokens"]) == (0.0, 5)
    assert [message["role"] for message in sent["messages"]] == ["system", "user"]


@pytest.mark.parametrize("url", ["http://h/v1?api_key=hidden", "http://me:hidden@h/v1"])
def test_a_key_in_the_address_is_refused_without_showing_it(url: str) -> None:
    model = chat_openai(url)
    for given in (model, model.bind(stop=["x"])):
        with pytest.raises(ConfigError, match=r"openai_api_base.*such as api_key") as caught:
            resolve_model(given)
        assert "hidden" not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (401, {"message": f"Incorrect API key {KEY}"}, AccessDenied),
        (404, {"message": "no such model", "code": "model_not_found"}, AccessDenied),
        (429, {"message": "slow"}, RateLimited),
        (429, {"message": "pay", "code": "insufficient_quota"}, AccessDenied),
        (400, {"message": "maximum context length is 5", "code": "context_length_exceeded"}, Unanswerable),
        (400, {"message": "x", "code": "content_filter"}, Unanswerable),
        (500, {"message": "oops"}, ServerTrouble),
    ],
)
def test_errors_of_chat_openai_are_mapped(status: int, error: dict[str, str], kind: type[ModelError]) -> None:
    caught, _ = exchange(says({"error": error}, status, {"Retry-After": "4"}))
    assert type(caught) is kind
    assert KEY not in repr(caught)
    if isinstance(caught, RateLimited):
        assert caught.retry_after == 4.0


class Raising:
    """An object with the interface of a LangChain model."""

    model = "mine"

    def __init__(self, error: Exception) -> None:
        self.error = error

    async def ainvoke(self, turns: object) -> object:
        raise self.error


RateLimitError = type("RateLimitError", (Exception,), {})
Moved = type("Moved", (RateLimitError,), {})


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (RateLimitError("a"), RateLimited),
        (Moved("a"), RateLimited),
        (ConnectionError("reset"), ServerTrouble),
        (TimeoutError(), ServerTrouble),
        (Unanswerable("too long"), Unanswerable),
    ],
)
def test_errors_are_mapped_by_name(error: Exception, kind: type[ModelError]) -> None:
    model = resolve_model(Raising(error))
    assert model.name == "langchain:Raising:mine"
    with pytest.raises(kind):
        run(ask_once(model, question(max_tokens=5)))


def test_init_chat_model_opens_by_name_or_the_error_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert resolve_model("langchain:openai:gpt-4o-mini", {}).name == "langchain:ChatOpenAI:gpt-4o-mini"
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(ConfigError, match="openai:gpt-4o-mini"):
        resolve_model("langchain:openai:gpt-4o-mini", {})
    with pytest.raises(MissingPackage, match="pip install"):
        resolve_model("langchain:anthropic:claude-x", {})
    monkeypatch.setitem(sys.modules, "langchain.chat_models", None)
    with pytest.raises(MissingPackage, match=r"pip install 'perceived-confidence\[langchain\]'"):
        resolve_model("langchain:openai:gpt-4o-mini", {})
