"""Tables that people fill in: rows to label, safe to open in a spreadsheet, examples, and a codebook."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, get_args

from pcs_annotator.base.errors import TableError
from pcs_annotator.base.text import did_you_mean, row_number
from pcs_annotator.core.events import SampleKind
from pcs_annotator.tables.arrow import columns_of, pa, text_column
from pcs_annotator.tables.chunks import Columns
from pcs_annotator.tables.find import as_arrow
from pcs_annotator.tables.source_files import AS_FOUND, Reading
from pcs_annotator.tables.workbook import original_cell
from pcs_annotator.tables.write import OutputPolicy, write_table

_KINDS: Mapping[str, SampleKind] = {name: name for name in get_args(SampleKind)}
_EXAMPLE = re.compile(r"examples?[ _]?\d*")
DRAWN = ("id", "drawn", "text_hash", "probability", "stratum", "round")
_CODEBOOK_COLUMNS = ("variable", "kind", "label", "definition", "meaning", "instruction")


class GivenGold(NamedTuple):
    """A gold label that a person gave."""

    row: int  # in the file, counted from 1
    id: str
    label: str
    kind: SampleKind = "by a person"
    text: str = ""  # what was labelled; empty if the file does not say


def write_to_label(path: Path, rows: Iterable[tuple[str, str, SampleKind]]) -> None:
    """Write rows to label: id, text, an empty column `gold`, and how each was drawn."""
    _write(path, ("id", "text", "gold", "drawn"), [(name, text, "", kind) for name, text, kind in rows])


def read_gold(path: Path, used: Columns | None = None, reading: Reading = AS_FOUND) -> list[GivenGold]:
    """Return the labels that a person filled in, without empty rows.

    The file has the columns `id` and `gold`, or the columns of the data (`used`). If the rows of the data are numbered,
    a file with their texts needs no ids.
    """
    columns = _columns(path, (), reading)
    _add_columns_of_data(columns, used or Columns())
    _require(path, ("id", "gold"), columns)
    gold = []
    for number, row in enumerate(_rows(columns), row_number(path.name, 1)):
        drawn = row.get("drawn", "")
        if row["gold"] and drawn and drawn not in _KINDS:
            raise TableError(f"{path.name}, row {number}: drawn is {drawn!r}, must be one of {', '.join(_KINDS)}")
        if row["gold"]:
            gold.append(
                GivenGold(number, row["id"], row["gold"], _KINDS.get(drawn, "by a person"), row.get("text", ""))
            )
    if not gold:
        raise TableError(f"{path.name}: the column gold is empty: fill in some labels first")
    return gold


def _add_columns_of_data(columns: dict[str, list[str]], used: Columns) -> None:
    """Add ids, gold and texts from columns that are called as in the data."""
    text, name, gold = (column and column.strip().casefold() for column in (used.text, used.id, used.gold))
    if text in columns:
        columns["text"] = columns[text]
    if gold in columns:
        columns.setdefault("gold", columns[gold])
    if name in columns:
        columns.setdefault("id", columns[name])
    elif used.text and not used.id and "text" in columns:
        columns.setdefault("id", [str(row) for row in range(1, len(columns["text"]) + 1)])


def filled_rows(path: Path, column: str) -> list[tuple[str, str]]:
    """Return id and value of the rows of a table in which a person has filled in a column; none without the table."""
    rows = _rows(_columns(path, ("id", column))) if path.exists() else ()
    return [(row["id"], row[column]) for row in rows if row[column]]


def _write(path: Path, names: Sequence[str], rows: Sequence[tuple[str, ...]]) -> None:
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    arrays = [pa.array(column, pa.string()) for column in columns]
    write_table(path, pa.table(arrays, names=list(names)), OutputPolicy(spreadsheet_safe=True))


def _require(path: Path, needed: Iterable[str], columns: Mapping[str, object]) -> None:
    for name in needed:
        if name not in columns:
            alike = did_you_mean(name, columns)
            raise TableError(f"{path.name} has no column {name!r}; {alike}there are {', '.join(columns)}")


def _columns(path: Path, needed: Iterable[str], reading: Reading = AS_FOUND) -> dict[str, list[str]]:
    columns = columns_of(as_arrow(path, reading))
    by_name = {name.strip().casefold(): name for name in columns}
    _require(path, needed, by_name)
    texts = {short: text_column(name, columns[name]).to_pylist() for short, name in by_name.items()}
    return {name: [original_cell((value or "").strip()) for value in values] for name, values in texts.items()}


def _rows(columns: Mapping[str, Sequence[str]]) -> Iterator[dict[str, str]]:
    return (dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True))


def _numbered_rows(path: Path, needed: Sequence[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the rows of a table that are not empty, each with its file and number for messages."""
    for number, row in enumerate(_rows(_columns(path, needed)), row_number(path.name, 1)):
        if any(row.values()):
            yield f"{path.name}, row {number}", row


