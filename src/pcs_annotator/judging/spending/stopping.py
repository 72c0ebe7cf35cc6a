"""When to stop asking about an item: as soon as no open vote can change its label."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol

import numpy as np

from pcs_annotator.core.arrays import Codes, Floats, Grades, Integers, Mask
from pcs_annotator.core.vote import NOT_ASKED, OPEN, Cell
from pcs_annotator.core.votes import GRADE_TOLERANCE, positions_of
from pcs_annotator.core.weights import Evidence, Weights
from pcs_annotator.judging.weighing.calibration import Calibrator, RawScores
from pcs_annotator.judging.weighing.scoring import read_grades, softmax

# Far above the rounding of scores, so that asking never stops on what would end as a tie.
MARGIN = 1e-9
# Smaller than what a stop needs, so that rounding cannot make the estimate of needed questions too high.
HOPE = MARGIN / 2
# Far above the rounding of strengths.
TIE = 1e-12
# exp() of this is still a number.
MAX_LOG_ODDS = 500.0
# The most that all labels together can get from one graded vote.
MAX_MASS = 1 + GRADE_TOLERANCE
# A few patterns of votes make up most items, and every item starts with none.
REMEMBERED = 1 << 15


class _Prospect(Protocol):
    """The score of one item so far, and how far open votes can still change it."""

    def needed(self, cells: Codes, grades: Grades | None) -> int: ...

    def urgency(self, cells: Codes, grades: Grades | None) -> float: ...


class ExactStop:
    """Stops when the label can no longer change, whatever the open cells answer and even if they give no answer.

    The label is the most probable one; without a calibrator, the one with the highest score. An item without any vote
    is asked about to the end, because even a vote without weight gives it a label. So is every item if weights read
    log-odds, as those for graded votes do: one more answer can then say so much that early stops saved next to nothing.

    Attributes:
        weights: The weights that decide the label; their names give the positions of annotators and relations.
        labels: The labels that the codes stand for.
        order: Cells to ask, first to last; an open cell that is not among them is never asked.
    """

    def __init__(
        self,
        weights: Weights,
        labels: Sequence[str],
        draws: int,
        order: Sequence[Cell],
        calibrator: Calibrator | None = None,
        graded: Collection[str] = (),
    ) -> None:
        """Make the rule.

        Args:
            weights: The weights that decide the label.
            labels: The labels that the codes stand for.
            draws: How often each cell can be asked.
            order: Cells to ask, first to last.
            calibrator: Turns scores into probabilities.
            graded: Annotators whose votes may be graded; a graded vote can say far more than a hard one. An annotator
                that turns out to give grades is treated as one of them from its first graded vote about an item on.
        """
        self.weights = weights
        self.labels = labels
        self.order: Sequence[Cell] = tuple(order)
        self.shape = (len(weights.annotators), len(weights.relations), draws)
        places = places_of(self.order, self.shape)
        never = np.ones(self.shape, dtype=np.bool_)
        never.flat[places] = False
        self._never = never if never.any() else None
        self._places = places
        self._prospect = prospect = _prospect(
            weights, _Rivals(calibrator or RawScores(), labels), draws, places, graded
        )
        if prospect is not None:
            self._needed = lru_cache(REMEMBERED)(
                lambda pattern: prospect.needed(self._askable(cells_of(pattern, self.shape)), None)
            )

    def needed(self, cells: Codes, grades: Grades | None = None) -> int:
        """Return how many of the next open cells must be asked before a stop is possible; 0 to stop now.

        Args:
            cells: Codes of one item, `[annotator, relation, draw]`, `OPEN` where it may still be asked.
            grades: The grades of its votes, `[annotator, relation, draw, label]`, nan where there are none.
        """
        if self._prospect is None:
            return int((cells.ravel()[self._places] == OPEN).sum())
        if grades is None or np.isnan(grades).all():
            return self._needed(cells.tobytes())
        return self._prospect.needed(self._askable(cells), grades) if (cells == OPEN).any() else 0

    def urgency(self, cells: Codes, grades: Grades | None = None) -> float:
        """Return how likely random further votes are to change the label: 1 for a tie, 0 when nothing can."""
        if not self.needed(cells, grades):
            return 0.0
        return 1.0 if self._prospect is None else self._prospect.urgency(self._askable(cells), grades)

    def _askable(self, cells: Codes) -> Codes:
        return cells if self._never is None else np.where(self._never & (cells == OPEN), NOT_ASKED, cells)


def places_of(cells: Sequence[Cell], shape: Sequence[int]) -> Integers:
    """Return the positions of cells in the flattened codes of an item, given their shape."""
    return np.array([np.ravel_multi_index(cell, tuple(shape)) for cell in cells], dtype=np.intp)


def cells_of(pattern: bytes, shape: tuple[int, ...]) -> Codes:
    """Return the codes of one item from their bytes, which are the keys of the cache."""
    return np.frombuffer(pattern, dtype=np.int8).reshape(shape)


def _prospect(
    weights: Weights, rivals: _Rivals, draws: int, places: Integers, graded: Collection[str]
) -> _Prospect | None:
    expected = np.array([name in graded for name in weights.annotators], dtype=np.bool_)
    if weights.evidence is None:
        return _LinearProspect(weights, rivals, places, expected)
    if weights.evidence.reads != "shares":
        return None
    return _EvidenceProspect(weights.evidence, rivals, draws, places, expected)


class _Rivals:
    """Whether some label stays the most probable one, for scores of which only bounds are known."""

    def __init__(self, calibrator: Calibrator, labels: Sequence[str]) -> None:
        self.calibrator, self.labels = calibrator, labels
        self._same = np.eye(len(labels), dtype=np.bool_)

    def strengths(self, scores: Floats) -> Floats:
        """Return the strength of every label; if strengths fall as scores rise, all are equal and none ever wins."""
        if not self.calibrator.rising:
            return np.zeros_like(scores)
        return self.calibrator.strengths(scores, self.labels)

    def won(self, least: Floats, most: Floats) -> Mask:
        """Return for every `[case]` whether some label beats all others, from the bounds of each `[case, label]`."""
        slack = _slack(len(least))
        ours, theirs = self.strengths(least - slack[..., 0]), self.strengths(most + slack[..., 0])
        return self._beaten(ours[:, :, np.newaxis], theirs[:, np.newaxis])

    def won_by_odds(self, odds: Floats) -> Mask:
        """Return the same from the least log-odds of every pair, `[case, label, rival]`."""
        least, most = self._scores(np.clip(odds, -MAX_LOG_ODDS, MAX_LOG_ODDS))
        slack = _slack(len(odds))
        ours = self.strengths((least - slack).swapaxes(1, 2)).swapaxes(1, 2)
        return self._beaten(ours, self.strengths(most + slack))

    def _scores(self, odds: Floats) -> tuple[Floats, Floats]:
        """Return the score of every label and of its rival, `[case, label, rival]`, in the worst case for the label.

        A label's score is at least 1 / (1 + Σ exp(−odds)). If it leads, a·log((s + c) / (s·exp(−odds) + c)) grows with
        its score s, so its least score is the worst case; if it trails, the worst case is that only the two have any.
        """
        raised = np.exp(-odds)
        least, alone = 1 / (1 + raised.sum(axis=2, keepdims=True)), 1 / (1 + raised)
        ours = np.where(odds >= 0, least, alone)
        return ours, raised * ours

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

    Args:
        won: Whether the label is settled now, and in the best case after the first open vote, after two, ….
        gains: What each open vote can change; 0 where it has no weight.
        voted: Whether there is a vote already.
    """
    if not len(gains) or (voted and (won[0] or not gains.any())):
        return 0
    hopeful = np.flatnonzero(won[1:])
    return int(hopeful[0] if len(hopeful) else np.flatnonzero(gains).max(initial=0)) + 1


