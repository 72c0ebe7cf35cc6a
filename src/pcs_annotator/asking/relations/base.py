"""What a relation is, and the one that changes nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol

from pcs_annotator.asking.models.base import Reply, Request
from pcs_annotator.core.variant import Variant

ORIGINAL = "original"

AskRewriter = Callable[[Request], Awaitable[Reply]]
"""Asks the model that rewrites; the engine sees to ledger, pace and budget."""


class Relation(Protocol):
    """A named rewrite after which the label must stay."""

    @property
    def name(self) -> str:
        """Return the name, as it appears in tables."""
        ...

    @property
    def needs_rewriter(self) -> bool:
        """Return whether a model is needed to rewrite."""
        ...

    async def rewrite(self, text: str, ask: AskRewriter) -> Variant:
        """Return the text rewritten, or why it could not be."""
        ...


@dataclass(frozen=True, slots=True)
class Original:
    """The text as it is: relation 0."""

    name: ClassVar[str] = ORIGINAL
    needs_rewriter: ClassVar[bool] = False

    async def rewrite(self, text: str, ask: AskRewriter) -> Variant:
        """Return the text itself."""
        return Variant(relation=ORIGINAL, status="original", text=text)
