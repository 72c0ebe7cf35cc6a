"""Regressions with the label as outcome or among what explains it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pcs_annotator.base.errors import ConfigError, GoldError
from pcs_annotator.core.arrays import Array, Floats, Mask
from pcs_annotator.judging.estimating.formula import LABEL, Factor, Formula, FormulaData, parse_formula
from pcs_annotator.judging.estimating.regression import LabelRegression, Link
from pcs_annotator.studies.estimating.answers import Estimated, Question, adjusted, in_three_ways, line_of
from pcs_annotator.studies.estimating.evidence import Evidence, restricted, study_of

LEAST_PER_COEFFICIENT = 10


def regress(evidence: Evidence, question: Question) -> Estimated:
    """Return the coefficients of a regression with the label as outcome or among the explanatory variables."""
    formula = parse_formula(question.formula)
    if unknown := formula.names - {*evidence.columns, *evidence.labels, LABEL}:
        raise ConfigError(
            f"the formula names {min(unknown)!r}, which is neither a column nor a label; there are "
            f"{', '.join([*evidence.columns, *evidence.labels])}"
        )
    data = FormulaData(_columns(evidence, formula), evidence.labels)
    _refuse_without_label(formula, data)
    rows = data.complete(formula, len(evidence.expected))
    study = study_of(evidence, larger=True, cluster=question.cluster)
    notes = list(evidence.notes)
    if not rows.all():
        notes.append(f"{int((~rows).sum()):,} rows are left out, because a column of the formula is empty there")
        study = restricted(study, rows)
    terms = data.coded(formula, rows)
    columns = [name for term in terms for name in term.names]
    link, outcome, equations = _outcome(formula.outcome, question.link, data, rows, evidence.labels)
    _refuse_few(len(study.sample), len(columns) * outcome.shape[2])
    found = in_three_ways(study, LabelRegression(explanatory=[one.values for one in terms], outcome=outcome, link=link))
    lines = []
    for place, name in enumerate(f"{column}{equation}" for column in columns for equation in equations):
        chosen = np.eye(len(found["naive"].value))[[place]]
        one = {method: each.contrast(chosen) for method, each in found.items()}
        lines.append(line_of(name, "", one, len(study.sample), test=True))
    lines = adjusted(lines)
    return Estimated(
        kind="regression", lines=lines, rows=int(rows.sum()), labels=evidence.labels, notes=[*notes, f"link: {link}"]
    )


def _columns(evidence: Evidence, formula: Formula) -> dict[str, Array]:
    """Return the columns that a formula names; as texts if they are to be categories."""
    categories = {factor.name for factor in formula.factors if factor.function == "C"}
    present = [name for name in evidence.columns if name in formula.names]
    return {
        name: evidence.column(name).cells if name in categories else evidence.numbers_or_texts(name) for name in present
    }


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
    needed = LEAST_PER_COEFFICIENT * coefficients
    if gold_rows < needed:
        raise GoldError(
            f"{gold_rows} gold rows are too few for {coefficients} coefficients, which need {needed}: draw more with "
            "pcs gold, or leave out columns"
        )
