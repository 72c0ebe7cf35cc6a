"""Any Python function as a model: `str -> str` or `list of messages -> str`, sync or async."""

from __future__ import annotations

import asyncio
import functools
import inspect
import re
from collections.abc import Awaitable, Callable, Sequence
from time import perf_counter
from typing import Any, Literal

from pcs_annotator.base.errors import ConfigError, ModelError, ServerTrouble
from pcs_annotator.core.chat import Message, Reply, Request
from pcs_annotator.models.fingerprint import OwnModel
from pcs_annotator.models.wire import as_dicts

Takes = Literal["text", "messages"]
Answering = Callable[[Any], str | Awaitable[str]]
LAMBDA_LINE = re.compile(r"(?<=<lambda>):\d+$")


class FunctionModel(OwnModel):
    """A Python function as a model.

    A function of a text gets the whole conversation as one text: all messages in order, with blank lines between them.
    A function of messages gets a list of `{"role": …, "content": …}`. `takes` says which it is; by default, the
    annotation of its first parameter does (`str` or no annotation means text, anything else messages). A sync function
    runs in a worker thread, so it must be safe to call from several threads at once. If it raises, the call is retried.
    """

    context_tokens: int | None = None

    def __init__(self, function: Answering, *, name: str | None = None, takes: Takes | None = None) -> None:
        self._function = function
        self._takes = takes or _what_it_takes(function)
        self._is_async = _is_async(function)
        full = f"function:{name or _qualified_name(function)}"
        # Known without the line of a lambda, which changes when something above it does.
        super().__init__(full, function, f"{LAMBDA_LINE.sub('', full)}({self._takes})")

    async def ask(self, request: Request) -> Reply:
        """Return what the function returns."""
        question = as_text(request.messages) if self._takes == "text" else as_dicts(request.messages)
        started = perf_counter()
        try:
            answer = self._function(question) if self._is_async else await asyncio.to_thread(self._function, question)
            if inspect.isawaitable(answer):
                answer = await answer
        except ModelError:
            raise
        except Exception as error:
            raise ServerTrouble(f"{self.name} raised {type(error).__name__}: {error}") from error
        if not isinstance(answer, str):
            raise ServerTrouble(f"{self.name} returned {type(answer).__name__} instead of str")
        return Reply(text=answer, latency=perf_counter() - started)


def as_text(messages: Sequence[Message]) -> str:
    """Return a conversation as one text."""
    return "\n\n".join(message.content for message in messages)


def _inner(function: Answering) -> Answering:
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _is_async(function: Answering) -> bool:
    function = _inner(function)
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004  # whether it is async, not whether it is callable


def _qualified_name(function: Answering) -> str:
    function = _inner(function)
    named = function if hasattr(function, "__qualname__") else type(function)
    name = f"{named.__module__}.{named.__qualname__}"
    code = getattr(function, "__code__", None)
    # All lambdas of a module have the same name; the line number distinguishes them.
    return f"{name}:{code.co_firstlineno}" if code is not None and name.endswith("<lambda>") else name


def _what_it_takes(function: Answering) -> Takes:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # some built-in functions have no signature
        return "text"
    if not parameters:
        raise ConfigError(f"{_qualified_name(function)} takes no argument: it must take a text or a list of messages")
    annotation = parameters[0].annotation
    is_text = annotation in (inspect.Parameter.empty, str, Any, object, "str", "Any", "object")
    return "text" if is_text else "messages"
