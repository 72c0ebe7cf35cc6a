"""The columns of a table of votes that hold a probability per label.

`stated_<label>` is what an annotator itself said. Grades are how probable each answer was: `p_<label>`, or
`logp_<label>` for natural logarithms.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pcs_annotator.base.errors import PcsWarning, TableError
from pcs_annotator.core.arrays import Array, Codes, Floats, Grades, Mask
from pcs_annotator.core.task import label_lookup
from pcs_annotator.tables.tabular import text_column
from pcs_annotator.tables.vote_columns import Unknown

if TYPE_CHECKING:
    import pyarrow as pa

# Grades are stored as float32, and servers round log-probabilities.
GRADE_TOLERANCE = 1e-3
ROUNDING = 1e-6
# A mass is a sum over many tokens, often rounded to a few decimals; labels with log-probabilities had some.
MASS_TOLERANCE = 1e-2
MIN_MASS = 1e-6
MAX_LISTED = 5


class Kind(NamedTuple):
    """Columns with one prefix: which numbers they may hold, and what to tell the user about others."""

    prefix: str
    least: float
    most: float
    problem: str


STATED = Kind("stated_", 0.0, 1.0, "is not a probability: write a number from 0 to 1, or leave the cell empty")
GRADE = Kind(
    "p_",
    -ROUNDING,
    1 + GRADE_TOLERANCE,
    "is not a probability: write a number from 0 to 1, or leave all grades of the row empty for a hard vote",
)
LOG_GRADE = Kind(
    "logp_",
    -np.inf,
    ROUNDING,
    "is not a log-probability: write a natural logarithm, which is at most 0, or leave all grades of the row empty for "
    "a hard vote",
)
MASS = Kind(
    "mass",
    0.0,
    1 + MASS_TOLERANCE,
    "is not a probability: 'mass' is the probability that all labels have together, from 0 to 1; rename the column if "
    "it is something else",
)


def with_named_labels(seen: Sequence[str], columns: Collection[str], table: str) -> tuple[str, ...]:
    """Return the labels seen in votes and gold and those that only a column of probabilities names, sorted.

    Columns such as `stated_at` or `p_value` belong to the user: they name labels only beside one for a known label. If
    no label was seen at all, two columns of grades name them.
    """
    labels = {label.casefold(): label for label in seen}
    for kind in (STATED, GRADE, LOG_GRADE):
        named = _named(kind, columns, table)
        if not labels.keys().isdisjoint(named) or (not seen and kind != STATED and len(named) > 1):
            for folded, column in named.items():
                labels.setdefault(folded, column.removeprefix(kind.prefix))
    return tuple(sorted(labels.values()))


def look_graded(columns: Collection[str]) -> bool:
    """Return whether several columns look like grades; then votes need no column `label`."""
    return any(sum(name.startswith(kind.prefix) for name in columns) > 1 for kind in (GRADE, LOG_GRADE))


def read_stated(columns: Mapping[str, pa.ChunkedArray], labels: Sequence[str], table: str) -> Floats | None:
    """Return the stated probabilities `[row, label]`, nan where empty; None without a `stated_<label>` column."""
    found = _by_code(_named(STATED, columns, table), labels)
    return _values(STATED, columns, found, len(labels), table) if found else None


def read_grades(
    columns: Mapping[str, pa.ChunkedArray], labels: Sequence[str], unknown: Unknown, table: str
) -> Grades | None:
    """Return the grades `[row, label]`, nan in rows with a hard vote; None when there are no others.

    Log-probabilities are scaled to the column `mass` where it has a value, else to 1 if they sum to more. Where grades
    sum to 1, labels without one get 0. A column for an unknown label is an error, or skipped, depending on `unknown`.
    """
    found = _grade_columns(columns, labels, unknown, table)
    if found is None:
        return None
    kind, names = found
    values = _values(kind, columns, names, len(labels), table)
    if kind == LOG_GRADE:
        np.exp(np.minimum(values, 0.0, out=values), out=values)
    graded: Mask = np.logical_not(np.isnan(values).all(axis=1))
    if not graded.any():
        return None
    _fill_rest(values, graded, found, labels, table)
    if kind == LOG_GRADE:
        values *= _scale(values.sum(axis=1), columns, table)[:, np.newaxis]
    grades = np.maximum(values, 0.0, out=values).astype(np.float32)
    _refuse_large_sums(grades, names, table)
    return grades


def graded_codes(codes: Codes, unlabelled: Mask, grades: Grades, labels: Sequence[str]) -> Codes:
    """Return the codes of rows, where a graded one without a label gets its most probable label.

    Ties go to the first name in alphabetical order; if no label has a probability, the row remains an abstention.
    """
    rows = np.flatnonzero(unlabelled & (grades > 0).any(axis=1))
    order = np.argsort(np.array(labels, dtype=object))
    filled = codes.copy()
    filled[rows] = order[np.argmax(grades[rows][:, order], axis=1)]
    return filled


def write_columns(kind: Kind, values: Array, labels: Sequence[str], empty_rows: int) -> dict[str, pa.Array]:
    """Return `[row, label]` as a column per label, empty where it is nan, with empty rows added at the end."""
    import pyarrow as pa

    blank = np.full(empty_rows, np.nan, dtype=values.dtype)
    return {
        f"{kind.prefix}{label}": pa.array(np.concatenate([values[:, code], blank]), from_pandas=True)
        for code, label in enumerate(labels)
    }


class _GradeColumns(NamedTuple):
    kind: Kind
    names: Mapping[int, str]


def _named(kind: Kind, columns: Iterable[str], table: str) -> dict[str, str]:
    """Return the columns of a kind by the label that they name, case-folded."""
    named: dict[str, str] = {}
    for column in columns:
        label = column.removeprefix(kind.prefix).casefold()
        if not column.startswith(kind.prefix) or not label.strip():
            continue
        if label in named:
            raise TableError(
                f"{table}: columns {named[label]!r} and {column!r} differ only in case: remove one of them"
            )
        named[label] = column
    return named


def _by_code(named: Mapping[str, str], labels: Sequence[str]) -> dict[int, str]:
    lookup = label_lookup(labels)
    return {lookup[label]: column for label, column in named.items() if label in lookup}


def _grade_columns(
    columns: Collection[str], labels: Sequence[str], unknown: Unknown, table: str
) -> _GradeColumns | None:
    """Return the columns of grades; all of a kind are, as soon as one of them names a label."""
    found: list[_GradeColumns] = []
    for kind in (GRADE, LOG_GRADE):
        named = _named(kind, columns, table)
        names = _by_code(named, labels)
        if names and len(names) < len(named) and unknown == "error":
            raise _unknown_column(
                kind, next(name for name in named.values() if name not in names.values()), labels, table
            )
        if names:
            found.append(_GradeColumns(kind, names))
        elif len(named) > 1:
            listed = ", ".join(map(repr, named.values()))
            warnings.warn(
                f"{table}: columns not read as grades, because none of them names a label: {listed}",
                PcsWarning,
                stacklevel=6,
            )
    if len(found) > 1:
        one, other = (next(iter(names.values())) for _, names in found)
        raise TableError(f"{table} has both {one!r} and {other!r}: keep the probabilities or their logarithms")
    return found[0] if found else None


def _unknown_column(kind: Kind, column: str, labels: Sequence[str], table: str) -> TableError:
    label, known = column.removeprefix(kind.prefix), ", ".join(map(repr, labels))
    return TableError(
        f"{table}, column {column!r}: {label!r} is not one of the labels {known}: correct the name, add the label, or "
        "rename the column if it is something else; unknown='abstain' skips it"
    )


def _values(
    kind: Kind, columns: Mapping[str, pa.ChunkedArray], names: Mapping[int, str], labels: int, table: str
) -> Floats:
    """Return the numbers of some columns, `[row, label]`; nan where they are empty, and for labels without a column."""
    values = np.full((len(next(iter(columns.values()))), labels), np.nan)
    for code, name in names.items():
        values[:, code] = _numbers(kind, name, columns[name], table)
    return values


def _numbers(kind: Kind, name: str, column: pa.ChunkedArray, table: str) -> Floats:
    """Return the numbers of a column, which may be texts; nan where it is empty."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_floating(column.type) or pa.types.is_integer(column.type) or pa.types.is_decimal(column.type):
        cells = column.combine_chunks()
        values: Floats = cells.cast(pa.float64()).to_numpy(zero_copy_only=False)
        broken = np.zeros(len(values), dtype=bool)
    else:
        texts = text_column(name, column)
        cells = pc.if_else(pc.equal(texts, ""), None, texts)
        values = _parsed(cells)
        broken = np.isnan(values) & cells.is_valid().to_numpy(zero_copy_only=False)
    wrong = broken | (values < kind.least) | (values > kind.most)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise TableError(f"{table}, row {row + 1}, column {name!r}: {cells[row].as_py()!s:.60} {kind.problem}")
    return values


