"""The user's texts: texts, ids and gold in a table, read in chunks with memory that does not grow, or at once."""

import hashlib
import math
import os
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from pcs_annotator.base.display import brief
from pcs_annotator.base.errors import TableError
from pcs_annotator.base.text import did_you_mean, row_number
from pcs_annotator.core.arrays import is_column
from pcs_annotator.core.gold_codes import coder_columns, coder_of, majority_labels
from pcs_annotator.core.task import Item, pair_text, whole_number
from pcs_annotator.tables.arrow import columns_of, pa, refuse_repeated, text_column, texts_of
from pcs_annotator.tables.fakenewsnet import is_fakenewsnet, read_fakenewsnet
from pcs_annotator.tables.find import open_parts, place_or_table, source_name
from pcs_annotator.tables.source_files import AS_FOUND, PARQUET, Dialect, Reading, joined

GOLD_NAMES = ("gold", "label", "labels")
TEXT_NAMES = ("text", "texts", "title", "headline", "sentence", "tweet", "review", "comment", "content", "body")
PAIR_SIGN = " | "  # between the names of two columns that have a pair of texts each row, as in `a | b`
ROW_NUMBERS = "row"  # instead of an ID column: rows are numbered, unless a column has this name
CHUNK_ROWS = 5_000
CHUNK_BYTES = 32 * 1024**2  # long texts make chunks of fewer rows
MOST_SUSPECTS = 1_000
MOST_MEGABYTES = "PCS_MAX_TEXT_MB"  # the variable with the most megabytes of a text


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Names of columns; None to look for the usual names."""

    text: str | None = None  # the column of texts, or two of them as in `a | b`
    id: str | None = None  # the column of ids, or `row` to number the rows
    gold: str | None = None  # the column of gold labels; None also if they are the majority of the coders
    numbered: bool = False  # whether the user wants rows to be numbered, even if there is a column of ids
    coders: tuple[str, ...] = ()  # columns with the labels of one person each; empty for those named `gold_<name>`

    @property
    def id_setting(self) -> str:
        """What the settings of a run say, so that its rows get the same ids again."""
        return self.id or (ROW_NUMBERS if self.numbered else "")

    @property
    def gold_source(self) -> str:
        """Where gold labels come from, in words."""
        return self.gold or f"majority of {', '.join(self.coders)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """The texts in a user's table, with their gold labels."""

    name: str  # name of the file, for messages
    table: pa.Table  # all its columns
    items: tuple[Item, ...]  # its texts, in order
    gold: tuple[str | None, ...]  # for every item its gold label or None; empty when there is no gold column
    columns: Columns  # the columns that were used
    streamed: tuple[tuple[bool, float], ...] = ()  # of the last items, a stream's: whether at random, and when

    __repr__ = brief


def read_source(spec: Path | str, columns: Columns, limit: int | None = None, reading: Reading = AS_FOUND) -> Dataset:
    """Return all texts of a source at once, with their gold labels where it has some; see `open_stream`."""
    return open_stream(spec, columns, limit, reading=reading).read()


def items_of(data: object, text_column: str | None = None) -> Sequence[Item]:
    """Return the texts that Python code gave: a list or a column of them, a table, or where one is."""
    if is_column(data):
        return [Item(id=str(row), text=text or "") for row, text in enumerate(texts_of(data, "the texts"), 1)]
    stream = open_stream(place_or_table(data), Columns(text=text_column))
    table = stream.table()
    return TableStream.of(table, stream.name, stream.columns).read().items if len(table) else ()


def open_stream(
    spec: Path | str | pa.Table, columns: Columns, limit: int | None = None, reading: Reading = AS_FOUND
) -> "TableStream":
    """Return the texts of a source, to be read in chunks; only its columns are read here, or the keys of JSON.

    A source is a file, a folder of files or a pattern, here or at an address; `-` for standard input; the public
    dataset `fakenewsnet:FOLDER`; or a table in memory.
    """
    if not isinstance(spec, Path | str):
        return TableStream.of(spec, name_in_memory(spec), columns, limit)
    if is_fakenewsnet(spec):
        return TableStream.of(read_fakenewsnet(str(spec)), str(spec), columns, limit)
    (opened, files), name = open_parts(spec, limit, reading), source_name(spec)
    refuse_repeated(opened.schema.names, name)
    return TableStream(
        name=name,
        columns=find_columns(dict.fromkeys(opened.schema.names), name, columns),
        schema=opened.schema,
        total=opened.rows,
        batches=opened.batches,
        versions=lambda: [file.version() for file in files],
        packed=opened.packed,
        parquet=files[0].format == PARQUET,
        dialect=opened.dialect,
        limit=limit,
    )


