"""What runs on a Ray cluster: workers that ask and, beside the driver, what holds ledger, budget and rate limit."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from pcs_annotator.asking.engine.ask import Asker
from pcs_annotator.asking.engine.budget import AnswerLengths, Cost
from pcs_annotator.asking.engine.collect import prepare_job, run_job
from pcs_annotator.asking.engine.coordinator import LOOK_AHEAD, Coordinator, Grants, Wishes
from pcs_annotator.asking.engine.item_asker import PreparedJob
from pcs_annotator.asking.engine.job import Job
from pcs_annotator.asking.engine.pace import CallsPerSecond
from pcs_annotator.asking.engine.progress import Tally
from pcs_annotator.asking.engine.remote_calls import RemoteBudget, RemoteCalls
from pcs_annotator.asking.ledger.open_ledger import AnyLedger, open_ledger
from pcs_annotator.base.errors import ClusterError, LedgerError, PcsError
from pcs_annotator.core.strategy import Strategy
from pcs_annotator.core.task import Item
from pcs_annotator.models.provider import read_environment
from pcs_annotator.models.resolve import resolve_model
from pcs_annotator.runs import ask
from pcs_annotator.version import __version__

LOST_SECONDS = 120.0
"""How long a worker waits for the coordinator to come back."""
PAUSE_SECONDS = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What every worker needs to know; it can be sent to other machines.

    Attributes:
        job: What to ask, without models.
        settings: How to ask; its environment has only what models need, such as keys.
        strategy: When to stop asking about a text; None to ask everything.
        version: Our version on the driver.
    """

    job: Job
    settings: ask.CollectSettings = field(repr=False)
    strategy: Strategy | None = None
    version: str = __version__

    @classmethod
    def of(cls, job: Job, settings: ask.CollectSettings, strategy: Strategy | None = None) -> Work:
        """Return the work of a job that is open here."""
        environment = _NotedEnvironment(settings.environment or read_environment(Path.cwd()))
        _opened(job, settings, environment)
        needed = {name: environment[name] for name in sorted(environment.noted) if name in environment}
        bare: Any = [(annotator, None) for annotator, _ in job.annotators]  # models stay here
        job = replace(job, annotators=bare, rewriter=job.rewriter and _NoModel(), on_variant=None, on_wording=None)
        # what counts and shows is here, too
        settings = replace(settings, environment=needed, tally=Tally(), progress=False, on_variant=None)
        return cls(job=job, settings=settings, strategy=strategy)

    def open(self) -> Job:
        """Return the job with its models open."""
        return _opened(self.job, self.settings, self.settings.environment or {})


class _NoModel:
    """Stands for a rewriter that is opened elsewhere."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


class _NotedEnvironment(dict[str, str]):
    """An environment that notes which variables are read, so that no others are sent to workers."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        super().__init__(variables)
        self.noted: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        """Return a variable."""
        self.noted.add(name)
        return super().get(name, default)

    def __getitem__(self, name: str) -> str:
        self.noted.add(name)
        return super().__getitem__(name)


def _opened(job: Job, settings: ask.CollectSettings, environment: Mapping[str, str]) -> Job:
    """Return a job with its models opened anew; annotators that differ only in how they ask share one."""
    named = cache(lambda name: resolve_model(name, environment))
    annotators = [(annotator, named(annotator.model)) for annotator, _ in job.annotators]
    return replace(job, annotators=annotators, rewriter=job.rewriter and resolve_model(settings.rewriter, environment))


class Paid(NamedTuple):
    """All calls that were paid for in a ledger, and their tokens."""

    calls: int
    tokens: int


def paid_in(ledger: AnyLedger) -> Paid:
    """Return all that was paid for in a ledger."""
    bills = ledger.bills()
    return Paid(sum(bill.calls for bill in bills), sum(bill.input_tokens + bill.output_tokens for bill in bills))


