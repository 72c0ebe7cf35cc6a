"""Which rows of a run match a query: every filter is one pass over an array or an Arrow column."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.core.arrays import Array, Integers, Mask
from pcs_annotator.core.task import label_code
from pcs_annotator.runs.review.record import Record
from pcs_annotator.runs.review.rows import DECISIONS, NO_LABEL, Rows
from pcs_annotator.runs.review.values import Query


def matching(rows: Rows, record: Record, query: Query) -> Integers:
    """Return the positions of all rows of a query, in its order."""
    found = _by_model(rows, query) & _by_people(rows, record, query)
    if query.text:
        found &= contains(rows.texts, query.text)
    for name, value in query.columns.items():
        found &= _equals(rows, name, value)
    places = np.flatnonzero(found)
    return places[_order(rows, record, places, query)]


def counts(rows: Rows, record: Record, places: Integers) -> dict[str, dict[str, int]]:
    """Return label, decision and verdict → value → how many of these rows have it."""
    judgement = rows.judgement
    return {
        "label": _counted(judgement.label[places], rows.labels),
        "decision": _counted(judgement.decision[places], DECISIONS),
        "reviewed": _counted(record.decided[places], rows.labels),
    }


def _counted(codes: Array, names: Sequence[str]) -> dict[str, int]:
    times = np.bincount(codes[codes >= 0], minlength=len(names)).tolist()
    return {name: count for name, count in zip(names, times, strict=True) if count}


def _by_model(rows: Rows, query: Query) -> Mask:
    judgement = rows.judgement
    found = np.ones(len(rows), dtype=np.bool_)
    if query.label:
        found &= judgement.label == _code(rows, query.label)
    if query.decision:
        if query.decision not in DECISIONS:
            raise ConfigError(f"no decision is called {query.decision!r}: there are {', '.join(DECISIONS)}")
        found &= judgement.decision == DECISIONS.index(query.decision)
    if query.least is not None:
        found &= judgement.certainty >= query.least
    if query.most is not None:
        found &= judgement.certainty <= query.most
    if query.disagreement is not None:
        found &= rows.disagreement == query.disagreement
    return found


def _by_people(rows: Rows, record: Record, query: Query) -> Mask:
    found = np.ones(len(rows), dtype=np.bool_)
    if query.reviewer:
        found &= record.by(query.reviewer)
    if query.reviewed is not None:
        found &= (record.coders > 0) == query.reviewed
    if query.conflict is not None:
        found &= record.conflict == query.conflict
    if query.verdict:
        found &= record.decided == _code(rows, query.verdict)
    return found


def _code(rows: Rows, label: str) -> int:
    return label_code(label, rows.labels, "query")


def contains(column: Array, words: str) -> Mask:
    """Return where a column of texts contains some words, whatever the case."""
    import pyarrow.compute as pc

    return np.asarray(pc.match_substring(column, words, ignore_case=True).fill_null(False))


def _equals(rows: Rows, name: str, value: str) -> Mask:
    import pyarrow as pa
    import pyarrow.compute as pc

    if name not in rows.own_columns:
        raise ConfigError(f"the data has no column {name!r} to filter by: there are {', '.join(rows.own_columns)}")
    column = rows.own[name]
    texts = column if pa.types.is_string(column.type) else column.cast(pa.string())
    same = pc.equal(pc.utf8_lower(pc.utf8_trim_whitespace(texts)), value.strip().lower())
    return np.asarray(same.fill_null(False))


def _order(rows: Rows, record: Record, places: Integers, query: Query) -> Integers:
    certainty = rows.judgement.certainty[places]
    if query.sort == "doubtful":
        return np.argsort(certainty, kind="stable")
    if query.sort == "certain":
        return np.argsort(-certainty, kind="stable")
    if query.sort == "recent":
        latest = np.array([record.changes.get(place, NO_LABEL) for place in places.tolist()], dtype=np.intp)
        return np.argsort(-latest, kind="stable")
    return np.arange(len(places))
