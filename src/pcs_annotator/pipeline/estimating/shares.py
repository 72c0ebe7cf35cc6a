"""Shares and means, overall or by group, and differences between groups."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np

from pcs_annotator.core.arrays import Array, Floats, Integers, Mask
from pcs_annotator.errors import ConfigError, GoldError
from pcs_annotator.judging.estimating.corrected import Estimate
from pcs_annotator.judging.estimating.regression import LabelRegression
from pcs_annotator.pipeline.estimating.answers import Estimated, Question, in_three_ways, line_of
from pcs_annotator.pipeline.estimating.cells import Encoded
from pcs_annotator.pipeline.estimating.evidence import Evidence, study_of

LEAST_IN_GROUP = 10
MOST_GROUPS = 60
_DOTTED = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})(?:[ T]\d{1,2}:\d{2}(?::\d{2})?)?")
PERIODS = {"year": 4, "month": 7, "day": 10}
"""Period → how many letters of an ISO date name it."""


def shares(evidence: Evidence, question: Question) -> Estimated:
    """Return the share of every label, or the mean of a numeric code, overall or by group, and differences."""
    study = study_of(evidence, larger=question.larger, cluster=question.cluster)
    groups = _groups(evidence, question) if question.by else None
    lines, differences, bounded = [], [], question.values is None
    for name, values in _targets(evidence.labels, question).items():
        if groups is None:
            found = in_three_ways(study, _mean_of(values, np.ones((1, 1, 1))))
            lines.append(line_of(name, "", found, len(study.sample), bounded=bounded))
            continue
        found = in_three_ways(study, _mean_of(values, groups.members))
        for place, group in enumerate(groups.names):
            one = groups.of(found, {place: 1.0})
            lines.append(line_of(name, group, one, int(groups.gold_rows[place]), bounded=bounded))
        for first, second in _pairs(len(groups.names), question):
            between = f"{groups.names[second]} − {groups.names[first]}"
            one = groups.of(found, {second: 1.0, first: -1.0})
            rows = int(groups.gold_rows[[first, second]].sum())
            differences.append(line_of(name, between, one, rows, test=True))
    return Estimated(
        kind="share" if bounded else "mean",
        lines=lines,
        differences=differences,
        rows=len(evidence.expected),
        labels=evidence.labels,
        notes=[*evidence.notes, *(groups.notes if groups else ())],
    )


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


def _mean_of(values: Floats, members: Array) -> LabelRegression:
    """Return the regression whose coefficients are the means of groups of rows."""
    return LabelRegression(explanatory=[members], outcome=values[np.newaxis, :, np.newaxis])


class _Groups(NamedTuple):
    """Groups with enough gold rows.

    Attributes:
        names: Of the groups.
        members: Which rows are in which group, `[row, 1, group]`.
        rows: How many rows each group has.
        gold_rows: How many of them have gold.
        strata: From how many strata the gold rows of each group are.
        notes: What is not shown.
    """

    names: Sequence[str]
    members: Mask
    rows: Integers
    gold_rows: Integers
    strata: Integers
    notes: Sequence[str]

    def of(self, found: Mapping[str, Estimate], weights: Mapping[int, float]) -> dict[str, Estimate]:
        """Return a weighted sum over groups; errors and degrees of freedom are those of the groups' own rows."""
        chosen = np.array([weights.get(place, 0.0) for place in range(len(self.names))])
        result = {}
        for method, one in found.items():
            rows = self.rows if method == "naive" else self.gold_rows
            # the mean of a group is estimated from its own rows
            scale = chosen if method == "naive" else chosen * np.sqrt(rows / np.maximum(rows - 1, 1))
            strata = 1 if method == "naive" else self.strata
            own = np.diag(one.covariance) * scale**2
            # Welch (1947)
            freedom = own.sum() ** 2 / max((own**2 / np.maximum(rows - strata, 1)).sum(), 1e-300)
            covariance = (scale @ one.covariance @ scale).reshape(1, 1)
            result[method] = Estimate(one.value @ chosen[:, np.newaxis], covariance, max(freedom, 1.0), one.tuning)
        return result


def _groups(evidence: Evidence, question: Question) -> _Groups:
    cells, sample = _cells(evidence, question), evidence.sample
    gold = cells[sample.rows]
    strata = {name: {*sample.stratum[gold == name].tolist()} for name in sorted({*cells.tolist()} - {""})}
    counts = {name: int((gold == name).sum()) for name in strata}
    names = [name for name, count in counts.items() if count >= LEAST_IN_GROUP]
    if not names:
        raise GoldError(f"no group of {question.by!r} has {LEAST_IN_GROUP} gold rows: draw more with pcs gold")
    notes = []
    if small := [name for name in counts if name not in names]:
        notes.append(f"groups with fewer than {LEAST_IN_GROUP} gold rows are not shown: {', '.join(small)}")
    if empty := int((cells == "").sum()):
        notes.append(f"{empty:,} rows have no group")
    members = np.stack([cells == name for name in names], axis=1)
    return _Groups(
        names,
        members[:, np.newaxis],
        members.sum(axis=0),
        np.array([counts[name] for name in names]),
        np.array([len(strata[name]) for name in names]),
        notes,
    )


def _cells(evidence: Evidence, question: Question) -> Array:
    column = evidence.column(question.by)
    if question.every:
        if question.every not in PERIODS:
            raise ConfigError(f"--every is {question.every!r}, must be one of {', '.join(PERIODS)}")
        column = column._replace(texts=_periods(column, question))
    count = len({*column.texts.tolist()})
    if count > MOST_GROUPS:
        raise ConfigError(
            f"column {question.by!r} has {count:,} groups, at most {MOST_GROUPS} can be estimated: join some, or use "
            "--every with dates"
        )
    return column.cells


def _periods(column: Encoded, question: Question) -> Array:
    """Return the period of every date."""
    found = column.texts.copy()
    for code, text in enumerate(column.texts.tolist()):
        try:
            found[code] = text and _date(text).isoformat()[: PERIODS[question.every]]
        except ValueError:
            row = int((column.codes == code).argmax()) + 1
            raise ConfigError(
                f"row {row}, column {question.by!r}: {text!r} is not a date such as 2026-01-31 or 31.01.2026: "
                "correct it, or leave out --every"
            ) from None
    return found


def _date(text: str) -> date:
    """Return a date that is written as ISO 8601 has it, or with points: day, month, year, as everywhere with points."""
    if dotted := _DOTTED.fullmatch(text):
        day, month, year = map(int, dotted.groups())
        return date(year, month, day)
    return datetime.fromisoformat(text)


def _pairs(groups: int, question: Question) -> list[tuple[int, int]]:
    """Return which groups to compare: all with each other if they are few; periods with the one before."""
    if question.every:
        return [*pairwise(range(groups))]
    return [*combinations(range(groups), 2)] if groups <= 4 else [(0, other) for other in range(1, groups)]
