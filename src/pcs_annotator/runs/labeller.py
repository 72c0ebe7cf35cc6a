"""A fitted run with its models open: asked about texts as a stream, by a service, or in a thread of its own."""

import asyncio
import os
import shlex
import threading
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from pcs_annotator.asking.annotators.annotator import Annotator
from pcs_annotator.asking.engine.budget import Budget, BudgetTracker
from pcs_annotator.asking.engine.call import Asker
from pcs_annotator.asking.engine.collect import run_job
from pcs_annotator.asking.engine.item_asker import Missing, PreparedJob
from pcs_annotator.asking.engine.job import Job
from pcs_annotator.asking.ledger.lock import SharedCalls
from pcs_annotator.asking.ledger.open_ledger import open_ledger
from pcs_annotator.base.errors import AccessDenied, ConfigError, PcsError, UserError, warn_user
from pcs_annotator.core.elicitations import kind_of
from pcs_annotator.core.gold_codes import gold_codes
from pcs_annotator.core.ledger_address import LedgerAddress, without_password
from pcs_annotator.core.outcome import UNLIKE_GOLD
from pcs_annotator.core.task import Item
from pcs_annotator.core.votes import Strategy, Votes
from pcs_annotator.judging.early_stop import Frugal, graded_annotators, learn_frugal
from pcs_annotator.judging.model import Model, Predictions
from pcs_annotator.judging.promise.drift import Drift
from pcs_annotator.judging.solver import one_thread
from pcs_annotator.runs import ask, learn, resolve_config
from pcs_annotator.runs.columns import given_or_detected
from pcs_annotator.runs.fits import number_in_use
from pcs_annotator.runs.ledgers import ledger_of
from pcs_annotator.runs.opened import Run
from pcs_annotator.runs.own_objects import OwnObjects
from pcs_annotator.runs.paths import RunFolder
from pcs_annotator.runs.recent_texts import RecentTexts
from pcs_annotator.runs.settings import Saving
from pcs_annotator.runs.stream import Stream, StreamMemory
from pcs_annotator.tables.files import read_json
from pcs_annotator.tables.source_files import STDIO

T = TypeVar("T")
NO_ANSWER = "no model gave a usable answer"
LEAST_GOLD = 200  # gold rows for texts of a new kind, if the run has fewer


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """How a loaded run labels."""

    text_column: str | None = None  # the column of texts; None for one with a usual name, or the only column
    in_flight: int | None = None  # maximum number of concurrent calls per model and process; None for the run's
    ledger: LedgerAddress | None = field(default=None, repr=False)  # of paid calls; None for the run's own
    environment: Mapping[str, str] | None = field(default=None, repr=False)  # keys and URLs; None for the process's own
    saving: Saving = field(default_factory=Saving)  # when to stop asking, and what may be spent by each process
    own: OwnObjects = field(default_factory=OwnObjects, repr=False)  # what the run was given as objects


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedRun:
    """A fitted run, ready to be asked about texts."""

    job: Job  # its questions, with its models open
    settings: ask.CollectSettings  # how to ask, and what may be spent
    model: Model  # what judges the votes
    frugal: Frugal | None  # how questions are saved; None when everything is asked
    saving: Saving = field(default_factory=Saving)  # what becomes of texts for review, and of those that differ
    version: int = 0  # the number of the fit
    since: Mapping[str, float] = field(default_factory=dict)  # group → the alarm about drift that it has learned from
    folder: RunFolder
    ledger: LedgerAddress  # where its paid calls are kept

    def keep(self, stream: Stream, items: Sequence[Item], votes: Votes, model: Model, judged: Predictions) -> None:
        """Put the texts that people should see into the stream; all of them while nothing can be accepted."""
        if self.saving.keep_days:
            stream.purge(self.saving.keep_days)
        if judged.accepted is None:  # nothing is decided, so nothing is left to people
            return
        certain = model.differing(votes) | (model.certificate is None or not model.certificate.holds)
        copies = np.array([label is not None for label in model.gold_of_copies(votes)])  # people labelled their text
        shares, kept = np.where(copies, 0.0, np.where(certain, 1.0, self.saving.audit)), self.saving.keep_texts
        stream.add(items, votes, judged.accepted | copies, version=self.version, probability=shares, keep_text=kept)

    @property
    def strategy(self) -> Strategy | None:
        """What to ask next, and when to stop; None to ask everything."""
        return None if self.frugal is None else self.frugal.strategy

    def warn_if_unlike(self, drift: Drift | None, data: object = None) -> None:
        """Warn if texts differ from the gold rows."""
        if drift is not None and drift.found:
            warn_user(self.texts_differ(drift, data))

    def texts_differ(self, drift: Drift, data: object = None) -> str:
        """Return that texts differ, what becomes of their labels, and the commands after which they are accepted."""
        done = "so confidence and promise may not hold for them"
        if self.model.facing(drift, self.saving.on_drift) is not self.model:
            which = f"nothing of {', '.join(drift.unlike)}" if drift.unlike else "nothing"
            done = (
                f"so {which} is accepted and all of them are for review (--on-drift accept decides as if they did not)"
            )
        certificate = self.model.certificate
        rows = max(LEAST_GOLD, certificate.gold_rows if certificate else 0)
        table = str(data) if isinstance(data, str | Path) and data != STDIO else "TEXTS.csv"
        ledger = without_password(str(self.ledger))  # answers that were paid for are used again
        settings = ["--config", str(self.folder.home), "--ledger", ledger, "--gold-column", "gold"]
        return "\n".join(
            [
                f"{UNLIKE_GOLD}: {drift.sentence}; {done}",
                "to have labels of such texts accepted again, give them gold rows and a promise of their own:",
                f"  write the right labels of {rows} rows, drawn at random, into a column gold of {table}",
                f"  {shlex.join(['pcs', 'run', table, *settings, '--out', f'{self.folder.home}-new'])}",
            ]
        )


