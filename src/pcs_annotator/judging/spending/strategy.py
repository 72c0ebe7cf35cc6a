"""Which cells to ask first, and which of the recorded questions a stopping rule would have asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from pcs_annotator.core.arrays import Floats, Integers
from pcs_annotator.core.strategy import Strategy
from pcs_annotator.core.vote import NOT_ASKED, OPEN, Cell
from pcs_annotator.core.votes import Votes, check_known
from pcs_annotator.core.weights import Weights
from pcs_annotator.judging.spending.stopping import places_of


class Stopped(NamedTuple):
    """The votes that a strategy would have collected, and the number of cells it asked per item."""

    votes: Votes
    asked: Integers


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
    if weights.evidence is None:
        return weights.matrix
    table = weights.evidence.log_likelihood
    return np.asarray(np.ptp(table, axis=2).mean(axis=2))


def simulate(votes: Votes, strategy: Strategy) -> Stopped:
    """Replay a strategy on recorded votes; a cell without a recorded answer cannot be asked."""
    patterns, inverse = np.unique(votes.codes.reshape(len(votes), -1), axis=0, return_inverse=True)
    codes = np.empty_like(patterns)
    asked = np.empty(len(patterns), dtype=np.intp)
    where = places_of(strategy.order, votes.codes.shape[1:])
    for row, pattern in enumerate(patterns):
        cells = np.where(pattern == NOT_ASKED, NOT_ASKED, OPEN).astype(np.int8)
        askable = where[pattern[where] != NOT_ASKED]
        count = 0
        while further := strategy.needed(cells.reshape(votes.codes.shape[1:])):
            now = askable[count : count + further]
            cells[now] = pattern[now]
            count += further
        codes[row], asked[row] = np.where(cells == OPEN, NOT_ASKED, cells), count
    inverse = inverse.ravel()
    return Stopped(replace(votes, codes=codes[inverse].reshape(votes.codes.shape), stated=None), asked[inverse])


def only(votes: Votes, cells: Sequence[Cell]) -> Votes:
    """Return the votes of some cells; all others count as never asked."""
    kept = np.zeros(votes.codes.shape[1:], dtype=np.bool_)
    kept.flat[places_of(cells, kept.shape)] = True
    return votes.only(kept)
