"""Label sets that contain the right label as often as promised."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.core.arrays import Codes, Floats, Mask

# Rounding must not separate two equal probabilities; an extra label breaks no promise.
TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionSets:
    """The labels that cannot be ruled out for a text, by split conformal prediction."""

    # labels with at least this probability are in the set; 0, and so all labels, when there were too few rows: fewer
    # than (1 − α) / α
    threshold: float
    miss_rate: float  # α, how often a set may miss the right label, on average over gold rows and new texts
    rows: int  # gold rows behind the threshold

    def of(self, probabilities: Floats) -> Mask:
        """Return which labels are in the set of each item, `[item, label]`; a set is never empty.

        If no label reaches the threshold, the set is the best label, or all tied best labels.
        """
        best = probabilities.max(axis=1, keepdims=True)
        return np.asarray(probabilities >= np.minimum(self.threshold, best) - TOLERANCE)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "PredictionSets":
        """Return the sets that `to_dict` wrote."""
        return cls(**values)


def fit_prediction_sets(probabilities: Floats, gold: Codes, miss_rate: float = 0.1) -> PredictionSets:
    """Return sets that contain the right label of a new text with probability at least 1 − `miss_rate`.

    The promise holds for any number of gold rows and any probabilities, provided that the gold rows are a random sample
    of the texts and that one model, which saw none of them, gave the probabilities of both. Out-of-fold probabilities
    come from one model per fold, so with them it holds only approximately. It holds on average, not for every label.
    """
    if not 0 < miss_rate < 1:
        raise ConfigError(f"the miss rate must be between 0 and 1, not {miss_rate}: 0.1 is common")
    rows = len(gold)
    rank = math.ceil((rows + 1) * (1 - miss_rate) - TOLERANCE)
    falling = np.sort(probabilities[np.arange(rows), gold])[::-1]
    threshold = float(falling[rank - 1]) if rank <= rows else 0.0
    return PredictionSets(threshold=threshold, miss_rate=miss_rate, rows=rows)
