r"""Which row a person sees next, with a known probability, and what may be concluded from rows drawn so.

All rows of a frame are drawn one after the other, none twice. Each draw has one flip: with probability $\varepsilon$
the frame's fixed random order advances by one row. If that row was not drawn before, it is the draw. Otherwise the draw
comes from $p$, a distribution over the $U$ rows not drawn yet. With $N$ rows of which the order has reached $r$, row
$i$ is drawn with probability

$$q(i) = \frac{\varepsilon}{N-r} + \Bigl(1 - \frac{\varepsilon U}{N-r}\Bigr)\, p(i).$$

How far the order is reached depends on flips alone, so the rows it has reached are a simple random sample after every
draw, whatever $p$ prefers. Shares are estimated from all draws, weighted by $q$ (Farquhar, Gal and Rainforth, 2021).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pcs_annotator.core.arrays import Codes, Floats, Integers, Mask

AT_RANDOM = 0.1
"""ε of the queue that learns: the share of its draws that advance the fixed random order."""
SPREAD = 0.005
"""By how many places, as a share of all rows, the probability of a row falls to 1/e; see docs/design/review.md."""


class Drawn(NamedTuple):
    """A row that was drawn.

    Attributes:
        row: Its position.
        probability: How probable this row was, given all earlier draws.
        pool: How many rows could have been drawn.
        reached: How many rows of the fixed random order have been reached now.
    """

    row: int
    probability: float
    pool: int
    reached: int


class Shares(NamedTuple):
    """The estimated share of every label among all rows of the frame, and its standard error.

    Both are unknown (nan) before the first draw. The standard error is unknown after a single draw, and 0 when all rows
    were drawn.
    """

    share: Floats
    standard_error: Floats


def draw_learning(order: Integers, reached: int, drawn: Mask, doubt: Integers, rng: np.random.Generator) -> Drawn:
    """Return the next row of the queue that learns: mostly one of the least certain, sometimes any.

    Args:
        order: Positions of the frame's rows, in their fixed random order.
        reached: How many of them have been reached.
        drawn: For every row of the run whether it may not be drawn: it was already, or is not in the frame. At least
            one may be.
        doubt: Positions of all rows, least certain first, such as from `review_order`.
        rng: Decides.
    """
    return _draw(order, reached, drawn, learning_distribution(doubt, drawn), (AT_RANDOM, rng))


def draw_at_random(order: Integers, reached: int, drawn: Mask, rng: np.random.Generator) -> Drawn:
    """Return the next row of the queue at random; each row that was not drawn is equally probable.

    The fixed random order advances by exactly one row. If that one was drawn already, another row is the draw.
    """
    return _draw(order, reached, drawn, ~drawn / (~drawn).sum(), (1.0, rng))


def draw_for_audit(order: Integers, open_rows: Mask) -> Drawn:
    """Return the next row to audit: the first open one in a fixed random order; at least one must be open.

    So each open row is equally probable. When a fit accepts other rows, those that it accepts anew come at their places
    in the order: then the rows checked from its beginning on are a random sample of what is accepted now.
    """
    pool = int(open_rows.sum())
    return Drawn(int(order[open_rows[order].argmax()]), 1 / pool, pool, 0)


def learning_distribution(doubt: Integers, drawn: Mask) -> Floats:
    """Return how probable the queue that learns makes every row, its rows at random aside.

    The probability falls with the number of rows that are less certain, not with confidence itself: so the queue is
    equally concentrated whatever the confidence is worth.
    """
    left = doubt[~drawn[doubt]]
    falling = np.exp(-np.arange(len(left)) / max(SPREAD * len(doubt), 1.0))
    found = np.zeros(len(drawn))
    found[left] = falling / falling.sum()
    return found


def _draw(
    order: Integers, reached: int, drawn: Mask, preferred: Floats, flip: tuple[float, np.random.Generator]
) -> Drawn:
    at_random, rng = flip
    pool, unreached = int((~drawn).sum()), len(order) - reached
    row = -1
    if rng.random() < at_random:
        row = int(order[reached])
        reached += 1
    if row < 0 or drawn[row]:
        row = int(rng.choice(len(preferred), p=preferred))
    advance = at_random / unreached
    return Drawn(row, advance + (1 - advance * pool) * float(preferred[row]), pool, reached)


def draw_weights(probability: Floats, rows: int, strength: Floats | None = None) -> Floats:
    """Return the weight of every draw; the mean of weighted values estimates the mean over all rows without bias.

    Args:
        probability: How probable each draw was, from the first draw on.
        rows: Number of rows in the frame.
        strength: How much each draw counts compared with others, such as ε of its queue; it must not depend on labels.
            By default all count the same.
    """
    draws = len(probability)
    if draws == rows:
        return np.ones(rows)
    counts = _counts(draws, rows, strength)
    later = counts[::-1].cumsum()[::-1] - counts
    return draws * (counts / probability + later) / rows


def _counts(draws: int, rows: int, strength: Floats | None) -> Floats:
    """Return how much the estimate from each draw counts, adding up to 1: late ones, of fewer rows left, count more."""
    left = rows - np.arange(draws, dtype=np.float64)
    counts: Floats = (1.0 if strength is None else strength) / (left * (left - 1))
    return counts / counts.sum()


def estimate_shares(
    codes: Codes, drawn: Integers, probability: Floats, expected: Floats, strength: Floats | None = None
) -> Shares:
    r"""Return the share of every label among all rows, without bias for a fixed number of draws.

    What is estimated from draws is by how much shares differ from those expected. Each draw $m$ gives an estimate
    by itself: what is known from earlier draws, and the difference of its row over $q_m$ for the rest. The result is a
    mean of these with fixed weights, and their errors are martingale differences. So squared deviations, with squared
    weights, estimate the variance.

    Args:
        codes: The label of every row drawn, from the first draw on; negative if people could not give any, so that
            shares add up to less than 1.
        drawn: Which row each draw was, as a position in `expected`.
        probability: How probable each draw was.
        expected: Probability of every label of each row of the frame, `[row, label]`. It may be wrong, but must not
            depend on draws, such as scores with equal weights; all 0 if nothing is expected.
        strength: How much each draw counts; see `draw_weights`.
    """
    rows, labels = expected.shape
    draws = len(codes)
    unknown = np.full(labels, np.nan)
    if not draws:
        return Shares(unknown, unknown)
    values = (codes[:, np.newaxis] == np.arange(labels)) - expected[drawn]
    difference = (draw_weights(probability, rows, strength)[:, np.newaxis] * values).mean(axis=0)
    share = expected.mean(axis=0) + difference
    if draws in (1, rows):
        return Shares(share, np.zeros(labels) if draws == rows else unknown)
    alone = (values.cumsum(axis=0) - values + values / probability[:, np.newaxis]) / rows
    squared = _counts(draws, rows, strength) ** 2
    squares = (squared[:, np.newaxis] * (alone - difference) ** 2).sum(axis=0)
    # the estimates deviate less from their own mean than from the truth
    return Shares(share, np.sqrt(squares / (1 - squared.sum())))
