"""When to stop asking about an item: as soon as no open vote can change its label."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import compress
from typing import Protocol

import numpy as np

from pcs_annotator.core.arrays import Array, Codes, Floats, Integers
from pcs_annotator.core.vote import ABSTAINED, NOT_ASKED, OPEN, Cell
from pcs_annotator.core.votes import positions_of
from pcs_annotator.core.weights import Evidence, Weights
from pcs_annotator.judging.weighing.scoring import softmax

# Far above the rounding of scores, so that asking never stops on what would end as a tie.
MARGIN = 1e-9
# The best case has a lower bar than a stop, so that rounding cannot make the estimate of needed questions too high.
HOPE = MARGIN / 2
# A few patterns of votes make up most items, and every item starts with none.
REMEMBERED = 1 << 15


class _Prospect(Protocol):
    """The score of one item so far, and how far open votes can still change it."""

    def needed(self, cells: Codes) -> int: ...

    def urgency(self, cells: Codes) -> float: ...

    def scores(self, cells: Codes) -> Floats: ...


class ExactStop:
    """Stops when the label can no longer change, whatever the open cells answer and even if they give no answer.

    An item without any vote is asked about to the end, because even a vote without weight gives it a label.

    Attributes:
        weights: The weights that decide the label; their names give the positions of annotators and relations.
        labels: The labels that the codes stand for.
        order: Cells to ask, first to last; an open cell that is not among them is never asked.
    """

    def __init__(self, weights: Weights, labels: Sequence[str], draws: int, order: Sequence[Cell]) -> None:
        self.weights = weights
        self.labels = labels
        self.order: Sequence[Cell] = tuple(order)
        self.shape = (len(weights.annotators), len(weights.relations), draws)
        places = places_of(self.order, self.shape)
        never = np.ones(self.shape, dtype=np.bool_)
        never.flat[places] = False
        self._never = never if never.any() else None
        self._prospect: _Prospect = (
            _EvidenceProspect(weights.evidence, labels, draws, places)
            if weights.evidence
            else _LinearProspect(weights, len(labels), draws, places)
        )
        self._needed = lru_cache(REMEMBERED)(self._needed_for)

    def needed(self, cells: Codes) -> int:
        """Return how many of the next open cells must be asked before a stop is possible; 0 to stop now.

        Args:
            cells: Codes of one item, `[annotator, relation, draw]`, `OPEN` where it may still be asked.
        """
        return self._needed(cells.tobytes())

    def _needed_for(self, pattern: bytes) -> int:
        return self._prospect.needed(self._askable(cells_of(pattern, self.shape)))

    def urgency(self, cells: Codes) -> float:
        """Return how likely random further votes are to change the label: 1 for a tie, 0 when nothing can."""
        return self._prospect.urgency(self._askable(cells)) if self.needed(cells) else 0.0

    def scores(self, cells: Codes) -> Floats:
        """Return the score of every label from the votes so far, as in `score` but without rounding."""
        if cells.max() < 0:
            return np.full(len(self.labels), 1 / len(self.labels))
        return self._prospect.scores(np.where(cells == OPEN, NOT_ASKED, cells))

    def _askable(self, cells: Codes) -> Codes:
        return cells if self._never is None else np.where(self._never & (cells == OPEN), NOT_ASKED, cells)


def places_of(cells: Sequence[Cell], shape: Sequence[int]) -> Integers:
    """Return the positions of cells in the flattened codes of an item, given their shape."""
    return np.array([np.ravel_multi_index(cell, tuple(shape)) for cell in cells], dtype=np.intp)


def cells_of(pattern: bytes, shape: tuple[int, ...]) -> Codes:
    """Return the codes of one item from their bytes, which are the keys of the cache."""
    return np.frombuffer(pattern, dtype=np.int8).reshape(shape)


class _LinearProspect:
    """Eq. 1 and 2 with open votes.

    The worst case for the leader is that every open vote is given to one rival: a missing vote only passes its weight
    on to other votes. So each vote, given or open, has a fixed value: its share of its cell, times the cell's share of
    its annotator's weight, times the annotator's weight. The lead must exceed the value of all open votes, and a vote
    for the leader narrows that gap by twice its value. Plain numbers, because panels are too small for arrays to pay.
    """

    def __init__(self, weights: Weights, labels: int, draws: int, places: Integers) -> None:
        self.voices = weights.annotator_weights.tolist()
        self.by_relation = weights.relation_weights.tolist()
        self.labels = labels
        self.places = places.tolist()
        self.cell_of = (places // draws).tolist()

    def needed(self, cells: Codes) -> int:
        lead, gains = self._lead(cells)
        reach = lead - sum(gains)
        voted = bool(cells.max() >= 0)
        if not gains or (voted and (reach > MARGIN or not any(gains))):
            return 0
        for asked, gain in enumerate(gains, 1):
            reach += 2 * gain
            if reach > HOPE:
                return asked
        return _last_weighted(gains)

    def urgency(self, cells: Codes) -> float:
        lead, gains = self._lead(cells)
        return _chance(lead, math.sqrt(sum(gain * gain for gain in gains)))

    def scores(self, cells: Codes) -> Floats:
        totals = np.array(self._values(cells)[0])
        whole = totals.sum()
        return totals / whole if whole > 0 else np.full(self.labels, 1 / self.labels)

    def _lead(self, cells: Codes) -> tuple[float, list[float]]:
        """Return the lead of the first label over the second, and the value of every open vote in order."""
        totals, values = self._values(cells)
        flat = cells.ravel().tolist()
        gains = [values[cell] for place, cell in zip(self.places, self.cell_of, strict=True) if flat[place] == OPEN]
        *_, second, first = sorted(totals)
        return first - second, gains

    def _values(self, cells: Codes) -> tuple[list[float], list[float]]:
        """Return the total value of the given votes per label, and the value of one vote in every cell."""
        totals, values = [0.0] * self.labels, []
        for voice, rows in zip(self.voices, cells.tolist(), strict=True):
            counts = [len(draws) - draws.count(ABSTAINED) - draws.count(NOT_ASKED) for draws in rows]
            whole = sum(compress(self.by_relation, counts))
            factor = voice / whole if whole > 0 else 0.0
            for weight, count, draws in zip(self.by_relation, counts, rows, strict=True):
                value = factor * weight / count if count else 0.0
                values.append(value)
                for code in draws:
                    if code >= 0:
                        totals[code] += value
        return totals, values


class _EvidenceProspect:
    """A posterior with open votes: log-odds of every pair of labels, and how far each open vote can move them.

    Draws of one cell are averaged, so in a cell with votes an open draw adds at worst the smallest of the cell's
    log-odds; in a cell without a vote, a missing answer adds nothing, which may be worse or better.
    """

    def __init__(self, evidence: Evidence, labels: Sequence[str], draws: int, places: Integers) -> None:
        order = positions_of(labels, evidence.labels, "label with evidence")
        table = evidence.log_likelihood[:, :, order][..., order]
        self.said = table.reshape(-1, len(labels), len(labels))
        self.log_prior = evidence.log_prior[order]
        odds = self.said[:, :, :, np.newaxis] - self.said[:, :, np.newaxis, :]
        low, high = odds.min(axis=1), odds.max(axis=1)
        # indexed by whether the cell has no vote yet
        self.low = np.stack([low, np.minimum(low, 0)])
        bare = np.where(low > 0, high * draws, np.maximum(high, 0) - np.minimum(low, 0))
        self.gain = np.stack([high - low, bare])
        self.own = np.diag(np.full(len(labels), np.inf))
        self.places = places
        self.cell_of = places // draws
        self.draws = draws

    def needed(self, cells: Codes) -> int:
        worst, gains = self._outlook(cells)
        if not len(gains):
            return 0
        voted = bool(cells.max() >= 0)
        if voted and (worst.min(axis=1).max() > MARGIN or not gains.any()):
            return 0
        reach = worst + np.cumsum(gains, axis=0)
        hopeful = np.flatnonzero(reach.min(axis=2).max(axis=1) > HOPE)
        return int(hopeful[0]) + 1 if len(hopeful) else _last_weighted(gains.max(axis=(1, 2)).tolist())

    def urgency(self, cells: Codes) -> float:
        _, gains = self._outlook(cells)
        logits = self._logits(np.where(cells == OPEN, NOT_ASKED, cells))
        leader = int(logits.argmax())
        spread = np.sqrt(np.sum((gains[:, leader] / 2) ** 2, axis=0))
        lead = (logits[leader] - logits).tolist()
        return max(_chance(lead[j], float(spread[j])) for j in range(len(logits)) if j != leader)

    def scores(self, cells: Codes) -> Floats:
        return np.asarray(softmax(self._logits(cells)[np.newaxis])[0])

    def _logits(self, cells: Codes) -> Floats:
        flat = cells.ravel()
        votes = np.flatnonzero(flat >= 0)
        cell = votes // self.draws
        said = self.said[cell, flat[votes]]
        if self.draws > 1:
            said = said / self._alive(flat)[cell, np.newaxis]
        return np.asarray(said.sum(axis=0) + self.log_prior)

    def _alive(self, flat: Codes) -> Array:
        return ((flat >= 0) | (flat == OPEN)).reshape(-1, self.draws).sum(axis=1)

    def _outlook(self, cells: Codes) -> tuple[Floats, Floats]:
        """Return the worst log-odds of every pair of labels, and how much each open vote in order can improve them."""
        flat = cells.ravel()
        is_open = flat[self.places] == OPEN
        cell = self.cell_of[is_open]
        bare = (flat.reshape(-1, self.draws).max(axis=1) < 0).astype(np.intp)[cell]
        low, gain = self.low[bare, cell], self.gain[bare, cell]
        if self.draws > 1:
            share = self._alive(flat)[cell, np.newaxis, np.newaxis]
            low, gain = low / share, gain / share
        logits = self._logits(cells)
        return logits[:, np.newaxis] - logits + self.own + low.sum(axis=0), gain


def _last_weighted(gains: Sequence[float]) -> int:
    """Return the number of open votes up to the last one with any weight; at least 1."""
    return max((asked for asked, gain in enumerate(gains, 1) if gain), default=1)


def _chance(lead: float, spread: float) -> float:
    return math.erfc(lead / spread / math.sqrt(2)) if spread > 0 else 0.0
