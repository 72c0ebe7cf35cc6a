"""The user's tables: reading texts from them, and writing them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pcs_annotator.base.display import brief
from pcs_annotator.base.errors import TableError
from pcs_annotator.core.coders import coder_columns, coder_of, majority_labels
from pcs_annotator.core.task import Item
from pcs_annotator.tables.arrow import pa
from pcs_annotator.tables.table_writer import PLAIN, TableStyle, writing_table
from pcs_annotator.tables.tabular import columns_of, text_column

GOLD_NAMES = ("gold", "label", "labels")
TEXT_NAMES = ("text", "texts", "title", "headline", "sentence", "tweet", "review", "comment", "content", "body")


ROW_NUMBERS = "row"
"""Instead of the name of an ID column: rows are numbered, whatever columns there are, unless one has this name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Names of columns; None to look for the usual names."""

    text: str | None = None  # the column of texts
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

    __repr__ = brief


def chunk_of(table: pa.Table, source: str, columns: Columns, numbers: Sequence[int]) -> Dataset:
    """Return some rows of a table; those without an id get their number in the whole table."""
    texts, ids = (text_column(name, table[name]).to_pylist() if name else None for name in (columns.text, columns.id))
    names = item_ids([None] * len(table) if ids is None else ids, numbers)
    return Dataset(
        name=source,
        table=table,
        items=tuple(Item(id=name, text=text or "") for name, text in zip(names, texts or (), strict=True)),
        gold=gold_in(table, columns),
        columns=columns,
    )


def gold_in(table: pa.Table, columns: Columns) -> tuple[str | None, ...]:
    """Return the gold label of every row; nothing without a column of gold."""
    used = (columns.gold,) if columns.gold else columns.coders
    given = [_labels(name, table) for name in used]
    return tuple(given[0] if len(given) == 1 else majority_labels(given))


def _labels(name: str, table: pa.Table) -> list[str | None]:
    return [value.strip() or None if value else None for value in text_column(name, table[name]).to_pylist()]


def coder_labels(dataset: Dataset) -> dict[str, list[str | None]]:
    """Return person → the label of every row."""
    return {coder_of(name): _labels(name, dataset.table) for name in dataset.columns.coders}


def item_ids(names: Sequence[str | None], numbers: Sequence[int]) -> list[str]:
    """Return the ids of rows: those that they have, else their numbers."""
    return [name or str(number) for name, number in zip(names, numbers, strict=True)]


def refuse_header_row(table: pa.Table, source: str) -> None:
    """Raise if the first row repeats the names of the columns."""
    if all(str(column[0].as_py()).strip() == name.strip() for name, column in columns_of(table).items()):
        raise TableError(f"{source}: row 1 repeats the header: remove one of the two")


def find_columns(table: Mapping[str, object], source: str, columns: Columns) -> Columns:
    """Return which columns of a table hold texts, IDs and gold labels: those named, else those with usual names.

    If there are columns of several people but no column `gold`, the gold label is what most of them say.
    """
    coders = tuple(_column(table, name, (), source, "--coders") or name for name in columns.coders)
    if len({coder_of(name).casefold() for name in coders}) < len(coders):
        raise TableError(f"--coders names somebody twice: {', '.join(coders)}")
    coders = coders or coder_columns(table)
    numbered = columns.numbered or (columns.id == ROW_NUMBERS and ROW_NUMBERS not in table)
    return Columns(
        text=_find_text_column(table, columns.text, source),
        id=None if numbered else _column(table, columns.id, ("id",), source, "--id-column"),
        numbered=numbered,
        gold=_column(table, columns.gold, GOLD_NAMES[:1] if coders else GOLD_NAMES, source, "--gold-column"),
        coders=coders,
    )


def _find_text_column(columns: Mapping[str, object], given: str | None, table: str) -> str:
    name = _column(columns, given, TEXT_NAMES, table, "--text-column")
    if name is None and len(columns) == 1:
        name = next(iter(columns))
    if name is None:
        raise TableError(f"{table}: which column holds the texts? Name it with --text-column: {', '.join(columns)}")
    return name


def _column(
    columns: Mapping[str, object], given: str | None, usual: Sequence[str], table: str, option: str
) -> str | None:
    """Return the column that was named, else the first with a usual name, else None."""
    if given:
        if given not in columns:
            raise TableError(f"{table} has no column {given!r} ({option}); there are {', '.join(columns)}")
        return given
    by_name = {name.strip().casefold(): name for name in columns}
    return next((by_name[name] for name in usual if name in by_name), None)


def same_id(table: str, first: int, second: int, column: str | None, name: str) -> TableError:
    """Return the error for two rows with the same id."""
    numbers = "number the rows with --id-column row"
    if column == ROW_NUMBERS:
        numbers = f"rename the column {column!r} and {numbers}"
    return TableError(
        f"{table}, rows {first} and {second} have the same {column} {name!r}: rename one, use another column with "
        f"--id-column, or {numbers}"
    )


def write_table(path: Path | str, table: pa.Table, style: TableStyle = PLAIN) -> None:
    """Write a table whole or not at all; see `writing_table`."""
    with writing_table(path, style) as writer:
        writer.write(table)
