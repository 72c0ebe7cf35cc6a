"""What all relations of the question have in common: they leave the text as it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pcs_annotator.core.variant import Expectation, Variant
from pcs_annotator.relations.base import Context, Need


@dataclass(frozen=True, slots=True)
class Rephrasing:
    """Base of relations that change the question.

    Attributes:
        name: As it appears in tables.
    """

    name: str
    version: ClassVar[str] = "1"
    needs: ClassVar[frozenset[Need]] = frozenset()
    deterministic: ClassVar[bool] = True
    expects: ClassVar[Expectation] = Expectation()

    def calls(self, text: str) -> float:
        """Return 0: no model is called."""
        return 0.0

    async def rewrite(self, text: str, context: Context) -> Variant:
        """Return the text itself."""
        return Variant(relation=self.name, status="original", text=text, source=text)
