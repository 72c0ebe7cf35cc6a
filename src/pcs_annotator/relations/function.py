"""Relations made from a user's own function."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from pcs_annotator.base.errors import ConfigError, PcsError
from pcs_annotator.core.variant import Expectation, Variant
from pcs_annotator.relations.base import Context, relations
from pcs_annotator.relations.rule import ByFunction, NotApplicable, as_variant

Rewritten = str | NotApplicable | None
Rewriting = Callable[[str], Rewritten | Awaitable[Rewritten]]
F = TypeVar("F", bound=Rewriting)


class FunctionRelation(ByFunction[Rewriting]):
    """A rewrite by a function `str -> str`, sync or async, which returns None when it does not apply."""

    __slots__ = ()

    async def rewrite(self, text: str, context: Context) -> Variant:
        """Return the function's rewrite."""
        result = await self._result(text) if text.strip() else NotApplicable("the text is empty")
        return as_variant(self.name, text, NotApplicable("the function gave nothing") if result is None else result)

    async def _result(self, text: str) -> Rewritten:
        try:
            result = self.function(text)
            if inspect.isawaitable(result):
                result = await result
        except PcsError:
            raise
        except Exception as error:
            raise ConfigError(
                f"relation {self.name!r}: its function raised {type(error).__name__}: {error}, on the text "
                f"{text[:60]!r}: return None where it does not apply"
            ) from error
        if result is None or isinstance(result, str | NotApplicable):
            return result
        raise ConfigError(
            f"relation {self.name!r}: its function returned {type(result).__name__}, not a string or None"
        )


_REGISTERED: dict[str, FunctionRelation] = {}


def relation(name: str, *, version: str = "1", expects: Expectation | None = None) -> Callable[[F], F]:
    """Return a decorator that registers a function `str -> str` as a relation.

    The same function may be defined again, as happens when a cell of a notebook is run twice.

    >>> @relation("shouted")
    ... def shouted(text: str) -> str:
    ...     return text.upper()
    """

    def decorate(function: F) -> F:
        earlier = _REGISTERED.get(name)
        if earlier is None or _place(earlier.function) != _place(function):
            relations.register(name)(partial(_REGISTERED.__getitem__, name))
        _REGISTERED[name] = FunctionRelation(name, function, version, expects or Expectation())
        return function

    return decorate


def relation_of(function: object) -> FunctionRelation | None:
    """Return the relation that a function was registered as; None if it was not."""
    return next((one for one in _REGISTERED.values() if one.function is function), None)


def _place(function: Rewriting) -> tuple[str | None, str]:
    return getattr(function, "__module__", None), getattr(function, "__qualname__", "")
