"""The promise about a whole table: which rows people must label so that few errors are left in all of it.

Rows go from people, who make no errors, to the machine, the most certain first, as long as the table may have at most
the promised number of errors. How many it may have is known from gold rows that were drawn at random: the number of
wrong ones among them is hypergeometric, so the largest number of errors in the table that would still give so few is an
upper bound with the promised certainty. The first place of the order with too many errors is fixed, whatever the gold
rows are, so one bound, at that place, has to hold, and not one for every place (fixed-sequence testing; PAC labels).

An expert, such as a dearer model, may stand between. An error costs λ. At every λ each row has the one who is cheapest
for it: the machine for λ times its doubt, the expert for its price and λ times its own doubt, or a person for theirs.
While λ falls, rows go from people to the expert and on to the machine. The same bound holds along that path, because it
does not need errors to grow.
"""

from bisect import bisect_left
from typing import NamedTuple

import numpy as np

from pcs_annotator.core.arrays import CODE, Floats, Integers, Mask
from pcs_annotator.judging.weighing.optimisers.logit import Normal, fit_logistic

DOUBT = 1e-12
TURN = 0.5  # each sharing of a table spends so much of the doubt that is left, because confidences saw the gold rows


class Expert(NamedTuple):
    """Somebody who answers doubtful rows for less than people do."""

    doubt: Floats  # how probable its answer to each row is wrong
    wrong: Mask  # which of its answers are wrong, of rows with gold
    price: float  # of an answer, as a share of what a person costs


class Shared(NamedTuple):
    """Rows shared between the machine, people and perhaps an expert."""

    by_machine: Integers  # the most certain first
    by_people: Integers  # the least certain first; those that have a label already among them
    errors: int  # so many errors at most are in the rows of machine and expert, with the certainty
    by_expert: Integers  # the most certain first


def share_rows(
    confidence: Floats, sample: Mask, wrong: Mask, max_error: float, delta: float, expert: Expert | None = None
) -> Shared:
    """Return which rows the machine may label, and which ones the expert, so that it costs least.

    Args:
        confidence: The probability that the machine's label of a row is right, from fits that did not see its gold.
        sample: Which rows have gold and were drawn at random.
        wrong: Which of these have a wrong label.
        max_error: The share of all rows that may be wrong in the end.
        delta: How often more of them may be.
        expert: Who may answer before people do.
    """
    rows, doubt = len(confidence), np.maximum(1 - confidence, DOUBT)
    nobody = Expert(np.ones(rows), np.zeros(rows, dtype=np.bool_), 1.0)  # as dear as a person
    theirs, wrong_there, price = expert or nobody
    gain = np.maximum(doubt - theirs, 0)
    with np.errstate(divide="ignore", invalid="ignore"):  # the λ at which each row goes there
        to_machine = np.fmin(1 / doubt, np.where(gain > 0, price / gain, np.inf))
    to_expert = (1 - price) / np.maximum(theirs, DOUBT)
    via = to_expert > to_machine
    at = np.concatenate([to_expert[via], to_machine])
    ours, added = (wrong & sample).astype(np.intp), (wrong_there & sample & via).astype(np.intp)
    more = np.concatenate([added[via], ours - added])
    levels, place = np.unique(-at, return_inverse=True)  # rows that are equally certain stay together
    seen = np.cumsum(np.bincount(place, more, len(levels))).round().astype(np.intp)
    drawn = int(sample.sum())
    enough = few_enough(rows, drawn, np.arange(int(seen.max()) + 1), max_error, delta)[seen] & (levels < 0)
    good = int(np.argmin(np.append(enough, [False])))  # so many levels are
    least = -levels[good - 1] if good else np.inf
    machine = (to_machine >= least) & (good > 0)
    asked = via & ~machine & (to_expert >= least)
    order = np.argsort(-confidence, kind="stable")
    left = order[~(machine | asked)[order]][::-1]
    errors = most_errors(rows, drawn, int(seen[good - 1]), delta) if good else 0
    return Shared(order[machine[order]], left, errors, order[asked[order]])


def doubt_of(confidence: Floats, sample: Mask, wrong: Mask) -> Floats:
    """Return how probable an expert's answer to each row is wrong, learned from its answers to gold rows.

    It may fall with the machine's confidence: what is hard for one is often hard for the other.
    """
    sure = np.clip(confidence, 0.01, 0.99)
    features = np.stack([np.zeros(len(sure)), np.log(sure / (1 - sure))], axis=1)[:, np.newaxis]
    found = fit_logistic(features[sample], (~wrong[sample]).astype(CODE), 0.0, Normal(0.5, 0.5))
    margin = features[:, 0, 1] * found.theta[0] + found.offsets[1] - found.offsets[0]
    return np.asarray(1 / (1 + np.exp(margin)))


def few_enough(rows: int, drawn: Integers | int, wrong: Integers | int, max_error: float, delta: float) -> Mask:
    """Return whether a sample with so many wrong rows bounds the share of errors in the table by `max_error`."""
    from scipy.stats import hypergeom

    return np.asarray(hypergeom.cdf(wrong, rows, int(max_error * rows) + 1, drawn) <= delta)


def most_errors(rows: int, drawn: int, wrong: int, delta: float) -> int:
    """Return the largest number of errors in a table with which a sample has so few of them in more than δ of cases."""
    from scipy.stats import hypergeom

    return bisect_left(range(rows + 1), True, key=lambda n: bool(hypergeom.cdf(wrong, rows, n, drawn) <= delta)) - 1
