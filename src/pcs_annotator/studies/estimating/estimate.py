"""`pcs estimate`: shares, means, differences between groups and regressions, corrected for the errors of the labels."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from pcs_annotator.base.errors import ConfigError, GoldError
from pcs_annotator.core.arrays import Array, Floats, Mask
from pcs_annotator.estimating.corrected import LabelRegression, Link
from pcs_annotator.estimating.formula import LABEL, Factor, Formula, FormulaData, parse_formula
from pcs_annotator.runs.run import Run
from pcs_annotator.studies.estimating import answers
from pcs_annotator.studies.estimating.evidence import LabelEvidence, evidence_of, restricted, study_of
from pcs_annotator.studies.estimating.groups import groups_of
from pcs_annotator.studies.estimating.table import table_evidence

LEAST_PER_COEFFICIENT = 10


def estimate_run(path: Path, question: answers.EstimateQuestion) -> answers.Estimated:
    """Answer a question about the labels of the run in a folder."""
    recorded = Run.open(path)
    if recorded.config.task.kind == "number" and not (question.of or question.values or question.formula):
        question = replace(question, values={label: float(label) for label in recorded.config.task.labels})
    found = answer(evidence_of(recorded, question.probability or None, question.columns), question)
    return replace(found, title=question.in_words(found.labels), data=data_name(recorded))


def estimate_any(source: object, question: answers.EstimateQuestion) -> answers.Estimated:
    """Answer a question about a run in a folder or, if its columns are named, about a table."""
    if not (question.label or question.gold or question.confidence):
        if isinstance(source, str | Path) and not Path(source).is_file():
            return estimate_run(Path(source), question)
        where = f"{source} is a table" if isinstance(source, str | Path) else "this is a table"
        raise ConfigError(f"{where}: name --label, its column of machine labels, and --gold, true labels of some rows")
    evidence, name = table_evidence(source, question)
    return replace(answer(evidence, question), title=question.in_words(evidence.labels), data=name)


def data_name(recorded: Run) -> str:
    """Return the name of the data of a run."""
    return str(recorded.start.get("data") or recorded.folder.path.name)


def answer(evidence: LabelEvidence, question: answers.EstimateQuestion) -> answers.Estimated:
    """Answer a question from what is known about labels."""
    return regress(evidence, question) if question.formula else shares(evidence, question)


def shares(evidence: LabelEvidence, question: answers.EstimateQuestion) -> answers.Estimated:
    """Return the share of every label, or the mean of a numeric code, overall or by group, and differences."""
    study = study_of(evidence, larger=question.larger, cluster=question.cluster, weight=question.weight)
    groups = groups_of(evidence, study, question)
    larger = groups._replace(left=np.ones(len(groups.names)))
    lines, differences, bounded = [], [], question.values is None
    for name, values in _targets(evidence.labels, question).items():
        # the coefficients of this regression are the means of groups
        means = LabelRegression(explanatory=[groups.members], outcome=values[np.newaxis, :, np.newaxis])
        middle = float(np.unique(values).mean())
        found = answers.in_three_ways(study, means)
        each = [groups.of(found, {place: 1.0}, middle) for place in range(len(groups.names))]
        if question.pool:
            seen = groups.pooled(replace(study, unseen=0.0).corrected(means), float(np.ptp(values)))
            each = [{**one, "corrected": better} for one, better in zip(each, seen, strict=True)]
        for place, one in enumerate(each):
            rows = int(groups.gold_rows[place])
            band = answers.figure_of(one["corrected"], bounded=bounded, together=len(each)) if groups.trends else None
            line = answers.line_of(name, groups.names[place], one, rows, bounded=bounded)
            lines.append(line._replace(band=band))
        if groups.pairs:  # whether groups differ is asked about more than these rows (Cochran, 1977, 2.14)
            found = answers.in_three_ways(replace(study, whole=False), means)
        for first, second in groups.pairs:
            between = f"{groups.names[second]} − {groups.names[first]}"
            one = larger.of(found, {second: 1.0, first: -1.0}, middle)
            rows = int(groups.gold_rows[[first, second]].sum())
            ratio = larger.ratio(found["corrected"], second, first, middle) if bounded else None
            differences.append(answers.line_of(name, between, one, rows, test=True)._replace(ratio=ratio))
        for trend, weights in groups.trends.items():
            rows = int(groups.gold_rows[[*weights]].sum())
            differences.append(answers.line_of(name, trend, larger.of(found, weights, middle), rows, test=True))
    return answers.Estimated(
        kind="share" if bounded else "mean",
        lines=lines,
        differences=answers.adjusted(differences, question.p_adjust),
        p_adjust=question.p_adjust,
        missing=groups.missing,
        rows=len(evidence.expected),
        labels=evidence.labels,
        notes=[*evidence.notes, *groups.notes],
    )


def _targets(labels: Sequence[str], question: answers.EstimateQuestion) -> dict[str, Floats]:
    """Return what to estimate → the value of every label."""
    if question.values is not None:
        unknown = set(question.values) ^ set(labels)
        if unknown:
            raise ConfigError(f"every label needs one number, and {sorted(unknown)[0]!r} is missing or no label")
        return {"mean": np.array([question.values[label] for label in labels])}
    return {name: label_values(name, labels) for name in question.of or labels}


def label_values(expression: str, labels: Sequence[str]) -> Floats:
    """Return for every label whether it is named in an expression: a label, or several joined by `+`."""
    parts = [expression] if expression in labels else [part.strip() for part in expression.split("+")]
    if unknown := set(parts) - set(labels):
        raise ConfigError(f"{sorted(unknown)[0]!r} is no label; the labels are {', '.join(labels)}")
    return np.array([float(label in parts) for label in labels])


def regress(evidence: LabelEvidence, question: answers.EstimateQuestion) -> answers.Estimated:
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
    study = study_of(evidence, larger=True, cluster=question.cluster, weight=question.weight)
    notes = list(evidence.notes)
    if not rows.all():
        notes.append(f"{int((~rows).sum()):,} rows are left out, because a column of the formula is empty there")
        study = restricted(study, rows)
    terms = data.coded(formula, rows)
    columns = [name for term in terms for name in term.names]
    link, outcome, equations = _outcome(formula.outcome, question.link, data, rows, evidence.labels)
    _refuse_few(len(study.sample), len(columns) * outcome.shape[2])
    found = answers.in_three_ways(
        study, LabelRegression(explanatory=[one.values for one in terms], outcome=outcome, link=link)
    )
    lines = []
    for place, name in enumerate(f"{column}{equation}" for column in columns for equation in equations):
        chosen = np.eye(len(found["naive"].value))[[place]]
        one = {method: each.contrast(chosen) for method, each in found.items()}
        lines.append(answers.line_of(name, "", one, len(study.sample), test=True))
    return answers.Estimated(
        kind="regression",
        lines=answers.adjusted(lines, question.p_adjust),
        p_adjust=question.p_adjust,
        rows=int(rows.sum()),
        labels=evidence.labels,
        notes=[*notes, f"link: {link}"],
    )


def _columns(evidence: LabelEvidence, formula: Formula) -> dict[str, Array]:
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