def _chance(lead: float, spread: float) -> float:
    return math.erfc(lead / spread / math.sqrt(2)) if spread > 0 else 0.0


class _LinearProspect:
    """Eq. 1 and 2 with open votes.

    Worst for a label, and best for a rival, is that the rival gets every open vote whole. Without a part x of one, the
    label has as much of a smaller total, which is more, and the rival has (b − x) / (t − x) ≤ b / t. So each vote has a
    fixed value, whether given or open: its share of its cell, times the cell's share of its annotator's weight, times
    the annotator's share of all weights. Likewise, the best case for a label is that it gets the next open votes whole.
    """

    def __init__(self, weights: Weights, rivals: _Rivals, places: Integers, graded: Mask) -> None:
        self.voices, self.by_relation = weights.annotator_weights, weights.relation_weights
        self.rivals, self.places, self.graded = rivals, places, graded
        self.unit = np.eye(len(rivals.labels))

    def needed(self, cells: Codes, grades: Grades | None) -> int:
        scores, gains = self._outlook(cells, grades)
        asked = np.append(0.0, np.cumsum(gains))[:, np.newaxis]
        return _needed(self.rivals.won(scores + asked, scores + (asked[-1] - asked)), gains, bool(cells.max() >= 0))

    def urgency(self, cells: Codes, grades: Grades | None) -> float:
        scores, gains = self._outlook(cells, grades)
        now, best = self.rivals.strengths(np.stack([scores, scores + gains.sum()]))
        leader = int(now.argmax())
        # the share of its reach that a rival gains if every open vote is given at random
        at_random = math.sqrt(float(gains @ gains)) / max(float(gains.sum()), MARGIN)
        others = [one for one in range(len(now)) if one != leader]
        return max(_chance(float(now[leader] - now[one]), at_random * float(best[one] - now[one])) for one in others)

    def _outlook(self, cells: Codes, grades: Grades | None) -> tuple[Floats, Floats]:
        """Return the score of every label while open votes are given to none, and the value of each in order."""
        given, waiting = np.where((cells >= 0)[..., np.newaxis], self.unit[np.maximum(cells, 0)], 0.0), cells == OPEN
        whole = np.ones(len(cells))
        graded = self.graded if grades is None else self.graded | ~np.isnan(grades).all(axis=(1, 2, 3))
        whole[graded] = MAX_MASS
        if grades is not None:
            given = np.where(np.isnan(grades), given, grades)
        alive = np.maximum(((cells >= 0) | waiting).sum(axis=2), 1)
        mass = given.sum(axis=(2, 3)) + whole[:, np.newaxis] * waiting.sum(axis=2)
        total = (mass / alive) @ self.by_relation
        voices = np.where(total > 0, self.voices, 0.0)
        if not voices.any():
            return np.full(len(self.unit), 1 / len(self.unit)), np.zeros(int(waiting.sum()))
        per_mass = voices / voices.sum() / np.where(total > 0, total, 1.0)
        values = per_mass[:, np.newaxis] * self.by_relation / alive
        gains = np.broadcast_to((whole[:, np.newaxis] * values)[..., np.newaxis], cells.shape).ravel()[self.places]
        return np.einsum("ar,ardk->k", values, given), gains[cells.ravel()[self.places] == OPEN]


