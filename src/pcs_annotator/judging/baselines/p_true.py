"""P(True): the model proposes an answer, then says whether it is right.

Kadavath et al. 2022, *Language Models (Mostly) Know What They Know*, arXiv:2207.05221. The paper reads the probability
of the token for *True*; from a model whose tokens are hidden it is estimated by the share of draws that say *True*.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pcs_annotator.core.arrays import Floats
from pcs_annotator.core.elicitations import P_TRUE
from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.baselines.baseline import Asks, baseline
from pcs_annotator.judging.baselines.stated import Source, elicited, stated_asks, stated_scores


@baseline("p-true")
@dataclass(frozen=True, slots=True, kw_only=True)
class PTrue:
    """The mean over draws: 1 for the proposed label when the model says *True*; else the others share the 1 evenly.

    Attributes:
        draws: How many draws to average, the first ones; all of them when None.
    """

    name: ClassVar[str] = P_TRUE
    draws: int | None = None

    def scores(self, votes: Votes) -> Floats:
        """Return how often each label was proposed and called true."""
        return stated_scores(votes, self._source(votes), self.draws)

    def asks(self, votes: Votes) -> Asks:
        """Return one answer, of two calls, per annotator and draw."""
        return stated_asks(votes, self._source(votes), self.draws)

    def _source(self, votes: Votes) -> Source:
        return elicited(votes, P_TRUE.__eq__, self.name, P_TRUE)
