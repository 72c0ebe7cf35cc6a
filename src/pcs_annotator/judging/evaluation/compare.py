"""Methods side by side, each judged on gold rows that its fit did not see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.core.votes import Votes
from pcs_annotator.core.weights import Interval
from pcs_annotator.errors import UndefinedMetric
from pcs_annotator.judging.crossfit import CrossFit, cross_fits
from pcs_annotator.judging.evaluation.metrics import Estimate, Metric, accuracy, auroc, bootstrap_estimate, ece
from pcs_annotator.judging.evaluation.significance import BootstrapTest, paired_bootstrap
from pcs_annotator.judging.optimisers import optimisers


class Figures(NamedTuple):
    """Cross-validated figures of one method.

    Attributes:
        method: Registry name of the optimiser.
        auroc: Macro one-vs-rest, of the raw scores.
        accuracy: Of the label with the highest raw score.
        ece_score: Calibration error of the raw score.
        ece_confidence: Calibration error of the calibrated probability.
        behind: By how much the first method's AUROC is higher, tested on the same rows; None for the first itself.
    """

    method: str
    auroc: Estimate
    accuracy: Estimate
    ece_score: Estimate
    ece_confidence: Estimate
    behind: BootstrapTest | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        estimates = {name: getattr(self, name) for name in ESTIMATES}
        return {
            "method": self.method,
            **{name: {"value": of.value, "interval": list(of.interval), "n": of.n} for name, of in estimates.items()},
            "behind": None if self.behind is None else list(self.behind),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Figures:
        """Return the figures that `to_dict` wrote."""
        estimates = {
            name: Estimate(values[name]["value"], Interval(*values[name]["interval"]), values[name]["n"])
            for name in ESTIMATES
        }
        behind = None
        if values["behind"] is not None:
            difference, interval, p_value, n = values["behind"]
            behind = BootstrapTest(difference, Interval(*interval), p_value, n)
        return cls(method=values["method"], **estimates, behind=behind)


ESTIMATES = ("auroc", "accuracy", "ece_score", "ece_confidence")


def cross_validate(
    votes: Votes, gold: Codes, methods: Sequence[str], *, folds: int = 5, seed: int = 0, resamples: int = 300
) -> list[Figures]:
    """Return cross-validated figures of every method on fully labelled rows, all on the same splits."""
    if len(gold) < 2 * folds or len(np.unique(gold)) < 2:
        raise UndefinedMetric(
            f"{folds}-fold cross-validation needs at least {2 * folds} gold rows and two classes, "
            f"there are {len(gold)} rows of {len(np.unique(gold))}: label more rows"
        )
    fits = [cross_fits(optimisers.create(method), votes, gold, folds, seed) for method in methods]
    first = np.stack([fit.scores for fit in fits[0]], axis=1)
    return [
        _figures(method, its_fits, gold, seed, resamples, first=None if its_fits is fits[0] else first)
        for method, its_fits in zip(methods, fits, strict=True)
    ]


def _figures(
    method: str, fits: list[CrossFit], gold: Codes, seed: int, resamples: int, first: Floats | None
) -> Figures:
    scores = np.stack([fit.scores for fit in fits], axis=1)
    probabilities = np.stack([fit.probabilities for fit in fits], axis=1)

    def estimate(metric: Metric, values: Floats) -> Estimate:
        return bootstrap_estimate(over_splits(metric), values, gold, resamples=resamples, seed=seed)

    behind = first is not None and paired_bootstrap(
        over_splits(auroc), first, scores, gold, resamples=resamples, seed=seed
    )
    return Figures(
        method=method,
        auroc=estimate(auroc, scores),
        accuracy=estimate(accuracy, scores),
        ece_score=estimate(ece, scores),
        ece_confidence=estimate(ece, probabilities),
        behind=behind or None,
    )


def over_splits(metric: Metric) -> Metric:
    """Return the metric for scores `[item, split, label]`: the mean over splits."""

    def mean(scores: Floats, gold: Codes) -> float:
        return float(np.mean([metric(scores[:, split], gold) for split in range(scores.shape[1])]))

    return mean
