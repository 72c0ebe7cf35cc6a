"""Learning in memory, without the figures of a run: what an estimator needs, and no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pcs_annotator.core.arrays import Floats
from pcs_annotator.core.gold import UNLABELLED, gold_codes
from pcs_annotator.core.votes import Votes, positions_of
from pcs_annotator.judging.fitting import fit_weights, in_canonical_order
from pcs_annotator.judging.model import Model, fit_out_of_fold_calibrator
from pcs_annotator.judging.optimiser import Optimiser
from pcs_annotator.judging.optimisers import optimisers
from pcs_annotator.judging.scoring import score

FOLDS = 5


def needs_gold(optimiser: str | Optimiser) -> bool:
    """Return whether an optimiser learns from rows with gold only, so that others need not be asked about."""
    return (optimisers.create(optimiser) if isinstance(optimiser, str) else optimiser).needs_gold


def fit_model(  # what a fit depends on
    votes: Votes,
    gold: Sequence[object] | Mapping[str, object],
    optimiser: str | Optimiser,
    seed: int,
    *,
    folds: int = FOLDS,
    resamples: int = 0,
) -> Model:
    """Learn weights from the rows that have gold, and a calibrator where they are enough."""
    weights = fit_weights(votes, gold, optimiser, seed=seed, resamples=resamples)
    codes = gold_codes(votes, gold)
    labelled = codes != UNLABELLED
    rows, truth = in_canonical_order(votes.take(labelled), codes[labelled])
    # `auto` names the one that it picked
    chosen = optimisers.create(weights.diagnostics.optimiser) if isinstance(optimiser, str) else optimiser
    return Model(weights=weights, calibrator=fit_out_of_fold_calibrator(chosen, rows, truth, folds, seed))


def probabilities(model: Model, votes: Votes, labels: Sequence[str]) -> Floats:
    """Return a number for every label, `[item, label]`, columns as `labels`; rows sum to 1.

    They are calibrated probabilities where the model has a calibrator, else scores. An item on which nobody voted is
    uniform.
    """
    values = score(votes, model.weights)
    if model.calibrator is not None:
        values = model.calibrator.apply(values, votes.labels)
    values[votes.silent] = 1 / len(votes.labels)
    return values[:, positions_of(labels, votes.labels, "label")]
