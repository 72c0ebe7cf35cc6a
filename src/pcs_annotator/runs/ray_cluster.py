"""`--executor ray`: asks from the workers of a Ray cluster, which share a ledger on a PostgreSQL server.

Ray Data hands texts to workers and gives those of a lost worker to another one. Workers claim calls in the ledger,
store the answers there and read from it what all of them have spent. Labels are then made here from the ledger, in
order, as if all had been asked from here. Workers stop when this process no longer gives signs of life in the ledger.
"""

import asyncio
import logging
import os
import pickle
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import nullcontext, redirect_stdout
from dataclasses import replace
from functools import cached_property, partial
from math import ceil
from pathlib import Path
from typing import Any

from pcs_annotator.asking.annotators.annotator import Annotator
from pcs_annotator.asking.engine.ask import Asker
from pcs_annotator.asking.engine.budget import BudgetTracker, Cost
from pcs_annotator.asking.engine.collect import in_blocks, run_job
from pcs_annotator.asking.engine.item_asker import PreparedJob
from pcs_annotator.asking.engine.job import Job
from pcs_annotator.asking.engine.progress import Tally, showing
from pcs_annotator.asking.ledger.admin import PaidInRun
from pcs_annotator.asking.ledger.open_ledger import open_server_ledger
from pcs_annotator.base.concurrency import run_in_thread
from pcs_annotator.base.errors import ClusterError, ConfigError, Interrupted, MissingPackage, PcsError
from pcs_annotator.core.ledger_address import LedgerAddress, on_server
from pcs_annotator.core.task import Item, Task
from pcs_annotator.core.votes import Strategy
from pcs_annotator.models.provider import read_environment
from pcs_annotator.relations.base import Relation
from pcs_annotator.runs import ask
from pcs_annotator.tables.arrow import pa

ROWS_PER_BATCH = 1_000
FEWEST_ROWS_PER_BATCH = 16
BATCHES_PER_WORKER = 2  # while the last calls about one batch are awaited, the next is asked about
BATCHES_PER_DATASET = 1_000  # texts that Ray holds at a time; models are opened anew after them
ATTEMPTS = 10  # how many workers may be lost with the same batch
LOOK_SECONDS = 1.0  # pause between looks at whether the command still runs
RESUMES = "paid answers are kept, and the same command continues"


async def ask_on_cluster(
    job: Job,
    items: Iterable[Item],
    rows: int | None,
    ledger: LedgerAddress,
    settings: ask.CollectSettings,
    strategy: Strategy | None,
) -> PaidInRun:
    """Put the answers to a job into a ledger; return what was paid."""
    assert settings.cluster is not None
    check_cluster(ledger)
    workers, resources = connect(settings.cluster, job)
    size = ROWS_PER_BATCH
    if rows is not None:
        size = min(size, max(FEWEST_ROWS_PER_BATCH, ceil(rows / (4 * workers))))
    # everything is counted again when the answers are read from the ledger
    tally, tracker = Tally(rows_expected=rows), BudgetTracker(settings.budget)
    if settings.follow is not None:
        settings.follow(tally, tracker)
    filling: asyncio.Task[None] | None = None
    try:
        # Ray prints what it has to say about lost workers to stdout, which may be meant for JSON
        with redirect_stdout(sys.stderr), open_server_ledger(ledger) as opened:
            asks = job.task, [annotator for annotator, _ in job.annotators], job.relations
            arguments = asks, worker_settings(settings, workers), strategy, str(ledger), opened.lead_run()
            results = _results(workers, resources, arguments, in_blocks(items, size))
            filling = asyncio.create_task(run_in_thread(partial(_count, results, tally, tracker, opened.__exit__)))
            async with showing(tally, tracker) if settings.progress else nullcontext():
                await asyncio.shield(filling)
            return opened.paid_in_run()
    finally:
        # workers see that the ledger is closed, and finish their calls, because they may be billed
        if filling is not None:
            await asyncio.gather(filling, return_exceptions=True)


def _count(results: "Iterable[Done]", tally: Tally, tracker: BudgetTracker, stop: Callable[[], object]) -> None:
    """Count what workers have done; after an error, stop them all and raise it."""
    failed: PcsError | None = None
    for done in results:
        if isinstance(done, tuple):
            tally.add(done[0])
            tracker.pay(done[1])
        elif failed is None:
            failed = done
            stop()
    if failed is not None:
        raise failed


def worker_settings(settings: ask.CollectSettings, workers: int) -> ask.CollectSettings:
    """Return the settings of one of several workers; what counts and shows stays here.

    Of the environment, it gets what `.env` says: the rest is for Ray's `runtime_env`.
    """
    environment, rate = settings.environment, settings.max_per_second
    if environment is None:
        environment = {name: key for name, key in read_environment(Path.cwd()).items() if name not in os.environ}
    alone = replace(settings, cluster=None, progress=False, follow=None, on_variant=None, tally=Tally())
    return replace(alone, environment=environment, max_per_second=rate and rate / workers)


Asks = tuple[Task, Sequence[Annotator], Sequence[Relation]]
Done = tuple[Tally, Cost] | PcsError  # counts and cost of asking about some texts, or the error


