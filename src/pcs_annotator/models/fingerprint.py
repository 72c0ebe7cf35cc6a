"""A digest of what a function or a LangChain object answers by, so that a changed one counts as another model.

What counts: code, argument defaults, closures, attributes, and the globals that a function reads; the classes and the
state of objects, as `pickle` would take it; the fields of LangChain and other pydantic objects. The user's own modules
are followed to any depth; code of installed packages counts by its name. What does not count: keys and passwords,
locks and loggers, and whatever a function itself assigns anew, such as a counter. Objects of installed packages, such
as a client, cannot be looked into: they are listed as unseen.
"""

from __future__ import annotations

import copyreg
import dis
import inspect
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import is_dataclass
from enum import Enum
from functools import cached_property
from hashlib import blake2b
from pathlib import PurePath
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from pcs_annotator.base.errors import PcsWarning
from pcs_annotator.models.keys import CERTAIN_KEY, is_secret_name

DIGEST_BYTES = 8
MOST_PARTS = 20_000
_PLAIN = (str, bool, int, float, complex, range, type(None), type(...))
_CODE = ("co_code", "co_exceptiontable", "co_consts", "co_names", "co_varnames", "co_argcount", "co_flags")
_HARMLESS_MODULES = frozenset({"_thread", "threading", "logging", "asyncio.locks"})
# Fields of LangChain's classes that do not shape answers; clients, callbacks, tags and caches are marked as excluded.
_HARMLESS_FIELDS = frozenset(
    {
        "name", "max_retries", "request_timeout", "timeout", "streaming", "stream_usage", "disable_streaming",
        "include_response_headers", "tiktoken_model_name", "config_factories",
    }
)  # fmt: skip


class Fingerprint(NamedTuple):
    """A digest that is the same in every process, and the classes of the parts whose changes it does not show."""

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


