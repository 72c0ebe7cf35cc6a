"""Models that are given as objects: any Python function, sync or async.

Ledger keys contain a digest of what an object answers by: the source of a function or of an object's class, and the
plain values that it was made with (arguments of a `partial`, defaults, closures, attributes, fields of LangChain
objects). Globals, other functions and clients do not count: after such a change, set `Annotator(…, version=…)`.
"""

import ast
import asyncio
import dis
import inspect
import re
import textwrap
from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from contextlib import suppress
from functools import cached_property, partial
from hashlib import blake2b
from time import perf_counter
from types import FunctionType, MethodType
from typing import Any, Literal
from weakref import WeakKeyDictionary

from pcs_annotator.base.errors import ConfigError, ModelError, ServerTrouble
from pcs_annotator.core.chat import Message, Reply, Request
from pcs_annotator.models.openai import as_dicts
from pcs_annotator.models.provider import CERTAIN_KEY, is_secret_name

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
        parts.append(_state(thing.__self__))
        thing = thing.__func__
    thing = inspect.unwrap(thing)
    parts += [_values(thing)] if isinstance(thing, FunctionType) else [_state(thing)]
    code = thing if isinstance(thing, FunctionType) else type(thing)
    parts += [_name(thing), *_source(code)]
    seen = CERTAIN_KEY.sub("[key]", _ADDRESS.sub("", repr(_plain(parts))))
    return blake2b(seen.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _plain(value: Any) -> object:
    """Return a value whose `repr` is the same in every process and has no key."""
    if isinstance(value, Mapping):
        return sorted((str(name), _plain(part)) for name, part in value.items() if not is_secret_name(str(name)))
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return sorted(map(repr, value)) if isinstance(value, Set) else repr(value)


def _values(function: FunctionType) -> dict[str, object]:
    values = {name: parameter.default for name, parameter in inspect.signature(function).parameters.items()}
    with suppress(ValueError):  # something that is assigned later
        values |= inspect.getclosurevars(function).nonlocals
    return {name: value for name, value in values.items() if name not in _assigned(function)}


def _state(thing: Any) -> dict[str, object]:
    fields = getattr(type(thing), "model_fields", {})  # of pydantic
    state = {**getattr(thing, "__dict__", {}), **(getattr(thing, "__pydantic_extra__", None) or {})}
    if not fields:
        assigned = _assigned(vars(type(thing)).get("__call__"))
        return {name: value for name, value in state.items() if name not in assigned}
    ignored = {name for name in state if _HARMLESS.fullmatch(name) or getattr(fields.get(name), "exclude", False)}
    return {name: value for name, value in state.items() if value is not None and name not in ignored}


def _assigned(function: object) -> set[str]:
    """Return the names of the variables and attributes that a function assigns outside itself, such as a counter."""
    steps = dis.get_instructions(function) if isinstance(function, FunctionType) else ()
    return {step.argval for step in steps if step.opname in ("STORE_DEREF", "STORE_ATTR")}


def _source(thing: Any) -> list[object]:
    code = getattr(thing, "__code__", None)
    source = ""
    with suppress(OSError, TypeError, SyntaxError):  # a lambda in the middle of a line is not a statement
        source = textwrap.dedent(inspect.getsource(code or thing))
        source = ast.unparse(ast.parse(source))  # without comments
    # several lambdas can be in one line
    bytecode = [code.co_code, code.co_names, code.co_consts] if code and (not source or "lambda" in source) else []
    return [source, *bytecode]


class ObjectModel:
    """A model that is given as an object; `thing` is what it answers by, None if the name says everything.

    Ledger keys have `known_as`, by default the name, before the digest of the thing.
    """

    can_constrain = False
    can_grade = False

    def __init__(self, name: str, thing: object, known_as: str = "") -> None:
        self.name = name
        self._known_as = known_as or name
        self._thing = thing

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @cached_property
    def identity(self) -> str:
        """Name and digest, taken at the first question."""
        return self.name if self._thing is None else f"{self._known_as}#{fingerprint(self._thing)}"

    async def close(self) -> None:
        """Do nothing: the object is the user's."""


Takes = Literal["text", "messages"]
Answering = Callable[[Any], str | Awaitable[str]]
LAMBDA_LINE = re.compile(r"(?<=<lambda>):\d+$")


class FunctionModel(ObjectModel):
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
        callee = _inner(function)
        self._is_async = any(map(inspect.iscoroutinefunction, (callee, type(callee).__call__)))
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
