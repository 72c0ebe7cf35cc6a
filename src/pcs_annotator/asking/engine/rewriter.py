"""The model that rewrites, asked with ledger, pace and budget."""

from __future__ import annotations

from dataclasses import dataclass

from pcs_annotator.asking.engine.ask import Asker, Call
from pcs_annotator.asking.engine.ledger import call_key
from pcs_annotator.asking.models.base import ChatModel, Reply, Request


@dataclass(frozen=True, slots=True)
class Rewriter:
    """Asks one model for rewrites; what the ledger holds is not asked again."""

    model: ChatModel
    asker: Asker

    async def __call__(self, request: Request) -> Reply:
        """Return the answer to one request."""
        key = call_key(self.model.name, request, 0)
        known = self.asker.ledger.get_many([key])
        if known:
            self.asker.tally.from_ledger += 1
            return known[key]
        return await self.asker.ask(Call(self.model, request, key, "rewrite", self.asker.expected(self.model, request)))
