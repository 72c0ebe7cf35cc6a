"""All rows of a table: asked about in chunks, judged, and written in order, with exact counts."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from pcs_annotator.base.concurrency import run_sync
from pcs_annotator.base.errors import TableError
from pcs_annotator.core.outcome import Counts
from pcs_annotator.core.result_names import DECISION, LABEL
from pcs_annotator.core.review import Reviewed
from pcs_annotator.core.task import Item, is_empty
from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.model import Model, Verdicts
from pcs_annotator.runs.executors import asking
from pcs_annotator.runs.labelling.labeller import FittedRun, Labeller
from pcs_annotator.runs.labelling.run_table import data_hash_of, sampled_rows, taken
from pcs_annotator.tables import vote_files
from pcs_annotator.tables.result_columns import Results, people_columns, with_columns
from pcs_annotator.tables.table_stream import CHUNK_ROWS, TableStream
from pcs_annotator.tables.table_writer import PLAIN, TableStyle, TableWriter, writing_table
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


@dataclass(kw_only=True)
class RowWriter:
    """Judges votes on rows and writes these in order, with their labels; use it as a context manager.

    The files appear at the end, and not at all after an error.
    """

    model: Model  # what judges the votes
    labels: Path | str | None  # the file for the user's columns, then the results; None for no file
    style: TableStyle = PLAIN  # how that is written
    votes: Path | None = None  # the file for all votes, in the long form; None for no file
    graded: bool = False  # whether that has columns for grades, whether or not a chunk has some
    people: Mapping[str, Reviewed] = field(default_factory=dict)  # item → what people said about it
    # item → its gold label, also from a person's file; of rows outside the sample, gold is in their table
    gold: Mapping[str, str | None] = field(default_factory=dict)
    sample_of: int | None = None  # how many rows the table has, if a sample of them is to be kept
    counts: Counts = field(default_factory=Counts, init=False)  # how many rows have which label, so far
    # the rows of the sample, and the votes on them
    sample: list[tuple[Dataset, Votes]] = field(default_factory=list, init=False)
    _open: ExitStack = field(default_factory=ExitStack, init=False)
    _labels: TableWriter | None = field(default=None, init=False)
    _votes: Any = field(default=None, init=False)

    def __enter__(self) -> Self:
        if self.labels is not None:
            self._labels = self._open.enter_context(writing_table(self.labels, self.style))
        if self.votes is not None:
            self._votes = self._open.enter_context(vote_files.writing_votes(self.votes))
        return self

    def __exit__(self, *error: Any) -> None:
        self._open.__exit__(*error)

    def write(self, chunk: Dataset, votes: Votes) -> None:
        """Add the next rows, with the labels that these votes give them."""
        columns = result_columns(self.model, votes, self.model.judged(votes))
        found: list[str | None] = columns[LABEL].to_pylist()
        if self.people:
            reviewed = [self.people.get(item.id) for item in chunk.items]
            given = gold_in(chunk.table, chunk.columns) or [None] * len(votes)
            gold = [self.gold.get(item.id) or label for item, label in zip(chunk.items, given, strict=True)]
            columns |= people_columns(reviewed, gold, found, votes.labels)
        labelled = with_columns(chunk.table, columns, votes.labels)
        if self._labels is not None:
            self._labels.write(labelled)
        if self._votes is not None:
            self._votes.write(vote_files.vote_table(votes, graded=self.graded))
        if self.sample_of is not None and (some := sampled_rows(chunk, self.sample_of)).any():
            rows = np.flatnonzero(some)
            self.sample.append((taken(chunk, rows), votes.take(rows)))
        empty = sum(label is None and is_empty(item.text) for label, item in zip(found, chunk.items, strict=True))
        labels, decisions = (Counter(one for one in values if one) for values in (found, columns[DECISION].to_pylist()))
        self.counts = self.counts.plus(Counts(rows=len(votes), labels=labels, decisions=decisions, empty=empty))


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


def label_all(stream: TableStream, data: str, fitted: FittedRun, writer: RowWriter) -> None:
    """Ask about all rows of a table, label and write them; closes the models.

    A table that has changed since its first look (`data`) is an error.
    """

    async def label() -> None:
        settings = fitted.settings
        with writer:
            async with asking(fitted.job, _Items(stream), fitted.ledger, settings, fitted.strategy) as asker:
                labeller = await Labeller.open(fitted, asker)

                async def asked(chunk: Dataset) -> tuple[Dataset, Votes]:
                    return chunk, await labeller.ask(chunk.items, asker.part(asker.shared, settings.tally))

                async for chunk, votes in in_order(stream.chunks(CHUNK_ROWS), asked):
                    writer.write(chunk, votes)
            if data_hash_of(stream) != data:
                raise TableError(
                    f"{stream.name} has changed while it was labelled; all answers are kept: run the same command again"
                )

    run_sync(label)


class _Items:
    """The texts of a table, read anew every time."""

    def __init__(self, stream: TableStream) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[Item]:
        for chunk in self._stream.chunks():
            yield from chunk.items
