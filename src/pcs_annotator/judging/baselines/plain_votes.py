"""Baselines that need plain labels on the unchanged text: zero-shot, majority vote, self-consistency.

They are defined on labels, so graded votes count as the label that was answered.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pcs_annotator.base.errors import UndefinedMetric
from pcs_annotator.core.arrays import Floats
from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.baselines.baseline import Asks, baseline, cells_of, mean_scores, original_column, plain_rows


@baseline("zero-shot")
@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroShot:
    """One call per text: 1 for the label of the first answer on the unchanged text, 0 for the others.

    RQ1 of Salimian et al. compares PCS with it. Several annotators are averaged, so select one for the paper's figure.
    """

    name: ClassVar[str] = "zero-shot"

    def scores(self, votes: Votes) -> Floats:
        """Return the first label as 1, the others as 0."""
        rows, column = plain_rows(votes, self.name), original_column(votes, self.name)
        return mean_scores(votes.hard().select(draws=1).shares()[:, rows, column], self.name)

    def asks(self, votes: Votes) -> Asks:
        """Return one call per annotator."""
        rows, column = plain_rows(votes, self.name), original_column(votes, self.name)
        return Asks(cells_of(votes, rows, [column], 1))


@baseline("majority-vote")
@dataclass(frozen=True, slots=True, kw_only=True)
class MajorityVote:
    """The share of annotators that give a label to the unchanged text, one call each.

    RQ3 of Salimian et al. compares PCS with it.

    Attributes:
        hard: Whether the winner takes all, like a vote that only names a label; tied winners share.
    """

    name: ClassVar[str] = "majority-vote"
    hard: bool = False

    def scores(self, votes: Votes) -> Floats:
        """Return the share of annotators for every label, or 1 for the winner."""
        _require_two(votes, self.name)
        shares = ZeroShot().scores(votes)
        if not self.hard:
            return shares
        best = shares == shares.max(axis=1, keepdims=True)
        return np.asarray(best / best.sum(axis=1, keepdims=True))

    def asks(self, votes: Votes) -> Asks:
        """Return one call per annotator."""
        _require_two(votes, self.name)
        return ZeroShot().asks(votes)


def _require_two(votes: Votes, who: str) -> None:
    answers = votes.codes[:, plain_rows(votes, who), original_column(votes, who), 0]
    found = int((answers >= 0).any(axis=0).sum())
    if found < 2:
        raise UndefinedMetric(
            f"{who} needs answers of two annotators or more, and these votes have {found}: record more"
        )


@baseline("self-consistency")
@dataclass(frozen=True, slots=True, kw_only=True)
class SelfConsistency:
    """The share of draws on the unchanged text that give a label: the same question asked several times.

    Wang et al. 2022, *Self-Consistency Improves Chain of Thought Reasoning in Language Models*, arXiv:2203.11171: of m
    sampled answers a_1 … a_m take arg max_a Σ_i 1[a_i = a]. The score is (1/m) Σ_i 1[a_i = a], which has that arg max.

    Attributes:
        draws: Use only the first draws; all of them when None. Set it to the number of calls that another method
            makes, for a fair comparison with that method.
    """

    name: ClassVar[str] = "self-consistency"
    draws: int | None = None

    def __post_init__(self) -> None:
        if self.draws is not None and self.draws < 1:
            raise ValueError(f"draws must be 1 or more, or None for all of them, not {self.draws}")

    def scores(self, votes: Votes) -> Floats:
        """Return the share of draws for every label."""
        rows, column = self._places(votes)
        return mean_scores(votes.hard().select(draws=self.draws).shares()[:, rows, column], self.name)

    def asks(self, votes: Votes) -> Asks:
        """Return one call per annotator and draw."""
        rows, column = self._places(votes)
        return Asks(cells_of(votes, rows, [column], self.draws))

    def _places(self, votes: Votes) -> tuple[list[int], int]:
        rows, column = plain_rows(votes, self.name), original_column(votes, self.name)
        drawn = (votes.codes[:, rows, column] >= 0).any(axis=0).sum(axis=1)
        fewest = int(np.argmin(drawn))
        if drawn[fewest] < (self.draws or 2):
            raise UndefinedMetric(
                f"self-consistency needs {self.draws or 'several'} draws of the original, and "
                f"{votes.annotators[rows[fewest]]} has {drawn[fewest]}: record them with --draws {self.draws or 5}"
            )
        return rows, column
