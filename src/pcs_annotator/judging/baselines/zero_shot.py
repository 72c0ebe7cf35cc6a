"""One call per text: what every other method has to beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pcs_annotator.core.arrays import Floats
from pcs_annotator.core.votes import Votes
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
