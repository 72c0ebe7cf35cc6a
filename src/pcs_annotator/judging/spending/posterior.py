"""Stopping once a label is sure enough, and what the scores of partly asked items mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

import numpy as np

from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.core.gold import UNLABELLED
from pcs_annotator.core.vote import ABSTAINED, NOT_ASKED, OPEN, Cell
from pcs_annotator.core.votes import Votes
from pcs_annotator.core.weights import Weights
from pcs_annotator.errors import GoldError
from pcs_annotator.judging.spending.stopping import REMEMBERED, ExactStop, cells_of, places_of
from pcs_annotator.judging.spending.strategy import only
from pcs_annotator.judging.weighing.calibration import Calibrator, fit_calibrator
from pcs_annotator.judging.weighing.crossfit import MIN_ROWS_TO_CALIBRATE, AskPolicy, Splits, held_out
from pcs_annotator.judging.weighing.optimiser import Optimiser
from pcs_annotator.judging.weighing.scoring import score


def labelled_rows(votes: Votes, gold: Codes) -> tuple[Votes, Codes]:
    """Return the rows with gold; too few of them, or a single class, is an error."""
    votes, gold = votes.take(gold != UNLABELLED), gold[gold != UNLABELLED]
    if len(gold) < MIN_ROWS_TO_CALIBRATE or len(np.unique(gold)) < 2:
        raise GoldError(
            f"{len(gold)} gold rows of {len(np.unique(gold))} classes do not tell how good a part of the votes is: "
            f"label at least {MIN_ROWS_TO_CALIBRATE} rows, of two classes"
        )
    return votes, gold


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoints:
    """Where along an order of cells a posterior may end the asking, and what a score means there.

    Attributes:
        order: The cells, first to last.
        ends: How many of them come before each checkpoint, rising.
        calibrators: One for every checkpoint, learned from votes on the cells before it.
    """

    order: Sequence[Cell]
    ends: Sequence[int]
    calibrators: Sequence[Calibrator]

    def probabilities(self, votes: Votes, weights: Weights) -> Floats:
        """Return the probability of every label, each row by the first checkpoint that all its votes lie before."""
        places = places_of(self.order, votes.codes.shape[1:])
        asked = votes.codes.reshape(len(votes), -1)[:, places] != NOT_ASKED
        reached = np.where(asked, np.arange(1, len(self.order) + 1), 0).max(axis=1, initial=0)
        nearest = np.minimum(np.searchsorted(self.ends, reached), len(self.ends) - 1)
        scores = score(votes, weights)
        for place, calibrator in enumerate(self.calibrators):
            scores[nearest == place] = calibrator.apply(scores[nearest == place], votes.labels)
        return scores


class PosteriorStop:
    """Stops at a checkpoint when the leading label is probable enough, and anywhere when it can no longer change.

    Unlike `ExactStop` this can give another label than asking everything would.
    """

    def __init__(self, level: float, exact: ExactStop, checkpoints: Checkpoints) -> None:
        self.level = level
        self.exact = exact
        self.checkpoints = checkpoints
        self.order: Sequence[Cell] = exact.order
        self._places = places_of(self.order, exact.shape)
        self._needed = lru_cache(REMEMBERED)(self._needed_for)

    def needed(self, cells: Codes) -> int:
        """Return how many of the next open cells must be asked before a stop is possible; 0 to stop now."""
        return self._needed(cells.tobytes())

    def _needed_for(self, pattern: bytes) -> int:
        cells = cells_of(pattern, self.exact.shape)
        further = self.exact.needed(cells)
        if not further:
            return 0
        codes = cells.ravel()[self._places].tolist()
        still_open = list(accumulate((code == OPEN for code in codes), initial=0))
        asked = max((place for place, code in enumerate(codes, 1) if code >= ABSTAINED), default=0)
        for end, calibrator in zip(self.checkpoints.ends, self.checkpoints.calibrators, strict=True):
            # a checkpoint counts only while nothing behind it was asked: its calibrator knows no later votes
            if end >= asked and not still_open[end] and self._sure(cells, calibrator):
                return 0
            if still_open[end]:
                return min(further, still_open[end])
        return further

    def urgency(self, cells: Codes) -> float:
        """Return how likely further votes change the label, if they fell at random."""
        return self.exact.urgency(cells)

    def _sure(self, cells: Codes, calibrator: Calibrator) -> bool:
        if cells.max() < 0:
            return False
        scores = self.exact.scores(cells)
        return bool(calibrator.apply(scores[np.newaxis], self.exact.labels)[0, scores.argmax()] >= self.level)


def fit_checkpoints(
    votes: Votes, gold: Codes, chosen: Optimiser, order: Sequence[Cell], ends: Sequence[int], splits: Splits
) -> Checkpoints:
    """Return what a score means after each of some prefixes of an order, for `PosteriorStop`.

    Weights are learned from all votes of the other folds, and only the prefix of a held-out row is scored. The order
    itself may come from all gold rows.

    Args:
        votes: What everybody said.
        gold: For every item a position in `votes.labels`, or `UNLABELLED`.
        chosen: Learns the weights.
        order: Cells, first to last.
        ends: Lengths of the prefixes: `range(1, len(order) + 1)` for a check after every answer, `tier_ends` for a
            cascade.
        splits: How to divide the gold rows.
    """
    prefixes = [lambda held_out, _, end=end: only(held_out, order[:end]) for end in ends]
    calibrators = _out_of_fold_calibrators(votes, gold, chosen, prefixes, splits)
    return Checkpoints(order=tuple(order), ends=tuple(ends), calibrators=calibrators)


def _out_of_fold_calibrators(
    votes: Votes, gold: Codes, chosen: Optimiser, seen: Sequence[AskPolicy], splits: Splits
) -> tuple[Calibrator, ...]:
    """Return one calibrator for each way of seeing only a part of a held-out row's votes."""
    votes, gold = labelled_rows(votes, gold)
    scores = np.zeros((len(seen), len(votes), len(votes.labels)))
    turns = splits.turns(len(gold))
    for turn in range(turns):
        for rows, weights in held_out(chosen, votes, gold, splits, turn):
            for number, part in enumerate(seen):
                scores[number, rows] += score(part(votes.take(rows), weights), weights) / turns
    return tuple(fit_calibrator(one, gold, votes.labels) for one in scores)
