"""`pcs estimate`: shares, means, differences between groups and regressions, corrected for the errors of the labels."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from pcs_annotator.base.errors import ConfigError, GoldError
from pcs_annotator.base.text import counted
from pcs_annotator.core.arrays import Array, Floats, Mask
from pcs_annotator.core.passages import YES
from pcs_annotator.estimating.corrected import CoefficientEstimate, LabelRegression, Link, Study
from pcs_annotator.estimating.formula import LABEL, Factor, Formula, FormulaData, parse_formula
from pcs_annotator.runs.book import Book
from pcs_annotator.runs.opened import Run
from pcs_annotator.runs.passage_run import PassageRun
from pcs_annotator.studies.estimating import answers
from pcs_annotator.studies.estimating import evidence as known
from pcs_annotator.studies.estimating.answers import Estimated, EstimateQuestion, Line, adjusted
from pcs_annotator.studies.estimating.counts import count_evidence
from pcs_annotator.studies.estimating.groups import groups_of
from pcs_annotator.studies.estimating.table_evidence import table_evidence

LEAST_PER_COEFFICIENT = 10


def estimate_run(path: Path, question: answers.EstimateQuestion) -> answers.Estimated:
    """Answer a question about the labels of the run in a folder."""
    recorded = Run.open(path)
    if isinstance(recorded, PassageRun):
        return _counts(recorded, question)
    if recorded.config.task.kind == "number" and not (question.of or question.values or question.formula):
        question = replace(question, values={label: float(label) for label in recorded.config.task.labels})
    estimated = answer(known.evidence_of(recorded, question.probability or None, question.columns), question)
    return replace(estimated, title=question.in_words(estimated.labels), data=data_name(recorded))


def _counts(recorded: PassageRun, question: EstimateQuestion) -> Estimated:
    """Return the mean number of passages of each type in a text."""
    each = []
    for name, evidence in count_evidence(recorded, question).items():
        numbers = replace(question, values={label: float(label) for label in evidence.labels})
        estimated = answer(evidence, numbers)
        each.append(_named(estimated, f"{recorded.folder.part}={name}", recorded.folder.part))
    title = "Passages in a text, on average"
    return replace(_joined(each, [], question.p_adjust), title=title, data=data_name(recorded))


def estimate_all(source: object, question: EstimateQuestion) -> dict[str, Estimated]:
    """Answer a question about a table or a variable, with the name `""`, or about all variables of a run.

    Those have `shares` of all labels, then `means` of scales and numbers, if there are any.
    """
    is_table = question.is_about_table or not isinstance(source, str | Path) or Path(source).is_file()
    book = None if is_table else Book.open(Path(str(source)))
    if book is None or not book.named:
        return {"": estimate_any(source, question)}
    if question.of or question.values or question.formula:
        first = next(iter(book.parts.values())).home
        raise ConfigError(f"--of, --values and --formula are about one variable: name its folder, such as {first}")
    estimates: dict[str, list[Estimated]] = {"share": [], "mean": []}
    missing = []
    for name, task in book.variables.items():
        for part in book.parts_of(name):
            many = task.kind == "many"
            try:
                shares = estimate_run(book.parts[part].home, replace(question, of=(YES,)) if many else question)
                whole = part if many or shares.kind == "mean" else ""
                estimates[shares.kind].append(shares if task.extraction else _named(shares, whole, name))
                if task.kind == "scale":
                    means = estimate_run(book.parts[part].home, replace(question, values=numbers_of(task.labels)))
                    estimates["mean"].append(_named(means, name, name))
            except GoldError as error:
                missing.append(f"{part} is not estimated: {error}")
    if not any(estimates.values()):
        raise GoldError(f"no variable of {book.path} can be estimated: {missing[0]}")
    return {
        f"{kind}s": _joined(some, [] if kind == "mean" else missing, question.p_adjust)
        for kind, some in estimates.items()
        if some
    }


def numbers_of(labels: Sequence[str]) -> dict[str, float]:
    """Return the number of every step of a scale: what its label says or, unless all are numbers, its place from 1."""
    try:
        return {label: float(label) for label in labels}
    except ValueError:
        return {label: float(number) for number, label in enumerate(labels, 1)}


def _named(estimated: Estimated, whole: str, variable: str) -> Estimated:
    def named(line: Line) -> Line:
        return line._replace(name=whole or f"{variable}={line.name}")

    lines, differences = (list(map(named, some)) for some in (estimated.lines, estimated.differences))
    return replace(estimated, lines=lines, differences=differences)


def _joined(each: Sequence[Estimated], notes: Sequence[str], adjust: str) -> Estimated:
    return replace(
        each[0],
        lines=[line for estimated in each for line in estimated.lines],
        differences=adjusted([line for estimated in each for line in estimated.differences], adjust),
        missing=list(dict.fromkeys(group for estimated in each for group in estimated.missing)),
        notes=[*dict.fromkeys(note for estimated in each for note in estimated.notes), *notes],
        title="Share of the texts that have a label"
        if each[0].kind == "share"
        else "Means of scales, numbers and counts",
    )


def files_for(estimates: Iterable[str], out: Path | None) -> list[Path]:
    """Return a file for each table, if one is named: that one and, for means, one beside it."""
    return [out.with_stem(f"{out.stem}-{name}") if at else out for at, name in enumerate(estimates)] if out else []


def estimate_any(source: object, question: answers.EstimateQuestion) -> answers.Estimated:
    """Answer a question about a run in a folder or, if its columns are named, about a table."""
    if not question.is_about_table:
        if isinstance(source, str | Path) and not Path(source).is_file():
            return estimate_run(Path(source), question)
        where = f"{source} is a table" if isinstance(source, str | Path) else "this is a table"
        raise ConfigError(f"{where}: name --label, its column of machine labels, and --gold, true labels of some rows")
    evidence, name = table_evidence(source, question)
    return replace(answer(evidence, question), title=question.in_words(evidence.labels), data=name)


def data_name(recorded: Run) -> str:
    """Return the name of the data of a run."""
    return str(recorded.start.get("data") or recorded.folder.path.name)


def answer(evidence: known.LabelEvidence, question: answers.EstimateQuestion) -> answers.Estimated:
    """Answer a question from what is known about labels."""
    return regress(evidence, question) if question.formula else shares(evidence, question)


def shares(evidence: known.LabelEvidence, question: answers.EstimateQuestion) -> answers.Estimated:
    """Return the share of every label, or the mean of a numeric code, overall or by group, and differences."""
    study = known.study_of(evidence, larger=question.larger, cluster=question.cluster, weight=question.weight)
    groups = groups_of(evidence, study, question)
    larger = groups._replace(left=np.ones(len(groups.names)))
    lines, differences, bounded, targets = [], [], question.values is None, _targets(evidence.labels, question)
    # the coefficients of these regressions are the means of groups
    regressions = {
        name: LabelRegression(explanatory=[groups.members], outcome=values[np.newaxis, :, np.newaxis])
        for name, values in targets.items()
    }
    estimates = _estimates(study, regressions, together=bounded and not question.of)
    for name, values in targets.items():
        means, middle, of_label = regressions[name], float(np.unique(values).mean()), estimates[name]
        each = [groups.of(of_label, {group: 1.0}, middle) for group in range(len(groups.names))]
        for group, line in enumerate(each):
            rows = int(groups.gold_rows[group])
            lines.append(answers.line_of(name, groups.names[group], line, rows, bounded=bounded))
        if groups.pairs:  # whether groups differ is asked about more than these rows (Cochran, 1977, 2.14)
            of_label = answers.in_three_ways(replace(study, whole=False), means)
        for first, second in groups.pairs:
            between = f"{groups.names[second]} − {groups.names[first]}"
            line = larger.of(of_label, {second: 1.0, first: -1.0}, middle)
            rows = int(groups.gold_rows[[first, second]].sum())
            differences.append(answers.line_of(name, between, line, rows, test=True))
    return answers.Estimated(
        kind="share" if bounded else "mean",
        lines=lines,
        differences=answers.adjusted(differences, question.p_adjust),
        p_adjust=question.p_adjust,
        missing=groups.missing,
        rows=len(evidence.expected),
        labels=evidence.labels,
        notes=[*evidence.notes, *groups.notes, *_about(question, differences)],
    )


def _estimates(
    study: Study, regressions: Mapping[str, LabelRegression], *, together: bool
) -> dict[str, dict[str, CoefficientEstimate]]:
    """Return target → method → its estimate; shares of all labels `together` add up to 1 in every group."""
    tuning = study.joint_tuning(regressions.values()) if together else None
    estimated = {name: answers.in_three_ways(study, estimate, tuning) for name, estimate in regressions.items()}
    if together:
        shares = _on_simplex(np.stack([estimate["corrected"].value for estimate in estimated.values()], axis=1))
        for estimate, values in zip(estimated.values(), shares.T, strict=True):
            estimate["corrected"] = estimate["corrected"]._replace(value=values)
    return estimated


def _on_simplex(values: Floats) -> Floats:
    """Return the nearest shares, none negative and all together 1, to values that add up to 1 along the last axis."""
    falling = -np.sort(-values, axis=-1)
    over = (np.cumsum(falling, axis=-1) - 1) / np.arange(1, values.shape[-1] + 1)
    last = (falling > over).sum(axis=-1, keepdims=True) - 1
    projected: Floats = np.maximum(values - np.take_along_axis(over, last, axis=-1), 0.0)
    return projected


def _about(question: answers.EstimateQuestion, differences: Sequence[answers.Line]) -> list[str]:
    """Return what figures are about, where that is not the same for all, and what a cluster changes."""
    if question.larger:
        return []
    notes = ["shares are about these rows, differences about a larger whole, so they are less sure"]
    alone = "--cluster changes no corrected share of these rows, whose only error is drawing gold: add --larger"
    return [*(notes if differences else []), *([alone] if question.cluster else [])]


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


def regress(evidence: known.LabelEvidence, question: answers.EstimateQuestion) -> answers.Estimated:
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
    study = known.study_of(evidence, larger=True, cluster=question.cluster, weight=question.weight)
    notes = list(evidence.notes)
    if not rows.all():
        empty = counted(int((~rows).sum()), "row is", "rows are")
        notes.append(f"{empty} left out, because a column of the formula is empty there")
        study = known.restricted(study, rows)
    terms = data.coded(formula, rows)
    columns = [name for term in terms for name in term.names]
    link, outcome, equations = _outcome(formula.outcome, question.link, data, rows, evidence.labels)
    coefficients = len(columns) * outcome.shape[2]
    if len(study.sample) < (needed := LEAST_PER_COEFFICIENT * coefficients):
        raise GoldError(
            f"{len(study.sample)} gold rows are too few for {coefficients} coefficients, which need {needed}: draw "
            "more with pcs gold, or leave out columns"
        )
    three_ways = answers.in_three_ways(
        study, LabelRegression(explanatory=[contrasted.values for contrasted in terms], outcome=outcome, link=link)
    )
    lines = []
    for number, name in enumerate(f"{column}{equation}" for column in columns for equation in equations):
        chosen = np.eye(len(three_ways["naive"].value))[[number]]
        contrasted = {method: each.contrast(chosen) for method, each in three_ways.items()}
        lines.append(answers.line_of(name, "", contrasted, len(study.sample), test=True))
    return answers.Estimated(
        kind="regression",
        lines=answers.adjusted(lines, question.p_adjust),
        p_adjust=question.p_adjust,
        rows=int(rows.sum()),
        labels=evidence.labels,
        notes=[*notes, f"link: {link}"],
    )


def _columns(evidence: known.LabelEvidence, formula: Formula) -> dict[str, Array]:
    """Return the columns that a formula names; as texts if they are to be categories."""
    categories = {factor.name for factor in formula.factors if factor.function == "C"}
    present = [name for name in evidence.columns if name in formula.names]
    return {
        name: evidence.column(name).cells if name in categories else evidence.numbers_or_texts(name) for name in present
    }


def _refuse_without_label(formula: Formula, data: FormulaData) -> None:
    sides = [data.is_label(formula.outcome), any(data.is_label(factor) for term in formula.terms for factor in term)]
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
    if chosen := next((name for name in possible if name == link), None):
        return chosen
    raise ConfigError(f"the link {link!r} does not suit this outcome: use {' or '.join(possible)}")
