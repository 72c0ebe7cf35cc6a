"""`--executor ray`: asks from the workers of a Ray cluster, which share a ledger on a PostgreSQL server.

Workers claim calls in the ledger and store the answers there; labels are then made here, as if all had been asked from
here. Workers stop when this process no longer gives signs of life in the ledger.
"""

import asyncio
import atexit
import logging
import os
import pickle
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import nullcontext, redirect_stdout
from dataclasses import replace
from functools import cached_property, partial
from math import ceil
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from pcs_annotator.asking.engine.budget import BudgetTracker, Cost
from pcs_annotator.asking.engine.call import Asker
from pcs_annotator.asking.engine.collect import in_blocks, run_job
from pcs_annotator.asking.engine.item_asker import PreparedJob
from pcs_annotator.asking.engine.job import Job
from pcs_annotator.asking.engine.progress import Tally, showing
from pcs_annotator.asking.ledger.admin import PaidInRun
from pcs_annotator.asking.ledger.open_ledger import open_server_ledger
from pcs_annotator.base.concurrency import run_in_thread
from pcs_annotator.base.errors import ClusterError, ConfigError, Interrupted, MissingPackage, PcsError
from pcs_annotator.core.ledger_address import LedgerAddress, on_server
from pcs_annotator.core.task import Item
from pcs_annotator.core.votes import Strategy
from pcs_annotator.models.provider import read_environment
from pcs_annotator.runs import ask

ROWS_PER_BATCH = 128  # the most: those of a small table are smaller, so that every worker gets some
BATCHES_PER_WORKER = 4  # while the last calls about one batch are awaited, the others are asked about
BATCHES_PER_DATASET = 8_000  # texts that Ray holds at a time; models are opened anew after them
ATTEMPTS = 30  # how often a batch may be lost; Ray takes six attempts until it notices that a machine is gone
PASSWORD = "PGPASSWORD"  # read by PostgreSQL's library
LOOK_SECONDS = 1.0  # pause between looks at whether the command still runs

Done = tuple[Tally, Cost] | PcsError  # counts and cost of asking about some texts, or the error


async def ask_on_cluster(
    job: Job, items: Iterable[Item], ledger: LedgerAddress, settings: ask.CollectSettings, strategy: Strategy | None
) -> PaidInRun:
    """Put the answers to a job into a ledger; return what was paid."""
    ray = check_cluster(ledger)
    workers, each = connect(ray, settings.cluster or ask.ClusterSettings(), job)
    refuse_own_host(ray, str(ledger))
    # everything is counted again when the answers are read from the ledger
    tally, tracker = Tally(rows_expected=settings.tally.rows_expected), BudgetTracker(settings.budget)
    if settings.follow is not None:
        settings.follow(tally, tracker)
    # Ray prints what it has to say about lost workers to stdout, which may be meant for JSON
    with redirect_stdout(sys.stderr), open_server_ledger(ledger) as opened:
        open_job = partial(ask.open_job, job.task, [annotator for annotator, _ in job.annotators], job.relations)
        sent = _pickled(ray, (open_job, worker_settings(settings, workers), strategy, str(ledger), opened.lead_run()))
        batches = in_blocks(items, rows_per_batch(tally.rows_expected, workers))
        results = _results(ray, workers, {**each, "fn_constructor_args": [sent]}, batches)
        filling = asyncio.create_task(run_in_thread(partial(_count, results, tally, tracker, opened.__exit__)))
        try:
            async with showing(tally, tracker) if settings.progress else nullcontext():
                await asyncio.shield(filling)
        finally:
            if not filling.done():
                opened.__exit__()  # workers see that, and finish their calls, because they may be billed
            await asyncio.gather(filling, return_exceptions=True)
        return opened.paid_in_run()


def rows_per_batch(rows: int | None, workers: int) -> int:
    """Return how many texts a worker is handed at a time."""
    return min(ROWS_PER_BATCH, ceil(rows / (workers * BATCHES_PER_WORKER))) if rows else ROWS_PER_BATCH