def name_in_memory(table: pa.Table) -> str:
    """Return what messages and run folders call a table that is in memory."""
    return f"the table of {len(table):,} rows"


def text_names(column: str, there: Collection[str]) -> list[str]:
    """Return the column of texts, or the two of a pair."""
    return [column] if column in there else column.split(PAIR_SIGN)


def texts_in(table: pa.Table, column: str) -> list[str]:
    """Return the texts in a column, or pairs of those in two columns; empty where there is none."""
    names = text_names(column, table.column_names)
    columns = [text_column(name, table[name], objects=True).to_pylist() for name in names]
    texts = [[text or "" for text in column] for column in columns]
    return texts[0] if len(texts) == 1 else [pair_text(*pair) for pair in zip(*texts, strict=True)]


def gold_in(table: pa.Table, columns: Columns) -> tuple[str | None, ...]:
    """Return the gold label of every row; nothing without a column of gold."""
    labels = [_labels(name, table) for name in ((columns.gold,) if columns.gold else columns.coders)]
    return tuple(labels[0] if len(labels) == 1 else majority_labels(labels))


def _labels(name: str, table: pa.Table) -> list[str | None]:
    cells = text_column(name, table[name], objects=True).to_pylist()
    return [whole_number(value.strip()) or None if value else None for value in cells]


def coder_labels(dataset: Dataset) -> dict[str, list[str | None]]:
    """Return person → the label of every row."""
    return {coder_of(name): _labels(name, dataset.table) for name in dataset.columns.coders}


