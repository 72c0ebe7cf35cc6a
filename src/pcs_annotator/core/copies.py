"""Rows that repeat a text: they say nothing new, so each text counts once."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pcs_annotator.core.arrays import CODE, Codes, Integers, Mask
from pcs_annotator.core.gold_codes import UNLABELLED
from pcs_annotator.core.votes import Votes

# Two texts may get the same graded answer to one question (10 of 393 did), but hardly to several.
LEAST_GRADED_CELLS = 2


class Once(NamedTuple):
    """One row for every text."""

    distinct: Mask  # which rows count: of every text one row, with gold if the text has gold
    repeated: int  # number of gold rows that do not count, because another gold row has their text
    contradictory: Integers  # rows whose text has as many gold labels for one as for another; they are not gold
    copies: Integers  # for every row how many rows have its text
    drawn: Integers  # for every row how many rows with its text people judged that were drawn at random


def same_grades(votes: Votes) -> Integers:
    """Return a number for every row, the same for rows with the very same graded votes in all cells.

    So copies are found where texts are unknown. Hard votes are too coarse to tell.
    """
    rows = np.arange(len(votes))
    if votes.grades is None or not len(votes):
        return rows
    graded = ~np.isnan(votes.grades).all(axis=-1)
    enough = (graded == (votes.codes >= 0)).all(axis=(1, 2, 3)) & (graded.sum(axis=(1, 2, 3)) >= LEAST_GRADED_CELLS)
    cells = np.nan_to_num(votes.grades, nan=-1).reshape(len(votes), -1)
    first: dict[object, int] = {}
    return np.array(
        [first.setdefault(cells[row].tobytes() if enough[row] else row, row) for row in rows.tolist()], dtype=np.intp
    )


def once_per_text(
    same: Integers, ids: Sequence[str], gold: Codes, random_sample: Mask | None = None, undecided: Mask | None = None
) -> Once:
    """Return one row for every text: the first one by id, so that the order of rows does not matter.

    `same` is a number for every row, the same for copies of a text. Rows with gold are preferred, and among these the
    rows that were drawn at random, by default all, which can support a promise. Copies with different gold labels count
    with the label that most of them have; if there is none, without gold. `undecided` rows were drawn at random too,
    and people gave them no label.
    """
    at_random = np.ones(len(ids), dtype=np.bool_) if random_sample is None else random_sample
    agreed = _agreed(same, gold)
    contradictory = (gold != UNLABELLED) & (agreed == UNLABELLED)
    rank = np.where(gold == UNLABELLED, 2, np.where(gold != agreed, 3, np.where(at_random, 0, 1)))
    order = sorted(range(len(ids)), key=lambda row: (rank[row], ids[row]))
    _, first = np.unique(same[order], return_index=True)
    distinct = np.zeros(len(ids), dtype=np.bool_)
    distinct[np.array(order, dtype=np.intp)[first]] = True
    distinct &= rank < 3
    repeated = (gold != UNLABELLED) & ~distinct & ~contradictory
    judged = (gold != UNLABELLED) & at_random
    if undecided is not None:
        judged = judged | undecided
    copies, drawn = (np.bincount(same, counted).astype(np.intp)[same] for counted in (np.ones(len(ids)), judged))
    return Once(distinct, int(repeated.sum()), np.flatnonzero(contradictory), copies, drawn)


def _agreed(same: Integers, gold: Codes) -> Codes:
    """Return for every gold row the label that most copies of its text have; `UNLABELLED` if there is none."""
    counts_of: dict[int, Counter[int]] = {}
    labelled = np.flatnonzero(gold != UNLABELLED)
    for row in labelled.tolist():
        counts_of.setdefault(int(same[row]), Counter())[int(gold[row])] += 1
    agreed = np.full(len(gold), UNLABELLED, dtype=CODE)
    for row in labelled.tolist():
        (label, most), *others = counts_of[int(same[row])].most_common(2)
        if not others or others[0][1] < most:
            agreed[row] = label
    return agreed
