"""The promise about a whole table: which rows people must label so that few errors are left in all of it.

Rows are put in order, the most certain first. The machine labels as many of them as may have at most the promised
number of errors; people label the others. How many errors the most certain rows may have is known from gold rows that
were drawn at random: the number of wrong ones among them is hypergeometric, so the largest number of errors in the
table that would still give so few is an upper bound with the promised certainty. The rows with too many errors begin at
a fixed place of the order, whatever the gold rows are, so one bound, at that place, has to hold, and not one for every
place (the argument of Angelopoulos et al. for monotone losses, and of PAC labels).
"""

from typing import NamedTuple

import numpy as np

from pcs_annotator.core.arrays import Floats, Integers, Mask


class Shared(NamedTuple):
    """Rows shared between the machine and people."""

    by_machine: Integers  # the most certain first
    by_people: Integers  # the least certain first; those that have a label already among them
    errors: int  # so many errors at most are in the rows of the machine, with the certainty


def share_rows(confidence: Floats, sample: Mask, wrong: Mask, max_error: float, delta: float) -> Shared:
    """Return which rows the machine may label.

    Args:
        confidence: The probability that the machine's label of a row is right, from fits that did not see its gold.
        sample: Which rows have gold and were drawn at random.
        wrong: Which of these have a wrong label.
        max_error: The share of all rows that may be wrong in the end.
        delta: How often more of them may be.
    """
    rows, drawn = len(confidence), int(sample.sum())
    order = np.argsort(-confidence, kind="stable")
    seen = np.cumsum((wrong & sample)[order])
    bounds = most_errors(rows, drawn, np.arange(int(seen[-1]) + 1), delta)
    too_many = np.flatnonzero(bounds[seen] > max_error * rows)
    # rows that are equally certain stay together
    count = rows if not len(too_many) else int((confidence > confidence[order[too_many[0]]]).sum())
    errors = int(bounds[seen[count - 1]]) if count else 0
    return Shared(order[:count], order[count:][::-1], errors)


def most_errors(rows: int, drawn: int, wrong: Integers, delta: float) -> Integers:
    """Return the largest number of errors in a table with which a sample has so few of them in more than δ of cases."""
    from scipy.stats import hypergeom

    low, high = wrong.astype(np.int64), np.full(len(wrong), rows + 1)
    while (high - low > 1).any():
        middle = (low + high) // 2
        possible = hypergeom.cdf(wrong, rows, middle, drawn) > delta
        low, high = np.where(possible, middle, low), np.where(possible, high, middle)
    return np.asarray(low)
