"""Tables for people to fill in, safe to open in a spreadsheet: rows to label, and accepted rows to check."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from pcs_annotator.base.errors import TableError
from pcs_annotator.core.coders import PREFIX, coder_columns, coder_of, majority_labels
from pcs_annotator.core.gold import cell_key
from pcs_annotator.tables.table_files import AS_FOUND, Reading
from pcs_annotator.tables.table_writer import TableStyle
from pcs_annotator.tables.tables import Columns, write_table
from pcs_annotator.tables.tabular import as_arrow, columns_of, text_column
from pcs_annotator.tables.workbook import original_cell

SampleKind = Literal["at random", "with probability", "informative", "for review", "for audit", "by a person"]
"""How a row was chosen for labelling; a promise can be based only on rows drawn at random."""

_KINDS: Mapping[str, SampleKind] = {name: name for name in get_args(SampleKind)}
RIGHT = ("right", "yes", "y", "true", "1", "ok", "correct")
WRONG = ("wrong", "no", "n", "false", "0", "incorrect")


class GivenGold(NamedTuple):
    """A gold label that a person gave.

    Attributes:
        row: Its row in the file, counted from 1.
        id: The item.
        label: The label.
        kind: How the row was chosen.
        text: The text that was labelled; empty if the file has none.
        text_hash: Its hash; empty if the file has none.
    """

    row: int
    id: str
    label: str
    kind: SampleKind = "by a person"
    text: str = ""
    text_hash: str = ""


class AuditedLabel(NamedTuple):
    """An accepted row that a person checked; `label` and `text` are what they saw."""

    row: int
    id: str
    label: str
    right: bool
    text: str = ""


class Drawn(NamedTuple):
    """A row that was written out for a person.

    Attributes:
        id: The row.
        kind: How it was chosen.
        text_hash: Hash of its text.
        probability: How probable its round was to draw it; None if that is the same for all rows, or unknown.
        stratum: From which part of the rows its round drew it.
        round: How many rounds with probabilities there were before.
    """

    id: str
    kind: SampleKind
    text_hash: str
    probability: float | None = None
    stratum: str = ""
    round: int = 0


def write_to_label(path: Path, rows: Iterable[tuple[str, str, SampleKind]]) -> None:
    """Write rows to label: id, text, an empty column `gold`, and how each was drawn."""
    listed = [(name, text, "", kind) for name, text, kind in rows]
    _write(path, ("id", "text", "gold", "drawn"), listed)


def write_gold(path: Path, gold: Iterable[GivenGold]) -> None:
    """Write gold labels with the hashes of their texts, so that `read_gold` reads them back."""
    rows = [(one.id, one.label, one.kind, one.text_hash) for one in gold]
    _write(path, ("id", "gold", "drawn", "text_hash"), rows)


def read_gold(path: Path, used: Columns | None = None, reading: Reading = AS_FOUND) -> list[GivenGold]:
    """Return the labels that a person filled in, without empty rows.

    The file has the columns `id` and `gold`, or the columns of the data (`used`). If the rows of the data are numbered,
    a file with their texts needs no ids. If the file has columns `gold_<name>` but no column `gold`, the label is what
    most of these people say.
    """
    columns = _columns(path, (), reading)
    texts = _add_columns_of_data(columns, used or Columns())
    _require(path, ("id",), columns)
    coders = [columns[name] for name in coder_columns(columns)]
    if "gold" not in columns and coders:
        columns["gold"] = [label or "" for label in majority_labels(coders)]
    _require(path, ("gold",), columns)
    nothing = [""] * len(columns["id"])
    rows = zip(
        columns["id"],
        columns["gold"],
        columns.get("drawn") or nothing,
        texts or nothing,
        columns.get("text_hash") or nothing,
        strict=True,
    )
    found = []
    for row, (name, label, how, text, text_hash) in enumerate(rows, 1):
        if not label:
            continue
        if how and how not in _KINDS:
            raise TableError(f"{path.name}, row {row}: drawn is {how!r}, must be one of {', '.join(_KINDS)}")
        found.append(GivenGold(row, name, label, _KINDS.get(how, "by a person"), text, text_hash))
    if not found:
        raise TableError(f"{path.name}: the column gold is empty: fill in some labels first")
    return found


def _add_columns_of_data(columns: dict[str, list[str]], used: Columns) -> list[str] | None:
    """Add ids and gold from columns that are called as in the data, and return the texts, if there are any."""
    text, name, gold = (one and one.strip().casefold() for one in (used.text, used.id, used.gold))
    texts = columns.get(text or "text") or columns.get("text")
    if gold in columns and "verdict" not in columns:  # in an audit, `label` is what the machine says
        columns.setdefault("gold", columns[gold])
    if name in columns:
        columns.setdefault("id", columns[name])
    elif used.text and not used.id and texts:
        columns.setdefault("id", [str(row) for row in range(1, len(texts) + 1)])
    return texts


class GivenByCoders(NamedTuple):
    """What several people said about a row: their names and labels, and the text or its hash, where known."""

    id: str
    labels: Mapping[str, str]
    text: str = ""
    text_hash: str = ""


def write_coders(path: Path, given: Sequence[GivenByCoders]) -> None:
    """Write what several people said, so that `read_coders` reads it back."""
    names = list(dict.fromkeys(name for one in given for name in one.labels))
    rows = [(one.id, one.text_hash, *(one.labels.get(name, "") for name in names)) for one in given]
    _write(path, ("id", "text_hash", *(f"{PREFIX}{name}" for name in names)), rows)


def read_coders(path: Path, text_column: str = "text", reading: Reading = AS_FOUND) -> list[GivenByCoders]:
    """Return what several people said in the columns `gold_<name>` of a file; nothing without such columns."""
    columns = _columns(path, ("id",), reading)
    coders = {coder_of(name): columns[name] for name in coder_columns(columns)}
    nothing = [""] * len(columns["id"])
    texts = columns.get(text_column.strip().casefold()) or columns.get("text") or nothing
    rows = zip(columns["id"], texts, columns.get("text_hash") or nothing, *coders.values(), strict=True)
    found = [GivenByCoders(name, _filled(coders, given), text, hashed) for name, text, hashed, *given in rows]
    return [one for one in found if one.labels]


def _filled(names: Iterable[str], given: Iterable[str]) -> dict[str, str]:
    return {name: label for name, label in zip(names, given, strict=True) if label}


def write_drawn(path: Path, drawn: Iterable[Drawn]) -> None:
    """Write which rows were written out for people, and how they were chosen."""
    rows = [(one.id, one.kind, one.text_hash, _number(one.probability), one.stratum, str(one.round)) for one in drawn]
    _write(path, ("id", "drawn", "text_hash", "probability", "stratum", "round"), rows)


def read_drawn(path: Path) -> list[Drawn]:
    """Return what `write_drawn` wrote."""
    columns = _columns(path, ("id", "drawn", "text_hash"))
    nothing = [""] * len(columns["id"])  # an earlier version wrote fewer columns
    parts = (columns.get(name) or nothing for name in ("id", "drawn", "text_hash", "probability", "stratum", "round"))
    return [
        Drawn(name, _KINDS[how], text_hash, float(chance) if chance else None, stratum, int(turn or 0))
        for name, how, text_hash, chance, stratum, turn in zip(*parts, strict=True)
        if how in _KINDS
    ]


def _number(value: float | None) -> str:
    return "" if value is None else repr(value)


def filled_rows(path: Path, column: str) -> list[tuple[str, str]]:
    """Return id and value of the rows of a table in which a person has filled in a column; none without the table."""
    if not path.exists():
        return []
    columns = _columns(path, ("id", column))
    return [(name, value) for name, value in zip(columns["id"], columns[column], strict=True) if value]


def write_audit(path: Path, rows: Iterable[tuple[str, str, str]]) -> None:
    """Write accepted rows to check: id, text, label, and an empty column `verdict`."""
    _write(path, ("id", "text", "label", "verdict"), [(name, text, label, "") for name, text, label in rows])


def read_verdicts(path: Path, reading: Reading = AS_FOUND) -> list[AuditedLabel]:
    """Return the rows that a person checked, without those that have no verdict."""
    columns = _columns(path, ("id", "label", "verdict"), reading)
    texts = columns.get("text") or [""] * len(columns["id"])
    rows = zip(columns["id"], columns["label"], columns["verdict"], texts, strict=True)
    found = []
    for row, (name, label, given, text) in enumerate(rows, 1):
        word = cell_key(given)
        if word and word not in RIGHT + WRONG:
            raise TableError(f"{path.name}, row {row}: the verdict is {given!r}, must be right or wrong, or empty")
        if word:
            found.append(AuditedLabel(row, name, label, word in RIGHT, text))
    if not found:
        raise TableError(f"{path.name}: the column verdict is empty: write right or wrong into some rows first")
    return found


def _write(path: Path, names: Sequence[str], rows: Sequence[tuple[str, ...]]) -> None:
    import pyarrow as pa

    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    arrays = [pa.array(column, pa.string()) for column in columns]
    write_table(path, pa.table(arrays, names=list(names)), TableStyle(spreadsheet_safe=True))


def _require(path: Path, needed: Sequence[str], columns: Iterable[str]) -> None:
    there = list(columns)
    for name in needed:
        if name not in there:
            raise TableError(f"{path.name} has no column {name!r}; there are {', '.join(there)}")


def _columns(path: Path, needed: Sequence[str], reading: Reading = AS_FOUND) -> dict[str, list[str]]:
    found = columns_of(as_arrow(path, reading))
    by_name = {name.strip().casefold(): name for name in found}
    _require(path, needed, by_name)
    texts = {short: text_column(name, found[name]).to_pylist() for short, name in by_name.items()}
    return {name: [original_cell((value or "").strip()) for value in values] for name, values in texts.items()}
