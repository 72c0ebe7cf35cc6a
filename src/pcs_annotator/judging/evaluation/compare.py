"""Cross-validated figures of several methods on the same rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pcs_annotator.core.arrays import Codes
from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.core.votes import Votes
from pcs_annotator.core.weights import Interval
from pcs_annotator.errors import UndefinedMetric
from pcs_annotator.judging.evaluation.methods import ZERO_SHOT, Resampled, all_figures
from pcs_annotator.judging.metrics.bootstrap import interval_around
from pcs_annotator.judging.metrics.metrics import Estimate
from pcs_annotator.judging.metrics.significance import BootstrapTest, bootstrap_test
from pcs_annotator.judging.weighing.crossfit import Splits, cross_fits
from pcs_annotator.judging.weighing.optimiser import optimisers

ESTIMATES = ("auroc", "accuracy", "ece_score", "ece_confidence")
TESTS = ("behind", "accuracy_behind")


class Figures(NamedTuple):
    """Cross-validated figures of one method.

    Attributes:
        method: Registry name of the optimiser, or `zero-shot` and the name of an annotator.
        auroc: Macro one-vs-rest, of the raw scores.
        accuracy: Of the label with the highest raw score.
        ece_score: Calibration error of the raw score.
        ece_confidence: Calibration error of the calibrated probability.
        behind: By how much the first method's AUROC is higher, tested on the same rows; None for the first itself.
        accuracy_behind: The same for accuracy.
    """

    method: str
    auroc: Estimate
    accuracy: Estimate
    ece_score: Estimate
    ece_confidence: Estimate
    behind: BootstrapTest | None
    accuracy_behind: BootstrapTest | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        estimates = {name: getattr(self, name) for name in ESTIMATES}
        return {
            "method": self.method,
            **{name: {"value": of.value, "interval": list(of.interval), "n": of.n} for name, of in estimates.items()},
            **{name: None if (test := getattr(self, name)) is None else list(test) for name in TESTS},
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Figures:
        """Return the figures that `to_dict` wrote."""
        estimates: dict[str, Any] = {
            name: Estimate(values[name]["value"], Interval(*values[name]["interval"]), values[name]["n"])
            for name in ESTIMATES
        }
        tests: dict[str, Any] = {name: _test(values.get(name)) for name in TESTS}
        return cls(method=values["method"], **estimates, **tests)


def _test(values: Sequence[Any] | None) -> BootstrapTest | None:
    if values is None:
        return None
    difference, interval, p_value, n = values
    return BootstrapTest(difference, Interval(*interval), p_value, n)


def cross_validate(
    votes: Votes, gold: Codes, methods: Sequence[str], splits: Splits | None = None, *, resamples: int = 300
) -> list[Figures]:
    """Return cross-validated figures of every method on fully labelled rows, all on the same splits.

    The method `zero-shot` is one question to one annotator: the most accurate one on these same rows, which favours it.
    """
    splits = splits or Splits()
    folds = splits.folds
    if len(gold) < 2 * folds or len(np.unique(gold)) < 2:
        raise UndefinedMetric(
            f"{folds}-fold cross-validation needs at least {2 * folds} gold rows and two classes, "
            f"there are {len(gold)} rows of {len(np.unique(gold))}: label more rows"
        )
    names, fits = [], []
    for method in methods:
        name, asked = _best_zero_shot(votes, gold) if method == ZERO_SHOT else (method, votes)
        chosen = optimisers.create("uniform" if method == ZERO_SHOT else method)
        names.append(name)
        fits.append(cross_fits(chosen, asked, gold, splits))
    observed, resampled = all_figures(fits, gold, votes.labels, resamples, splits.seed)
    return [_figures(name, place, observed, resampled, len(gold)) for place, name in enumerate(names)]


def _best_zero_shot(votes: Votes, gold: Codes) -> tuple[str, Votes]:
    """Return the first vote on the original text of the annotator that is right most often there."""
    relation = ORIGINAL if ORIGINAL in votes.relations else votes.relations[0]
    right = (votes.codes[:, :, votes.relations.index(relation), 0] == gold[:, np.newaxis]).mean(axis=0)
    best = votes.annotators[int(np.argmax(right))]
    return f"{ZERO_SHOT} {best}", votes.select(annotators=[best], relations=[relation], draws=1)


def _figures(
    method: str, place: int, observed: Sequence[Mapping[str, float]], resampled: Sequence[Resampled], n: int
) -> Figures:
    def estimate(name: str) -> Estimate:
        value = observed[place][name]
        return Estimate(value, interval_around(value, resampled[place][name]), n)

    def test(name: str) -> BootstrapTest | None:
        if not place:
            return None
        difference = observed[0][name] - observed[place][name]
        return bootstrap_test(difference, resampled[0][name] - resampled[place][name], n)

    estimates: dict[str, Any] = {name: estimate(name) for name in ESTIMATES}
    return Figures(method=method, **estimates, behind=test("auroc"), accuracy_behind=test("accuracy"))
