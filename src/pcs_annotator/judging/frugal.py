"""Labelling new texts with fewer questions: what to ask first, when to stop, and what can then be promised.

Labels are those of asking everything: the calibrator of the run decides when to stop. But scores from only some of the
questions are coarser than those that its probabilities and its certificate were made from. So the probabilities get a
power, which changes no label, and the certificate is made again, both from gold rows with only those votes that would
have been asked for.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from pcs_annotator.base.display import brief
from pcs_annotator.core.arrays import CODE, Codes
from pcs_annotator.core.copies import Once
from pcs_annotator.core.votes import NOT_ASKED, OPEN, Cell, Strategy, Votes, check_known, positions_of
from pcs_annotator.core.weights import Weights
from pcs_annotator.judging.calibrate import Calibrator
from pcs_annotator.judging.early_stop import ExactStop, places_of
from pcs_annotator.judging.fit_model import Learning, fit_model, with_texts_read
from pcs_annotator.judging.fit_weights import fit_coded
from pcs_annotator.judging.heldout import HeldOut
from pcs_annotator.judging.label_shape import LabelShape
from pcs_annotator.judging.model import Model

MOST_REPLAYED = 1_000  # so many rows say well enough what share of the questions is asked


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
    trial: HeldOut | None  # the gold rows, asked about in the same way, as judged by fits that did not see them

    def __repr__(self) -> str:
        return brief(self)


def learn_frugal(
    votes: Votes, gold: Codes, how: Learning, prices: Mapping[str, float] | None = None, once: Once | None = None
) -> Frugal:
    """Return how to ask about new texts until no answer can change the label, and the model for such answers.

    With prices per call, cheap annotators are asked first. `once` says which rows count; by default all.
    """
    rows = slice(None) if once is None else once.distinct
    readable, _, _ = with_texts_read(votes.take(rows), gold[rows], how)
    weights = fit_coded(readable, gold[rows], how.optimiser, seed=how.splits.seed, resamples=how.resamples)
    order, graded = order_of(weights, votes.codes.shape[3], prices), asks_all(votes, how.shape)

    def collected(held_out: Votes, fold_weights: Weights, calibrator: Calibrator | None) -> Votes:
        annotators = positions_of(weights.annotators, fold_weights.annotators, "model")
        relations = positions_of(weights.relations, fold_weights.relations, "relation")
        cells = [Cell(annotators[cell.annotator], relations[cell.relation], cell.draw) for cell in order]
        return simulate(held_out, ExactStop(fold_weights, held_out.labels, cells, calibrator, graded=graded))

    model, trial = fit_model(
        votes,
        gold,
        how,
        weights=weights,
        random_sample=once and once.drawn,
        distinct=once and once.distinct,
        copies=once and once.copies,
        ask_policy=None if graded else collected,
    )
    # the power that probabilities were raised to changes no label
    strategy = ExactStop(weights, votes.labels, order, model.calibrator, graded=graded, text=model.text)
    return Frugal(model, strategy, spending_of(votes, strategy), trial)


def exact_stop(votes: Votes, model: Model) -> ExactStop:
    """Return the strategy that asks the heaviest cells first and stops when no open vote can change the label."""
    order = order_of(model.weights, votes.codes.shape[3])
    graded = asks_all(votes, model.shape)
    return ExactStop(model.weights, votes.labels, order, model.calibrator, graded=graded, text=model.text)


def asks_all(votes: Votes, shape: LabelShape) -> bool:
    """Return whether every question is asked: about graded answers, and for the median label of a scale."""
    return shape.ordered or bool(graded_annotators(votes))


def graded_annotators(votes: Votes) -> list[str]:
    """Return the annotators that gave at least one graded vote."""
    if votes.grades is None:
        return []
    hard = np.isnan(votes.grades).all(axis=(0, 2, 3, 4))
    return [votes.annotators[position] for position in np.flatnonzero(~hard).tolist()]


def spending_of(votes: Votes, strategy: ExactStop) -> Spending:
    """Return the share of the recorded questions that a strategy would have asked."""
    votes = votes.take(slice(MOST_REPLAYED))
    could, did = votes.codes != NOT_ASKED, simulate(votes, strategy).codes != NOT_ASKED
    share = did.sum() / max(could.sum(), 1)
    by_annotator = did.sum(axis=(0, 2, 3)) / np.maximum(could.sum(axis=(0, 2, 3)), 1)
    seen, possible = did.any(axis=(1, 3)).sum(axis=0), could.any(axis=(1, 3)).sum(axis=0)
    return Spending(
        float(share),
        dict(zip(votes.annotators, by_annotator.tolist(), strict=True)),
        dict(zip(votes.relations, (seen / np.maximum(possible, 1)).tolist(), strict=True)),
    )


def order_of(weights: Weights, draws: int = 1, prices: Mapping[str, float] | None = None) -> list[Cell]:
    """Return every cell in the order to ask it: cheap annotators first, among equal prices by weight, draw by draw.

    Cells without weight come last; they matter only to an item without any other vote.
    """
    prices = prices or {}
    check_known(prices, weights.annotators, "model")
    cost = [prices.get(name, 0.0) for name in weights.annotators]
    worth, evidence = weights.matrix, weights.evidence
    # one unit of log-odds is much from a model that is never sure, and little from one that always is
    if evidence is not None and evidence.reads == "shares":
        worth = np.ptp(evidence.log_likelihood, axis=2).mean(axis=2)
    cells = [Cell(*position) for position in np.ndindex(*worth.shape, draws)]
    return sorted(cells, key=lambda cell: (cost[cell[0]], -worth[cell[:2]], cell.draw, cell))


def simulate(votes: Votes, strategy: Strategy) -> Votes:
    """Return the votes that a strategy would have collected; a cell without a recorded answer cannot be asked."""
    shape = votes.codes.shape[1:]
    prior = votes.text_log_probs
    if prior is None and votes.texts:
        priors = [strategy.text_prior(text) for text in votes.texts]
        prior = None if priors[0] is None else np.array(priors)
    patterns, inverse = votes.codes.reshape(len(votes), -1), np.arange(len(votes))
    if prior is None:  # texts that say the same are rare, but many have the same votes
        patterns, inverse = np.unique(patterns, axis=0, return_inverse=True)
        inverse = inverse.ravel()
    codes = np.empty_like(patterns)
    where = places_of(strategy.order, shape)
    for row, pattern in enumerate(patterns):
        cells = np.where(pattern == NOT_ASKED, NOT_ASKED, OPEN).astype(CODE)
        askable = where[pattern[where] != NOT_ASKED]
        count = 0
        while further := strategy.needed(cells.reshape(shape), None if prior is None else prior[row]):
            now = askable[count : count + further]
            cells[now] = pattern[now]
            count += further
        codes[row] = np.where(cells == OPEN, NOT_ASKED, cells)
    kept = codes[inverse].reshape(votes.codes.shape)
    grades = votes.grades
    if grades is not None:
        grades = np.where((kept >= 0)[..., np.newaxis], grades, np.float32(np.nan))
    return replace(votes, codes=kept, stated=None, grades=grades)
