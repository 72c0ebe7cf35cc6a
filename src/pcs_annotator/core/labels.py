"""Closed sets of labels: matched whatever their capitals, exactly otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pcs_annotator.errors import LabelError

MAX_LABELS = 127  # codes are int8


def check_labels(labels: Iterable[str]) -> tuple[str, ...]:
    """Return the labels as a tuple after making sure that no two can be confused."""
    if isinstance(labels, str):
        raise LabelError(f"labels must be a list of names, not the single text {labels!r}")
    checked = tuple(labels)
    if not checked:
        raise LabelError("no labels given: name at least one")
    if len(checked) > MAX_LABELS:
        raise LabelError(f"{len(checked)} labels given, at most {MAX_LABELS} are possible: merge or split the task")
    seen: dict[str, str] = {}
    for label in checked:
        if not isinstance(label, str) or not label.strip():
            raise LabelError(f"label {label!r} is not a name: labels are non-empty texts")
        twin = seen.get(label.casefold())
        if twin == label:
            raise LabelError(f"label {label!r} is given twice: keep one of them")
        if twin is not None:
            raise LabelError(f"labels {twin!r} and {label!r} differ only in capitals: keep one of them")
        seen[label.casefold()] = label
    return checked


def label_lookup(labels: Sequence[str]) -> dict[str, int]:
    """Return case-folded label → position."""
    return {label.casefold(): position for position, label in enumerate(labels)}


def unknown_label(value: str, labels: Sequence[str], where: str) -> LabelError:
    """Return the error for a label outside the set, with the place and the likely cause."""
    spaced = label_lookup(labels).get(value.strip().casefold())
    hint = f" (it has spaces around {labels[spaced]!r}: remove them)" if spaced is not None else ""
    known = ", ".join(repr(label) for label in labels)
    return LabelError(f"{where}: {value!r} is none of the labels {known}{hint}")
