"""The columns of a table of votes: names and labels as codes, and a probability per label.

`stated_<label>` is what an annotator itself said. Grades are how probable each answer was: `p_<label>`, or
`logp_<label>` for natural logarithms.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pcs_annotator.base.errors import TableError, warn_user
from pcs_annotator.base.text import row_number
from pcs_annotator.core.arrays import CODE, Codes, Floats, Grades, Integers, Mask
from pcs_annotator.core.task import in_order, label_lookup, unknown_label, whole_number
from pcs_annotator.core.votes import ABSTAINED, GRADE_TOLERANCE, NOT_ASKED, Unknown
from pcs_annotator.tables.arrow import pa, pc, text_column

ROUNDING = 1e-6
# A mass is a sum over many tokens, often rounded to a few decimals; labels with log-probabilities had some.
MASS_TOLERANCE = 1e-2
MIN_MASS = 1e-6
MAX_LISTED = 5


class TextColumn(NamedTuple):
    """A column of texts: `distinct[position]` for every row, in order of appearance; −1 where the cell is empty."""

    name: str
    distinct: list[str]
    positions: Integers

    def texts(self) -> tuple[str | None, ...]:
        """Return the text of every row, None where it is empty."""
        return tuple(self.distinct[position] if position >= 0 else None for position in self.positions)


class NumberColumns(NamedTuple):
    """Columns with one prefix: which numbers they may hold, and what to tell the user about others."""

    prefix: str
    least: float
    most: float
    problem: str


_EMPTY = "leave all grades of the row empty for a hard vote"
STATED = NumberColumns("stated_", 0.0, 1.0, "is not a probability: write a number from 0 to 1, or leave the cell empty")
GRADE = NumberColumns(
    "p_", -ROUNDING, 1 + GRADE_TOLERANCE, f"is not a probability: write a number from 0 to 1, or {_EMPTY}"
)
LOG_GRADE = NumberColumns(
    "logp_", -np.inf, ROUNDING, f"is not a log-probability: write a natural logarithm, which is at most 0, or {_EMPTY}"
)
MASS = NumberColumns(
    "mass",
    0.0,
    1 + MASS_TOLERANCE,
    "is not a probability: 'mass' is the probability that all labels have together, from 0 to 1; rename the column if "
    "it is something else",
)


@dataclass(frozen=True, slots=True)
class VoteColumns:
    """The columns of a table of votes."""

    columns: Mapping[str, pa.ChunkedArray]  # name → cells
    table: str  # what messages call the table
    written: bool = False  # whether this library wrote the table: then no name is the result of an open quote

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def where(self, row: int | np.integer[Any]) -> str:
        """Return the table and the number of a row, counted from 0, for messages."""
        return f"{self.table}, row {row_number(self.table, int(row) + 1)}"

    def texts(self, name: str) -> TextColumn:
        """Return a column of any type as texts; empty texts and nulls are both empty."""
        coded = self._cells(name).dictionary_encode()
        distinct = coded.dictionary.to_pylist()
        positions = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.intp)
        for number, text in enumerate(() if self.written else distinct):
            if "\n" in text:
                row = row_number(self.table, int(np.argmax(positions == number)) + 1)
                problem = f"{text!r:.60} contains a line break: is a quote left open there?"
                raise TableError(f"column {name!r}, row {row}: {problem}")
        return TextColumn(name, distinct, positions)

    def _cells(self, name: str) -> pa.Array:
        texts = text_column(name, self.columns[name])
        return pc.if_else(pc.equal(texts, ""), None, texts)

    def numbers(self, kind: NumberColumns, name: str) -> Floats:
        """Return the numbers of a column, which may be texts; nan where it is empty."""
        cells = self.columns[name].combine_chunks()
        typed = pa.types.is_floating(cells.type) or pa.types.is_integer(cells.type) or pa.types.is_decimal(cells.type)
        cells = cells if typed else self._cells(name)
        values = _parsed(cells)
        wrong = (values < kind.least) | (values > kind.most)
        if not typed:
            wrong |= np.isnan(values) & cells.is_valid().to_numpy(zero_copy_only=False)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise TableError(f"{self.where(row)}, column {name!r}: {cells[row].as_py()!s:.60} {kind.problem}")
        return values

    def named(self, kind: NumberColumns) -> dict[str, str]:
        """Return the columns of a kind by the label that they name, case-folded."""
        named: dict[str, str] = {}
        for column in self.columns:
            label = column.removeprefix(kind.prefix).casefold()
            if column.startswith(kind.prefix) and label.strip() and named.setdefault(label, column) != column:
                both = f"columns {named[label]!r} and {column!r}"
                raise TableError(f"{self.table}: {both} differ only in case: remove one of them")
        return named

    def probabilities(self, kind: NumberColumns, names: Mapping[int, str], labels: int) -> Floats:
        """Return `[row, label]`: the numbers of the columns of some labels, nan where empty and for other labels."""
        values = np.full((len(self), labels), np.nan)
        for code, name in names.items():
            values[:, code] = self.numbers(kind, name)
        return values


def _parsed(cells: pa.Array) -> Floats:
    """Return cells as numbers, nan for texts that are not numbers."""

    def number(text: str | None) -> float:
        try:
            return float(text or "nan")
        except ValueError:
            return np.nan

    try:
        return cells.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:  # its message does not name the row, and it does not take all that Python takes
        return np.array([number(text) for text in cells.to_pylist()])


def seen_labels(votes: Sequence[TextColumn], gold: TextColumn | None, columns: VoteColumns) -> tuple[str, ...]:
    """Return the labels of votes, gold and columns of probabilities, sorted; of several spellings, gold's is kept.

    Without gold, it is the most frequent. Columns such as `stated_at` or `p_value` belong to the user: they name labels
    only beside one for a known label. If no label was seen at all, two columns of grades name them.
    """
    counts: dict[str, float] = {}
    for column in (*votes, *([gold] if gold else [])):
        weight = 1e12 if column is gold else 1.0
        times = np.bincount(column.positions[column.positions >= 0], minlength=len(column.distinct))
        for spelling, count in zip(column.distinct, times.tolist(), strict=True):
            counts[spelling] = counts.get(spelling, 0.0) + weight * count
    labels: dict[str, str] = {}
    for spelling in sorted(filter(counts.__getitem__, counts), key=lambda text: (-counts[text], text)):
        labels.setdefault(whole_number(spelling).casefold(), whole_number(spelling))
    seen = {*labels}
    for kind in (STATED, GRADE, LOG_GRADE):
        named = columns.named(kind)
        if not labels.keys().isdisjoint(named) or (not seen and kind != STATED and len(named) > 1):
            for folded, name in named.items():
                labels.setdefault(folded, name.removeprefix(kind.prefix))
    return in_order(labels.values())


def label_codes(column: TextColumn, labels: Sequence[str], unknown: Unknown, ids: TextColumn | Sequence[str]) -> Codes:
    """Return the label of every row as a code; an empty cell is an abstention, an unknown label that or an error."""
    lookup = label_lookup(labels)
    table = np.array([lookup.get(text.casefold(), NOT_ASKED) for text in column.distinct] + [ABSTAINED], dtype=CODE)
    codes = table[column.positions]
    outside = np.flatnonzero(codes == NOT_ASKED)
    if len(outside) and unknown == "error":
        row = outside[0]
        name = ids.distinct[ids.positions[row]] if isinstance(ids, TextColumn) else ids[row]
        where = f"column {column.name!r}, id {name!r}"
        error = unknown_label(column.distinct[column.positions[row]], labels, where)
        raise type(error)(f"{error}; unknown='abstain' counts such votes as abstentions")
    codes[outside] = ABSTAINED
    return codes


def read_stated(columns: VoteColumns, labels: Sequence[str]) -> Floats | None:
    """Return the stated probabilities `[row, label]`, nan where empty; None without a `stated_<label>` column."""
    names = _by_code(columns.named(STATED), labels)
    return columns.probabilities(STATED, names, len(labels)) if names else None


def read_grades(columns: VoteColumns, labels: Sequence[str], unknown: Unknown) -> Grades | None:
    """Return the grades `[row, label]`, nan in rows with a hard vote; None when there are no others.

    Log-probabilities are scaled to the column `mass` where it has a value, else to 1 if they sum to more. Where grades
    sum to 1, labels without one get 0. A column for an unknown label is an error, or skipped, depending on `unknown`.
    """
    kind, names = _grade_columns(columns, labels, unknown)
    values = columns.probabilities(kind, names, len(labels))
    if kind == LOG_GRADE:
        np.exp(np.minimum(values, 0.0, out=values), out=values)
    graded: Mask = np.logical_not(np.isnan(values).all(axis=1))
    if not graded.any():
        return None
    _fill_rest(values, graded, names, labels, columns)
    if kind == LOG_GRADE:
        total = values.sum(axis=1)
        target = np.minimum(total, 1.0)
        if MASS.prefix in columns.columns:
            mass = np.clip(columns.numbers(MASS, MASS.prefix), MIN_MASS, 1.0)
            target = np.where(np.isnan(mass), target, mass)
        values *= np.divide(target, total, out=np.ones_like(total), where=total > 0)[:, np.newaxis]
    grades = np.maximum(values, 0.0, out=values).astype(np.float32)
    total = grades.sum(axis=1)
    if (total > 1 + GRADE_TOLERANCE).any():
        row = int(np.argmax(total > 1 + GRADE_TOLERANCE))
        largest = sorted(names, key=lambda code: -grades[row, code])[:MAX_LISTED]
        listed = ", ".join(f"{names[code]} {grades[row, code]:.4g}" for code in largest)
        raise TableError(
            f"{columns.where(row)}: the grades sum to {total[row]:.4g} ({listed}), more than 1: correct them, or leave "
            "them empty for a hard vote; rename a column that is not a grade"
        )
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


def _by_code(named: Mapping[str, str], labels: Sequence[str]) -> dict[int, str]:
    lookup = label_lookup(labels)
    return {lookup[label]: column for label, column in named.items() if label in lookup}


def _grade_columns(
    columns: VoteColumns, labels: Sequence[str], unknown: Unknown
) -> tuple[NumberColumns, Mapping[int, str]]:
    """Return the columns of grades by code; all of a kind are, as soon as one of them names a label."""
    kinds: list[tuple[NumberColumns, dict[int, str]]] = []
    for kind in (GRADE, LOG_GRADE):
        named = columns.named(kind)
        names = _by_code(named, labels)
        if names and len(names) < len(named) and unknown == "error":
            stray = next(name for name in named.values() if name not in names.values())
            problem = f"{stray.removeprefix(kind.prefix)!r} is not one of the labels {', '.join(map(repr, labels))}"
            raise TableError(
                f"{columns.table}, column {stray!r}: {problem}: correct the name, add the label, or rename the column "
                "if it is something else; unknown='abstain' skips it"
            )
        if names:
            kinds.append((kind, names))
        elif len(named) > 1:
            listed = ", ".join(map(repr, named.values()))
            warn_user(f"{columns.table}: columns not read as grades, because none of them names a label: {listed}")
    if len(kinds) > 1:
        both = " and ".join(repr(next(iter(names.values()))) for _, names in kinds)
        raise TableError(f"{columns.table} has both {both}: keep the probabilities or their logarithms")
    return kinds[0] if kinds else (GRADE, {})


def _fill_rest(
    values: Floats, graded: Mask, names: Mapping[int, str], labels: Sequence[str], columns: VoteColumns
) -> None:
    """Set labels without a grade to 0 in rows where the others sum to 1; in other graded rows they are an error."""
    missing = np.isnan(values) & graded[:, np.newaxis]
    certain = np.abs(np.nansum(values, axis=1) - 1) <= GRADE_TOLERANCE
    values[missing & certain[:, np.newaxis]] = 0.0
    open_rows = np.flatnonzero(missing.any(axis=1) & ~certain)
    if len(open_rows):
        code = int(np.argmax(missing[open_rows[0]]))
        column = f"column {names[code]!r} is empty" if code in names else ""
        lacking = column or f"there is no column for the label {labels[code]!r}"
        raise TableError(
            f"{columns.where(open_rows[0])}: {lacking}, while other labels have grades that do not sum to 1: give "
            f"every label one, or {_EMPTY}"
        )
