"""From a score to a probability of being right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pcs_annotator.core.arrays import Codes, Floats, frozen
from pcs_annotator.core.votes import positions_of
from pcs_annotator.errors import MismatchError, UnknownNameError
from pcs_annotator.judging.scoring import softmax

FLOOR = 0.02
PRIOR_SD = 0.5
NEWTON_STEPS = 50


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Calibrator:
    r"""Turns scores into probabilities: $\mathrm{softmax}_k(a\log\frac{S_k+.02}{1+.02K}+b_k)$.

    Attributes:
        labels: The labels that the offsets belong to.
        slope: a; below 1 when scores are too sure.
        offsets: b, one per label.
    """

    labels: Sequence[str]
    slope: float
    offsets: Floats

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", tuple(self.labels))
        object.__setattr__(self, "offsets", frozen(np.asarray(self.offsets), np.float64))

    def apply(self, scores: Floats, labels: Sequence[str]) -> Floats:
        """Return the calibrated probability of every label, `[item, label]`; `labels` names the columns."""
        try:
            order = positions_of(labels, self.labels, "calibrated label")
        except UnknownNameError as error:
            raise MismatchError(f"{error}; learn again on these votes") from error
        return softmax(self.slope * _log_scores(scores) + self.offsets[order])

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"labels": list(self.labels), "slope": self.slope, "offsets": self.offsets.tolist()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Calibrator:
        """Return the calibrator that `to_dict` wrote."""
        return cls(labels=values["labels"], slope=values["slope"], offsets=np.array(values["offsets"]))


def fit_calibrator(scores: Floats, gold: Codes, labels: Sequence[str]) -> Calibrator:
    """Return the most probable calibrator, with priors a ~ N(1, .5²) and b ~ N(0, .5²).

    The scores must come from weights that did not see these gold rows. The posterior is log-concave, so Newton's
    method with halved steps ends at its one maximum.
    """
    inputs = _log_scores(scores)
    target = np.eye(len(labels))[gold]
    centre = np.concatenate([[1.0], np.zeros(len(labels))])
    point = centre
    value = _loss(point, inputs, target, centre)
    for _ in range(NEWTON_STEPS):
        gradient, hessian = _derivatives(point, inputs, target, centre)
        step = np.linalg.solve(hessian, gradient)
        if float(gradient @ step) < 1e-12:
            break
        size = 1.0
        while (reached := _loss(point - size * step, inputs, target, centre)) > value and size > 1e-6:
            size /= 2
        point, value = point - size * step, reached
    return Calibrator(labels=labels, slope=float(point[0]), offsets=point[1:])


def _log_scores(scores: Floats) -> Floats:
    return np.asarray(np.log((scores + FLOOR) / (1 + FLOOR * scores.shape[1])))


def _logits(point: Floats, inputs: Floats) -> Floats:
    return np.asarray(point[0] * inputs + point[1:])


def _loss(point: Floats, inputs: Floats, target: Floats, centre: Floats) -> float:
    logits = _logits(point, inputs)
    top = logits.max(axis=1)
    log_norm = top + np.log(np.exp(logits - top[:, np.newaxis]).sum(axis=1))
    prior = np.sum((point - centre) ** 2) / (2 * PRIOR_SD**2)
    return float(np.sum(log_norm) - np.sum(logits * target) + prior)


def _derivatives(point: Floats, inputs: Floats, target: Floats, centre: Floats) -> tuple[Floats, Floats]:
    p = softmax(_logits(point, inputs))
    error = p - target
    mean = np.sum(p * inputs, axis=1, keepdims=True)
    gradient = np.concatenate([[np.sum(error * inputs)], error.sum(axis=0)]) + (point - centre) / PRIOR_SD**2
    hessian = np.empty((len(point), len(point)))
    hessian[0, 0] = np.sum(p * (inputs - mean) ** 2)
    hessian[0, 1:] = hessian[1:, 0] = np.sum(p * (inputs - mean), axis=0)
    hessian[1:, 1:] = np.diag(p.sum(axis=0)) - p.T @ p
    return gradient, hessian + np.eye(len(point)) / PRIOR_SD**2
