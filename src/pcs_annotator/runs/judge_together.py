"""Judges texts that come one by one, and compares them with those of the run."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce

import numpy as np

from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.core.outcome import Outcome
from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.model import Model, Verdicts
from pcs_annotator.judging.promising.drift import Drift, Profile, drift, profile

GATHER_SECONDS = 0.05
"""Texts whose votes are complete within this time are judged together: alone, each takes 1 ms, 50 times more."""
RECENT_TEXTS, COMPARED_EVERY = 500, 50


class JudgeTogether:
    """Judges votes on single texts, those together that are complete at about the same time.

    Attributes:
        recent: Whether the last texts are answered like those of the run.

    `in_progress` returns how many texts are asked about or wait to be judged: if all of them wait, they are judged.
    """

    def __init__(self, model: Model, in_progress: Callable[[], int], on_drift: str = "review") -> None:
        self._model, self._in_progress = model, in_progress
        self._timer: asyncio.TimerHandle | None = None
        self._waiting: list[tuple[str, Votes, asyncio.Future[tuple[Outcome, tuple[float, ...]]]]] = []
        self.recent = RecentTexts(model.profile, on_drift)

    async def judge(self, text: str, votes: Votes) -> tuple[Outcome, tuple[float, ...]]:
        """Return the outcome of one text, and the probability of every label."""
        loop = asyncio.get_running_loop()
        judged: asyncio.Future[tuple[Outcome, tuple[float, ...]]] = loop.create_future()
        self._waiting.append((text, votes, judged))
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
        try:
            votes = _joined([votes for _, votes, _ in waiting])
            model, judged = self.recent.judged(self._model, [text for text, _, _ in waiting], votes)
            outcomes = list(model.judge(votes, judged))
        except Exception as error:
            for _, _, future in waiting:
                if not future.done():
                    future.set_exception(error)
            return
        for (_, _, future), outcome, shares in zip(waiting, outcomes, judged.deciding.tolist(), strict=True):
            if not future.done():  # the client may have gone
                future.set_result((outcome, tuple(shares)))


def _joined(parts: Sequence[Votes]) -> Votes:
    """Return votes on one text each as votes on all."""
    first = parts[0]
    grades = None
    if any(part.grades is not None for part in parts):
        nothing = np.full((*first.codes.shape, len(first.labels)), np.nan, dtype=np.float32)
        grades = np.concatenate([nothing if part.grades is None else part.grades for part in parts])
    codes = np.concatenate([part.codes for part in parts])
    return replace(first, codes=codes, ids=[str(row) for row in range(len(parts))], grades=grades)


class RecentTexts:
    """Compares the last few hundred different texts with those of the run.

    Attributes:
        found: Whether they differ; None before the first comparison, or if the run kept nothing to compare with.
    """

    def __init__(self, before: Profile | None, on_drift: str = "review") -> None:
        self.found: Drift | None = None
        self._before, self._on_drift = before, on_drift
        self._texts: dict[int, None] = {}
        self._block: Profile | None = None
        self._blocks: deque[Profile] = deque(maxlen=RECENT_TEXTS // COMPARED_EVERY)

    def judged(self, model: Model, texts: Sequence[str], votes: Votes) -> tuple[Model, Verdicts]:
        """Return which model judges these texts, and how: from an alarm on until its end, nothing is accepted."""
        judged = model.judged(votes)
        self.add(texts, votes, judged.scores, judged.best)
        now = model.facing(self.found, self._on_drift)
        return now, judged if now is model else now.judged(votes)

    def add(self, texts: Sequence[str], votes: Votes, scores: Floats, best: Codes) -> None:
        """Count texts, copies of recent ones excepted; compare when enough have come."""
        new = [row for row, text in enumerate(texts) if self._is_new(hash(text))]
        if self._before is None or not new:
            return
        part = profile(votes.take(np.array(new)), scores[new], best[new])
        self._block = part if self._block is None else _sum(self._block, part)
        if self._block.items >= COMPARED_EVERY:
            self._blocks.append(self._block)
            self._block = None
            self.found = drift(self._before, reduce(_sum, self._blocks))

    def _is_new(self, text: int) -> bool:
        if text in self._texts:
            return False
        self._texts[text] = None
        if len(self._texts) > RECENT_TEXTS:
            del self._texts[next(iter(self._texts))]
        return True


def _sum(one: Profile, other: Profile) -> Profile:
    counted = ("items", "cells", "chosen", "highest")
    return replace(one, **{name: getattr(one, name) + getattr(other, name) for name in counted})
