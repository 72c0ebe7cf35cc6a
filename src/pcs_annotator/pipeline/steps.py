"""The steps of the method, in memory: learn from votes and gold, judge new votes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pcs_annotator.core.gold import UNLABELLED, gold_codes
from pcs_annotator.core.votes import Votes
from pcs_annotator.errors import UndefinedMetric
from pcs_annotator.files.config import LearnSettings
from pcs_annotator.judging.evaluation.compare import ZERO_SHOT, Figures, cross_validate
from pcs_annotator.judging.fitting import fit_weights, in_canonical_order
from pcs_annotator.judging.model import Model
from pcs_annotator.pipeline.learning import fit_model
from pcs_annotator.version import __version__

__all__ = ["LearnSettings", "Learned", "learn", "learn_if_possible", "model_file"]

REFERENCES = ("uniform", "majority", ZERO_SHOT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """A model, and what cross-validation says about it.

    Attributes:
        model: What was learned from all gold rows.
        figures: The chosen optimiser first, then the references; empty when there was too little gold.
        no_figures: Why there are none.
    """

    model: Model
    figures: Sequence[Figures]
    no_figures: str = ""


NO_GOLD = "no gold labels, so all votes count the same and nothing is calibrated: label some rows (30 are a start)"


def learn_if_possible(votes: Votes, gold: Sequence[object], settings: LearnSettings) -> Learned:
    """Learn from the rows that have gold; without any, count all votes the same."""
    if any(gold):
        return learn(votes, gold, settings)
    weights = fit_weights(votes, [None] * len(votes), "uniform", seed=settings.seed)
    return Learned(model=Model(weights=weights, calibrator=None), figures=(), no_figures=NO_GOLD)


def learn(votes: Votes, gold: Iterable[object] | Mapping[str, object], settings: LearnSettings) -> Learned:
    """Learn weights and calibrator from the rows that have gold, and cross-validate them against simple rivals."""
    from threadpoolctl import threadpool_limits

    # the matrices are tiny: threads would only wait for each other, and for whatever else the machine does
    with threadpool_limits(limits=1):
        return _learn(votes, gold, settings)


def _learn(votes: Votes, gold: Iterable[object] | Mapping[str, object], settings: LearnSettings) -> Learned:
    known = list(gold) if not isinstance(gold, Mapping) else gold
    model = fit_model(
        votes, known, settings.optimiser, settings.seed, folds=settings.folds, resamples=settings.resamples
    )
    codes = gold_codes(votes, known)
    labelled = codes != UNLABELLED
    rows, truth = in_canonical_order(votes.take(labelled), codes[labelled])
    methods = [settings.optimiser, *(name for name in REFERENCES if name != settings.optimiser)]
    try:
        figures = cross_validate(
            rows, truth, methods, folds=settings.folds, seed=settings.seed, resamples=settings.resamples
        )
    except UndefinedMetric as error:
        return Learned(model=model, figures=(), no_figures=str(error))
    return Learned(model=model, figures=figures)


def model_file(learned: Learned, settings: LearnSettings, labels: Sequence[str]) -> dict[str, Any]:
    """Return what `model.json` holds."""
    return {
        "version": __version__,
        "labels": list(labels),
        "optimiser": settings.optimiser,
        "folds": settings.folds,
        "seed": settings.seed,
        **learned.model.to_dict(),
    }
