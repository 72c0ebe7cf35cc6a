"""Which cells are not worth asking at all, by cross-validation on the gold rows alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from pcs_annotator.core.arrays import Codes, Floats, Mask, frozen
from pcs_annotator.core.vote import NOT_ASKED, Cell
from pcs_annotator.core.votes import Votes
from pcs_annotator.core.weights import Weights, to_simplex
from pcs_annotator.judging.metrics.metrics import auroc
from pcs_annotator.judging.spending.posterior import labelled_rows
from pcs_annotator.judging.weighing.calibration import fit_calibrator
from pcs_annotator.judging.weighing.crossfit import HeldOut, Splits, cross_fits, held_out
from pcs_annotator.judging.weighing.optimiser import Optimiser, fit_optimiser
from pcs_annotator.judging.weighing.optimisers import optimisers
from pcs_annotator.judging.weighing.scoring import score

TOLERANCE = 0.005
REPEATS = 4
# Both chosen on random draws of gold rows other than those that benchmarks/spending.py reports.
SHARE_OF_GOLD = 0.25
PRICE_OF_WEIGHT = 0.0225
CLASS_AWARE = "naive-bayes"


class CurvePoint(NamedTuple):
    """How good some cells are.

    Attributes:
        cells: How many.
        auroc: Cross-validated, against gold.
        expected: Cross-validated, against what a class-aware model makes of all cells of each row; far less subject
            to chance, and a part may do better than the whole.
        weight: Share of all weight that these cells have.
    """

    cells: int
    auroc: float
    expected: float
    weight: float

    @property
    def quality(self) -> float:
        """All three in one: on 100 gold rows the AUROC alone is too noisy to see half a point.

        The best of many sets of cells owes its figures partly to chance; a price on weight left out makes up for it.
        """
        seen = SHARE_OF_GOLD * self.auroc + (1 - SHARE_OF_GOLD) * self.expected
        return seen + PRICE_OF_WEIGHT * self.weight


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pruned:
    """Cells worth asking, and what was found on the way.

    Attributes:
        keep: True for every cell to ask, `[annotator, relation]`.
        curve: Quality against number of cells; each point leaves out one cell of the next.
    """

    keep: Mask
    curve: Sequence[CurvePoint]

    def __post_init__(self) -> None:
        object.__setattr__(self, "keep", frozen(self.keep, np.bool_))
        object.__setattr__(self, "curve", tuple(self.curve))

    def of(self, votes: Votes) -> Votes:
        """Return the votes of the cells that are kept; the others count as never asked."""
        return votes.only(self.keep[..., np.newaxis])

    def order(self, order: Sequence[Cell]) -> list[Cell]:
        """Return an order without the cells that are dropped."""
        return [cell for cell in order if self.keep[cell.annotator, cell.relation]]


def prune(
    votes: Votes, gold: Codes, chosen: Optimiser, splits: Splits | None = None, tolerance: float = TOLERANCE
) -> Pruned:
    """Return the fewest cells found whose quality is within a tolerance of that of all cells.

    Cells are left out one at a time, always the one that is missed least, so that what a model or a relation says
    twice goes first, however heavy. All sets of cells are compared on the same folds. Weights are always learned from
    all cells: the gold rows have them anyway, and it proved better than learning again from the cells kept.

    Args:
        votes: What everybody said.
        gold: For every item a position in `votes.labels`, or `UNLABELLED`.
        chosen: Learns the weights.
        splits: How to divide the gold rows.
        tolerance: Loss of AUROC to put up with, as a share of 1.
    """
    splits = splits or Splits(repeats=REPEATS)
    votes, gold = labelled_rows(votes, gold)
    trial = _Trial(
        votes,
        gold,
        [list(held_out(chosen, votes, gold, splits, turn)) for turn in range(splits.turns(len(gold)))],
        _truth(votes, gold, splits),
        _weight_heard(votes, fit_optimiser(chosen, votes, gold, splits.seed)),
    )
    found = _leave_out_one_by_one(trial)
    least = found[-1].point.quality - tolerance
    keep = next(one.keep for one in found if one.point.quality >= least)
    return Pruned(keep=keep, curve=[one.point for one in found])


class _Trial(NamedTuple):
    """Gold rows, the weights that score each of them unseen, their probable labels, and the weight of every cell."""

    votes: Votes
    gold: Codes
    turns: Sequence[Sequence[HeldOut]]
    truth: Floats
    weight: Floats


class _Subset(NamedTuple):
    keep: Mask
    point: CurvePoint


def _weight_heard(votes: Votes, weights: Weights) -> Floats:
    """Return each cell's share of the weight; a cell without a usable vote has none."""
    heard = weights.matrix * (votes.codes >= 0).any(axis=3).mean(axis=0)
    return to_simplex(heard.ravel()).reshape(heard.shape)


