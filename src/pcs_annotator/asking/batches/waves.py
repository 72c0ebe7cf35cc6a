"""`--executor batch`: asks in waves of batches at half price, so that asking live finds most answers in the ledger.

A wave is a pass over all texts in which calls are collected instead of made. When the answers of its batches are in the
ledger, the next pass gets further: from rewrites to the questions about them, and from the first questions about a text
to those that its label still needs. The rest is asked live as soon as it is small.
"""

import asyncio
import time
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from pcs_annotator.asking.batches.batch import Batch, Collector, read_batches, write_batches
from pcs_annotator.asking.engine.budget import Cost
from pcs_annotator.asking.engine.call import Asker
from pcs_annotator.asking.engine.collect import in_blocks, run_job
from pcs_annotator.asking.engine.item_asker import PreparedJob
from pcs_annotator.asking.engine.job import Job, models_of
from pcs_annotator.asking.engine.progress import Tally
from pcs_annotator.asking.ledger.lock import Say
from pcs_annotator.asking.ledger.sqlite import entry_of
from pcs_annotator.base import errors
from pcs_annotator.core.chat import ChatModel, Reply
from pcs_annotator.core.task import Item
from pcs_annotator.core.votes import Strategy
from pcs_annotator.models.batch_apis import FILE_BATCHES, HOURS, PRICE_SHARE, BatchApi, BatchState, LostBatch, batch_api
from pcs_annotator.models.http import HttpReply
from pcs_annotator.models.resolve import resolve_model

FIRST_LOOK, LONGEST_LOOK, LOOK_LATER = 0.05, 60.0, 1.5
"""Seconds between two looks at open batches: the first, the most, and the factor by which they grow."""
FIRST_RETRY, OPEN_ATTEMPTS = 0.25, 60
"""Half the seconds before the second attempt after a failure, doubled each time; attempts while a batch is open."""
SAY_SECONDS = 300.0
STORED_TOGETHER = 500
SMALLEST_SPLIT = 200  # requests in a batch that is not split further, even if the quota has no room for it now
SMALL_SHARE, SMALL_COUNT = 0.05, 50  # the rest is asked live if it is at most this share of all requests, or this many
BLOCK = 20_000
USUAL_WAVES, LATE_SHARE = 4, 0.2  # after so many waves, a larger share is asked live: another day would save little


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSettings:
    """How to ask in batches."""

    records: Path  # the file that keeps track of batches
    say: Say = errors.warn_user  # called with what was submitted, and what is waited for
    environment: Mapping[str, str] | None = field(default=None, repr=False)  # keys and URLs; None for the process's own


