"""Files of texts that a service labels in the background; their state survives a restart."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import shutil
import time
from collections import deque
from collections.abc import AsyncIterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pcs_annotator.core.concurrency import gather_all
from pcs_annotator.core.outcome import Outcome
from pcs_annotator.errors import ConfigError, PcsError, TableError
from pcs_annotator.files import runs, tables
from pcs_annotator.files.config import Config
from pcs_annotator.files.result_columns import with_outcomes
from pcs_annotator.pipeline import resolve_config
from pcs_annotator.pipeline.label import new_texts
from pcs_annotator.pipeline.run_request import RunRequest
from pcs_annotator.pipeline.serve import Service

ENDINGS = {"csv": ".csv", "jsonl": ".jsonl", "parquet": ".parquet"}
MOST_TROUBLE = 20
"""Texts in a row that got no label through no fault of theirs, after which a job is given up."""
State = Literal["queued", "running", "finished", "failed"]


@dataclass(slots=True, kw_only=True)
class FileJob:
    """A file of texts to label, and how far it is.

    Attributes:
        id: Its name.
        format: The kind of file: a key of `ENDINGS`.
        body_hash: A hash of the file.
        key: The client's own name for the request; empty if it gave none.
        text_column: The column of texts; empty to look for the usual names.
        id_column: The column of ids, likewise.
        created: When it came, in seconds since 1970.
        state: Whether it waits, is in progress, or has ended.
        rows: Number of texts; None while unknown.
        done: How many of them are labelled.
        unlabelled: How many have no label, because no model gave a usable answer.
        calls: Calls paid for, since the last start.
        usd: What they cost in dollars; None if a price is unknown.
        restarts: How often it was resumed after a restart of the service.
        message: Why it failed.
    """

    id: str
    format: str
    body_hash: str
    key: str = ""
    text_column: str = ""
    id_column: str = ""
    created: float = field(default_factory=time.time)
    state: State = "queued"
    rows: int | None = None
    done: int = 0
    unlabelled: int = 0
    calls: int = 0
    usd: float | None = 0.0
    restarts: int = 0
    message: str = ""

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen."""
        return self.state in ("finished", "failed")


class SameKeyError(ConfigError):
    """A key came again with another file."""


