"""All rows of a large table: asked about and judged in chunks, and written in order, with exact counts."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

import numpy as np

from pcs_annotator.base.concurrency import run_sync
from pcs_annotator.base.errors import TableError
from pcs_annotator.core.arrays import Mask
from pcs_annotator.core.outcome import Counts
from pcs_annotator.core.result_names import DECISION, LABEL
from pcs_annotator.core.review import Reviewed
from pcs_annotator.core.task import Item, is_empty
from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.model import Model, Verdicts
from pcs_annotator.runs.executors import asking
from pcs_annotator.runs.labelling.fitted import FittedRun
from pcs_annotator.runs.labelling.labeller import Labeller
from pcs_annotator.runs.labelling.run_table import data_hash_of, taken
from pcs_annotator.tables import vote_files
from pcs_annotator.tables.result_columns import Results, people_columns, with_columns
from pcs_annotator.tables.table_stream import CHUNK_ROWS, TableStream
from pcs_annotator.tables.table_writer import PLAIN, TableStyle, writing_table
from pcs_annotator.tables.tables import Dataset, gold_in

if TYPE_CHECKING:
    import pyarrow as pa

CHUNKS_AT_ONCE = 2
"""While the last calls of one chunk are awaited, the next chunk is asked about."""

C = TypeVar("C")
R = TypeVar("R")


def result_columns(model: Model, votes: Votes, judged: Verdicts) -> dict[str, pa.Array]:
    """Return the columns of results for all rows, as `Model.judge` and `with_outcomes` do."""
    import pyarrow as pa

    silent = votes.silent
    sure = None if judged.probabilities is None else np.where(silent[:, np.newaxis], np.nan, judged.probabilities)
    rows = np.arange(len(votes))
    decided = zip(model.decisions(votes, judged), silent.tolist(), strict=True)
    return Results(
        labels=votes.labels,
        label=pa.array(votes.labels, pa.string()).take(pa.array(judged.best, pa.int64(), mask=silent)),
        decision=["review" if no else one for one, no in decided],
        reason=model.reasons(votes, judged),
        confidence=np.full(len(votes), np.nan) if sure is None else sure[rows, judged.best],
        scores=judged.scores,
        probabilities=sure,
        sets=_sets(model, votes, judged),
    ).columns()


def _sets(model: Model, votes: Votes, judged: Verdicts) -> pa.Array | None:
    import pyarrow as pa

    if model.sets is None or judged.probabilities is None:
        return None
    patterns, places = np.unique(model.sets.of(judged.probabilities), axis=0, return_inverse=True)
    names = ["|".join(np.array(votes.labels)[pattern].tolist()) for pattern in patterns]
    return pa.array(names, pa.string()).take(pa.array(places.ravel()))


class LabelledRows(NamedTuple):
    """The rows of a chunk, ready to be written.

    Attributes:
        labels: The user's columns, then the results.
        votes: The votes on them, in the long form; None if they are not kept.
        counts: How many rows have which label.
        sampled: The rows of the sample among them, and the votes on these.
    """

    labels: pa.Table
    votes: pa.Table | None
    counts: Counts
    sampled: tuple[Dataset, Votes] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowMaker:
    """Turns votes on a chunk into rows; a plain value, so that it can be sent to the workers of a cluster.

    Attributes:
        model: What judges the votes.
        graded: Whether votes are kept with columns for grades, whether or not a chunk has some; None to keep no votes.
        people: Item → what people said about it.
        gold: Item → its gold label, also from a person's file; of rows outside the sample, gold is in their table.
        is_sampled: Which rows of a chunk are in the sample, if one is wanted.
    """

    model: Model
    graded: bool | None = None
    people: Mapping[str, Reviewed] = field(default_factory=dict)
    gold: Mapping[str, str | None] = field(default_factory=dict)
    is_sampled: Callable[[Dataset], Mask] | None = None

    def rows(self, chunk: Dataset, votes: Votes) -> LabelledRows:
        """Return the rows of a chunk with their labels."""
        columns = result_columns(self.model, votes, self.model.judged(votes))
        labels, decisions = (dict(Counter(_present(columns[name].to_pylist()))) for name in (LABEL, DECISION))
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
            sampled = taken(chunk, rows), votes.take(rows)
        return LabelledRows(
            with_columns(chunk.table, columns, votes.labels),
            None if self.graded is None else vote_files.vote_table(votes, graded=self.graded),
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


async def label_rows(stream: TableStream, fitted: FittedRun, maker: RowMaker) -> AsyncIterator[LabelledRows]:
    """Yield the rows of a table with their labels, in order and chunk by chunk; closes the models."""
    settings = fitted.settings
    async with asking(fitted.job, _Items(stream), fitted.ledger, settings, fitted.strategy) as asker:
        labeller = await Labeller.open(fitted, asker)

        async def label(chunk: Dataset) -> LabelledRows:
            return maker.rows(chunk, await labeller.ask(chunk.items, asker.part(asker.shared, settings.tally)))

        async for rows in in_order(stream.chunks(CHUNK_ROWS), label):
            yield rows


class _Items:
    """The texts of a table, read anew every time."""

    def __init__(self, stream: TableStream) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[Item]:
        for chunk in self._stream.chunks():
            yield from chunk.items


class RowWriter:
    """Writes rows in order, counts them, and keeps those of the sample; use it as a context manager.

    The files appear at the end, and not at all after an error.

    Attributes:
        counts: How many rows have which label, so far.
        sample: The rows of the sample, with the votes on them.
    """

    def __init__(self, labels: Path | str, votes: Path | None = None, style: TableStyle = PLAIN) -> None:
        self._files = (labels, votes, style)
        self._open = ExitStack()
        self._votes: Any = None
        self.counts = Counts()
        self.sample: list[tuple[Dataset, Votes]] = []

    def __enter__(self) -> Self:
        labels, votes, style = self._files
        self._labels = self._open.enter_context(writing_table(labels, style))
        if votes is not None:
            self._votes = self._open.enter_context(vote_files.writing_votes(votes))
        return self

    def __exit__(self, *error: Any) -> None:
        self._open.__exit__(*error)

    def write(self, rows: LabelledRows) -> None:
        """Add the rows of the next chunk."""
        self._labels.write(rows.labels)
        if self._votes is not None:
            self._votes.write(rows.votes)
        self.counts = self.counts.plus(rows.counts)
        if rows.sampled is not None:
            self.sample.append(rows.sampled)


def label_all(stream: TableStream, data: str, fitted: FittedRun, maker: RowMaker, writer: RowWriter) -> None:
    """Label and write all rows; a table that has changed since its first look (`data`) is an error."""

    async def label() -> None:
        with writer:
            async for rows in label_rows(stream, fitted, maker):
                writer.write(rows)
            if data_hash_of(stream) != data:
                raise TableError(
                    f"{stream.name} has changed while it was labelled; all answers are kept: run the same command again"
                )

    run_sync(label)
