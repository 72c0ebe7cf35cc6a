"""A first look at a large table: its size, whether ids are unique, and a sample of rows to learn from."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pcs_annotator.core.arrays import Array, Mask
from pcs_annotator.core.task import Item
from pcs_annotator.tables.table_stream import IdCheck, TableStream
from pcs_annotator.tables.tables import Dataset

if TYPE_CHECKING:
    import pyarrow as pa

SAMPLE_ROWS = 20_000
ID = "id"
_HIGHEST = 62
"""The number of random bits of a lot; the bits above them say which rows come first."""


class Survey(NamedTuple):
    """What a look at all rows of a table found.

    Attributes:
        rows: How many there are.
        sample: Those to learn from, in the order of the table; always with a column of ids.
        found: Rows whose ids were asked for.
        first_gold: Gold label → the first row that has it, from 1.
    """

    rows: int
    sample: Dataset
    found: Sequence[Item]
    first_gold: dict[str, int]


def survey(stream: TableStream, kept: Collection[str] = (), wanted: Collection[str] = ()) -> Survey:
    """Read all rows of a table and return a sample of them; two rows with the same id are an error.

    Rows that people have seen (`kept`) come first, then those with a gold label, then others at random. A hash of the
    id decides, so that the sample hardly changes when rows are added. `wanted` are the ids of rows to return as well.
    """
    check, sample = IdCheck(), _Sample(SAMPLE_ROWS)
    found: list[Item] = []
    first_gold: dict[str, int] = {}
    for chunk in stream.chunks():
        before = check.rows
        check.add(item.id for item in chunk.items)
        new = [first_gold.setdefault(gold, before + row) == before + row for row, gold in _gold(chunk)]
        sample.add(chunk, _lots(chunk, kept, {row for (row, _), first in zip(_gold(chunk), new, strict=True) if first}))
        if wanted:
            found += [item for item in chunk.items if item.id in wanted]
    check.refuse_twins(stream)
    return Survey(check.rows, sample.dataset(), found, {gold: row + 1 for gold, row in first_gold.items()})


def _gold(chunk: Dataset) -> list[tuple[int, str]]:
    return [(row, gold) for row, gold in enumerate(chunk.gold) if gold is not None]


def lots_of(ids: Sequence[str]) -> Array:
    """Return a number for every id, the same in every process, that is as good as random."""
    digests = b"".join(
        blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8, person=b"sample").digest() for name in ids
    )
    return np.frombuffer(digests, dtype="<u8") >> np.uint64(64 - _HIGHEST)


def sampled_rows(chunk: Dataset, of: int) -> Mask:
    """Return which rows of a chunk are in a random sample of the `of` rows of a table."""
    limit = min(1.0, SAMPLE_ROWS / of) * 2.0**_HIGHEST
    return np.asarray(lots_of([item.id for item in chunk.items]) < limit)


def _lots(chunk: Dataset, kept: Collection[str], first: Collection[int]) -> Array:
    """Return a number for every row: the lowest are in the sample."""
    rank = np.full(len(chunk.items), 2, dtype=np.uint64)
    rank[[row for row, _ in _gold(chunk)]] = 1
    rank[list(first)] = 0
    if kept:
        rank[[row for row, item in enumerate(chunk.items) if item.id in kept]] = 0
    return lots_of([item.id for item in chunk.items]) | rank << np.uint64(_HIGHEST)


class _Sample:
    """The rows with the lowest lots so far."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._limit: int | None = None
        self._lots: Array = np.empty(0, dtype=np.uint64)
        self._items: list[Item] = []
        self._gold: list[str | None] = []
        self._tables: list[pa.Table] = []
        self._chunk: Dataset

    def add(self, chunk: Dataset, lots: Array) -> None:
        """Take those rows of a chunk that may be in the sample."""
        self._chunk = chunk
        rows = np.arange(len(lots)) if self._limit is None else np.flatnonzero(lots < np.uint64(self._limit))
        self._lots = np.concatenate([self._lots, lots[rows]])
        self._items += [chunk.items[row] for row in rows.tolist()]
        if chunk.gold:
            self._gold += [chunk.gold[row] for row in rows.tolist()]
        # `take` copies: a slice would keep the whole chunk in memory
        self._tables.append(chunk.table.take(rows))
        if len(self._lots) > 2 * self._size:
            self._shrink()

    def _shrink(self) -> None:
        import pyarrow as pa

        if len(self._lots) > self._size:
            rows = np.sort(np.argpartition(self._lots, self._size - 1)[: self._size])
            self._lots = self._lots[rows]
            self._items = [self._items[row] for row in rows.tolist()]
            self._gold = [self._gold[row] for row in rows.tolist()] if self._gold else []
            self._tables = [pa.concat_tables(self._tables).take(rows)]
            self._limit = int(self._lots.max())

    def dataset(self) -> Dataset:
        """Return the sample, in the order of the table."""
        import pyarrow as pa

        self._shrink()
        columns = self._chunk.columns
        # rows without an id have the number of their row, which is another one in a sample
        ids = pa.array([item.id for item in self._items], pa.string())
        table = pa.concat_tables(self._tables).combine_chunks()
        if columns.id is None:
            columns = replace(columns, id=columns.id_setting or ID, numbered=False)
            table = table.append_column(columns.id, ids)
        else:
            table = table.set_column(table.column_names.index(columns.id), columns.id, ids)
        return replace(self._chunk, table=table, items=tuple(self._items), gold=tuple(self._gold), columns=columns)
