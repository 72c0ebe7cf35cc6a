"""The promise about a whole table: which rows people must label so that few errors are left in all of it.

Rows go from people, who make no errors, to the machine, the most certain first, as long as the table may have at most
the promised number of errors. How many it may have is known from gold rows that were drawn at random: the number of
wrong ones among them is hypergeometric, so the largest number of errors in the table that would still give so few is an
upper bound with the promised certainty. The first place of the order with too many errors is fixed, whatever the gold
rows are, so one bound, at that place, has to hold, and not one for every place (fixed-sequence testing; PAC labels).

On a scale, an error may be a part of one: how far a label is off. The sum of such losses is bounded by a bet against
too large a sum, one gold row after the other, whose stake grows in few cases if it is too large (Waudby-Smith, Ramdas).

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
BETS_BEFORE, LARGEST_BET = 10, 0.99


class Expert(NamedTuple):
    """Somebody who answers doubtful rows for less than people do."""

    doubt: Floats  # how probable its answer to each row is wrong
    wrong: Mask | Floats  # which of its answers are wrong, or how much, of rows with gold
    price: float  # of an answer, as a share of what a person costs


class Shared(NamedTuple):
    """Rows shared between the machine, people and perhaps an expert."""

    by_machine: Integers  # the most certain first
    by_people: Integers  # the least certain first; those that have a label already among them
    errors: int  # so many errors at most are in the rows of machine and expert, with the certainty
    by_expert: Integers  # the most certain first


def share_rows(
    confidence: Floats, sample: Mask, wrong: Mask | Floats, max_error: float, delta: float, expert: Expert | None = None
) -> Shared:
    """Return which rows the machine may label, and which ones the expert, so that it costs least.

    Args:
        confidence: The probability that the machine's label of a row is right, from fits that did not see its gold.
        sample: Which rows have gold and were drawn at random.
        wrong: Which of these have a wrong label, or how wrong it is, from 0 to 1.
        max_error: The share of all rows that may be wrong in the end, or how wrong they may be on average.
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
    kind = np.result_type(wrong, wrong_there, np.intp)  # whole numbers if rows are wrong or right
    ours, added = np.where(sample, wrong, 0).astype(kind), np.where(sample & via, wrong_there, 0).astype(kind)
    more, whose = np.concatenate([added[via], ours - added]), np.concatenate([np.flatnonzero(via), np.arange(rows)])
    levels, place = np.unique(-at, return_inverse=True)  # rows that are equally certain stay together
    losses, good = np.zeros(rows, dtype=kind), int((levels < 0).sum())
    order = np.random.default_rng(0).permutation(np.flatnonzero(sample))  # bets need rows in a random order
    moves = np.flatnonzero(more)
    for level in [-1, *np.unique(place[moves]).tolist()]:
        now = moves[place[moves] == level]
        after = losses.copy()
        after[whose[now]] += more[now]
        if not small_enough(rows, after[order], max_error * rows, delta):
            good = min(good, max(level, 0))
            break
        losses = after
    least = -levels[good - 1] if good else np.inf
    machine = (to_machine >= least) & (good > 0)
    asked = via & ~machine & (to_expert >= least)
    best = np.argsort(-confidence, kind="stable")
    left = best[~(machine | asked)[best]][::-1]
    # the smallest number of errors to which the sample limits those of the table
    limits = range(int(max_error * rows))
    errors = bisect_left(limits, True, key=lambda most: small_enough(rows, losses[order], most, delta)) if good else 0
    return Shared(best[machine[best]], left, errors, best[asked[best]])


def doubt_of(confidence: Floats, sample: Mask, wrong: Mask) -> Floats:
    """Return how probable an expert's answer to each row is wrong, learned from its answers to gold rows.

    It may fall with the machine's confidence: what is hard for one is often hard for the other.
    """
    sure = np.clip(confidence, 0.01, 0.99)
    features = np.stack([np.zeros(len(sure)), np.log(sure / (1 - sure))], axis=1)[:, np.newaxis]
    found = fit_logistic(features[sample], (~wrong[sample]).astype(CODE), 0.0, Normal(0.5, 0.5))
    margin = features[:, 0, 1] * found.theta[0] + found.offsets[1] - found.offsets[0]
    return np.asarray(1 / (1 + np.exp(margin)))


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
