"""Asks the questions of a job: an executor fills the ledger, and what is still missing then is asked live."""

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pcs_annotator.asking.batches.waves import ask_in_waves, check_batches
from pcs_annotator.asking.engine.call import Asker
from pcs_annotator.asking.engine.collect import as_async, run_job
from pcs_annotator.asking.engine.job import Job
from pcs_annotator.asking.engine.progress import showing
from pcs_annotator.asking.ledger.lock import SharedCalls, lock_ledger, lock_ledger_async
from pcs_annotator.asking.ledger.open_ledger import open_ledger
from pcs_annotator.base.concurrency import run_sync
from pcs_annotator.base.errors import InputError
from pcs_annotator.core.arrays import is_column, values_of
from pcs_annotator.core.ledger_address import LedgerAddress
from pcs_annotator.core.task import Item, Task
from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.core.votes import Strategy, Votes
from pcs_annotator.runs import ask
from pcs_annotator.runs.own_objects import RelationLike
from pcs_annotator.runs.ray_cluster import ask_on_cluster, check_cluster
from pcs_annotator.tables.chunks import items_of


def check_executor(name: str, job: Job, ledger: LedgerAddress) -> None:
    """Raise if an executor cannot ask the questions of a job, or is not installed."""
    if name == "batch":
        check_batches(job)
    if name == "ray":
        check_cluster(ledger)


@asynccontextmanager
async def asking(
    job: Job,
    items: Iterable[Item],
    ledger: LedgerAddress,
    settings: ask.CollectSettings,
    strategy: Strategy | None = None,
    shared: SharedCalls | None = None,
) -> AsyncIterator[Asker]:
    """Fill the ledger as the settings say, and yield what asks the rest live; close the models. The caller locks it."""
    ask.warn_about_hard_models(job)
    try:
        ask.refuse_unknown_prices(job, ask.pricing(settings.prices), settings.budget)
        with open_ledger(ledger) as opened:
            asker, elsewhere = ask.open_asker(opened, settings, shared), 0
            if settings.batches is not None:
                asker, elsewhere = await ask_in_waves(job, items, asker, strategy, settings.batches)
            elif settings.cluster is not None:
                paid = await ask_on_cluster(job, items, ledger, settings, strategy)
                left = replace(settings, budget=settings.budget.after(*paid))
                asker, elsewhere = ask.open_asker(opened, left, shared), paid.calls
            async with showing(settings.tally, asker.tracker) if settings.progress else nullcontext():
                yield asker
        settings.tally.count_as_paid(elsewhere)  # they are in the ledger by now, but were paid for in this command
    finally:
        await ask.close_models(job)
    ask.warn_about_grades(settings.tally)


async def ask_job(
    job: Job,
    items: Iterable[Item] | AsyncIterable[Item],
    ledger: LedgerAddress,
    settings: ask.CollectSettings,
    strategy: Strategy | None = None,
    shared: SharedCalls | None = None,
) -> Votes:
    """Return the votes on items: everything is asked, or what the strategy needs; see `asking`."""
    elsewhere = settings.batches is not None or settings.cluster is not None
    texts = [item async for item in as_async(items)] if elsewhere else items
    again = texts if isinstance(texts, list) else ()  # asked live, items are read once, as they are needed
    async with asking(job, again, ledger, settings, strategy, shared) as asker:
        return await run_job(job, texts, asker, strategy)


async def collect(  # noqa: PLR0913  # the agreed signature
    task: Task,
    items: object,
    annotators: Sequence[object],
    relations: Sequence[RelationLike] = (ORIGINAL,),
    *,
    ledger: LedgerAddress = "ledger.db",
    budget_usd: float | None = None,
    settings: ask.CollectSettings | None = None,
) -> Votes:
    """Ask every annotator about every item and return the votes.

    Answers in the ledger are not asked for again, so a second run, or one after a crash, asks only what is missing.
    Processes and threads that share a file take turns; those that share a PostgreSQL server ask at the same time, as do
    tasks of one event loop. Nothing is paid for twice.

    Args:
        task: What to decide.
        items: The texts: an iterable, also an asynchronous one, of `Item`s or texts, read as they are needed; or a data
            frame, another table or the path of one.
        annotators: `Annotator`s, or anything that names a model: `provider:model`, a URL, a LangChain chat model, a
            function. `groq:gemma2-9b-it/1s-top-2` also asks that model for its two best guesses and their confidence.
        relations: How texts are rewritten: names such as `"case"` or `"case+typo"`, your own relations, or
            functions that take a text and return its rewrite, or None where they do not apply.
        ledger: The file that keeps paid calls, or the address of a PostgreSQL server that does, `postgresql://…`.
        budget_usd: The most that may be spent in this ledger, earlier calls included; the price of every model must
            then be known.
        settings: Everything else.
    """
    settings = settings or ask.CollectSettings()
    if budget_usd is not None:
        settings = replace(settings, budget=replace(settings.budget, usd=budget_usd))
    job = ask.open_job(task, annotators, relations, settings)
    async with lock_ledger_async(ledger, wait=settings.wait) as shared:
        return await ask_job(job, _items(items), ledger, settings, shared=shared)


def _items(source: Any) -> Iterable[Item] | AsyncIterable[Item]:
    if isinstance(source, AsyncIterable):
        return source
    if not is_column(source):
        return items_of(source)
    values = values_of(source, "items") if hasattr(source, "to_pylist") else source
    return (_item(number, entry) for number, entry in enumerate(values, 1))


def _item(number: int, entry: object) -> Item:
    if not isinstance(entry, Item | str):
        raise InputError(f"number {number} of the items is a {type(entry).__name__}: give texts, Items or a table")
    return Item(id=str(number), text=entry) if isinstance(entry, str) else entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """The models and relations to ask with."""

    task: Task  # what to decide
    annotators: Sequence[object]  # `Annotator`s, or anything that names a model
    relations: Sequence[RelationLike] = (ORIGINAL,)  # names, your own relations, or functions
    ledger: LedgerAddress = "ledger.db"  # the file or server that keeps paid calls
    settings: ask.CollectSettings = field(default_factory=ask.CollectSettings)  # how to ask

    async def ask(self, texts: Sequence[str]) -> Votes:
        """Return the votes on texts; equal ones are asked about once, and nothing that the ledger has an answer to."""
        places = {text: row for row, text in enumerate(dict.fromkeys(texts))}
        items = [Item(id=str(row), text=text) for text, row in places.items()]
        votes = await collect(
            self.task, items, self.annotators, self.relations, ledger=self.ledger, settings=self.settings
        )
        return votes.resampled(np.array([places[text] for text in texts], dtype=np.intp))

    def ask_now(self, texts: Sequence[str]) -> Votes:
        """Return the votes on texts, for synchronous code; the workers of a grid search take turns without a word."""
        with lock_ledger(self.ledger, wait=self.settings.wait, say=lambda _: None):
            return run_sync(lambda: self.ask(texts))
