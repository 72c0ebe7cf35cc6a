"""From a score to the probability that the label is right."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, get_args

import numpy as np

from pcs_annotator.base.errors import MismatchError, UnknownNameError
from pcs_annotator.base.plain import from_plain, to_plain
from pcs_annotator.core.arrays import Codes, Floats, frozen
from pcs_annotator.core.task import MANY_LABELS
from pcs_annotator.core.votes import positions_of
from pcs_annotator.core.weights import Weights
from pcs_annotator.judging.number_model import NumberModel, fit_numbers
from pcs_annotator.judging.score import softmax

CalibrationMethod = Literal["softmax", "temperature", "none"]

FLOOR = 0.02
SLOPE_SD = 0.5
# Models have favourite labels. With 0.5, `lr` on graded votes and 100 gold rows was 5 points too unsure.
OFFSET_SD = 1.0
# With 50 gold rows a model of the texts is mostly noise; with 300, even a narrow prior lets it have its say.
READING_SD = 0.3
LEAST_READING = 0.02
NAMED = 10.0
ROWS_TO_CALL_CALIBRATED = 50
PSEUDO_ROWS_PER_MISSING_ROW = 1 / 6
NEWTON_STEPS = 50
# A power of 0 would make all labels equally probable, and with it the label itself unknown.
POWERS = (0.05, 5.0)
HALVINGS = 40


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Calibrator:
    r"""Turns scores into probabilities: $\mathrm{softmax}_k(a\log\frac{S_k+.02}{1+.02K}+c\log T_k+b_k)$.

    $T_k$ is what a model of the texts says about the label, if there is one.
    With the method `none` it leaves scores as they are, so the result must not be called calibrated.
    """

    labels: Sequence[str] = ()  # the labels that the offsets belong to
    slope: float = 1.0  # a; below 1 when scores are overconfident
    offsets: Floats = field(default_factory=lambda: np.zeros(0))  # b, one per label; 0 for the method `temperature`
    reading: float = 0.0  # c; 0 if texts say nothing that votes do not
    # what a label gains by being named at all, out of very many; scores then count by log-odds; None for few labels
    named: float | None = None
    shrunk: float = 0.0  # how far probabilities are moved towards 1/K; above 0 when there were few gold rows
    method: str = "softmax"  # what was learned, a `CalibrationMethod`
    numbers: NumberModel | None = None  # of the method `number`: the distribution of a number; None for other labels

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", tuple(self.labels))
        object.__setattr__(self, "offsets", frozen(np.asarray(self.offsets), np.float64))

    @property
    def rising(self) -> bool:
        """Whether a label's strength never falls when its score rises; not if high scores were mostly wrong."""
        return self.slope >= 0 and (self.named or 0) >= 0

    def apply(self, scores: Floats, labels: Sequence[str], read: Floats | None = None) -> Floats:
        """Return the probability of every label, `[item, label]`; `labels` names the columns."""
        if self.method == "none":
            return scores
        if self.numbers is not None:
            return (1 - self.shrunk) * self.numbers.distribution(scores, labels) + self.shrunk / len(labels)
        found = softmax(self.strengths(scores, labels, read))
        return (1 - self.shrunk) * found + self.shrunk / len(labels)

    def strengths(self, scores: Floats, labels: Sequence[str], read: Floats | None = None) -> Floats:
        """Return a number per label, `[…, label]`, that depends on its own score alone; the strongest is most probable.

        `read` is what a model of the texts says about the same labels.
        It is the logarithm of the probability before it is shrunk, up to what all labels share.
        """
        if self.method == "none":
            return scores
        try:
            order = positions_of(labels, self.labels, "calibrated label")
        except UnknownNameError as error:
            raise MismatchError(f"{error}; fit again on these votes") from error
        if self.named is not None:
            odds, named = _of_many(scores)
            return np.asarray(self.slope * odds + self.named * named)
        strengths = np.asarray(self.slope * _log_scores(scores) + self.offsets[order])
        return strengths if read is None or not self.reading else strengths + self.reading * read

    def raised_to(self, power: float) -> "Calibrator":
        """Return the calibrator whose probabilities are these to a power, divided by their sum, and shrunk alike."""
        named = None if self.named is None else power * self.named
        slopes = {name: power * getattr(self, name) for name in ("slope", "offsets", "reading")}
        return replace(self, named=named, **slopes)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: those that the method has."""
        usual = Calibrator(method=self.method)
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return {"method": self.method} | {
            name: to_plain(value) for name, value in values.items() if not np.array_equal(value, getattr(usual, name))
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Calibrator":
        """Return the calibrator that `to_dict` wrote."""
        if values["method"] not in (*get_args(CalibrationMethod), "number"):
            raise MismatchError(
                f"this version cannot read the calibration {values['method']!r}: pcs fit learns another"
            )
        numbers = values.get("numbers")
        return cls(**{**values, "numbers": numbers and from_plain(NumberModel, numbers)})


UNCALIBRATED = Calibrator(method="none")  # leaves scores as they are


def fit_calibrator(  # what is known about the rows, one argument each
    scores: Floats,
    gold: Codes,
    labels: Sequence[str],
    method: str = "softmax",
    gold_rows: int = 0,
    read: Floats | None = None,
) -> Calibrator:
    """Return a calibrator learned from the scores of gold rows, `[item, label]`, by weights fitted without these rows.

    The method is `softmax` (one slope and an offset per label, kept near 1 and 0 by a prior), `temperature` (the slope
    only) or `none` (the scores themselves). Of very many labels most have no gold row, so what is learned is the slope,
    and how much more probable labels are that some answer names. `gold_rows` is how many there are, if these are only a
    part of them. `read` is what a model of the texts that was learned without these rows says about them.
    """
    if method == "number":
        shrunk = shrinkage(gold_rows or len(gold))
        return Calibrator(method=method, numbers=fit_numbers(scores, gold, labels), shrunk=shrunk)
    if method not in get_args(CalibrationMethod):
        known = ", ".join(get_args(CalibrationMethod))
        raise UnknownNameError(f"no calibration method is called {method!r}; known: {known}")
    if method == "none":
        return UNCALIBRATED
    if len(labels) > MANY_LABELS and read is None:
        slope, named = _most_probable(_of_many(scores), gold, with_offsets=False)[:2].tolist()
        offsets, shrunk = np.zeros(len(labels)), shrinkage(gold_rows or len(gold))
        return Calibrator(labels=labels, slope=slope, named=named, offsets=offsets, shrunk=shrunk, method="temperature")
    inputs = [_log_scores(scores), *([] if read is None else [read])]
    found = _most_probable(inputs, gold, with_offsets=method != "temperature")
    if read is not None and found[1] < LEAST_READING:
        found = np.insert(_most_probable(inputs[:1], gold, with_offsets=method != "temperature"), 1, 0.0)
    slopes, offsets = found[: len(inputs)].tolist(), found[len(inputs) :]
    shrunk = shrinkage(gold_rows or len(gold))
    texts = {} if read is None else {"reading": slopes[1]}
    return Calibrator(labels=labels, slope=slopes[0], offsets=offsets, shrunk=shrunk, method=method, **texts)


def slopes_of(scores: Floats, others: Sequence[Floats], gold: Codes) -> Floats:
    """Return how much each of some arrays `[item, label]` says about gold beside the scores, as their slopes."""
    return _most_probable([_log_scores(scores), *others], gold, with_offsets=True)[1 : 1 + len(others)]


def shrinkage(gold_rows: int) -> float:
    """Return how far confidence is moved towards 1/K, for K labels, because there are few gold rows; 0 from 50 on.

    It is as if a row had been seen for every six that are missing to 50, and those rows said every label alike. With 20
    gold rows and two labels no confidence exceeds 0.9. Neither the label nor the order of rows by confidence changes.
    """
    pseudo_rows = PSEUDO_ROWS_PER_MISSING_ROW * max(ROWS_TO_CALL_CALIBRATED - gold_rows, 0)
    return pseudo_rows / (gold_rows + pseudo_rows) if pseudo_rows else 0.0


def tempered(  # what is known about the rows, one argument each
    calibrator: Calibrator, whole: Floats, part: Floats, gold: Codes, labels: Sequence[str], read: Floats | None = None
) -> Calibrator:
    """Return the calibrator for scores from a part of the votes: with its probabilities to a power.

    It chooses the same label for the same scores. The power is the one that fits the scores of gold rows from a part of
    their votes best, relative to the one that fits those from all votes best, which the calibrator was learned from.
    """
    if calibrator.method == "none":
        return calibrator
    before, after = (_best_power(calibrator.apply(scores, labels, read), gold) for scores in (whole, part))
    return calibrator.raised_to(after / before)


def _best_power(probabilities: Floats, gold: Codes) -> float:
    """Return the power, with the prior of a slope, N(1, .5²); the loss is convex, so bisection finds its minimum."""
    logs = np.log(probabilities)
    own = logs[np.arange(len(gold)), gold].sum()
    low, high = POWERS
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        slope = np.sum(softmax(middle * logs) * logs) - own + (middle - 1) / SLOPE_SD**2
        low, high = (low, middle) if slope > 0 else (middle, high)
    return (low + high) / 2


def method_for(weights: Weights, method: str) -> str:
    """Return how to calibrate the scores of some weights.

    Weights that read log-odds come with offsets learned from the same gold. To learn these twice only adds noise, so
    `softmax` is left with the slope.
    """
    learned = weights.evidence is not None and weights.evidence.reads != "shares" and weights.evidence.log_prior.any()
    return "temperature" if learned and method == "softmax" else method


def _most_probable(inputs: Sequence[Floats], gold: Codes, *, with_offsets: bool) -> Floats:
    """Return a slope for each input `[item, label]`, the scores first, and the offsets, 0 if they are not learned.

    The priors are a ~ N(1, .5²) for scores, c ~ N(0, .3²) for texts, and b ~ N(0, 1) for offsets. The posterior is
    log-concave, so Newton's method with step halving ends at its only maximum.
    """
    labels = inputs[0].shape[1]
    target, prior = np.eye(labels)[gold], _Prior(len(inputs), labels)
    learned = len(inputs) + (labels if with_offsets else 0)
    point = prior.centre
    value, chances = _loss(point, inputs, target, prior)
    for _ in range(NEWTON_STEPS):
        gradient, hessian = _derivatives(chances, inputs, target, with_offsets=with_offsets)
        gradient += (prior.precision * (point - prior.centre))[:learned]
        hessian.flat[:: learned + 1] += prior.precision[:learned]
        step = np.zeros_like(point)
        step[:learned] = np.linalg.solve(hessian, gradient)
        if float(gradient @ step[:learned]) < 1e-12:
            break
        size = 1.0
        while (reached := _loss(point - size * step, inputs, target, prior))[0] > value and size > 1e-6:
            size /= 2
        point, (value, chances) = point - size * step, reached
    return point


class _Prior:
    """The prior of slopes and offsets."""

    def __init__(self, slopes: int, labels: int) -> None:
        self.centre = np.zeros(slopes + labels)
        self.centre[0] = 1.0
        spread = [SLOPE_SD, *[READING_SD] * (slopes - 1)]
        self.precision = np.concatenate([np.array(spread) ** -2.0, np.full(labels, OFFSET_SD**-2)])


def _of_many(scores: Floats) -> list[Floats]:
    """Return what very many labels are calibrated by: the log-odds of scores, and which labels some answer names.

    With logarithms instead, expected calibration error was three times as large where the right label was often not
    asked about. The second is scaled, so that the prior for texts leaves room for it.
    """
    return [np.log((scores + FLOOR) / (1 - scores + FLOOR)), NAMED * (scores > 0)]


def _log_scores(scores: Floats) -> Floats:
    return np.asarray(np.log((scores + FLOOR) / (1 + FLOOR * scores.shape[-1])))


# These two take most of the time of a fit, so what both need is computed once, and reductions are methods of arrays.
def _loss(point: Floats, inputs: Sequence[Floats], target: Floats, prior: _Prior) -> tuple[float, Floats]:
    """Return the loss and the probability of every label."""
    logits = point[0] * inputs[0] + point[len(inputs) :]
    for slope, one in zip(point[1:], inputs[1:], strict=False):
        logits += slope * one
    top = logits.max(axis=1, keepdims=True)
    raised = np.exp(logits - top)
    total = raised.sum(axis=1, keepdims=True)
    away = (prior.precision * (point - prior.centre) ** 2).sum() / 2
    return float((top + np.log(total)).sum() - (logits * target).sum() + away), raised / total


def _derivatives(
    chances: Floats, inputs: Sequence[Floats], target: Floats, *, with_offsets: bool
) -> tuple[Floats, Floats]:
    """Return gradient and Hessian of the loss, without the prior."""
    error, slopes = chances - target, len(inputs)
    size = slopes + (chances.shape[1] if with_offsets else 0)
    apart = [one - (chances * one).sum(axis=1, keepdims=True) for one in inputs]
    gradient, hessian = np.empty(size), np.empty((size, size))
    if with_offsets:
        gradient[slopes:] = error.sum(axis=0)
        hessian[slopes:, slopes:] = np.diag(chances.sum(axis=0)) - chances.T @ chances
    for place, (one, from_mean) in enumerate(zip(inputs, apart, strict=True)):
        weighed = chances * from_mean
        gradient[place] = (error * one).sum()
        if with_offsets:
            hessian[place, slopes:] = hessian[slopes:, place] = weighed.sum(axis=0)
        for other in range(place + 1):
            hessian[place, other] = hessian[other, place] = (weighed * apart[other]).sum()
    return gradient, hessian