class _EvidenceProspect:
    """A posterior with open votes: log-odds of every pair of labels, and how far each open vote can move them.

    Draws of one cell are averaged, so in a cell with votes an open draw adds at worst the smallest of the cell's
    log-odds; in a cell without a vote, a missing answer adds nothing, which may be worse or better. A graded vote is a
    mixture of hard votes, or nothing.
    """

    def __init__(self, evidence: Evidence, rivals: _Rivals, draws: int, places: Integers, graded: Mask) -> None:
        labels = rivals.labels
        order = positions_of(labels, evidence.labels, "label with evidence")
        table = evidence.log_likelihood[:, :, order][..., order]
        self.said = table.reshape(-1, len(labels), len(labels))
        self.log_prior = evidence.log_prior[order]
        self.low, self.high = self._range_of_a_vote()
        self.rivals, self.places, self.graded = rivals, places, graded
        self.own = np.diag(np.full(len(labels), np.inf))
        self.cell_of = places // draws
        self.draws = draws

    def _range_of_a_vote(self) -> tuple[Floats, Floats]:
        """Return the lowest and highest log-odds of every pair that a vote can add, `[graded, cell, label, rival]`."""
        odds = self.said[:, :, :, np.newaxis] - self.said[:, :, np.newaxis, :]
        low, high = odds.min(axis=1), odds.max(axis=1)
        return np.stack([low, np.minimum(low, 0)]), np.stack([high, np.maximum(high, 0)])

    def needed(self, cells: Codes, grades: Grades | None) -> int:
        worst, gains = self._outlook(self._known(cells, grades))
        reach = worst + np.concatenate([np.zeros((1, *worst.shape)), np.cumsum(gains, axis=0)])
        return _needed(self.rivals.won_by_odds(reach), np.abs(gains).max(axis=(1, 2)), bool(cells.max() >= 0))

    def urgency(self, cells: Codes, grades: Grades | None) -> float:
        _, gains = self._outlook(self._known(cells, grades))
        logits = self._logits(self._known(np.where(cells == OPEN, NOT_ASKED, cells), grades))
        chances = self.rivals.calibrator.apply(softmax(logits[np.newaxis]), self.rivals.labels)[0]
        leader = int(chances.argmax())
        lead = -np.log(np.maximum(chances / chances[leader], np.finfo(np.float64).tiny))
        spread = np.sqrt(np.sum((gains[:, leader] / 2) ** 2, axis=0))
        return max(_chance(float(lead[one]), float(spread[one])) for one in range(len(lead)) if one != leader)

    def _known(self, cells: Codes, grades: Grades | None) -> _Known:
        flat = cells.ravel()
        voted = flat >= 0
        open_cells = self.cell_of[flat[self.places] == OPEN]
        votes = voted.reshape(-1, self.draws).sum(axis=1)
        places = np.flatnonzero(voted)
        said = self.said[places // self.draws, flat[places]]
        graded = self.graded
        if grades is not None:
            given = grades.reshape(-1, grades.shape[-1])[places]
            known = ~np.isnan(given[:, 0])
            shares = read_grades(given[known], "shares")
            said[known] = np.einsum("vk,vkl->vl", shares, self.said[places[known] // self.draws])
            graded = graded | ~np.isnan(grades).all(axis=(1, 2, 3))
        total = np.zeros((len(self.said), said.shape[1]))
        np.add.at(total, places // self.draws, said)
        alive = votes + np.bincount(open_cells, minlength=len(self.said))
        kind = np.repeat(graded, len(self.said) // len(graded)).astype(np.intp)
        return _Known(total / np.maximum(alive, 1)[:, np.newaxis], votes > 0, alive, open_cells, kind)

    def _logits(self, known: _Known) -> Floats:
        return np.asarray(known.said.sum(axis=0) + self.log_prior)

    def _outlook(self, known: _Known) -> tuple[Floats, Floats]:
        """Return the worst log-odds of every pair of labels, and how much each open vote in order can improve them."""
        cell = known.open_cells
        low, high = (bound[known.kind[cell], cell] for bound in (self.low, self.high))
        bare = ~known.voted[cell][:, np.newaxis, np.newaxis]
        gain = np.where(bare, np.maximum(high, 0) - np.minimum(low, 0), high - low)
        # the first vote in a cell where all votes favour the same label also settles what the others add at worst
        gain = np.where(bare & (low > 0), high * self.draws, gain)
        low = np.where(bare, np.minimum(low, 0), low)
        share = known.alive[cell][:, np.newaxis, np.newaxis]
        return _pairs(self._logits(known)) + self.own + (low / share).sum(axis=0), gain / share


class _Known(NamedTuple):
    """The votes on one item, cell by cell."""

    said: Floats  # what the votes of a cell add for every label, while its open votes add nothing, `[cell, label]`
    voted: Mask  # whether a cell has a vote
    alive: Integers  # its votes, given or open
    open_cells: Integers  # the cell of every open vote, in the order of asking
    kind: Integers  # 1 if votes in the cell may be graded, else 0


def _pairs(logits: Floats) -> Floats:
    return logits[:, np.newaxis] - logits