def _pickled(ray: Any, sent: object) -> bytes:
    try:
        return bytes(ray.cloudpickle.dumps(sent))
    except Exception as error:  # whatever an object of the user's raises
        raise ConfigError(
            f"a model or relation cannot be sent to the workers of a cluster: {error}; open connections, locks and "
            "files inside the function, or use --executor local"
        ) from error


def _count(results: Iterable[Done], tally: Tally, tracker: BudgetTracker, stop: Callable[[], object]) -> None:
    failed: list[PcsError] = []
    for done in results:
        if isinstance(done, PcsError):
            failed.append(done)
            stop()
        else:
            tally.add(done[0])
            tracker.pay(done[1])
    if failed:
        raise failed[0]


def _results(ray: Any, workers: int, how: dict[str, Any], batches: Iterable[Sequence[Item]]) -> Iterator[Done]:
    """Have workers ask about batches of texts; yield what each has come to, in any order."""
    ray.data.DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    how |= {"max_concurrency": BATCHES_PER_WORKER, "max_task_retries": ATTEMPTS}
    try:
        for some in in_blocks(batches, BATCHES_PER_DATASET):
            # pickled, because a text may have lone surrogates
            texts = ray.data.from_items([pickle.dumps(batch) for batch in some], override_num_blocks=len(some))
            size = min(workers, len(some))
            pool = ray.data.ActorPoolStrategy(size=size, max_tasks_in_flight_per_actor=BATCHES_PER_WORKER)
            done = texts.map_batches(Worker, batch_size=None, batch_format="pyarrow", compute=pool, **how)
            yield from (pickle.loads(row["done"]) for row in done.iter_rows())
    except ray.exceptions.RayError as error:
        why = str(error).strip().rpartition("\n")[2].strip()[:300]
        raise ClusterError(f"a worker failed: {why}; paid answers are kept, and the same command continues") from error


def worker_settings(settings: ask.CollectSettings, workers: int) -> ask.CollectSettings:
    """Return the settings of a worker, with what `.env` says and the password of the ledger, and no more."""
    environment, rate = settings.environment, settings.max_per_second
    if environment is None:
        environment = {name: key for name, key in read_environment(Path.cwd()).items() if name not in os.environ}
    if PASSWORD in os.environ:
        environment = {**environment, PASSWORD: os.environ[PASSWORD]}
    alone = replace(settings, cluster=None, progress=False, follow=None, on_variant=None, tally=Tally())
    return replace(alone, environment=environment, max_per_second=rate and rate / workers)


class Worker:
    """Asks about batches of texts, several at a time, with its models open; `sent` is pickled."""

    def __init__(self, sent: bytes) -> None:
        self._sent = sent

    async def __call__(self, batch: Any) -> AsyncIterator[dict[str, list[bytes]]]:
        """Yield what was counted, or the error."""
        done: Done
        try:
            asker, prepared, strategy, _ = self._opened
            part = asker.part(asker.shared)
            await run_job(prepared, pickle.loads(batch["item"][0].as_py()), part, strategy)
            spent = part.spent or part.tracker
            done = part.tally, Cost(None if spent.price_unknown else spent.usd, spent.tokens)
        except PcsError as error:
            done = error
        yield {"done": [pickle.dumps(done)]}

    @cached_property
    def _opened(self) -> tuple[Asker, PreparedJob, Strategy | None, asyncio.Task[None]]:
        """What asks, what is asked, and the task that stops it; opened at the first batch, which is told of errors."""
        import ray

        open_job, settings, strategy, address, run = pickle.loads(self._sent)
        if PASSWORD in settings.environment:
            os.environ.setdefault(PASSWORD, settings.environment[PASSWORD])
        job = open_job(replace(settings, environment={**os.environ, **settings.environment}))
        # a worker that is started again has the same name, and takes over what it had claimed
        name = str(ray.get_runtime_context().get_actor_id())
        ledger = open_server_ledger(address, worker=name, run=run).__enter__()
        asker = ask.open_asker(ledger, settings)
        stopping = asyncio.create_task(_stop_with_command(asker, ledger.run_is_led))
        return asker, PreparedJob.of(job, ledger), strategy, stopping


