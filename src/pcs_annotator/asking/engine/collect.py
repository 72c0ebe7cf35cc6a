"""The one loop: items in, votes out."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from pcs_annotator.asking.annotators.annotator import Annotator, Question
from pcs_annotator.asking.engine.ask import Asker, Call
from pcs_annotator.asking.engine.ledger import call_key
from pcs_annotator.asking.engine.rewriter import Rewriter
from pcs_annotator.asking.engine.sheet import Sheet
from pcs_annotator.asking.models.base import ChatModel, Reply
from pcs_annotator.asking.relations.base import Context, Original, Relation
from pcs_annotator.core.item import Item
from pcs_annotator.core.task import Task
from pcs_annotator.core.variant import Variant
from pcs_annotator.core.vote import Vote
from pcs_annotator.core.votes import Votes
from pcs_annotator.errors import (
    BudgetReached,
    ConfigError,
    Interrupted,
    PcsError,
    RateLimited,
    ServerTrouble,
    Unanswerable,
)

SECONDS_TO_COME_HOME = 10.0
GARBAGE_THRESHOLD = (20_000, 20, 50)


OnVariant = Callable[[Item, Variant], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Who is asked what.

    Attributes:
        task: What to decide.
        annotators: Who decides, with the model of each.
        relations: How texts are shown to them.
        rewriter: The model that rewrites; None when no relation needs one.
        draws: How often the same question is repeated.
        on_variant: Told of every variant, in no particular order: item and variant.
    """

    task: Task
    annotators: Sequence[tuple[Annotator, ChatModel]]
    relations: Sequence[Relation] = (Original(),)
    rewriter: ChatModel | None = None
    draws: int = 1
    on_variant: OnVariant | None = None

    def __post_init__(self) -> None:
        if not self.annotators or not self.relations or self.draws < 1:
            raise ConfigError("nothing to ask: name at least one annotator, one relation and one draw")
        for relation in self.relations:
            if "rewriter" in relation.needs and self.rewriter is None:
                raise ConfigError(f"relation {relation.name!r} needs a model that rewrites: name one as rewriter")


async def run_job(job: Job, items: Iterable[Item] | AsyncIterable[Item], asker: Asker) -> Votes:
    """Ask what the ledger does not hold yet and return all votes.

    Items are read as they are needed, rewriting and asking overlap, and only a bounded number of items is in progress,
    so memory does not grow with rows. A question without an answer stays open (`NOT_ASKED`, counted in the tally) and
    is asked again by the next run. Cancelling stops new calls, waits for those in flight and keeps what they bring.

    Raises:
        ModelError: A key, a model name or a server that makes it pointless to go on.
        LedgerError: Replies could no longer be stored.
    """
    run = _Run(job, asker)
    # enough to keep every model busy while some items wait for a rewrite
    at_once = 8 + 2 * asker.max_in_flight // (job.draws * len(job.relations))
    with _collecting_garbage_rarely():
        await run.drive(items, at_once)
    return run.sheet.votes()


@contextmanager
def _collecting_garbage_rarely() -> Iterator[None]:
    """Look for garbage less often: hundreds of calls in flight look like new garbage to Python, again and again."""
    before = gc.get_threshold()
    gc.set_threshold(*GARBAGE_THRESHOLD)
    try:
        yield
    finally:
        gc.set_threshold(*before)


class _Cell(NamedTuple):
    """One question about one variant."""

    annotator: int
    draw: int
    question: Question
    key: bytes


