"""Columns of the user's table: those that name groups of texts, and results that are added to it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from pcs_annotator.base.errors import ConfigError, TableError, warn_user
from pcs_annotator.base.text import did_you_mean
from pcs_annotator.core import outcome as result_names
from pcs_annotator.core.arrays import Floats, Mask
from pcs_annotator.core.events import Reviewed
from pcs_annotator.core.outcome import COPY_OF_GOLD
from pcs_annotator.core.votes import NO_GROUP, Votes, positions_of
from pcs_annotator.judging.model import Model, Predictions
from pcs_annotator.relations.language import language_of
from pcs_annotator.tables.arrow import columns_of, pa, text_column

SCORE_DECIMALS = 6
LANGUAGE = "language"  # without a column of this name, the language of a text is detected
MOST_GROUPS = 50


def result_columns(
    model: Model,
    votes: Votes,
    judged: Predictions,
    people: Sequence[Reviewed | None] = (),
    gold: Sequence[str | None] = (),
) -> dict[str, pa.Array]:
    """Return name → values of the columns of results, and of what `people` who have reviewed rows decided.

    `gold` is that of the rows themselves. Copies of gold texts have gold's label in the end, and nobody needs to look;
    as with gold rows, the decision is about the model's own label.
    """
    columns = _model_columns(model, votes, judged)
    copies = [None if of_row else label for of_row, label in zip_longest(gold, model.gold_of_copies(votes))]
    if people or any(gold) or model.gold_labels:
        final = [of_row or label for of_row, label in zip_longest(gold, copies)]
        columns |= _people_columns(people, final, columns[result_names.LABEL].to_pylist(), votes.labels)
    if any(copies):
        reasons = zip(columns[result_names.REASON].to_pylist(), copies, strict=True)
        why = [COPY_OF_GOLD if reason and label else reason for reason, label in reasons]
        columns[result_names.REASON] = pa.array(why, pa.string())
    return columns


def _model_columns(model: Model, votes: Votes, judged: Predictions) -> dict[str, pa.Array]:
    """Return name → values of the columns of results, with the values that `Model.judge` has."""
    silent, labels, sure = votes.silent, votes.labels, judged.probabilities
    confidence = np.full(len(votes), np.nan) if judged.confidence is None else judged.confidence
    columns = {
        result_names.LABEL: _labels(model, votes, judged, silent),
        result_names.CONFIDENCE: _numbers(np.where(silent, np.nan, confidence)),
        result_names.DECISION: pa.array(model.decisions(votes, judged), pa.string()),
        result_names.REASON: pa.array(model.reasons(votes, judged), pa.string()),
    }
    plausible = None if model.shape.ordered else model.plausible(votes, judged)
    if plausible is not None:
        columns[result_names.LABEL_SET] = _sets(plausible, labels)
    for name, values in model.details(votes, judged).items():
        columns[name] = pa.array(_unless(silent, values), _kind_of(name))
    shown = result_names.with_columns(labels)
    columns |= {result_names.score_name(label): _numbers(judged.scores[:, at]) for at, label in enumerate(shown)}
    if sure is not None:
        chances = np.where(silent[:, np.newaxis], np.nan, sure)
        columns |= {result_names.probability_name(label): _numbers(chances[:, at]) for at, label in enumerate(shown)}
    return columns


def result_schema(
    labels: Sequence[str], *, probable: bool, sets: bool, details: Sequence[str] = (), final: bool = False
) -> pa.Schema:
    """Return the schema of `result_columns`: with probabilities, sets, details and final labels, or without."""
    names = [result_names.LABEL, result_names.CONFIDENCE, result_names.DECISION, result_names.REASON]
    names += [*([result_names.LABEL_SET] if sets else ()), *details]
    labels = result_names.with_columns(labels)
    numbers = [*map(result_names.score_name, labels), *(map(result_names.probability_name, labels) if probable else ())]
    ends = [(result_names.FINAL_LABEL, pa.string())] if final else []
    return pa.schema([*((name, _kind_of(name)) for name in names), *((name, pa.float64()) for name in numbers), *ends])


def _kind_of(name: str) -> pa.DataType:
    if name == result_names.LEVEL:
        return pa.int64()
    return pa.float64() if name in (result_names.CONFIDENCE, result_names.WITHIN_ONE) else pa.string()


def _numbers(values: Floats) -> pa.Array:
    return pa.array(values.round(SCORE_DECIMALS), pa.float64(), from_pandas=True)  # nan becomes null


def _labels(model: Model, votes: Votes, judged: Predictions, silent: Mask) -> pa.Array:
    if judged.level is not None:
        return pa.array(_unless(silent, model.given(votes, judged)), pa.string())
    return pa.array(votes.labels, pa.string()).take(pa.array(judged.best, pa.int64(), mask=silent))


def _unless(silent: Mask, values: Iterable[Any]) -> list[Any]:
    return [None if no else value for value, no in zip(values, silent.tolist(), strict=True)]


def _sets(plausible: Mask, labels: Sequence[str]) -> pa.Array:
    patterns, places = np.unique(plausible, axis=0, return_inverse=True)
    names = ["|".join(np.array(labels)[pattern].tolist()) for pattern in patterns]
    return pa.array(names, pa.string()).take(pa.array(places.ravel()))


def _people_columns(
    people: Sequence[Reviewed | None], gold: Sequence[str | None], models: Sequence[str | None], labels: Sequence[str]
) -> dict[str, pa.Array]:
    """Return verdict, reviewer and final label of rows: what people said, else gold, else what the `models` say."""
    spelled = {label.casefold(): label for label in labels}
    gold_labels = [cell and spelled.get(cell.casefold()) for cell in gold]
    deciding = [reviewed and reviewed.deciding for reviewed in people]
    verdicts = [decision and decision.label for decision in deciding]
    reviewers = [decision and decision.reviewer for decision in deciding]
    named = {result_names.VERDICT: verdicts, result_names.REVIEWER: reviewers} if people else {}
    cells = zip_longest(verdicts, gold_labels, models)
    named[result_names.FINAL_LABEL] = [verdict or label or machine for verdict, label, machine in cells]
    return {name: pa.array(values, pa.string()) for name, values in named.items()}


def with_columns(table: pa.Table, columns: Mapping[str, pa.Array], ours: Collection[str]) -> pa.Table:
    """Return a table with columns of results; the user's columns with names of ours get others, with a warning."""
    names = result_names.input_names(table.column_names, ours)
    if renamed := [f"{old!r} is now {new!r}" for old, new in names.items() if new != old]:
        message = f"columns of the data have names that results have, so in the results {', '.join(renamed)}"
        warn_user(message)
    table = table.rename_columns(list(names.values()))
    for name, column in columns.items():
        table = table.append_column(name, column)
    return table


