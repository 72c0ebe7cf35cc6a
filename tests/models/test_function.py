from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable
from typing import Any

import pytest

from pcs_annotator.base.errors import ConfigError, RateLimited, ServerTrouble
from pcs_annotator.core.chat import Message, Request
from pcs_annotator.models.own import FunctionModel
from pcs_annotator.models.resolve import resolve_model
from tests.models.stub import ask_once, question, run


def shout(text: str) -> str:
    return text.upper()


async def whisper(text: str) -> str:
    await asyncio.sleep(0)
    return text.lower()


def roles(messages: list[dict[str, str]]) -> str:
    return ",".join(message["role"] for message in messages)


class Callable_:
    async def __call__(self, text: str) -> str:
        return "object"


@pytest.mark.parametrize(
    ("function", "answer"),
    [
        (shout, "LABEL IT.\n\nNICE!"),
        (whisper, "label it.\n\nnice!"),
        (roles, "system,user"),
        (lambda text: f"<{text}>", "<Label it.\n\nNice!>"),
        (Callable_(), "object"),
        (functools.partial(shout), "LABEL IT.\n\nNICE!"),
        (lambda text: whisper(text + "!"), "label it.\n\nnice!!"),
    ],
)
def test_functions_answer(function: Callable[[Any], Any], answer: str) -> None:
    assert run(ask_once(resolve_model(function))).text == answer


def test_what_a_function_takes_can_be_specified() -> None:
    model = FunctionModel(lambda messages: messages[0]["role"], takes="messages", name="mine")
    assert run(ask_once(model)).text == "system"
    assert model.name == "function:mine"
    assert repr(model) == "FunctionModel('function:mine')"


def test_a_sync_function_does_not_block_the_loop() -> None:
    model = FunctionModel(lambda text: threading.current_thread().name)
    assert run(ask_once(model)).text != threading.current_thread().name


def test_two_lambdas_have_two_names() -> None:
    first = FunctionModel(lambda text: "a")
    second = FunctionModel(lambda text: "b")
    assert first.name != second.name
    assert FunctionModel(shout).name == f"function:{__name__}.shout"


def test_an_exception_is_server_trouble_and_a_model_error_is_raised_unchanged() -> None:
    def breaks(text: str) -> str:
        raise ValueError("no luck")

    def limited(text: str) -> str:
        raise RateLimited("slow down", 3.0)

    with pytest.raises(ServerTrouble, match="ValueError: no luck"):
        run(ask_once(FunctionModel(breaks)))
    with pytest.raises(RateLimited):
        run(ask_once(FunctionModel(limited)))


def test_an_answer_that_is_not_a_text_is_server_trouble() -> None:
    with pytest.raises(ServerTrouble, match="NoneType"):
        run(ask_once(FunctionModel(lambda text: None)))  # type: ignore[arg-type,return-value]  # this is what is tested


def test_a_function_without_arguments_is_refused() -> None:
    with pytest.raises(ConfigError, match="no argument"):
        resolve_model(lambda: "x")


def test_a_builtin_without_a_signature_gets_text() -> None:
    model = FunctionModel(type("Odd", (), {"__signature__": 3, "__call__": lambda self, text: text})())
    assert run(ask_once(model, Request(messages=(Message("user", "hi"),)))).text == "hi"
    assert question().messages[0].role == "system"