class _Run:
    """State of a run: who failed, who is still out, what came back."""

    def __init__(self, job: Job, asker: Asker) -> None:
        self.job, self.asker, self.tally = job, asker, asker.tally
        names = [annotator.name for annotator, _ in job.annotators]
        self.sheet = Sheet(names, [relation.name for relation in job.relations], job.task.labels, job.draws)
        self._context = Context(ask=None if job.rewriter is None else Rewriter(job.rewriter, asker))
        self._fatal: Exception | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def drive(self, items: Iterable[Item] | AsyncIterable[Item], at_once: int) -> None:
        """Work through all items, some at a time."""
        room = asyncio.Semaphore(at_once)
        try:
            async for item in _as_async(items):
                await room.acquire()
                if self._fatal is not None:
                    break
                row = self.sheet.add_row(item.id)
                task = asyncio.create_task(self._guarded(row, item, room))
                self._tasks.add(task)
                task.add_done_callback(self._finished)
            if self._tasks:
                await asyncio.wait(self._tasks, return_when=asyncio.FIRST_EXCEPTION)
            if self._fatal is not None:
                raise self._fatal
        except BaseException:
            self.asker.stop(Interrupted("stopped; everything that was paid for is kept"))
            await self._come_home()
            raise

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # `_fatal` has it; asyncio would print it as forgotten

    async def _come_home(self) -> None:
        """Give calls in flight a little time, for they may be billed; then let go of them."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=SECONDS_TO_COME_HOME)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _guarded(self, row: int, item: Item, room: asyncio.Semaphore) -> None:
        try:
            relations = range(len(self.job.relations))
            await _all(self._relation(row, item, relation) for relation in relations)
            self.tally.rows += 1
        except Exception as error:
            if self._fatal is None:
                self._fatal = error
                self.asker.stop(error if isinstance(error, PcsError) else Interrupted(f"stopped by {error!r}"))
            raise
        finally:
            room.release()

    async def _relation(self, row: int, item: Item, relation: int) -> None:
        """Rewrite one item in one way and ask everybody about it."""
        variant = await self._variant(item, self.job.relations[relation])
        if variant is None or variant.text is None:
            return
        cells: list[_Cell] = []
        for index, (annotator, model) in enumerate(self.job.annotators):
            question = annotator.question(self.job.task, variant.text, model)
            for draw in range(self.job.draws):
                if isinstance(question, Vote):
                    self._note(row, relation, index, draw, question)
                else:
                    key = call_key(model.name, question.request, draw)
                    cells.append(_Cell(index, draw, question, key))
        known = self.asker.ledger.get_many([cell.key for cell in cells])
        self.tally.from_ledger += len(known)
        for cell in cells:
            if cell.key in known:
                self._read(row, relation, cell, known[cell.key])
        await _all(self._ask(row, relation, cell) for cell in cells if cell.key not in known)

    async def _variant(self, item: Item, relation: Relation) -> Variant | None:
        """Return the item seen through a relation; None when the rewriter left it unanswered."""
        try:
            variant = await relation.rewrite(item.text, self._context)
        except (ServerTrouble, RateLimited, BudgetReached) as error:
            self.tally.failed[_short(error)] += 1
            return None
        except Unanswerable as error:
            variant = Variant(relation=relation.name, status="not_applicable", reason=_short(error))
        if variant.text is None:
            self.tally.silences[f"{relation.name}: {variant.cause}"] += 1
        if self.job.on_variant is not None:
            self.job.on_variant(item, variant)
        return variant

    async def _ask(self, row: int, relation: int, cell: _Cell) -> None:
        model = self.job.annotators[cell.annotator][1]
        request = cell.question.request
        try:
            reply = await self.asker.ask(Call(model, request, cell.key, "label", self.asker.expected(model, request)))
        except Unanswerable as error:
            self._note(row, relation, cell.annotator, cell.draw, Vote(label=None, reason=_short(error)))
        except (ServerTrouble, RateLimited, BudgetReached) as error:
            self.tally.failed[_short(error)] += 1
        else:
            self._read(row, relation, cell, reply)

    def _read(self, row: int, relation: int, cell: _Cell, reply: Reply) -> None:
        annotator = self.job.annotators[cell.annotator][0]
        vote = annotator.vote(reply, self.job.task, cell.question.text, cell.question.cut)
        self._note(row, relation, cell.annotator, cell.draw, vote)

    def _note(self, row: int, relation: int, annotator: int, draw: int, vote: Vote) -> None:
        if vote.label is None:
            self.tally.silences[vote.reason] += 1
        if vote.cut:
            self.tally.cut += 1
        self.sheet.put(row, annotator, relation, draw, vote)


def _short(error: Exception) -> str:
    """Return the kind of trouble without the details that differ from call to call."""
    kinds = {BudgetReached: "budget reached", RateLimited: "asked too fast", ServerTrouble: "no answer"}
    return kinds.get(type(error), str(error).partition(" (")[0])


async def _all(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Do several things at the same time, and all of them to the end; a single one without the cost of a task."""
    parts = list(work)
    if len(parts) == 1:
        await parts[0]
        return
    results = await asyncio.gather(*parts, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result  # only now: what the others had sent is paid for, and must come home


async def _as_async(items: Iterable[Item] | AsyncIterable[Item]) -> AsyncIterator[Item]:
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item
