"""Labelling new texts with fewer questions: what to ask first, when to stop, and what can then be promised.

Labels are those of asking everything: the calibrator of the run decides when to stop. But scores from only some of the
questions are coarser than those that its probabilities and its certificate were made from. So the probabilities get a
power, which changes no label, and the certificate is made again, both from gold rows with only those votes that would
have been asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from pcs_annotator.core.arrays import Codes, Mask
from pcs_annotator.core.vote import NOT_ASKED, Cell
from pcs_annotator.core.votes import Votes, positions_of
from pcs_annotator.core.weights import Weights
from pcs_annotator.judging.fit_model import Learning, Trial, fit_model, rows_to_replay
from pcs_annotator.judging.model import Model
from pcs_annotator.judging.spending.stopping import ExactStop
from pcs_annotator.judging.spending.strategy import order_of, simulate
from pcs_annotator.judging.weighing.calibration import Calibrator
from pcs_annotator.judging.weighing.fitting import fit_coded


class Spending(NamedTuple):
    """The share of all questions that is asked, measured on recorded votes."""

    questions: float  # share of all questions
    by_annotator: Mapping[str, float]  # the same per annotator
    # share of texts for which each relation is asked about at all, and so must be rewritten
    by_relation: Mapping[str, float]


class Frugal(NamedTuple):
    """How to ask about new texts, and the model that judges the answers."""

    model: Model  # its confidence and promise are for texts that are asked about by the strategy
    strategy: ExactStop  # what to ask first, and when to stop
    spending: Spending  # the share of questions that is asked
    trial: Trial | None  # the gold rows, asked about in the same way, as judged by fits that did not see them


def learn_frugal(
    votes: Votes,
    gold: Codes,
    how: Learning,
    prices: Mapping[str, float] | None = None,
    random_sample: Mask | None = None,
    distinct: Mask | None = None,
) -> Frugal:
    """Return how to ask about new texts until no answer can change the label, and the model for such answers.

    Args:
        votes: Recorded votes.
        gold: For every item a position in `votes.labels`, or `UNLABELLED`.
        how: How to learn.
        prices: Annotator → price of a call. Cheap annotators are then asked first, and expensive ones only about texts
            whose label they can still change. By default all cost the same.
        random_sample: Which rows were drawn at random and so can support a promise; by default all.
        distinct: Which rows count: one for every text; by default all.
    """
    rows = slice(None) if distinct is None else distinct
    weights = fit_coded(votes.take(rows), gold[rows], how.optimiser, seed=how.splits.seed, resamples=how.resamples)
    draws, graded = votes.codes.shape[3], graded_annotators(votes)
    order = order_of(weights, draws, prices)

    def ask_policy(held_out: Votes, fold_weights: Weights, calibrator: Calibrator | None) -> Votes:
        cells = _same_cells(order, weights, fold_weights)
        rule = ExactStop(fold_weights, held_out.labels, draws, cells, calibrator, graded)
        return simulate(held_out, rule).votes

    model, trial = fit_model(
        votes, gold, how, weights=weights, random_sample=random_sample, distinct=distinct, ask_policy=ask_policy
    )
    # the power that probabilities were raised to changes no label
    strategy = ExactStop(weights, votes.labels, draws, order, model.calibrator, graded)
    return Frugal(model, strategy, spending_of(votes, strategy), trial)


def exact_stop(votes: Votes, model: Model) -> ExactStop:
    """Return the strategy that asks the heaviest cells first and stops when no open vote can change the label."""
    draws = votes.codes.shape[3]
    order = order_of(model.weights, draws)
    return ExactStop(model.weights, votes.labels, draws, order, model.calibrator, graded_annotators(votes))


def graded_annotators(votes: Votes) -> list[str]:
    """Return the annotators that gave at least one graded vote."""
    if votes.grades is None:
        return []
    hard = np.isnan(votes.grades).all(axis=(0, 2, 3, 4))
    return [votes.annotators[place] for place in np.flatnonzero(~hard).tolist()]


def spending_of(votes: Votes, strategy: ExactStop) -> Spending:
    """Return the share of the recorded questions that a strategy would have asked."""
    votes = rows_to_replay(votes)
    could, did = votes.codes != NOT_ASKED, simulate(votes, strategy).votes.codes != NOT_ASKED
    share = did.sum() / max(could.sum(), 1)
    by_annotator = did.sum(axis=(0, 2, 3)) / np.maximum(could.sum(axis=(0, 2, 3)), 1)
    seen, possible = did.any(axis=(1, 3)).sum(axis=0), could.any(axis=(1, 3)).sum(axis=0)
    return Spending(
        float(share),
        dict(zip(votes.annotators, by_annotator.tolist(), strict=True)),
        dict(zip(votes.relations, (seen / np.maximum(possible, 1)).tolist(), strict=True)),
    )


def rounds_of(votes: Votes, strategy: ExactStop) -> list[float]:
    """Return the share of the recorded questions that a strategy would have asked in each round about all texts."""
    votes = rows_to_replay(votes)
    could = max(int((votes.codes != NOT_ASKED).sum()), 1)
    return [asked / could for asked in simulate(votes, strategy).rounds]


def _same_cells(cells: Sequence[Cell], named: Weights, other: Weights) -> list[Cell]:
    """Return the positions of the same cells in weights with another order of names."""
    rows = positions_of(named.annotators, other.annotators, "annotator")
    columns = positions_of(named.relations, other.relations, "relation")
    return [Cell(rows[cell.annotator], columns[cell.relation], cell.draw) for cell in cells]
