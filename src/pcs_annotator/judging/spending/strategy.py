"""Which cells to ask first, and which of the recorded questions a stopping rule would have asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from pcs_annotator.core.arrays import Codes, Floats, Grades, Integers
from pcs_annotator.core.strategy import Strategy
from pcs_annotator.core.vote import NOT_ASKED, OPEN, Cell
from pcs_annotator.core.votes import Votes, check_known
from pcs_annotator.core.weights import Weights
from pcs_annotator.judging.spending.stopping import places_of

NO_GRADE = np.float32(np.nan)


class Stopped(NamedTuple):
    """What a strategy would have asked."""

    votes: Votes  # the votes that it would have collected
    asked: Integers  # number of cells that it would have asked, per item
    # number of cells in each round, over all items: those of all first steps, then of all second ones
    rounds: Sequence[int]


def order_of(weights: Weights, draws: int = 1, prices: Mapping[str, float] | None = None) -> list[Cell]:
    """Return every cell in the order to ask it: cheap annotators first, and among equal prices by weight.

    Cells of equal weight are asked one draw at a time. Those without weight come last; they matter only to an item
    without any other vote.

    Args:
        weights: What each cell is worth; for class-aware weights, how far its votes move the log-odds.
        draws: How often each cell can be asked.
        prices: Annotator → price of a call; annotators without a price are free. By default all cost the same.
    """
    cost = _costs(weights, prices or {})
    worth = _worth(weights)
    cells = [Cell(*place) for place in np.ndindex(*worth.shape, draws)]
    return sorted(cells, key=lambda cell: (cost[cell[0]], -worth[cell[:2]], cell.draw, cell))


def _costs(weights: Weights, prices: Mapping[str, float]) -> list[float]:
    check_known(prices, weights.annotators, "annotator")
    return [prices.get(name, 0.0) for name in weights.annotators]


def _worth(weights: Weights) -> Floats:
    # one unit of log-odds is much from a model that is never sure, and little from one that always is
    if weights.evidence is None or weights.evidence.reads != "shares":
        return weights.matrix
    table = weights.evidence.log_likelihood
    return np.asarray(np.ptp(table, axis=2).mean(axis=2))


def simulate(votes: Votes, strategy: Strategy) -> Stopped:
    """Replay a strategy on recorded votes; a cell without a recorded answer cannot be asked."""
    patterns, inverse = _patterns(votes)
    codes = np.empty_like(patterns)
    asked = np.empty(len(patterns), dtype=np.intp)
    where = places_of(strategy.order, votes.codes.shape[1:])
    alike, rounds = np.bincount(inverse, minlength=len(patterns)), Counter[int]()
    for row, pattern in enumerate(patterns):
        cells = np.where(pattern == NOT_ASKED, NOT_ASKED, OPEN).astype(np.int8)
        askable = where[pattern[where] != NOT_ASKED]
        count = step = 0
        while further := strategy.needed(cells.reshape(votes.codes.shape[1:]), _heard(votes.grades, row, cells)):
            now = askable[count : count + further]
            cells[now] = pattern[now]
            rounds[step] += len(now) * int(alike[row])
            count, step = count + further, step + 1
        codes[row], asked[row] = np.where(cells == OPEN, NOT_ASKED, cells), count
    kept = codes[inverse].reshape(votes.codes.shape)
    grades = None if votes.grades is None else np.where((kept >= 0)[..., np.newaxis], votes.grades, NO_GRADE)
    return Stopped(
        replace(votes, codes=kept, stated=None, grades=grades),
        asked[inverse],
        [rounds[step] for step in range(len(rounds))],
    )


def _patterns(votes: Votes) -> tuple[Codes, Integers]:
    """Return the codes to replay, `[pattern, cell]`, and the pattern of each item; items with grades are all unlike."""
    codes = votes.codes.reshape(len(votes), -1)
    if votes.grades is not None:
        return codes, np.arange(len(votes))
    patterns, inverse = np.unique(codes, axis=0, return_inverse=True)
    return patterns, inverse.ravel()


def _heard(grades: Grades | None, row: int, cells: Codes) -> Grades | None:
    """Return the grades of the votes that were asked for so far."""
    if grades is None:
        return None
    return np.where((cells >= 0).reshape(grades.shape[1:4])[..., np.newaxis], grades[row], NO_GRADE)
