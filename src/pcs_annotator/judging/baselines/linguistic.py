"""Ling 1S: one guess and a phrase that says how likely it is.

Tian et al. 2023, *Just Ask for Calibration*, EMNLP 2023, arXiv:2305.14975 (“Ling. 1S-human”). The phrases and their
probabilities are `pcs_annotator.core.elicitations.PHRASES`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pcs_annotator.core.arrays import Floats
from pcs_annotator.core.elicitations import LING_1S
from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.baselines.baseline import Asks, baseline
from pcs_annotator.judging.baselines.stated import Source, elicited, stated_asks, stated_scores


@baseline("ling-1s")
@dataclass(frozen=True, slots=True, kw_only=True)
class Linguistic:
    """The probability that the phrase stands for at the guessed label, the rest spread evenly over the others.

    Attributes:
        draws: How many draws to average, the first ones; the paper takes one.
    """

    name: ClassVar[str] = LING_1S
    draws: int | None = 1

    def scores(self, votes: Votes) -> Floats:
        """Return what the phrases say about the original."""
        return stated_scores(votes, self._source(votes), self.draws)

    def asks(self, votes: Votes) -> Asks:
        """Return one call per annotator."""
        return stated_asks(votes, self._source(votes), self.draws)

    def _source(self, votes: Votes) -> Source:
        return elicited(votes, LING_1S.__eq__, self.name, LING_1S)