class Worker:
    """Asks about batches of texts, several at the same time, with its models open.

    Its arguments are sent to other machines. `run` is the name of the command in the ledger.
    """

    def __init__(
        self, asks: Asks, settings: ask.CollectSettings, strategy: Strategy | None, ledger: str, run: str
    ) -> None:
        self._asks, self._settings, self._strategy = asks, settings, strategy
        self._ledger, self._run = ledger, run

    async def __call__(self, batch: pa.Table) -> AsyncIterator[dict[str, list[bytes]]]:
        """Yield what was counted, or the error."""
        done: Done
        try:
            asker, prepared, _ = self._opened
            part = asker.part(asker.shared)
            await run_job(prepared, pickle.loads(batch["items"][0].as_py()), part, self._strategy)
            spent = part.spent or part.tracker
            usd = None if spent.price_unknown else spent.usd
            done = part.tally, Cost(usd, spent.tokens, spent.output_tokens)
        except PcsError as error:
            done = error
        yield {"done": [pickle.dumps(done)]}

    @cached_property
    def _opened(self) -> tuple[Asker, PreparedJob, asyncio.Task[None]]:
        """What asks, what is asked, and the task that stops it; opened at the first batch, which is told of errors."""
        import ray

        environment = {**os.environ, **(self._settings.environment or {})}
        job = ask.open_job(*self._asks, replace(self._settings, environment=environment))
        # a worker that is started again has the same name, and takes over what it had claimed
        name = str(ray.get_runtime_context().get_actor_id())
        ledger = open_server_ledger(self._ledger, worker=name, run=self._run).__enter__()
        asker = ask.open_asker(ledger, self._settings)
        stopping = asyncio.create_task(self._until_stopped(ledger.run_is_led, asker))
        return asker, PreparedJob.of(job, ledger), stopping

    async def _until_stopped(self, is_led: Callable[[], bool], asker: Asker) -> None:
        while await asyncio.to_thread(is_led):
            await asyncio.sleep(LOOK_SECONDS)
        asker.stop(Interrupted("the command was stopped; every answer that was paid for is in the ledger"))


def connect(settings: ask.ClusterSettings, job: Job) -> tuple[int, dict[str, float]]:
    """Connect to a cluster, unless this process already is; without an address, start one on this machine.

    Return how many workers to start there, with how many CPUs and GPUs for each of them.
    """
    ray = need_ray()
    if not ray.is_initialized():
        _init(ray, settings.address or os.environ.get("RAY_ADDRESS", "") or "local")
    with_gpus = any(str(annotator.model).startswith("transformers:") for annotator, _ in job.annotators)
    resources = ray.cluster_resources()
    cpus, gpus = resources.get("CPU", 1.0), int(resources.get("GPU", 0)) if with_gpus else 0
    workers = settings.workers or gpus or max(1, int(cpus))
    return workers, {"num_cpus": min(1.0, cpus / workers), "num_gpus": 1 if gpus >= workers else 0}


def _results(
    workers: int, resources: Mapping[str, Any], arguments: tuple[Any, ...], batches: Iterable[Sequence[Item]]
) -> Iterator[Done]:
    """Have workers with these arguments ask about batches of texts; yield what each has come to, in any order."""
    from ray.data import ActorPoolStrategy, DataContext
    from ray.exceptions import RayError

    ray = need_ray()
    DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    try:
        for some in in_blocks(batches, BATCHES_PER_DATASET):
            # pickled, because a text may have lone surrogates
            texts = ray.data.from_arrow_refs([ray.put(pa.table({"items": [pickle.dumps(one)]})) for one in some])
            done = texts.map_batches(
                Worker,
                batch_size=None,
                batch_format="pyarrow",
                fn_constructor_args=arguments,
                compute=ActorPoolStrategy(size=min(workers, len(some))),
                **resources,
                max_concurrency=BATCHES_PER_WORKER,
                max_task_retries=ATTEMPTS,
            )
            yield from (pickle.loads(row["done"]) for row in done.iter_rows())
    except RayError as error:
        last = [line.strip() for line in str(error).splitlines() if line.strip()][-1:]
        raise ClusterError(f"a worker of the cluster failed: {''.join(last)[:300]}; {RESUMES}") from error


def check_cluster(ledger: LedgerAddress) -> None:
    """Raise unless Ray is installed and the ledger is one that all workers can reach."""
    need_ray()
    if not on_server(ledger):
        raise ConfigError(
            '--executor ray needs a ledger that all workers can reach: set ledger = "postgresql://…" under [ask], or '
            "--ledger postgresql://USER@HOST/DATABASE"
        )


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
    how = {"log_to_driver": False, "logging_level": "ERROR", "namespace": "pcs"}
    own = {"include_dashboard": False} if address == "local" else {}
    started: Future[None] = Future()

    def start_and_stay() -> None:
        try:
            started.set_result(ray.init(address=address, **own, **how))
        except Exception as error:
            started.set_exception(error)
        else:
            threading.Event().wait()

    # The processes of a local cluster die with the thread that started them, so this one stays.
    threading.Thread(target=start_and_stay, name="pcs-ray", daemon=True).start()
    try:
        started.result()
    except Exception as error:
        said = " ".join(str(error).split())[:300] or type(error).__name__
        raise ClusterError(
            f"no connection to the Ray cluster at {address}: {said}; is it running, with the same versions of Ray and "
            "Python as here, and if it wants a token, are RAY_AUTH_MODE=token and RAY_AUTH_TOKEN set? Without "
            "--ray-address, a cluster is started on this machine"
        ) from error