async def _stop_with_command(asker: Asker, is_led: Callable[[], bool]) -> None:
    while await asyncio.to_thread(is_led):
        await asyncio.sleep(LOOK_SECONDS)
    asker.stop(Interrupted("the command was stopped; every answer that was paid for is in the ledger"))


def check_cluster(ledger: LedgerAddress) -> Any:
    """Return the package Ray; raise unless it is installed and the ledger is one that all workers can reach."""
    try:
        import ray.data
    except ImportError as error:
        raise MissingPackage("--executor ray needs the extra ray: pip install 'perceived-confidence[ray]'") from error
    if not on_server(ledger):
        remedy = 'set ledger = "postgresql://…" under [ask], or --ledger postgresql://USER@HOST/DATABASE'
        raise ConfigError(f"--executor ray needs a ledger that all workers can reach: {remedy}")
    return ray


def refuse_own_host(ray: Any, ledger: str) -> None:
    """Raise if a cluster has several machines and the address of the ledger means another server on each."""
    url = urlsplit(ledger)
    host = url.hostname or parse_qs(url.query).get("host", ["localhost"])[0]
    if host.startswith(("localhost", "127.", "::1", "/")) and sum(node["Alive"] for node in ray.nodes()) > 1:
        remedy = "name the server as all of them reach it: --ledger postgresql://USER@HOST/DATABASE"
        raise ConfigError(f"the cluster has several machines, and a ledger at {host} is another one on each: {remedy}")


def connect(ray: Any, settings: ask.ClusterSettings, job: Job) -> tuple[int, dict[str, float]]:
    """Connect to a cluster, unless this process already is; return how many workers to start, and what each needs."""
    if not ray.is_initialized():
        _init(ray, settings.address or os.environ.get("RAY_ADDRESS", "") or "local")
    with_gpus = any(str(annotator.model).startswith("transformers:") for annotator, _ in job.annotators)
    has = ray.cluster_resources()
    cpus, gpus = has.get("CPU", 1.0), int(has.get("GPU", 0)) if with_gpus else 0
    workers = settings.workers or gpus or max(1, int(cpus))
    # half of what there is, so that a worker whose machine is lost has room on another one
    return workers, {"num_cpus": min(1.0, cpus / workers) / 2, "num_gpus": 1 if gpus >= workers else 0}


def _shut_down(ray: Any) -> None:
    with redirect_stdout(sys.stderr):  # Ray prints then what it has kept back
        ray.shutdown()


def _init(ray: Any, address: str) -> None:
    if address.startswith("ray://"):
        remedy = "run pcs on a machine of the cluster, with its own address, such as --ray-address auto"
        raise ClusterError(f"{address} is an address for Ray clients: {remedy}")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    started: Future[None] = Future()

    def start_and_stay() -> None:
        try:
            ray.init(address, include_dashboard=False, log_to_driver=False, logging_level="ERROR", namespace="pcs")
            atexit.register(_shut_down, ray)
            started.set_result(None)
            threading.Event().wait()  # the processes of a local cluster die with the thread that started them
        except Exception as error:
            started.set_exception(error)

    threading.Thread(target=start_and_stay, name="pcs-ray", daemon=True).start()
    if error := started.exception():
        why = " ".join(str(error).split())[:300] or type(error).__name__
        raise ClusterError(
            f"no connection to the Ray cluster at {address}: {why}; is it running, with the same versions of Ray "
            "and Python as here, and if it wants a token, are RAY_AUTH_MODE=token and RAY_AUTH_TOKEN set?"
        ) from error
