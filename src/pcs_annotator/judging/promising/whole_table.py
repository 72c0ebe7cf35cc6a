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

from typing import NamedTuple

import numpy as np

from pcs_annotator.core.arrays import CODE, Floats, Integers, Mask
from pcs_annotator.judging.weighing.optimisers.logit import Normal, fit_logistic

DOUBT = 1e-12


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
    to_machine, to_expert = 1 / doubt, np.zeros(rows)  # the λ at which each row goes there
    theirs = np.zeros(rows, dtype=np.intp)
    if expert is not None:
        gain = doubt - expert.doubt
        to_machine = np.minimum(to_machine, np.where(gain > 0, expert.price / np.where(gain > 0, gain, 1), np.inf))
        to_expert, theirs = (
            (1 - expert.price) / np.maximum(expert.doubt, DOUBT),
            (expert.wrong & sample).astype(np.intp),
        )
    via = to_expert > to_machine
    at = np.concatenate([to_expert[via], to_machine])
    more = np.concatenate([theirs[via], (wrong & sample) - np.where(via, theirs, 0)])
    levels, place = np.unique(-at, return_inverse=True)  # rows that are equally certain stay together
    seen = np.cumsum(np.bincount(place, more, len(levels))).round().astype(np.intp)
    bounds = most_errors(rows, int(sample.sum()), np.arange(int(seen.max()) + 1), delta)[seen]
    good = int(np.argmax(np.append((bounds > max_error * rows) | (levels >= 0), [True])))
    least = -levels[good - 1] if good else np.inf
    machine = (to_machine >= least) & (good > 0)
    theirs_now = via & ~machine & (to_expert >= least)
    order = np.argsort(-confidence, kind="stable")
    return Shared(
        order[machine[order]],
        order[~(machine | theirs_now)[order]][::-1],
        int(bounds[good - 1]) if good else 0,
        order[theirs_now[order]],
    )


def doubt_of(confidence: Floats, sample: Mask, wrong: Mask) -> Floats:
    """Return how probable an expert's answer to each row is wrong, learned from its answers to gold rows.

    It may fall with the machine's confidence: what is hard for one is often hard for the other.
    """
    sure = np.clip(confidence, 0.01, 0.99)
    features = np.stack([np.zeros(len(sure)), np.log(sure / (1 - sure))], axis=1)[:, np.newaxis]
    found = fit_logistic(features[sample], (~wrong[sample]).astype(CODE), 0.0, Normal(0.5, 0.5))
    margin = features[:, 0, 1] * found.theta[0] + found.offsets[1] - found.offsets[0]
    return np.asarray(1 / (1 + np.exp(margin)))


def most_errors(rows: int, drawn: int, wrong: Integers, delta: float) -> Integers:
    """Return the largest number of errors in a table with which a sample has so few of them in more than δ of cases."""
    from scipy.stats import hypergeom

    low, high = wrong.astype(np.int64), np.full(len(wrong), rows + 1)
    while (high - low > 1).any():
        middle = (low + high) // 2
        possible = hypergeom.cdf(wrong, rows, middle, drawn) > delta
        low, high = np.where(possible, middle, low), np.where(possible, high, middle)
    return np.asarray(low)
