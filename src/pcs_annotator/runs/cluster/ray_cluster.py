"""`--executor ray`: asks about texts with workers on a Ray cluster, which share one ledger, budget and rate limit.

Workers put answers into the ledger; labels are then made from it in order, as if all had been asked from here. A chunk
of texts whose worker is lost goes to another one, which finds all answers so far in the ledger.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import nullcontext, redirect_stdout, suppress
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from typing import Any
from uuid import uuid4

from pcs_annotator.asking.engine.budget import BudgetTracker
from pcs_annotator.asking.engine.collect import SECONDS_TO_FINISH
from pcs_annotator.asking.engine.job import Job
from pcs_annotator.asking.engine.progress import Tally, showing
from pcs_annotator.asking.ledger.open_ledger import open_ledger
from pcs_annotator.base.errors import ClusterError, MissingPackage, PcsError
from pcs_annotator.core.ledger_address import LedgerAddress, on_server
from pcs_annotator.core.strategy import Strategy
from pcs_annotator.core.task import Item
from pcs_annotator.runs import ask
from pcs_annotator.runs.cluster.actors import (
    CoordinatorActor,
    Done,
    NotReady,
    Paid,
    Work,
    WorkerActor,
    paid_in,
    plain_error,
)

ROWS_PER_CHUNK = 1_000
LEAST_ROWS_PER_CHUNK = 16
CHUNKS_PER_WORKER = 2
"""While the last calls about one chunk are awaited, the next is asked about."""
ATTEMPTS = 10
"""How many workers may be lost with the same chunk."""
GONE_SECONDS = 90.0
"""How long there may be no worker at all."""
SILENT_SECONDS = 20.0
"""How long the head of the cluster may not answer; after a minute, Ray would end this process."""
CLOSING_SECONDS = 5.0
NAMESPACE = "pcs"
VERSIONS = re.compile(r"Ray: (\S+)")
_PLAIN = {"log_to_driver": False, "logging_level": "ERROR", "namespace": NAMESPACE}


async def ask_on_cluster(  # what to ask about, and the same as `executors.ask_job`
    job: Job,
    chunks: Iterable[Sequence[Item]],
    rows: int | None,
    ledger: LedgerAddress,
    settings: ask.CollectSettings,
    strategy: Strategy | None,
) -> Paid:
    """Put the answers to a job into a ledger; return what was paid."""
    assert settings.cluster is not None
    ask.refuse_unknown_prices(job, ask.pricing(settings.prices), settings.budget)
    cluster = Cluster.connect(settings.cluster, job)
    size = ROWS_PER_CHUNK
    if rows is not None:
        size = min(size, max(LEAST_ROWS_PER_CHUNK, ceil(rows / (4 * cluster.workers))))
    # everything is counted again when the answers are read from the ledger
    shown = replace(settings, tally=Tally(rows_expected=rows))
    with open_ledger(ledger) as opened:
        before = paid_in(opened)
        pool = Pool(cluster, Work.of(job, settings, strategy), ledger, before)
        # Ray prints what it has to say about lost workers to stdout, which may be meant for JSON
        with redirect_stdout(sys.stderr):
            await _ask_all(_smaller(chunks, size), pool, shown)
        after = paid_in(opened)
    return Paid(after.calls - before.calls, after.tokens - before.tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A Ray cluster that this process is connected to.

    Attributes:
        workers: How many workers to start.
        cpus: CPUs for each of them.
        gpus: GPUs for each of them.
    """

    workers: int
    cpus: float
    gpus: int

    @classmethod
    def connect(cls, settings: ask.ClusterSettings, job: Job) -> Cluster:
        """Connect to a cluster, unless this process already is; without an address, start one on this machine."""
        ray = need_ray()
        if not ray.is_initialized():
            _init(ray, settings.address or os.environ.get("RAY_ADDRESS", "") or "local")
        with_gpus = any(str(annotator.model).startswith("transformers:") for annotator, _ in job.annotators)
        resources = ray.cluster_resources()
        cpus, gpus = resources.get("CPU", 1.0), int(resources.get("GPU", 0)) if with_gpus else 0
        workers = settings.workers or gpus or max(1, int(cpus))
        return cls(workers=workers, cpus=min(1.0, cpus / workers), gpus=1 if gpus >= workers else 0)


