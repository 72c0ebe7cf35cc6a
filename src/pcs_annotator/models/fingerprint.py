"""A digest of what a function or a LangChain object answers by, so that a changed one counts as another model.

What counts: the source of a function or of an object's class (bytecode where there is no source), and what it uses:
argument defaults, closures, globals, attributes, fields of LangChain objects; the user's own functions and classes are
followed, other things count as `repr` shows them. What does not count: comments, keys and passwords, and what a
function itself assigns anew, such as a counter. Objects without a `repr`, such as a client, are listed as unseen.
"""

from __future__ import annotations

import ast
import dis
import inspect
import re
import sys
import textwrap
import warnings
from collections.abc import Mapping, Set
from contextlib import suppress
from functools import cached_property, partial
from hashlib import blake2b
from pathlib import PurePath
from types import FunctionType, MethodType
from typing import Any, NamedTuple

from pcs_annotator.base.errors import PcsWarning
from pcs_annotator.models.keys import CERTAIN_KEY, is_secret_name

DIGEST_BYTES = 8
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_UNSEEN = re.compile(
    r"<(?:built-in function )?((?!_thread|threading|asyncio|logging)[\w.]+)(?: object.*?)? at 0x[0-9a-f]+>"
)
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


class OwnModel:
    """A model that is given as an object.

    Args:
        name: Its name.
        thing: What it answers by; None if the name says everything.
        known_as: What ledger keys call it, before the digest of the thing; by default the name.
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
    kind = type(thing)
    if isinstance(thing, partial):
        return {"function": thing.func, "args": thing.args, **thing.keywords}
    if isinstance(thing, MethodType):
        return {"function": thing.__func__, "self": thing.__self__}
    if hasattr(thing, "__wrapped__"):  # such as a function with a cache
        return {"function": thing.__wrapped__}
    if isinstance(thing, FunctionType | type):
        return _of_code(thing) if _is_own(thing) else {}
    if isinstance(getattr(kind, "model_fields", None), Mapping):  # pydantic: a field that a later version adds is None
        excluded = {name for name, one in kind.model_fields.items() if getattr(one, "exclude", False)}
        state = {**vars(thing), **(getattr(thing, "__pydantic_extra__", None) or {})}
        left = {name for name, one in state.items() if one is None or name in excluded or _HARMLESS.fullmatch(name)}
    elif hasattr(thing, "ainvoke") or _is_own(kind):
        stored = thing.__getstate__()
        parts = stored if isinstance(stored, tuple) else (stored,)  # attributes, and slots
        state = {name: value for part in parts if isinstance(part, dict) for name, value in part.items()}
        left = _assigned(getattr(kind, "__call__", None))  # noqa: B004  # its code is wanted
    else:
        return {}
    return {"class": kind, **{name: value for name, value in state.items() if name not in left}}


def _of_code(thing: Any) -> dict[str, Any]:
    source = ""
    with suppress(OSError, TypeError, SyntaxError):  # a lambda in the middle of a line is not a statement
        source = textwrap.dedent(inspect.getsource(thing))
        source = ast.unparse(ast.parse(source))  # without comments
    if isinstance(thing, type):
        return {"source": source, "call": vars(thing).get("__call__"), "bases": thing.__bases__}
    used: dict[str, Any] = {name: one.default for name, one in inspect.signature(thing).parameters.items()}
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
    module = thing.__module__ or ""
    path = getattr(sys.modules.get(module), "__file__", None) or ""
    known = module.partition(".")[0] in (*sys.stdlib_module_names, __name__.partition(".")[0])
    return not known and not {"site-packages", "dist-packages"} & set(PurePath(path).parts)
