"""`pcs serve`: a fitted run that labels texts as they come, with its models and its ledger open."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from pcs_annotator.asking.engine.ask import Asker
from pcs_annotator.asking.engine.budget import BudgetTracker, today
from pcs_annotator.asking.engine.item_asker import BUDGET_REACHED
from pcs_annotator.asking.engine.progress import Tally
from pcs_annotator.asking.ledger.ledger import set_all
from pcs_annotator.asking.ledger.lock import Say
from pcs_annotator.asking.ledger.open_ledger import open_ledger
from pcs_annotator.base.errors import LedgerError, PcsError
from pcs_annotator.core.ledger_address import LedgerAddress, on_server
from pcs_annotator.core.outcome import Outcome
from pcs_annotator.core.task import Item, Task
from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.model import Model
from pcs_annotator.judging.promising.drift import Drift
from pcs_annotator.runs import ask
from pcs_annotator.runs.files.runs import RunFolder
from pcs_annotator.runs.labelling.labeller import FittedRun, Labeller, LoadOptions, RecentTexts, open_fitted
from pcs_annotator.runs.ledgers import ledger_of
from pcs_annotator.runs.run import Run, refuse_lost_ledger
from pcs_annotator.runs.versions import number_in_use
from pcs_annotator.tables.label_studio import Interface, prediction

GATHER_SECONDS = 0.05
"""Texts whose votes are complete within this time are judged together: alone, each takes 1 ms, 50 times more."""
LOOK_EVERY = 1.0
"""Seconds between looks at the run folder, which `pcs fit` may have changed."""
RETRY_SECONDS = 30.0
"""Seconds until a changed run that could not be loaded is tried again."""
TROUBLE_SECONDS = 30.0
"""How long a failure counts if no text comes: a service that is not ready gets none, and only texts show otherwise."""
TROUBLE = {
    "budget_reached": "the budget is spent: only texts that are known get a label",
    "model_unavailable": "the models do not answer",
    "ledger_unavailable": "the ledger cannot be used",
    "late": "texts are not answered in time",
}
"""Kind of failure → what `/ready` says about it, without names and paths."""
OUTDATED = "the run has changed and cannot be loaded: the log of the service says why"


class TextError(NamedTuple):
    """Why a text has no label."""

    # `budget_reached`, `model_unavailable`, `ledger_unavailable`, or `unanswerable`, which is about this text
    kind: str
    message: str  # a sentence

    @property
    def of_text(self) -> bool:
        """Whether other texts may well be labelled."""
        return self.kind == "unanswerable"


class Spent(NamedTuple):
    """What was paid for: calls, tokens, and dollars, which are None when a price is unknown."""

    calls: int
    known: int
    input_tokens: int
    output_tokens: int
    usd: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Classified:
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

    def __init__(self, folder: Path, options: LoadOptions, say: Say = lambda line: None) -> None:
        self.folder, self.name = RunFolder(folder), folder.resolve().name
        self.outdated = ""  # that a changed run could not be loaded, in plain words; empty if the current one is in use
        self._options, self._say = options, say
        self._moved_ledger = str(options.ledger or "")
        self._closing = ExitStack()
        self._looked_at = 0.0
        self._seen: object = None
        self._loading: asyncio.Task[None] | None = None
        self._failed: tuple[str, float, int] | None = None
        self._numbers = count()
        self.tally = Tally()  # what was counted since the start
        self._opened: _Opened
        self._ledger: LedgerAddress
        self._ledger_file = 0

    def check(self) -> None:
        """Raise if the folder is not a run folder."""
        Run.open(self.folder.path)

    async def __aenter__(self) -> Service:
        config = Run.open(self.folder.path, self._moved_ledger).config
        refuse_lost_ledger(self.folder, config)
        self._ledger = ledger_of(self.folder, config)
        self._seen = _state(self.folder)
        fitted, version = await asyncio.to_thread(self._open)
        try:
            ledger = open_ledger(self._ledger, shared=True)
            self._closing.enter_context(ledger)
            self._ledger_file = self._file_number()
            labeller = await Labeller.open(fitted, ask.open_asker(ledger, fitted.settings))
        except BaseException:
            self._closing.close()
            await ask.close_models(fitted.job)
            raise
        self._opened = _Opened(labeller, version)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._loading is not None:
            await asyncio.wait([self._loading])
        self._closing.close()
        await self._opened.retire()

    def _open(self) -> tuple[FittedRun, str]:
        """Return the run, and the name of its version."""
        number = number_in_use(self.folder)
        fitted = open_fitted(Run.open(self.folder.path, self._moved_ledger), self._options)
        ask.refuse_unknown_prices(fitted.job, ask.pricing(fitted.settings.prices), fitted.settings.budget)
        ask.warn_about_hard_models(fitted.job)
        return fitted, f"{self.name}@{number}"

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
        found = self.drift
        if found is None or not found.found:
            return ""
        return self._opened.labeller.fitted.texts_differ(found)

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
        if self._failed is None:
            return ""
        kind, at, day = self._failed
        # a budget may be one for a day
        over = day != today() if kind == "budget_reached" else _now() >= at + TROUBLE_SECONDS
        return "" if over else TROUBLE[kind]

    def note_failure(self, kind: str) -> None:
        """Note why a text got no label, if others may get none for the same reason; `kind` is a key of `TROUBLE`."""
        self._failed = (kind, _now(), today())

    async def classify(self, text: str) -> Classified:
        """Ask about a text, and return its label, or why it has none."""
        found = await self._classify(text)
        if found.error is None:
            spent = self._failed is not None and self._failed[0] == "budget_reached"
            self._failed = self._failed if spent and not found.spent.calls else None
        elif not found.error.of_text:
            self.note_failure(found.error.kind)
        return found

    async def _classify(self, text: str) -> Classified:
        self.look_for_changes()
        opened = self._opened
        asker = opened.labeller.asker
        part = asker.part(asker.shared)
        opened.users += 1
        outcome, failed = None, None
        probabilities: tuple[float, ...] = ()
        try:
            self._check_ledger()
            votes = await opened.labeller.ask([Item(id=str(next(self._numbers)), text=text)], part)
            outcome, probabilities = await opened.judge.judge(text, votes)
            failed = _why(part.tally) if outcome.label is None else None
        except PcsError as error:
            self._opened.labeller.restart(asker)  # which may be another by now
            kind = "ledger_unavailable" if isinstance(error, LedgerError) else "model_unavailable"
            failed = TextError(kind, str(error))
        finally:
            self.tally.add(part.tally)
            opened.users -= 1
            await opened.close_if_unused()
        return Classified(
            outcome=outcome, probabilities=probabilities, spent=_spent(part), error=failed, version=opened.version
        )

    def _check_ledger(self) -> None:
        try:
            same = self._file_number() == self._ledger_file
        except OSError:
            same = False
        if not same:
            raise LedgerError(f"{self._ledger} was moved or replaced: start the service again")

    def _file_number(self) -> int:
        return 0 if on_server(self._ledger) else Path(self._ledger).stat().st_ino

    def look_for_changes(self) -> None:
        """Begin to load the run again if its folder has changed, unless that was looked at a moment ago."""
        now = _now()
        if self._loading is not None or now < self._looked_at + LOOK_EVERY:
            return
        self._looked_at = now
        state = _state(self.folder)
        if state != self._seen:
            self._seen = state
            self._loading = asyncio.create_task(self._load())

    async def _load(self) -> None:
        before = self._opened
        try:
            fitted, version = await asyncio.to_thread(self._open)
            self._opened = _Opened(await Labeller.open(fitted, before.labeller.asker), version)
        except Exception as error:
            if not self.outdated:
                why = error if isinstance(error, PcsError | OSError) else type(error).__name__
                self._say(f"the run has changed and cannot be loaded, so the earlier model stays in use: {why}")
            self.outdated = OUTDATED
            # the disk may have been full for a moment: try again, whether or not the folder changes
            self._seen, self._looked_at = None, _now() + RETRY_SECONDS - LOOK_EVERY
        else:
            self.outdated = ""
            self._say(f"the run has changed: {self._opened.version} is in use now")
            await before.retire()
        finally:
            self._loading = None


def _now() -> float:
    return asyncio.get_running_loop().time()


def _state(folder: RunFolder) -> list[tuple[int, int, int] | None]:
    """Return what changes when a run is fitted again."""
    found: list[tuple[int, int, int] | None] = []
    for path in (folder.settings, folder.model):
        try:
            is_now = path.stat()
            found.append((is_now.st_mtime_ns, is_now.st_size, is_now.st_ino))
        except OSError:
            found.append(None)
    return found


def _spent(asker: Asker) -> Spent:
    spent = asker.spent or asker.tracker
    return Spent(
        asker.tally.calls,
        asker.tally.from_ledger,
        spent.tokens - spent.output_tokens,
        spent.output_tokens,
        None if spent.price_unknown else spent.usd,
    )


def _why(tally: Tally) -> TextError:
    """Return why no model gave a usable answer."""
    if tally.failed[BUDGET_REACHED]:
        return TextError("budget_reached", "the budget is reached, and all answers so far are kept: set it higher")
    if tally.failed:
        return TextError("model_unavailable", f"no answer from the models ({_listed(tally.failed)}): try again later")
    reasons = tally.unreadable + tally.not_applicable + tally.rejected
    why = f" ({_listed(reasons)})" if reasons else ""
    return TextError("unanswerable", f"no model gave a usable answer to this text{why}")


def _listed(reasons: Mapping[str, int]) -> str:
    return "; ".join(sorted(reasons))


class _Opened:
    """A fitted run in use, and how many texts use it; its models are closed when it is retired and none does."""

    def __init__(self, labeller: Labeller, version: str) -> None:
        self.labeller, self.version = labeller, version
        self.judge = JudgeTogether(labeller.fitted.model, labeller.recent, lambda: self.users)
        self.users = 0
        self._retired = False

    async def retire(self) -> None:
        """Close the models as soon as no text uses them."""
        self._retired = True
        await self.close_if_unused()

    async def close_if_unused(self) -> None:
        """Close the models if they are retired and unused."""
        if self._retired and not self.users:
            await ask.close_models(self.labeller.fitted.job)


class JudgeTogether:
    """Judges votes on single texts, those together that are complete at about the same time.

    `in_progress` returns how many texts are asked about or wait to be judged: if all of them wait, they are judged.
    """

    def __init__(self, model: Model, recent: RecentTexts, in_progress: Callable[[], int]) -> None:
        self._model, self._recent, self._in_progress = model, recent, in_progress
        self._timer: asyncio.TimerHandle | None = None
        self._waiting: list[tuple[str, Votes, asyncio.Future[tuple[Outcome, tuple[float, ...]]]]] = []

    async def judge(self, text: str, votes: Votes) -> tuple[Outcome, tuple[float, ...]]:
        """Return the outcome of one text, and the probability of every label."""
        loop = asyncio.get_running_loop()
        judged: asyncio.Future[tuple[Outcome, tuple[float, ...]]] = loop.create_future()
        self._waiting.append((text, votes, judged))
        if len(self._waiting) >= self._in_progress():  # no other will come soon
            self._judge_all()
        elif self._timer is None:
            self._timer = loop.call_later(GATHER_SECONDS, self._judge_all)
        return await judged

    def _judge_all(self) -> None:
        waiting, self._waiting = self._waiting, []
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        results: Sequence[object]
        try:
            votes = Votes.joined([votes for _, votes, _ in waiting])
            model, judged = self._recent.judged(self._model, [text for text, _, _ in waiting], votes)
            results = list(zip(model.judge(votes, judged), map(tuple, judged.deciding.tolist()), strict=True))
        except Exception as error:
            results = [error] * len(waiting)
        set_all(zip((future for _, _, future in waiting), results, strict=True))


def label_studio_prediction(found: Classified, names: Interface) -> dict[str, Any]:
    """Return a label as Label Studio shows it; for a text without one, a prediction without a result."""
    known = None if found.outcome is None else prediction(found.outcome.for_people, found.version, names)
    return known or {"model_version": found.version, "score": 0.0, "result": []}
