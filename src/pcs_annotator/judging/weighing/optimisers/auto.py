"""`auto`: whichever of `lr`, `logit` and `naive-bayes` predicts held-out gold best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from pcs_annotator.core.arrays import Codes
from pcs_annotator.core.votes import Votes
from pcs_annotator.core.weights import Weights
from pcs_annotator.judging.metrics.metrics import log_loss
from pcs_annotator.judging.weighing.crossfit import Splits, cross_fits
from pcs_annotator.judging.weighing.optimiser import fit_optimiser, optimiser, optimisers


@optimiser("auto")
@dataclass(frozen=True, kw_only=True)
class Auto:
    """Picks by repeated cross-validated log-loss of the calibrated probability; ties go to the first candidate."""

    candidates: Sequence[str] = ("lr", "logit", "naive-bayes")
    folds: int = 5
    needs_gold: ClassVar[bool] = True

    def fit(self, votes: Votes, gold: Codes, seed: int) -> Weights:
        """Return the weights of the best candidate, fitted on all gold rows, with every candidate's loss."""
        losses = {name: self._loss(name, votes, gold, seed) for name in self.candidates}
        chosen = min(self.candidates, key=lambda name: losses[name])
        weights = fit_optimiser(optimisers.create(chosen), votes, gold, seed)
        return replace(weights, diagnostics=replace(weights.diagnostics, optimiser=chosen, candidates=losses))

    def _loss(self, name: str, votes: Votes, gold: Codes, seed: int) -> float:
        fits = cross_fits(optimisers.create(name), votes, gold, Splits(folds=self.folds, seed=seed))
        return float(np.mean([log_loss(fit.probabilities, gold) for fit in fits]))
