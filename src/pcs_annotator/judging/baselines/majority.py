"""The label that most models give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pcs_annotator.core.arrays import Floats
from pcs_annotator.core.votes import Votes
from pcs_annotator.errors import UndefinedMetric
from pcs_annotator.judging.baselines.baseline import Asks, baseline, plain_annotators
from pcs_annotator.judging.baselines.zero_shot import ZeroShot


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