def _truth(votes: Votes, gold: Codes, splits: Splits) -> Floats:
    """Return the probability of every label by a class-aware model that did not see the row, `[item, label]`."""
    fits = cross_fits(optimisers.create(CLASS_AWARE), votes, gold, splits)
    scores = np.mean([fit.scores for fit in fits], axis=0)
    return fit_calibrator(scores, gold, votes.labels).apply(scores, votes.labels)


def _leave_out_one_by_one(trial: _Trial) -> list[_Subset]:
    """Return the sets of 1, 2, … cells that remain when the cell that is missed least always goes next."""
    keep = np.ones(trial.weight.shape, dtype=np.bool_)
    found = _rated(trial, keep[np.newaxis])
    while keep.sum() > 1:
        smaller = np.repeat(keep[np.newaxis], keep.sum(), axis=0)
        smaller[np.arange(len(smaller)), *np.nonzero(keep)] = False
        best = max(_rated(trial, smaller), key=lambda one: one.point.quality)
        found.append(best)
        keep = best.keep
    return found[::-1]


def _rated(trial: _Trial, masks: Mask) -> list[_Subset]:
    """Return how good each of some sets of cells is, `[set, annotator, relation]`."""
    scores = _held_out_scores(trial, masks)
    return [
        _Subset(
            keep,
            CurvePoint(
                int(keep.sum()),
                float(np.mean([auroc(one, trial.gold) for one in repeats])),
                float(np.mean([_expected_auroc(one, trial.truth) for one in repeats])),
                float(trial.weight[keep].sum()),
            ),
        )
        for keep, repeats in zip(masks, scores, strict=True)
    ]


def _held_out_scores(trial: _Trial, masks: Mask) -> Floats:
    """Return scores by each of some sets of cells, `[set, repeat, item, label]`."""
    votes = trial.votes
    scores = np.empty((len(masks), len(trial.turns), len(votes), len(votes.labels)))
    for turn, folds in enumerate(trial.turns):
        for rows, weights in folds:
            # all sets at once, one below the other: a call for each would take most of the time
            codes = np.where(masks[:, np.newaxis, ..., np.newaxis], votes.codes[rows], NOT_ASKED).astype(np.int8)
            codes = codes.reshape(-1, *votes.codes.shape[1:])
            stacked = replace(votes, codes=codes, ids=[str(row) for row in range(len(codes))], stated=None)
            scores[:, turn, rows] = score(stacked, weights).reshape(len(masks), -1, len(votes.labels))
    return scores


def _expected_auroc(scores: Floats, probabilities: Floats) -> float:
    """Return the macro AUROC to expect of rows whose labels are known by their probabilities only."""
    return float(np.mean([_binary(*columns) for columns in zip(scores.T, probabilities.T, strict=True)]))


def _binary(scores: Floats, positive: Floats) -> float:
    negative = 1 - positive
    _, level = np.unique(scores, return_inverse=True)
    at_level = np.bincount(level, negative)
    below = np.cumsum(at_level) - at_level / 2
    # a row is no rival of its own
    own = positive @ negative
    return float((positive @ below[level] - own / 2) / (positive.sum() * negative.sum() - own))
