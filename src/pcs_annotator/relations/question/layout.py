"""The question in one message instead of two."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pcs_annotator.core.task import Phrasing
from pcs_annotator.relations.base import Unchanged, relations


@dataclass(frozen=True, slots=True)
class Layout(Unchanged):
    """Instructions and text in one user message, without a system message."""

    name: str = "layout"

    def rephrase(self, question: Phrasing) -> Phrasing:
        """Return the question as one message."""
        return replace(question, one_message=True)


relations.register("layout")(Layout)
