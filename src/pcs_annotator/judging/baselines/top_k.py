"""1S top-k and 2S top-k: k guesses, each with a probability.

Tian et al. 2023, *Just Ask for Calibration*, EMNLP 2023, arXiv:2305.14975 (“Verb. 1S top-k”, “Verb. 2S top-k”).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pcs_annotator.core.elicitations import guesses_of, kind_of
from pcs_annotator.core.votes import Votes
from pcs_annotator.errors import UndefinedMetric
from pcs_annotator.judging.baselines.baseline import baseline
from pcs_annotator.judging.baselines.stated import Source, StatedBaseline, elicited


@dataclass(frozen=True, slots=True, kw_only=True)
class TopK(StatedBaseline):
    """The probabilities stated for k guesses; what they leave is spread evenly over labels that were not guessed.

    Attributes:
        steps: 1 when guesses and probabilities come in one reply, 2 when the probabilities are asked for afterwards.
        k: How many guesses; by default the only number that the votes hold.
    """

    steps: Literal[1, 2] = 1
    k: int | None = None

    @property
    def name(self) -> str:
        """`1s-top-2` and so on; `1s-top-k` where k is left open."""
        return f"{self.steps}s-top-{self.k or 'k'}"

    def source(self, votes: Votes) -> Source:
        """Return the annotators that gave so many guesses."""
        source = elicited(votes, self._fits, self.name, f"{self.steps}s-top-{self.k or 2}")
        kinds = sorted({kind_of(votes.annotators[row]) for row in source.rows}, key=guesses_of)
        if len(kinds) > 1:
            raise UndefinedMetric(
                f"{self.name} takes one number of guesses, these votes hold {', '.join(kinds)}: set k"
            )
        return source

    def _fits(self, kind: str) -> bool:
        return kind.startswith(f"{self.steps}s-top-") and self.k in (None, guesses_of(kind))


@baseline("1s-top-k")
def one_step() -> TopK:
    """Return the method with one prompt, for whatever k the votes hold."""
    return TopK(steps=1)


@baseline("2s-top-k")
def two_steps() -> TopK:
    """Return the method with two prompts, for whatever k the votes hold."""
    return TopK(steps=2)
