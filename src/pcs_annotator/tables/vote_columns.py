"""The columns of a table of votes that hold names and labels, as codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from pcs_annotator.base.errors import TableError
from pcs_annotator.core.arrays import Codes, Integers
from pcs_annotator.core.task import label_lookup, unknown_label
from pcs_annotator.core.vote import ABSTAINED, NOT_ASKED
from pcs_annotator.tables.tabular import text_column

if TYPE_CHECKING:
    import pyarrow as pa

Unknown = Literal["error", "abstain"]


class Column(NamedTuple):
    """A column of texts: `distinct[position]` for every row; the position is −1 where the cell is empty."""

    name: str
    distinct: list[str]
    positions: Integers


def indexed(name: str, column: pa.ChunkedArray) -> Column:
    """Return a column of any type as texts; empty texts and nulls are both empty."""
    encoded = text_column(name, column).dictionary_encode()
    distinct: list[str] = encoded.dictionary.to_pylist()
    index = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.intp)
    if "" in distinct:
        index[index == distinct.index("")] = -1
    broken = next((position for position, text in enumerate(distinct) if "\n" in text), None)
    if broken is not None:
        row = int(np.argmax(index == broken)) + 1
        raise TableError(
            f"column {name!r}, row {row}: {distinct[broken]!r:.60} contains a line break: is a quote left open there?"
        )
    return Column(name, distinct, index)


def seen_labels(votes: Sequence[Column], gold: Column | None) -> tuple[str, ...]:
    """Return the labels found, sorted; of several spellings, gold's is kept, else the most frequent."""
    counts: dict[str, float] = {}
    for column in (*votes, *([gold] if gold else [])):
        weight = 1e12 if column is gold else 1.0
        found, times = np.unique(column.positions[column.positions >= 0], return_counts=True)
        for position, count in zip(found, times, strict=True):
            spelling = column.distinct[position]
            counts[spelling] = counts.get(spelling, 0.0) + weight * float(count)
    best: dict[str, str] = {}
    for spelling in sorted(counts, key=lambda text: (-counts[text], text)):
        best.setdefault(spelling.casefold(), spelling)
    return tuple(sorted(best.values()))


def label_codes(column: Column, labels: Sequence[str], unknown: Unknown, row_names: Sequence[str]) -> Codes:
    """Return the label of every row as a code; an empty cell is an abstention.

    A label outside of `labels` is an error or an abstention, depending on `unknown`.
    """
    lookup = label_lookup(labels)
    table = np.array([lookup.get(text.casefold(), NOT_ASKED) for text in column.distinct] + [ABSTAINED], dtype=np.int8)
    codes = table[column.positions]
    outside = np.flatnonzero(codes == NOT_ASKED)
    if len(outside) and unknown == "error":
        row = outside[0]
        where = f"column {column.name!r}, row {row + 1} (id {row_names[row]!r})"
        error = unknown_label(column.distinct[column.positions[row]], labels, where)
        raise type(error)(f"{error}; unknown='abstain' counts such votes as abstentions")
    codes[outside] = ABSTAINED
    return codes


def texts_of(column: Column | None, rows: int) -> tuple[str | None, ...]:
    """Return the text of every row, None where it is empty or there is no such column."""
    if column is None:
        return (None,) * rows
    return tuple(column.distinct[position] if position >= 0 else None for position in column.positions)


def in_order(column: Column) -> tuple[list[str], Integers]:
    """Return the distinct texts in order of appearance, and for every row its position among them or −1."""
    used = column.positions[column.positions >= 0]
    _, first = np.unique(used, return_index=True)
    order = used[np.sort(first)]
    rank = np.full(len(column.distinct) + 1, -1, dtype=np.intp)
    rank[order] = np.arange(len(order))
    return [column.distinct[position] for position in order], rank[column.positions]
