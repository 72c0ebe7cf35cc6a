"""Columns `gold_<name>`: what several people said about the same rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from pcs_annotator.core.coders import Coders, most_common
from pcs_annotator.core.gold import UNLABELLED
from pcs_annotator.core.task import label_lookup, unknown_label

PREFIX = "gold_"


def coder_columns(names: Iterable[str]) -> tuple[str, ...]:
    """Return the columns that hold labels of one person each: those named `gold_<name>`."""
    return tuple(name for name in names if name.strip().casefold().startswith(PREFIX) and coder_of(name))


def coder_of(column: str) -> str:
    """Return the name of the person in the name of a column."""
    return column.strip()[len(PREFIX) :].strip()


def majority_labels(columns: Sequence[Sequence[str | None]]) -> list[str | None]:
    """Return for every row the label that more people gave than any other; None for a tie, and without labels.

    Without people there are no rows.
    """
    if not columns:
        return []
    spelled: dict[str, str] = {}
    for column in columns:
        for label in column:
            if label:
                spelled.setdefault(label.casefold(), label)
    codes = {folded: code for code, folded in enumerate(spelled)}
    found = most_common(np.array([[codes[one.casefold()] if one else UNLABELLED for one in row] for row in columns]))
    names = list(spelled.values())
    return [names[code] if code >= 0 else None for code in found.tolist()]


def coders_of(
    given: Mapping[str, Sequence[str | None]], labels: Sequence[str], ids: Sequence[str], table: str
) -> Coders | None:
    """Return what people said as codes; None if nobody is named.

    Args:
        given: Name of a person → the label of every row, None where it has none.
        labels: The label set.
        ids: The id of every row, for messages.
        table: What the table is called in messages.

    Raises:
        LabelError: A label is not in the label set.
    """
    if not given:
        return None
    lookup = label_lookup(labels)
    codes = np.full((len(given), len(ids)), UNLABELLED, dtype=np.int8)
    for line, (name, column) in enumerate(given.items()):
        for row, label in enumerate(column):
            if label and label.casefold() not in lookup:
                where = f"{table}, id {ids[row]!r}, column {PREFIX}{name}"
                raise unknown_label(label, labels, where)
            if label:
                codes[line, row] = lookup[label.casefold()]
    return Coders(names=tuple(given), codes=codes)