class Batches:
    """The batches of a run folder: submitted as quotas allow, looked at until they end, and their answers stored."""

    def __init__(
        self, models: Sequence[ChatModel], asker: Asker, collector: Collector, settings: BatchSettings
    ) -> None:
        self.answered = 0  # requests that were answered since this command began
        self.troubles: Counter[str] = Counter()  # why requests have no answer → how many
        self._asker, self._collector, self._settings = asker, collector, settings
        self._batches = read_batches(settings.records)
        self._models = {model.name: model for model in models}
        self._opened: list[ChatModel] = []
        self._full, self._failures, self._said = False, 0, time.monotonic()

    async def close(self) -> None:
        """Close the models of batches that are no longer asked."""
        for model in self._opened:
            await model.close()

    async def resume(self) -> None:
        """Wait for batches that an earlier command submitted, and store their answers."""
        for batch in self._batches:
            if not batch.end and not batch.id:
                batch.id = await self._find(batch)
                batch.end = "" if batch.id else "gone"
        if self._open:
            count = sum(batch.requests for batch in self._open)
            self._settings.say(f"{count:,} requests were submitted earlier; waiting for their answers")
            self._save()
            await self.finish(())

    async def finish(self, batches: Iterable[Batch]) -> None:
        """Submit batches, and wait until all open ones have ended and their answers are stored."""
        waiting, pause = deque(batches), FIRST_LOOK
        while True:
            some_ended = await self._round(waiting)
            if not (waiting or self._open):
                return
            pause = FIRST_LOOK if some_ended else min(pause * LOOK_LATER, LONGEST_LOOK)
            self._say_progress(waiting)
            retry = FIRST_RETRY * 2**self._failures if self._failures else 0.0
            await asyncio.sleep(min(max(pause, retry), LONGEST_LOOK))

    async def _round(self, waiting: deque[Batch]) -> bool:
        """Submit what the quota allows and look at every open batch; return whether one has ended."""
        try:
            if not self._full or not self._open:
                await self._submit_all(waiting)
            ended = [batch for batch in self._open if await self._has_ended(batch, waiting)]
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

    async def _submit_all(self, waiting: deque[Batch]) -> None:
        if self._full and waiting and waiting[0].requests > SMALLEST_SPLIT:
            waiting.extendleft(reversed(waiting.popleft().halves()))
        self._full = False
        while waiting and not self._full:
            self._full = not await self._submit(waiting[0])
            if not self._full:
                waiting.popleft()

    async def _submit(self, batch: Batch) -> bool:
        """Start a batch; return whether the quota allows it."""
        api = self._api(batch)
        assert batch.path is not None
        try:
            if batch.submitted_at:
                batch.id = await self._find(batch)  # the answer to the first attempt may be lost
            else:
                batch.uploaded, batch.submitted_at = await api.upload(batch.path), time.time()
                self._batches.append(batch)
                self._save()  # before the batch is started, so that it is not lost if this process is killed then
            batch.id = batch.id or await api.create(batch.path, batch.uploaded)
        except errors.RateLimited as error:
            self._take_back(batch)
            self.troubles[str(error)] += 1
            return False
        self._save()
        return True

    def _take_back(self, batch: Batch) -> None:
        """Forget that a batch was submitted, because there was no room for it."""
        batch.submitted_at, batch.uploaded, batch.id = 0.0, "", ""
        self._batches = [other for other in self._batches if other is not batch]
        self._save()

    async def _has_ended(self, batch: Batch, waiting: deque[Batch]) -> bool:
        """Look at a batch, and store its answers if it has ended."""
        api = self._api(batch)
        state = await api.look(batch.id)
        batch.finished = state.finished
        if state.end is None:
            return False
        if state.over_quota:
            self._full = True
            self._take_back(batch)
            if batch.path is not None:
                waiting.appendleft(batch)
            return False
        denied = await self._store(batch, api, state)
        self._collector.release(batch.keys)
        batch.end, batch.trouble = state.end, state.trouble
        self._save()
        self._explain(batch)
        if denied is not None:
            raise denied
        return True

    async def _store(self, batch: Batch, api: BatchApi, state: BatchState) -> errors.AccessDenied | None:
        """Store the answers of a batch, in whatever order they come; return an error that all requests would get."""
        asked, heard = set(batch.keys), set[bytes]()
        strange = repeated = 0
        denied: errors.AccessDenied | None = None
        group: dict[bytes, Reply] = {}
        async for custom_id, answer in api.results(state):
            key = _key_of(custom_id)
            strange += key not in asked
            repeated += key in heard
            if key not in asked or key in heard:
                continue
            heard.add(key)
            try:
                if answer is not None and (reply := self._read(key, batch, api, answer)) is not None:
                    group[key] = reply
            except errors.AccessDenied as error:
                denied = denied or error
            if len(group) == STORED_TOGETHER:
                await self._keep(group, batch)
                group = {}
        await self._keep(group, batch)
        if strange or repeated:
            errors.warn_user(
                f"batch {batch.id} of {batch.model}: {strange:,} results have IDs that were not asked for and "
                f"{repeated:,} come twice; they are left out"
            )
        return denied

    def _read(self, key: bytes, batch: Batch, api: BatchApi, answer: HttpReply) -> Reply | None:
        """Return the reply in an answer; None if it has none."""
        try:
            return api.parse_answer(batch.request(), answer)
        except errors.Unanswerable as error:
            self._collector.refused[key] = error
        except (errors.ServerTrouble, errors.RateLimited) as error:
            self.troubles[str(error)] += 1
        return None

    async def _keep(self, replies: dict[bytes, Reply], batch: Batch) -> None:
        """Store replies that the ledger does not have yet, at the price of a batch."""
        stored = await self._asker.ledger.find(list(replies)) if replies else {}
        new = {key: reply for key, reply in replies.items() if key not in stored}
        entries = []
        for key, reply in new.items():
            paid = self._paid(batch, reply)
            entries.append(entry_of(key, batch.model, batch.purpose, reply, paid.usd))
            self._asker.tracker.pay(paid)
            batch.usd = None if batch.usd is None or paid.usd is None else batch.usd + paid.usd
            if batch.logprobs:
                self._asker.learn(self._model(batch), reply)
        await asyncio.gather(*map(self._asker.ledger.put, entries))
        batch.answered += len(replies)
        self.answered += len(new)

    def _paid(self, batch: Batch, reply: Reply) -> Cost:
        sent, got = reply.usage.input_tokens, reply.usage.output_tokens
        if sent is None or got is None:  # the server gave no token counts
            return Cost(None if batch.expected_usd is None else batch.expected_usd / batch.requests, 0)
        return Cost(self._asker.price_of(batch.model, sent, got), sent + got, got)

    def _explain(self, batch: Batch) -> None:
        """Say what became of a batch that did not answer everything; raise if it failed as a whole."""
        what = f"batch {batch.id} of {batch.model}"
        answered = f"{batch.answered:,} of {batch.requests:,} requests were answered, and are kept"
        if batch.end == "failed":
            raise errors.ModelError(f"{what} failed: {batch.trouble}; correct this and run the same command again")
        if batch.end == "cancelled":
            again = "the same command submits the others again"
            raise errors.Interrupted(f"cancelled at the provider: {what}; {answered}; {again}")
        if batch.end == "expired":
            self._settings.say(f"{what} expired after a day: {answered}; the others are asked again")
        if batch.end == "gone":
            errors.warn_user(f"{what} is lost ({batch.trouble}): its requests are asked again")

    def _say_progress(self, waiting: deque[Batch]) -> None:
        if time.monotonic() - self._said < SAY_SECONDS:
            return
        self._said = time.monotonic()
        done = sum(batch.finished for batch in self._open)
        total = sum(batch.requests for batch in [*self._open, *waiting])
        full = "; the provider's quota is full, so more is submitted when a batch has ended" if self._full else ""
        self._settings.say(f"batches: {done:,} of {total:,} requests are done{full}")

    @property
    def _open(self) -> list[Batch]:
        return [batch for batch in self._batches if batch.id and not batch.end]

    async def _find(self, batch: Batch) -> str:
        """Return the ID of a batch that may have been started; empty if it was not."""
        others = {other.id for other in self._batches if other.id}
        lost = LostBatch(batch.uploaded, batch.requests, batch.submitted_at, others)
        return await self._api(batch).find(lost) or ""

    def _save(self) -> None:
        write_batches(self._settings.records, self._batches)

    def _model(self, batch: Batch) -> ChatModel:
        if batch.model not in self._models:  # it is no longer asked, but its answers are paid for
            try:
                model = resolve_model(batch.model, self._settings.environment)
            except errors.ConfigError as error:
                remedy = f"or take the batch out of {self._settings.records}"
                raise errors.ConfigError(
                    f"batch {batch.id} of {batch.model} is still open: {error}, {remedy}"
                ) from None
            self._opened.append(model)
            self._models[batch.model] = model
        return self._models[batch.model]

    def _api(self, batch: Batch) -> BatchApi:
        api = batch_api(self._model(batch))
        if api is None:
            raise errors.ConfigError(
                f"{self._settings.records}: {batch.model} has no batch API; take this batch out of the file"
            )
        return api


