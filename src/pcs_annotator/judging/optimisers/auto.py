"""`auto`: whichever of a few optimisers predicts held-out gold best."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from pcs_annotator.core.arrays import Codes
from pcs_annotator.core.task import MANY_LABELS
from pcs_annotator.core.votes import Votes
from pcs_annotator.core.weights import Weights
from pcs_annotator.judging.fit_weights import MIN_ROWS_TO_CALIBRATE, any_graded, fit_optimiser, optimiser, optimisers
from pcs_annotator.judging.heldout import CrossFit, Splits, cross_fits
from pcs_annotator.judging.metrics.figures import MIN_PROBABILITY, log_loss

FOR_HARD_VOTES = ("lr", "logit", "naive-bayes")
FOR_MANY_LABELS = ("lr",)  # the others learn something about every label, and most of very many labels have no gold row
# Shares cannot express how sure a model is, so on graded votes `lr` and `naive-bayes` predict worse; where chance makes
# them look better on 100 gold rows, taking them costs .5 points of AUROC and 3 of accuracy.
FOR_GRADED_VOTES = ("scaling", "logit")


@optimiser("auto")
@dataclass(frozen=True, kw_only=True)
class Auto:
    """Picks by repeated cross-validated log-loss of the calibrated probability; ties go to the first candidate."""

    # names of optimisers; empty for `lr`, `logit` and `naive-bayes`, if any vote is graded, `scaling` and `logit`, and
    # for very many labels `lr`
    candidates: Sequence[str] = ()
    folds: int = 5  # folds of the cross-validation
    needs_gold: ClassVar[bool] = True

    def fit(self, votes: Votes, gold: Codes, seed: int) -> Weights:
        """Return the weights of the best candidate with every loss; few rows' are chance, so they are not shown."""
        names = self._names(votes)
        fits = [self._fits(name, votes, gold, Splits(folds=self.folds, seed=seed)) for name in names]
        losses = [float(np.mean([log_loss(fit.probabilities, gold) for fit in fits_of])) for fits_of in fits]
        chosen = names[int(np.argmin(losses))]
        weights = fit_optimiser(optimisers.create(chosen), votes, gold, seed)
        candidates = dict(zip(names, losses, strict=True)) if len(gold) >= MIN_ROWS_TO_CALIBRATE else {}
        return replace(weights, diagnostics=replace(weights.diagnostics, optimiser=chosen, candidates=candidates))

    def _names(self, votes: Votes) -> Sequence[str]:
        if not self.candidates and len(votes.labels) > MANY_LABELS:
            return FOR_MANY_LABELS
        return self.candidates or (FOR_GRADED_VOTES if any_graded(votes) else FOR_HARD_VOTES)

    def cross_fits(self, votes: Votes, gold: Codes, splits: Splits) -> list[CrossFit]:
        """Return out-of-fold results in which every fold uses the candidate that predicts the other folds best.

        The choice never sees the gold of the fold that it is made for. This estimates the quality of `auto` as well as
        a full choice inside every fold, with a thirtieth of the fits: see `docs/design/fitting.md`.
        """
        fits = [self._fits(name, votes, gold, splits) for name in self._names(votes)]
        right = [[fit.probabilities[np.arange(len(gold)), gold] for fit in fits_of] for fits_of in fits]
        losses = np.array([-np.log(np.maximum(fits_of, MIN_PROBABILITY)).mean(axis=0) for fits_of in right])
        results = []
        for turn, fits_of in enumerate(zip(*fits, strict=True)):
            fold = splits.fold_of(gold, turn)
            means = [losses[:, fold != number].mean(axis=1) for number in np.unique(fold)]
            best = np.array([int(mean.argmin()) for mean in means])[fold]
            results.append(
                CrossFit(*(np.stack(parts)[best, np.arange(len(best))] for parts in zip(*fits_of, strict=True)))
            )
        return results

    @staticmethod
    def _fits(name: str, votes: Votes, gold: Codes, splits: Splits) -> list[CrossFit]:
        return cross_fits(optimisers.create(name), votes, gold, splits)