def open_fitted(recorded: Run, options: LoadOptions) -> FittedRun:
    """Open the models of a fitted run, and learn when to stop asking."""
    saving = options.saving
    config = resolve_config.with_saving(recorded.config, saving)
    settings = resolve_config.collect_settings_of(config, options.environment, options.own)
    if options.in_flight is not None:
        settings = replace(settings, in_flight=options.in_flight)
    fitted, recorded = recorded.model_in_force(), recorded.taught.as_fitted()
    job = job_of(recorded, settings)
    frugal = None if saving.ask == "all" or fitted.calibrator is None else _frugal(recorded, fitted, saving.ask)
    model = fitted if frugal is None else _like_the_run(frugal.model, fitted)
    return FittedRun(
        job=job,
        settings=settings,
        model=replace(model, gold_labels=recorded.gold_labels),
        frugal=frugal,
        saving=saving,
        version=number_in_use(recorded.folder),
        since=read_json(recorded.folder.model).get("since", {}),
        folder=recorded.folder,
        ledger=options.ledger or ledger_of(recorded.folder, recorded.config),
    )


def job_of(recorded: Run, settings: ask.CollectSettings) -> Job:
    """Return the run's questions."""
    config = recorded.config
    if config.task.extraction:
        remedy = "add the new texts to its data and repeat pcs run, which asks about them alone"
        raise ConfigError(f"{recorded.folder.home} quotes from the texts of its data only: {remedy}")
    if not config.ask.models:
        remedy = "pcs run asks models about texts, and labels new ones as it did"
        raise ConfigError(f"{recorded.folder.home} was made of a table of votes, so no model can be asked: {remedy}")
    return ask.open_job(resolve_config.task_of(config), annotators_of(recorded), config.relations.use, settings)


def annotators_of(recorded: Run) -> list[Annotator]:
    """Return whom a run asked; a model whose votes in the run are hard is asked for hard ones, as it was there."""
    graded = graded_annotators(recorded.votes)
    asked = (model for model in recorded.config.ask.models if not kind_of(model))
    return [Annotator(model, answers=None if model in graded else "hard") for model in asked]


def _frugal(recorded: Run, fitted: Model, asked: str) -> Frugal:
    votes, gold = recorded.to_learn(recorded.settings), recorded.gold
    codes = gold_codes(votes, gold.labels)
    once = learn.counted_once(votes, codes, recorded.texts, gold.random_sample, gold.undecided)
    looked = recorded.looked(recorded.settings, asked)
    how = replace(learn.learning_of(recorded.settings, looked, recorded.shape), resamples=0)
    if fitted.certificate is None or not fitted.certificate.found:
        how = replace(how, refused="the run promises nothing")  # so there is nothing to test
    with one_thread():
        frugal = learn_frugal(votes, codes, how, once)
    if not how.refused:
        recorded.note_test(frugal.model.certificate, recorded.settings, asked)
    return frugal


def _like_the_run(model: Model, fitted: Model) -> Model:
    """Return the model with what is known about the run's promise: if that does not hold, this one cannot hold."""
    earlier = fitted.certificate
    if model.certificate is None or earlier is None:
        return model
    if not earlier.found:  # there was none, or votes, gold or code have changed since
        return replace(model, certificate=earlier)
    facts = {name: getattr(earlier, name) for name in ("assumed_rows", "withdrawn")}
    audit = earlier.audit if earlier.revoked else None
    return replace(model, certificate=replace(model.certificate, audit=audit, **facts))