def _key_of(custom_id: str) -> bytes:
    try:
        return bytes.fromhex(custom_id)
    except ValueError:
        return b""


async def ask_in_waves(
    job: Job, items: Iterable[Item], asker: Asker, strategy: Strategy | None, settings: BatchSettings
) -> tuple[Asker, int]:
    """Put answers into the ledger by batches, until what is left to ask is small; items are read once per wave.

    Batches that an earlier command left open, perhaps on another machine, are collected first. Return what asks the
    rest live, and how many requests were answered in batches.
    """
    check_batches(job)

    def batch_price(model: str, tokens_in: int, tokens_out: int) -> float | None:
        usd = asker.price_of(model, tokens_in, tokens_out)
        return None if usd is None else usd * PRICE_SHARE

    in_batches = replace(asker, price_of=batch_price)
    with TemporaryDirectory(prefix="pcs-batch-") as folder:
        collector = Collector(Path(folder), in_batches)
        batches = Batches(models_of(job), in_batches, collector, settings)
        try:
            await batches.resume()
            waves = requests = in_vain = 0
            while wave := await _next_wave(replace(job, on_variant=None), items, asker, strategy, collector):
                count = sum(batch.requests for batch in wave)
                share = SMALL_SHARE if waves < USUAL_WAVES else LATE_SHARE
                if waves and count <= max(SMALL_COUNT, share * requests):  # so little that it is asked live
                    collector.release(key for batch in wave for key in batch.keys)
                    break
                waves, requests, before = waves + 1, requests + count, batches.answered
                settings.say(_announcement(waves, wave))
                await batches.finish(wave)
                in_vain = 0 if batches.answered > before else in_vain + 1
                if in_vain > 1:
                    why = batches.troubles.most_common(1)[0][0] if batches.troubles else "no reason was given"
                    raise errors.ModelError(f"batches bring no answers ({why}); the same command tries again")
        finally:
            collector.hand_over()
            await batches.close()
    return replace(asker, defer=collector.recall), batches.answered


