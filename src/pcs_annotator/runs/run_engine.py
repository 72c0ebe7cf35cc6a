"""A fitted run with its models open: labels texts in a thread of its own, for ordinary and asynchronous code."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pcs_annotator.asking.ledger.open_ledger import AnyLedger, open_ledger
from pcs_annotator.base.errors import AccessDenied, PcsError, UserError
from pcs_annotator.core.ledger_address import LedgerAddress
from pcs_annotator.core.task import Item
from pcs_annotator.runs import ask
from pcs_annotator.runs.drift_text import warn_if_unlike
from pcs_annotator.runs.files.runs import RunFolder
from pcs_annotator.runs.fitted import FittedRun
from pcs_annotator.runs.judge_together import RecentTexts
from pcs_annotator.runs.large.chunks import ChunkLabeller, LabelledChunk
from pcs_annotator.runs.ledgers import ledger_of
from pcs_annotator.runs.own_objects import OwnObjects
from pcs_annotator.runs.run import Run
from pcs_annotator.runs.settings import Saving
from pcs_annotator.verbs.label import open_fitted

T = TypeVar("T")
NO_ANSWER = "no model gave a usable answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """How a loaded run labels.

    Attributes:
        text_column: The column of texts; None to look for one with a usual name, or take the only column.
        in_flight: Maximum number of concurrent calls per model, in each process; None for that of the run.
        ledger: Where paid calls are kept, a file or `postgresql://…`; None for the run's own ledger.
        environment: Keys and base URLs; None for those of the process and of `.env`, wherever tables are labelled.
        saving: When to stop asking, and what may be spent by each process.
        own: Models and relations that the run was given as objects.
    """

    text_column: str | None = None
    in_flight: int | None = None
    ledger: LedgerAddress | None = field(default=None, repr=False)  # it may have a password
    environment: Mapping[str, str] | None = field(default=None, repr=False)
    saving: Saving = field(default_factory=Saving)
    own: OwnObjects = field(default_factory=OwnObjects, repr=False)


@dataclass(slots=True)
class RunEngine:
    """A fitted run with its ledger and models open, and the thread whose event loop asks.

    Attributes:
        process: The process that opened it.
    """

    process: int
    _loop: asyncio.AbstractEventLoop
    _closing: AsyncExitStack
    _labeller: ChunkLabeller
    _recent: RecentTexts
    _place: tuple[LedgerAddress, RunFolder]
    _closed: bool = False

    @classmethod
    def open(cls, folder: Path, options: LoadOptions) -> RunEngine:
        """Open a run; a missing key or a damaged folder is an error here."""
        recorded = Run.open(folder)
        fitted = open_fitted(recorded, options.saving, options.environment, options.own)
        if options.in_flight is not None:
            fitted = replace(fitted, settings=replace(fitted.settings, in_flight=options.in_flight))
        ask.refuse_unknown_prices(fitted.job, ask.pricing(fitted.settings.prices), fitted.settings.budget)
        address = options.ledger or ledger_of(recorded.folder, recorded.config)
        place = address, recorded.folder
        ledger = open_ledger(address, shared=True)
        loop = asyncio.new_event_loop()
        threading.Thread(target=_run, args=(loop,), name="pcs-engine", daemon=True).start()
        try:
            return _wait_for(cls._enter(fitted, ledger, place), loop)
        except BaseException:
            loop.call_soon_threadsafe(loop.stop)
            raise

    @classmethod
    async def _enter(cls, fitted: FittedRun, ledger: AnyLedger, place: tuple[LedgerAddress, RunFolder]) -> RunEngine:
        async with AsyncExitStack() as stack:
            stack.enter_context(ledger)
            asker = ask.open_asker(ledger, fitted.settings)
            labeller = await stack.enter_async_context(ChunkLabeller(fitted, asker))
            recent = RecentTexts(fitted.model.profile, fitted.on_drift)
            return cls(os.getpid(), asyncio.get_running_loop(), stack.pop_all(), labeller, recent, place)

    async def acall(self, work: Coroutine[Any, Any, T]) -> T:
        """Do the same as `call`, for asynchronous code; cancelling it stops the work and keeps paid answers."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the thread that asks, and return its result; Ctrl-C stops it and keeps paid answers."""
        return _wait_for(work, self._loop)

    def close(self) -> None:
        """Close models and ledger, if this process opened them and they are still open."""
        if self.process == os.getpid() and not self._closed:
            self._closed = True
            self.call(self._closing.aclose())
            self._loop.call_soon_threadsafe(self._loop.stop)

    async def label(self, items: Sequence[Item]) -> Answered:
        """Return what models and ledger say about some texts; a model that fails is no error."""
        labeller, failure = self._labeller, ""
        asker = labeller.asker
        try:
            chunk = await labeller.label(items)
        except UserError:
            raise
        except PcsError as error:
            if isinstance(error, AccessDenied) and not asker.tracker.calls:
                raise  # wrong from the start, so for all rows
            failure = str(error)
            if labeller.asker is asker:  # its pace is closed for all texts; the next call tries again
                labeller.asker = asker.restarted()
            try:
                chunk = await labeller.label_from_ledger(items)
            except PcsError:  # the ledger itself has failed
                return Answered(labeller.fitted, None, [failure] * len(items))
        silent = chunk.votes.silent
        reasons = [failure or "; ".join(chunk.missing.get(row, ())) or NO_ANSWER for row in range(len(items))]
        why = [reason if silent[row] else None for row, reason in enumerate(reasons)]
        return Answered(*self._decided([item.text for item in items], chunk), why)

    def _decided(self, texts: Sequence[str], chunk: LabelledChunk) -> tuple[FittedRun, LabelledChunk]:
        """Return the run and the texts with their decisions, which depend on whether recent texts differ."""
        fitted, before = self._labeller.fitted, self._recent.found
        model, judged = self._recent.judged(fitted.model, texts, chunk.votes)
        if not (before and before.found):
            warn_if_unlike(self._recent.found, fitted, *self._place)
        return replace(fitted, model=model), chunk._replace(judged=judged)


class Answered(NamedTuple):
    """What is known about some texts.

    Attributes:
        fitted: The run that was asked.
        chunk: Votes and verdicts; None if there are none at all.
        why: Why a text has no label; None if it has one.
    """

    fitted: FittedRun
    chunk: LabelledChunk | None
    why: Sequence[str | None]


def _run(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()


def _wait_for(work: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> T:
    future = asyncio.run_coroutine_threadsafe(work, loop)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise
