"""A fitted run that labels texts chunk by chunk: large tables and `label_table`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from pcs_annotator.asking.engine.ask import Asker
from pcs_annotator.asking.engine.budget import Budget, BudgetTracker
from pcs_annotator.asking.engine.collect import prepare_job, run_job
from pcs_annotator.asking.engine.item_asker import Missing, PreparedJob
from pcs_annotator.asking.engine.progress import Tally
from pcs_annotator.asking.ledger.lock import SharedCalls
from pcs_annotator.core.task import Item
from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.model import Verdicts
from pcs_annotator.runs import ask
from pcs_annotator.runs.fitted import FittedRun


class LabelledChunk(NamedTuple):
    """Some texts with their votes.

    Attributes:
        votes: The votes on them.
        judged: Scores, labels, probabilities and which are accepted, as arrays; `fitted.model.judge` makes outcomes.
        tally: Counts of calls, answers and failures for these texts.
        missing: Row → reasons why some of its votes are missing.
    """

    votes: Votes
    judged: Verdicts
    tally: Tally
    missing: Missing


class ChunkLabeller:
    """Asks about chunks of texts and judges the votes; use it as an asynchronous context manager.

    Several chunks may be labelled at the same time: they share models, budget, pace and calls under way. The caller
    holds the lock of the ledger, if it has one.

    Attributes:
        fitted: The run.
        asker: How it asks; its tracker has what was spent on all chunks.
    """

    def __init__(self, fitted: FittedRun, asker: Asker) -> None:
        self.fitted, self.asker = fitted, asker
        self._prepared: PreparedJob

    async def __aenter__(self) -> ChunkLabeller:
        try:
            self._prepared = await prepare_job(self.fitted.job, self.asker)
        except BaseException:
            await ask.close_models(self.fitted.job)
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await ask.close_models(self.fitted.job)

    async def label(self, items: Sequence[Item], tally: Tally | None = None) -> LabelledChunk:
        """Ask about texts, as far as their labels need it, and judge the votes; `tally` counts for several chunks."""
        return await self._label(items, self.asker.part(self.asker.shared, tally))

    async def label_from_ledger(self, items: Sequence[Item]) -> LabelledChunk:
        """Judge the votes on texts that the ledger already has; no model is called."""
        no_calls = replace(self.asker, tracker=BudgetTracker(Budget(calls=0)))
        return await self._label(items, no_calls.restarted().part(SharedCalls()))

    async def _label(self, items: Sequence[Item], asker: Asker) -> LabelledChunk:
        missing: Missing = {}
        votes = await run_job(self._prepared, items, asker, self.fitted.strategy, missing)
        return LabelledChunk(votes, self.fitted.model.judged(votes), asker.tally, missing)
