"""The files of a run that hold variants and votes."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pcs_annotator.core.arrays import Array
from pcs_annotator.core.task import Item
from pcs_annotator.core.variant import ORIGINAL, Variant, VariantCount
from pcs_annotator.core.vote import NOT_ASKED
from pcs_annotator.core.votes import Votes, positions_of, read_vote_table
from pcs_annotator.errors import PcsWarning
from pcs_annotator.files.runs import atomic_path
from pcs_annotator.files.tables import write_table

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_AT_ONCE = 5_000
NOTE = "pcs"
"""The key of the note in the metadata of a Parquet file."""
Note = Mapping[str, Any]
VARIANT_COLUMNS = ("id", "relation", "status", "text", "reason", "refused", "cause")


@contextmanager
def writing_variants(path: Path, note: Note | None = None) -> Iterator[Callable[[Item, Variant], None]]:
    """Yield a function that records a variant; variants are written in batches, so that memory does not grow.

    `note` is kept with them; see `read_note`.
    """
    import pyarrow as pa
    from pyarrow import parquet

    schema = pa.schema([(name, pa.string()) for name in VARIANT_COLUMNS], _metadata(note))
    rows: list[tuple[str | None, ...]] = []
    with atomic_path(path) as temporary, parquet.ParquetWriter(temporary, schema) as writer:

        def write() -> None:
            if rows:
                writer.write_table(pa.table(list(zip(*rows, strict=True)), schema=schema))
                rows.clear()

        def record(item: Item, variant: Variant) -> None:
            if variant.relation == ORIGINAL:
                return
            text, why = variant.text, (variant.reason, variant.refused, variant.cause)
            rows.append((item.id, variant.relation, variant.status, text, *why))
            if len(rows) >= ROWS_AT_ONCE:
                write()

        yield record
        write()


def read_variants(path: Path, ids: Collection[str] | None = None) -> dict[tuple[str, str], Variant]:
    """Return item id and relation → variant, of some items or of all; empty if there is no file.

    Original texts are not included, and the source of a variant is left empty: it is the item's text.
    """
    table = _variant_table(path)
    if table is None:
        return {}
    if ids is not None:
        import pyarrow as pa
        import pyarrow.compute as pc

        table = table.filter(pc.is_in(table["id"], value_set=pa.array(sorted(ids), pa.string())))
    return {(row["id"], row["relation"]): _variant(row) for row in table.to_pylist()}


def count_variants(path: Path) -> Iterator[VariantCount]:
    """Yield the results of the rewrites with their counts, the most common result of each relation first."""
    table = _variant_table(path, ("relation", "status", "reason", "cause"))
    if table is None:
        return
    # an earlier version did not write causes
    reason = "cause" if "cause" in table.column_names else "reason"
    columns = ["relation", "status", reason]
    counts = table.group_by(columns).aggregate([([], "count_all")]).to_pylist()
    for row in sorted(counts, key=lambda row: (row["relation"], -row["count_all"], row["status"], row[reason] or "")):
        yield VariantCount(row["relation"], row["status"], row[reason] or "", row["count_all"])


def _variant_table(path: Path, columns: Sequence[str] = VARIANT_COLUMNS) -> pa.Table | None:
    """Return some columns of the table that `writing_variants` wrote; None without one, or, warned, for a damaged one.

    An earlier version wrote no causes.
    """
    from pyarrow import ArrowException, parquet

    if not path.exists():
        return None
    try:
        schema = parquet.read_schema(path)
        if tuple(schema.names) not in (VARIANT_COLUMNS, VARIANT_COLUMNS[:-1]) or {*map(str, schema.types)} != {
            "string"
        }:
            raise ValueError("other columns")
        return parquet.read_table(path, columns=[name for name in columns if name in schema.names])
    except (OSError, ValueError, ArrowException) as error:
        found = f"{path} is damaged or not a file of variants ({error})"
        warnings.warn(f"{found}: pcs run writes it again; rewrites are not shown", PcsWarning, stacklevel=3)
        return None


def _variant(row: dict[str, str | None]) -> Variant:
    return Variant(
        relation=row["relation"] or "",
        status=row["status"],  # type: ignore[arg-type]  # written from a Variant
        text=row["text"],
        reason=row["reason"] or "",
        refused=row["refused"],
    )


def write_votes(path: Path, votes: Votes, note: Note | None = None) -> None:
    """Write votes in the long form, which keeps `ABSTAINED` and `NOT_ASKED` apart, with a note on them."""
    write_table(path, votes.to_table("long").replace_schema_metadata(_metadata(note)))


def _metadata(note: Note | None) -> dict[str, str]:
    return {NOTE: json.dumps(note or {})}


def read_note(path: Path) -> Note:
    """Return the note that was written with votes or variants; empty if there is none, or no such file."""
    from pyarrow import ArrowException, parquet

    try:
        note = json.loads((parquet.read_schema(path).metadata or {}).get(NOTE.encode(), b"{}"))
    except (OSError, ValueError, ArrowException):
        return {}
    return note if isinstance(note, dict) else {}


class VoteAxes(NamedTuple):
    """Names along the axes of votes; a file may lack some, because it leaves out what was not asked."""

    ids: Sequence[str]
    annotators: Sequence[str]
    relations: Sequence[str]
    labels: Sequence[str]
    draws: int


def read_votes(path: Path, axes: VoteAxes) -> Votes:
    """Return the votes of a file along these axes."""
    shape = (len(axes.ids), len(axes.annotators), len(axes.relations), axes.draws)
    codes = np.full(shape, NOT_ASKED, dtype=np.int8)
    read = read_vote_table(path, axes.labels).votes
    place = np.ix_(
        positions_of(read.ids, axes.ids, "item"),
        positions_of(read.annotators, axes.annotators, "annotator"),
        positions_of(read.relations, axes.relations, "relation"),
        range(read.codes.shape[3]),
    )
    codes[place] = read.codes
    return Votes(
        codes=codes,
        ids=axes.ids,
        annotators=axes.annotators,
        relations=axes.relations,
        labels=axes.labels,
        stated=_spread(read.stated, place, shape),
        grades=_spread(read.grades, place, shape),
    )


def _spread(values: Array | None, place: tuple[Array, ...], shape: tuple[int, ...]) -> Array | None:
    """Return probabilities in their places along longer axes, nan elsewhere."""
    if values is None:
        return None
    result = np.full((*shape, values.shape[-1]), np.nan, dtype=values.dtype)
    result[place] = values
    result.flags.writeable = False  # else `Votes` would copy it
    return result
