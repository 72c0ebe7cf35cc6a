"""The columns of a table of votes: labels and names as codes, and stated probabilities (`stated_<label>`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from pcs_annotator.core.arrays import Codes, Floats, Integers
from pcs_annotator.core.tabular import text_column
from pcs_annotator.core.task import check_labels, label_lookup, unknown_label
from pcs_annotator.core.vote import ABSTAINED, NOT_ASKED
from pcs_annotator.errors import TableError

if TYPE_CHECKING:
    import pyarrow as pa

Unknown = Literal["error", "abstain"]

PREFIX = "stated_"


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
    if not best:
        raise TableError("all votes are empty and no gold is given: name the labels yourself, or check the file")
    return check_labels(sorted(best.values()))


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


def read_stated(columns: Mapping[str, pa.ChunkedArray], labels: Sequence[str]) -> Floats | None:
    """Return the stated probabilities `[row, label]`, nan where empty; None without a `stated_<label>` column."""
    found = _by_code(columns, labels)
    if not found:
        return None
    rows = len(columns[next(iter(found.values()))])
    stated = np.full((rows, len(labels)), np.nan)
    for code, name in found.items():
        stated[:, code] = _probabilities(indexed(name, columns[name]))
    return stated


def write_stated(stated: Floats, labels: Sequence[str], empty_rows: int) -> dict[str, pa.Array]:
    """Return `[row, label]` as a column per label, empty where nothing is stated, with empty rows added at the end."""
    import pyarrow as pa

    padded = np.concatenate([stated, np.full((empty_rows, len(labels)), np.nan)])
    return {f"{PREFIX}{label}": pa.array(padded[:, code], from_pandas=True) for code, label in enumerate(labels)}


def with_stated_labels(seen: Sequence[str], columns: Iterable[str]) -> tuple[str, ...]:
    """Return the labels seen in votes and those that only a `stated_<label>` column names, sorted."""
    columns = list(columns)
    if not _by_code(columns, seen):
        return tuple(seen)  # a column such as `stated_at` belongs to the user
    known = label_lookup(seen)
    named = (name.removeprefix(PREFIX) for name in columns if name.startswith(PREFIX))
    return check_labels(sorted([*seen, *(label for label in named if label.casefold() not in known)]))


def _by_code(columns: Iterable[str], labels: Sequence[str]) -> dict[int, str]:
    lookup = label_lookup(labels)
    named = ((name.removeprefix(PREFIX).casefold(), name) for name in columns if name.startswith(PREFIX))
    return {lookup[label]: name for label, name in named if label in lookup}


def _probabilities(column: Column) -> Floats:
    values = np.array([*map(_probability, column.distinct), np.nan])[column.positions]
    wrong = np.flatnonzero(np.isnan(values) & (column.positions >= 0))
    if len(wrong):
        text = column.distinct[column.positions[wrong[0]]]
        raise TableError(
            f"column {column.name!r}, row {wrong[0] + 1}: {text!r:.60} is not a probability: "
            "write a number from 0 to 1, or leave the cell empty"
        )
    return values


def _probability(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return np.nan
    return value if 0 <= value <= 1 else np.nan
