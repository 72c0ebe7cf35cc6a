"""What a baseline is, and what all of them share.

A published method uses one model. On the votes of one annotator (with its elicited siblings) a baseline is that
method; on the votes of several, each annotator is scored separately and the scores are averaged over those that
answered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from pcs_annotator.base.errors import UndefinedMetric
from pcs_annotator.base.registry import Registry
from pcs_annotator.core.arrays import Floats, Mask
from pcs_annotator.core.elicitations import calls_of, kind_of
from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.core.vote import NOT_ASKED
from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.weighing.scoring import DECIMALS


class Asks(NamedTuple):
    """What a method pays for on every item."""

    cells: Mask  # true for the answers it uses, `[annotator, relation, draw]`
    rewrites: frozenset[str] = frozenset()  # relations whose text a model must write first
    graded: bool = False  # whether it needs the log-probabilities of these answers, not just their labels

    def calls(self, annotators: Sequence[str]) -> int:
        """Return the calls per item: one or two for every answer, and one for every rewrite."""
        each = np.array([calls_of(kind_of(name)) for name in annotators], dtype=np.intp)
        return int(self.cells.sum(axis=(1, 2)) @ each) + len(self.rewrites)


class Baseline(Protocol):
    """A method that scores labels from some of the votes and learns nothing."""

    @property
    def name(self) -> str:
        """Return the name for tables."""
        ...

    def scores(self, votes: Votes) -> Floats:
        """Return the score of every label for every item; rows sum to 1, an item without usable votes is uniform."""
        ...

    def asks(self, votes: Votes) -> Asks:
        """Return which of the votes it uses."""
        ...


baselines: Registry[Baseline] = Registry("baseline", "pcs_annotator.baselines")
baseline = baselines.register
"""Decorator that registers a baseline class under a name."""


def original_column(votes: Votes, who: str) -> int:
    """Return the position of the unchanged text among the relations."""
    if ORIGINAL not in votes.relations:
        raise UndefinedMetric(
            f"{who} needs answers on the unchanged text, and these votes hold only {', '.join(votes.relations)}: "
            f"record it, or name its relation {ORIGINAL!r}"
        )
    return list(votes.relations).index(ORIGINAL)


def plain_rows(votes: Votes, who: str) -> list[int]:
    """Return the positions of the annotators that gave plain labels, without stating a confidence."""
    found = [row for row, name in enumerate(votes.annotators) if not kind_of(name)]
    if not found:
        raise UndefinedMetric(f"{who} needs plain labels: record a model without an elicitation too")
    return found


def cells_of(votes: Votes, annotators: Sequence[int], relations: Sequence[int], draws: int | None = None) -> Mask:
    """Return the mask of the answers that were asked for at these positions, `[annotator, relation, draw]`."""
    cells = np.zeros(votes.codes.shape[1:], dtype=np.bool_)
    cells[np.ix_(annotators, relations, range(votes.codes.shape[3])[:draws])] = True
    return cells & (votes.codes != NOT_ASKED).any(axis=0)


def mean_scores(by_annotator: Floats, who: str) -> Floats:
    """Return the mean over annotators of `[item, annotator, label]`; a row of zeros means no answer and is left out.

    Raises:
        UndefinedMetric: No item has an answer, so every label would get the same score.
    """
    present = by_annotator.sum(axis=2, keepdims=True) > 0
    if present.size and not present.any():
        raise UndefinedMetric(f"{who} finds no usable answer to its questions among these votes: look at the answers")
    voices = present.sum(axis=1)
    total = by_annotator.sum(axis=1)
    scores = np.where(voices > 0, total / np.maximum(voices, 1), 1 / by_annotator.shape[2])
    return np.asarray(np.round(scores, DECIMALS))
