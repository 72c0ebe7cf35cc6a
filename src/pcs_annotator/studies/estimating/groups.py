"""Groups of rows to be compared: the values of one column or combinations of two, and periods of dates."""

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np

from pcs_annotator.base.errors import ConfigError, GoldError
from pcs_annotator.base.text import counted
from pcs_annotator.core.arrays import Array, Floats, Integers
from pcs_annotator.estimating.corrected import UNSEEN, CoefficientEstimate, Study
from pcs_annotator.studies.estimating import answers
from pcs_annotator.studies.estimating.evidence import CodedColumn, LabelEvidence

LEAST_IN_GROUP = 10
MOST_GROUPS = 60
FEW_GROUPS = 4  # so many groups are compared with each other, more of them with the first
PERIODS = {"year": 4, "month": 7, "day": 10}  # period → how many letters of an ISO date name it
_DOTTED = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})(?:[ T]\d{1,2}:\d{2}(?::\d{2})?)?")
Cell = tuple[str, ...]


class Groups(NamedTuple):
    """Groups with enough gold rows."""

    names: Sequence[str]  # of the groups; one without a name if all rows are one
    members: Array  # which rows are in which group, `[row, 1, group]`
    rows: Integers  # how many rows with a machine label each group has
    gold_rows: Integers  # how many of them have gold
    strata: Integers  # from how many strata the gold rows of each group are
    counted: Floats  # how many gold rows of equal weight would tell as much
    left: Floats  # which part of the variance among them is error; 0 if all rows of the group have gold
    pairs: Sequence[tuple[int, int]] = ()  # which groups are compared, the first and the second
    missing: Sequence[answers.Missing] = ()  # groups with too little gold
    notes: Sequence[str] = ()  # what was left out

    def of(
        self, estimates: Mapping[str, CoefficientEstimate], weights: Mapping[int, float], middle: float
    ) -> dict[str, CoefficientEstimate]:
        """Return a weighted sum over groups; errors and degrees of freedom are those of the groups' own rows.

        `found` is method → the mean of every group; `weights`, place of a group → its weight; `middle`, the mean of an
        unseen row, of which there are `UNSEEN` in every group.
        """
        chosen = np.array([weights.get(group, 0.0) for group in range(len(self.names))])
        result = {}
        for method, estimate in estimates.items():
            naive = method == "naive"
            rows, strata = (self.rows, 1) if naive else (self.counted, self.strata)
            scale = chosen if naive else chosen * self._scale
            shift = 0.0 if naive else float(chosen @ (np.sqrt(self.left) * self._unseen * (middle - estimate.value)))
            variances = np.diag(estimate.covariance) * scale**2
            # Welch (1947)
            freedom = variances.sum() ** 2 / max((variances**2 / np.maximum(rows - strata, 1)).sum(), 1e-300)
            freedom = max(min(freedom, estimate.freedom), 1.0)
            covariance = (scale @ estimate.covariance @ scale).reshape(1, 1)
            result[method] = CoefficientEstimate(
                estimate.value @ chosen[:, np.newaxis], covariance, freedom, estimate.tuning, shift
            )
        return result

    @property
    def _unseen(self) -> Floats:
        return UNSEEN / (self.counted + UNSEEN)

    @property
    def _scale(self) -> Floats:
        """Return the factor on errors of a regression: a group's mean is estimated from its own rows."""
        rows, total = np.maximum(self.gold_rows, 2), max(int(self.gold_rows.sum()), 2)
        return (1 - self._unseen) * np.sqrt(rows / (rows - 1) * (total - 1) / total)


def groups_of(evidence: LabelEvidence, study: Study, question: answers.EstimateQuestion) -> Groups:
    """Return the groups that a question asks for."""
    if not question.columns_of_groups:
        return _with_gold(study, [()], np.zeros(len(evidence.expected), dtype=np.intp))
    columns, dated = _columns_of_groups(evidence, question)
    cells, code = _cells(columns)
    gold = np.bincount(code[study.sample.rows], minlength=len(cells))
    labelled = np.bincount(code[study.machine >= 0], minlength=len(cells))
    named = [all(cell) for cell in cells]
    least = LEAST_IN_GROUP
    shown = [group for group, count in enumerate(gold) if named[group] and count >= least and labelled[group]]
    if not shown:
        asked = " and ".join(map(repr, question.columns_of_groups))
        raise GoldError(f"no group of {asked} has {least} gold rows: draw more with pcs gold")
    group = np.full(len(cells), -1)
    group[shown] = np.arange(len(shown))
    empty = int((~np.array(named)[code]).sum())
    kept = [cells[kept_cell] for kept_cell in shown]
    few, unlabelled = f"it has {{}} gold rows, and {least} are needed", "no row of it has a machine label"
    return _with_gold(study, kept, group[code])._replace(
        pairs=_pairs(kept, dated),
        missing=[
            answers.Missing(_name(cell), rows, few.format(rows) if rows < least else unlabelled)
            for at, (cell, rows) in enumerate(zip(cells, gold.tolist(), strict=True))
            if named[at] and at not in shown
        ],
        notes=[counted(empty, "row has no group", "rows have no group")] if empty else [],
    )


