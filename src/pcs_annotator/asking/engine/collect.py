"""Runs a job: items in, votes out."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import TypeVar

from pcs_annotator.asking.engine.adaptive import Work, adaptive_work
from pcs_annotator.asking.engine.ask import Asker, Rewriter
from pcs_annotator.asking.engine.item_asker import ItemAsker, Missing, PreparedJob
from pcs_annotator.asking.engine.job import Job
from pcs_annotator.base.errors import Interrupted, PcsError
from pcs_annotator.core.task import Item
from pcs_annotator.core.vote import Strategy
from pcs_annotator.core.votes import Votes
from pcs_annotator.relations.question.wording import write_wording

SECONDS_TO_FINISH = 10.0
GARBAGE_THRESHOLD = (20_000, 20, 50)
QUESTIONS_AT_ONCE = 32
"""Questions that are looked up in the ledger together."""

T = TypeVar("T")


async def prepare_job(job: Job, asker: Asker) -> PreparedJob:
    """Return a job with what is the same for all its texts; if it lacks a wording, the rewriter writes it."""
    if job.rewriter is not None and job.lacks_wording:
        written = await write_wording(job.task, Rewriter(job.rewriter, asker))
        if job.on_wording is not None:
            job.on_wording(written)
        job = replace(job, task=replace(job.task, written_wording=written))
    return PreparedJob.of(job, asker.ledger)


async def run_job(
    job: Job | PreparedJob,
    items: Iterable[Item] | AsyncIterable[Item],
    asker: Asker,
    strategy: Strategy | None = None,
    missing: Missing | None = None,
) -> Votes:
    """Ask what is not in the ledger yet, and return all votes.

    Items are read as needed, rewriting and asking overlap, and only a bounded number of items is in progress, so memory
    does not grow with the number of rows. A question without an answer stays open (`NOT_ASKED`, counted in the tally)
    and the next run asks it again. With a strategy, asking about an item stops once its label is settled; if there is a
    budget as well, unsettled items stay in memory and the budget goes to those that need it most. Cancelling stops new
    calls, waits for those in flight and stores their replies.

    Args:
        job: What to ask; prepared if it is asked again and again.
        items: The texts.
        asker: How to ask: ledger, budget, pace.
        strategy: The order of the questions, and when a label is settled; None to ask everything.
        missing: Filled with the reasons why votes are missing, row by row; None if that need not be known.

    Raises:
        ConfigError: The strategy asks a cell that the job does not have.
        ModelError: A wrong key, model name or server; no call would be answered.
        LedgerError: Replies can no longer be stored.
    """
    prepared = job if isinstance(job, PreparedJob) else await prepare_job(job, asker)
    item_asker = ItemAsker(prepared, asker, missing)
    job = item_asker.job
    # enough items in progress to keep every model busy while some wait for a rewrite
    if strategy is None:
        work = _ask_everything(item_asker, items)
        at_once = 8 + 2 * asker.max_in_flight // (job.draws * len(job.relations))
    else:
        job.check_strategy(strategy)
        work = adaptive_work(item_asker, strategy, as_async(items))
        at_once = 8 + 2 * asker.max_in_flight * job.models  # each may be waiting for a single answer
    with _collecting_garbage_rarely():
        await TaskPool(asker).work_through(work, at_once)
    return item_asker.buffer.votes()


async def _ask_everything(item_asker: ItemAsker, items: Iterable[Item] | AsyncIterable[Item]) -> AsyncIterator[Work]:
    if isinstance(items, AsyncIterable):  # each may be long in coming
        blocks: AsyncIterable[Sequence[Item]] = ([item] async for item in items)
    else:
        job = item_asker.job
        questions = len(job.annotators) * len(job.relations) * job.draws
        blocks = as_async(in_blocks(items, max(1, QUESTIONS_AT_ONCE // questions)))
    async for block in blocks:
        for work in await item_asker.look_up(block):
            yield work


def in_blocks(items: Iterable[T], size: int) -> Iterator[Sequence[T]]:
    """Yield items in lists of some size, and the rest."""
    rest = iter(items)
    while block := list(islice(rest, size)):
        yield block


@contextmanager
def _collecting_garbage_rarely() -> Iterator[None]:
    """Collect garbage less often: with hundreds of calls in flight, Python would scan them again and again."""
    before = gc.get_threshold()
    gc.set_threshold(*GARBAGE_THRESHOLD)
    try:
        yield
    finally:
        gc.set_threshold(*before)


class TaskPool:
    """The tasks of a run: how many at once, which are still running, and the first error."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker
        self._fatal: Exception | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def work_through(self, work: AsyncIterator[Work], at_once: int) -> None:
        """Do all the work, at most `at_once` parts at a time; a part is taken only when there is room for it."""
        room = asyncio.Semaphore(at_once)
        try:
            await room.acquire()
            async for part in work:
                task = asyncio.create_task(self._guarded(part, room))
                self._tasks.add(task)
                task.add_done_callback(self._finished)
                await room.acquire()
                if self._fatal is not None:
                    break
            if self._tasks:
                await asyncio.wait(self._tasks, return_when=asyncio.FIRST_EXCEPTION)
            if self._fatal is not None:
                raise self._fatal
        except BaseException:
            self._asker.stop(Interrupted("stopped; every answer that was paid for is in the ledger"))
            await self._finish_calls()
            raise

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # `_fatal` has it; asyncio would report it as never retrieved

    async def _finish_calls(self) -> None:
        """Give calls in flight a few seconds to finish, because they may be billed; then cancel them."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=SECONDS_TO_FINISH)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _guarded(self, part: Work, room: asyncio.Semaphore) -> None:
        try:
            await part()
        except Exception as error:
            if self._fatal is None:
                self._fatal = error
                self._asker.stop(error if isinstance(error, PcsError) else Interrupted(f"stopped by {error!r}"))
            raise
        finally:
            room.release()


async def as_async(items: Iterable[T] | AsyncIterable[T]) -> AsyncIterator[T]:
    """Yield the items of an iterable, asynchronous or not."""
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item
