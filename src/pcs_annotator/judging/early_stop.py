"""Labelling new texts with fewer questions: what to ask first, when to stop, and what can then be promised.

Asking stops as soon as no open vote can change the label, so labels are those of asking everything. But scores from
only some of the questions are coarser than those that the run's probabilities and certificate were made from. So the
probabilities get a power, which changes no label, and the certificate is made again, both from gold rows with only
those votes that would have been asked for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from pcs_annotator.base.display import brief
from pcs_annotator.core.arrays import CODE, Codes, Floats, Integers, Mask
from pcs_annotator.core.gold_codes import Once
from pcs_annotator.core.votes import NOT_ASKED, OPEN, Cell, Strategy, Votes, positions_of
from pcs_annotator.core.weights import Evidence, Weights, worth_of_votes
from pcs_annotator.judging.calibrate import UNCALIBRATED, Calibrator
from pcs_annotator.judging.fit_model import Learning, fit_model, with_texts_read
from pcs_annotator.judging.fit_weights import fit_coded
from pcs_annotator.judging.heldout import HeldOut
from pcs_annotator.judging.label_shape import LabelShape
from pcs_annotator.judging.model import Model
from pcs_annotator.judging.text_model import TextModel

# Far above the rounding of scores, so that asking never stops on what would end as a tie.
MARGIN = 1e-9
# Smaller than what a stop needs, so that rounding cannot make the estimate of needed questions too high.
HOPE = MARGIN / 2
# Far above the rounding of strengths.
TIE = 1e-12
# exp() of this is still a number.
MAX_LOG_ODDS = 500.0
# A few patterns of votes make up most items, and every item starts with none.
MOST_KNOWN = 1 << 15


class ExactStop:
    """Stops when the label can no longer change, whatever the open cells answer and even if they give no answer.

    An item without any vote is asked about to the end, because even a vote without weight gives it a label. So is every
    item if answers are graded, or weights read log-odds: one more answer can then say so much that early stops saved
    next to nothing.
    """

    def __init__(
        self,
        weights: Weights,
        labels: Sequence[str],
        order: Sequence[Cell],
        calibrator: Calibrator | None = None,
        *,
        graded: bool = False,
        text: TextModel | None = None,
    ) -> None:
        """Make the rule; `order` has all cells, first to last, at positions along the axes of the weights."""
        self._text, self._labels = text, labels
        self._calibrator = calibrator or UNCALIBRATED
        self.order: Sequence[Cell] = tuple(order)
        self.shape = (len(weights.annotators), len(weights.relations), 1 + max(cell.draw for cell in order))
        rivals, places = _Rivals(self._calibrator, labels), places_of(self.order, self.shape)
        evidence = weights.evidence
        self._prospect: _LinearProspect | _EvidenceProspect | None = None
        if not graded and evidence is None:
            self._prospect = _LinearProspect(weights, rivals, places)
        elif not graded and evidence is not None and evidence.reads == "shares":
            self._prospect = _EvidenceProspect(evidence, rivals, self.shape[2], places)
        self._known: dict[bytes, int] = {}

    def text_priors(self, texts: Sequence[str]) -> Floats | None:
        """Return what texts say about each label before anything is asked; None if nothing that votes do not say."""
        return None if self._text is None else self._text.read(texts, self._labels)

    def needed(self, cells: Codes, prior: Floats | None = None) -> int:
        """Return how many of the next open cells must be asked before a stop is possible; 0 to stop now.

        `cells` are the codes of one item, `[annotator, relation, draw]`, `OPEN` where it may still be asked; `said` is
        what its text says about each label.
        """
        if self._prospect is None:
            return int((cells == OPEN).sum())
        if prior is not None:  # texts that say the same are rare
            return self._prospect.needed(cells, prior)
        pattern = cells.tobytes()
        if pattern not in self._known:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[pattern] = self._prospect.needed(cells, None)
        return self._known[pattern]


def places_of(cells: Sequence[Cell], shape: Sequence[int]) -> Integers:
    """Return the positions of cells in the flattened codes of an item, given their shape."""
    return np.array([np.ravel_multi_index(cell, tuple(shape)) for cell in cells], dtype=np.intp)


class _Rivals:
    """Whether some label stays the most probable one, for scores of which only bounds are known."""

    def __init__(self, calibrator: Calibrator, labels: Sequence[str]) -> None:
        self.calibrator, self.labels = calibrator, labels
        self._same = np.eye(len(labels), dtype=np.bool_)

    def strengths(self, scores: Floats, prior: Floats | None) -> Floats:
        """Return the strength of every label; if strengths fall as scores rise, all are equal and none ever wins."""
        return (
            self.calibrator.strengths(scores, self.labels, prior) if self.calibrator.rising else np.zeros_like(scores)
        )

    def won(self, least: Floats, most: Floats, prior: Floats | None) -> Mask:
        """Return for every `[case]` whether some label beats all others, from the bounds of each `[case, label]`."""
        slack = _slack(len(least))
        ours, theirs = (self.strengths(least - slack[..., 0], prior), self.strengths(most + slack[..., 0], prior))
        return self._beaten(ours[:, :, np.newaxis], theirs[:, np.newaxis])

    def won_by_odds(self, odds: Floats, prior: Floats | None) -> Mask:
        """Return the same from the least log-odds of every pair, `[case, label, rival]`.

        A label's score is at least 1 / (1 + Σ exp(−odds)). If it leads, a·log((s + c) / (s·exp(−odds) + c)) grows with
        its score s, so its least score is the worst case; if it trails, the worst case is that only the two have any.
        """
        odds = np.clip(odds, -MAX_LOG_ODDS, MAX_LOG_ODDS)
        raised, slack = np.exp(-odds), _slack(len(odds))
        score = np.where(odds >= 0, 1 / (1 + raised.sum(axis=2, keepdims=True)), 1 / (1 + raised))
        ours = self.strengths((score - slack).swapaxes(1, 2), prior).swapaxes(1, 2)
        return self._beaten(ours, self.strengths(raised * score + slack, prior))

    def _beaten(self, ours: Floats, theirs: Floats) -> Mask:
        beaten: Mask = (ours > theirs + TIE) | self._same
        return np.any(np.all(beaten, axis=2), axis=1)


def _slack(cases: int) -> Floats:
    """Return what is taken off the scores of a label and added to those of its rivals: more for a stop, the first."""
    slack = np.full((cases, 1, 1), HOPE / 2)
    slack[0] = MARGIN / 2
    return slack


def _needed(won: Mask, gains: Floats, voted: bool) -> int:
    """Return how many open votes must be asked.

    `won` is whether the label is settled now, and in the best case after one open vote, two, …; `gains` are what each
    open vote can change.
    """
    if not len(gains) or (voted and (won[0] or not gains.any())):
        return 0
    hopeful = np.flatnonzero(won[1:])
    return int(hopeful[0] if len(hopeful) else np.flatnonzero(gains).max(initial=0)) + 1


class _LinearProspect:
    """Eq. 1 and 2 with open votes.

    Worst for a label is that a rival gets every open vote: without one, the label has as much of a smaller total, which
    is more, and the rival has (b − 1) / (t − 1) ≤ b / t. So each vote has a fixed value, whether given or open: its
    share of its cell, times the cell's share of its annotator's weight, times the annotator's share of all weights.
    """

    def __init__(self, weights: Weights, rivals: _Rivals, places: Integers) -> None:
        self.voices, self.by_relation = weights.annotator_weights, weights.relation_weights
        self.rivals, self.places, self.labels = rivals, places, np.arange(len(rivals.labels))

    def needed(self, cells: Codes, prior: Floats | None) -> int:
        scores, gains = self._outlook(cells)
        asked = np.append(0.0, np.cumsum(gains))[:, np.newaxis]
        won = self.rivals.won(scores + asked, scores + (asked[-1] - asked), prior)
        return _needed(won, gains, bool(cells.max() >= 0))

    def _outlook(self, cells: Codes) -> tuple[Floats, Floats]:
        """Return the score of every label while open votes are given to none, and the value of each in order."""
        answered, waiting = cells[..., np.newaxis] == self.labels, cells == OPEN
        votes = ((cells >= 0) | waiting).sum(axis=2)
        total = (votes > 0) @ self.by_relation
        voices = np.where(total > 0, self.voices, 0.0)
        if not voices.any():
            return np.full(len(self.labels), 1 / len(self.labels)), np.zeros(int(waiting.sum()))
        per_mass = voices / voices.sum() / np.where(total > 0, total, 1.0)
        values = per_mass[:, np.newaxis] * self.by_relation / np.maximum(votes, 1)
        gains = np.broadcast_to(values[..., np.newaxis], cells.shape).ravel()[self.places]
        return np.einsum("ar,ardk->k", values, answered), gains[cells.ravel()[self.places] == OPEN]


class _EvidenceProspect:
    """A posterior with open votes: log-odds of every pair of labels, and how far each open vote can move them.

    Draws of one cell are averaged, so in a cell with votes an open draw adds at worst the smallest of the cell's
    log-odds; in a cell without a vote, a missing answer adds nothing, which may be worse or better.
    """

    def __init__(self, evidence: Evidence, rivals: _Rivals, draws: int, places: Integers) -> None:
        labels = rivals.labels
        order = positions_of(labels, evidence.labels, "label with evidence")
        self.said = evidence.log_likelihood[:, :, order][..., order].reshape(-1, len(labels), len(labels))
        self.log_prior = evidence.log_prior[order]
        odds = self.said[:, :, :, np.newaxis] - self.said[:, :, np.newaxis, :]
        self.low, self.high = odds.min(axis=1), odds.max(axis=1)  # what a vote can add, `[cell, label, rival]`
        self.rivals, self.places, self.draws = rivals, places, draws
        self.own = np.diag(np.full(len(labels), np.inf))

    def needed(self, cells: Codes, prior: Floats | None) -> int:
        worst, gains = self._outlook(cells)
        reach = worst + np.concatenate([np.zeros((1, *worst.shape)), np.cumsum(gains, axis=0)])
        return _needed(self.rivals.won_by_odds(reach, prior), np.abs(gains).max(axis=(1, 2)), bool(cells.max() >= 0))

    def _logits(self, by_cell: Codes) -> Floats:
        """Return what votes `[cell, draw]` add up to for every label, while open votes add nothing."""
        hits = (by_cell[..., np.newaxis] == np.arange(len(self.log_prior))).sum(axis=1)
        alive = np.maximum(_alive(by_cell), 1)
        return np.asarray(np.einsum("cv,cvk->k", hits / alive[:, np.newaxis], self.said) + self.log_prior)

    def _outlook(self, cells: Codes) -> tuple[Floats, Floats]:
        """Return the worst log-odds of every pair of labels, and how much each open vote in order can improve them."""
        by_cell = cells.reshape(-1, self.draws)
        cell = (self.places // self.draws)[cells.ravel()[self.places] == OPEN]
        low, high = self.low[cell], self.high[cell]
        bare = (by_cell.max(axis=1) < 0)[cell][:, np.newaxis, np.newaxis]
        gain = np.where(bare, np.maximum(high, 0) - np.minimum(low, 0), high - low)
        # the first vote in a cell where all votes favour the same label also settles what the others add at worst
        gain = np.where(bare & (low > 0), high * self.draws, gain)
        low = np.where(bare, np.minimum(low, 0), low)
        share, logits = _alive(by_cell)[cell][:, np.newaxis, np.newaxis], self._logits(by_cell)
        return logits[:, np.newaxis] - logits + self.own + (low / share).sum(axis=0), gain / share


def _alive(by_cell: Codes) -> Integers:
    """Return the votes of every cell, given or open."""
    return ((by_cell >= 0) | (by_cell == OPEN)).sum(axis=1)


MOST_REPLAYED = 400  # so many rows say well enough what share of the questions is asked


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


def learn_frugal(votes: Votes, gold: Codes, how: Learning, once: Once | None = None) -> Frugal:
    """Return how to ask about new texts until no answer can change the label, and the model for such answers.

    `once` says which rows count; by default all.
    """
    rows = slice(None) if once is None else once.distinct
    readable, _, _ = with_texts_read(votes.take(rows), gold[rows], how)
    weights = fit_coded(readable, gold[rows], how.optimiser, seed=how.splits.seed, resamples=how.resamples)
    order, graded = order_of(weights, votes.codes.shape[3]), asks_all(votes, how.shape)

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


def order_of(weights: Weights, draws: int = 1) -> list[Cell]:
    """Return every cell in the order to ask it: by weight, draw by draw.

    Cells without weight come last; they matter only to an item without any other vote.
    """
    worth, evidence = weights.matrix, weights.evidence
    # one unit of log-odds is much from a model that is never sure, and little from one that always is
    if evidence is not None and evidence.reads == "shares":
        worth = worth_of_votes(evidence.log_likelihood)
    cells = [Cell(*position) for position in np.ndindex(*worth.shape, draws)]
    return sorted(cells, key=lambda cell: (-worth[cell[:2]], cell.draw, cell))


def simulate(votes: Votes, strategy: Strategy) -> Votes:
    """Return the votes that a strategy would have collected; a cell without a recorded answer cannot be asked."""
    shape = votes.codes.shape[1:]
    prior = votes.text_log_probs
    if prior is None and votes.texts:
        prior = strategy.text_priors(votes.texts)
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
