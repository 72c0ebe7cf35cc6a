"""Which row a person sees next, with a known probability; the formula is in `docs/design/review.md`.

How far a frame's fixed random order is reached depends on flips with probability ε alone, so the rows it has reached
are a simple random sample after every draw, whatever the others prefer. Estimates use all draws, weighted by their
probabilities; see `estimating/sampling.py`.
"""

from typing import NamedTuple

import numpy as np

from pcs_annotator.core.arrays import Floats, Integers, Mask

AT_RANDOM = 0.1  # ε of the queue that learns: the share of its draws that advance the fixed random order
# By how many places, as a share of all rows, the probability of a row falls to 1/e; see docs/design/review.md.
SPREAD = 0.005


class Drawn(NamedTuple):
    """A row that was drawn."""

    row: int  # its position
    probability: float  # how probable this row was, given all earlier draws
    pool: int  # how many rows could have been drawn
    reached: int  # how many rows of the fixed random order have been reached now
    chances: Floats = np.zeros(0)  # how probable each row of the run was


def draw_learning(order: Integers, reached: int, drawn: Mask, doubt: Integers, rng: np.random.Generator) -> Drawn:
    """Return the next row of the queue that learns: mostly one of the least certain, sometimes any.

    `order` are the positions of the frame's rows in their fixed random order; `drawn`, which rows may not be drawn, not
    being in the frame or drawn already (at least one may be); `doubt`, the positions of all rows, least certain first.
    """
    return _draw(order, reached, drawn, learning_distribution(doubt, drawn), (AT_RANDOM, rng))


def draw_at_random(order: Integers, reached: int, drawn: Mask, rng: np.random.Generator) -> Drawn:
    """Return the next row of the queue at random; each row that was not drawn is equally probable."""
    return _draw(order, reached, drawn, ~drawn / (~drawn).sum(), (1.0, rng))


def draw_for_audit(order: Integers, open_rows: Mask) -> Drawn:
    """Return the next row to audit: the first open one in a fixed random order; at least one must be open.

    So each open row is equally probable. When a fit accepts other rows, those that it accepts anew come at their places
    in the order: then the rows checked from its beginning on are a random sample of what is accepted now.
    """
    pool = int(open_rows.sum())
    return Drawn(int(order[open_rows[order].argmax()]), 1 / pool, pool, 0, open_rows / pool)


def learning_distribution(doubt: Integers, drawn: Mask) -> Floats:
    """Return how probable the queue that learns makes every row, its rows at random aside.

    It falls with the number of rows that are less certain, not with confidence: so it is equally concentrated whatever
    the confidence is worth.
    """
    left = doubt[~drawn[doubt]]
    falling = np.exp(-np.arange(len(left)) / max(SPREAD * len(doubt), 1.0))
    chances = np.zeros(len(drawn))
    chances[left] = falling / falling.sum()
    return chances


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
    chances = np.where(drawn, 0, advance + (1 - advance * pool) * preferred)
    return Drawn(row, float(chances[row]), pool, reached, chances)
