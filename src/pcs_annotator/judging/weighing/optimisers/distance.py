"""`distance`: models whose numbers are nearer to gold count more."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.core.numbers import values_of
from pcs_annotator.core.votes import Votes
from pcs_annotator.core.weights import Diagnostics, Weights
from pcs_annotator.judging.weighing.optimiser import optimiser

PRIOR_ROWS = 5
"""As many rows of the mean error are added to every model and relation."""


@optimiser("distance")
@dataclass(frozen=True, kw_only=True)
class Distance:
    """Weights are one over the squared mean error of a model's numbers, or of those under a relation."""

    needs_gold: ClassVar[bool] = True
    numeric: ClassVar[bool] = True

    def fit(self, votes: Votes, gold: Codes, seed: int) -> Weights:
        """Return the weights; labels that are not numbers are an error."""
        values, given = values_of(tuple(votes.labels)), votes.codes >= 0
        off = np.where(given, np.abs(values[votes.codes] - values[gold][:, np.newaxis, np.newaxis, np.newaxis]), 0.0)
        usual = max(float(off.sum() / max(given.sum(), 1)), np.diff(np.sort(values)).min() / 4)

        def worth(axes: tuple[int, ...]) -> Floats:
            mean = (off.sum(axis=axes) + PRIOR_ROWS * usual) / (given.sum(axis=axes) + PRIOR_ROWS)
            return np.asarray(mean**-2.0)

        return Weights.normalised(votes, worth((0, 2, 3)), worth((0, 1, 3)), Diagnostics())
