"""The audit of a promise: what errors among accepted rows mean for it, however often somebody looks."""

from collections.abc import Callable
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np

from pcs_annotator.core.arrays import Mask
from pcs_annotator.core.weights import Interval
from pcs_annotator.judging.metrics.special import betaln, xlog1py, xlogy
from pcs_annotator.judging.promise.promise import Promise

HALVINGS = 50
ERRORS, HALVINGS_OF_BOUND = 80, 20
Finding = Literal["confirmed", "revoked", "open"]


class Audit(NamedTuple):
    """The result of a person checking accepted rows drawn at random."""

    rows: int  # number of rows checked
    wrong: int  # number of wrong labels
    limit: float  # the highest error rate among accepted rows that keeps the promise
    error: Interval  # interval of the error rate
    finding: Finding  # `revoked` when the interval is above the limit, `confirmed` when it is below; else `open`
    level: float  # how often such an interval contains the error rate, however often it is looked at meanwhile


def audit(promise: Promise, rows: int, wrong: int) -> Audit:
    """Return what `wrong` errors among `rows` accepted rows mean for the promise."""
    limit = promise.max_error
    error = confidence_sequence(wrong, rows, promise.certainty)
    finding: Finding = "revoked" if error.low > limit else "confirmed" if error.high <= limit else "open"
    return Audit(rows, wrong, limit, error, finding, promise.certainty)


def audit_in_order(promise: Promise, wrong: Mask) -> Audit:
    r"""Return what errors mean for the promise, given row by row as they were checked; it may be asked after each.

    The likelihood of the rows at twice the promised error rate, over that at the promised one, ever reaches the bound
    with a probability of at most $\delta$ if the promise is kept. That finds an error rate of twice the promise earlier
    than the interval does, which looks for all rates.
    """
    outcome = audit(promise, len(wrong), int(wrong.sum()))
    limit = outcome.limit
    twice = min(2 * limit, (1 + limit) / 2)
    steps = np.where(wrong, np.log(twice / limit), np.log1p(-twice) - np.log1p(-limit))
    bound = ratio_bound(limit, twice, promise.delta)
    finding: Finding = "confirmed" if outcome.finding == "confirmed" else "open"
    return outcome._replace(finding="revoked" if steps.cumsum().max() >= bound else finding)


def confidence_sequence(wrong: int, rows: int, level: float) -> Interval:
    r"""Return the interval of an error rate that holds at every look at a growing sample together.

    The likelihood of the rows under a mixture of error rates, Beta(½, ½), over that under the true rate is a
    martingale: it ever reaches $1/\delta$ with a probability of at most $\delta$ (Ville).
    """
    least = betaln(wrong + 0.5, rows - wrong + 0.5) - betaln(0.5, 0.5) + np.log1p(-level)

    def inside(rate: float) -> bool:
        return bool(xlogy(wrong, rate) + xlog1py(rows - wrong, -rate) >= least)

    observed = wrong / rows
    return Interval(_edge(inside, observed, 0.0), _edge(inside, observed, 1.0))


def _edge(inside: Callable[[float], bool], within: float, beyond: float) -> float:
    """Return the end of an interval on the way from a point within it, by bisection; it is rounded outwards."""
    if inside(beyond):
        return beyond
    for _ in range(HALVINGS):
        middle = (within + beyond) / 2
        within, beyond = (middle, beyond) if inside(middle) else (within, middle)
    return beyond


@lru_cache
def ratio_bound(low: float, high: float, level: float) -> float:
    r"""Return what the log-likelihood ratio of two error rates ever reaches with this probability at the lower rate.

    $-\log$ of the level always holds (Ville), but is passed by up to the size of a step. Here the probability is exact,
    but for sequences that first reach the bound after eighty errors.
    """
    too_low, enough = 0.0, -np.log(level)
    for _ in range(HALVINGS_OF_BOUND):
        middle = (too_low + enough) / 2
        above = _ever_reaches(middle, low, high) > level
        too_low, enough = (middle, enough) if above else (too_low, middle)
    return float(enough)


def _ever_reaches(bound: float, low: float, high: float) -> float:
    up, down = np.log(high / low), np.log1p(-low) - np.log1p(-high)
    right = np.arange(ERRORS * up / down)  # how many labels are right before an error
    all_right = (1 - low) ** right
    ways = np.where(right == 0, 1.0, 0.0)  # in which the bound was not reached, times the probability of their errors
    reached = 0.0
    for errors in range(1, ERRORS + 1):
        ways = low * ways.cumsum()
        above = int(max((errors * up - bound) / down + 1, 0))
        reached += float(ways[:above] @ all_right[:above])
        ways[:above] = 0.0
    return reached
