"""`pcs serve`: a fitted run that labels texts as they come, with its models and its ledger open."""

import asyncio
import logging
import os
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from pcs_annotator.asking.engine.budget import BudgetTracker, today
from pcs_annotator.asking.engine.call import Asker
from pcs_annotator.asking.engine.item_asker import BUDGET_REACHED
from pcs_annotator.asking.engine.progress import Tally
from pcs_annotator.asking.ledger.lock import Say
from pcs_annotator.asking.ledger.open_ledger import open_ledger
from pcs_annotator.base.errors import DriftFound, LedgerError, PcsError
from pcs_annotator.core.events import Verdict
from pcs_annotator.core.identity import text_hash
from pcs_annotator.core.ledger_address import LedgerAddress, on_server
from pcs_annotator.core.outcome import Outcome
from pcs_annotator.core.task import Item, Task
from pcs_annotator.judging.promise.certificate import Audit
from pcs_annotator.judging.promise.drift import Drift
from pcs_annotator.runs import ask
from pcs_annotator.runs.columns import given_or_detected
from pcs_annotator.runs.draw_registry import events_of
from pcs_annotator.runs.fits import FitProcess, left_unused, state_of
from pcs_annotator.runs.labeller import FittedRun, Labeller, LoadOptions, open_fitted
from pcs_annotator.runs.ledgers import ledger_of, refuse_lost_ledger
from pcs_annotator.runs.opened import Run
from pcs_annotator.runs.paths import RunFolder
from pcs_annotator.runs.recent_texts import JudgeTogether
from pcs_annotator.runs.stream import Stream
from pcs_annotator.tables.files import read_json

_LOG = logging.getLogger(__name__)
LOOK_EVERY = 1.0  # seconds between looks at the run folder, which `pcs fit` may have changed
RETRY_SECONDS = 30.0  # until what failed is tried again: the disk may have been full for a moment
TROUBLE_SECONDS = 30.0  # how long a failure counts without texts: a service that is not ready gets none
TROUBLE = {
    "budget_reached": "the budget is spent: only texts that are known get a label",
    "model_unavailable": "the models do not answer",
    "ledger_unavailable": "the ledger cannot be used",
    "drift": "recent texts differ from those of the run, and the service was started with --on-drift fail",
    "late": "texts are not answered in time",
}
"""Kind of failure → what `/ready` says about it, without names and paths."""
KINDS: Mapping[type[PcsError], str] = {LedgerError: "ledger_unavailable", DriftFound: "drift"}  # error → failure
OUTDATED = "the run has changed and cannot be loaded: the log of the service says why"


class TextError(NamedTuple):
    """Why a text has no label."""

    kind: str  # a key of `TROUBLE`; about this text, `unanswerable` or `group_drift`
    message: str  # a sentence

    @property
    def of_text(self) -> bool:
        """Whether other texts may well be labelled."""
        return self.kind in ("unanswerable", "group_drift")


class Spent(NamedTuple):
    """What was paid for: calls, tokens, and dollars, which are None when a price is unknown."""

    calls: int
    known: int
    input_tokens: int
    output_tokens: int
    usd: float | None


class Classified(NamedTuple):
    """A text's label, or why it has none."""

    outcome: Outcome | None  # label, confidence, decision and reason; None if a model or the ledger failed
    probabilities: tuple[float, ...]  # of each label, calibrated where the run allows that; empty without a label
    spent: Spent  # what this text cost
    error: TextError | None  # why there is no label; None if there is one
    version: str  # the model that judged it


