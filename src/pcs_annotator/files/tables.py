"""The user's tables: texts read from them, and our columns added to them."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pcs_annotator.core.item import Item
from pcs_annotator.core.outcome import Outcome
from pcs_annotator.core.tabular import PARQUET, as_arrow, columns_of
from pcs_annotator.core.tabular import text_column as text_of
from pcs_annotator.errors import TableError
from pcs_annotator.files.runs import atomic_path

if TYPE_CHECKING:
    import pyarrow as pa

SCORE_DECIMALS = 6


def read_items(path: Path, text_column: str | None = None, id_column: str | None = None) -> list[Item]:
    """Return the texts of a file, in its order.

    Without a name, the texts are in the column `text`, or in the only column there is; without ids, rows are numbered
    from 1. A row without a text is an item with an empty one, so that nothing is lost.
    """
    columns = columns_of(as_arrow(path))
    name = _named(columns, text_column, "text", path, "--text-column")
    if name is None:
        if len(columns) > 1:
            raise TableError(
                f"{path.name} has no column 'text'; there are {', '.join(columns)}: say which with --text-column"
            )
        name = next(iter(columns))
    texts = [text or "" for text in text_of(name, columns[name]).to_pylist()]
    id_name = _named(columns, id_column, "id", path, "--id-column")
    ids = text_of(id_name, columns[id_name]).to_pylist() if id_name else []
    return [
        Item(id=str(row) if not ids or ids[row - 1] is None else ids[row - 1], text=text)
        for row, text in enumerate(texts, 1)
    ]


def _named(columns: Mapping[str, object], given: str | None, usual: str, path: Path, option: str) -> str | None:
    """Return the column that was asked for, else the usual one, else None."""
    if given is not None and given not in columns:
        raise TableError(f"{path.name} has no column {given!r} ({option}); there are {', '.join(columns)}")
    return given if given is not None else usual if usual in columns else None


def with_outcomes(table: object, outcomes: Iterable[Outcome], labels: Sequence[str]) -> pa.Table:
    """Return the user's columns, then label, confidence, decision, reason and `pcs_<label>` for every label.

    A table with several rows per item gives way to one with an `id` column only. A column of ours whose name the user
    has already taken is prefixed with `pcs_`.
    """
    import pyarrow as pa

    given = list(outcomes)
    arrow = as_arrow(table)
    if len(arrow) != len(given):
        arrow = pa.table({"id": pa.array([outcome.id for outcome in given])})
    columns: dict[str, pa.Array] = {
        "label": pa.array([outcome.label for outcome in given], pa.string()),
        "confidence": pa.array([_rounded(outcome.confidence) for outcome in given], pa.float64()),
        "decision": pa.array([outcome.decision for outcome in given], pa.string()),
        "reason": pa.array([outcome.reason for outcome in given], pa.string()),
    }
    for label in labels:
        columns[f"pcs_{label}"] = pa.array([_rounded(outcome.scores[label]) for outcome in given], pa.float64())
    for name, column in columns.items():
        free = name
        while free in arrow.column_names:
            free = f"pcs_{free}"
        arrow = arrow.append_column(free, column)
    return arrow


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, SCORE_DECIMALS)


def write_table(path: Path, table: pa.Table) -> None:
    """Write a table as Parquet or CSV, by the ending of the name; whole or not at all."""
    with atomic_path(path) as temporary:
        if path.suffix.lower() in PARQUET:
            from pyarrow import parquet

            parquet.write_table(table, temporary)
        else:
            _write_csv(temporary, table)


def _write_csv(path: Path, table: pa.Table) -> None:
    # pyarrow would put every text in quotes
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table.column_names)
        for batch in table.to_batches():
            writer.writerows(zip(*(column.to_pylist() for column in batch.columns), strict=True))
