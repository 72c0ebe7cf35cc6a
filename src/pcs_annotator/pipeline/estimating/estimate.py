"""`pcs estimate`: shares, means, differences between groups and regressions, corrected for the errors of the labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pcs_annotator.core.arrays import Array, Floats, Mask
from pcs_annotator.core.result_table import Figure
from pcs_annotator.core.weights import Interval
from pcs_annotator.errors import ConfigError, GoldError
from pcs_annotator.files.runs import RunFolder
from pcs_annotator.judging.estimating.corrected import Estimate, Study
from pcs_annotator.judging.estimating.formula import LABEL, Factor, Formula, FormulaData, parse_formula
from pcs_annotator.judging.estimating.regression import LabelRegression, Link
from pcs_annotator.pipeline.estimating.evidence import Evidence, evidence_of
from pcs_annotator.pipeline.run_folder import Recorded

LEAST_IN_GROUP = 10
MOST_GROUPS = 60
TAIL = 0.025
METHODS = ("corrected", "gold_only", "naive")
PERIODS = {"year": 4, "month": 7, "day": 10}
"""Period → how many letters of an ISO date name it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What to estimate.

    Attributes:
        of: Labels whose share is wanted, each one label or several joined by `+`; all labels if empty.
        values: Label → number, for the mean of a numeric code instead of shares.
        by: Columns of groups; empty for all rows together.
        every: With a column of dates: `year`, `month` or `day`.
        formula: A regression such as `hateful ~ party + log(followers)`; empty for shares.
        link: `linear`, `logistic` or `multinomial`; empty for what suits the outcome.
        cluster: A column; rows with the same text there may have errors in common.
        probability: A column with the probability that a row was drawn for a gold label.
        larger: Whether the rows are a random sample of something larger; otherwise, shares are those of these rows.
    """

    of: Sequence[str] = ()
    values: Mapping[str, float] | None = None
    by: str = ""
    every: str = ""
    formula: str = ""
    link: str = ""
    cluster: str = ""
    probability: str = ""
    larger: bool = False


class Line(NamedTuple):
    """One quantity, estimated in three ways.

    Attributes:
        name: What is estimated: a label, an expression of labels, or a column of a formula.
        group: Of which rows, or which two groups are compared; empty for all.
        corrected: From machine and gold labels.
        gold_only: From gold labels alone.
        naive: From machine labels as if they were true; biased.
        gold_rows: How many gold rows it is based on.
        tuning: How much machine labels count in the corrected estimate, 0 to 1.
        p_value: Of the hypothesis that the quantity is 0; None for shares and means.
    """

    name: str
    group: str
    corrected: Figure
    gold_only: Figure
    naive: Figure
    gold_rows: int
    tuning: float
    p_value: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        figures = {name: _plain(getattr(self, name)) for name in METHODS}
        rest = {"gold_rows": self.gold_rows, "tuning": self.tuning, "p_value": self.p_value}
        return {"name": self.name, "group": self.group, **figures, **rest}


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimated:
    """Answers to a question.

    Attributes:
        kind: `share`, `mean` or `regression`.
        lines: The estimates.
        differences: Between groups.
        rows: How many rows they are about.
        labels: All labels.
        notes: What was left out or assumed.
    """

    kind: str
    lines: Sequence[Line]
    differences: Sequence[Line] = ()
    rows: int = 0
    labels: Sequence[str] = ()
    notes: Sequence[str] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "kind": self.kind,
            "rows": self.rows,
            "estimates": [line.to_dict() for line in self.lines],
            "differences": [line.to_dict() for line in self.differences],
            "notes": list(self.notes),
        }


def _plain(figure: Figure) -> dict[str, float | None]:
    low, high = figure.interval or (None, None)
    return {"value": figure.value, "low": low, "high": high}


def estimate_run(path: Path, question: Question) -> Estimated:
    """Answer a question about the labels of the run in a folder."""
    return answer(evidence_of(Recorded.read(RunFolder(path)), question.probability or None), question)


def answer(evidence: Evidence, question: Question) -> Estimated:
    """Answer a question from what is known about labels."""
    return regress(evidence, question) if question.formula else shares(evidence, question)


def shares(evidence: Evidence, question: Question) -> Estimated:
    """Return the share of every label, or the mean of a numeric code, overall or by group, and differences."""
    cells = _groups(evidence, question)
    whole = _study(evidence, question)
    lines, differences, notes = [], [], list(evidence.notes)
    for name, values in _targets(evidence.labels, question).items():
        target = _mean_of(values)
        overall = _in_three_ways(whole, target(len(whole.expected)))
        tuning = overall["corrected"].tuning
        if cells is None:
            lines.append(_line(name, "", overall, len(whole.sample), bounded=question.values is None))
            continue
        found: dict[str, dict[str, Estimate]] = {}
        for group, study in _within(whole, cells).items():
            if len(study.sample) < LEAST_IN_GROUP:
                continue
            found[group] = _in_three_ways(study, target(len(study.expected)), tuning)
            lines.append(_line(name, group, found[group], len(study.sample), bounded=question.values is None))
        differences += [_difference(name, pair, found, whole, cells) for pair in _pairs(list(found), question)]
    if cells is not None:
        notes += _small_groups(whole, cells)
        if not lines:
            raise GoldError(f"no group of {question.by!r} has {LEAST_IN_GROUP} gold rows: draw more with pcs gold")
    kind = "share" if question.values is None else "mean"
    rows = len(evidence.expected)
    return Estimated(kind=kind, lines=lines, differences=differences, rows=rows, labels=evidence.labels, notes=notes)


def regress(evidence: Evidence, question: Question) -> Estimated:
    """Return the coefficients of a regression with the label as outcome or among the explanatory variables."""
    formula = parse_formula(question.formula)
    named = {factor.name for term in formula.terms for factor in term} | {formula.outcome.name}
    present = [name for name in evidence.table.column_names if name in named]
    data = FormulaData({name: evidence.column(name) for name in present}, evidence.labels)
    _refuse_without_label(formula, data)
    rows = data.complete(formula) if present else np.ones(len(evidence.expected), dtype=np.bool_)
    study = _study(evidence, replace(question, larger=True))
    notes = list(evidence.notes)
    if not rows.all():
        notes.append(f"{int((~rows).sum()):,} rows are left out, because a column of the formula is empty there")
        study = _restricted(study, rows)
    coded = data.coded(formula, rows)
    link, outcome, equations = _outcome(formula.outcome, question.link, data, rows, evidence.labels)
    _refuse_few(len(study.sample), coded.values.shape[2] * outcome.shape[2])
    found = _in_three_ways(study, LabelRegression(explanatory=coded.values, outcome=outcome, link=link))
    lines = []
    for place, name in enumerate(f"{column}{equation}" for column in coded.names for equation in equations):
        chosen = np.eye(len(found["naive"].value))[[place]]
        one = {method: each.contrast(chosen) for method, each in found.items()}
        lines.append(_line(name, "", one, len(study.sample), test=True))
    return Estimated(
        kind="regression", lines=lines, rows=int(rows.sum()), labels=evidence.labels, notes=[*notes, f"link: {link}"]
    )


def _study(evidence: Evidence, question: Question) -> Study:
    clusters = None
    if question.cluster:
        _, clusters = np.unique(evidence.column(question.cluster), return_inverse=True)
    return Study(
        expected=evidence.expected,
        held_out=evidence.held_out,
        sample=evidence.sample,
        whole=not question.larger,
        clusters=clusters,
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
        parts = [name] if name in labels else [part.strip() for part in name.split("+")]
        unknown = set(parts) - set(labels)
        if unknown:
            raise ConfigError(f"{sorted(unknown)[0]!r} is no label; the labels are {', '.join(labels)}")
        found[name] = np.array([float(label in parts) for label in labels])
    return found


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
    return {group: _restricted(study, cells == group) for group in sorted({*cells.tolist()} - {""})}


def _restricted(study: Study, rows: Mask) -> Study:
    """Return what is known about some of the rows."""
    inside = rows[study.sample.rows]
    return replace(
        study,
        expected=study.expected[rows],
        held_out=study.held_out[inside],
        sample=study.sample.take(inside, rows.cumsum() - 1),
        clusters=None if study.clusters is None else study.clusters[rows],
    )


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


def _in_three_ways(study: Study, target: LabelRegression, tuning: float | None = None) -> dict[str, Estimate]:
    return {
        "corrected": study.corrected(target, tuning),
        "gold_only": study.gold_only(target),
        "naive": study.naive(target),
    }


def _line(  # one argument for each part
    name: str, group: str, found: Mapping[str, Estimate], rows: int, *, bounded: bool = False, test: bool = False
) -> Line:
    figures = {method: _figure(one, bounded=bounded) for method, one in found.items()}
    p_value = _p_value(found["corrected"]) if test else None
    return Line(name, group, **figures, gold_rows=rows, tuning=found["corrected"].tuning, p_value=p_value)


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
    return _line(name, f"{pair[1]} − {pair[0]}", both, rows, test=True)


def _joint_freedom(one: Estimate, other: Estimate) -> float:
    """Return the degrees of freedom of a difference (Welch, 1947)."""
    first, second = one.covariance.item(), other.covariance.item()
    if first + second == 0:
        return one.freedom + other.freedom
    return (first + second) ** 2 / (first**2 / one.freedom + second**2 / other.freedom)


def _figure(one: Estimate, *, bounded: bool) -> Figure:
    """Return a figure with its 95 % interval; that of a share comes from its log-odds and stays within 0 and 1."""
    from scipy.special import expit, logit
    from scipy.stats import t as student

    value, error = one.value.item(), float(np.sqrt(one.covariance.item()))
    reach = float(student.ppf(1 - TAIL, one.freedom)) * error
    if not bounded:
        return Figure(value, Interval(value - reach, value + reach))
    if not 0 < value < 1:
        value = min(max(value, 0.0), 1.0)
        return Figure(value, Interval(max(0.0, value - reach), min(1.0, value + reach)))
    low, high = expit(logit(value) + np.array([-1, 1]) * reach / (value * (1 - value)))
    return Figure(value, Interval(float(low), float(high)))


def _p_value(one: Estimate) -> float:
    from scipy.stats import t as student

    error = float(np.sqrt(one.covariance.item()))
    return float(2 * student.sf(abs(one.value.item()) / error, one.freedom)) if error else float(one.value.item() == 0)


def _refuse_without_label(formula: Formula, data: FormulaData) -> None:
    sides = [data.is_label(formula.outcome), any(data.is_label(one) for term in formula.terms for one in term)]
    if sum(sides) != 1:
        why = "on both sides" if all(sides) else "nowhere"
        raise ConfigError(
            f"the formula names a label {why}: a label must be the outcome, or be among the columns that explain it"
        )


def _outcome(
    factor: Factor, link: str, data: FormulaData, rows: Mask, labels: Sequence[str]
) -> tuple[Link, Floats, Sequence[str]]:
    """Return the kind of regression, its outcome, and what its equations are called."""
    if not data.is_label(factor):
        values = data.numbers(factor, rows)
        two = {*np.unique(values).tolist()} == {0.0, 1.0}
        kind = _checked(link or ("logistic" if two else "linear"), ("linear", *(("logistic",) if two else ())))
        return kind, values[:, np.newaxis, np.newaxis], ("",)
    if factor.name == LABEL:
        _checked(link or "multinomial", ("multinomial",))
        return "multinomial", np.eye(len(labels))[np.newaxis, :, 1:], [f" → {label}" for label in labels[1:]]
    kind = _checked(link or "logistic", ("linear", "logistic"))
    return kind, data.indicator(factor.name)[np.newaxis, :, np.newaxis], ("",)


def _checked(link: str, possible: Sequence[Link]) -> Link:
    for one in possible:
        if link == one:
            return one
    raise ConfigError(f"the link {link!r} does not suit this outcome: use {' or '.join(possible)}")


def _refuse_few(gold_rows: int, coefficients: int) -> None:
    needed = LEAST_IN_GROUP * coefficients
    if gold_rows < needed:
        raise GoldError(
            f"{gold_rows} gold rows are too few for {coefficients} coefficients, which need {needed}: draw more with "
            "pcs gold, or leave out columns"
        )