def _parsed(texts: pa.Array) -> Floats:
    """Return texts as numbers, nan where they are none."""
    import pyarrow as pa

    try:
        return texts.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:  # its message does not name the row, and it does not take all that Python takes
        return np.array([_number(text) for text in texts.to_pylist()])


def _number(text: str | None) -> float:
    try:
        return float(text or "nan")
    except ValueError:
        return np.nan


def _fill_rest(values: Floats, graded: Mask, found: _GradeColumns, labels: Sequence[str], table: str) -> None:
    """Set labels without a grade to 0 in rows where the others sum to 1; in other graded rows they are an error."""
    missing = np.isnan(values) & graded[:, np.newaxis]
    certain = np.abs(np.nansum(values, axis=1) - 1) <= GRADE_TOLERANCE
    values[missing & certain[:, np.newaxis]] = 0.0
    open_rows = np.flatnonzero(missing.any(axis=1) & ~certain)
    if len(open_rows):
        row = open_rows[0]
        code = int(np.argmax(missing[row]))
        name = found.names.get(code)
        where = f"column {name!r} is empty" if name else f"there is no column for the label {labels[code]!r}"
        raise TableError(
            f"{table}, row {row + 1}: {where}, while other labels have grades that do not sum to 1: give every label "
            "one, or leave all grades of the row empty for a hard vote"
        )


def _scale(total: Floats, columns: Mapping[str, pa.ChunkedArray], table: str) -> Floats:
    """Return for every row the factor from exponentiated log-probabilities to grades."""
    target = np.minimum(total, 1.0)
    if MASS.prefix in columns:
        mass = np.clip(_numbers(MASS, MASS.prefix, columns[MASS.prefix], table), MIN_MASS, 1.0)
        target = np.where(np.isnan(mass), target, mass)
    return np.divide(target, total, out=np.ones_like(total), where=total > 0)


def _refuse_large_sums(grades: Grades, names: Mapping[int, str], table: str) -> None:
    total = grades.sum(axis=1)
    if (total > 1 + GRADE_TOLERANCE).any():
        row = int(np.argmax(total > 1 + GRADE_TOLERANCE))
        largest = sorted(names, key=lambda code: -grades[row, code])[:MAX_LISTED]
        listed = ", ".join(f"{names[code]} {grades[row, code]:.4g}" for code in largest)
        raise TableError(
            f"{table}, row {row + 1}: the grades sum to {total[row]:.4g} ({listed}), more than 1: correct them, or "
            "leave them empty for a hard vote; rename a column that is no grade"
        )
