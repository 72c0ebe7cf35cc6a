"""What a baseline is, and what all of them share.

A published method speaks of one model. Given votes of one annotator (with its elicited siblings) it is that method;
given several, every annotator is scored by itself and the scores are averaged over those that answered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from pcs_annotator.core.arrays import Floats, Integers, Mask
from pcs_annotator.core.elicitations import calls_of, kind_of
from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.core.vote import NOT_ASKED
from pcs_annotator.core.votes import Votes
from pcs_annotator.errors import UndefinedMetric
from pcs_annotator.judging.weighing.scoring import DECIMALS
from pcs_annotator.registry import Registry


class Asks(NamedTuple):
    """What a method pays for with every item.

    Attributes:
        cells: True for the answers it uses, `[annotator, relation, draw]`.
        rewrites: Relations whose text a model has to write first.
    """

    cells: Mask
    rewrites: frozenset[str] = frozenset()

    def calls(self, annotators: Sequence[str]) -> int:
        """Return the calls per item: one or two for every answer, and one for every rewrite."""
        each = np.array([calls_of(kind_of(name)) for name in annotators], dtype=np.intp)
        return int(self.cells.sum(axis=(1, 2)) @ each) + len(self.rewrites)


class Baseline(Protocol):
    """A rival: scores from a slice of the votes, without learning anything."""

    @property
    def name(self) -> str:
        """Return the name for tables."""
        ...

    def scores(self, votes: Votes) -> Floats:
        """Return the score of every label for every item; rows sum to 1, an item without its votes is uniform."""
        ...

    def asks(self, votes: Votes) -> Asks:
        """Return which of the votes it uses."""
        ...


baselines: Registry[Baseline] = Registry("baseline", "pcs_annotator.baselines")
baseline = baselines.register
"""Decorator: make a class of baselines known by a name."""


def original_of(votes: Votes, who: str) -> int:
    """Return where the unchanged text stands among the relations."""
    if ORIGINAL not in votes.relations:
        raise UndefinedMetric(
            f"{who} needs answers on the unchanged text, and these votes hold only {', '.join(votes.relations)}: "
            f"record it, or name its relation {ORIGINAL!r}"
        )
    return list(votes.relations).index(ORIGINAL)


def plain_annotators(votes: Votes, who: str) -> list[int]:
    """Return where the annotators stand that gave labels without saying how sure they are."""
    found = [row for row, name in enumerate(votes.annotators) if not kind_of(name)]
    if not found:
        raise UndefinedMetric(f"{who} needs plain labels: record an annotator without an elicitation too")
    return found


def cells_of(votes: Votes, annotators: Sequence[int], relations: Sequence[int], draws: int | None = None) -> Mask:
    """Return the mask of the answers that were asked for at these places, `[annotator, relation, draw]`."""
    cells = np.zeros(votes.codes.shape[1:], dtype=np.bool_)
    cells[np.ix_(annotators, relations, range(votes.codes.shape[3])[:draws])] = True
    return cells & (votes.codes != NOT_ASKED).any(axis=0)


def mean_scores(by_annotator: Floats) -> Floats:
    """Return the mean over annotators of `[item, annotator, label]`; a row of zeros has nothing to say."""
    present = by_annotator.sum(axis=2, keepdims=True) > 0
    voices = present.sum(axis=1)
    total = by_annotator.sum(axis=1)
    scores = np.where(voices > 0, total / np.maximum(voices, 1), 1 / by_annotator.shape[2])
    return np.asarray(np.round(scores, DECIMALS))


def spread(labels: int, guess: Integers, confidence: Floats) -> Floats:
    """Return the confidence at the guessed label and the rest spread evenly over the others, `[..., label]`.

    Args:
        labels: How many labels there are.
        guess: Codes `[...]`; a negative one gives zeros.
        confidence: Probability of the guess `[...]`.
    """
    if labels == 1:
        confidence = np.ones_like(confidence)  # there is nothing else to believe
    hit = guess[..., np.newaxis] == np.arange(labels)
    shares = np.where(hit, confidence[..., np.newaxis], (1 - confidence[..., np.newaxis]) / max(labels - 1, 1))
    return np.where(guess[..., np.newaxis] >= 0, shares, 0.0)