def check_batches(job: Job) -> None:
    """Raise if no model of a job has a batch API."""
    if all(batch_api(model) is None for model in models_of(job)):
        names = ", ".join(sorted([*FILE_BATCHES, "anthropic"]))
        raise errors.ConfigError(f"no model here has a batch API: use models of {names}, or leave out --executor batch")


async def _next_wave(
    job: Job, items: Iterable[Item], asker: Asker, strategy: Strategy | None, collector: Collector
) -> list[Batch]:
    """Go over all texts, and return the calls that their votes need next; models without batches are asked."""
    prepared = PreparedJob.of(job, asker.ledger)
    deferring = replace(asker, tally=Tally(), defer=collector.take)
    for block in in_blocks(items, BLOCK):  # votes are not needed here, so those of a block are forgotten
        await run_job(prepared, block, deferring, strategy)
        deferring.raise_if_stopped()  # a batch must not be paid for if a model beside it can never be asked
    return collector.hand_over()


def _announcement(number: int, wave: Sequence[Batch]) -> str:
    count = sum(batch.requests for batch in wave)
    prices = [batch.expected_usd for batch in wave]
    price = "" if None in prices else f", about ${sum(usd or 0.0 for usd in prices):.2f}"
    names = ", ".join(dict.fromkeys(batch.model for batch in wave))
    batches = "1 batch" if len(wave) == 1 else f"{len(wave):,} batches"
    return (
        f"wave {number}: {count:,} requests in {batches} to {names}{price}; this may take up to {HOURS} hours. You may "
        "stop: the same command collects the answers, also on another machine that has the run folder"
    )