def _cells(columns: Sequence[CodedColumn]) -> tuple[list[Cell], Integers]:
    """Return the cells that there are, sorted, and for every row which it is in."""
    texts, codes = [], []
    for column in columns:
        names, same = np.unique(column.texts.astype(str), return_inverse=True)
        texts.append(names.tolist())
        codes.append(same[column.codes])
    sizes = [len(names) for names in texts]
    present, code = np.unique(np.ravel_multi_index(codes, sizes), return_inverse=True)
    places = zip(*np.unravel_index(present, sizes), strict=True)
    return [tuple(names[at] for names, at in zip(texts, cell, strict=True)) for cell in places], code


def _name(cell: Cell) -> str:
    return " · ".join(cell)


def _with_gold(study: Study, cells: Sequence[Cell], group_of_row: Integers) -> Groups:
    """Return groups of rows; `place` is the group of every row, -1 for none."""
    sample, weights, count = study.sample, study.weights, len(cells)
    inside = [group_of_row[sample.rows] == group for group in range(count)]
    squares = np.array([(weights[member] ** 2).sum() for member in inside])
    left = np.array([(study.left[member] * weights[member] ** 2).sum() for member in inside])
    return Groups(
        names=[_name(cell) for cell in cells],
        members=np.ones((1, 1, 1))
        if cells == [()]
        else (group_of_row[:, np.newaxis] == np.arange(count))[:, np.newaxis],
        rows=np.bincount(group_of_row[(group_of_row >= 0) & (study.machine >= 0)], minlength=count),
        gold_rows=np.array([int(member.sum()) for member in inside]),
        strata=np.array([len(np.unique(sample.stratum[member])) for member in inside]),
        counted=np.array([weights[member].sum() ** 2 for member in inside]) / squares,
        left=left / squares,
    )


def _columns_of_groups(
    evidence: LabelEvidence, question: answers.EstimateQuestion
) -> tuple[list[CodedColumn], list[bool]]:
    """Return the columns of groups, and whether each has dates."""
    columns = {name: evidence.column(name) for name in question.columns_of_groups}
    dated: Sequence[str] = ()
    if question.every:
        if question.every not in PERIODS:
            raise ConfigError(f"--every is {question.every!r}, must be one of {', '.join(PERIODS)}")
        # if no column has dates, the last one is to say where it has none
        first = {name: next(filter(None, column.texts.tolist()), "") for name, column in columns.items()}
        dated = [name for name, text in first.items() if _period(text, "day") is not None] or [*columns][-1:]
        columns |= {name: _periods(columns[name], name, question.every) for name in dated}
    for name, column in columns.items():
        if (count := len({*column.texts.tolist()})) > MOST_GROUPS:
            raise ConfigError(
                f"column {name!r} has {count:,} groups, at most {MOST_GROUPS} can be estimated: join some, or use "
                "--every with dates"
            )
    return [*columns.values()], [name in dated for name in columns]


def _period(text: str, every: str) -> str | None:
    """Return the period of a date, in ISO 8601 or with points (day, month, year); None if it is not a date."""
    dotted = _DOTTED.fullmatch(text)
    try:
        day = date(*map(int, dotted.groups()[::-1])) if dotted else datetime.fromisoformat(text)
    except ValueError:
        return None
    return day.isoformat()[: PERIODS[every]]


def _periods(column: CodedColumn, name: str, every: str) -> CodedColumn:
    periods = column.texts.copy()
    for code, text in enumerate(column.texts.tolist()):
        period = _period(text, every) if text else ""
        if period is None:
            row = int((column.codes == code).argmax()) + 1
            raise ConfigError(
                f"data row {row}, column {name!r}: {text!r} is not a date such as 2026-01-31 or 31.01.2026: "
                "correct it, or leave out --every"
            )
        periods[code] = period
    return column._replace(texts=periods)


def _pairs(cells: Sequence[Cell], dated: Sequence[bool]) -> list[tuple[int, int]]:
    """Return which groups to compare: those that differ in one column, there as `_compared` says."""
    places = {cell: number for number, cell in enumerate(cells)}
    pairs = []
    for at, dates in enumerate(dated):
        others: dict[Cell, list[Cell]] = {}
        for cell in cells:
            others.setdefault((*cell[:at], *cell[at + 1 :]), []).append(cell)
        pairs += [
            (places[first], places[other]) for alike in others.values() for first, other in _compared(alike, dates)
        ]
    return pairs


def _compared(cells: Sequence[Cell], dates: bool) -> list[tuple[Cell, Cell]]:
    """Return pairs of groups: periods with the one before, few groups with each other, many with the first."""
    if dates:
        return [*pairwise(cells)]
    if len(cells) <= FEW_GROUPS:
        return [*combinations(cells, 2)]
    return [(cells[0], other) for other in cells[1:]]
