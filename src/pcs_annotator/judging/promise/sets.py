"""Sets of labels: those that contain the right label as often as promised, and whole sets of a text with many labels.

Errors of the labels of a text go together, so the product of their confidences is calibrated on gold rows, as scores
are; it says how sure it is that none of them is wrong.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from typing import NamedTuple

import numpy as np

from pcs_annotator.base.errors import ConfigError
from pcs_annotator.core.arrays import CODE, Codes, Floats, Mask
from pcs_annotator.core.outcome import UNLIKE_GOLD, Counts, Outcome
from pcs_annotator.core.votes import positions_of
from pcs_annotator.judging.calibrate import Calibrator, fit_calibrator
from pcs_annotator.judging.fit_weights import MIN_ROWS_TO_CALIBRATE
from pcs_annotator.judging.heldout import HeldOut, Judged, calibrated_out_of_fold, stratified_folds
from pcs_annotator.judging.metrics.figures import Estimate, exact_interval
from pcs_annotator.judging.promise.certificate import Certificate, certify, no_promise
from pcs_annotator.judging.promise.promise import USED_UP, Promise

# Rounding must not separate two equal probabilities; an extra label breaks no promise.
TOLERANCE = 1e-9
WHOLE, FOLDS = ("right", "wrong"), 5
FEW = f"it takes {MIN_ROWS_TO_CALIBRATE} random rows with gold for every label"


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


def fit_prediction_sets(probabilities: Floats, gold: Codes, miss_rate: float = 0.1) -> PredictionSets:
    """Return sets that contain the right label of a new text with probability at least 1 − `miss_rate`.

    That holds on average if the gold rows are a random sample of the texts and one model, which saw none of them, gave
    the probabilities of both; for those of several folds, which have a model each, only approximately.
    """
    if not 0 < miss_rate < 1:
        raise ConfigError(f"the miss rate must be between 0 and 1, not {miss_rate}: 0.1 is common")
    rows = len(gold)
    rank = math.ceil((rows + 1) * (1 - miss_rate) - TOLERANCE)
    falling = np.sort(probabilities[np.arange(rows), gold])[::-1]
    threshold = float(falling[rank - 1]) if rank <= rows else 0.0
    return PredictionSets(threshold=threshold, miss_rate=miss_rate, rows=rows)


class WholeSets(NamedTuple):
    """What was learned about whole sets of labels."""

    calibrator: Calibrator | None = None  # None if too few rows have gold for every label
    certificate: Certificate | None = None  # None if no promise was requested
    rows: int = 0  # gold rows that were learned from
    right: int = 0  # those of which all labels are right

    @property
    def accuracy(self) -> Estimate | None:
        """How many sets are right; None if that is unknown."""
        return Estimate(self.right / self.rows, exact_interval(self.right, self.rows), self.rows) if self.rows else None

    def confidence(self, product: Floats) -> Floats:
        """Return how probable it is that all labels are right, given the product of their confidences."""
        return product if self.calibrator is None else self.calibrator.apply(_both(product), WHOLE)[:, 0]


class SetResult(NamedTuple):
    """The whole sets of labels of some texts."""

    model: WholeSets
    confidence: Sequence[float | None]  # how probable it is that all labels of a text are right
    decisions: Sequence[str | None]  # None without a promise

    @classmethod
    def of(cls, model: WholeSets, parts: Sequence[Sequence[Outcome]]) -> "SetResult":
        """Return confidence and decision for texts, given the outcomes of every label."""
        confidences = np.array(
            [[entry.confidence for entry in part] for part in parts], dtype=np.float64
        )  # None becomes nan
        sure, certificate = model.confidence(confidences.prod(axis=0)), model.certificate
        confidence = [None if np.isnan(entry) else float(entry) for entry in sure]
        if certificate is None:
            return cls(model, confidence, [None] * len(confidence))
        unlike = [
            any((entry.reason or "").startswith(UNLIKE_GOLD) for entry in row) for row in zip(*parts, strict=True)
        ]
        accepted = certificate.accepts(sure, np.zeros(len(sure), dtype=CODE), WHOLE) & ~np.array(unlike, dtype=np.bool_)
        model = model._replace(certificate=certificate.with_coverage(accepted))
        return cls(model, confidence, np.where(accepted, "accept", "review").tolist())

    @property
    def counts(self) -> Counts:
        """How many sets are accepted."""
        return Counts(rows=len(self.decisions), decisions=Counter(decision for decision in self.decisions if decision))


def whole_rows(trials: Sequence[HeldOut | None]) -> tuple[list[str], Judged]:
    """Return the rows, drawn at random, with gold for every label, and the product of the confidences of all labels."""
    usable = (
        {*compress(held_out.ids, held_out.ids if held_out.at_random is None else held_out.at_random)}
        for held_out in trials
        if held_out
    )
    ids = sorted(set.intersection(*usable)) if None not in trials else []
    product, right = np.ones(len(ids)), np.ones(len(ids), dtype=np.bool_)
    for trial in (held_out for held_out in trials if held_out and ids):
        part = trial.judged.take(np.array(positions_of(ids, trial.ids, "item")))
        product, right = product * part.confidence, right & part.right
    return ids, Judged(product, np.zeros(len(ids), dtype=CODE), right)


def fit_whole_sets(judged: Judged, promise: Promise | None, spent: float = 0.0, refused: str = "") -> WholeSets:
    """Return what gold rows say about whole sets; `spent` and `refused` are those of `Learning`."""
    rows, wrong, scores = len(judged.right), (~judged.right).astype(CODE), _both(judged.confidence)
    few = FEW if rows < MIN_ROWS_TO_CALIBRATE else ""
    learned = (
        WholeSets() if few else WholeSets(fit_calibrator(scores, wrong, WHOLE), None, rows, int(judged.right.sum()))
    )
    if promise is None:
        return learned
    if why := refused or few or (USED_UP if spent >= promise.delta else ""):
        return learned._replace(certificate=no_promise(promise, rows, why))
    sure = calibrated_out_of_fold(scores, wrong, stratified_folds(wrong, FOLDS, 0), WHOLE)[:, 0]
    return learned._replace(certificate=certify(judged._replace(confidence=sure), WHOLE, promise, spent))


def _both(product: Floats) -> Floats:
    return np.stack([product, 1 - product], axis=1)