class Service:
    """Labels texts with a fitted run; use it as an asynchronous context manager.

    Other commands and services may use its ledger at the same time: each call is claimed before it is paid for. When
    `pcs fit` or `pcs run` changes the folder, the new model is loaded, and judges the texts that come then.
    """

    def __init__(self, folder: Path, options: LoadOptions, say: Say = lambda line: None, refit_every: int = 0) -> None:
        self.folder, self.name = RunFolder.find(folder), folder.resolve().name
        self.outdated = ""  # that a changed run could not be loaded, in plain words; empty if the current one is in use
        self.audits: Mapping[str, Audit] = {}  # what people found among accepted texts, by group; `""` → of all
        self.tally = Tally()  # what was counted since the start
        self._options, self._say, self._closing = options, say, ExitStack()
        self._moved_ledger = str(options.ledger or "")
        self._looked_at, self._seen = 0.0, list[tuple[int, int, int] | None]()
        self._refit_every, self._fit = refit_every, FitProcess(folder)
        self._tried = 0  # verdicts that no model in use has learned from, at the start of the last fit
        self._fitting: asyncio.Task[None] | None = None
        self._loading: asyncio.Task[None] | None = None
        self._failed: tuple[str, float, int] | None = None
        self._opened: _Opened
        self._ledger: LedgerAddress
        self._stream: Stream

    async def __aenter__(self) -> "Service":
        config = Run.of(self.folder, self._moved_ledger).config
        refuse_lost_ledger(self.folder, config)
        self._ledger, self._seen = ledger_of(self.folder, config), state_of(self.folder)
        fitted, version = await asyncio.to_thread(self._open)
        try:
            self._stream = self._closing.enter_context(Stream(self.folder.stream))
            if fitted.saving.keep_days:
                self._stream.purge(fitted.saving.keep_days)
            ledger = open_ledger(self._ledger)
            self._closing.enter_context(ledger)
            self._ledger_file = self._file_number()
            labeller = Labeller(fitted, ask.open_asker(ledger, fitted.settings), self._stream)
        except BaseException:
            self._closing.close()
            await ask.close_models(fitted.job)
            raise
        self._opened = _Opened(labeller, version, self._stream)
        if self._refit_every:
            self._seen[2:] = []  # there may be verdicts already
        self._closing.callback(asyncio.create_task(self._watch()).cancel)
        return self

    async def _watch(self) -> None:
        """Look for verdicts and another version even if no text comes."""
        while True:
            self.look_for_changes()
            await asyncio.sleep(LOOK_EVERY)

    async def __aexit__(self, *_: object) -> None:
        if self._loading is not None:
            await asyncio.wait([self._loading])
        self._fit.stop()
        if self._fitting is not None:
            await asyncio.wait([self._fitting])
        self._closing.close()
        await self._opened.retire()

    def _open(self) -> tuple[FittedRun, str]:
        """Return the run, and the name of its version; a fit that ends meanwhile must not mix two versions."""
        before: object = None
        while before != (now := state_of(self.folder)[:2]):
            before, fitted = now, open_fitted(Run.of(self.folder, self._moved_ledger), self._options)
        ask.refuse_unknown_prices(fitted.job, ask.pricing(fitted.settings.prices), fitted.settings.budget)
        ask.warn_about_hard_models(fitted.job)
        return fitted, f"{self.name}@{fitted.version}"

    @property
    def version(self) -> str:
        """The model in use: the run's name and the number of the fit."""
        return self._opened.version

    @property
    def task(self) -> Task:
        """What is decided."""
        return self._opened.labeller.fitted.job.task

    @property
    def names(self) -> tuple[str, ...]:
        """The labels that a text may get: those of the task, and in a tree their parents."""
        return (*self.task.labels, *self._opened.labeller.fitted.model.shape.parents)

    @property
    def drift(self) -> Drift | None:
        """Whether recent texts are answered like those of the run; None if too few have come, or it is unknown."""
        return self._opened.labeller.recent.found

    @property
    def about_drift(self) -> str:
        """What is to be said if recent texts differ from the gold rows; empty if they do not."""
        drift = self.drift
        return self._opened.labeller.fitted.texts_differ(drift) if drift is not None and drift.found else ""

    @property
    def note(self) -> str:
        """What a person should know about the texts that come, in a line; empty for nothing."""
        broken = [name or "all texts" for name, audit in self.audits.items() if audit.finding == "revoked"]
        withdrawn = [f"people found too many errors among accepted texts of {', '.join(broken)}"] if broken else []
        return "; ".join([*self.about_drift.splitlines()[:1], *withdrawn])

    @property
    def waiting(self) -> Mapping[str, int]:
        """How many texts are kept for people, and why."""
        return self._stream.counts()

    @property
    def tracker(self) -> BudgetTracker:
        """What was spent since the start."""
        return self._opened.labeller.asker.tracker

    @property
    def trouble(self) -> str:
        """Why texts get no label at the moment, in plain words; empty if they may well get one."""
        try:
            self._check_ledger()
        except LedgerError:
            return TROUBLE["ledger_unavailable"]
        if self._drifted():
            return TROUBLE["drift"]
        if self._failed is None:
            return ""
        kind, at, day = self._failed
        # a budget may be one for a day
        over = day != today() if kind == "budget_reached" else _now() >= at + TROUBLE_SECONDS
        return "" if over else TROUBLE[kind]

    def _drifted(self, group: str = "") -> bool:
        """Whether nothing is labelled any more because texts differ, or nothing of a group."""
        drift = self.drift if self._opened.labeller.fitted.saving.on_drift == "fail" else None
        return drift is not None and drift.found and (not drift.unlike or group in drift.unlike)

    def note_failure(self, kind: str) -> None:
        """Note why a text got no label, if others may get none for the same reason; `kind` is a key of `TROUBLE`."""
        self._failed = (kind, _now(), today())

    async def classify(self, text: str, group: str | None = None) -> Classified:
        """Ask about a text, perhaps of a group that the promise is made for; return its label, or why it has none."""
        classified = await self._classify(text, group)
        if classified.error is None:
            spent = self._failed is not None and self._failed[0] == "budget_reached"
            self._failed = self._failed if spent and not classified.spent.calls else None
        elif not classified.error.of_text:
            self.note_failure(classified.error.kind)
        return classified

    async def _classify(self, text: str, group: str | None) -> Classified:
        self.look_for_changes()
        opened = self._opened
        asker, by = opened.labeller.asker, opened.labeller.fitted.model.by
        part = asker.part(asker.shared)
        opened.users += 1
        outcome, failed, chances = None, None, tuple[float, ...]()
        try:
            group = given_or_detected(by, text, group) if by else ""
            if self._drifted(group):
                raise DriftFound(self.about_drift)
            self._check_ledger()
            item = Item(id=f"serve:{text_hash(text)}", text=text)  # the same when a client has to send it again
            votes = await opened.labeller.ask([item], part)
            votes = replace(votes, groups=[group]) if by else votes
            if not (part.tally.failed and votes.silent[0]):  # people are not asked what a model may answer yet
                outcome, chances = await opened.judge.judge(item, votes)
            failed = _why(part.tally) if outcome is None or outcome.label is None else None
        except PcsError as error:
            self._opened.labeller.restart(asker)  # which may be another by now
            kind = KINDS.get(type(error), "model_unavailable")
            failed = TextError("group_drift" if kind == "drift" and not self._drifted() else kind, str(error))
        finally:
            self.tally.add(part.tally)
            opened.users -= 1
            await opened.close_if_unused()
        return Classified(outcome, chances, _spent(part), failed, opened.version)

    def _check_ledger(self) -> None:
        if self._file_number() != self._ledger_file:
            raise LedgerError(f"{self._ledger} was moved or replaced: start the service again")

    def _file_number(self) -> int | None:
        with suppress(OSError):
            return 0 if on_server(self._ledger) else os.stat(self._ledger).st_ino  # a `Path` takes longer
        return None

    def look_for_changes(self) -> None:
        """Begin to load the run again if its folder has changed, unless that was looked at a moment ago."""
        now = _now()
        if self._loading is not None or now < self._looked_at + LOOK_EVERY:
            return
        self._looked_at = now
        if (state := state_of(self.folder)) != self._seen:
            fitted, self._seen = state[:2] != self._seen[:2], state
            self._loading = asyncio.create_task(self._load() if fitted else self._heed_verdicts())

    async def _heed_verdicts(self) -> None:
        """Withdraw acceptance if people found too many errors among accepted texts; learn from verdicts if wanted."""
        try:
            new = await asyncio.to_thread(self._read_verdicts)
        except Exception as error:
            self._say(f"verdicts cannot be read: {_reason(error)}")
            new, self._seen[2:], self._looked_at = 0, [], _now() + RETRY_SECONDS - LOOK_EVERY
        certificate = self._opened.labeller.fitted.model.certificate
        gone = [*certificate.withdrawn, *[""][: certificate.revoked]] if certificate else []
        if broken := [name for name, audit in self.audits.items() if audit.finding == "revoked" and name not in gone]:
            of = f" of {', '.join(broken)}" if all(broken) else ""
            self._say(
                f"people found more errors among accepted texts{of} than was promised: nothing{of} is accepted now"
            )
            _LOG.warning("promise withdrawn%(of)s: %(wrong)d wrong", {"of": of, "wrong": self.audits[broken[0]].wrong})
            await self._load()
        self._loading = None
        if self._refit_every and new - self._tried >= self._refit_every and self._fitting is None:
            self._tried = new
            self._fitting = asyncio.create_task(self._fit_again())

    def _read_verdicts(self) -> int:
        """Note what an audit of accepted texts found, and return how many verdicts no fit has learned from."""
        recorded = Run.of(self.folder, self._moved_ledger)
        self.audits = recorded.stream_audit(self._opened.labeller.fitted.model)
        until = read_json(self.folder.model).get("verdicts_until", 0) if self.folder.model.exists() else 0
        return sum(event.number > until for event in events_of(self.folder, Verdict))

    async def _fit_again(self) -> None:
        why = await asyncio.to_thread(self._fit.run)
        self._fitting, self._seen[2:] = None, []  # verdicts may have come meanwhile
        if self._fit.stopped:
            return
        if why:
            self._say(f"{why}; the earlier model stays in use")
        elif unused := left_unused(self.folder):
            self._say(unused)

    async def _load(self) -> None:
        before = self._opened
        try:
            fitted, version = await asyncio.to_thread(self._open)
            self._opened = _Opened(Labeller(fitted, before.labeller.asker, self._stream), version, self._stream)
        except Exception as error:
            wait = RETRY_SECONDS - LOOK_EVERY if self.outdated else 0.0  # at first, files may have been half written
            if not self.outdated:
                self._say(f"the run has changed and cannot be loaded; the earlier model stays in use: {_reason(error)}")
            self.outdated, self._seen, self._looked_at = OUTDATED, [], _now() + wait
        else:
            self.outdated, self._tried, self._seen[2:] = "", 0, []  # verdicts may have come while it was loaded
            self._say(f"the run has changed: {self._opened.version} is in use now")
            _LOG.info("refit: version %(version)d is in use now", {"version": fitted.version})
            await before.retire()
        finally:
            self._loading = None


