"""The files of a run that hold variants and votes."""

import json
import operator
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pcs_annotator.base.errors import PcsError, TableError, warn_user
from pcs_annotator.core.arrays import CODE
from pcs_annotator.core.task import Item
from pcs_annotator.core.variant import ORIGINAL, Variant, VariantCount
from pcs_annotator.core.votes import NOT_ASKED, Votes, positions_of
from pcs_annotator.tables.arrow import columns_of, pa, parquet, pc
from pcs_annotator.tables.files import atomic_path
from pcs_annotator.tables.find import as_arrow
from pcs_annotator.tables.parquet import ParquetWriter
from pcs_annotator.tables.vote_columns import VoteColumns
from pcs_annotator.tables.vote_tables import in_cells, read_long
from pcs_annotator.tables.write import write_table

ROWS_AT_ONCE = 5_000
ROWS_IN_MEMORY = 256
NOTE = "pcs"  # the key of the note in the metadata of a Parquet file
Note = Mapping[str, Any]
VARIANT_COLUMNS = ("id", "relation", "status", "text", "reason", "refused", "cause")


class VoteAxes(NamedTuple):
    """Names along the axes of votes; a file may lack some, because it leaves out what was not asked."""

    ids: Sequence[str]
    annotators: Sequence[str]
    relations: Sequence[str]
    labels: Sequence[str]
    draws: int

    def place(self, votes: Votes) -> Votes:
        """Return votes along these axes; cells that they lack were not asked."""
        shape = len(self.ids), len(self.annotators), len(self.relations), self.draws
        names, wanted = (map(tuple, (axes.ids, axes.annotators, axes.relations)) for axes in (votes, self))
        if votes.codes.shape == shape and all(map(operator.eq, names, wanted)):
            return votes
        cells = np.ix_(
            positions_of(votes.ids, self.ids, "item"),
            positions_of(votes.annotators, self.annotators, "model"),
            positions_of(votes.relations, self.relations, "relation"),
            range(votes.codes.shape[3]),
        )
        codes = np.full(shape, NOT_ASKED, dtype=CODE)
        codes[cells] = votes.codes
        return Votes(
            codes=codes,
            ids=self.ids,
            annotators=self.annotators,
            relations=self.relations,
            labels=self.labels,
            stated=None if votes.stated is None else in_cells(votes.stated, cells, shape),
            grades=None if votes.grades is None else in_cells(votes.grades, cells, shape),
        )


@contextmanager
def writing_variants(path: Path, note: Note | None = None) -> Iterator[Callable[[Item, Variant], None]]:
    """Yield a function that records a variant; they are written in batches, so that memory does not grow."""
    schema = pa.schema([(name, pa.string()) for name in VARIANT_COLUMNS], _metadata(note))
    rows: list[tuple[str | None, ...]] = []
    with atomic_path(path) as temporary, parquet.ParquetWriter(temporary, schema) as writer:

        def write() -> None:
            if rows:
                writer.write_table(pa.table(list(zip(*rows, strict=True)), schema=schema))
                rows.clear()

        def record(item: Item, variant: Variant) -> None:
            if variant.relation != ORIGINAL:
                rows.append((item.id, *(getattr(variant, name) for name in VARIANT_COLUMNS[1:])))
            if len(rows) >= ROWS_AT_ONCE:
                write()

        yield record
        write()


def read_variants(path: Path, ids: Collection[str] | None = None) -> dict[tuple[str, str], Variant]:
    """Return item id and relation → rewrite without its source, of some items or of all; empty without a file."""
    table = _variant_table(path, VARIANT_COLUMNS)
    if table is not None and ids is not None:
        table = table.filter(pc.is_in(table["id"], value_set=pa.array(sorted(ids), pa.string())))
    return {(row["id"], row["relation"]): _variant(row) for row in ([] if table is None else table.to_pylist())}


class VariantsByItem:
    """The variants of a file, found by item; only the part of the file that holds them is read."""

    def __init__(self, path: Path, ids: Sequence[str]) -> None:
        self.path, self.ids = path, ids
        self._indexed: tuple[int, int] | None = None
        self._groups: dict[str, list[int]] = {}

    def of(self, position: int) -> list[Variant]:
        """Return the variants of the item at a position, in the order of the file; none without a file."""
        self.index()
        name = self.ids[position]
        if not self.path.exists() or name not in self._groups:
            return []
        with _opened_variants(self.path) as file:
            # threads cost more than they gain on so few rows; of long texts, few are in memory at a time
            batches = file.iter_batches(ROWS_IN_MEMORY, row_groups=self._groups[name], use_threads=False)
            return [_variant(row) for batch in batches for row in batch.filter(pc.equal(batch["id"], name)).to_pylist()]

    def index(self) -> None:
        """Find the groups of rows that hold every item, unless that was done since the file was written; see `of`."""
        if not self.path.exists():
            return
        about = self.path.stat()
        if self._indexed == (about.st_mtime_ns, about.st_size):
            return
        self._groups = {}
        with _opened_variants(self.path) as file:
            for group in range(file.num_row_groups):
                for name in file.read_row_group(group, columns=["id"])["id"].unique().to_pylist():
                    self._groups.setdefault(name, []).append(group)
        self._indexed = (about.st_mtime_ns, about.st_size)


