"""A digest of what a function or a LangChain object answers by, so that a changed one counts as another model.

What counts: the bytecode of functions and of their own classes; defaults, closures and attributes; the globals that a
function reads; arguments of a `partial`; the state of objects; the fields of LangChain and other pydantic objects.
Code of the user's own modules is followed to any depth; code of installed packages counts by its name. What does not
count: keys and passwords, locks and loggers, and whatever a function itself assigns anew, such as a counter. Objects of
installed packages, such as a client, cannot be looked into: they are listed as unseen.
"""

from __future__ import annotations

import dis
import re
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import is_dataclass
from datetime import date, time, timedelta, tzinfo
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import cached_property, partial
from hashlib import blake2b
from pathlib import PurePath
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple
from uuid import UUID

from pcs_annotator.base.errors import PcsWarning
from pcs_annotator.models.keys import CERTAIN_KEY, is_secret_name

DIGEST_BYTES = 8
MOST_PARTS = 20_000
LARGEST_ARRAY = 2**26
_SHOWN_WHOLE = (
    bool, int, float, complex, bytes, bytearray, range, slice, type(None), type(...), type(NotImplemented),
    date, time, timedelta, tzinfo, Decimal, Fraction, PurePath, UUID,
)  # fmt: skip
_HARMLESS_MODULES = frozenset({"_thread", "threading", "logging", "asyncio.locks"})
# Fields of LangChain's classes that do not shape answers; clients, callbacks, tags and caches are marked as excluded.
_HARMLESS_FIELDS = frozenset(
    {
        "name", "max_retries", "request_timeout", "timeout", "streaming", "stream_usage", "disable_streaming",
        "include_response_headers", "tiktoken_model_name", "config_factories",
    }
)  # fmt: skip


_PARTS: tuple[tuple[type, tuple[str, ...]], ...] = (
    (
        CodeType,
        (
            "co_code", "co_exceptiontable", "co_consts", "co_names", "co_varnames", "co_freevars", "co_cellvars",
            "co_argcount", "co_posonlyargcount", "co_kwonlyargcount", "co_flags",
        ),
    ),
    (Enum, ("name", "value")),
    (ModuleType, ("__name__",)),
    (classmethod, ("__func__",)),
    (partial, ("func", "args", "keywords")),
    (property, ("fget",)),
    (re.Pattern, ("pattern", "flags")),
    (staticmethod, ("__func__",)),
)  # fmt: skip


class Fingerprint(NamedTuple):
    """What something answers by.

    Attributes:
        digest: The same in every process, for the same version of Python.
        unseen: The classes of the parts whose changes it does not show.
    """

    digest: str
    unseen: tuple[str, ...]


def fingerprint(thing: object) -> Fingerprint:
    """Return the digest of a function, a callable object or a LangChain object."""
    reader = _Reader(thing)
    try:
        digest = reader.read(thing)
    except Exception:  # too large, nested too deeply, changed by a thread meanwhile, or an attribute that raises
        return Fingerprint("", (_name(type(thing)),))
    return Fingerprint(digest.hex(), tuple(sorted(reader.unseen)))


class Identity:
    """What ledger keys call a model that is given as an object: its name and the digest of what it answers by."""

    def __init__(self, name: str, thing: object) -> None:
        self._name = name
        self._thing = thing

    @cached_property
    def text(self) -> str:
        """Name and digest, read at the first question; a `PcsWarning` names what it does not show."""
        found = fingerprint(self._thing)
        if found.unseen:
            _warn(
                f"{self._name}: the ledger does not notice when {', '.join(found.unseen)} changes, and uses the old "
                "answers: after such a change, set another version"
            )
        return f"{self._name}#{found.digest}"

    def check(self) -> None:
        """Warn if answering changed what the model answers by: the next run would then ask everything again."""
        if "text" in self.__dict__ and self.text != f"{self._name}#{fingerprint(self._thing).digest}":
            _warn(
                f"{self._name} changes while it answers (a list, dict or object that it uses has other contents now), "
                "so the next run in this process takes it for another model and asks again: set a version to keep its "
                "answers"
            )


def _warn(message: str) -> None:
    warnings.warn(f"{message}, as in Annotator(model, version='2')", PcsWarning, stacklevel=4)


