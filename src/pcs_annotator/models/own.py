"""Models that are given as objects: any Python function, sync or async; and what tells a changed one from its past.

A digest stands for what a function or a LangChain object answers by. What counts: the source of a function or of an
object's class (bytecode where there is no source), and what it uses: argument defaults, closures, globals, attributes,
fields of LangChain objects; the user's own functions and classes are followed, other things count as `repr` shows them.
What does not count: comments, keys and passwords, what a function itself assigns anew, such as a counter, and globals
that only functions inside it or other methods than `__call__` use. Objects without a `repr`, such as a client, are
listed as unseen.
"""

import ast
import asyncio
import dis
import functools
import inspect
import re
import sys
import textwrap
from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from contextlib import suppress
from functools import cached_property, partial
from hashlib import blake2b
from pathlib import PurePath
from time import perf_counter
from types import FunctionType, MethodType
from typing import Any, Literal, NamedTuple
from weakref import WeakKeyDictionary, WeakSet

from pcs_annotator.base.errors import ConfigError, ModelError, ServerTrouble, warn_user
from pcs_annotator.core.chat import Message, Reply, Request
from pcs_annotator.models.provider import CERTAIN_KEY, is_secret_name
from pcs_annotator.models.wire import as_dicts

DIGEST_BYTES = 8
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_UNSEEN = re.compile(r"<(?:built-in function )?((?!_thread|threading|asyncio|logging)[\w.]+)(?: object.*?)? at 0x\w+>")
# Fields of LangChain's classes that do not shape answers; clients, callbacks, tags and caches are marked as excluded.
_HARMLESS = re.compile(
    r"name|max_retries|\w*timeout|\w*stream\w*|include_response_headers|tiktoken_model_name|config_factories"
)


class CodeFingerprint(NamedTuple):
    """A digest that is the same in every process, and the classes of the parts whose changes it does not show."""

    digest: str
    unseen: tuple[str, ...]


def fingerprint(thing: object) -> CodeFingerprint:
    """Return the digest of a function, a callable object or a LangChain object."""
    try:
        told = _told(thing, [])
    except Exception:  # nested too deeply, changed by a thread meanwhile, or an attribute that raises
        return CodeFingerprint("", (_name(type(thing)),))
    unseen = set(_UNSEEN.findall(told)) if _used(thing) else {_name(thing if callable(thing) else type(thing))}
    seen = CERTAIN_KEY.sub("[key]", _ADDRESS.sub("", told)).encode("utf-8", "surrogatepass")
    return CodeFingerprint(blake2b(seen, digest_size=DIGEST_BYTES).hexdigest(), tuple(sorted(unseen)))


_FIRST: WeakKeyDictionary[FunctionType, CodeFingerprint] = WeakKeyDictionary()
_SAID_CHANGED: WeakSet[FunctionType] = WeakSet()


def first_fingerprint(thing: object) -> CodeFingerprint:
    """Return the digest that a function had when it was first used: a global that it fills makes no other model of it.

    A `PcsWarning` says once that something has changed. Settings of other objects count as they are now.
    """
    found = fingerprint(thing)
    if not isinstance(thing, FunctionType):
        return found
    first = _FIRST.setdefault(thing, found)
    if first.digest != found.digest and thing not in _SAID_CHANGED:
        _SAID_CHANGED.add(thing)
        warn_user(
            f"a value that {_name(thing)} uses has changed since its first call; it still counts as the same model, "
            "and its old answers are used: if it answers differently now, set another version, as in "
            "Annotator(model, version='2')"
        )
    return first


class OwnModel:
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
        """Name and digest, read at the first question; a `PcsWarning` names what it does not show."""
        if self._thing is None:
            return self.name
        found = first_fingerprint(self._thing)
        if found.unseen:
            warn_user(
                f"{self._known_as}: the ledger does not notice when {', '.join(found.unseen)} changes, and uses the "
                "old answers: after such a change, set another version, as in Annotator(model, version='2')"
            )
        return f"{self._known_as}#{found.digest}"

    async def close(self) -> None:
        """Do nothing: the object is the user's."""


