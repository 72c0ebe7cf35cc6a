"""`pcs estimate`: shares, means, differences between groups and regressions, corrected for the errors of the labels."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from itertools import combinations, pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pcs_annotator.base.errors import ConfigError, GoldError
from pcs_annotator.core.arrays import Array, Floats, Integers, Mask
from pcs_annotator.judging.estimating.corrected import UNSEEN, CoefficientEstimate, LabelRegression, Link, Study
from pcs_annotator.judging.estimating.formula import LABEL, Factor, Formula, FormulaData, parse_formula
from pcs_annotator.runs.run import Run
from pcs_annotator.studies.estimating import answers
from pcs_annotator.studies.estimating.evidence import CodedColumn, LabelEvidence, evidence_of, restricted, study_of

LEAST_IN_GROUP = 10
MOST_GROUPS = 60
FEW_GROUPS = 4
"""So many groups are compared with each other, more of them with the first."""
PERIODS = {"year": 4, "month": 7, "day": 10}
"""Period → how many letters of an ISO date name it."""
_DOTTED = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})(?:[ T]\d{1,2}:\d{2}(?::\d{2})?)?")
Cell = tuple[str, ...]
LEAST_PER_COEFFICIENT = 10


class Groups(NamedTuple):
    """Groups with enough gold rows."""

    names: Sequence[str]  # of the groups; one without a name if all rows are one
    members: Array  # which rows are in which group, `[row, 1, group]`
    rows: Integers  # how many rows each group has
    gold_rows: Integers  # how many of them have gold
    strata: Integers  # from how many strata the gold rows of each group are
    counted: Floats  # how many gold rows of equal weight would tell as much
    left: Floats  # which part of the variance among them is error; 0 if all rows of the group have gold
    pairs: Sequence[tuple[int, int]] = ()  # which groups are compared, the first and the second
    missing: Sequence[answers.Missing] = ()  # groups with too little gold
    notes: Sequence[str] = ()  # what was left out

    def of(
        self, found: Mapping[str, CoefficientEstimate], weights: Mapping[int, float], middle: float
    ) -> dict[str, CoefficientEstimate]:
        """Return a weighted sum over groups; errors and degrees of freedom are those of the groups' own rows.

        `found` is method → the mean of every group; `weights`, place of a group → its weight; `middle`, the mean of an
        unseen row, of which there are `UNSEEN` in every group.
        """
        chosen = np.array([weights.get(place, 0.0) for place in range(len(self.names))])
        result = {}
        for method, one in found.items():
            naive = method == "naive"
            rows, strata = (self.rows, 1) if naive else (self.counted, self.strata)
            scale = chosen if naive else chosen * self._scale
            shift = 0.0 if naive else float(chosen @ (np.sqrt(self.left) * self._unseen * (middle - one.value)))
            own = np.diag(one.covariance) * scale**2
            # Welch (1947)
            freedom = own.sum() ** 2 / max((own**2 / np.maximum(rows - strata, 1)).sum(), 1e-300)
            freedom = max(min(freedom, one.freedom), 1.0)
            covariance = (scale @ one.covariance @ scale).reshape(1, 1)
            result[method] = CoefficientEstimate(
                one.value @ chosen[:, np.newaxis], covariance, freedom, one.tuning, shift
            )
        return result

    @property
    def _unseen(self) -> Floats:
        return UNSEEN / (self.counted + UNSEEN)

    @property
    def _scale(self) -> Floats:
        """Return the factor on errors of a regression: a group's mean is estimated from its own rows."""
        own, total = np.maximum(self.gold_rows, 2), max(int(self.gold_rows.sum()), 2)
        return (1 - self._unseen) * np.sqrt(own / (own - 1) * (total - 1) / total)


