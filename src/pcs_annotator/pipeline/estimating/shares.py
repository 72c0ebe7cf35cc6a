"""Shares and means, overall or by group, and differences between groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from pcs_annotator.core.arrays import Array, Floats
from pcs_annotator.errors import ConfigError, GoldError
from pcs_annotator.judging.estimating.corrected import Estimate, Study
from pcs_annotator.judging.estimating.regression import LabelRegression
from pcs_annotator.pipeline.estimating.answers import METHODS, Estimated, Line, Question, in_three_ways, line_of
from pcs_annotator.pipeline.estimating.evidence import Evidence, restricted, study_of

LEAST_IN_GROUP = 10
MOST_GROUPS = 60
PERIODS = {"year": 4, "month": 7, "day": 10}
"""Period → how many letters of an ISO date name it."""


def shares(evidence: Evidence, question: Question) -> Estimated:
    """Return the share of every label, or the mean of a numeric code, overall or by group, and differences."""
    cells = _groups(evidence, question)
    whole = study_of(evidence, larger=question.larger, cluster=question.cluster)
    lines, differences, notes = [], [], list(evidence.notes)
    for name, values in _targets(evidence.labels, question).items():
        target = _mean_of(values)
        overall = in_three_ways(whole, target(len(whole.expected)))
        tuning = overall["corrected"].tuning
        if cells is None:
            lines.append(line_of(name, "", overall, len(whole.sample), bounded=question.values is None))
            continue
        found: dict[str, dict[str, Estimate]] = {}
        for group, study in _within(whole, cells).items():
            if len(study.sample) < LEAST_IN_GROUP:
                continue
            found[group] = in_three_ways(study, target(len(study.expected)), tuning)
            lines.append(line_of(name, group, found[group], len(study.sample), bounded=question.values is None))
        differences += [_difference(name, pair, found, whole, cells) for pair in _pairs(list(found), question)]
    if cells is not None:
        notes += _small_groups(whole, cells)
        if not lines:
            raise GoldError(f"no group of {question.by!r} has {LEAST_IN_GROUP} gold rows: draw more with pcs gold")
    kind = "share" if question.values is None else "mean"
    rows = len(evidence.expected)
    return Estimated(kind=kind, lines=lines, differences=differences, rows=rows, labels=evidence.labels, notes=notes)


def _targets(labels: Sequence[str], question: Question) -> dict[str, Floats]:
    """Return what to estimate → the value of every label."""
    if question.values is not None:
        unknown = set(question.values) ^ set(labels)
        if unknown:
            raise ConfigError(f"every label needs one number, and {sorted(unknown)[0]!r} is missing or no label")
        return {"mean": np.array([question.values[label] for label in labels])}
    found = {}
    for name in question.of or labels:
        found[name] = label_values(name, labels)
    return found


def label_values(expression: str, labels: Sequence[str]) -> Floats:
    """Return for every label whether it is named in an expression: a label, or several joined by `+`."""
    parts = [expression] if expression in labels else [part.strip() for part in expression.split("+")]
    if unknown := set(parts) - set(labels):
        raise ConfigError(f"{sorted(unknown)[0]!r} is no label; the labels are {', '.join(labels)}")
    return np.array([float(label in parts) for label in labels])


def _mean_of(values: Floats) -> Any:
    outcome = values[np.newaxis, :, np.newaxis]
    return lambda rows: LabelRegression(explanatory=np.ones((rows, 1, 1)), outcome=outcome)


def _groups(evidence: Evidence, question: Question) -> Array | None:
    if not question.by:
        return None
    cells = evidence.column(question.by)
    if question.every:
        if question.every not in PERIODS:
            raise ConfigError(f"--every is {question.every!r}, must be one of {', '.join(PERIODS)}")
        cells = np.array([_period(cell, question, row) for row, cell in enumerate(cells.tolist(), 1)], dtype=object)
    count = len({*cells.tolist()})
    if count > MOST_GROUPS:
        raise ConfigError(
            f"column {question.by!r} has {count:,} groups, at most {MOST_GROUPS} can be estimated: join some, or use "
            "--every with dates"
        )
    return cells


def _period(cell: str, question: Question, row: int) -> str:
    from datetime import datetime

    if not cell:
        return ""
    try:
        return datetime.fromisoformat(cell).isoformat()[: PERIODS[question.every]]
    except ValueError:
        raise ConfigError(
            f"row {row}, column {question.by!r}: {cell!r} is not a date such as 2026-01-31: correct it, or leave out "
            "--every"
        ) from None


def _within(study: Study, cells: Array) -> dict[str, Study]:
    return {group: restricted(study, cells == group) for group in sorted({*cells.tolist()} - {""})}


def _small_groups(study: Study, cells: Array) -> list[str]:
    small = [group for group, one in _within(study, cells).items() if len(one.sample) < LEAST_IN_GROUP]
    notes = []
    if small:
        notes.append(f"groups with fewer than {LEAST_IN_GROUP} gold rows are not shown: {', '.join(small)}")
    if empty := int((cells == "").sum()):
        notes.append(f"{empty:,} rows have no group")
    return notes


def _pairs(groups: Sequence[str], question: Question) -> list[tuple[str, str]]:
    """Return which groups to compare: all with each other if they are few; periods with the one before."""
    if question.every:
        return [*pairwise(groups)]
    return [*combinations(groups, 2)] if len(groups) <= 4 else [(groups[0], other) for other in groups[1:]]


def _difference(
    name: str, pair: tuple[str, str], found: Mapping[str, Mapping[str, Estimate]], study: Study, cells: Array
) -> Line:
    """Return the second group minus the first."""
    one, other = (found[group] for group in pair)
    both = {
        method: Estimate(
            other[method].value - one[method].value,
            other[method].covariance + one[method].covariance,
            _joint_freedom(one[method], other[method]),
            one[method].tuning,
        )
        for method in METHODS
    }
    rows = int(np.isin(cells[study.sample.rows].astype(str), pair).sum())
    return line_of(name, f"{pair[1]} − {pair[0]}", both, rows, test=True)


def _joint_freedom(one: Estimate, other: Estimate) -> float:
    """Return the degrees of freedom of a difference (Welch, 1947)."""
    first, second = one.covariance.item(), other.covariance.item()
    if first + second == 0:
        return one.freedom + other.freedom
    return (first + second) ** 2 / (first**2 / one.freedom + second**2 / other.freedom)
