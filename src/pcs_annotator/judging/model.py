"""Everything learned from gold: what turns new votes into labels with confidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pcs_annotator.core.arrays import Codes
from pcs_annotator.core.outcome import Outcome
from pcs_annotator.core.votes import Votes
from pcs_annotator.core.weights import Weights
from pcs_annotator.judging.calibration import Calibrator, fit_calibrator
from pcs_annotator.judging.crossfit import cross_fits
from pcs_annotator.judging.optimiser import Optimiser
from pcs_annotator.judging.scoring import choose, score

MIN_ROWS_TO_CALIBRATE = 10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Model:
    """Weights, and the calibrator that turns their scores into probabilities; None when gold was too scarce."""

    weights: Weights
    calibrator: Calibrator | None

    def judge(self, votes: Votes) -> Iterator[Outcome]:
        """Yield the outcome of every item, in order."""
        scores = score(votes, self.weights)
        best = choose(scores, votes.labels)
        probabilities = None if self.calibrator is None else self.calibrator.apply(scores, votes.labels)
        silent = votes.silent
        for row, name in enumerate(votes.ids):
            named = dict(zip(votes.labels, scores[row].tolist(), strict=True))
            if silent[row]:
                yield Outcome(
                    id=name, label=None, scores=named, confidence=None, decision="review", reason="nobody voted"
                )
                continue
            ties = int((scores[row] == scores[row].max()).sum())
            yield Outcome(
                id=name,
                label=votes.labels[best[row]],
                scores=named,
                confidence=None if probabilities is None else float(probabilities[row, best[row]]),
                decision=None,
                reason=f"{ties} labels share the highest score" if ties > 1 else "",
            )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"weights": self.weights.to_dict(), "calibrator": self.calibrator and self.calibrator.to_dict()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Model:
        """Return the model that `to_dict` wrote."""
        calibrator = values["calibrator"]
        return cls(
            weights=Weights.from_dict(values["weights"]),
            calibrator=calibrator and Calibrator.from_dict(calibrator),
        )


def fit_out_of_fold_calibrator(
    chosen: Optimiser, votes: Votes, gold: Codes, folds: int, seed: int
) -> Calibrator | None:
    """Return a calibrator fitted on scores of fully labelled rows, each scored by weights that did not see it.

    None when there are too few rows, or a single class.
    """
    if len(gold) < MIN_ROWS_TO_CALIBRATE or len(np.unique(gold)) < 2:
        return None
    fits = cross_fits(chosen, votes, gold, folds, seed)
    return fit_calibrator(np.mean([fit.scores for fit in fits], axis=0), gold, votes.labels)
