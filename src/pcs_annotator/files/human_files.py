"""Tables for people to fill in: rows to label, and accepted rows to check."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from pcs_annotator.core.tabular import as_arrow, columns_of, text_column
from pcs_annotator.errors import TableError
from pcs_annotator.files.tables import write_table

SampleKind = Literal["at random", "informative", "for review"]
"""How a row was chosen for labelling; a promise can be based only on rows drawn at random."""

_KINDS: Mapping[str, SampleKind] = {name: name for name in get_args(SampleKind)}
RIGHT = ("right", "yes", "y", "true", "1", "ok", "correct")
WRONG = ("wrong", "no", "n", "false", "0", "incorrect")


class GivenGold(NamedTuple):
    """A gold label that a person gave; `row` is its row in the file, counted from 1."""

    row: int
    id: str
    label: str
    kind: SampleKind = "at random"


class AuditedLabel(NamedTuple):
    """An accepted row that a person checked; `label` is the one they saw."""

    row: int
    id: str
    label: str
    right: bool


def write_to_label(path: Path, rows: Iterable[tuple[str, str, SampleKind]]) -> None:
    """Write rows to label: id, text, an empty column `gold`, and how each was drawn."""
    listed = [(name, text, "", kind) for name, text, kind in rows]
    _write(path, ("id", "text", "gold", "drawn"), listed)


def write_gold(path: Path, gold: Iterable[GivenGold]) -> None:
    """Write gold labels so that `read_gold` reads them back."""
    _write(path, ("id", "gold", "drawn"), [(one.id, one.label, one.kind) for one in gold])


def read_gold(path: Path) -> list[GivenGold]:
    """Return the labels that a person filled in, without empty rows."""
    columns = _columns(path, ("id", "gold"))
    drawn = columns.get("drawn") or ["at random"] * len(columns["id"])
    found = []
    for row, (name, label, how) in enumerate(zip(columns["id"], columns["gold"], drawn, strict=True), 1):
        if not label:
            continue
        if how and how not in _KINDS:
            raise TableError(f"{path.name}, row {row}: drawn is {how!r}, must be one of {', '.join(_KINDS)}")
        found.append(GivenGold(row, name, label, _KINDS.get(how, "at random")))
    if not found:
        raise TableError(f"{path.name}: the column gold is empty: fill in some labels first")
    return found


def write_audit(path: Path, rows: Iterable[tuple[str, str, str]]) -> None:
    """Write accepted rows to check: id, text, label, and an empty column `verdict`."""
    _write(path, ("id", "text", "label", "verdict"), [(name, text, label, "") for name, text, label in rows])


def read_verdicts(path: Path) -> list[AuditedLabel]:
    """Return the rows that a person checked, without those that have no verdict."""
    columns = _columns(path, ("id", "label", "verdict"))
    found = []
    for row, (name, label, given) in enumerate(
        zip(columns["id"], columns["label"], columns["verdict"], strict=True), 1
    ):
        word = given.casefold()
        if word and word not in RIGHT + WRONG:
            raise TableError(f"{path.name}, row {row}: the verdict is {given!r}, must be right or wrong, or empty")
        if word:
            found.append(AuditedLabel(row, name, label, word in RIGHT))
    if not found:
        raise TableError(f"{path.name}: the column verdict is empty: write right or wrong into some rows first")
    return found


def _write(path: Path, names: Sequence[str], rows: Sequence[tuple[str, ...]]) -> None:
    import pyarrow as pa

    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    arrays = [pa.array(column, pa.string()) for column in columns]
    write_table(path, pa.table(arrays, names=list(names)))


def _columns(path: Path, needed: Sequence[str]) -> dict[str, list[str]]:
    found = columns_of(as_arrow(path))
    by_name = {name.strip().casefold(): name for name in found}
    for name in needed:
        if name not in by_name:
            raise TableError(f"{path.name} has no column {name!r}; there are {', '.join(found)}")
    texts = {short: text_column(name, found[name]).to_pylist() for short, name in by_name.items()}
    return {name: [(value or "").strip() for value in values] for name, values in texts.items()}