def find_columns(table: Mapping[str, object], source: str, columns: Columns) -> Columns:
    """Return which columns hold texts, IDs and gold labels, or labels of people: those named, else usual ones."""

    def column(wanted: str | None, usual: Sequence[str], option: str) -> str | None:
        """Return the column that was named, else the first with a usual name, else None."""
        if wanted and wanted not in table:
            alike = did_you_mean(wanted, table)
            raise TableError(f"{source} has no column {wanted!r} ({option}); {alike}there are {', '.join(table)}")
        by_name = {name.strip().casefold(): name for name in table}
        return wanted or next((by_name[name] for name in usual if name in by_name), None)

    coders = tuple(column(name, (), "--coders") or name for name in columns.coders)
    if len({coder_of(name).casefold() for name in coders}) < len(coders):
        raise TableError(f"--coders names one column twice: {', '.join(coders)}")
    coders = coders or coder_columns(table)
    if columns.text and columns.text not in table and PAIR_SIGN in columns.text:
        text: str | None = PAIR_SIGN.join(str(column(name, (), "--pair")) for name in columns.text.split(PAIR_SIGN))
    else:
        text = column(columns.text, TEXT_NAMES, "--text-column") or (next(iter(table)) if len(table) == 1 else None)
    if text is None:
        raise TableError(f"{source}: which column holds the texts? Name it with --text-column: {', '.join(table)}")
    numbered = columns.numbered or (columns.id == ROW_NUMBERS and ROW_NUMBERS not in table)
    return Columns(
        text=text,
        id=None if numbered else column(columns.id, ("id",), "--id-column"),
        numbered=numbered,
        gold=column(columns.gold, GOLD_NAMES[:1] if coders else GOLD_NAMES, "--gold-column"),
        coders=coders,
    )


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
    def of(cls, table: pa.Table, name: str, columns: Columns, limit: int | None = None) -> "TableStream":
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
        self._refuse_empty(len(table))
        dataset = self._dataset(range(1, len(table) + 1), table)
        check = IdCheck()
        check.add(item.id for item in dataset.items)
        check.refuse_twins(self)
        return dataset

    def chunks(self, rows: int = CHUNK_ROWS) -> Iterator[Dataset]:
        """Yield all rows in order, at most `rows` at a time; those without an id are numbered through the table."""
        last = 0
        for numbers, table in self._numbered(self.schema, rows):
            last = numbers[-1]
            yield self._dataset(numbers, table)
        self._refuse_empty(last)

    def table(self) -> pa.Table:
        """Return all rows; a compressed table that is too large for memory is an error."""
        tables = (table for _, table in self._numbered(self.schema, CHUNK_ROWS))
        return joined(tables, self.schema, self.name, packed=self.packed)

    def check_ids(self) -> int:
        """Return the number of rows, after a look at the ids alone; two rows with the same id are an error."""
        check = IdCheck()
        for _, ids in self._ids():
            check.add(ids)
        self._refuse_empty(check.rows)
        check.refuse_twins(self)
        return check.rows

    def fingerprint(self) -> str:
        """Return what changes whenever the rows do: a hash of the bytes of local files, and what servers report."""
        versions = (*self.versions(), str(self.limit))
        return hashlib.sha256("".join(f"{version}\n" for version in versions).encode()).hexdigest()

    def refuse_twins(self, suspects: set[int]) -> None:
        """Raise if two rows have the same id; only ids with one of these hashes are compared."""
        seen, shown = dict[str, int](), partial(row_number, self.name)
        for numbers, ids in self._ids():
            for row, name in zip(numbers, ids, strict=True):
                if hash(name) in suspects and seen.setdefault(name, row) != row:
                    column = self.columns.id
                    free = f"rename the column {column!r} and " if column == ROW_NUMBERS else ""
                    raise TableError(
                        f"{self.name}, rows {shown(seen[name])} and {shown(row)} have the same {column} {name!r}: "
                        "rename one, use another column with --id-column, or "
                        f"{free}number the rows with --id-column row"
                    )

    def _dataset(self, numbers: Sequence[int], table: pa.Table) -> Dataset:
        firsts = {name: column[0].as_py() for name, column in columns_of(table).items()}
        if numbers[0] == 1 and all(str(first).strip() == name.strip() for name, first in firsts.items()):
            raise TableError(f"{self.name}: row {row_number(self.name, 1)} repeats the header: remove one of the two")
        texts = texts_in(table, self.columns.text or "")
        for number, text in zip(numbers, texts, strict=True):
            _refuse_long(text, f"{self.name}, row {row_number(self.name, number)}")
        rows = zip(self._names(numbers, table), texts, strict=True)
        return Dataset(
            name=self.name,
            table=table,
            items=tuple(Item(id=name, text=text) for name, text in rows),
            gold=gold_in(table, self.columns),
            columns=self.columns,
        )

    def _ids(self) -> Iterator[tuple[Sequence[int], Sequence[str]]]:
        column = self.schema.field(self.columns.id or text_names(self.columns.text or "", self.schema.names)[0])
        for numbers, table in self._numbered(pa.schema([column]), CHUNK_ROWS):
            yield numbers, self._names(numbers, table)

    def _names(self, numbers: Sequence[int], table: pa.Table) -> list[str]:
        """Return the ids of rows: those that they have, else their numbers in the whole table."""
        column = self.columns.id
        names = [None] * len(table) if column is None else text_column(column, table[column]).to_pylist()
        return [name or str(number) for name, number in zip(names, numbers, strict=True)]

    def _numbered(self, schema: pa.Schema, rows: int) -> Iterator[tuple[Sequence[int], pa.Table]]:
        position, limit = 0, math.inf if self.limit is None else self.limit
        for table in rechunked(self.batches(schema), int(min(rows, max(limit, 1))), CHUNK_BYTES):
            kept = table if limit > position + len(table) else table.slice(0, limit - position)
            if len(kept):
                yield range(position + 1, position + len(kept) + 1), kept
            position += len(kept)
            if position >= limit:  # what comes after may be damaged
                return

    def _refuse_empty(self, rows: int) -> None:
        if not rows:
            raise TableError(f"{self.name} has a header but no rows: add texts to label")


def _refuse_long(text: str, where: str) -> None:
    """Raise if a text has more than a megabyte: it is a whole file by mistake, and would be paid for."""
    most = float(os.environ.get(MOST_MEGABYTES, "1"))
    if len(text) > most * 2.5e5 and (size := len(text.encode("utf-8", "replace")) / 1e6) > most:
        remedy = f"cut it or leave it out; {MOST_MEGABYTES}={math.ceil(size)} in the environment takes such texts"
        raise TableError(f"{where}: the text has {size:,.1f} MB, more than {most:g} MB: {remedy}")


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


def rechunked(tables: Iterable[pa.Table], rows: int, most_bytes: float = math.inf) -> Iterator[pa.Table]:
    """Yield the rows of tables in tables of `rows` rows, except for the last; of fewer if they are large.

    If reading fails, the rows before that come first, and then the error.
    """
    waiting: list[pa.Table] = []
    failure: TableError | None = None
    try:
        for table in tables:
            waiting.append(table)
            large = sum(part.nbytes for part in waiting) >= most_bytes
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
