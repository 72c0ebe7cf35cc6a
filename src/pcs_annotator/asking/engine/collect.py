"""Runs a job: items in, votes out.

All questions are asked, or those about each item until its label is settled.
"""

import asyncio
import gc
from collections import defaultdict
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice, repeat
from typing import TypeVar

import numpy as np

from pcs_annotator.asking.engine.budget import Budget
from pcs_annotator.asking.engine.call import Asker, Deferred
from pcs_annotator.asking.engine.item_asker import ItemAsker, Missing, PreparedJob
from pcs_annotator.asking.engine.job import Job
from pcs_annotator.base.concurrency import gather_all
from pcs_annotator.base.errors import Interrupted, PcsError
from pcs_annotator.core.arrays import CODE, Codes, Floats
from pcs_annotator.core.task import Item
from pcs_annotator.core.votes import NOT_ASKED, OPEN, Cell, Strategy, Votes

Work = Callable[[], Awaitable[None]]


def adaptive_work(
    item_asker: ItemAsker, strategy: Strategy, items: Iterable[Item] | AsyncIterable[Item]
) -> AsyncIterator[Work]:
    """Return the work on all items: item by item without a budget; with one, every item gets its first answers first.

    Without a budget, an item is dropped as soon as it is settled. With one, all unsettled items stay in memory, with
    their texts and one byte per cell.
    """
    waiting = _adaptive_items(item_asker, strategy, _blocks(items, TEXTS_READ_AT_ONCE))
    if item_asker.asker.tracker.budget == Budget():
        return (adaptive_item.settle async for adaptive_item in waiting)
    return _first_steps_first(waiting)


async def _adaptive_items(
    item_asker: ItemAsker, strategy: Strategy, blocks: AsyncIterable[Sequence[Item]]
) -> "AsyncIterator[AdaptiveItem]":
    untouched = np.full(item_asker.job.shape, NOT_ASKED, dtype=CODE)
    asked = [set(item_asker.job.asked_under(relation)) for relation in range(untouched.shape[1])]
    for cell in strategy.order:
        if cell.annotator in asked[cell.relation]:
            untouched[cell] = OPEN
    async for block in blocks:
        priors = strategy.text_priors([item.text for item in block])
        for item, prior in zip(block, repeat(None) if priors is None else priors, strict=False):
            row = item_asker.buffer.add_row(item)
            yield AdaptiveItem(item_asker, strategy, item, row, untouched.copy(), prior)


class AdaptiveItem:
    """One item, asked about until its label is settled or no cell is open."""

    __slots__ = ("_cells", "_item", "_item_asker", "_prior", "_strategy", "_texts", "row")

    def __init__(  # what there is to know of an item
        self, item_asker: ItemAsker, strategy: Strategy, item: Item, row: int, cells: Codes, prior: Floats | None
    ) -> None:
        self.row, self._prior = row, prior
        self._item_asker, self._strategy, self._item, self._cells = item_asker, strategy, item, cells
        self._texts: dict[int, str | None] = {}

    async def settle(self) -> None:
        """Take steps until none is left."""
        while await self.step():
            pass

    async def step(self) -> bool:
        """Ask all cells that must be asked next, at the same time; return whether there may be more after them."""
        needed = self._strategy.needed(self._cells, self._prior)
        batch = list(islice((cell for cell in self._strategy.order if self._cells[cell] == OPEN), max(0, needed)))
        if not batch:
            self._item_asker.finish(self.row)
            self._item_asker.tally.spared += int((self._cells == OPEN).sum())
            return False
        try:
            await self._ask(batch)
        except Deferred:
            return False
        return True

    async def _ask(self, batch: Sequence[Cell]) -> None:
        by_relation: dict[int, list[Cell]] = defaultdict(list)
        for cell in batch:
            by_relation[cell.relation].append(cell)
        await gather_all(self._ask_relation(relation, some) for relation, some in by_relation.items())
        votes = self._item_asker.buffer.row(self.row)
        for cell in batch:
            # a cell whose call failed becomes `NOT_ASKED` and is no longer open, so that every step makes progress
            self._cells[cell] = votes[cell]

    async def _ask_relation(self, relation: int, batch: Sequence[Cell]) -> None:
        if relation not in self._texts:
            self._texts[relation] = await self._item_asker.rewrite(self.row, self._item, relation)
        text = self._texts[relation]
        if text is None:
            cells = self._cells[:, relation]
            cells[cells == OPEN] = NOT_ASKED
            return
        wanted: dict[int, list[int]] = defaultdict(list)
        for cell in batch:
            wanted[cell.annotator].append(cell.draw)
        await self._item_asker.ask(self.row, relation, text, wanted.items())


async def _first_steps_first(adaptive_items: AsyncIterable[AdaptiveItem]) -> AsyncIterator[Work]:
    """Yield the first step of every item, and then the rest of those that it did not settle."""
    ended: asyncio.Queue[AdaptiveItem | None] = asyncio.Queue()
    begun = 0

    async def first(item: AdaptiveItem) -> None:
        unsettled = None
        try:
            unsettled = item if await item.step() else None
        finally:
            ended.put_nowait(unsettled)

    async for item in adaptive_items:
        begun += 1
        yield partial(first, item)
    for _ in range(begun):
        if (unsettled := await ended.get()) is not None:
            yield unsettled.settle


SECONDS_TO_FINISH = 10.0
GARBAGE_THRESHOLD = (20_000, 20, 50)
QUESTIONS_AT_ONCE = 32  # questions that are looked up in the ledger together
TEXTS_READ_AT_ONCE = 64  # which takes a tenth of the time of reading them one by one

T = TypeVar("T")


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
    and the next run asks it again; `missing`, if given, is filled with the reasons, row by row. With a strategy, asking
    about an item stops once its label is settled; if there is a budget as well, unsettled items stay in memory until
    every item has its first answers. Cancelling stops new calls, waits for those in flight and stores their
    replies. A job that is asked again and again should be prepared.
    """
    prepared = job if isinstance(job, PreparedJob) else PreparedJob.of(job, asker.ledger)
    item_asker = ItemAsker(prepared, asker, missing)
    job = item_asker.job
    # enough items in progress to keep every model busy while some wait for a rewrite
    if strategy is None:
        work = _ask_everything(item_asker, items)
        at_once = 8 + 2 * asker.max_in_flight // (job.draws * len(job.relations))
    else:
        job.check_strategy(strategy)
        work = adaptive_work(item_asker, strategy, items)
        at_once = 8 + 2 * asker.max_in_flight * job.models  # each may be waiting for a single answer
    with _collecting_garbage_rarely():
        await TaskPool(asker).work_through(work, at_once)
    return item_asker.buffer.votes()


async def _ask_everything(item_asker: ItemAsker, items: Iterable[Item] | AsyncIterable[Item]) -> AsyncIterator[Work]:
    job = item_asker.job
    questions = len(job.annotators) * len(job.relations) * job.draws
    async for block in _blocks(items, max(1, QUESTIONS_AT_ONCE // questions)):
        for work in await item_asker.look_up(block):
            yield work


def _blocks(items: Iterable[T] | AsyncIterable[T], size: int) -> AsyncIterator[Sequence[T]]:
    """Return items in lists of some size, or one by one if each may be long in coming."""
    if isinstance(items, AsyncIterable):
        return ([item] async for item in items)
    return as_async(in_blocks(items, size))


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
        try:
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=SECONDS_TO_FINISH)
        finally:
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
