"""Judging the votes on single texts, those together that are complete at about the same time."""

import asyncio
from collections.abc import Callable, Sequence

from pcs_annotator.asking.ledger.ledger import set_all
from pcs_annotator.core.outcome import Outcome
from pcs_annotator.core.task import Item
from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.model import Model, Verdicts
from pcs_annotator.runs.labelling.recent_texts import RecentTexts

GATHER_SECONDS = 0.05  # texts that are complete within this time are judged together: alone, each takes 1 ms
Keep = Callable[[Sequence[Item], Votes, Model, Verdicts], None]  # puts the texts that people should see aside


class JudgeTogether:
    """Judges votes on single texts, those together that are complete at about the same time.

    What it judged is given to `keep` before anybody is told. `in_progress` returns how many texts are asked about or
    wait to be judged: if all of them wait, they are judged.
    """

    def __init__(self, model: Model, recent: RecentTexts, keep: Keep, in_progress: Callable[[], int]) -> None:
        self._model, self._recent, self._keep, self._in_progress = model, recent, keep, in_progress
        self._timer: asyncio.TimerHandle | None = None
        self._waiting: list[tuple[Item, Votes, asyncio.Future[tuple[Outcome, tuple[float, ...]]]]] = []

    async def judge(self, item: Item, votes: Votes) -> tuple[Outcome, tuple[float, ...]]:
        """Return the outcome of one text, and the probability of every label."""
        loop = asyncio.get_running_loop()
        judged: asyncio.Future[tuple[Outcome, tuple[float, ...]]] = loop.create_future()
        self._waiting.append((item, votes, judged))
        if len(self._waiting) >= self._in_progress():  # no other will come soon
            self._judge_all()
        elif self._timer is None:
            self._timer = loop.call_later(GATHER_SECONDS, self._judge_all)
        return await judged

    def _judge_all(self) -> None:
        waiting, self._waiting = self._waiting, []
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        results: Sequence[object]
        try:
            votes = Votes.joined([votes for _, votes, _ in waiting])
            items = [item for item, _, _ in waiting]
            model, judged = self._recent.judged(self._model, [item.text for item in items], votes)
            self._keep(items, votes, model, judged)
            results = list(zip(model.judge(votes, judged), map(tuple, judged.deciding.tolist()), strict=True))
        except Exception as error:
            results = [error] * len(waiting)
        set_all(zip((future for _, _, future in waiting), results, strict=True))