async def _ask_all(chunks: Iterable[Sequence[Item]], pool: Pool, settings: ask.CollectSettings) -> None:
    """Have all chunks asked about; counts go into the tally of the settings."""
    tally, tracker = settings.tally, BudgetTracker(settings.budget)
    under_way: deque[asyncio.Task[Done]] = deque()

    async def first_done() -> None:
        done = await pool.unless_gone(under_way[0])
        under_way.popleft()
        tally.add(done.tally)
        tracker.pay(done.cost)

    try:
        async with showing(tally, tracker) if settings.progress else nullcontext():
            await pool.start()
            for chunk in chunks:
                under_way.append(asyncio.create_task(pool.ask(chunk)))
                if len(under_way) == pool.room:
                    await first_done()
            while under_way:
                await first_done()
    finally:
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
        await pool.stop()


def need_ray() -> Any:
    """Return the package Ray; an error if it is not installed."""
    try:
        import ray
    except ImportError as error:
        raise MissingPackage("--executor ray needs the extra ray: pip install 'perceived-confidence[ray]'") from error
    return ray


def _init(ray: Any, address: str) -> None:
    if address.startswith("ray://"):
        raise ClusterError(
            f"{address} is an address for Ray clients, which have no disk on the cluster: run pcs on a machine of the "
            "cluster, with its own address, such as --ray-address auto"
        )
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    own = {"include_dashboard": False} if address == "local" else {}
    started: Future[None] = Future()

    def start_and_stay() -> None:
        try:
            ray.init(address=address, **own, **_PLAIN)
        except Exception as error:
            started.set_exception(error)
            return
        started.set_result(None)
        threading.Event().wait()

    # The processes of a local cluster die with the thread that started them, so this one stays.
    threading.Thread(target=start_and_stay, name="pcs-ray", daemon=True).start()
    try:
        started.result()
    except Exception as error:
        raise ClusterError(f"no connection to the Ray cluster at {address}: {_why(error)}") from error


def _why(error: Exception) -> str:
    text = str(error)
    versions = VERSIONS.findall(text)
    if "ersion mismatch" in text and len(versions) == 2:
        theirs, ours = versions
        differing = f"it has Ray {theirs}, and this process has {ours}"
        if theirs == ours:
            differing = "it has another version of Python"
        return f"{differing}; install the same versions here and there, such as ray=={theirs}"
    first = next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)
    return (
        f"{first[:300]}; is it running, and if it wants a token, are RAY_AUTH_MODE=token and RAY_AUTH_TOKEN set? "
        "Without --ray-address, a cluster is started on this machine"
    )


