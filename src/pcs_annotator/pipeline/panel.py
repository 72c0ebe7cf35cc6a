"""Annotators and relations as one thing that is asked about texts: what the Python faces stand on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pcs_annotator.asking.engine.bridge import run_sync
from pcs_annotator.asking.relations.base import Relation
from pcs_annotator.core.item import Item
from pcs_annotator.core.task import Task
from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.core.votes import Votes
from pcs_annotator.pipeline.collecting import CollectSettings, collect


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """Who is asked what about texts.

    Attributes:
        task: What to decide.
        annotators: Anything a model can be made of, or `Annotator`s.
        relations: Names, or relations of one's own.
        ledger: Where paid calls are kept.
        settings: How to ask.
    """

    task: Task
    annotators: Sequence[object]
    relations: Sequence[str | Relation] = (ORIGINAL,)
    ledger: Path | str = "ledger.db"
    settings: CollectSettings = field(default_factory=CollectSettings)

    async def ask(self, texts: Sequence[str]) -> Votes:
        """Return the votes on texts; what the ledger holds is not asked again."""
        items = [Item(id=str(row), text=text) for row, text in enumerate(texts)]
        return await collect(
            self.task, items, self.annotators, self.relations, ledger=self.ledger, settings=self.settings
        )

    def ask_now(self, texts: Sequence[str]) -> Votes:
        """Return the votes on texts, for code that cannot await."""
        return run_sync(lambda: self.ask(texts))
