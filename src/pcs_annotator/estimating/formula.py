"""Formulas such as `hateful ~ party + log(followers)`: what they say, and the columns of numbers that follow."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from pcs_annotator.base.errors import ConfigError, UndefinedMetric
from pcs_annotator.core.arrays import Array, Floats, Mask

LABEL = "label"  # in a formula: the label itself, rather than one of the labels
MOST_LEVELS = 50
FUNCTIONS: Mapping[str, Callable[[Floats], Floats]] = {"log": np.log, "log1p": np.log1p, "sqrt": np.sqrt}
_FACTOR = re.compile(
    r"\s*(?:(?P<function>\w+)\(\s*(?P<inside>[^()]+?)\s*\)|(?P<name>`[^`]+`|[^\s()`+:*~][^()`+:*~]*?))\s*"
)


class Factor(NamedTuple):
    """A column or label in a formula, and the function applied to it: `C` for categories, `log`, … or none."""

    name: str
    function: str = ""

    def __str__(self) -> str:
        return f"{self.function}({self.name})" if self.function else self.name


Term = tuple[Factor, ...]  # factors to be multiplied


class Formula(NamedTuple):
    """What a formula says."""

    outcome: Factor  # the left side
    terms: tuple[Term, ...]  # the right side, without the intercept
    intercept: bool = True  # whether there is one; `0 + …` leaves it out

    @property
    def factors(self) -> list[Factor]:
        """All of them, the outcome first."""
        return [self.outcome, *(factor for term in self.terms for factor in term)]

    @property
    def names(self) -> set[str]:
        """The names of columns and labels in it."""
        return {factor.name for factor in self.factors}


def parse_formula(text: str) -> Formula:
    """Return what a formula says, such as `hateful ~ party * log(followers)`."""
    left, tilde, right = text.partition("~")
    if not tilde or "~" in right or not right.strip():
        raise ConfigError(f"the formula {text!r} must have the form outcome ~ column + column")
    terms: dict[Term, None] = {}
    intercept = True
    for part in right.split("+"):
        if part.strip() in ("0", "1"):
            intercept = part.strip() == "1"
            continue
        terms.update(dict.fromkeys(_crossed(part, text)))
    return Formula(_factor(left, text), tuple(terms), intercept)


def _crossed(part: str, text: str) -> list[Term]:
    """Return the terms of `a*b`, which is `a + b + a:b`, or of `a:b` or `a`."""
    sides = [tuple(_factor(name, text) for name in side.split(":")) for side in part.split("*")]
    terms: list[Term] = []
    for side in sides:
        terms += [side, *((*before, *side) for before in terms)]
    return sorted(terms, key=len)


def _factor(part: str, text: str) -> Factor:
    match = _FACTOR.fullmatch(part)
    if match is None:
        raise ConfigError(
            f"the formula {text!r}: {part.strip()!r} is not understood; use +, :, *, C(column), log(column), and `…` "
            "around a name with other characters"
        )
    function = match["function"] or ""
    if function and function not in (*FUNCTIONS, "C"):
        raise ConfigError(f"the formula {text!r}: there is no function {function}; there are C, {', '.join(FUNCTIONS)}")
    return Factor((match["inside"] or match["name"]).strip("`"), function)


class Coded(NamedTuple):
    """Columns of numbers, `[row or 1, label or 1, column]`, and their names."""

    values: Floats
    names: tuple[str, ...]


class FormulaData:
    """The columns that a formula may name."""

    def __init__(self, columns: Mapping[str, Array], labels: Sequence[str]) -> None:
        """Take column name → its cells, texts or numbers, and all labels."""
        self._columns, self._labels = columns, labels

    def is_label(self, factor: Factor) -> bool:
        """Return whether a factor is the label or one of the labels; a column of the same name takes precedence."""
        return factor.name not in self._columns and factor.name in (LABEL, *self._labels)

    def complete(self, formula: Formula, rows: int) -> Mask:
        """Return which of so many rows have all values that a formula needs."""
        complete = np.ones(rows, dtype=np.bool_)
        for factor in formula.factors:
            if not self.is_label(factor):
                cells = self._cells(factor)
                complete &= ~np.isnan(cells) if cells.dtype.kind == "f" else cells != ""
        return complete

    def coded(self, formula: Formula, rows: Mask) -> list[Coded]:
        """Return the right side as columns of numbers, term by term, for some rows."""
        parts = [Coded(np.ones((1, 1, 1)), ("(intercept)",))] if formula.intercept else []
        for position, term in enumerate(formula.terms):
            # without an intercept, the first categories are all told apart
            parts.append(self._term(term, rows, all_levels=not formula.intercept and position == 0))
        for part in parts[1:] if formula.intercept else parts:
            values = part.values
            if values.shape[2] == 0 or (len(values) > 1 and (np.ptp(values, axis=0) == 0).all(axis=0).any()):
                names = ", ".join(part.names) or "a column"
                raise UndefinedMetric(f"{names} of the formula is the same in all rows: leave it out")
        return parts

    def numbers(self, factor: Factor, rows: Mask) -> Floats:
        """Return a column as numbers, for some rows."""
        cells = self._cells(factor)[rows]
        if cells.dtype.kind != "f":
            raise ConfigError(f"column {factor.name!r} has texts such as {cells[0]!r}: the outcome must be numbers")
        return cells

    def _term(self, term: Term, rows: Mask, *, all_levels: bool) -> Coded:
        result = Coded(np.ones((1, 1, 1)), ("",))
        for factor in term:
            own_factor = self._factor(factor, rows, all_levels=all_levels)
            values = result.values[..., :, np.newaxis] * own_factor.values[..., np.newaxis, :]
            names = [f"{first}:{second}" if first else second for first in result.names for second in own_factor.names]
            result = Coded(values.reshape(*values.shape[:2], -1), tuple(names))
        return result

    def _factor(self, factor: Factor, rows: Mask, *, all_levels: bool) -> Coded:
        if self.is_label(factor):
            return self._label(factor)
        cells = self._cells(factor)[rows]
        if cells.dtype.kind == "f":
            return Coded(cells[:, np.newaxis, np.newaxis], (str(factor),))
        levels = np.array(sorted({*cells.tolist()}), dtype=object)
        if len(levels) > MOST_LEVELS:
            raise ConfigError(
                f"column {factor.name!r} has {len(levels):,} different texts, at most {MOST_LEVELS} can be told apart: "
                "use a column of groups or numbers"
            )
        kept = levels if all_levels else levels[1:]
        values = (cells[:, np.newaxis] == kept).astype(np.float64)
        return Coded(values[:, np.newaxis], tuple(f"{factor.name}={level}" for level in kept.tolist()))

    def _label(self, factor: Factor) -> Coded:
        if factor.name == LABEL:
            return Coded(
                np.eye(len(self._labels))[np.newaxis, :, 1:], tuple(f"label={name}" for name in self._labels[1:])
            )
        return Coded(self.indicator(factor.name)[np.newaxis, :, np.newaxis], (factor.name,))

    def indicator(self, label: str) -> Floats:
        """Return for every label whether it is the one named."""
        return np.array([float(each == label) for each in self._labels])

    def _cells(self, factor: Factor) -> Array:
        """Return a column as numbers, or as texts if some cell is none or categories are wanted."""
        cells = self._columns[factor.name]
        if factor.function == "C":
            return np.array([str(cell) for cell in cells.tolist()], dtype=object) if cells.dtype.kind == "f" else cells
        numbers = cells if cells.dtype.kind == "f" else as_numbers(cells)
        if not factor.function:
            return cells if numbers is None else numbers
        if numbers is None:
            raise ConfigError(f"column {factor.name!r} has texts, so {factor} cannot be computed: use numbers")
        with np.errstate(all="ignore"):
            values = FUNCTIONS[factor.function](numbers)
        if np.isinf(values).any() or (np.isnan(values) & ~np.isnan(numbers)).any():
            raise ConfigError(f"{factor} is undefined for some values of {factor.name!r}, such as 0: try log1p")
        return values


def as_numbers(cells: Array) -> Floats | None:
    """Return texts as numbers, nan where empty; None if some text is not a number, or all are empty."""
    filled = np.where(cells == "", "nan", cells)
    try:
        numbers = filled.astype(np.float64)
    except ValueError:
        return None
    return None if np.isnan(numbers).all() or np.isinf(numbers).any() else numbers
