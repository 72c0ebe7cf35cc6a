"""The promise about a whole table: which rows people must label so that few errors are left in all of it.

Rows go from people, who make no errors, to the machine, the most certain first, as long as the table may have at most
the promised number of errors, by a hypergeometric bound from gold rows that were drawn at random. The first place of
the order with too many errors is fixed, whatever the gold rows are, so one bound, at that place, has to hold (PAC
labels). On a scale, where an error may be a part of one, the bound is a bet against too large a sum (Waudby-Smith and
Ramdas). See `docs/design/promises.md`.
"""

from bisect import bisect_left
from typing import NamedTuple

import numpy as np

from pcs_annotator.core.arrays import Floats, Integers, Mask

DOUBT = 1e-12
BETS_BEFORE, LARGEST_BET = 10, 0.99


class Shared(NamedTuple):
    """Rows shared between the machine and people."""

    by_machine: Integers  # the most certain first
    by_people: Integers  # the least certain first; those that have a label already among them
    errors: int  # so many errors at most are in the machine's rows, with the certainty


def share_rows(confidence: Floats, sample: Mask, wrong: Mask | Floats, max_error: float, delta: float) -> Shared:
    """Return which rows the machine may label, so that people have least to label.

    `confidence` is from fits that did not see a row's gold; `sample` are the rows with gold that were drawn at random,
    and `wrong` which of these have a wrong label, or how wrong it is, from 0 to 1. In the end, a share of at most
    `max_error` of all rows may be wrong, but for δ of cases.
    """
    rows = len(confidence)
    losses = np.where(sample, wrong, 0).astype(np.result_type(wrong, np.intp))  # whole numbers if wrong or right
    levels, level_of = np.unique(-confidence, return_inverse=True)  # rows that are equally certain stay together
    order = np.random.default_rng(0).permutation(np.flatnonzero(sample))  # bets need rows in a random order
    good = len(levels)
    taken = np.zeros_like(losses)
    for level in [-1, *np.unique(level_of[losses > 0]).tolist()]:
        after = np.where(level_of <= level, losses, 0)
        if not small_enough(rows, after[order], max_error * rows, delta):
            good = max(level, 0)
            break
        taken = after
    machine = (level_of < good) & (confidence >= 0)  # a row without a label has a negative confidence
    best = np.argsort(-confidence, kind="stable")
    # the smallest number of errors to which the sample limits those of the table
    limits = range(int(max_error * rows))
    errors = bisect_left(limits, True, key=lambda most: small_enough(rows, taken[order], most, delta)) if good else 0
    return Shared(best[machine[best]], best[~machine[best]][::-1], errors)


def once_if_right(same: Integers, sample: Mask, wrong: Mask | Floats) -> Mask:
    """Return a sample of rows in which a text with a right label counts once, and one with a wrong label every time.

    Copies that came together with their text say nothing new, and errors are counted by rows.
    """
    order = np.flatnonzero(sample & (np.asarray(wrong) == 0))
    counted: Mask = sample & (np.asarray(wrong) != 0)
    counted[order[np.unique(same[order], return_index=True)[1]]] = True
    return counted


def small_enough(rows: int, losses: Floats | Integers, most: float, delta: float) -> bool:
    """Return whether losses of a sample, in random order, bound those of all rows together by `most`.

    That is untrue in δ of cases at most, exactly so if losses are whole numbers, 0 and 1.
    """
    if losses.dtype.kind != "f":
        return bool(few_enough(rows, len(losses), losses.sum(), most, delta))
    number, before, squares = np.arange(len(losses)), np.cumsum(losses) - losses, np.cumsum(losses**2) - losses**2
    expected = (most - before) / (rows - number)  # the mean loss of the rows that are left, if all have `most`
    if (expected <= 0).any():
        return False
    # what is known before each bet, with some rows that are half as wrong as they may be; then the best stake for that
    half = most / rows / 2
    mean = (before + BETS_BEFORE * half) / (number + BETS_BEFORE)
    square = (squares + BETS_BEFORE * half**2) / (number + BETS_BEFORE)
    gain = expected - mean
    stake = np.clip(
        gain / np.maximum(square - mean**2 + gain**2, DOUBT), 0, LARGEST_BET / (1 - np.minimum(expected, 0.5))
    )
    return bool(np.cumsum(np.log1p(stake * (expected - losses))).max() >= -np.log(delta))


def few_enough(rows: int, drawn: Integers | int, wrong: Integers | int, most: float, delta: float) -> Mask:
    """Return whether a sample with so many wrong rows bounds the number of errors in the table by `most`."""
    from scipy.stats import hypergeom

    return np.asarray(hypergeom.cdf(wrong, rows, int(most) + 1, drawn) <= delta)
