"""Asks step by step: about each item until its label is settled; with a budget, where it matters most."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from heapq import heappop, heappush
from itertools import islice
from math import inf

import numpy as np

from pcs_annotator.asking.engine.ask import Deferred
from pcs_annotator.asking.engine.budget import Budget, BudgetTracker
from pcs_annotator.asking.engine.item_asker import BUDGET_REACHED, ItemAsker
from pcs_annotator.asking.engine.progress import Tally
from pcs_annotator.base.concurrency import gather_all
from pcs_annotator.core.arrays import CODE, Codes
from pcs_annotator.core.task import Item
from pcs_annotator.core.vote import NOT_ASKED, OPEN, Cell, Strategy

CALLS_LEFT_PER_STEP = 4
"""Calls that the budget must still allow per step in progress, so that the last calls go to the most urgent items."""

Work = Callable[[], Awaitable[None]]


def adaptive_work(item_asker: ItemAsker, strategy: Strategy, items: AsyncIterable[Item]) -> AsyncIterator[Work]:
    """Return the work on all items: item by item without a budget, step by step with one.

    Without a budget, an item is dropped as soon as it is settled. With one, all unsettled items stay in memory, with
    their texts and one byte per cell, so that the most urgent can be chosen.
    """
    tracker = item_asker.asker.tracker
    waiting = _adaptive_items(item_asker, strategy, items)
    if tracker.budget == Budget():
        return (adaptive_item.settle async for adaptive_item in waiting)
    return Rationing(tracker, item_asker.tally).steps(waiting)


async def _adaptive_items(
    item_asker: ItemAsker, strategy: Strategy, items: AsyncIterable[Item]
) -> AsyncIterator[AdaptiveItem]:
    untouched = np.full(item_asker.job.shape, NOT_ASKED, dtype=CODE)
    asked = [set(item_asker.job.asked_under(relation)) for relation in range(untouched.shape[1])]
    for cell in strategy.order:
        if cell.annotator in asked[cell.relation]:
            untouched[cell] = OPEN
    async for item in items:
        yield AdaptiveItem(item_asker, strategy, item, item_asker.buffer.add_row(item), untouched.copy())


class AdaptiveItem:
    """One item, asked about until its label is settled or no cell is open."""

    __slots__ = ("_cells", "_item", "_item_asker", "_next", "_said", "_strategy", "_texts", "row")

    def __init__(self, item_asker: ItemAsker, strategy: Strategy, item: Item, row: int, cells: Codes) -> None:
        self.row = row
        self._item_asker, self._strategy, self._item, self._cells = item_asker, strategy, item, cells
        self._said = strategy.said_of(item.text)
        self._texts: dict[int, str | None] = {}
        self._next: list[Cell] | None = None

    @property
    def urgency(self) -> float:
        """How likely further votes are to change the label."""
        return self._strategy.urgency(self._cells, self._said)

    async def settle(self) -> None:
        """Take steps until none is left."""
        while await self.step():
            pass

    async def step(self) -> bool:
        """Ask all cells that must be asked next, at the same time; return whether more must be asked after them."""
        batch = self._choose() if self._next is None else self._next
        if batch:
            try:
                await self._ask(batch)
            except Deferred:
                return False
            batch = self._choose()
        self._next = batch
        if not batch:
            self._item_asker.finish(self.row)
            self._item_asker.tally.spared += int((self._cells == OPEN).sum())
        return bool(batch)

    def _choose(self) -> list[Cell]:
        needed = self._strategy.needed(self._cells, self._said)
        return list(islice((cell for cell in self._strategy.order if self._cells[cell] == OPEN), max(0, needed)))

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


class Rationing:
    """Spends a budget on the items whose labels it is most likely to change.

    Every item takes its first step, in row order. After that, the most urgent item always takes the next step.
    """

    def __init__(self, tracker: BudgetTracker, tally: Tally) -> None:
        self._tracker, self._tally = tracker, tally
        self._refused_before = tally.failed[BUDGET_REACHED]
        self._waiting: list[tuple[float, int, AdaptiveItem]] = []
        self._under_way = 0
        self._step_ended = asyncio.Event()

    async def steps(self, adaptive_items: AsyncIterable[AdaptiveItem]) -> AsyncIterator[Work]:
        """Yield steps, each chosen only when the caller is ready for it."""
        async for adaptive_item in adaptive_items:
            yield self._begin(adaptive_item)
        while self._under_way:
            await self._until_a_step_ends()
        while self._waiting or self._under_way:
            if self._waiting and self._under_way < self._at_once():
                yield self._begin(heappop(self._waiting)[-1])
            else:
                await self._until_a_step_ends()

    def _begin(self, adaptive_item: AdaptiveItem) -> Work:
        self._under_way += 1
        return partial(self._step, adaptive_item)

    async def _step(self, adaptive_item: AdaptiveItem) -> None:
        try:
            if await adaptive_item.step():
                heappush(self._waiting, (-adaptive_item.urgency, adaptive_item.row, adaptive_item))
        finally:
            self._under_way -= 1
            self._step_ended.set()

    async def _until_a_step_ends(self) -> None:
        self._step_ended.clear()
        await self._step_ended.wait()

    def _at_once(self) -> float:
        """Return how many steps may run at once: fewer as the budget runs out, no limit once it is spent."""
        if self._tally.failed[BUDGET_REACHED] > self._refused_before:
            return inf
        return max(1.0, self._tracker.calls_left() / CALLS_LEFT_PER_STEP)
