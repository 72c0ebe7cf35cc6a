"""The question in one message instead of two."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pcs_annotator.core.task import Phrasing
from pcs_annotator.relations.base import relations
from pcs_annotator.relations.question.rephrasing import Rephrasing


@dataclass(frozen=True, slots=True)
class Layout(Rephrasing):
    """Instructions and text in one user message, without a system message."""

    name: str = "layout"

    def rephrase(self, question: Phrasing) -> Phrasing:
        """Return the question as one message."""
        return replace(question, one_message=True)


relations.register("layout")(Layout)
