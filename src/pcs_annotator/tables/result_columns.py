"""Results as columns that are added to the user's table."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pcs_annotator.base.errors import PcsWarning
from pcs_annotator.core import result_names
from pcs_annotator.core.arrays import Floats
from pcs_annotator.core.outcome import Outcome
from pcs_annotator.core.review import Reviewed
from pcs_annotator.tables.arrow import pa
from pcs_annotator.tables.tabular import as_arrow

SCORE_DECIMALS = 6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Results:
    """The results of some rows."""

    labels: Sequence[str]  # the label set
    label: pa.Array  # the label of every row; null where there is none
    decision: Sequence[str | None]  # the decision about every row
    reason: Sequence[str]  # why
    confidence: Floats  # probability that the label is right; nan where there is none
    scores: Floats  # the score of every label, `[row, label]`
    # the probability of every label, likewise, with nan where there is none; None if nothing has one
    probabilities: Floats | None = None
    # the labels that cannot be ruled out, separated by `|`; None if such sets were not requested
    sets: pa.Array | None = None
    details: Mapping[str, pa.Array] = field(default_factory=dict)  # the columns that the kind of the task adds

    def columns(self) -> dict[str, pa.Array]:
        """Return name → values of the columns."""
        found = {
            result_names.LABEL: self.label,
            result_names.CONFIDENCE: _numbers(self.confidence),
            result_names.DECISION: pa.array(self.decision, pa.string()),
            result_names.REASON: pa.array(self.reason, pa.string()),
        }
        if self.sets is not None:
            found[result_names.LABEL_SET] = self.sets
        found |= self.details
        labels = result_names.with_columns(self.labels)
        found |= {result_names.score_name(one): _numbers(self.scores[:, at]) for at, one in enumerate(labels)}
        if (sure := self.probabilities) is not None:
            found |= {result_names.probability_name(one): _numbers(sure[:, at]) for at, one in enumerate(labels)}
        return found


def _numbers(values: Floats) -> pa.Array:
    return pa.array(values.round(SCORE_DECIMALS), pa.float64(), from_pandas=True)  # nan becomes null


def detail_columns(values: Mapping[str, Sequence[Any]]) -> dict[str, pa.Array]:
    """Return the columns that the kind of a task adds."""
    kinds = {result_names.WITHIN_ONE: pa.float64(), result_names.LEVEL: pa.int64()}
    return {name: pa.array(column, kinds.get(name, pa.string())) for name, column in values.items()}


def result_schema(labels: Sequence[str], *, probable: bool, sets: bool, details: Sequence[str] = ()) -> pa.Schema:
    """Return the schema of `Results.columns`: with probabilities, sets and details, or without."""
    nothing, texts = np.empty((0, len(labels))), pa.array([], pa.string())
    columns = Results(
        labels=labels,
        label=texts,
        decision=(),
        reason=(),
        confidence=nothing[:, 0],
        scores=nothing,
        probabilities=nothing if probable else None,
        sets=texts if sets else None,
        details=detail_columns({name: () for name in details}),
    ).columns()
    return pa.schema([(name, column.type) for name, column in columns.items()])


def with_outcomes(
    table: object,
    outcomes: Iterable[Outcome],
    labels: Sequence[str],
    people: Sequence[Reviewed | None] = (),
    gold: Sequence[str | None] = (),
) -> pa.Table:
    """Return the user's columns, then those of `Results`, and what `people` who have reviewed rows decided.

    A table with several rows per item is replaced by one with only an `id` column.
    """
    given = list(outcomes)
    arrow = as_arrow(table)
    if len(arrow) != len(given):
        arrow = pa.table({"id": pa.array([outcome.id for outcome in given])})
    probable = any(one.probabilities for one in given)
    names = dict.fromkeys(name for one in given for name in one.details)
    sets = pa.array(["|".join(one.label_set) for one in given], pa.string())
    columns = Results(
        labels=labels,
        label=pa.array([one.label for one in given], pa.string()),
        decision=[one.decision for one in given],
        reason=[one.reason for one in given],
        confidence=np.array([np.nan if one.confidence is None else one.confidence for one in given]),
        scores=_by_label([one.scores for one in given], labels),
        probabilities=_by_label([one.probabilities for one in given], labels) if probable else None,
        sets=sets if any(one.label_set for one in given) else None,
        details=detail_columns({name: [one.details.get(name) for one in given] for name in names}),
    ).columns()
    if people:
        columns |= people_columns(people, gold, [outcome.label for outcome in given], labels)
    return with_columns(arrow, columns, labels)


def _by_label(rows: Sequence[Mapping[str, float]], labels: Sequence[str]) -> Floats:
    labels = result_names.with_columns(labels)
    return np.array([[row.get(label, np.nan) for label in labels] for row in rows]).reshape(len(rows), len(labels))


def people_columns(
    people: Sequence[Reviewed | None], gold: Sequence[str | None], found: Sequence[str | None], labels: Sequence[str]
) -> dict[str, pa.Array]:
    """Return verdict, reviewer and final label of rows: what people said, else gold, else what the models `found`."""
    spelled = {label.casefold(): label for label in labels}
    known = [one and spelled.get(one.casefold()) for one in gold] or [None] * len(found)
    deciding = [one and one.deciding for one in people]
    verdicts = [one and one.label for one in deciding]
    named = {
        result_names.VERDICT: verdicts,
        result_names.REVIEWER: [one and one.reviewer for one in deciding],
        result_names.FINAL_LABEL: [
            verdict or label or machine for verdict, label, machine in zip(verdicts, known, found, strict=True)
        ],
    }
    return {name: pa.array(values, pa.string()) for name, values in named.items()}


def with_columns(table: pa.Table, columns: Mapping[str, pa.Array], labels: Sequence[str]) -> pa.Table:
    """Return a table with columns of results; the user's columns with names of ours get others, with a warning."""
    names = result_names.input_names(table.column_names, result_names.result_names(labels))
    if renamed := [f"{old!r} is now {new!r}" for old, new in names.items() if new != old]:
        message = f"columns of the data have names that results have, so in the results {', '.join(renamed)}"
        warnings.warn(message, PcsWarning, stacklevel=3)
    table = table.rename_columns(list(names.values()))
    for name, column in columns.items():
        table = table.append_column(name, column)
    return table