class Pool:
    """The workers of a job, and the coordinator beside this process."""

    def __init__(self, cluster: Cluster, work: Work, ledger: LedgerAddress, before: Paid) -> None:
        self._cluster, self._work, self._ledger, self._before = cluster, work, ledger, before
        self._workers: list[Any] = []
        self._names: list[str] = []
        self._coordinator: Any = None
        self._sent: Any = None
        self._free: asyncio.Queue[int] = asyncio.Queue()
        self._under_way: set[Any] = set()
        self._reviving: set[asyncio.Task[None]] = set()
        self._alive, self._alive_at = 0, 0.0
        self._watching: asyncio.Task[None] | None = None

    @property
    def room(self) -> int:
        """How many chunks may be under way or wait for a worker."""
        return 2 * CHUNKS_PER_WORKER * self._cluster.workers

    async def start(self) -> None:
        """Start coordinator and workers."""
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        name = f"pcs-coordinator-{uuid4().hex[:8]}"
        beside = {"name": name, "num_cpus": 0, "max_restarts": -1, "scheduling_strategy": here}
        without_keys = replace(self._work.settings, environment=None)
        place = self._ledger if on_server(self._ledger) else Path(self._ledger).absolute()
        self._coordinator = (
            ray.remote(CoordinatorActor)
            .options(**beside, max_concurrency=1000)
            .remote(name, str(place), without_keys, self._before)
        )
        how = {"num_cpus": self._cluster.cpus, "num_gpus": self._cluster.gpus, "max_restarts": -1}
        worker = ray.remote(WorkerActor).options(**how, max_concurrency=2 * CHUNKS_PER_WORKER)
        self._sent = ray.put(self._work)
        self._workers = [worker.remote(name) for _ in range(self._cluster.workers)]
        self._names = [""] * len(self._workers)
        self._alive_at = asyncio.get_running_loop().time()
        self._watching = asyncio.create_task(_until_gone(ray.get_runtime_context().gcs_address))
        for index in range(len(self._workers)):
            for _ in range(CHUNKS_PER_WORKER):
                self._revive(index)

    async def unless_gone(self, work: asyncio.Task[Done]) -> Done:
        """Wait for some work; raise if the cluster goes away."""
        assert self._watching is not None
        await asyncio.wait([work, self._watching], return_when=asyncio.FIRST_COMPLETED)
        if self._watching.done():
            self._watching.result()
        return await work

    async def ask(self, chunk: Sequence[Item]) -> Done:
        """Have a chunk asked about by a free worker; by another one if that is lost."""
        from ray.exceptions import RayActorError, RayError

        for _ in range(ATTEMPTS):
            index = await self._free_worker()
            answer = self._workers[index].ask.remote(chunk)
            self._under_way.add(answer)
            try:
                done: Done = await answer
            except asyncio.CancelledError:
                raise  # `stop` waits for the calls in flight
            except (RayActorError, NotReady):
                self._lose(index)
            except PcsError as error:
                raise plain_error(error) from None
            except RayError as error:
                raise ClusterError(f"a worker of the cluster failed: {_last_line(error)}; {RESUMES}") from error
            else:
                self._free.put_nowait(index)
                self._under_way.discard(answer)
                return done
            self._under_way.discard(answer)
        raise ClusterError(
            f"{ATTEMPTS} workers were lost with the same {len(chunk)} rows, perhaps for lack of memory: look at "
            f"Ray's logs; {RESUMES}"
        )

    async def _free_worker(self) -> int:
        while True:
            for task in [task for task in self._reviving if task.done()]:
                self._reviving.discard(task)
                task.result()  # an error that every worker has
            with suppress(TimeoutError):
                return await asyncio.wait_for(self._free.get(), 1.0)
            now = asyncio.get_running_loop().time()
            if self._alive:
                self._alive_at = now
            elif now > self._alive_at + GONE_SECONDS:
                raise ClusterError(f"the cluster has had no worker for {GONE_SECONDS:.0f} s: is it there? {RESUMES}")

    def _lose(self, index: int) -> None:
        """Note that a worker is lost, and wait for Ray to start it again."""
        self._alive -= 1
        if self._names[index]:
            self._coordinator.forget.remote(self._names[index])
            self._names[index] = ""
        self._revive(index)

    def _revive(self, index: int) -> None:
        self._reviving.add(asyncio.create_task(self._until_ready(index)))

    async def _until_ready(self, index: int) -> None:
        from ray.exceptions import RayActorError

        while True:
            try:
                self._names[index] = await self._workers[index].ready.remote(self._sent)
            except RayActorError as error:
                if "in its constructor" in str(error) or "creation task" in str(error):
                    raise ClusterError(f"workers cannot be started: {_last_line(error)}; {RESUMES}") from error
                await asyncio.sleep(1.0)
                continue
            except PcsError as error:
                raise plain_error(error) from None
            self._alive += 1
            self._free.put_nowait(index)
            return

    async def stop(self) -> None:
        """Let calls in flight finish, because they may be billed, and end all workers."""
        import ray

        watching = [] if self._watching is None else [self._watching]
        if any(task.done() for task in watching):
            return  # the cluster is gone
        for task in (*self._reviving, *watching):
            task.cancel()
        await asyncio.gather(*self._reviving, *watching, return_exceptions=True)
        with suppress(Exception):  # it may go away at this moment
            for answer in self._under_way:
                ray.cancel(answer)
            if self._under_way:
                await asyncio.to_thread(
                    ray.wait, [*self._under_way], num_returns=len(self._under_way), timeout=SECONDS_TO_FINISH + 2
                )
            for worker in self._workers:
                ray.kill(worker)
            closed = self._coordinator.close.remote()
            await asyncio.to_thread(ray.wait, [closed], timeout=CLOSING_SECONDS)
            ray.kill(self._coordinator)


RESUMES = "paid answers are kept, and the same command continues"


async def _until_gone(head: str) -> None:
    """Raise when the head of a cluster has not answered for a while."""
    host, _, port = head.rpartition(":")
    loop = asyncio.get_running_loop()
    answered_at = loop.time()
    while loop.time() < answered_at + SILENT_SECONDS:
        await asyncio.sleep(2.0)
        with suppress(OSError, TimeoutError):
            _, writer = await asyncio.wait_for(asyncio.open_connection(host.strip("[]"), int(port)), 5.0)
            writer.close()
            answered_at = loop.time()
    raise ClusterError(f"the head of the Ray cluster at {head} does not answer: has it been stopped? {RESUMES}")


def _last_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines or [type(error).__name__])[-1][:300]


def _smaller(chunks: Iterable[Sequence[Item]], rows: int) -> Iterator[Sequence[Item]]:
    """Yield the same texts in chunks that are small enough to be shared out among workers."""
    for chunk in chunks:
        yield from (chunk[at : at + rows] for at in range(0, len(chunk), rows))