class OwnModel:
    """A model that is given as an object.

    Args:
        name: Its name.
        thing: What it answers by; None if the name says everything.
        known_as: What ledger keys call it, before the digest of the thing; by default the name.

    Attributes:
        can_constrain: False.
        can_grade: False.
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
        found = fingerprint(self._thing)
        if found.unseen:
            self._warn(
                f": the ledger does not notice when {', '.join(found.unseen)} changes, and uses the old answers: after "
                "such a change, set another version"
            )
        return f"{self._known_as}#{found.digest}"

    async def close(self) -> None:
        """Warn if answering changed what the model answers by: the next run would then ask everything again."""
        known = self.__dict__.get("identity", self.name)
        if known != self.name and known != f"{self._known_as}#{fingerprint(self._thing).digest}":
            self._warn(
                " changes while it answers (a list, dict or object that it uses has other contents now), so the next "
                "run in this process takes it for another model and asks again: set a version to keep its answers"
            )

    def _warn(self, message: str) -> None:
        said = f"{self._known_as}{message}, as in Annotator(model, version='2')"
        warnings.warn(said, PcsWarning, stacklevel=4)


class _Reader:
    def __init__(self, root: object) -> None:
        self.unseen: set[str] = set()
        self._root = root
        self._known: dict[int, bytes] = {}
        self._kept: list[object] = []  # as long as a thing is kept, no other has its id

    def read(self, thing: object) -> bytes:
        if isinstance(thing, bytes):
            return _hash((b"bytes", thing))
        if type(thing) in _PLAIN:
            shown = CERTAIN_KEY.sub("[key]", thing) if isinstance(thing, str) else repr(thing)
            return _hash((_name(type(thing)).encode(), shown.encode("utf-8", "surrogatepass")))
        if id(thing) not in self._known:
            if len(self._kept) >= MOST_PARTS:
                raise RuntimeError
            self._known[id(thing)] = b"%d" % len(self._kept)  # stands for the thing inside itself
            self._kept.append(thing)
            parts = map(self.read, self._parts(thing))
            self._known[id(thing)] = _hash((_name(type(thing)).encode(), *parts))
        return self._known[id(thing)]

    def _parts(self, thing: Any) -> Iterable[object]:
        if isinstance(thing, FunctionType):
            own = thing is self._root or _is_own(thing.__globals__.get("__name__"))
            return _of_function(thing) if own else (_name(thing),)
        if isinstance(thing, type):
            return _of_class(thing)
        if isinstance(thing, CodeType):
            return [getattr(thing, name) for name in _CODE]
        if isinstance(thing, MethodType):
            own = _is_own(type(thing.__self__).__module__)
            return thing.__func__, *(self._object(thing.__self__, thing.__func__) if own else (thing.__self__,))
        if isinstance(thing, property) or hasattr(thing, "__wrapped__"):  # such as a function with a cache
            return (thing.fget if isinstance(thing, property) else thing.__wrapped__,)
        return self._contents(thing)

    def _contents(self, thing: Any) -> Iterable[object]:
        if isinstance(getattr(type(thing), "model_fields", None), Mapping):
            return _of_pydantic(thing)
        if isinstance(thing, Mapping):
            return _visible(thing.items())
        if isinstance(thing, list | tuple):
            return thing
        if isinstance(thing, Set):
            return sorted(map(self.read, thing))
        return self._object(thing, getattr(type(thing), "__call__", None))  # noqa: B004  # its code is wanted

    def _object(self, thing: Any, call: object) -> Iterable[object]:
        """Return what `pickle` would store of an object, without what a call of it assigns."""
        if isinstance(thing, ModuleType) or type(thing).__module__ in _HARMLESS_MODULES:
            return (_name(thing),)
        # functions of packages may be named by others, but a model that is one cannot be looked into
        opaque = thing is self._root if hasattr(thing, "__name__") else not _is_open(thing)
        try:
            stored = "" if opaque else _stored(thing, _assigned(call))
        except TypeError:  # it cannot be stored
            opaque = True
        if opaque:
            self.unseen.add(_name(thing if callable(thing) else type(thing)))
        return (_name(thing),) if opaque or isinstance(stored, str) else stored


def _stored(thing: Any, left_out: Set[str]) -> Any:
    """Return what `pickle` would store of an object, without some attributes; the name of one that it would import."""
    reduce: Any = copyreg.dispatch_table.get(type(thing))
    stored = reduce(thing) if reduce else thing.__reduce_ex__(4)
    if isinstance(stored, str) or len(stored) < 3:
        return stored
    made, given, state, *items = stored
    states = state if isinstance(state, tuple) else (state,)  # attributes, and slots
    for part in states:
        known = [{name: part[name]} for name in sorted(part) if name not in left_out] if type(part) is dict else part
        items.append(known)
    return made, given, *items


def _of_function(function: FunctionType) -> Iterator[object]:
    code, assigned = function.__code__, _assigned(function)
    names = {name for inner in _codes(code) for name in inner.co_names}
    yield code
    yield {name: given.default for name, given in inspect.signature(function, follow_wrapped=False).parameters.items()}
    # a cell to which nothing was assigned yet equals an empty one, and has no contents
    closure = zip(code.co_freevars, function.__closure__ or (), strict=True)
    yield {name: cell.cell_contents for name, cell in closure if name not in assigned and cell != CellType()}
    yield {name: value for name, value in vars(function).items() if name not in assigned}
    for name in sorted(names & function.__globals__.keys() - assigned):
        value = function.__globals__[name]
        yield {name: value}
        if isinstance(value, ModuleType) and _is_own(value.__name__):
            yield {attribute: vars(value)[attribute] for attribute in sorted(names & vars(value).keys())}


def _of_class(cls: type) -> Iterator[object]:
    yield _name(cls)
    if issubclass(cls, Enum):
        yield [(member.name, member.value) for member in cls]
        return
    for base in cls.__mro__:
        for name, value in sorted(vars(base).items()) if _is_own(base.__module__) else ():
            method = isinstance(value, FunctionType | staticmethod | classmethod | property)
            if method or not (name.startswith(("__", "_abc_", "model_")) or hasattr(type(value), "__get__")):
                yield {name: value}


def _of_pydantic(thing: Any) -> Iterator[object]:
    known = type(thing).model_fields
    state = {**vars(thing), **(getattr(thing, "__pydantic_extra__", None) or {})}
    if isinstance(state.get("config"), Mapping):  # the rest of it is about callbacks and tags
        state["config"] = state["config"].get("configurable")
    if _is_own(type(thing).__module__):
        yield type(thing)
    for name in sorted(state):
        left_out = name in _HARMLESS_FIELDS or getattr(known.get(name), "exclude", False)
        if not left_out and state[name] is not None:  # a field that a later version adds is usually None
            yield {name: state[name]}


def _visible(pairs: Iterable[tuple[object, object]]) -> Iterator[object]:
    """Yield names and values, without those of keys and passwords."""
    for name, value in pairs:
        if not (isinstance(name, str) and (is_secret_name(name) or hasattr(value, "get_secret_value"))):
            yield from (name, value)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        yield from _codes(constant) if isinstance(constant, CodeType) else ()


def _assigned(function: object) -> set[str]:
    """Return the names of the variables and attributes that a function assigns outside itself."""
    codes = _codes(function.__code__) if isinstance(function, FunctionType) else ()
    stores = ("STORE_GLOBAL", "STORE_DEREF", "STORE_ATTR")
    return {step.argval for code in codes for step in dis.get_instructions(code) if step.opname in stores}


def _hash(parts: Iterable[bytes]) -> bytes:
    digest = blake2b(digest_size=DIGEST_BYTES)
    for part in parts:
        digest.update(b"%d:" % len(part) + part)
    return digest.digest()


def _name(thing: Any) -> str:
    name = getattr(thing, "__qualname__", None) or getattr(thing, "__name__", None) or type(thing).__qualname__
    return f"{getattr(thing, '__module__', None) or type(thing).__module__}.{name}"


def _is_open(thing: object) -> bool:
    """Return whether what `pickle` would store of an object is its state, rather than the insides of a package."""
    top = type(thing).__module__.partition(".")[0]
    known = top in sys.stdlib_module_names or top == "numpy" or is_dataclass(thing) or hasattr(thing, "ainvoke")
    return known or _is_own(type(thing).__module__)


def _is_own(module: object) -> bool:
    """Return whether a module is the user's, rather than Python's or of an installed package."""
    name = module if isinstance(module, str) else "__main__"
    top = name.partition(".")[0]
    if top in sys.stdlib_module_names or top == __name__.partition(".")[0]:
        return False
    path = getattr(sys.modules.get(name), "__file__", None) or ""
    return not {"site-packages", "dist-packages"} & set(PurePath(path).parts)
