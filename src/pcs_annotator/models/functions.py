"""Models that are given as objects: any Python function, sync or async.

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

from pcs_annotator.base.errors import ConfigError, ModelError, ServerTrouble
from pcs_annotator.core.chat import Reply, Request
from pcs_annotator.models.openai import as_dicts
from pcs_annotator.models.provider import CERTAIN_KEY, Named, is_secret_name

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
