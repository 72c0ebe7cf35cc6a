"""All rows of a large table: asked about and judged in chunks, and written in order, with exact counts."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from pcs_annotator.asking.engine.progress import showing
from pcs_annotator.asking.ledger.open_ledger import open_ledger
from pcs_annotator.base.errors import TableError
from pcs_annotator.core.arrays import Mask
from pcs_annotator.core.ledger_address import LedgerAddress
from pcs_annotator.core.outcome import Counts
from pcs_annotator.core.result_names import DECISION, LABEL
from pcs_annotator.core.review import Reviewed
from pcs_annotator.core.task import Item, is_empty
from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.model import Model, Verdicts
from pcs_annotator.runs import ask
from pcs_annotator.runs.batch.waves import ask_in_waves
from pcs_annotator.runs.fitted import FittedRun
from pcs_annotator.runs.large.chunks import ChunkLabeller
from pcs_annotator.runs.large.result_columns import result_columns
from pcs_annotator.runs.ray_cluster import ask_on_cluster
from pcs_annotator.tables import vote_files
from pcs_annotator.tables.result_columns import people_columns, with_columns
from pcs_annotator.tables.table_stream import CHUNK_ROWS, TableStream
from pcs_annotator.tables.table_writer import PLAIN, TableStyle, writing_table
from pcs_annotator.tables.tables import Dataset, gold_in

if TYPE_CHECKING:
    import pyarrow as pa

CHUNKS_AT_ONCE = 2
"""While the last calls of one chunk are awaited, the next chunk is asked about."""

C = TypeVar("C")
R = TypeVar("R")


class LabelledRows(NamedTuple):
    """The rows of a chunk, ready to be written.

    Attributes:
        labels: The user's columns, then the results.
        votes: The votes on them, in the long form.
        counts: How many rows have which label.
        sampled: The rows of the sample among them, and the votes on these.
    """

    labels: pa.Table
    votes: pa.Table
    counts: Counts
    sampled: tuple[Dataset, Votes] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowMaker:
    """Turns votes on a chunk into rows; a plain value, so that it can be sent to the workers of a cluster.

    Attributes:
        model: What judges the votes.
        graded: Whether votes are written with columns for grades, whether or not a chunk has some.
        people: Item → what people said about it.
        gold: Item → its gold label, also from a person's file; of rows outside the sample, gold is in their table.
        is_sampled: Which rows of a chunk are in the sample, if one is wanted.
    """

    model: Model
    graded: bool = False
    people: Mapping[str, Reviewed] = field(default_factory=dict)
    gold: Mapping[str, str | None] = field(default_factory=dict)
    is_sampled: Callable[[Dataset], Mask] | None = None

    def rows(self, chunk: Dataset, votes: Votes, judged: Verdicts | None = None) -> LabelledRows:
        """Return the rows of a chunk with their labels."""
        judged = judged or self.model.judged(votes)
        columns = result_columns(self.model, votes, judged)
        labels, decisions = (Counter(_present(columns[name].to_pylist())) for name in (LABEL, DECISION))
        answered = columns[LABEL].is_valid().to_pylist()
        empty = sum(not one and is_empty(item.text) for one, item in zip(answered, chunk.items, strict=True))
        if self.people:
            reviewed = [self.people.get(item.id) for item in chunk.items]
            given = gold_in(chunk.table, chunk.columns) or [None] * len(votes)
            gold = [self.gold.get(item.id) or label for item, label in zip(chunk.items, given, strict=True)]
            columns |= people_columns(reviewed, gold, columns[LABEL].to_pylist(), votes.labels)
        sampled = None
        if self.is_sampled is not None and (some := self.is_sampled(chunk)).any():
            rows = np.flatnonzero(some)
            items = tuple(chunk.items[row] for row in rows.tolist())
            sampled = replace(chunk, table=chunk.table.take(rows), items=items, gold=()), votes.take(rows)
        return LabelledRows(
            with_columns(chunk.table, columns, votes.labels),
            vote_files.vote_table(votes, graded=self.graded),
            Counts(rows=len(votes), labels=labels, decisions=decisions, empty=empty),
            sampled,
        )


def _present(values: Iterable[str | None]) -> Iterator[str]:
    return (value for value in values if value is not None)


async def in_order(
    chunks: Iterable[C], work: Callable[[C], Coroutine[Any, Any, R]], at_once: int = CHUNKS_AT_ONCE
) -> AsyncIterator[R]:
    """Do some work on every chunk, on several at the same time, and yield the results in order.

    When this ends early, no work is left running.
    """
    under_way: deque[asyncio.Task[R]] = deque()
    try:
        for chunk in chunks:
            under_way.append(asyncio.create_task(work(chunk)))
            if len(under_way) == at_once:
                yield await under_way.popleft()
        while under_way:
            yield await under_way.popleft()
    finally:
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)


async def label_locally(
    stream: TableStream, fitted: FittedRun, ledger: LedgerAddress, maker: RowMaker
) -> AsyncIterator[LabelledRows]:
    """Yield the rows of a table with their labels, in order and chunk by chunk; closes the models.

    Asks in this process; before that, batches or a cluster put answers into the ledger, if the settings say so.
    """
    settings = fitted.settings
    ask.refuse_unknown_prices(fitted.job, ask.pricing(settings.prices), settings.budget)
    with open_ledger(ledger) as opened:
        asker, elsewhere = ask.open_asker(opened, settings), 0
        if settings.batches is not None:
            items = _Items(stream)
            asker, elsewhere = await ask_in_waves(fitted.job, items, asker, fitted.strategy, settings.batches)
        elif settings.cluster is not None:
            chunks, expected = (chunk.items for chunk in stream.chunks(CHUNK_ROWS)), settings.tally.rows_expected
            paid = await ask_on_cluster(fitted.job, chunks, expected, ledger, settings, fitted.strategy)
            asker = ask.open_asker(opened, replace(settings, budget=settings.budget.after(*paid)))
            elsewhere = paid.calls
        async with (
            showing(settings.tally, asker.tracker) if settings.progress else nullcontext(),
            ChunkLabeller(fitted, asker) as labeller,
        ):

            async def label(chunk: Dataset) -> LabelledRows:
                labelled = await labeller.label(chunk.items, settings.tally)
                return maker.rows(chunk, labelled.votes, labelled.judged)

            async for rows in in_order(stream.chunks(CHUNK_ROWS), label):
                yield rows
    settings.tally.count_as_paid(elsewhere)
    ask.warn_about_grades(settings.tally)


class _Items:
    """The texts of a large table, read anew every time."""

    def __init__(self, stream: TableStream) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[Item]:
        for chunk in self._stream.chunks():
            yield from chunk.items


class OutFiles(NamedTuple):
    """Where the rows of a large table are written.

    Attributes:
        labels: The user's rows with their labels.
        votes: All votes; None if they are not kept.
        style: How the rows are written.
    """

    labels: Path | str
    votes: Path | None = None
    style: TableStyle = PLAIN


class Written(NamedTuple):
    """What was written: exact counts; and the rows of a sample, with the votes on them."""

    counts: Counts
    sample: Sequence[tuple[Dataset, Votes]]


class RowWriter:
    """Writes rows in order and counts them."""

    def __init__(self, labels: Any, votes: Any) -> None:
        self._labels, self._votes = labels, votes
        self.counts = Counts()
        self.sample: list[tuple[Dataset, Votes]] = []

    def write(self, rows: LabelledRows) -> None:
        """Add the rows of the next chunk."""
        self._labels.write(rows.labels)
        if self._votes is not None:
            self._votes.write(rows.votes)
        self.counts = self.counts.plus(rows.counts)
        if rows.sampled is not None:
            self.sample.append(rows.sampled)


@contextmanager
def writing_rows(out: OutFiles) -> Iterator[RowWriter]:
    """Yield what writes rows; the files appear at the end, and not at all after an error."""
    with (
        writing_table(out.labels, out.style) as labels,
        nullcontext() if out.votes is None else vote_files.writing_votes(out.votes) as votes,
    ):
        yield RowWriter(labels, votes)


async def write_all(results: AsyncIterator[LabelledRows], out: OutFiles, stream: TableStream, data: str) -> Written:
    """Write the rows of all chunks; a table that has changed since its first look (`data`) is an error."""
    with writing_rows(out) as writer:
        async for rows in results:
            writer.write(rows)
        if data_hash_of(stream) != data:
            raise TableError(
                f"{stream.name} has changed while it was labelled; all answers are kept: run the same command again"
            )
    return Written(writer.counts, writer.sample)


def joined(sample: Sequence[tuple[Dataset, Votes]]) -> tuple[Dataset, Votes]:
    """Return the rows of a sample from several chunks, and the votes on them, as one."""
    import pyarrow as pa

    parts = [part for part, _ in sample]
    items = tuple(item for part in parts for item in part.items)
    table = pa.concat_tables([part.table for part in parts])
    return replace(parts[0], table=table, items=items), Votes.joined([votes for _, votes in sample])


def data_hash_of(stream: TableStream) -> str:
    """Return what changes whenever the rows of a table do, or the columns that are read."""
    columns = stream.columns
    return f"{stream.fingerprint()} {columns.text} {columns.id} {columns.gold or ' '.join(columns.coders) or None}"
