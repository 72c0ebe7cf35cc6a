"""A table of any size, read in chunks: its rows in order, with memory that does not grow with them."""

from __future__ import annotations

import hashlib
import math
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pcs_annotator.base.errors import TableError
from pcs_annotator.tables.arrow import pa
from pcs_annotator.tables.table_files import Dialect, gathered
from pcs_annotator.tables.tables import Columns, Dataset, chunk_of, find_columns, item_ids, refuse_header_row, same_id
from pcs_annotator.tables.tabular import columns_of, text_column

CHUNK_ROWS = 5_000
CHUNK_BYTES = 32 * 1024**2
"""Long texts make chunks of fewer rows."""
MOST_SUSPECTS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStream:
    """A table that can be read in chunks, any number of times."""

    name: str  # its name in messages
    columns: Columns  # where texts, ids and gold labels are
    schema: pa.Schema  # all its columns
    total: int | None  # number of rows of the whole table; None if only reading them tells
    batches: Callable[[pa.Schema], Iterator[pa.Table]]  # reads some of its columns anew, a few rows at a time
    versions: Callable[[], Iterable[str]]  # returns, for every file, what changes whenever the file does
    packed: bool = False  # whether it can be much larger in memory than in its files
    parquet: bool = False  # whether its files are Parquet
    dialect: Dialect | None = None  # how its first file is written, if that is a CSV file
    limit: int | None = None  # maximum number of rows; None for all

    @property
    def rows(self) -> int | None:
        """Number of rows; None if only reading them tells."""
        if self.total is None:
            return None
        return self.total if self.limit is None else min(self.total, self.limit)

    @classmethod
    def of(cls, table: pa.Table, name: str, columns: Columns, limit: int | None = None) -> TableStream:
        """Return a table in memory, called `name` in messages; see `find_columns` for `columns`."""
        return cls(
            name=name,
            columns=find_columns(columns_of(table), name, columns),
            schema=table.schema,
            total=len(table),
            batches=lambda wanted: iter([table.select(wanted.names)]),
            versions=lambda: [hashlib.blake2b(repr(table.to_pylist()).encode(errors="replace")).hexdigest()],
            limit=limit,
        )

    def read(self) -> Dataset:
        """Return all rows at once; two rows with the same id are an error."""
        table = self.table()
        if not len(table):
            raise self._no_rows()
        refuse_header_row(table, self.name)
        found = chunk_of(table, self.name, self.columns, range(1, len(table) + 1))
        check = IdCheck()
        check.add(item.id for item in found.items)
        check.refuse_twins(self)
        return found

    def chunks(self, rows: int = CHUNK_ROWS) -> Iterator[Dataset]:
        """Yield all rows in order, at most `rows` at a time; those without an id are numbered through the table."""
        found = False
        for numbers, table in self._numbered(self.schema, rows):
            if numbers[0] == 1:
                refuse_header_row(table, self.name)
            found = True
            yield chunk_of(table, self.name, self.columns, numbers)
        if not found:
            raise self._no_rows()

    def table(self) -> pa.Table:
        """Return all rows; a compressed table that is too large for memory is an error."""
        tables = (table for _, table in self._numbered(self.schema, CHUNK_ROWS))
        return gathered(tables, self.schema, self.name, packed=self.packed)

    def check_ids(self) -> int:
        """Return the number of rows, after a look at the ids alone; two rows with the same id are an error."""
        check = IdCheck()
        for _, ids in self._ids():
            check.add(ids)
        if not check.rows:
            raise self._no_rows()
        check.refuse_twins(self)
        return check.rows

    def fingerprint(self) -> str:
        """Return what changes whenever the rows do: a hash of the bytes of local files, and what servers report."""
        hashed = hashlib.sha256()
        # run folders keep this hash, which had a third part for tables that were split among processes
        for version in (*self.versions(), str(self.limit), str(None)):
            hashed.update(f"{version}\n".encode())
        return hashed.hexdigest()

    def refuse_twins(self, suspects: set[int]) -> None:
        """Raise if two rows have the same id; only ids with one of these hashes are compared."""
        seen: dict[str, int] = {}
        for numbers, ids in self._ids():
            for row, name in zip(numbers, ids, strict=True):
                if hash(name) in suspects and seen.setdefault(name, row) != row:
                    raise same_id(self.name, seen[name], row, self.columns.id, name)

    def _ids(self) -> Iterator[tuple[Sequence[int], Sequence[str]]]:
        column = self.columns.id or self.columns.text or ""
        for numbers, table in self._numbered(pa.schema([self.schema.field(column)]), CHUNK_ROWS):
            names = text_column(column, table[column]).to_pylist() if self.columns.id else [None] * len(table)
            yield numbers, item_ids(names, numbers)

    def _numbered(self, schema: pa.Schema, rows: int) -> Iterator[tuple[Sequence[int], pa.Table]]:
        tables = self.batches(schema)
        if self.limit is not None:
            tables = _first(tables, self.limit)
        position = 0
        for table in rechunked(tables, rows, CHUNK_BYTES):
            yield range(position + 1, position + len(table) + 1), table
            position += len(table)

    def _no_rows(self) -> TableError:
        return TableError(f"{self.name} has a header but no rows: add texts to label")


class IdCheck:
    """Finds ids that occur twice in a table of any size, with 8 bytes per row, and 16 at the end."""

    def __init__(self) -> None:
        self._hashes = array("q")

    @property
    def rows(self) -> int:
        """Number of ids so far."""
        return len(self._hashes)

    def add(self, ids: Iterable[str]) -> None:
        """Remember the ids of further rows."""
        self._hashes.extend(map(hash, ids))

    def refuse_twins(self, stream: TableStream) -> None:
        """Raise if two rows have the same id. Where two hashes are the same, the table is read again to be sure."""
        ordered = np.sort(np.frombuffer(self._hashes, np.int64))
        twice = ordered[1:][ordered[1:] == ordered[:-1]]
        if len(twice):
            stream.refuse_twins(set(twice[:MOST_SUSPECTS].tolist()))


def _first(tables: Iterable[pa.Table], rows: int) -> Iterator[pa.Table]:
    """Yield the first rows of tables."""
    for table in tables:
        yield table.slice(0, rows)
        rows -= len(table)
        if rows <= 0:
            return


def rechunked(tables: Iterable[pa.Table], rows: int, most_bytes: float = math.inf) -> Iterator[pa.Table]:
    """Yield the rows of tables in tables of `rows` rows, except for the last; of fewer if they are large.

    If reading fails, the rows before that come first, and then the error.
    """
    waiting: list[pa.Table] = []
    failure: TableError | None = None
    try:
        for table in tables:
            waiting.append(table)
            large = sum(one.nbytes for one in waiting) >= most_bytes
            if not large and sum(map(len, waiting)) < rows:
                continue
            whole = pa.concat_tables(waiting)
            end = len(whole) if large else len(whole) // rows * rows
            for start in range(0, end, rows):
                yield whole.slice(start, min(rows, end - start))
            waiting = [whole.slice(end)]
    except TableError as error:
        failure = error
    rest = pa.concat_tables(waiting) if waiting else []
    if len(rest):
        yield rest
    if failure is not None:
        raise failure