class Codebook(NamedTuple):
    """What a codebook says."""

    labels: tuple[str, ...]
    meanings: dict[str, str]  # label → what it means
    examples: tuple[dict[str, str], ...]  # texts with their labels
    instruction: str  # empty if it has none
    kind: str = ""  # of the variable; empty if it has none


def read_examples(path: Path) -> dict[str, dict[str, str]]:
    """Return the rows of a table with the columns `text`, `label` and perhaps `why`, by where they are."""
    examples = {}
    for where, row in _numbered_rows(path, ("text", "label")):
        lacking = next((name for name in ("text", "label") if not row[name]), None)
        if lacking:
            raise TableError(f"{where}: the example has no {lacking}: write one, or remove the row")
        examples[where] = {name: row[name] for name in ("text", "label", "why") if row.get(name)}
    if not examples:
        raise TableError(f"{path.name} has no examples: write texts and labels into it, or leave out --examples")
    return examples


def read_codebook(path: Path) -> dict[str, Codebook]:
    """Return what a codebook says of every variable: of the only one, with the name "", if it has no such column."""
    variables: dict[str, list[tuple[str, dict[str, str]]]] = {}
    for where, row in _numbered_rows(path, ("label",)):
        for name in row:
            if name not in _CODEBOOK_COLUMNS and not _EXAMPLE.fullmatch(name):
                usual = "variable, kind, label, definition (or meaning), example, example 2, …, instruction"
                problem = f"has a column {name!r}, which no codebook has ({usual})"
                raise TableError(f"{path.name} {problem}: rename or remove it")
        if not row.get("variable", "-"):
            raise TableError(f"{where}: there is no variable: write it, or remove the column")
        variables.setdefault(row.get("variable", ""), []).append((where, row))
    if not variables:
        raise TableError(f"{path.name} has no labels: write one into each row, or leave out --codebook")
    return {variable: _codebook(rows) for variable, rows in variables.items()}


def _codebook(rows: Sequence[tuple[str, dict[str, str]]]) -> Codebook:
    labels: dict[str, str] = {}  # in lower case → where
    examples: list[dict[str, str]] = []
    for where, row in rows:
        label = row["label"]
        if not label:
            raise TableError(f"{where}: there is no label: write it, or remove the row")
        first = labels.setdefault(label.casefold(), where)
        if first != where:
            remedy = "keep one row per label; more examples go into columns example 2, example 3, …"
            raise TableError(f"{where}: the label {label!r} is in {first} too: {remedy}")
        examples += [{"text": row[name], "label": label} for name in row if row[name] and _EXAMPLE.fullmatch(name)]
    meanings = {row["label"]: row.get("definition") or row.get("meaning") or "" for _, row in rows}
    return Codebook(
        labels=tuple(row["label"] for _, row in rows),
        meanings={label: meaning for label, meaning in meanings.items() if meaning},
        examples=tuple(examples),
        instruction=_same_value(rows, "instruction"),
        kind=_same_value(rows, "kind"),
    )


def _same_value(rows: Sequence[tuple[str, dict[str, str]]], column: str) -> str:
    """Return what all rows that fill in a column say there; empty if none does."""
    values: dict[str, str] = {}
    for where, row in rows:
        if row.get(column):
            values.setdefault(row[column], where)
    if len(values) > 1:
        raise TableError(f"{' and '.join([*values.values()][:2])} have different {column}s: keep one of them")
    return next(iter(values), "")
