"""Learning in memory, without the figures of a run: what an estimator needs, and no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pcs_annotator.core.arrays import Floats
from pcs_annotator.core.votes import Votes, positions_of
from pcs_annotator.judging.acceptance import Promise
from pcs_annotator.judging.crossfit import Splits
from pcs_annotator.judging.learning import Learning, learn_model
from pcs_annotator.judging.model import Model
from pcs_annotator.judging.optimiser import Optimiser
from pcs_annotator.judging.optimisers import optimisers
from pcs_annotator.version import __version__


def needs_gold(optimiser: str | Optimiser) -> bool:
    """Return whether an optimiser learns from rows with gold only, so that others need not be asked about."""
    return (optimisers.create(optimiser) if isinstance(optimiser, str) else optimiser).needs_gold


def fit_model(
    votes: Votes,
    gold: Sequence[object] | Mapping[str, object],
    optimiser: str | Optimiser,
    seed: int,
    *,
    max_error: float | None = None,
) -> Model:
    """Learn weights from the rows that have gold, and a calibrator and a promise where they are enough."""
    promise = None if max_error is None else Promise(max_error=max_error)
    how = Learning(optimiser=optimiser, splits=Splits(seed=seed), promise=promise, version=__version__)
    return learn_model(votes, gold, how)


def probabilities(model: Model, votes: Votes, labels: Sequence[str]) -> Floats:
    """Return a number for every label, `[item, label]`, columns as `labels`; rows sum to 1.

    They are calibrated probabilities where the model has a calibrator, else scores. An item on which nobody voted is
    uniform.
    """
    verdicts = model.judged(votes)
    values = verdicts.scores if verdicts.probabilities is None else verdicts.probabilities
    values[votes.silent] = 1 / len(votes.labels)
    return values[:, positions_of(labels, votes.labels, "label")]
