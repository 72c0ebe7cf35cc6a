"""Tables that tell models what labels mean: examples, and a codebook with a row per label."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from pcs_annotator.base.errors import TableError
from pcs_annotator.tables.human_files import numbered_rows

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