class CoordinatorActor:
    """The coordinator as an actor: it is started again when it is lost, and knows what was paid from the ledger."""

    def __init__(self, name: str, ledger: str, settings: ask.CollectSettings, before: Paid) -> None:
        import ray

        self._ledger = opened = open_ledger(ledger, successor_of=name).__enter__()
        tracker, _ = ask.spending_of(opened, ask.pricing(settings.prices), settings.budget)
        if settings.budget.calls is not None or settings.budget.tokens is not None:
            paid = paid_in(opened)
            tracker.calls, tracker.tokens = paid.calls - before.calls, paid.tokens - before.tokens
        rate = None
        if settings.max_per_second is not None:
            restarted = ray.get_runtime_context().was_current_actor_reconstructed
            rate = CallsPerSecond(settings.max_per_second, LOOK_AHEAD if restarted else 0.0)
        self._coordinator = Coordinator(opened, tracker, rate)

    async def exchange(self, worker: str, wishes: Wishes) -> Grants:
        """Grant what a worker wishes."""
        return await self._coordinator.exchange(worker, wishes)

    async def close(self) -> None:
        """Close the ledger, so that no claim is left on a server."""
        self._ledger.__exit__()

    async def graded_models(self) -> dict[str, bool]:
        """Return model → whether it gives log-probabilities."""
        return self._coordinator.graded_models()

    async def forget(self, worker: str) -> None:
        """End the claims and reservations of a worker that is lost."""
        self._coordinator.forget(worker)


class Done(NamedTuple):
    """What was counted when some texts were asked about, and what that cost; the answers are in the ledger."""

    tally: Tally
    cost: Cost


class NotReady(PcsError):
    """The worker was lost and started again, and does not know its work yet."""


class WorkerActor:
    """Asks about chunks of texts, several at the same time, with its models open."""

    def __init__(self, coordinator: str) -> None:
        import ray

        self._name, self._coordinator = uuid4().hex, ray.get_actor(coordinator)
        self._opening: asyncio.Task[None] | None = None
        self._work: Work
        self._asker: Asker
        self._prepared: PreparedJob

    async def ready(self, work: Work) -> str:
        """Open the models; return a name that no other worker has, not even this one after a restart."""
        if self._opening is None:
            self._work = work
            self._opening = asyncio.create_task(self._open())
        await asyncio.shield(self._opening)
        return self._name

    async def _open(self) -> None:
        work, settings = self._work, self._work.settings
        if work.version != __version__:
            raise ClusterError(
                f"a machine of the cluster has version {__version__} of perceived-confidence, and this one "
                f"{work.version}: install the same on all"
            )
        calls = RemoteCalls(self._send, await self._graded_models())
        self._asker = Asker(
            calls,
            RemoteBudget(settings.budget, calls),
            Tally(),
            ask.pricing(settings.prices),
            settings.patience,
            settings.in_flight,
            AnswerLengths(),
            limit=None if settings.max_per_second is None else calls,
        )
        self._prepared = await prepare_job(work.open(), self._asker)

    async def ask(self, items: Sequence[Item]) -> Done:
        """Ask about texts, as far as their labels need it."""
        if self._opening is None:
            raise NotReady
        asker = self._asker.part(self._asker.shared)
        await _to_the_end(run_job(self._prepared, items, asker, self._work.strategy))
        spent = asker.tracker
        cost = Cost(None if spent.price_unknown else spent.usd, spent.tokens, spent.output_tokens)
        return Done(asker.tally, cost)

    async def _send(self, wishes: Wishes) -> Grants:
        return await until_answered(lambda: self._coordinator.exchange.remote(self._name, wishes))

    async def _graded_models(self) -> dict[str, bool]:
        return await until_answered(self._coordinator.graded_models.remote)


async def _to_the_end(work: Coroutine[Any, Any, object]) -> None:
    """Await some work; however often that is cancelled, the work is cancelled once and may finish its calls."""
    task = asyncio.create_task(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        task.cancel()
        while not task.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([task])
        raise


async def until_answered(call: Any) -> Any:
    """Call the coordinator, again and again while it is being restarted."""
    from ray.exceptions import RayActorError

    loop = asyncio.get_running_loop()
    end = loop.time() + LOST_SECONDS
    while True:
        try:
            return await call()
        except RayActorError as error:
            if loop.time() > end:
                raise LedgerError(
                    "the actor that holds the ledger is lost: run again; paid answers are kept"
                ) from error
            await asyncio.sleep(PAUSE_SECONDS)
        except PcsError as error:
            raise plain_error(error) from None


def plain_error(error: PcsError) -> PcsError:
    """Return an error of ours that Ray has wrapped, as it was raised."""
    cause = getattr(error, "cause", None)
    return cause if isinstance(cause, PcsError) else error
