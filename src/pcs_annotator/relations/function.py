"""Relations made from a function, the user's or our own."""

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, TypeVar

from pcs_annotator.base.concurrency import off_loop
from pcs_annotator.base.errors import ConfigError, PcsError
from pcs_annotator.core.variant import Expectation, Variant
from pcs_annotator.relations.base import Context, Free, relations
from pcs_annotator.relations.language import why_not_prose


class NotApplicable(NamedTuple):
    """The relation does not apply to this text."""

    reason: str  # why, in the same words for every text of this kind, so that reasons can be counted


Rewritten = str | NotApplicable | None
Rewriting = Callable[[str], Rewritten | Awaitable[Rewritten]]
F = TypeVar("F", bound=Rewriting)


@dataclass(frozen=True, slots=True)
class FunctionRelation(Free):
    """A rewrite by a function `str -> str`, sync or async, which returns None when it does not apply."""

    name: str  # as it appears in tables
    function: Rewriting
    version: str = "1"  # changes whenever the rewrite of a text may change
    expects: Expectation = field(default_factory=Expectation)  # what its rewrites may do to a text

    async def rewrite(self, text: str, context: Context) -> Variant:
        """Return the function's rewrite; an unchanged text counts as not applicable."""
        result = await self._result(text) if text.strip() else NotApplicable("empty text")
        if result is None:
            result = NotApplicable("the function gave nothing")
        elif isinstance(result, str) and result.split() == text.split():
            result = NotApplicable("the rewrite changed nothing")
        if isinstance(result, NotApplicable):
            return Variant(relation=self.name, status="not_applicable", reason=result.reason, source=text)
        return Variant(relation=self.name, status="changed", text=result, source=text)

    async def _result(self, text: str) -> Rewritten:
        start = f"relation {self.name!r}: its function"
        try:
            result = self.function(text)
            if inspect.isawaitable(result):
                result = await result
        except PcsError:
            raise
        except Exception as error:
            problem = f"{start} raised {type(error).__name__}: {error}, on the text {text[:60]!r}"
            raise ConfigError(f"{problem}: return None where it does not apply") from error
        if result is not None and not isinstance(result, str | NotApplicable):
            raise ConfigError(f"{start} returned {type(result).__name__}, not a string or None")
        return result


class TextRule(FunctionRelation):
    """A rewrite of prose by rule: code and texts without words are never passed to its function."""

    __slots__ = ()

    async def _result(self, text: str) -> Rewritten:
        if reason := why_not_prose(text):
            return NotApplicable(reason)
        return await off_loop(len(text), partial(self.function, text))  # type: ignore[arg-type]  # it is not async


_REGISTERED: dict[str, FunctionRelation] = {}


def text_rule(name: str, *, version: str = "1", expects: Expectation | None = None) -> Callable[[F], F]:
    """Return a decorator that registers a function of prose as a relation."""
    return partial(_register, TextRule, name, version, expects or Expectation())


def relation(name: str, *, version: str = "1", expects: Expectation | None = None) -> Callable[[F], F]:
    """Return a decorator that registers a function `str -> str` as a relation.

    The same function may be defined again, as happens when a cell of a notebook is run twice.

    >>> @relation("shouted")
    ... def shouted(text: str) -> str:
    ...     return text.upper()
    """
    return partial(_register, FunctionRelation, name, version, expects or Expectation())


def _register(kind: type[FunctionRelation], name: str, version: str, expects: Expectation, function: F) -> F:
    earlier = _REGISTERED.get(name)
    if earlier is None or _qualified_name(earlier.function) != _qualified_name(function):
        relations.register(name)(partial(_REGISTERED.__getitem__, name))
    _REGISTERED[name] = kind(name, function, version, expects)
    return function


def relation_of(function: object) -> FunctionRelation | None:
    """Return the relation that a function was registered as; None if it was not."""
    return next((relation for relation in _REGISTERED.values() if relation.function is function), None)


def _qualified_name(function: Rewriting) -> str:
    return f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', '')}"
