"""What else the same gold rows would allow: other kinds of promise, coarser labels, sets of labels, the whole table.

All of it is looked at on the gold rows that the promise itself was tested on, and nothing is paid for looking so often:
these are forecasts, not promises.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, get_args

import numpy as np

from pcs_annotator.core.arrays import CODE, Codes, Mask
from pcs_annotator.core.gold import UNLABELLED
from pcs_annotator.core.task import MANY_LABELS
from pcs_annotator.core.votes import Votes, positions_of
from pcs_annotator.judging.fit_model import Trial, labelled_rows
from pcs_annotator.judging.model import Model
from pcs_annotator.judging.promising.acceptance import (
    Judged,
    Promise,
    PromiseKind,
    accepted,
    find_thresholds,
)
from pcs_annotator.judging.promising.prediction_sets import fit_prediction_sets


class Alternatives(NamedTuple):
    """What else could be done with the rows without gold or, if all have it, with rows like these."""

    rows: int
    gold_rows: int
    accepted: Mapping[PromiseKind, int]  # kind of promise → rows that it would accept
    to_finish: int = 0  # texts that people must still label for a promise about the whole table
    merge: Sequence[str] = ()  # the two labels that are confused most often; empty if none, or with two or very many
    confused: int = 0  # gold rows with one of them that got the other
    accepted_merged: int = 0  # rows that the promise would accept if they were one label
    in_sets: int = 0  # rows with a set of two labels at most
    sets_right: float = 0.0  # how many of the gold rows with such a set have their label in it


def other_promises(  # what is known about the rows, one argument each
    votes: Votes, gold: Codes, distinct: Mask, at_random: Mask, model: Model, trial: Trial | None
) -> Alternatives | None:
    """Return what else could be promised; None without a promise, for trees, or with too little random gold."""
    judged, certificate = model.judged(votes), model.certificate
    rows, _ = labelled_rows(votes.take(distinct), gold[distinct])
    known = at_random[positions_of(rows.ids, votes.ids, "item")]
    if (
        trial is None
        or certificate is None
        or judged.probabilities is None
        or not known.any()
        or model.shape.levels > 1
    ):
        return None
    silent, others = model.unlabelled(votes)[:, np.newaxis], distinct & (gold == UNLABELLED)
    columns = positions_of(trial.labels, votes.labels, "label")
    values = np.where(silent, 0.0, judged.probabilities)[others][:, columns]
    tested = trial._replace(gold=trial.gold[known], probabilities=trial.probabilities[known])
    rest = trial._replace(gold=np.zeros(len(values), dtype=CODE), probabilities=values)
    return alternatives(tested, rest, certificate.promise, certificate.spent)


def alternatives(gold: Trial, others: Trial, promise: Promise, spent: float = 0.0) -> Alternatives:
    """Return what else could be promised about other rows; the gold of these is unknown, and not looked at.

    Rows without a label have probabilities of 0. A promise for groups of texts is compared with those for all together.
    """
    others = others if len(others.gold) else gold
    promise, shape = replace(promise, by=""), gold.shape
    kinds = [kind for kind in get_args(PromiseKind) if shape.ordered or kind != "off-by-more-than-one"]
    judged, table = gold._replace(near=False).judged, _table(others, near=False)
    rows, known = len(table.best), len(judged.right)
    accepts = {kind: _accepted(gold, others, replace(promise, kind=kind), spent) for kind in kinds}
    found = Alternatives(rows, known, accepts)
    plain = shape.kind == "one" and 2 < len(gold.labels) <= MANY_LABELS
    return _coarser(found, gold, others, promise, spent) if plain else found


def _table(others: Trial, *, near: bool) -> Judged:
    judged = others._replace(near=near).judged
    return judged._replace(confidence=np.where(others.probabilities.any(axis=1), judged.confidence, -1.0))


def _accepted(gold: Trial, others: Trial, promise: Promise, spent: float) -> int:
    table, judged = _table(others, near=promise.near), gold._replace(near=promise.near).judged
    thresholds = find_thresholds(judged, gold.labels, promise, spent, table)
    return int(accepted(*table[:2], gold.labels, thresholds).sum())


def _coarser(found: Alternatives, gold: Trial, others: Trial, promise: Promise, spent: float) -> Alternatives:
    """Return the alternatives with sets of labels, and with two labels as one."""
    sets = fit_prediction_sets(gold.probabilities, gold.gold)
    small, there = (sets.of(one.probabilities).sum(axis=1) <= 2 for one in (gold, others))
    right = sets.of(gold.probabilities)[np.arange(len(small)), gold.gold][small]
    found = found._replace(in_sets=int(there.sum()), sets_right=float(right.mean()) if len(right) else 0.0)
    table = np.zeros([len(gold.labels)] * 2, dtype=np.intp)
    np.add.at(table, (gold.judged.best, gold.gold), 1)
    confused = np.triu(table + table.T, 1)
    one, other = divmod(int(confused.argmax()), len(table))
    if not confused[one, other]:
        return found
    rows = _accepted(_merged(gold, one, other), _merged(others, one, other), promise, spent)
    labels, times = [gold.labels[one], gold.labels[other]], int(confused[one, other])
    return found._replace(merge=labels, confused=times, accepted_merged=rows)


def _merged(rows: Trial, one: int, other: int) -> Trial:
    values = rows.probabilities.copy()
    values[:, one] += values[:, other]
    values[:, other] = 0.0
    return rows._replace(probabilities=values, gold=np.where(rows.gold == other, one, rows.gold).astype(CODE))