def groups_of(evidence: LabelEvidence, study: Study, question: answers.EstimateQuestion) -> Groups:
    """Return the groups that a question asks for."""
    if not question.columns_of_groups:
        return _with_gold(study, [()], np.zeros(len(evidence.expected), dtype=np.intp))
    columns, dated = _columns_of_groups(evidence, question)
    cells, code = _cells(columns)
    gold = np.bincount(code[study.sample.rows], minlength=len(cells))
    named = [all(cell) for cell in cells]
    shown = [place for place, count in enumerate(gold) if named[place] and count >= LEAST_IN_GROUP]
    if not shown:
        asked = " and ".join(map(repr, question.columns_of_groups))
        raise GoldError(f"no group of {asked} has {LEAST_IN_GROUP} gold rows: draw more with pcs gold")
    place = np.full(len(cells), -1)
    place[shown] = np.arange(len(shown))
    empty = int((~np.array(named)[code]).sum())
    kept = [cells[one] for one in shown]
    return _with_gold(study, kept, place[code])._replace(
        pairs=_pairs(kept, dated),
        missing=[
            answers.Missing(_name(cell), int(rows), f"it has {rows} gold rows, and {LEAST_IN_GROUP} are needed")
            for at, (cell, rows) in enumerate(zip(cells, gold, strict=True))
            if named[at] and at not in shown
        ],
        notes=[f"{empty:,} rows have no group"] if empty else [],
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


def _with_gold(study: Study, cells: Sequence[Cell], place: Integers) -> Groups:
    """Return groups of rows; `place` is the group of every row, -1 for none."""
    sample, count = study.sample, len(cells)
    inside = [place[sample.rows] == group for group in range(count)]
    squares = np.array([(sample.weights[one] ** 2).sum() for one in inside])
    left = np.array([(study.left[one] * sample.weights[one] ** 2).sum() for one in inside])
    return Groups(
        names=[_name(cell) for cell in cells],
        members=np.ones((1, 1, 1)) if cells == [()] else (place[:, np.newaxis] == np.arange(count))[:, np.newaxis],
        rows=np.bincount(place[place >= 0], minlength=count),
        gold_rows=np.array([int(one.sum()) for one in inside]),
        strata=np.array([len(np.unique(sample.stratum[one])) for one in inside]),
        counted=np.array([sample.weights[one].sum() ** 2 for one in inside]) / squares,
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
        found = date(*map(int, dotted.groups()[::-1])) if dotted else datetime.fromisoformat(text)
    except ValueError:
        return None
    return found.isoformat()[: PERIODS[every]]


def _periods(column: CodedColumn, name: str, every: str) -> CodedColumn:
    """Return a column with the period of every date."""
    found = column.texts.copy()
    for code, text in enumerate(column.texts.tolist()):
        period = _period(text, every) if text else ""
        if period is None:
            row = int((column.codes == code).argmax()) + 1
            raise ConfigError(
                f"row {row}, column {name!r}: {text!r} is not a date such as 2026-01-31 or 31.01.2026: "
                "correct it, or leave out --every"
            )
        found[code] = period
    return column._replace(texts=found)


def _pairs(cells: Sequence[Cell], dated: Sequence[bool]) -> list[tuple[int, int]]:
    """Return which groups to compare: those that differ in one column, there as `_compared` says."""
    places = {cell: place for place, cell in enumerate(cells)}
    found = []
    for at, dates in enumerate(dated):
        others: dict[Cell, list[Cell]] = {}
        for cell in cells:
            others.setdefault((*cell[:at], *cell[at + 1 :]), []).append(cell)
        found += [(places[one], places[other]) for alike in others.values() for one, other in _compared(alike, dates)]
    return found


def _compared(cells: Sequence[Cell], dates: bool) -> list[tuple[Cell, Cell]]:
    """Return pairs of groups: periods with the one before, few groups with each other, many with the first."""
    if dates:
        return [*pairwise(cells)]
    if len(cells) <= FEW_GROUPS:
        return [*combinations(cells, 2)]
    return [(cells[0], other) for other in cells[1:]]


def estimate_run(path: Path, question: answers.EstimateQuestion) -> answers.Estimated:
    """Answer a question about the labels of the run in a folder."""
    recorded = Run.open(path)
    if recorded.config.task.kind == "number" and not (question.of or question.values or question.formula):
        question = replace(question, values={label: float(label) for label in recorded.config.task.labels})
    found = answer(evidence_of(recorded, question.probability or None, question.columns), question)
    return replace(found, title=question.in_words(found.labels), data=data_name(recorded))


def data_name(recorded: Run) -> str:
    """Return the name of the data of a run."""
    return str(recorded.start.get("data") or recorded.folder.path.name)


def answer(evidence: LabelEvidence, question: answers.EstimateQuestion) -> answers.Estimated:
    """Answer a question from what is known about labels."""
    return regress(evidence, question) if question.formula else shares(evidence, question)


def shares(evidence: LabelEvidence, question: answers.EstimateQuestion) -> answers.Estimated:
    """Return the share of every label, or the mean of a numeric code, overall or by group, and differences."""
    study = study_of(evidence, larger=question.larger, cluster=question.cluster)
    groups = groups_of(evidence, study, question)
    larger = groups._replace(left=np.ones(len(groups.names)))
    lines, differences, bounded = [], [], question.values is None
    for name, values in _targets(evidence.labels, question).items():
        # the coefficients of this regression are the means of groups
        means = LabelRegression(explanatory=[groups.members], outcome=values[np.newaxis, :, np.newaxis])
        middle = float(np.unique(values).mean())
        found = answers.in_three_ways(study, means)
        for place, group in enumerate(groups.names):
            one = groups.of(found, {place: 1.0}, middle)
            lines.append(answers.line_of(name, group, one, int(groups.gold_rows[place]), bounded=bounded))
        if groups.pairs:  # whether groups differ is asked about more than these rows (Cochran, 1977, 2.14)
            found = answers.in_three_ways(replace(study, whole=False), means)
        for first, second in groups.pairs:
            between = f"{groups.names[second]} − {groups.names[first]}"
            one = larger.of(found, {second: 1.0, first: -1.0}, middle)
            rows = int(groups.gold_rows[[first, second]].sum())
            differences.append(answers.line_of(name, between, one, rows, test=True))
    return answers.Estimated(
        kind="share" if bounded else "mean",
        lines=lines,
        differences=answers.adjusted(differences),
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
    study = study_of(evidence, larger=True, cluster=question.cluster)
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
    lines = answers.adjusted(lines)
    return answers.Estimated(
        kind="regression", lines=lines, rows=int(rows.sum()), labels=evidence.labels, notes=[*notes, f"link: {link}"]
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
