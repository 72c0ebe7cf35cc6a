"""Models that are given as objects: any Python function, sync or async, and any LangChain chat model.

Ledger keys contain a digest of the source of a function, or of an object's class, and of the values it was made with:
arguments of a `partial`, defaults, closures, attributes, fields of LangChain objects. Globals, other functions and
clients do not count: after such a change, set `Annotator(…, version=…)`.
"""

import ast
import asyncio
import dis
import inspect
import re
import textwrap
from collections.abc import Awaitable, Callable, Mapping, Set
from contextlib import suppress
from functools import cached_property, partial
from hashlib import blake2b
from time import perf_counter
from types import FunctionType, MethodType
from typing import Any
from weakref import WeakKeyDictionary

from pcs_annotator.base.errors import ConfigError, MissingPackage, ModelError, ServerTrouble
from pcs_annotator.core.chat import ChatModel, Reply, Request, sendable
from pcs_annotator.models.catalog import context_of
from pcs_annotator.models.failures import CallSite, Complaint, failure
from pcs_annotator.models.openai import FINISHES, as_dicts, finish_of, join_parts, usage_of
from pcs_annotator.models.provider import CERTAIN_KEY, Named, is_secret_name, opens, refuse_key
from pcs_annotator.models.reasoning import ask_with_room, has_thought, usual_room, with_room

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
# Fields of LangChain's classes that do not shape answers; clients, callbacks, tags and caches are marked as excluded.
_HARMLESS = re.compile(
    r"name|max_retries|\w*timeout|\w*stream\w*|include_response_headers|tiktoken_model_name|config_factories"
)


_first_digests: WeakKeyDictionary[FunctionType, str] = WeakKeyDictionary()


def fingerprint(thing: Any) -> str:
    """Return a digest of the source and the plain values of a function or an object, the same in every process.

    A function keeps the digest that it had first: a list that it fills does not make another model of it.
    """
    if isinstance(thing, FunctionType):
        return _first_digests.setdefault(thing, _digest(thing))
    return _digest(thing)