def probabilities(model: Model, votes: Votes, labels: Sequence[str], without_votes: Floats) -> Floats:
    """Return a number for every label, `[item, label]`, columns as `labels`; items without votes get those given."""
    values = model.judged(votes).deciding[:, positions_of(labels, votes.labels, "label")]
    values[votes.silent] = without_votes
    return values


def groups_of(by: str, table: pa.Table, texts: Sequence[str], name: str = "the table") -> list[str] | None:
    """Return the group of every row: that in the column `by`, else its language; None for no `by`."""
    if not by:
        return None
    columns = columns_of(table)
    if by not in columns:
        check_column(by, [*columns], name)
        return [given_or_detected(by, text) for text in texts]
    return [(cell or "").strip() or NO_GROUP for cell in text_column(by, columns[by]).to_pylist()]


def check_column(by: str, columns: Sequence[str], name: str) -> None:
    """Raise if a table has no column of groups, and they cannot be detected."""
    if by and by not in columns and by != LANGUAGE:
        detected = f"or use {LANGUAGE}, which is detected without a column"
        raise TableError(
            f"{name} has no column {by!r} (--by): {did_you_mean(by, columns)}add it, {detected}; there are "
            f"{', '.join(columns)}"
        )


def given_or_detected(by: str, text: str, named_group: str | None = None) -> str:
    """Return the group of a single text: the one that was given, else its language if that is asked for."""
    return (named_group or "").strip() or (language_of(text) if by == LANGUAGE else "") or NO_GROUP


def refuse_many(by: str, groups: Sequence[str]) -> None:
    """Raise if a column has too many values to be groups."""
    if (number := len(set(groups))) > MOST_GROUPS:
        raise ConfigError(
            f"column {by!r} has {number:,} groups, and at most {MOST_GROUPS} can have a promise each: name another "
            "column with --by, or join some groups in a new one, such as months instead of days"
        )
