"""What a person's look at some accepted rows says about the promise."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from scipy.special import bdtr, bdtrc, betaincinv

from pcs_annotator.core.arrays import Integers, Mask
from pcs_annotator.core.weights import Interval
from pcs_annotator.judging.promising.acceptance import Promise

Finding = Literal["confirmed", "revoked", "open"]


class Audit(NamedTuple):
    """Accepted rows, drawn at random and checked by a person.

    Attributes:
        rows: How many were checked.
        wrong: How many labels were wrong.
        limit: The error rate among accepted rows up to which the promise is kept.
        error: The error rate that these rows are compatible with, at the promise's certainty from either side.
        finding: `revoked` when the error rate is above the limit, `confirmed` when it is below, each with the
            promise's certainty; else `open`.
    """

    rows: int
    wrong: int
    limit: float
    error: Interval
    finding: Finding


def draw_rows(among: Mask, rows: int, seed: int) -> Integers:
    """Return positions of some rows, drawn at random, in order; all of them when there are no more."""
    positions = np.flatnonzero(among)
    drawn = np.random.default_rng(seed).permutation(positions)[:rows]
    return np.sort(drawn)


def audit(promise: Promise, accepted_share: float, rows: int, wrong: int) -> Audit:
    """Return what `wrong` errors among `rows` accepted rows mean."""
    limit = promise.max_error
    if promise.kind == "accepted-and-wrong":  # a bound for all rows leaves more room to the accepted ones alone
        limit = min(1.0, limit / accepted_share)
    delta = promise.delta
    finding: Finding = "open"
    if wrong and bdtrc(wrong - 1, rows, limit) <= delta:
        finding = "revoked"
    elif bdtr(wrong, rows, limit) <= delta:
        finding = "confirmed"
    low = float(betaincinv(wrong, rows - wrong + 1, delta)) if wrong else 0.0
    high = float(betaincinv(wrong + 1, rows - wrong, 1 - delta)) if wrong < rows else 1.0
    return Audit(rows, wrong, limit, Interval(low, high), finding)
