"""Asking step by step: each item until its label is settled, and when money is short, where it counts most."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from heapq import heappop, heappush
from itertools import islice
from math import inf
from typing import Protocol

import numpy as np

from pcs_annotator.asking.engine.budget import Budget, Purse
from pcs_annotator.asking.engine.poll import NO_MONEY, Poll, all_of
from pcs_annotator.asking.engine.tally import Tally
from pcs_annotator.core.arrays import Codes
from pcs_annotator.core.cells import Cell
from pcs_annotator.core.codes import NOT_ASKED, OPEN
from pcs_annotator.core.item import Item

CALLS_LEFT_PER_STEP = 4
"""Calls that must still be affordable for each step under way, so that the last money goes to the most urgent."""

Work = Callable[[], Awaitable[None]]


class Strategy(Protocol):
    """What is asked first, and when to stop.

    Both methods see the codes of one item by annotator, relation and draw: a label, `ABSTAINED`, `OPEN` where it may
    still be asked, `NOT_ASKED` where it never can be. They must not change them.
    """

    @property
    def order(self) -> Sequence[Cell]:
        """The cells of a job, those to ask first in front; what is not among them is never asked."""
        ...

    def needed(self, cells: Codes) -> int:
        """Return how many of the next open cells must be asked in any case; 0 when the label is settled."""
        ...

    def urgency(self, cells: Codes) -> float:
        """Return how likely further votes change the label, on any scale; the highest is asked about first."""
        ...


def adaptive_work(poll: Poll, strategy: Strategy, items: AsyncIterable[Item]) -> AsyncIterator[Work]:
    """Return the work on all items: item by item without a budget, step by step with one.

    Without a budget an item is forgotten once it is settled. With one, the items that are not settled are all kept,
    with their texts and a byte per cell, to choose among them.
    """
    purse = poll.asker.purse
    inquiries = _inquiries(poll, strategy, items)
    return _one_by_one(inquiries) if purse.budget == Budget() else Rationing(purse, poll.tally).steps(inquiries)


async def _inquiries(poll: Poll, strategy: Strategy, items: AsyncIterable[Item]) -> AsyncIterator[Inquiry]:
    untouched = np.full(poll.job.shape, NOT_ASKED, dtype=np.int8)
    for cell in strategy.order:
        untouched[cell] = OPEN
    async for item in items:
        yield Inquiry(poll, strategy, item, poll.sheet.add_row(item.id), untouched.copy())


async def _one_by_one(inquiries: AsyncIterable[Inquiry]) -> AsyncIterator[Work]:
    async for inquiry in inquiries:
        yield inquiry.settle


class Inquiry:
    """One item that is asked about until its label is settled or nothing is open any more."""

    __slots__ = ("_cells", "_item", "_next", "_poll", "_strategy", "_texts", "row")

    def __init__(self, poll: Poll, strategy: Strategy, item: Item, row: int, cells: Codes) -> None:
        self.row = row
        self._poll, self._strategy, self._item, self._cells = poll, strategy, item, cells
        self._texts: dict[int, str | None] = {}
        self._next: list[Cell] | None = None

    @property
    def urgency(self) -> float:
        """How likely further votes change the label."""
        return self._strategy.urgency(self._cells)

    async def settle(self) -> None:
        """Take every step."""
        while await self.step():
            pass

    async def step(self) -> bool:
        """Ask all that must be asked next, at the same time; return whether that leaves anything to ask."""
        batch = self._choose() if self._next is None else self._next
        if batch:
            await self._ask(batch)
            batch = self._choose()
        self._next = batch
        if not batch:
            self._poll.tally.rows += 1
            self._poll.tally.spared += int((self._cells == OPEN).sum())
        return bool(batch)

    def _choose(self) -> list[Cell]:
        needed = self._strategy.needed(self._cells)
        return list(islice((cell for cell in self._strategy.order if self._cells[cell] == OPEN), max(0, needed)))

    async def _ask(self, batch: Sequence[Cell]) -> None:
        by_relation: dict[int, list[Cell]] = defaultdict(list)
        for cell in batch:
            by_relation[cell.relation].append(cell)
        await all_of(self._ask_relation(relation, some) for relation, some in by_relation.items())
        votes = self._poll.votes_on(self.row)
        for cell in batch:
            # what failed reads `NOT_ASKED` and is no longer open, so that every step comes closer to the end
            self._cells[cell] = votes[cell]

    async def _ask_relation(self, relation: int, batch: Sequence[Cell]) -> None:
        if relation not in self._texts:
            self._texts[relation] = await self._poll.rewrite(self._item, relation)
        text = self._texts[relation]
        if text is None:
            cells = self._cells[:, relation]
            cells[cells == OPEN] = NOT_ASKED
            return
        wanted: dict[int, list[int]] = defaultdict(list)
        for cell in batch:
            wanted[cell.annotator].append(cell.draw)
        await self._poll.ask(self.row, relation, text, wanted.items())


class Rationing:
    """Spends a budget where it changes most decisions.

    Every item takes its first step, in the order of rows. From then on the most urgent item takes the next step.
    """

    def __init__(self, purse: Purse, tally: Tally) -> None:
        self._purse, self._tally = purse, tally
        self._refused_before = tally.failed[NO_MONEY]
        self._waiting: list[tuple[float, int, Inquiry]] = []
        self._under_way = 0
        self._step_ended = asyncio.Event()

    async def steps(self, inquiries: AsyncIterable[Inquiry]) -> AsyncIterator[Work]:
        """Yield steps, each chosen when it is asked for."""
        async for inquiry in inquiries:
            yield self._begin(inquiry)
        while self._under_way:
            await self._until_a_step_ends()
        while self._waiting or self._under_way:
            if self._waiting and self._under_way < self._at_once():
                yield self._begin(heappop(self._waiting)[-1])
            else:
                await self._until_a_step_ends()

    def _begin(self, inquiry: Inquiry) -> Work:
        self._under_way += 1
        return partial(self._step, inquiry)

    async def _step(self, inquiry: Inquiry) -> None:
        try:
            if await inquiry.step():
                heappush(self._waiting, (-inquiry.urgency, inquiry.row, inquiry))
        finally:
            self._under_way -= 1
            self._step_ended.set()

    async def _until_a_step_ends(self) -> None:
        self._step_ended.clear()
        await self._step_ended.wait()

    def _at_once(self) -> float:
        """Return how many steps may be under way: fewer and fewer towards the end, as many as can be after it."""
        if self._tally.failed[NO_MONEY] > self._refused_before:
            return inf
        return max(1.0, calls_left(self._purse) / CALLS_LEFT_PER_STEP)


def calls_left(purse: Purse) -> float:
    """Return about how many more calls a budget pays for, at what they cost so far; infinity when nobody knows."""
    budget = purse.budget
    left = inf if budget.calls is None else budget.calls - purse.calls
    for limit, spent in ((budget.usd, purse.usd), (budget.tokens, purse.tokens)):
        if limit is not None and spent:
            left = min(left, (limit - spent) / spent * purse.calls)
    return left
