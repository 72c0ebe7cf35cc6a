"""Relations made from a user's own function."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TypeVar

from pcs_annotator.core.variant import Expectation, Variant
from pcs_annotator.relations.base import Context, relations
from pcs_annotator.relations.rules.rule import ByFunction, NotApplicable, as_variant

Rewritten = str | NotApplicable | None
F = TypeVar("F", bound=Callable[[str], Rewritten | Awaitable[Rewritten]])


class FunctionRelation(ByFunction[Callable[[str], Rewritten | Awaitable[Rewritten]]]):
    """A rewrite by a function `str -> str`, sync or async, which returns None when it does not apply."""

    __slots__ = ()

    async def rewrite(self, text: str, context: Context) -> Variant:
        """Return the function's rewrite."""
        result = self.function(text)
        if inspect.isawaitable(result):
            result = await result
        return as_variant(self.name, text, NotApplicable("the function gave nothing") if result is None else result)


def relation(name: str, *, version: str = "1", expects: Expectation | None = None) -> Callable[[F], F]:
    """Return a decorator that registers a function `str -> str` as a relation.

    >>> @relation("shouted")
    ... def shouted(text: str) -> str:
    ...     return text.upper()
    """

    def decorate(function: F) -> F:
        made = FunctionRelation(name, function, version, expects or Expectation())
        relations.register(name)(lambda: made)
        return function

    return decorate