def _now() -> float:
    return asyncio.get_running_loop().time()


def _reason(error: Exception) -> str:
    """Return what may be in a log: the message of an error that is no bug, since that of a bug may quote a text."""
    return str(error) if isinstance(error, PcsError | OSError) else type(error).__name__


def _spent(asker: Asker) -> Spent:
    spent, tally = asker.spent or asker.tracker, asker.tally
    usd = None if spent.price_unknown else spent.usd
    return Spent(tally.calls, tally.from_ledger, spent.tokens - spent.output_tokens, spent.output_tokens, usd)


def _why(tally: Tally) -> TextError:
    if tally.failed[BUDGET_REACHED]:
        return TextError("budget_reached", "the budget is reached, and all answers so far are kept: set it higher")
    if tally.failed:
        return TextError(
            "model_unavailable", f"no answer from the models ({'; '.join(sorted(tally.failed))}): try again later"
        )
    reasons = tally.unreadable + tally.not_applicable + tally.rejected
    why = f" ({'; '.join(sorted(reasons))})" if reasons else ""
    return TextError("unanswerable", f"no model gave a usable answer to this text{why}")


class _Opened:
    """A fitted run in use, and how many texts use it; its models are closed when it is retired and none does."""

    def __init__(self, labeller: Labeller, version: str, stream: Stream) -> None:
        self.labeller, self.version, self.users, self._retired = labeller, version, 0, False
        keep = partial(labeller.fitted.keep, stream)
        self.judge = JudgeTogether(labeller.fitted.model, labeller.recent, keep, lambda: self.users)

    async def retire(self) -> None:
        """Close the models as soon as no text uses them."""
        self._retired = True
        await self.close_if_unused()

    async def close_if_unused(self) -> None:
        """Close the models if they are retired and unused."""
        if self._retired and not self.users:
            await ask.close_models(self.labeller.fitted.job)
