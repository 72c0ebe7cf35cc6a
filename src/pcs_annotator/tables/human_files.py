"""Tables that people fill in: rows to label, safe to open in a spreadsheet, examples, and a codebook."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from pcs_annotator.base.errors import TableError
from pcs_annotator.base.text import row_number
from pcs_annotator.core.coders import PREFIX, coder_columns, coder_of, majority_labels
from pcs_annotator.tables.arrow import pa
from pcs_annotator.tables.table_files import AS_FOUND, Reading
from pcs_annotator.tables.table_writer import TableStyle
from pcs_annotator.tables.tables import Columns, write_table
from pcs_annotator.tables.tabular import as_arrow, columns_of, text_column
from pcs_annotator.tables.workbook import original_cell

SampleKind = Literal["at random", "with probability", "informative", "for review", "for audit", "by a person"]
"""How a row was chosen for labelling; a promise can be based only on rows drawn at random.

The two kinds `informative` and `for audit` are those of earlier versions: no row is drawn so now.
"""

_KINDS: Mapping[str, SampleKind] = {name: name for name in get_args(SampleKind)}


class GivenGold(NamedTuple):
    """A gold label that a person gave."""

    row: int  # in the file, counted from 1
    id: str
    label: str
    kind: SampleKind = "by a person"
    text: str = ""  # what was labelled; empty if the file does not say
    text_hash: str = ""


class DrawnRow(NamedTuple):
    """A row that was written out for a person."""

    id: str
    kind: SampleKind
    text_hash: str
    probability: float | None = None  # of its round to draw it; None if that is the same for all rows, or unknown
    stratum: str = ""  # from which part of the rows its round drew it
    round: int = 0  # how many rounds with probabilities there were before


class GivenByCoders(NamedTuple):
    """What several people said about a row: their names and labels, and the text or its hash, where known."""

    id: str
    labels: Mapping[str, str]
    text: str = ""
    text_hash: str = ""


def write_to_label(path: Path, rows: Iterable[tuple[str, str, SampleKind]]) -> None:
    """Write rows to label: id, text, an empty column `gold`, and how each was drawn."""
    _write(path, ("id", "text", "gold", "drawn"), [(name, text, "", kind) for name, text, kind in rows])


def write_gold(path: Path, gold: Iterable[GivenGold]) -> None:
    """Write gold labels with the hashes of their texts, so that `read_gold` reads them back."""
    rows = [(one.id, one.label, one.kind, one.text_hash) for one in gold]
    _write(path, ("id", "gold", "drawn", "text_hash"), rows)


def read_gold(path: Path, used: Columns | None = None, reading: Reading = AS_FOUND) -> list[GivenGold]:
    """Return the labels that a person filled in, without empty rows.

    The file has the columns `id` and `gold`, or the columns of the data (`used`). If the rows of the data are numbered,
    a file with their texts needs no ids. If the file has columns of several people but no column `gold`, the label is
    what most of them say.
    """
    columns = _columns(path, (), reading)
    _add_columns_of_data(columns, used or Columns())
    _require(path, ("id",), columns)
    coders = [columns[name] for name in _coders_in(columns, used)]
    if "gold" not in columns and coders:
        columns["gold"] = [label or "" for label in majority_labels(coders)]
    _require(path, ("gold",), columns)
    found = []
    for row, one in enumerate(_rows(columns), row_number(path.name, 1)):
        how = one.get("drawn", "")
        if not one["gold"]:
            continue
        if how and how not in _KINDS:
            raise TableError(f"{path.name}, row {row}: drawn is {how!r}, must be one of {', '.join(_KINDS)}")
        given = one.get("text", ""), one.get("text_hash", "")
        found.append(GivenGold(row, one["id"], one["gold"], _KINDS.get(how, "by a person"), *given))
    if not found:
        raise TableError(f"{path.name}: the column gold is empty: fill in some labels first")
    return found


def _add_columns_of_data(columns: dict[str, list[str]], used: Columns) -> None:
    """Add ids, gold and texts from columns that are called as in the data."""
    text, name, gold = (one and one.strip().casefold() for one in (used.text, used.id, used.gold))
    if text in columns:
        columns["text"] = columns[text]
    if gold in columns:
        columns.setdefault("gold", columns[gold])
    if name in columns:
        columns.setdefault("id", columns[name])
    elif used.text and not used.id and "text" in columns:
        columns.setdefault("id", [str(row) for row in range(1, len(columns["text"]) + 1)])


def _coders_in(columns: Mapping[str, object], used: Columns | None) -> list[str]:
    """Return the columns that hold labels of one person each."""
    of_data = [name.strip().casefold() for name in (used.coders if used else ())]
    return list(dict.fromkeys([*coder_columns(columns), *(name for name in of_data if name in columns)]))


def write_coders(path: Path, given: Sequence[GivenByCoders]) -> None:
    """Write what several people said, so that `read_coders` reads it back."""
    names = list(dict.fromkeys(name for one in given for name in one.labels))
    rows = [(one.id, one.text_hash, *(one.labels.get(name, "") for name in names)) for one in given]
    _write(path, ("id", "text_hash", *(f"{PREFIX}{name}" for name in names)), rows)


def read_coders(path: Path, used: Columns | None = None, reading: Reading = AS_FOUND) -> list[GivenByCoders]:
    """Return what several people said in a file: in columns `gold_<name>`, and in those of the data."""
    columns = _columns(path, (), reading)
    _add_columns_of_data(columns, used or Columns())
    names = _coders_in(columns, used)
    _require(path, ("id",) if names else (), columns)
    found = [
        GivenByCoders(
            one["id"],
            {coder_of(name): one[name] for name in names if one[name]},
            one.get("text", ""),
            one.get("text_hash", ""),
        )
        for one in (_rows(columns) if names else ())
    ]
    return [one for one in found if one.labels]


def write_drawn(path: Path, drawn: Iterable[DrawnRow]) -> None:
    """Write which rows were written out for people, and how they were chosen."""
    rows = [
        (*one[:3], "" if one.probability is None else repr(one.probability), one.stratum, str(one.round))
        for one in drawn
    ]
    _write(path, ("id", "drawn", "text_hash", "probability", "stratum", "round"), rows)


def read_drawn(path: Path) -> list[DrawnRow]:
    """Return what `write_drawn` wrote; an earlier version wrote fewer columns. Without a file, nothing was drawn."""
    return [
        DrawnRow(
            one["id"],
            _KINDS[one["drawn"]],
            one["text_hash"],
            float(one["probability"]) if one.get("probability") else None,
            one.get("stratum", ""),
            int(one.get("round") or 0),
        )
        for one in (_rows(_columns(path, ("id", "drawn", "text_hash"))) if path.exists() else ())
        if one["drawn"] in _KINDS
    ]


def filled_rows(path: Path, column: str) -> list[tuple[str, str]]:
    """Return id and value of the rows of a table in which a person has filled in a column; none without the table."""
    rows = _rows(_columns(path, ("id", column))) if path.exists() else ()
    return [(one["id"], one[column]) for one in rows if one[column]]


def numbered_rows(path: Path, needed: Sequence[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the rows of a table that are not empty, each with its file and number for messages."""
    for number, row in enumerate(_rows(_columns(path, needed)), row_number(path.name, 1)):
        if any(row.values()):
            yield f"{path.name}, row {number}", row


