"""The label that most models give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pcs_annotator.core.arrays import Floats
from pcs_annotator.core.votes import Votes
from pcs_annotator.errors import UndefinedMetric
from pcs_annotator.judging.baselines.baseline import (
    Asks,
    baseline,
    cells_of,
    mean_scores,
    original_of,
    plain_annotators,
)


@baseline("zero-shot")
@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroShot:
    """1 for the label of the first answer on the unchanged text, 0 for the others.

    RQ1 of Salimian et al. compares PCS with it. Of several annotators the mean is taken, so select one for the
    paper's figure.
    """

    name: ClassVar[str] = "zero-shot"

    def scores(self, votes: Votes) -> Floats:
        """Return the first label as 1, the others as 0."""
        rows, column = plain_annotators(votes, self.name), original_of(votes, self.name)
        return mean_scores(votes.select(draws=1).shares()[:, rows, column])

    def asks(self, votes: Votes) -> Asks:
        """Return one call per annotator."""
        rows, column = plain_annotators(votes, self.name), original_of(votes, self.name)
        return Asks(cells_of(votes, rows, [column], 1))


@baseline("majority-vote")
@dataclass(frozen=True, slots=True, kw_only=True)
class MajorityVote:
    """The share of annotators that give a label to the unchanged text, one call each.

    RQ3 of Salimian et al. compares PCS with it.

    Attributes:
        hard: Whether the winner takes all, tied winners sharing, as a vote that only names a label does.
    """

    name: ClassVar[str] = "majority-vote"
    hard: bool = False

    def scores(self, votes: Votes) -> Floats:
        """Return the share of annotators for every label, or 1 for the winner."""
        _require_company(votes, self.name)
        shares = ZeroShot().scores(votes)
        if not self.hard:
            return shares
        best = shares == shares.max(axis=1, keepdims=True)
        return np.asarray(best / best.sum(axis=1, keepdims=True))

    def asks(self, votes: Votes) -> Asks:
        """Return one call per annotator."""
        _require_company(votes, self.name)
        return ZeroShot().asks(votes)


def _require_company(votes: Votes, who: str) -> None:
    if len(plain_annotators(votes, who)) < 2:
        raise UndefinedMetric(f"{who} needs two annotators or more, and these votes have one: record another model")


@baseline("self-consistency")
@dataclass(frozen=True, slots=True, kw_only=True)
class SelfConsistency:
    """The share of draws on the unchanged text that give a label: (1/m) Σ_i 1[a_i = a], whose arg max is the paper's.

    Attributes:
        draws: How many draws to take, the first ones; all of them when None. With the number of calls that another
            method makes, it is that method's fair rival.
    """

    name: ClassVar[str] = "self-consistency"
    draws: int | None = None

    def __post_init__(self) -> None:
        if self.draws is not None and self.draws < 1:
            raise ValueError(f"draws must be 1 or more, or None for all of them, not {self.draws}")

    def scores(self, votes: Votes) -> Floats:
        """Return the share of draws for every label."""
        rows, column = self._places(votes)
        return mean_scores(votes.select(draws=self.draws).shares()[:, rows, column])

    def asks(self, votes: Votes) -> Asks:
        """Return one call per annotator and draw."""
        rows, column = self._places(votes)
        return Asks(cells_of(votes, rows, [column], self.draws))

    def _places(self, votes: Votes) -> tuple[list[int], int]:
        rows, column = plain_annotators(votes, self.name), original_of(votes, self.name)
        drawn = (votes.codes[:, rows, column] >= 0).any(axis=0).sum(axis=1)
        scarce = int(np.argmin(drawn))
        if drawn[scarce] < (self.draws or 2):
            raise UndefinedMetric(
                f"self-consistency needs {self.draws or 'several'} draws of the original, and "
                f"{votes.annotators[rows[scarce]]} has {drawn[scarce]}: record them with --draws {self.draws or 5}"
            )
        return rows, column
