"""Asks a fitted run about texts and judges the votes: for streams, for a service, and in a thread of its own."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial, reduce
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from pcs_annotator.asking.engine.ask import Asker
from pcs_annotator.asking.engine.budget import Budget, BudgetTracker
from pcs_annotator.asking.engine.collect import prepare_job, run_job
from pcs_annotator.asking.engine.item_asker import Missing, PreparedJob
from pcs_annotator.asking.ledger.lock import SharedCalls
from pcs_annotator.asking.ledger.open_ledger import open_ledger
from pcs_annotator.base.errors import AccessDenied, PcsError, UserError
from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.core.task import Item
from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.model import Model, Verdicts
from pcs_annotator.judging.promising.drift import Drift, Profile, drift, profile
from pcs_annotator.runs import ask
from pcs_annotator.runs.labelling.fitted import FittedRun, LoadOptions, open_fitted
from pcs_annotator.runs.run import Run

T = TypeVar("T")
NO_ANSWER = "no model gave a usable answer"
RECENT_TEXTS, COMPARED_EVERY = 500, 50


class LabelledTexts(NamedTuple):
    """What is known about some texts."""

    model: Model  # what judged them; while recent texts differ from the gold rows, it accepts nothing
    votes: Votes | None  # the votes on them; None if there are none at all
    # scores, labels, probabilities and which are accepted, as arrays; `model.judge` makes outcomes
    judged: Verdicts | None
    why: Sequence[str | None]  # why a text has no label; None if it has one


class Labeller:
    """Asks a fitted run about texts and judges the votes.

    Texts may be asked about at the same time: they share models, budget, pace and calls under way. The caller holds
    the lock of the ledger, if it has one, and closes the models.

    Attributes:
        fitted: The run.
        asker: How it asks; its tracker has what was spent on all texts.
        recent: Whether the last texts are answered like those of the run.
    """

    def __init__(self, fitted: FittedRun, asker: Asker, prepared: PreparedJob) -> None:
        self.fitted, self.asker, self._prepared = fitted, asker, prepared
        self.recent = RecentTexts(fitted.model.profile, fitted.on_drift)

    @classmethod
    async def open(cls, fitted: FittedRun, asker: Asker) -> Labeller:
        """Prepare the questions of a run, once for all texts."""
        return cls(fitted, asker, await prepare_job(fitted.job, asker))

    async def ask(self, items: Sequence[Item], part: Asker, missing: Missing | None = None) -> Votes:
        """Return the votes on texts, as many as their labels need; `part` of the asker counts what they take."""
        return await run_job(self._prepared, items, part, self.fitted.strategy, missing)

    async def label(self, items: Sequence[Item]) -> LabelledTexts:
        """Return what models and ledger say about some texts; a model that fails is not an error.

        A failure closes the pace for all texts, so the next ones are asked with another.
        """
        asker, failure = self.asker, ""
        missing = Missing()
        try:
            votes = await self.ask(items, asker.part(asker.shared), missing)
        except UserError:
            raise
        except PcsError as error:
            if isinstance(error, AccessDenied) and not asker.tracker.calls:
                raise  # wrong from the start, so for all rows
            failure = str(error)
            self.restart(asker)
            missing = Missing()
            try:
                votes = await self.ask(items, self._without_calls(), missing)
            except PcsError:  # the ledger itself has failed
                return LabelledTexts(self.fitted.model, None, None, [failure] * len(items))
        reasons = [failure or "; ".join(missing.get(row, ())) or NO_ANSWER for row in range(len(items))]
        why = [reason if silent else None for silent, reason in zip(votes.silent, reasons, strict=True)]
        return LabelledTexts(*self._judged([item.text for item in items], votes), why)

    def restart(self, failed: Asker) -> None:
        """Ask further texts anew, unless that was done after another text failed."""
        if self.asker is failed:
            self.asker = failed.restarted()

    def _without_calls(self) -> Asker:
        no_calls = replace(self.asker, tracker=BudgetTracker(Budget(calls=0)))
        return no_calls.restarted().part(SharedCalls())

    def _judged(self, texts: Sequence[str], votes: Votes) -> tuple[Model, Votes, Verdicts]:
        before = self.recent.found
        model, judged = self.recent.judged(self.fitted.model, texts, votes)
        if not (before and before.found):
            self.fitted.warn_if_unlike(self.recent.found)
        return model, votes, judged


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
        self._add(texts, votes, judged.scores, judged.best)
        now = model.facing(self.found, self._on_drift)
        return now, judged if now is model else now.judged(votes)

    def _add(self, texts: Sequence[str], votes: Votes, scores: Floats, best: Codes) -> None:
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


@dataclass(slots=True)
class RunEngine:
    """A fitted run with its ledger and models open, and the thread whose event loop asks."""

    process: int  # the process that opened it
    _loop: asyncio.AbstractEventLoop
    _closing: AsyncExitStack
    _labeller: Labeller
    _closed: bool = False

    @classmethod
    def open(cls, folder: Path, options: LoadOptions) -> RunEngine:
        """Open a run; a missing key or a damaged folder is an error here."""
        fitted = open_fitted(Run.open(folder), options)
        ask.refuse_unknown_prices(fitted.job, ask.pricing(fitted.settings.prices), fitted.settings.budget)
        loop = asyncio.new_event_loop()
        threading.Thread(target=_run, args=(loop,), name="pcs-engine", daemon=True).start()
        try:
            return _wait_for(cls._enter(fitted), loop)
        except BaseException:
            loop.call_soon_threadsafe(loop.stop)
            raise

    @classmethod
    async def _enter(cls, fitted: FittedRun) -> RunEngine:
        async with AsyncExitStack() as stack:
            ledger = open_ledger(fitted.ledger, shared=True)
            stack.enter_context(ledger)
            stack.push_async_callback(partial(ask.close_models, fitted.job))
            labeller = await Labeller.open(fitted, ask.open_asker(ledger, fitted.settings))
            return cls(os.getpid(), asyncio.get_running_loop(), stack.pop_all(), labeller)

    def label(self, items: Sequence[Item]) -> LabelledTexts:
        """Return what is known about some texts; Ctrl-C stops asking and keeps paid answers."""
        return _wait_for(self._labeller.label(items), self._loop)

    async def alabel(self, items: Sequence[Item]) -> LabelledTexts:
        """Do the same as `label`, for asynchronous code; cancelling it stops asking and keeps paid answers."""
        work = self._labeller.label(items)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def close(self) -> None:
        """Close models and ledger, if this process opened them and they are still open."""
        if self.process == os.getpid() and not self._closed:
            self._closed = True
            _wait_for(self._closing.aclose(), self._loop)
            self._loop.call_soon_threadsafe(self._loop.stop)


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