class _Names(NamedTuple):
    """The names that a piece of code uses."""

    read: frozenset[str]
    attributes: frozenset[str]
    assigned: frozenset[str]


class _Reader:
    def __init__(self, root: object) -> None:
        self.unseen: set[str] = set()
        self._root = root
        self._known: dict[int, bytes] = {}
        self._kept: list[object] = []  # as long as a thing is kept, no other has its id
        self._depth = 0

    def read(self, thing: object) -> bytes:
        if isinstance(thing, str):
            return _hash((b"str", CERTAIN_KEY.sub("[key]", thing).encode("utf-8", "surrogatepass")))
        if isinstance(thing, _SHOWN_WHOLE) and not isinstance(thing, Enum):
            return _hash((_name(type(thing)).encode(), repr(thing).encode("utf-8", "surrogatepass")))
        known = self._known.get(id(thing))
        if known is not None:
            return known
        if len(self._kept) >= MOST_PARTS:
            raise RuntimeError
        self._kept.append(thing)
        self._depth += 1
        self._known[id(thing)] = b"%d" % self._depth  # stands for the thing inside itself
        digest = self._known[id(thing)] = _hash(self._parts(thing))
        self._depth -= 1
        return digest

    def _parts(self, thing: Any) -> Iterator[bytes]:
        yield _name(type(thing)).encode()
        for kind, names in _PARTS:
            if isinstance(thing, kind):
                yield from (self.read(getattr(thing, name)) for name in names)
                return
        if isinstance(thing, FunctionType):
            own = thing is self._root or _is_own(thing.__globals__.get("__name__"))
            yield from self._function(thing) if own else (_name(thing).encode(),)
        elif isinstance(thing, type):
            yield from self._class(thing)
        elif isinstance(thing, MethodType):
            yield self.read(thing.__func__)
            own = _is_own(type(thing.__self__).__module__)
            yield from self._object(thing.__self__, _names(thing.__func__)) if own else (self.read(thing.__self__),)
        elif isinstance(getattr(type(thing), "model_fields", None), Mapping):
            yield from self._pydantic(thing)
        elif hasattr(thing, "tobytes") and hasattr(thing, "dtype"):
            yield from self._array(thing)
        else:
            yield from self._contents(thing)
            call = getattr(type(thing), "__call__", None)  # noqa: B004  # its code is wanted
            yield from self._object(thing, _names(call)) if _is_open(thing) else ()

    def _contents(self, thing: Any) -> Iterable[bytes]:
        """Return the parts of a container, or of a function that is not written in Python."""
        if isinstance(thing, Mapping):
            return self._pairs(thing.items())
        if isinstance(thing, list | tuple | deque):
            return map(self.read, thing)
        if isinstance(thing, Set):
            return sorted(map(self.read, thing))
        if hasattr(thing, "__wrapped__"):  # such as a function with a cache
            return (self.read(thing.__wrapped__),)
        if isinstance(thing, BuiltinFunctionType) and not isinstance(thing.__self__, ModuleType | type(None)):
            return _name(thing).encode(), self.read(thing.__self__)
        # functions of packages may be named by others, but a model that is one cannot be looked into
        known = thing is not self._root if hasattr(thing, "__name__") else type(thing).__module__ in _HARMLESS_MODULES
        if not known and not _is_open(thing):
            self.unseen.add(_name(thing))
        return (_name(thing).encode(),)

    def _object(self, thing: Any, names: _Names) -> Iterator[bytes]:
        """Yield class and state, without what a call assigns."""
        if _is_own(type(thing).__module__):
            yield self.read(type(thing))
        slots = (name for cls in type(thing).__mro__ for name in _listed(vars(cls).get("__slots__", ())))
        state = {name: getattr(thing, name, None) for name in slots if name not in ("__dict__", "__weakref__")}
        state |= getattr(thing, "__dict__", {})
        yield from self._pairs((name, state[name]) for name in sorted(state) if name not in names.assigned)

    def _pydantic(self, thing: Any) -> Iterator[bytes]:
        known = type(thing).model_fields
        state = {**vars(thing), **(getattr(thing, "__pydantic_extra__", None) or {})}
        if isinstance(state.get("config"), Mapping):  # the rest of it is about callbacks and tags
            state["config"] = state["config"].get("configurable")
        if _is_own(type(thing).__module__):
            yield self.read(type(thing))
        for name in sorted(state):
            left_out = name in _HARMLESS_FIELDS or getattr(known.get(name), "exclude", False)
            if not left_out and state[name] is not None:  # a field that a later version adds is usually None
                yield from self._pairs([(name, state[name])])

    def _pairs(self, pairs: Iterable[tuple[Any, Any]]) -> Iterator[bytes]:
        for name, value in pairs:
            if isinstance(name, str) and (is_secret_name(name) or hasattr(value, "get_secret_value")):
                continue
            yield self.read(name)
            yield self.read(value)

    def _array(self, thing: Any) -> Iterator[bytes]:
        if thing.nbytes > LARGEST_ARRAY:
            raise RuntimeError
        yield f"{thing.dtype} {thing.shape}".encode()
        yield self.read(thing.tolist()) if thing.dtype.hasobject else thing.tobytes()

    def _class(self, thing: type) -> Iterator[bytes]:
        yield _name(thing).encode()
        if issubclass(thing, Enum):
            yield from self._pairs((member.name, member.value) for member in thing)
            return
        for cls in thing.__mro__:
            for name, value in sorted(vars(cls).items()) if _is_own(cls.__module__) else ():
                method = isinstance(value, FunctionType | staticmethod | classmethod | property)
                if method or not (name.startswith(("__", "_abc_", "model_")) or hasattr(type(value), "__get__")):
                    yield from self._pairs([(name, value)])

    def _function(self, function: FunctionType) -> Iterator[bytes]:
        names = _names(function)
        yield self.read(function.__code__)
        given = function.__code__.co_varnames[: function.__code__.co_argcount]
        defaults = function.__defaults__ or ()
        yield from self._pairs(zip(given[len(given) - len(defaults) :], defaults, strict=True))
        yield self.read(function.__kwdefaults__)
        yield from self._pairs((name, value) for name, value in vars(function).items() if name not in names.assigned)
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        yield from self._pairs((name, _content(cell)) for name, cell in cells if name not in names.assigned)
        for name in sorted(names.read & function.__globals__.keys() - names.assigned):
            value = function.__globals__[name]
            yield from self._pairs([(name, value)])
            if isinstance(value, ModuleType) and _is_own(value.__name__):
                used = sorted(names.attributes & vars(value).keys())
                yield from self._pairs((attribute, vars(value)[attribute]) for attribute in used)


def _hash(parts: Iterable[bytes]) -> bytes:
    digest = blake2b(digest_size=DIGEST_BYTES)
    for part in parts:
        digest.update(b"%d:" % len(part) + part)
    return digest.digest()


def _names(function: Callable[..., object] | None) -> _Names:
    found: dict[str, set[str]] = {"read": set(), "attributes": set(), "assigned": set()}
    codes = [function.__code__] if isinstance(function, FunctionType) else []
    for code in codes:  # grows as it goes
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
        for step in dis.get_instructions(code):
            if step.opname in ("STORE_GLOBAL", "STORE_DEREF", "STORE_ATTR"):
                found["assigned"].add(step.argval)
            elif step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                found["attributes"].add(step.argval)
            elif step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                found["read"].add(step.argval)
    return _Names(**{kind: frozenset(names) for kind, names in found.items()})


def _name(thing: Any) -> str:
    name = getattr(thing, "__qualname__", None) or getattr(thing, "__name__", None) or type(thing).__qualname__
    return f"{getattr(thing, '__module__', None) or type(thing).__module__}.{name}"


def _is_open(thing: object) -> bool:
    """Return whether the state of an object can be told from its attributes."""
    return _is_own(type(thing).__module__) or is_dataclass(thing) or hasattr(thing, "ainvoke")


def _is_own(module: object) -> bool:
    """Return whether a module is the user's, rather than Python's or of an installed package."""
    name = module if isinstance(module, str) else "__main__"
    top = name.partition(".")[0]
    if top in sys.stdlib_module_names or top == __name__.partition(".")[0]:
        return False
    path = getattr(sys.modules.get(name), "__file__", None) or ""
    return not {"site-packages", "dist-packages"} & set(PurePath(path).parts)


def _listed(slots: str | Iterable[str]) -> Iterable[str]:
    return (slots,) if isinstance(slots, str) else slots


def _content(cell: Any) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # nothing was assigned yet
        return None