def _digest(thing: Any) -> str:
    parts: list[object] = []
    while isinstance(thing, partial):
        parts += [thing.args, thing.keywords]
        thing = thing.func
    if isinstance(thing, MethodType):
        parts.append(_values(thing.__self__))
        thing = thing.__func__
    thing = inspect.unwrap(thing)
    code = thing if isinstance(thing, FunctionType) else type(thing)
    parts += [_values(thing), _name(thing), *_source(code)]
    seen = CERTAIN_KEY.sub("[key]", _ADDRESS.sub("", repr(_plain(parts))))
    return blake2b(seen.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _plain(value: Any) -> object:
    """Return a value whose `repr` is the same in every process and has no key."""
    if isinstance(value, Mapping):
        return sorted((str(name), _plain(part)) for name, part in value.items() if not is_secret_name(str(name)))
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return sorted(map(repr, value)) if isinstance(value, Set) else repr(value)


def _values(thing: Any) -> dict[str, object]:
    """Return defaults and closure of a function, or attributes of an object, but for what shapes no answer."""
    if isinstance(thing, FunctionType):
        values = {name: parameter.default for name, parameter in inspect.signature(thing).parameters.items()}
        with suppress(ValueError):  # something that is assigned later
            values |= inspect.getclosurevars(thing).nonlocals
        return values
    values = {**getattr(thing, "__dict__", {}), **(getattr(thing, "__pydantic_extra__", None) or {})}
    fields = getattr(type(thing), "model_fields", {})  # of pydantic
    if fields:
        unused = {name for name in values if _HARMLESS.fullmatch(name) or getattr(fields.get(name), "exclude", False)}
        return {name: value for name, value in values.items() if value is not None and name not in unused}
    call = vars(type(thing)).get("__call__")
    # attributes that a call assigns, such as a counter
    steps = dis.get_instructions(call) if isinstance(call, FunctionType) else ()
    assigned = {step.argval for step in steps if step.opname == "STORE_ATTR"}
    return {name: value for name, value in values.items() if name not in assigned}


def _source(thing: Any) -> list[object]:
    code = getattr(thing, "__code__", None)
    source = ""
    with suppress(OSError, TypeError, SyntaxError):  # a lambda in the middle of a line is not a statement
        source = textwrap.dedent(inspect.getsource(code or thing))
        source = ast.unparse(ast.parse(source))  # without comments
    # several lambdas can be in one line
    bytecode = [code.co_code, code.co_names, code.co_consts] if code and (not source or "lambda" in source) else []
    return [source, *bytecode]


class ObjectModel(Named):
    """A model that is given as an object; `thing` is what it answers by, None if the name says everything."""

    can_constrain = False
    can_grade = False

    def __init__(self, name: str, thing: object, known_as: str = "") -> None:
        self.name = name
        self._known_as = known_as or name
        self._thing = thing

    @cached_property
    def identity(self) -> str:
        """Name and digest, taken at the first question."""
        return self.name if self._thing is None else f"{self._known_as}#{fingerprint(self._thing)}"

    async def close(self) -> None:
        """Do nothing: the object is the user's."""


Answering = Callable[[Any], str | Awaitable[str]]
LAMBDA_LINE = re.compile(r"(?<=<lambda>):\d+$")


class FunctionModel(ObjectModel):
    """A Python function as a model; if it raises, the call is retried.

    If its first parameter is annotated as `str` or not at all, it gets the whole conversation as one text; else a list
    of `{"role": …, "content": …}`. A sync function is called from several worker threads at once.
    """

    context_tokens: int | None = None

    def __init__(self, function: Answering, *, name: str | None = None) -> None:
        self._function = function
        self._takes = "text" if _takes_text(function) else "messages"
        callee = _inner(function)
        self._is_async = any(map(inspect.iscoroutinefunction, (callee, type(callee).__call__)))
        full = f"function:{name or _qualified_name(function)}"
        # Known without the line of a lambda, which changes when something above it does.
        super().__init__(full, function, f"{LAMBDA_LINE.sub('', full)}({self._takes})")

    async def ask(self, request: Request) -> Reply:
        """Return what the function returns."""
        messages = request.messages
        question = "\n\n".join(turn.content for turn in messages) if self._takes == "text" else as_dicts(messages)
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


def _inner(function: Answering) -> Answering:
    while isinstance(function, partial):
        function = function.func
    return function


def _name(thing: Any) -> str:
    named = thing if hasattr(thing, "__qualname__") else type(thing)
    return f"{getattr(named, '__module__', None) or 'builtins'}.{named.__qualname__}"


def _qualified_name(function: Answering) -> str:
    function = _inner(function)
    name, code = _name(function), getattr(function, "__code__", None)
    # All lambdas of a module have the same name; the line number distinguishes them.
    return f"{name}:{code.co_firstlineno}" if code is not None and name.endswith("<lambda>") else name


def _takes_text(function: Answering) -> bool:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # some built-in functions have no signature
        return True
    if not parameters:
        raise ConfigError(f"{_qualified_name(function)} takes no argument: it must take a text or a list of messages")
    return parameters[0].annotation in (inspect.Parameter.empty, str, Any, object, "str", "Any", "object")


INSTALL = "pip install 'perceived-confidence[langchain]'"
ROLES = {"system": "system", "user": "human", "assistant": "ai"}
# How LangChain's model classes call the limit of an answer.
LIMITS = ("max_tokens", "max_output_tokens", "max_completion_tokens", "num_predict", "max_new_tokens")
# HTTP status by class name, for exceptions of vendors' clients that carry none.
STATUS_BY_NAME = {"AuthenticationError": 401, "PermissionDeniedError": 403, "NotFoundError": 404, "RateLimitError": 429}
STATUS_BY_NAME |= {"ResourceExhausted": 429, "ContextOverflowError": 413, "OpenAIContextOverflowError": 413}


class LangChainModel(ObjectModel):
    """A LangChain chat model, called through `ainvoke`; one opened by its name is known by that name alone.

    Temperature and limit are set on a copy of the object, if it has fields for them: passing them with every call fails
    for integrations whose client does not know them.
    """

    def __init__(self, model: Any, *, name: str | None = None, by_name: bool = False) -> None:
        super().__init__(name or _model_name(model), None if by_name else model)
        _refuse_keys(model, self.name)
        self.context_tokens = context_of(self.name)
        self._model = model
        self.thinking_tokens = usual_room(self.name)
        self._tuned: dict[int | None, Any] = {}
        self._site = CallSite(name=self.name, model=self.name.rpartition(":")[2], url="LangChain")

    async def ask(self, request: Request) -> Reply:
        """Return the answer to one request, sent once, or again with room to think."""
        return await ask_with_room(self, partial(self._ask, request))

    async def _ask(self, request: Request) -> Reply:
        limit = with_room(request, self.thinking_tokens).max_tokens
        if limit not in self._tuned:
            self._tuned[limit] = _tune(self._model, limit)
        turns = [(ROLES[message.role], sendable(message.content)) for message in request.messages]
        started = perf_counter()
        try:
            message = await self._tuned[limit].ainvoke(turns)
        except ModelError:
            raise
        except Exception as error:
            raise self._failure(error) from None
        return _reply(message, perf_counter() - started)

    def _failure(self, error: Exception) -> ModelError:
        status = _status(error)
        body = getattr(error, "body", None)
        code = body.get("code") or body.get("type") if isinstance(body, dict) else getattr(error, "code", None)
        complaint = Complaint(str(error), str(code or ""))
        if status is not None:
            headers = getattr(getattr(error, "response", None), "headers", None) or {}
            return failure(self._site, status, complaint, headers)
        message = self._site.scrub(str(error))
        return ServerTrouble(f"{self.name}: {type(error).__name__}: {message}")


@opens("langchain")
def open_langchain(model: str, environment: Mapping[str, str]) -> ChatModel:
    """Return `langchain:provider:model` through `init_chat_model`; a missing package is named with its `pip` line."""
    try:
        from langchain.chat_models import init_chat_model
    except ImportError:
        raise MissingPackage(f"langchain:{model} needs LangChain: {INSTALL}") from None
    try:
        return LangChainModel(init_chat_model(model), by_name=True)
    except ImportError as error:
        raise MissingPackage(f"langchain:{model}: {error}") from None
    except Exception as error:  # each integration raises its own error for a missing key
        message = CallSite(name="langchain", model=model, url="").scrub(str(error))
        raise ConfigError(f"LangChain cannot open {model!r}: {message}") from None


def _refuse_keys(model: Any, name: str) -> None:
    for field, value in getattr(_unbound(model), "__dict__", {}).items():
        if isinstance(value, str) and "://" in value and "proxy" not in field:
            refuse_key(value, f"{name}: {field}", "pass the key in its own argument, such as api_key")


def _unbound(model: Any) -> Any:
    bound = getattr(model, "bound", None)  # a model with settings bound to it
    return bound if bound is not None and hasattr(bound, "ainvoke") else model


def _model_name(model: Any) -> str:
    inner = _unbound(model)
    for field in ("model_name", "model", "model_id", "deployment_name", "repo_id"):
        value = getattr(inner, field, None)
        if isinstance(value, str) and value:
            return f"langchain:{type(inner).__name__}:{value}"
    return f"langchain:{type(inner).__name__}"


def _tune(model: Any, limit: int | None) -> Any:
    fields = getattr(type(model), "model_fields", None)
    if not isinstance(fields, Mapping):
        return model
    update: dict[str, float] = {"temperature": 0.0} if "temperature" in fields else {}
    limit_field = next((name for name in LIMITS if name in fields), None)
    if limit is not None and limit_field is not None:
        update[limit_field] = limit
    return model.model_copy(update=update) if update else model


def _status(error: Exception) -> int | None:
    for holder in (error, getattr(error, "response", None)):
        for field in ("status_code", "http_status", "status", "code"):
            status = getattr(holder, field, None)
            if isinstance(status, int) and 300 <= status < 600:
                return status
    names = (cls.__name__ for cls in type(error).__mro__)
    return next((STATUS_BY_NAME[name] for name in names if name in STATUS_BY_NAME), None)


def _reply(message: Any, latency: float) -> Reply:
    content = getattr(message, "content", message)
    metadata = getattr(message, "response_metadata", None) or {}
    ended = metadata.get("finish_reason") or metadata.get("stop_reason") or metadata.get("done_reason")
    return Reply(
        text=content if isinstance(content, str) else join_parts(content),
        finish=finish_of(ended.lower() if isinstance(ended, str) else ended, FINISHES),
        usage=usage_of(getattr(message, "usage_metadata", None), "input_tokens", "output_tokens"),
        latency=latency,
        thought=has_thought({"content": content, **(getattr(message, "additional_kwargs", None) or {})}),
    )