class LabelledTexts(NamedTuple):
    """What is known about some texts."""

    model: Model  # what judged them; while recent texts differ from the gold rows, it accepts nothing
    votes: Votes | None  # the votes on them; None if there are none at all
    judged: Predictions | None  # labels and what is accepted, as arrays; `model.judge` makes outcomes
    why: Sequence[str | None]  # why a text has no label; None if it has one


class Labeller:
    """Asks a fitted run about texts and judges the votes.

    Texts may be asked about at the same time: they share models, budget, pace and calls under way. The caller holds
    the lock of the ledger, if it has one, and closes the models. The asker's tracker has what was spent on all texts.
    """

    def __init__(self, fitted: FittedRun, asker: Asker, stream: Stream | None = None) -> None:
        self.fitted, self.asker = fitted, asker
        self._prepared = PreparedJob.of(fitted.job, asker.ledger)  # once for all texts
        memory = None if stream is None else StreamMemory(stream, fitted.version, fitted.since)
        self.recent = RecentTexts(fitted.model.references, fitted.saving.on_drift, memory)

    async def ask(self, items: Sequence[Item], part: Asker, missing: Missing | None = None) -> Votes:
        """Return the votes on texts, as many as their labels need; `part` of the asker counts what they take."""
        return await run_job(self._prepared, items, part, self.fitted.strategy, missing)

    async def label(self, items: Sequence[Item], groups: Sequence[str] = ()) -> LabelledTexts:
        """Return what models and ledger say about some texts; a model that fails is not an error.

        `groups` are those that the promise is made for; by default languages are detected, and others unknown. A
        failure closes the pace for all texts, so the next ones are asked with another.
        """
        asker, failure, missing = self.asker, "", Missing()
        try:
            votes = await self.ask(items, asker.part(asker.shared), missing)
        except UserError:
            raise
        except PcsError as error:
            if isinstance(error, AccessDenied) and not asker.tracker.calls:
                raise  # wrong from the start, so for all rows
            failure, missing = str(error), Missing()
            self.restart(asker)
            try:
                no_calls = replace(self.asker, tracker=BudgetTracker(Budget(calls=0))).restarted()
                votes = await self.ask(items, no_calls.part(SharedCalls()), missing)
            except PcsError:  # the ledger itself has failed
                return LabelledTexts(self.fitted.model, None, None, [failure] * len(items))
        reasons = [failure or "; ".join(missing.get(row, ())) or NO_ANSWER for row in range(len(items))]
        if by := self.fitted.model.by:
            groups = groups or [given_or_detected(by, item.text) for item in items]
            votes = replace(votes, groups=groups)
        why = [reason if no else None for no, reason in zip(votes.silent, reasons, strict=True)]
        before = self.recent.found
        model, judged = self.recent.judged(self.fitted.model, [item.text for item in items], votes)
        if before is None or not before.found or before.unlike != (self.recent.found or before).unlike:
            self.fitted.warn_if_unlike(self.recent.found)
        return LabelledTexts(model, votes, judged, why)

    def restart(self, failed: Asker) -> None:
        """Ask further texts anew, unless that was done after another text failed."""
        if self.asker is failed:
            self.asker = failed.restarted()


@dataclass(slots=True)
class RunEngine:
    """A fitted run with its ledger and models open, and the thread whose event loop asks."""

    process: int  # the process that opened it
    _loop: asyncio.AbstractEventLoop
    _closing: AsyncExitStack
    _labeller: Labeller
    _closed: bool = False

    @classmethod
    def open(cls, folder: Path, options: LoadOptions) -> "RunEngine":
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
    async def _enter(cls, fitted: FittedRun) -> "RunEngine":
        async with AsyncExitStack() as stack:
            ledger = open_ledger(fitted.ledger)
            stack.enter_context(ledger)
            stack.push_async_callback(partial(ask.close_models, fitted.job))
            labeller = Labeller(fitted, ask.open_asker(ledger, fitted.settings))
            return cls(os.getpid(), asyncio.get_running_loop(), stack.pop_all(), labeller)

    @property
    def fitted(self) -> FittedRun:
        """The run that is asked."""
        return self._labeller.fitted

    def label(self, items: Sequence[Item], groups: Sequence[str] = ()) -> LabelledTexts:
        """Return what is known about some texts; Ctrl-C stops asking and keeps paid answers."""
        return _wait_for(self._labeller.label(items, groups), self._loop)

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