def _told(thing: Any, known: list[object]) -> str:
    """Return what counts of a thing as a text; code and objects that are `known` already were told before."""
    if isinstance(thing, Mapping):
        shown = {str(name): value for name, value in thing.items() if not is_secret_name(str(name))}
        return "\n".join(f"{name}: {_told(shown[name], known)}" for name in sorted(shown))
    if isinstance(thing, list | tuple | Set):
        each = [_told(part, known) for part in thing]
        return repr(sorted(each) if isinstance(thing, Set) else each)
    used = {} if any(thing is one for one in known) else _used(thing)
    if used:
        known.append(thing)
        return f"{_name(thing)} {_told(used, known)}"
    return repr(thing.tolist() if hasattr(thing, "tolist") else thing)


def _used(thing: Any) -> dict[str, Any]:
    """Return name → value of what code answers by; nothing for other things."""
    kind, is_code = type(thing), isinstance(thing, FunctionType | type)
    if isinstance(thing, partial):
        return {"function": thing.func, "args": thing.args, **thing.keywords}
    if isinstance(thing, MethodType):
        return {"function": thing.__func__, "self": thing.__self__}
    if is_code and _is_own(thing):
        return _of_code(thing)
    if is_code or hasattr(thing, "__wrapped__"):  # such as a function that a package caches or retries
        return {"function": thing.__wrapped__} if hasattr(thing, "__wrapped__") else {}
    if isinstance(getattr(kind, "model_fields", None), Mapping):  # pydantic: a field that a later version adds is None
        excluded = {name for name, one in kind.model_fields.items() if getattr(one, "exclude", False)}
        state = {**vars(thing), **(getattr(thing, "__pydantic_extra__", None) or {})}
        left = {name for name, one in state.items() if one is None or name in excluded or _HARMLESS.fullmatch(name)}
    elif hasattr(thing, "ainvoke") or _is_own(kind):
        stored: Any = object.__getstate__(thing)  # not the class's own, which may be a list or leave parts out
        parts = stored if isinstance(stored, tuple) else (stored,)  # attributes, and slots
        state = {name: value for part in parts for name, value in (part or {}).items()}
        left = _assigned(getattr(kind, "__call__", None))  # noqa: B004  # its code is wanted
    else:
        return {}
    return {"class": kind, **{name: value for name, value in state.items() if name not in left}}


def _of_code(thing: Any) -> dict[str, Any]:
    source = ""
    with suppress(OSError, TypeError, SyntaxError):  # a lambda in the middle of a line is not a statement
        source = textwrap.dedent(inspect.getsource(getattr(thing, "__code__", thing)))
        source = ast.unparse(ast.parse(source))  # without comments
    if isinstance(thing, type):
        return {"source": source, "call": vars(thing).get("__call__"), "bases": thing.__bases__}
    parameters = inspect.signature(thing, follow_wrapped=False).parameters
    used: dict[str, Any] = {name: one.default for name, one in parameters.items()}
    with suppress(ValueError):  # something that is assigned later
        seen, assigned = inspect.getclosurevars(thing), _assigned(thing)
        used |= {name: one for name, one in {**seen.globals, **seen.nonlocals}.items() if name not in assigned}
    code = thing.__code__
    if not source or code.co_name == "<lambda>":  # several can be in one line
        used["code"] = code.co_code, code.co_names, [one for one in code.co_consts if not hasattr(one, "co_code")]
    return {**used, "source": source}


def _assigned(function: object) -> set[str]:
    """Return the names of the variables and attributes that a function assigns outside itself."""
    steps = dis.get_instructions(function) if isinstance(function, FunctionType) else ()
    return {step.argval for step in steps if step.opname in ("STORE_GLOBAL", "STORE_DEREF", "STORE_ATTR")}


def _name(thing: Any) -> str:
    named = thing if hasattr(thing, "__qualname__") else type(thing)
    return f"{getattr(named, '__module__', None) or 'builtins'}.{named.__qualname__}"


def _is_own(thing: Any) -> bool:
    """Return whether a function or class is of the user's module, rather than Python's or of an installed package."""
    module = getattr(thing, "__globals__", {}).get("__name__") or thing.__module__ or ""  # not of what it wraps
    path = getattr(sys.modules.get(module), "__file__", None) or ""
    known = module.partition(".")[0] in (*sys.stdlib_module_names, __name__.partition(".")[0])
    return not known and not {"site-packages", "dist-packages"} & set(PurePath(path).parts)


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