def count_variants(path: Path) -> Iterator[VariantCount]:
    """Yield the results of the rewrites with their counts, the most common result of each relation first."""
    columns = ["relation", "status", "cause"]
    table = _variant_table(path, columns)
    counts = [] if table is None else table.group_by(columns).aggregate([([], "count_all")]).to_pylist()
    for row in sorted(counts, key=lambda row: (row["relation"], -row["count_all"], row["status"], row["cause"])):
        yield VariantCount(row["relation"], row["status"], row["cause"], row["count_all"])


def _variant_table(path: Path, columns: Sequence[str]) -> pa.Table | None:
    """Return some columns of a file of variants; None without a file, or, warned, for a damaged one."""
    if not path.exists():
        return None
    try:
        with _opened_variants(path) as file:
            return file.read(columns=list(columns))
    except TableError as error:
        warn_user(f"{error}; rewrites are not shown")
        return None


@contextmanager
def _opened_variants(path: Path) -> Iterator[parquet.ParquetFile]:
    """Open a file that `writing_variants` wrote; a damaged or other one is an error with the remedy."""
    try:
        with parquet.ParquetFile(path) as file:
            if [(field.name, field.type) for field in file.schema_arrow] != [(n, pa.string()) for n in VARIANT_COLUMNS]:
                raise ValueError("other columns")
            yield file
    except (OSError, ValueError, pa.ArrowException) as error:
        raise TableError(f"{path} is damaged or not a file of variants ({error}): pcs run writes it again") from error


def _variant(row: dict[str, Any]) -> Variant:
    names = ("relation", "status", "text", "reason", "refused")
    return Variant(**{name: row[name] for name in names} | {"reason": row["reason"] or ""})


def write_votes(path: Path, votes: Votes, note: Note | None = None) -> None:
    """Write votes in the long form, which keeps `ABSTAINED` and `NOT_ASKED` apart, with a note on them."""
    write_table(path, votes.to_table("long").replace_schema_metadata(_metadata(note)))


class VoteWriter(ParquetWriter):
    """Writes votes part by part; `read_parts` yields the same parts."""

    def add(self, votes: Votes, *, graded: bool) -> None:
        """Add votes as a group of rows of their own; if some parts are `graded`, all have columns for grades."""
        if graded and votes.grades is None:
            votes = replace(votes, grades=np.full((*votes.codes.shape, len(votes.labels)), np.nan, dtype=np.float32))
        self.write(votes.to_table("long"))
        self.flush()


@contextmanager
def writing_votes(path: Path) -> Iterator[VoteWriter]:
    """Yield what adds votes to a new file, which replaces an earlier one at the end."""
    with atomic_path(path) as temporary, closing(VoteWriter(temporary)) as writer:
        yield writer


def read_parts(path: Path, axes: VoteAxes) -> Iterator[Votes]:
    """Yield the votes of a file in the parts in which `VoteWriter` wrote them; the ids of `axes` do not matter."""
    try:
        with parquet.ParquetFile(path) as file:
            for group in range(file.num_row_groups):
                votes = _written_votes(file.read_row_group(group), path, axes)
                yield axes._replace(ids=votes.ids).place(votes)
    except (pa.ArrowException, OSError, PcsError) as error:
        remedy = "pcs run writes it again, from the answers in the ledger"
        raise TableError(f"{path} is damaged ({error}): {remedy}") from error


def _metadata(note: Note | None) -> dict[str, str]:
    return {NOTE: json.dumps(note or {})}


def read_note(path: Path) -> Note:
    """Return the note that was written with votes or variants; empty if there is none, or no such file."""
    try:
        note = json.loads((parquet.read_schema(path).metadata or {}).get(NOTE.encode(), b"{}"))
    except (OSError, ValueError, pa.ArrowException):
        return {}
    return note if isinstance(note, dict) else {}


def read_votes(path: Path, axes: VoteAxes) -> Votes:
    """Return the votes of a file along these axes."""
    return axes.place(_written_votes(as_arrow(path), path, axes))


def _written_votes(table: pa.Table, path: Path, axes: VoteAxes) -> Votes:
    return read_long(VoteColumns(columns_of(table), path.name, written=True), axes.labels, "error").votes
