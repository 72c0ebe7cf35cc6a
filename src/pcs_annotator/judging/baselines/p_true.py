"""P(True): the model proposes an answer, then says whether it is right.

Kadavath et al. 2022, *Language Models (Mostly) Know What They Know*, arXiv:2207.05221. The paper reads the probability
of the token for *True*; from a model whose tokens are hidden it is estimated by the share of draws that say *True*.
"""

from __future__ import annotations

from dataclasses import dataclass

from pcs_annotator.core.elicitations import P_TRUE
from pcs_annotator.judging.baselines.baseline import baseline
from pcs_annotator.judging.baselines.stated import StatedBaseline


@baseline("p-true")
@dataclass(frozen=True, slots=True, kw_only=True)
class PTrue(StatedBaseline):
    """The mean over draws: 1 for the proposed label when the model says *True*; else the others share the 1 evenly."""

    draws: int | None = None

    @property
    def name(self) -> str:
        """`p-true`."""
        return P_TRUE
