"""Sharing the rows of a run between the machine and people, so that few errors are left in the whole table.

Rows are shared by the probabilities of their labels, those of gold rows from fits that did not see them.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np

from pcs_annotator.core.arrays import CODE, Codes, Floats, Integers, Mask
from pcs_annotator.core.gold_codes import UNLABELLED
from pcs_annotator.core.identity import same_texts, with_copies
from pcs_annotator.core.votes import Votes, positions_of
from pcs_annotator.judging.fit_model import fit_model
from pcs_annotator.judging.heldout import HeldOut, Judged
from pcs_annotator.judging.label_shape import ONE, LabelShape
from pcs_annotator.judging.promise.whole_table import Shared, once_if_right, share_rows
from pcs_annotator.judging.solver import one_thread
from pcs_annotator.runs.learn import counted_once, learning_of
from pcs_annotator.runs.settings import LearnSettings

Error = Literal["wrong", "near", "distance"]
"""What counts as an error: another label, one that is several steps of a scale off, or each step, as a part of one."""


class Goal(NamedTuple):
    """What is promised about all rows of a table."""

    max_error: float
    delta: float  # how often it may be broken
    error: Error = "wrong"


class TableGold(NamedTuple):
    """What people said about the rows of a table."""

    codes: Codes  # the gold label of every row
    sample: Mask  # rows drawn at random that people judged; those without a label count as wrong
    same: Integers  # the number of every row's text


class Sharing(NamedTuple):
    """Who labels which rows."""

    shared: Shared
    best: Codes  # the machine's label of every row
    texts_left: int  # texts that people must still label; each is labelled once, however many rows it has


def judged_rows(shape: LabelShape, votes: Votes, probabilities: Floats, gold: Codes, error: Error = "wrong") -> Judged:
    """Return for every row how sure its label is, the label, and whether it is right; that counts for gold rows."""
    near = error == "near"
    best = shape.choose(probabilities, votes.labels)
    sure = np.where(votes.silent, -1.0, shape.confidence(probabilities, best, votes.labels, near=near))
    right = shape.right(best, gold, votes.labels, near=near) & (gold != UNLABELLED)
    return Judged(sure, best, right)


def share_table(shape: LabelShape, votes: Votes, held_out: Floats, gold: TableGold, goal: Goal) -> Sharing:
    """Return which rows the machine labels, given probabilities from fits that did not see a row's gold."""
    sure, best, right, _ = judged_rows(shape, votes, held_out, gold.codes, goal.error)
    wrong: Mask | Floats = ~right
    if goal.error == "distance":
        apart = shape.apart(votes.labels) / (len(votes.labels) - 1)
        wrong = np.where(gold.codes == UNLABELLED, 1.0, apart[best, gold.codes])
        sure = np.where(votes.silent, -1.0, 1 - (held_out * apart[best]).sum(axis=1))
    sample = once_if_right(gold.same, gold.sample, wrong)
    shared = share_rows(sure, sample, wrong, goal.max_error, goal.delta)
    people = np.zeros(len(votes), dtype=np.bool_)
    people[shared.by_people] = True
    open_rows = people & ~with_copies(gold.same, gold.codes != UNLABELLED)
    return Sharing(shared, best, len(np.unique(gold.same[open_rows])))


def held_out_rows(fitted: Floats, votes: Votes, trial: HeldOut, same: Integers) -> Floats:
    """Return the probabilities of labels with those of gold texts, in all their rows, from fits without their gold."""
    columns, probabilities = positions_of(votes.labels, trial.labels, "label"), fitted.copy()
    unseen = dict(zip(same[positions_of(trial.ids, votes.ids, "item")].tolist(), trial.probabilities, strict=True))
    for row, text in enumerate(same.tolist()):
        if text in unseen:  # copies that contradict each other have no fit of their own
            probabilities[row] = unseen[text][columns]
    return probabilities


class Expected(NamedTuple):
    """Probability of every label, `[row, label]`: from the fit on all gold rows, and from fits without the row's text.

    They differ for gold rows and their copies only. `said` is the label of every row, `UNLABELLED` where it has none.
    """

    fitted: Floats
    held_out: Floats
    said: Codes


def expected_labels(
    votes: Votes, codes: Codes, settings: LearnSettings, texts: Sequence[str], shape: LabelShape = ONE
) -> Expected | None:
    """Return the probabilities of labels; None with too little gold, or uncalibrated. Only numbers need a `shape`."""
    if (codes == UNLABELLED).all():
        return None
    once = counted_once(votes, codes, texts)
    with one_thread():
        # nothing but probabilities is wanted
        plain = replace(settings, max_error=None, resamples=0)
        how = learning_of(plain, shape=shape if shape.kind == "number" else ONE)
        model, trial = fit_model(votes, codes, how, distinct=once.distinct)
    fitted = model.judged(votes).probabilities
    if trial is None or fitted is None:
        return None
    labels = np.where(votes.silent, UNLABELLED, shape.choose(fitted, votes.labels)).astype(CODE)
    return Expected(fitted, held_out_rows(fitted, votes, trial, same_texts(texts)), labels)