def _write(path: Path, names: Sequence[str], rows: Sequence[tuple[str, ...]]) -> None:
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    arrays = [pa.array(column, pa.string()) for column in columns]
    write_table(path, pa.table(arrays, names=list(names)), TableStyle(spreadsheet_safe=True))


def require_columns(path: Path, names: Iterable[str], reading: Reading = AS_FOUND) -> None:
    """Raise if a file lacks one of these columns."""
    _columns(path, [name.strip().casefold() for name in names], reading)


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


def _rows(columns: Mapping[str, Sequence[str]]) -> Iterator[dict[str, str]]:
    return (dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True))


_EXAMPLE = re.compile(r"examples?[ _]?\d*")
_OTHERS = ("variable", "kind", "label", "definition", "meaning", "instruction")


class Codebook(NamedTuple):
    """What a codebook says."""

    labels: tuple[str, ...]
    meanings: dict[str, str]  # label → what it means
    examples: tuple[dict[str, str], ...]  # texts with their labels
    instruction: str  # empty if it has none
    kind: str = ""  # of the variable; empty if it has none


def read_examples(path: Path) -> dict[str, dict[str, str]]:
    """Return the rows of a table with the columns `text`, `label` and perhaps `why`, by where they are."""
    found = {}
    for where, row in numbered_rows(path, ("text", "label")):
        lacking = next((name for name in ("text", "label") if not row[name]), None)
        if lacking:
            raise TableError(f"{where}: the example has no {lacking}: write one, or remove the row")
        found[where] = {name: row[name] for name in ("text", "label", "why") if row.get(name)}
    if not found:
        raise TableError(f"{path.name} has no examples: write texts and labels into it, or leave out --examples")
    return found


def read_codebook(path: Path) -> dict[str, Codebook]:
    """Return what a codebook says of every variable: of the only one, with the name "", if it has no such column."""
    rows: dict[str, list[tuple[str, dict[str, str]]]] = {}
    for where, row in numbered_rows(path, ("label",)):
        _refuse_other_columns(path, row)
        if not row.get("variable", "-"):
            raise TableError(f"{where}: there is no variable: write it, or remove the column")
        rows.setdefault(row.get("variable", ""), []).append((where, row))
    if not rows:
        raise TableError(f"{path.name} has no labels: write one into each row, or leave out --codebook")
    return {variable: _codebook(some) for variable, some in rows.items()}


def _codebook(rows: Iterable[tuple[str, dict[str, str]]]) -> Codebook:
    labels: dict[str, str] = {}
    meanings, examples = dict[str, str](), list[dict[str, str]]()
    said: dict[str, dict[str, str]] = {"instruction": {}, "kind": {}}
    for where, row in rows:
        label, meaning = row["label"], row.get("definition") or row.get("meaning")
        if not label:
            raise TableError(f"{where}: there is no label: write it, or remove the row")
        if other := next((at for at, one in labels.items() if one.casefold() == label.casefold()), ""):
            remedy = "keep one row per label; more examples go into columns example 2, example 3, …"
            raise TableError(f"{where}: the label {label!r} is in {other} too: {remedy}")
        labels[where] = label
        if meaning:
            meanings[label] = meaning
        for column, values in said.items():
            if told := row.get(column):
                values.setdefault(told, where)
        examples += [{"text": row[name], "label": label} for name in row if row[name] and _EXAMPLE.fullmatch(name)]
    for column, values in said.items():
        if len(values) > 1:
            places = " and ".join([*values.values()][:2])
            raise TableError(f"{places} have different {column}s: keep one of them")
    instruction, kind = (next(iter(values), "") for values in said.values())
    return Codebook(tuple(labels.values()), meanings, tuple(examples), instruction, kind)


def _refuse_other_columns(path: Path, names: dict[str, str]) -> None:
    for name in names:
        if name not in _OTHERS and not _EXAMPLE.fullmatch(name):
            known = "variable, kind, label, definition (or meaning), example, example 2, …, instruction"
            raise TableError(f"{path.name} has a column {name!r}, which no codebook has ({known}): rename or remove it")