class FileJobs:
    """The jobs of a service, in the folder `jobs` of its run; one is in progress at a time."""

    def __init__(self, service: Service, most_waiting: int = 16) -> None:
        self._service, self._most_waiting = service, most_waiting
        self._folder = service.folder.path / "jobs"
        self._jobs: dict[str, FileJob] = {}
        self._waiting: deque[FileJob] = deque()
        self._came = asyncio.Event()
        self._stopping = False
        self._running: asyncio.Task[None] | None = None

    def __getitem__(self, name: str) -> FileJob:
        return self._jobs[name]

    def __contains__(self, name: str) -> bool:
        return name in self._jobs

    def all(self) -> list[FileJob]:
        """Return all jobs, the newest first."""
        return sorted(self._jobs.values(), key=lambda job: -job.created)

    @property
    def full(self) -> bool:
        """Whether no further job is accepted for now."""
        return len(self._waiting) >= self._most_waiting

    def start(self) -> None:
        """Read the jobs of earlier services, and begin with those that have not ended."""
        for path in sorted(self._folder.glob("*/job.json")):
            job = _read(path)
            self._jobs[job.id] = job
            if not job.ended:
                job.state, job.restarts = "queued", job.restarts + 1
                self._waiting.append(job)
        self._came.set()
        self._running = asyncio.create_task(self._work())

    async def stop(self) -> None:
        """Finish the texts in progress; a service that starts later goes on with the rest."""
        self._stopping = True
        self._came.set()
        if self._running is not None:
            await self._running

    async def add(self, body: AsyncIterable[bytes], job: FileJob) -> FileJob:
        """Store a file and queue it; the same file with the same key is the job that there is already.

        Raises:
            SameKeyError: The key belongs to another file.
        """
        place = self._folder / job.id
        place.mkdir(parents=True)
        try:
            found = hashlib.sha256()
            with (place / f"input{ENDINGS[job.format]}").open("wb") as file:
                async for part in body:
                    found.update(part)
                    file.write(part)
            known = next((one for one in self._jobs.values() if job.key and one.key == job.key), None)
            if known is not None:
                if known.body_hash != found.hexdigest():
                    raise SameKeyError("this Idempotency-Key was used with another file: use a new key")
                shutil.rmtree(place)
                return known
            job.body_hash = found.hexdigest()
            self._write(job)
        except BaseException:
            shutil.rmtree(place, ignore_errors=True)
            raise
        self._jobs[job.id] = job
        self._waiting.append(job)
        self._came.set()
        return job

    def delete(self, job: FileJob) -> None:
        """Forget a job that is not in progress, and delete its files."""
        if job.state == "running":
            raise TableError(f"job {job.id} is in progress: wait until it has ended")
        if job in self._waiting:
            self._waiting.remove(job)
        del self._jobs[job.id]
        shutil.rmtree(self._folder / job.id, ignore_errors=True)

    def result(self, job: FileJob) -> Path:
        """Return the file with the labels."""
        return self._folder / job.id / "result.csv"

    async def _work(self) -> None:
        while not self._stopping:
            if not self._waiting:
                self._came.clear()
                await self._came.wait()
                continue
            job = self._waiting.popleft()
            job.state, job.done, job.unlabelled = "running", 0, 0
            try:
                outcomes = await self._label(job)
                if outcomes is not None:
                    job.state = "finished"
            except (PcsError, OSError) as error:
                job.state, job.message = "failed", str(error)
            except Exception as error:
                job.state, job.message = "failed", f"a bug in pcs: {type(error).__name__}"
            if job.ended:
                self._write(job)

    async def _label(self, job: FileJob) -> list[Outcome] | None:
        """Label the texts of a job and write the result; None if the service stops before that."""
        dataset = await asyncio.to_thread(self._read_texts, job)
        job.rows = len(dataset.items)
        outcomes: list[Outcome | None] = [None] * job.rows
        open_rows = deque(range(job.rows))
        trouble = 0

        async def work() -> None:
            nonlocal trouble
            while open_rows and not self._stopping:
                row = open_rows.popleft()
                found = await self._service.classify(dataset.items[row].text)
                job.calls += found.spent.calls
                job.usd = None if job.usd is None or found.spent.usd is None else job.usd + found.spent.usd
                if found.outcome is not None and (found.error is None or found.error.of_text):
                    outcomes[row], trouble = replace(found.outcome, id=dataset.items[row].id), 0
                    job.done += 1
                    job.unlabelled += found.error is not None
                    continue
                open_rows.append(row)  # it was not the text's fault, so it is tried again
                trouble += 1
                if trouble >= MOST_TROUBLE and found.error is not None:
                    raise TableError(
                        f"{found.error.message}; stopped after {job.done:,} of {job.rows:,} texts. Send the file again "
                        "to go on: answers so far are kept"
                    )

        await gather_all(work() for _ in range(min(self._service.at_once, job.rows)))
        if open_rows:
            return None
        complete = [outcome for outcome in outcomes if outcome is not None]
        labels = self._service.task.labels
        await asyncio.to_thread(
            lambda: tables.write_table(self.result(job), with_outcomes(dataset.table, complete, labels))
        )
        return complete

    def _read_texts(self, job: FileJob) -> tables.Dataset:
        flags = resolve_config.Flags(text_column=job.text_column or None, id_column=job.id_column or None)
        config: Config = resolve_config.flags_only(flags)
        path = self._folder / job.id / f"input{ENDINGS[job.format]}"
        return new_texts(RunRequest(data=path, folder=self._service.folder.path, config=config))

    def _write(self, job: FileJob) -> None:
        runs.write_json(self._folder / job.id / "job.json", asdict(job))


def new_job(**given: Any) -> FileJob:
    """Return a job with a name of its own."""
    return FileJob(id=secrets.token_hex(8), body_hash="", **given)


def _read(path: Path) -> FileJob:
    """Return a job that an earlier service stored; one that cannot be read has failed."""
    try:
        values = runs.read_json(path)
        del values["schema"]
        known = FileJob(**values)
        if known.format not in ENDINGS:
            raise ValueError(known.format)
        return replace(known, id=path.parent.name)
    except (TableError, TypeError, KeyError, ValueError):
        message = f"{path} cannot be read: send the file again"
        return FileJob(id=path.parent.name, format="csv", body_hash="", state="failed", message=message)
