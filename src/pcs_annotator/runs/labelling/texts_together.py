"""Texts that come one by one: those in progress share the lock of a ledger, and are judged together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from pcs_annotator.asking.ledger.lock import LOCK_ATTEMPT_SECONDS, Say, SharedCalls, lock_ledger_async
from pcs_annotator.core.ledger_address import LedgerAddress
from pcs_annotator.core.outcome import Outcome
from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.model import Model
from pcs_annotator.runs.labelling.labeller import RecentTexts

GATHER_SECONDS = 0.05
"""Texts whose votes are complete within this time are judged together: alone, each takes 1 ms, 50 times more."""
LONGEST_TURN = 20.0
"""Seconds after which other processes get a turn at the ledger, however many texts are waiting."""
LINGER_SECONDS = 0.1
"""How long the lock is kept after the last text, because to take it costs more than to answer a known text."""


class Turns:
    """Holds the lock of a ledger while texts are in progress, and lets other processes have their turn."""

    def __init__(self, ledger: LedgerAddress, say: Say) -> None:
        self._ledger, self._say = ledger, say
        self._door = asyncio.Lock()
        self._texts, self._since = 0, 0.0
        self._empty = asyncio.Event()
        self._holder: asyncio.Task[None] | None = None
        self._shared: SharedCalls

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[SharedCalls]:
        """Hold the lock together with other texts."""
        async with self._door:  # one text waits for the lock, and the others for that one
            await self._let_others()
            if self._holder is None:
                self._shared = await self._take()
            self._texts += 1
            self._shared.tasks += 1
            self._empty.clear()
        shared = self._shared
        try:
            yield shared
        finally:
            shared.tasks -= 1
            self._texts -= 1
            if not self._texts:
                self._empty.set()

    async def release(self) -> None:
        """Release the lock; no text is in progress."""
        if self._holder is not None:
            self._holder.cancel()
            await asyncio.wait([self._holder])

    async def _let_others(self) -> None:
        """If the lock was held for long, wait until it is released, and then long enough for others to take it."""
        if self._holder is not None and asyncio.get_running_loop().time() > self._since + LONGEST_TURN:
            await asyncio.wait([self._holder])
            await asyncio.sleep(3 * LOCK_ATTEMPT_SECONDS)

    async def _take(self) -> SharedCalls:
        taken: asyncio.Future[SharedCalls] = asyncio.get_running_loop().create_future()
        # a task of its own, because whoever takes a lock must also release it
        self._holder = asyncio.create_task(self._keep(taken))
        return await taken

    async def _keep(self, taken: asyncio.Future[SharedCalls]) -> None:
        try:
            async with lock_ledger_async(self._ledger, say=self._say) as shared:
                self._since = asyncio.get_running_loop().time()
                taken.set_result(shared)
                await asyncio.sleep(LINGER_SECONDS)
                while self._texts:
                    await self._empty.wait()
                    await asyncio.sleep(LINGER_SECONDS)
                self._holder = None
        except Exception as error:
            self._holder = None
            taken.set_exception(error)


class JudgeTogether:
    """Judges votes on single texts, those together that are complete at about the same time.

    `in_progress` returns how many texts are asked about or wait to be judged: if all of them wait, they are judged.
    """

    def __init__(self, model: Model, recent: RecentTexts, in_progress: Callable[[], int]) -> None:
        self._model, self._recent, self._in_progress = model, recent, in_progress
        self._timer: asyncio.TimerHandle | None = None
        self._waiting: list[tuple[str, Votes, asyncio.Future[tuple[Outcome, tuple[float, ...]]]]] = []

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
            votes = Votes.joined([votes for _, votes, _ in waiting])
            model, judged = self._recent.judged(self._model, [text for text, _, _ in waiting], votes)
            outcomes = list(model.judge(votes, judged))
        except Exception as error:
            for _, _, future in waiting:
                if not future.done():
                    future.set_exception(error)
            return
        for (_, _, future), outcome, shares in zip(waiting, outcomes, judged.deciding.tolist(), strict=True):
            if not future.done():  # the client may have gone
                future.set_result((outcome, tuple(shares)))
