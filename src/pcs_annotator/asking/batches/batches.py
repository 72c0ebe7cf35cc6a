"""Batches at their providers: submitted as quotas allow, looked at until they end, and their answers stored."""

import asyncio
import time
from base64 import b64decode, b64encode
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pcs_annotator.asking.engine.batch import BatchKind, Chunk, Collector, batch_prices
from pcs_annotator.asking.engine.budget import Cost
from pcs_annotator.asking.engine.call import Asker
from pcs_annotator.asking.ledger.lock import Say
from pcs_annotator.asking.ledger.sqlite import entry_of
from pcs_annotator.base import errors
from pcs_annotator.core.chat import ChatModel, Reply
from pcs_annotator.models.batch_apis import BatchApi, BatchState, LostBatch, batch_api
from pcs_annotator.models.http import HttpReply
from pcs_annotator.models.resolve import resolve_model
from pcs_annotator.tables.files import expecting, read_json, write_json

FIRST_LOOK, LONGEST_LOOK, LOOK_LATER = 0.05, 60.0, 1.5
"""Seconds between two looks at open batches: the first, the most, and the factor by which they grow."""
FIRST_RETRY, OPEN_ATTEMPTS = 0.25, 60
"""Half the seconds before the second attempt after a failure, doubled each time; attempts while a batch is open."""
SAY_SECONDS = 300.0
STORED_TOGETHER = 500
SMALLEST_SPLIT = 200  # requests in a batch that is not split further, even if the quota has no room for it now
KEY_BYTES = 16
REMEDY = "remove it, if you can do without the answers of batches that are still open"


@dataclass(slots=True, kw_only=True)
class BatchRecord:
    """One batch."""

    model: str  # the model that is asked, as `provider:model`
    purpose: str  # `label` or `rewrite`
    logprobs: int  # how many alternatives of each token were requested
    choices: bool  # whether the answers are among given ones
    requests: int  # number of requests
    submitted_at: float  # when it was submitted, in seconds since 1970
    uploaded: str = ""  # ID of the uploaded file; empty where there is none
    id: str = ""  # ID of the batch; empty if it is not known whether it was started
    keys: set[bytes] = field(default_factory=set)  # requests that are not answered yet, as long as the batch is open
    end: str = ""  # how it ended; empty while it is open
    answered: int = 0  # requests that were answered, and so paid for
    expected_usd: float | None = None  # what all requests may cost in US dollars; None if a price is unknown
    usd: float | None = 0.0  # what the answers cost; None if a price is unknown
    trouble: str = ""  # what went wrong


def read_batches(path: Path) -> list[BatchRecord]:
    """Return the batches of a file; none if there is no file."""
    if not path.exists():
        return []
    with expecting(path, REMEDY):
        return [_record(values) for values in read_json(path, REMEDY)["batches"]]


def write_batches(path: Path, records: Sequence[BatchRecord]) -> None:
    """Write all batches; of those that have ended, the requests are left out."""
    packed = ("" if record.end else b64encode(b"".join(sorted(record.keys))).decode() for record in records)
    write_json(
        path, {"batches": [{**asdict(record), "keys": keys} for record, keys in zip(records, packed, strict=True)]}
    )


def _record(values: Mapping[str, Any]) -> BatchRecord:
    raw = b64decode(values["keys"])
    keys = {raw[start : start + KEY_BYTES] for start in range(0, len(raw), KEY_BYTES)}
    kept = {name: values[name] for name in BatchRecord.__slots__ if name in values}
    return BatchRecord(**{**kept, "keys": keys})


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSettings:
    """How to ask in batches."""

    records: Path  # the file that keeps track of batches
    say: Say = errors.warn_user  # called with what was submitted, and what is waited for
    environment: Mapping[str, str] | None = field(default=None, repr=False)  # keys and URLs; None for the process's own


