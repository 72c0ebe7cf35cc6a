"""Reading scikit-learn's X and y: texts, and labels of any type."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pcs_annotator.core.arrays import Array
from pcs_annotator.core.task import Task, check_labels, label_lookup, unknown_label
from pcs_annotator.errors import LabelError, PcsWarning, TableError

Value = str | int  # a bool is an int


class InputError(TableError, ValueError):
    """X or y cannot be used; also a ValueError, as users of scikit-learn expect."""


def texts_of(given: object) -> list[str]:
    """Return the texts of X: a list, an array, a column, or a table with a single column.

    Raises:
        InputError: X is empty, or has a value that is not a text; the message names the row.
    """
    values = column_of(given, "X")
    if not values:
        raise InputError("X is empty, with 0 sample(s): give at least one text")
    for row, value in enumerate(values, 1):
        if not isinstance(value, str):
            raise InputError(
                f"X, row {row}: {value!r:.60} is a {type(value).__name__}, not a text: fix the row or leave it out"
            )
    return [str(value) for value in values]  # numpy has its own str type


def column_of(given: object, name: str) -> list[object]:
    """Return the values of a list, an array, a column of a table, or a table with a single column."""
    shape = getattr(given, "shape", ())
    if len(shape) > 1:
        array = np.asarray(given, dtype=object)
        if array.ndim != 2 or array.shape[1] != 1:
            raise InputError(f"{name} has the shape {tuple(shape)}: give a list or a single column")
        return array[:, 0].tolist()
    if isinstance(given, str | bytes | Mapping) or not hasattr(given, "__iter__"):
        raise InputError(
            f"{name} is a single {type(given).__name__}: give a list or a column, or a table with a single column"
        )
    return given.to_pylist() if hasattr(given, "to_pylist") else list(given)


def gold_of(given: object, rows: int) -> list[Value | None]:
    """Return the labels of y, None where there is none.

    Raises:
        InputError: y has a different length than X, or a value that is not a label.
    """
    if given is None:
        raise InputError("requires y to be passed, but the target y is None: give one label per text, '' if unknown")
    values = [_plain(value, row) for row, value in enumerate(column_of(given, "y"), 1)]
    if len(values) != rows:
        raise InputError(f"X has {rows} texts and y {len(values)} labels: give one label per text, '' if unknown")
    return values


def _plain(value: object, row: int) -> Value | None:
    """Return a label as a plain Python value; None for any missing value."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or str(value) in ("", "<NA>") or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)  # data frames store whole numbers with gaps as floats
    if isinstance(value, str | int):
        return str(value) if isinstance(value, str) else value
    raise InputError(f"y, row {row}: {value!r:.60} is a {type(value).__name__}, not a label. Unknown label type")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Classes:
    """The labels of a task in scikit-learn's form: sorted, and of the type of y.

    Attributes:
        values: The values that `predict` returns.
        labels: The label of each value, in the same order.
    """

    values: Array
    labels: Sequence[str]

    def name_of(self, value: Value | None) -> str | None:
        """Return the label for a value of y; None if it is not one of them."""
        if value is None:
            return None
        known = dict(zip(self.values.tolist(), self.labels, strict=True))
        if value in known:
            return known[value]
        position = label_lookup(self.labels).get(str(value).casefold())
        return None if position is None else self.labels[position]


def classes_of(task: Task | str, gold: Sequence[Value | None]) -> Classes:
    """Return the classes of a task, or of y if the task is only an instruction.

    Raises:
        LabelError: A label in y is not one of the task's, or it is unclear which one.
    """
    present = [value for value in gold if value is not None]
    if not isinstance(task, str):
        labels = check_labels(task.labels)
    elif any(type(value) is int for value in present):
        raise LabelError(
            "y has numbers, which mean nothing to a language model: give Task(instruction, labels=[…]) as task; "
            "cross_val_predict turns labels into numbers when asked for probabilities"
        )
    elif not present:
        raise LabelError("y is empty, so there are no labels: give Task(instruction, labels=[…]) as task")
    else:
        labels = check_labels(dict.fromkeys(map(str, present)))
    numbers = [value for value in gold if not isinstance(value, str)]
    if present and len(numbers) == len(gold):
        return _numbered(labels, numbers)
    classes = Classes(values=np.array(sorted(labels)), labels=tuple(sorted(labels)))
    _refuse_unknown(classes, gold)
    return classes


def _refuse_unknown(classes: Classes, gold: Sequence[Value | None]) -> None:
    for row, value in enumerate(gold, 1):
        if value is not None and classes.name_of(value) is None:
            raise unknown_label(str(value), classes.labels, f"y, row {row}")


def _numbered(labels: Sequence[str], gold: Sequence[int | None]) -> Classes:
    """Return the classes that numbers stand for: labels such as `"1"`, or positions among the sorted labels.

    scikit-learn replaces labels by positions in `cross_val_predict` with probabilities. That can be undone only if the
    last position occurs: otherwise a label may be missing from y, which shifts all positions after it.
    """
    present = {value for value in gold if value is not None}
    names, places = _by_name(labels), dict(enumerate(sorted(labels)))
    named = present <= names.keys()
    # a bool is not a position: which label stands for True cannot be guessed
    placed = max(present) == len(labels) - 1 and present <= places.keys() and bool not in map(type, present)
    if named and placed and any(names[value] != places[value] for value in present):
        raise LabelError(f"the numbers in y may be names or positions of the labels {list(labels)}: write y as texts")
    if not named and not placed:
        raise _no_such_number(labels, gold)
    if not named:
        meaning = ", ".join(f"{place} is {label!r}" for place, label in places.items())
        message = f"the numbers in y are read as positions among the sorted labels: {meaning}"
        warnings.warn(message, PcsWarning, stacklevel=4)
    chosen = names if named else places
    return Classes(values=np.array(sorted(chosen)), labels=tuple(chosen[value] for value in sorted(chosen)))


def _no_such_number(labels: Sequence[str], gold: Sequence[int | None]) -> LabelError:
    known = {None, *_by_name(labels)}
    row, value = next((row, value) for row, value in enumerate(gold, 1) if value not in known)
    return LabelError(
        f"{unknown_label(str(value), labels, f'y, row {row}')}; numbers made from labels by scikit-learn, as in "
        "cross_val_predict with probabilities, work only if every label of the task occurs in y"
    )


def _by_name(labels: Sequence[str]) -> dict[int, str]:
    """Return number or bool → the label that spells it; empty unless all labels spell one."""
    truth = {"true": True, "false": False}
    if {label.casefold() for label in labels} == truth.keys():
        return {truth[label.casefold()]: label for label in labels}
    try:
        numbers = {int(label): label for label in labels}
    except ValueError:
        return {}
    return numbers if all(str(number) == label for number, label in numbers.items()) else {}
