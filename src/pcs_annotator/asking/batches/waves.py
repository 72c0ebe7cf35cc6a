"""`--executor batch`: asks in waves of batches at half price, so that asking live finds most answers in the ledger.

A wave is a pass over all texts in which calls are collected instead of made. When the answers of its batches are in the
ledger, the next pass gets further: from rewrites to the questions about them, and from the first questions about a text
to those that its label still needs. The rest is asked live as soon as it is small.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from pcs_annotator.asking.batches.batches import Batches, BatchSettings
from pcs_annotator.asking.engine.batch import Chunk, Collector
from pcs_annotator.asking.engine.call import Asker
from pcs_annotator.asking.engine.collect import in_blocks, run_job
from pcs_annotator.asking.engine.item_asker import PreparedJob
from pcs_annotator.asking.engine.job import Job, models_of
from pcs_annotator.asking.engine.progress import Tally
from pcs_annotator.base.errors import ConfigError, Interrupted, ModelError
from pcs_annotator.core.task import Item
from pcs_annotator.core.votes import Strategy
from pcs_annotator.models.batch_apis import FILE_BATCHES, HOURS, batch_api

SMALL_SHARE, SMALL_COUNT = 0.05, 50  # the rest is asked live if it is at most this share of all requests, or this many
BLOCK = 20_000
USUAL_WAVES, LATE_SHARE = 4, 0.2  # after so many waves, a larger share is asked live: another day would save little


async def ask_in_waves(
    job: Job, items: Iterable[Item], asker: Asker, strategy: Strategy | None, settings: BatchSettings
) -> tuple[Asker, int]:
    """Put answers into the ledger by batches, until what is left to ask is small; items are read once per wave.

    Batches that an earlier command left open, perhaps on another machine, are collected first. Return what asks the
    rest live, and how many requests were answered in batches.
    """
    check_batches(job)
    with TemporaryDirectory(prefix="pcs-batch-") as folder:
        collector = Collector(Path(folder), asker)
        batches = Batches(models_of(job), asker, collector, settings)
        try:
            await batches.resume()
            wave = requests = in_vain = 0
            while chunks := await _next_wave(replace(job, on_variant=None), items, asker, strategy, collector):
                count = sum(len(chunk.keys) for chunk in chunks)
                if is_small(count, wave, requests):
                    collector.release(key for chunk in chunks for key in chunk.keys)
                    break
                wave, requests, before = wave + 1, requests + count, batches.answered
                settings.say(_announcement(wave, chunks))
                await batches.finish(chunks)
                in_vain = 0 if batches.answered > before else in_vain + 1
                _stop_if_useless(batches, in_vain)
        finally:
            collector.hand_over()
            await batches.close()
    return replace(asker, defer=collector.recall), batches.answered


def is_small(rest: int, waves: int, requests: int) -> bool:
    """Return whether what is left after some waves is so little that it is asked live; the first wave never is."""
    share = SMALL_SHARE if waves < USUAL_WAVES else LATE_SHARE
    return waves > 0 and rest <= max(SMALL_COUNT, share * requests)


def check_batches(job: Job) -> None:
    """Raise if no model of a job has a batch API."""
    if all(batch_api(model) is None for model in models_of(job)):
        names = ", ".join(sorted([*FILE_BATCHES, "anthropic"]))
        raise ConfigError(f"no model here has a batch API: use models of {names}, or leave out --executor batch")


async def _next_wave(
    job: Job, items: Iterable[Item], asker: Asker, strategy: Strategy | None, collector: Collector
) -> list[Chunk]:
    """Go over all texts, and return the calls that their votes need next; models without batches are asked."""
    prepared = PreparedJob.of(job, asker.ledger)
    deferring = replace(asker, tally=Tally(), defer=collector.take)
    for block in in_blocks(items, BLOCK):  # votes are not needed here, so those of a block are forgotten
        await run_job(prepared, block, deferring, strategy)
        deferring.raise_if_stopped()  # a batch must not be paid for if a model beside it can never be asked
    return collector.hand_over()


def _announcement(wave: int, chunks: Sequence[Chunk]) -> str:
    count = sum(len(chunk.keys) for chunk in chunks)
    prices = [chunk.usd for chunk in chunks]
    price = "" if None in prices else f", about ${sum(usd or 0.0 for usd in prices):.2f}"
    names = ", ".join(dict.fromkeys(chunk.kind.model for chunk in chunks))
    batches = "1 batch" if len(chunks) == 1 else f"{len(chunks):,} batches"
    return (
        f"wave {wave}: {count:,} requests in {batches} to {names}{price}; this may take up to {HOURS} hours. You may "
        "stop: the same command collects the answers, also on another machine that has the run folder"
    )


def _stop_if_useless(batches: Batches, in_vain: int) -> None:
    """Raise if somebody cancelled a batch, or if two waves in a row brought nothing."""
    if batches.cancelled:
        named = ", ".join(f"{record.id} of {record.model}" for record in batches.cancelled)
        kept = sum(record.answered for record in batches.cancelled)
        count = sum(record.requests for record in batches.cancelled)
        raise Interrupted(
            f"cancelled at the provider: batch {named}; {kept:,} of {count:,} requests were answered, and are kept; "
            "the same command submits the others again"
        )
    if in_vain > 1:
        why = batches.troubles.most_common(1)[0][0] if batches.troubles else "no reason was given"
        raise ModelError(f"batches bring no answers ({why}); the same command tries again")
