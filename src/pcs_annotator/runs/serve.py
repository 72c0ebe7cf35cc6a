"""`pcs serve`: a fitted run that labels texts as they come, with its models and its ledger open."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from pcs_annotator.asking.engine.ask import Asker
from pcs_annotator.asking.engine.budget import BudgetTracker, today
from pcs_annotator.asking.engine.collect import run_job
from pcs_annotator.asking.engine.item_asker import BUDGET_REACHED, PreparedJob
from pcs_annotator.asking.engine.progress import Tally
from pcs_annotator.asking.ledger.ledger import CallStore
from pcs_annotator.asking.ledger.lock import Say, SharedCalls
from pcs_annotator.asking.ledger.open_ledger import open_ledger
from pcs_annotator.base.errors import LedgerError, PcsError
from pcs_annotator.core.ledger_address import LedgerAddress, on_server
from pcs_annotator.core.outcome import Outcome
from pcs_annotator.core.task import Item, Task
from pcs_annotator.judging.promising.drift import Drift
from pcs_annotator.runs import ask
from pcs_annotator.runs.drift_text import texts_differ
from pcs_annotator.runs.files.label_studio import Interface, prediction, read_interface
from pcs_annotator.runs.files.runs import RunFolder
from pcs_annotator.runs.fitted import FittedRun
from pcs_annotator.runs.judge_together import JudgeTogether
from pcs_annotator.runs.ledgers import ledger_of
from pcs_annotator.runs.run_folder import Recorded, refuse_lost_ledger, started
from pcs_annotator.runs.serve_turns import Turns
from pcs_annotator.verbs.label import Saving, open_fitted

LOOK_EVERY = 1.0
"""Seconds between looks at the run folder, which `pcs fit` may have changed."""
TROUBLE_SECONDS = 30.0
"""How long a failure counts if no text comes: who is not ready gets none, and only texts tell that models answer."""
TROUBLE = {
    "budget_reached": "the budget is spent: only texts that are known get a label",
    "model_unavailable": "the models do not answer",
    "ledger_unavailable": "the ledger cannot be used",
    "late": "texts are not answered in time",
}
"""Kind of failure → what whoever asks whether the service is ready may know: no names, no paths."""
OUTDATED = "the run has changed and cannot be loaded: the log of the service says why"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceOptions:
    """How a service asks.

    Attributes:
        saving: When to stop asking, and what may be spent.
        ledger: Where the run's answers are now, if that has changed.
        in_flight: Maximum number of concurrent calls per model; None for that of the run.
        environment: Keys and base URLs; None for those of the process and of `.env`.
    """

    saving: Saving = field(default_factory=Saving)
    ledger: str = ""
    in_flight: int | None = None
    environment: Mapping[str, str] | None = field(default=None, repr=False)


class TextError(NamedTuple):
    """Why a text has no label.

    Attributes:
        kind: `budget_reached`, `model_unavailable`, `ledger_unavailable`, or `unanswerable`, which is about this text.
        message: A sentence.
    """

    kind: str
    message: str

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
    """A text's label, or why it has none.

    Attributes:
        outcome: Label, confidence, decision and reason; None if a model or the ledger failed.
        probabilities: Of each label, calibrated where the run allows that; empty without a label.
        spent: What this text cost.
        error: Why there is no label; None if there is one.
        version: The model that judged it.
    """

    outcome: Outcome | None
    probabilities: tuple[float, ...]
    spent: Spent
    error: TextError | None
    version: str


class Service:
    """Labels texts with a fitted run; use it as an asynchronous context manager.

    The ledger is locked while texts are in progress, and a moment longer; other commands have their turn after that.
    When `pcs fit` or `pcs run` changes the folder, the new model is loaded, and judges the texts that come then.

    Attributes:
        folder: The run folder.
        name: Its name.
        outdated: That a changed run could not be loaded, in plain words; empty if the current one is in use.
    """

    def __init__(self, folder: Path, options: ServiceOptions, say: Say = lambda line: None) -> None:
        self.folder = RunFolder(folder)
        self.name = folder.resolve().name
        self.outdated = ""
        self._options, self._say = options, say
        self._closing = AsyncExitStack()
        self._looked_at = 0.0
        self._seen: object = None
        self._loading: asyncio.Task[None] | None = None
        self._failed: tuple[str, float, int] | None = None
        self._opened: _Opened
        self._asker: Asker
        self._ledger: LedgerAddress
        self._ledger_file = 0
        self._turns: Turns

    def check(self) -> None:
        """Raise if the folder is no run folder."""
        started(self.folder)

    async def __aenter__(self) -> Service:
        config, _ = started(self.folder, self._options.ledger)
        refuse_lost_ledger(self.folder, config)
        self._ledger = ledger_of(self.folder, config)
        self._turns = Turns(self._ledger, self._say)
        self._seen = _state(self.folder)
        self._opened = await asyncio.to_thread(self._open)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._retire)
            ledger = open_ledger(self._ledger)
            stack.enter_context(ledger)
            self._ledger_file = self._file_number()
            self._asker = ask.open_asker(ledger, self._opened.fitted.settings)
            self._closing = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._loading is not None:
            await asyncio.wait([self._loading])
        await self._turns.release()
        await self._closing.aclose()

    async def _retire(self) -> None:
        await self._opened.retire()

    def _open(self) -> _Opened:
        digest = hashlib.sha256(self.folder.model.read_bytes() if self.folder.model.exists() else b"").hexdigest()[:8]
        saving, environment = self._options.saving, self._options.environment
        fitted = open_fitted(Recorded.read(self.folder, self._options.ledger), saving, environment)
        if self._options.in_flight is not None:
            fitted = replace(fitted, settings=replace(fitted.settings, in_flight=self._options.in_flight))
        ask.refuse_unknown_prices(fitted.job, ask.pricing(fitted.settings.prices), fitted.settings.budget)
        ask.warn_about_hard_models(fitted.job)
        return _Opened(fitted, f"{self.name}@{digest}")

    @property
    def version(self) -> str:
        """The model in use: the run's name and a digest of `model.json`."""
        return self._opened.version

    @property
    def task(self) -> Task:
        """What is decided."""
        return self._opened.fitted.job.task

    @property
    def drift(self) -> Drift | None:
        """Whether recent texts are answered like those of the run; None if too few have come, or it is unknown."""
        return self._opened.judge.recent.found

    @property
    def about_drift(self) -> str:
        """What is to be said if recent texts differ from the gold rows; empty if they do not."""
        found = self.drift
        if found is None or not found.found:
            return ""
        return texts_differ(found, self._opened.fitted, self._ledger, self.folder)

    @property
    def tracker(self) -> BudgetTracker:
        """What was spent since the start."""
        return self._asker.tracker

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
        """Note that a text got no label, for a reason that concerns others, too: a key of `TROUBLE`."""
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
        opened, whole = self._opened, self._asker
        asker = whole.part(SharedCalls())
        opened.users += 1
        try:
            self._check_ledger()
            async with self._turns.hold() as asker.shared:
                votes = await run_job(
                    opened.prepared(whole.ledger), [Item(id="0", text=text)], asker, opened.fitted.strategy
                )
            outcome, probabilities = await opened.judge.judge(text, votes)
        except PcsError as error:
            if self._asker is whole:  # its pace is closed for all texts; those that come now try again
                self._asker = whole.restarted()
            kind = "ledger_unavailable" if isinstance(error, LedgerError) else "model_unavailable"
            failed = TextError(kind, str(error))
            return Classified(outcome=None, probabilities=(), spent=_spent(asker), error=failed, version=opened.version)
        finally:
            opened.users -= 1
            await opened.close_if_unused()
        return Classified(
            outcome=outcome,
            probabilities=probabilities,
            spent=_spent(asker),
            error=_why(asker.tally) if outcome.label is None else None,
            version=opened.version,
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
            self._opened = await asyncio.to_thread(self._open)
        except (PcsError, OSError) as error:
            self.outdated = OUTDATED
            self._say(f"the run has changed and cannot be loaded, so the earlier model stays in use: {error}")
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

    def __init__(self, fitted: FittedRun, version: str) -> None:
        self.fitted, self.version = fitted, version
        self.judge = JudgeTogether(fitted.model, lambda: self.users, fitted.on_drift)
        self.users = 0
        self._retired = False
        self._prepared: PreparedJob | None = None

    def prepared(self, ledger: CallStore) -> PreparedJob:
        """Return the questions, prepared once for all texts."""
        if self._prepared is None:
            self._prepared = PreparedJob.of(self.fitted.job, ledger)
        return self._prepared

    async def retire(self) -> None:
        """Close the models as soon as no text uses them."""
        self._retired = True
        await self.close_if_unused()

    async def close_if_unused(self) -> None:
        """Close the models if they are retired and unused."""
        if self._retired and not self.users:
            await ask.close_models(self.fitted.job)


def label_studio_interface(config: str) -> Interface:
    """Return the names in a labelling interface of Label Studio; the usual ones if none is given."""
    return read_interface(config) if config else Interface()


def label_studio_prediction(found: Classified, names: Interface) -> dict[str, Any]:
    """Return a label as Label Studio shows it; for a text without one, a prediction without a result."""
    known = None if found.outcome is None else prediction(found.outcome, found.version, names)
    return known or {"model_version": found.version, "score": 0.0, "result": []}
