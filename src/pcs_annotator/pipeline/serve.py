"""`pcs serve`: a fitted run that labels texts as they come, with its models and its ledger open."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from pcs_annotator.asking.engine.ask import Asker
from pcs_annotator.asking.engine.budget import BudgetTracker
from pcs_annotator.asking.engine.collect import run_job
from pcs_annotator.asking.engine.item_asker import BUDGET_REACHED, PreparedJob
from pcs_annotator.asking.engine.progress import Tally
from pcs_annotator.asking.ledger.ledger import CallStore
from pcs_annotator.asking.ledger.lock import LOCK_ATTEMPT_SECONDS, SharedCalls, lock_ledger_async
from pcs_annotator.asking.ledger.open_ledger import open_ledger
from pcs_annotator.core.ledger_address import LedgerAddress, on_server
from pcs_annotator.core.outcome import Outcome
from pcs_annotator.core.task import Item, Task
from pcs_annotator.errors import LedgerError, PcsError
from pcs_annotator.files.label_studio import Interface, prediction, read_interface
from pcs_annotator.files.runs import RunFolder
from pcs_annotator.judging.promising.drift import Drift
from pcs_annotator.pipeline import ask
from pcs_annotator.pipeline.drift_text import texts_differ
from pcs_annotator.pipeline.fitted import FittedRun
from pcs_annotator.pipeline.judge_together import JudgeTogether
from pcs_annotator.pipeline.label import Saving, open_fitted
from pcs_annotator.pipeline.ledgers import ledger_of
from pcs_annotator.pipeline.run_folder import Recorded, refuse_lost_ledger, started

LONGEST_TURN = 20.0
"""Seconds after which other processes get a turn at the ledger, however many texts are waiting."""
LINGER_SECONDS = 0.1
"""How long the lock is kept after the last text, because to take it costs more than to answer a known text."""
LOOK_EVERY = 1.0
"""Seconds between looks at the run folder, which `pcs fit` may have changed."""
Say = Callable[[str], None]


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
        outdated: Why a changed run could not be loaded; empty if the current one is in use.
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
        self._opened: _Opened
        self._asker: Asker
        self._ledger: LedgerAddress
        self._ledger_file = 0
        self._turns: _Turns

    def check(self) -> None:
        """Raise if the folder is no run folder."""
        started(self.folder)

    async def __aenter__(self) -> Service:
        config, _ = started(self.folder, self._options.ledger)
        refuse_lost_ledger(self.folder, config)
        self._ledger = ledger_of(self.folder, config)
        self._turns = _Turns(self._ledger, self._say)
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
    def at_once(self) -> int:
        """How many texts should be in progress to keep all models busy."""
        return 8 + 2 * self._asker.max_in_flight * self._opened.fitted.job.models

    async def classify(self, text: str) -> Classified:
        """Ask about a text, and return its label, or why it has none."""
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
        now = asyncio.get_running_loop().time()
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
            self.outdated = str(error)
            self._say(f"the run has changed and cannot be loaded, so the earlier model stays in use: {error}")
        else:
            self.outdated = ""
            self._say(f"the run has changed: {self._opened.version} is in use now")
            await before.retire()
        finally:
            self._loading = None


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
    tracker = asker.tracker
    return Spent(
        asker.tally.calls,
        asker.tally.from_ledger,
        tracker.tokens - tracker.output_tokens,
        tracker.output_tokens,
        None if tracker.price_unknown else tracker.usd,
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


class _Turns:
    """Holds the lock of a ledger while texts are in progress, and lets other processes have their turn."""

    def __init__(self, ledger: LedgerAddress, say: Say) -> None:
        self._ledger, self._say = ledger, say
        self._door = asyncio.Lock()
        self._texts, self._since = 0, 0.0
        self._empty = asyncio.Event()
        self._holder: asyncio.Task[None] | None = None
        self._shared: SharedCalls

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[SharedCalls]:
        """Hold the lock together with other texts."""
        async with self._door:  # one text waits for the lock, and the others for that one
            await self._let_others()
            if self._holder is None:
                self._shared = await self._take()
            self._texts += 1
            self._shared.tasks += 1
            self._empty.clear()
        shared = self._shared
        try:
            yield shared
        finally:
            shared.tasks -= 1
            self._texts -= 1
            if not self._texts:
                self._empty.set()

    async def release(self) -> None:
        """Release the lock; no text is in progress."""
        if self._holder is not None:
            self._holder.cancel()
            await asyncio.wait([self._holder])

    async def _let_others(self) -> None:
        """If the lock was held for long, wait until it is released, and then long enough for others to take it."""
        if self._holder is not None and asyncio.get_running_loop().time() > self._since + LONGEST_TURN:
            await asyncio.wait([self._holder])
            await asyncio.sleep(3 * LOCK_ATTEMPT_SECONDS)

    async def _take(self) -> SharedCalls:
        taken: asyncio.Future[SharedCalls] = asyncio.get_running_loop().create_future()
        # a task of its own, because whoever takes a lock must also release it
        self._holder = asyncio.create_task(self._keep(taken))
        return await taken

    async def _keep(self, taken: asyncio.Future[SharedCalls]) -> None:
        try:
            async with lock_ledger_async(self._ledger, say=self._say) as shared:
                self._since = asyncio.get_running_loop().time()
                taken.set_result(shared)
                await asyncio.sleep(LINGER_SECONDS)
                while self._texts:
                    await self._empty.wait()
                    await asyncio.sleep(LINGER_SECONDS)
                self._holder = None
        except Exception as error:
            self._holder = None
            taken.set_exception(error)


def label_studio_interface(config: str) -> Interface:
    """Return the names in a labelling interface of Label Studio; the usual ones if none is given."""
    return read_interface(config) if config else Interface()


def label_studio_prediction(found: Classified, names: Interface) -> dict[str, Any]:
    """Return a label as Label Studio shows it; for a text without one, a prediction without a result."""
    known = None if found.outcome is None else prediction(found.outcome, found.version, names)
    return known or {"model_version": found.version, "score": 0.0, "result": []}