class Batches:
    """The batches of a run folder."""

    def __init__(
        self, models: Sequence[ChatModel], asker: Asker, collector: Collector, settings: BatchSettings
    ) -> None:
        self.answered = 0  # requests that were answered since this command began
        self.cancelled: list[BatchRecord] = []  # batches that somebody cancelled
        self.troubles: Counter[str] = Counter()  # why requests have no answer → how many
        self._asker, self._collector, self._settings = asker, collector, settings
        self._price_of = batch_prices(asker.price_of)
        self._records = read_batches(settings.records)
        self._models = {model.name: model for model in models}
        self._opened: list[ChatModel] = []
        self._chunks: dict[str, Chunk] = {}
        self._begun: dict[Path, BatchRecord] = {}
        self._finished: dict[str, int] = {}
        self._full, self._failures, self._said = False, 0, time.monotonic()

    async def close(self) -> None:
        """Close the models of batches that are no longer asked."""
        for model in self._opened:
            await model.close()

    async def resume(self) -> None:
        """Wait for batches that an earlier command submitted, and store their answers."""
        for record in self._records:
            if not record.end and not record.id:
                record.id = await self._api(record).find(self._lost(record)) or ""
                record.end = "" if record.id else "gone"
        if self._open:
            count = sum(record.requests for record in self._open)
            self._settings.say(f"{count:,} requests were submitted earlier; waiting for their answers")
            self._save()
            await self.finish(())

    async def finish(self, chunks: Iterable[Chunk]) -> None:
        """Submit chunks, and wait until all open batches have ended and their answers are stored."""
        waiting, pause = deque(chunks), FIRST_LOOK
        while True:
            some_ended = await self._round(waiting)
            if not (waiting or self._open):
                return
            pause = FIRST_LOOK if some_ended else min(pause * LOOK_LATER, LONGEST_LOOK)
            self._say_progress(waiting)
            retry = FIRST_RETRY * 2**self._failures if self._failures else 0.0
            await asyncio.sleep(min(max(pause, retry), LONGEST_LOOK))

    async def _round(self, waiting: deque[Chunk]) -> bool:
        """Submit what the quota allows and look at every open batch; return whether one has ended."""
        try:
            if not self._full or not self._open:
                await self._submit_all(waiting)
            ended = [record for record in self._open if await self._has_ended(record, waiting)]
        except (errors.ServerTrouble, errors.RateLimited) as error:
            self._failures += 1
            # batches that are under way are paid for, and a day is long: the network may fail for a while
            most = OPEN_ATTEMPTS if self._open else self._asker.patience.attempts
            if self._failures >= most:
                raise
            if self._failures == 1:
                errors.warn_user(f"{error}; trying again")
            return False
        self._failures = 0
        self._full = self._full and not ended
        return bool(ended)

    async def _submit_all(self, waiting: deque[Chunk]) -> None:
        if self._full and waiting and len(waiting[0].keys) > SMALLEST_SPLIT:
            waiting.extendleft(reversed(waiting.popleft().halves()))
        self._full = False
        while waiting and not self._full:
            self._full = not await self._submit(waiting[0])
            if not self._full:
                waiting.popleft()

    async def _submit(self, chunk: Chunk) -> bool:
        """Start a batch; return whether the quota allows it."""
        kind, api = chunk.kind, chunk.api
        record = self._begun.get(chunk.path)
        try:
            if record is None:
                uploaded, when = await api.upload(chunk.path), time.time()
                record = BatchRecord(**kind._asdict(), requests=len(chunk.keys), submitted_at=when, uploaded=uploaded)
                record.keys, record.expected_usd = set(chunk.keys), chunk.usd
                self._begun[chunk.path] = record
                self._records.append(record)
                self._save()  # before the batch is started, so that it is not lost if this process is killed then
            else:
                record.id = await api.find(self._lost(record)) or ""  # the answer to the first attempt may be lost
            record.id = record.id or await api.create(chunk.path, record.uploaded)
        except errors.RateLimited as error:
            self._drop(record)
            self._begun.pop(chunk.path, None)
            self.troubles[str(error)] += 1
            return False
        del self._begun[chunk.path]
        self._chunks[record.id] = chunk
        self._save()
        return True

    def _drop(self, record: BatchRecord | None) -> None:
        if record is not None:
            self._records = [other for other in self._records if other is not record]
            self._save()

    async def _has_ended(self, record: BatchRecord, waiting: deque[Chunk]) -> bool:
        """Look at a batch, and store its answers if it has ended."""
        api = self._api(record)
        state = await api.look(record.id)
        self._finished[record.id] = state.finished
        if state.end is None:
            return False
        chunk = self._chunks.pop(record.id, None)
        if state.over_quota:
            self._full = True
            self._drop(record)
            if chunk is not None:
                waiting.appendleft(chunk)
            return False
        try:
            refused = await self._store(record, api, state)
        except (errors.ServerTrouble, errors.RateLimited):
            if chunk is not None:
                self._chunks[record.id] = chunk
            raise
        self._collector.release(record.keys)
        record.end, record.trouble = state.end, state.trouble
        self._save()
        self._explain(record)
        if refused is not None:
            raise refused
        return True

    async def _store(self, record: BatchRecord, api: BatchApi, state: BatchState) -> errors.AccessDenied | None:
        """Store the answers of a batch, in whatever order they come; return an error that all requests would get."""
        heard: set[bytes] = set()
        strange = repeated = 0
        denied: errors.AccessDenied | None = None
        group: dict[bytes, Reply] = {}
        async for line in api.results(state):
            key = _key_of(line.custom_id)
            if key not in record.keys:
                strange += 1
            elif key in heard:
                repeated += 1
            else:
                heard.add(key)
                try:
                    group |= self._read(key, record, api, line.answer)
                except errors.AccessDenied as error:
                    denied = denied or error
            if len(group) == STORED_TOGETHER:
                await self._keep(group, record)
                group = {}
        await self._keep(group, record)
        if strange or repeated:
            errors.warn_user(
                f"batch {record.id} of {record.model}: {strange:,} results have IDs that were not asked for and "
                f"{repeated:,} come twice; they are left out"
            )
        return denied

    def _read(self, key: bytes, record: BatchRecord, api: BatchApi, answer: HttpReply | None) -> dict[bytes, Reply]:
        """Return the reply to one request, if it has one."""
        if answer is None:
            return {}
        kind = BatchKind(record.model, record.purpose, record.logprobs, record.choices)
        try:
            return {key: api.parse_answer(kind.request(), answer)}
        except errors.Unanswerable as error:
            self._collector.refused[key] = error
        except (errors.ServerTrouble, errors.RateLimited) as error:
            self.troubles[str(error)] += 1
        return {}

    async def _keep(self, replies: dict[bytes, Reply], record: BatchRecord) -> None:
        """Store replies that the ledger does not have yet, at the price of a batch."""
        stored = await self._asker.ledger.find(list(replies)) if replies else {}
        new = {key: reply for key, reply in replies.items() if key not in stored}
        entries = []
        for key, reply in new.items():
            paid = self._paid(record, reply)
            entries.append(entry_of(key, record.model, record.purpose, reply, paid.usd))
            self._asker.tracker.pay(paid)
            record.usd = None if record.usd is None or paid.usd is None else record.usd + paid.usd
            if record.logprobs:
                self._asker.learn(self._model(record), reply)
        await asyncio.gather(*map(self._asker.ledger.put, entries))
        record.answered += len(replies)
        self.answered += len(new)

    def _paid(self, record: BatchRecord, reply: Reply) -> Cost:
        sent, got = reply.usage.input_tokens, reply.usage.output_tokens
        if sent is None or got is None:  # the server gave no token counts
            usd = None if record.expected_usd is None else record.expected_usd / record.requests
            return Cost(usd, 0)
        return Cost(self._price_of(record.model, sent, got), sent + got, got)

    def _explain(self, record: BatchRecord) -> None:
        """Say what became of a batch that did not answer everything; raise if it failed as a whole."""
        what = f"batch {record.id} of {record.model}"
        answered = f"{record.answered:,} of {record.requests:,} requests were answered, and are kept"
        if record.end == "failed":
            raise errors.ModelError(f"{what} failed: {record.trouble}; correct this and run the same command again")
        if record.end == "cancelled":
            self.cancelled.append(record)
        if record.end == "expired":
            self._settings.say(f"{what} expired after a day: {answered}; the others are asked again")
        if record.end == "gone":
            errors.warn_user(f"{what} is lost ({record.trouble}): its requests are asked again")

    def _say_progress(self, waiting: deque[Chunk]) -> None:
        if time.monotonic() - self._said < SAY_SECONDS:
            return
        self._said = time.monotonic()
        done = sum(self._finished.get(record.id, 0) for record in self._open)
        total = sum(record.requests for record in self._open) + sum(len(chunk.keys) for chunk in waiting)
        full = "; the provider's quota is full, so more is submitted when a batch has ended" if self._full else ""
        self._settings.say(f"batches: {done:,} of {total:,} requests are done{full}")

    @property
    def _open(self) -> list[BatchRecord]:
        return [record for record in self._records if record.id and not record.end]

    def _lost(self, record: BatchRecord) -> LostBatch:
        others = {other.id for other in self._records if other.id}
        return LostBatch(record.uploaded, record.requests, record.submitted_at, others)

    def _save(self) -> None:
        write_batches(self._settings.records, self._records)

    def _model(self, record: BatchRecord) -> ChatModel:
        if record.model not in self._models:  # it is no longer asked, but its answers are paid for
            try:
                model = resolve_model(record.model, self._settings.environment)
            except errors.ConfigError as error:
                remedy = f"or take the batch out of {self._settings.records}"
                raise errors.ConfigError(
                    f"batch {record.id} of {record.model} is still open: {error}, {remedy}"
                ) from None
            self._opened.append(model)
            self._models[record.model] = model
        return self._models[record.model]

    def _api(self, record: BatchRecord) -> BatchApi:
        api = batch_api(self._model(record))
        if api is None:
            raise errors.ConfigError(
                f"{self._settings.records}: {record.model} has no batch API; take this batch out of the file"
            )
        return api


def _key_of(custom_id: str) -> bytes:
    try:
        return bytes.fromhex(custom_id)
    except ValueError:
        return b""
