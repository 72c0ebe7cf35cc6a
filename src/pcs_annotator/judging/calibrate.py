"""From a score to the probability that the label is right; of a number, to its distribution."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from pcs_annotator.base.errors import MismatchError, UnknownNameError
from pcs_annotator.base.plain import from_plain, to_plain
from pcs_annotator.core.arrays import Codes, Floats, Integers, frozen
from pcs_annotator.core.numbers import values_of
from pcs_annotator.core.task import MANY_LABELS
from pcs_annotator.core.votes import positions_of
from pcs_annotator.core.weights import Weights
from pcs_annotator.judging.score import softmax
from pcs_annotator.judging.solver import SoftmaxFit, fit_softmax

CalibrationMethod = Literal["softmax", "none"]

FLOOR, LEAST_SCORE = 0.02, 1e-6  # the least of a posterior is above the slack of early stops, for its logarithm
SLOPE_SD = 0.5
# Models have favourite labels. With 0.5, `lr` on graded votes and 100 gold rows was 5 points too unsure.
OFFSET_SD = 1.0
# With 50 gold rows a model of the texts is mostly noise; with 300, even a narrow prior lets it have its say.
READING_SD = 0.3
LEAST_READING = 0.02
NAMED = 10.0
ROWS_TO_CALL_CALIBRATED = 50
PSEUDO_ROWS_PER_MISSING_ROW = 1 / 6
# A power of 0 would make all labels equally probable, and with it the label itself unknown.
POWERS = (0.05, 5.0)
QUANTILES = 199  # how many errors of gold rows stand for all of them
# How much errors of rows without spread weigh against the spread of others, in mean errors; 1e9: spread says nothing.
LEAST_SCALES = (0.25, 0.5, 1.0, 2.0, 4.0, 1e9)
ROUNDING = 1e-9  # far above the rounding of sums


class NumberModel(NamedTuple):
    """What errors of numbers look like."""

    errors: tuple[float, ...]  # quantiles of gold less the middle, divided by the scale of the row
    least: float  # the scale of a row whose answers are all the same
    mean: bool  # whether the middle is the mean of the answers, and not their median

    def distribution(self, scores: Floats, labels: Sequence[str]) -> Floats:
        """Return the probability of every label, `[item, label]`: the errors of gold rows around the row's middle."""
        values = values_of(tuple(labels))
        middle, spread = _middle(scores, values, mean=self.mean), _spread(scores, values)
        points = middle[:, np.newaxis] + np.hypot(self.least, spread)[:, np.newaxis] * np.array(self.errors)
        order = np.argsort(values)
        between = (values[order][1:] + values[order][:-1]) / 2
        places: Integers = order[np.searchsorted(between, points)]
        chances = np.zeros_like(scores)
        np.add.at(chances, (np.arange(len(scores))[:, np.newaxis], places), 1 / len(self.errors))
        return chances


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Calibrator:
    r"""Turns scores into probabilities: $\mathrm{softmax}_k(a\log\frac{S_k+.02}{1+.02K}+c\log T_k+b_k)$.

    $T_k$ is what a model of the texts says about the label, if there is one. Scores of the method `joint` are a
    posterior, learned together with c and b; so a is 1, and nothing is added to them.
    With the method `none` it leaves scores as they are, so the result must not be called calibrated.
    """

    labels: Sequence[str] = ()  # the labels that the offsets belong to
    slope: float = 1.0  # a; below 1 when scores are overconfident
    offsets: Floats = field(default_factory=lambda: np.zeros(0))  # b, one per label
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

    def apply(self, scores: Floats, labels: Sequence[str], log_probs: Floats | None = None) -> Floats:
        """Return the probability of every label, `[item, label]`; `labels` names the columns."""
        if self.method == "none":
            return scores
        if self.numbers is not None:
            return (1 - self.shrunk) * self.numbers.distribution(scores, labels) + self.shrunk / len(labels)
        fit = softmax(self.strengths(scores, labels, log_probs))
        return (1 - self.shrunk) * fit + self.shrunk / len(labels)

    def strengths(self, scores: Floats, labels: Sequence[str], log_probs: Floats | None = None) -> Floats:
        """Return the logarithm of every label's probability, `[…, label]`, before it is shrunk, up to a constant.

        So it depends on the label's own score alone. `read` is what a model of the texts says about the same labels.
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
        logs = np.log(scores + LEAST_SCORE) if self.method == "joint" else _log_scores(scores)
        strengths = np.asarray(self.slope * logs + self.offsets[order])
        return strengths if log_probs is None or not self.reading else strengths + self.reading * log_probs

    def raised_to(self, power: float) -> "Calibrator":
        """Return the calibrator whose probabilities are these to a power, divided by their sum, and shrunk alike."""
        named = None if self.named is None else power * self.named
        slopes = {name: power * getattr(self, name) for name in ("slope", "offsets", "reading")}
        return replace(self, named=named, **slopes)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: those that the method has."""
        usual = Calibrator(method=self.method)
        values = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return {"method": self.method} | {
            name: to_plain(value) for name, value in values.items() if not np.array_equal(value, getattr(usual, name))
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Calibrator":
        """Return the calibrator that `to_dict` wrote."""
        if values["method"] not in (*get_args(CalibrationMethod), "joint", "number"):
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
    log_probs: Floats | None = None,
) -> Calibrator:
    """Return a calibrator learned from the scores of gold rows, `[item, label]`, by weights fitted without these rows.

    The method is `softmax` (one slope and an offset per label) or `none` (the scores themselves). Of very many labels
    most have no gold row, so what is learned is the slope, and how much more probable labels are that some answer
    names. `gold_rows` is how many there are, if these are only a part of them; `log_probs`, what a model of the texts
    that was learned without these rows says about them.
    """
    if method == "none":
        return UNCALIBRATED
    shrunk = shrinkage(gold_rows or len(gold))
    if method == "number":
        return Calibrator(method=method, numbers=fit_numbers(scores, gold, labels), shrunk=shrunk)
    if len(labels) > MANY_LABELS and log_probs is None:
        fit = _fitted(_of_many(scores), gold, offsets=0.0)
        slope, named = fit.slopes.tolist()
        return Calibrator(labels=labels, slope=slope, named=named, offsets=fit.offsets, shrunk=shrunk)
    inputs = [_log_scores(scores), *([] if log_probs is None else [log_probs])]
    fit = _fitted(inputs, gold)
    if log_probs is not None and fit.slopes[1] < LEAST_READING:
        fit = _fitted(inputs[:1], gold)
    slope, reading = [*fit.slopes.tolist(), 0.0][:2]
    return Calibrator(labels=labels, slope=slope, offsets=fit.offsets, reading=reading, shrunk=shrunk)


def slopes_of(scores: Floats, others: Sequence[Floats], gold: Codes) -> Floats:
    """Return how much each of some arrays `[item, label]` says about gold beside the scores, as their slopes."""
    return _fitted([_log_scores(scores), *others], gold).slopes[1:]


def shrinkage(gold_rows: int) -> float:
    """Return how far confidence is moved towards 1/K, for K labels, because there are few gold rows; 0 from 50 on.

    It is as if a row had been seen for every six that are missing to 50, and those rows said every label alike. With 20
    gold rows and two labels no confidence exceeds 0.9. Neither the label nor the order of rows by confidence changes.
    """
    pseudo_rows = PSEUDO_ROWS_PER_MISSING_ROW * max(ROWS_TO_CALL_CALIBRATED - gold_rows, 0)
    return pseudo_rows / (gold_rows + pseudo_rows) if pseudo_rows else 0.0


def tempered(  # what is known about the rows, one argument each
    calibrator: Calibrator,
    whole: Floats,
    part: Floats,
    gold: Codes,
    labels: Sequence[str],
    log_probs: Floats | None = None,
) -> Calibrator:
    """Return the calibrator for scores from a part of the votes: with its probabilities to a power.

    It chooses the same label for the same scores. The power fits the scores of gold rows from a part of their votes
    best, relative to the one that fits those from all votes best, which the calibrator was learned from.
    """
    if calibrator.method == "none":
        return calibrator
    before, after = (_best_power(calibrator.apply(scores, labels, log_probs), gold) for scores in (whole, part))
    return calibrator.raised_to(after / before)


def _best_power(probabilities: Floats, gold: Codes) -> float:
    """Return the power, with the prior of a slope, N(1, .5²)."""
    fit = fit_softmax([np.log(probabilities)], gold, np.ones(1), np.array([SLOPE_SD**-2]))
    return float(np.clip(fit.slopes[0], *POWERS))


def joint_calibrator(weights: Weights, gold_rows: int, method: str) -> Calibrator | None:
    """Return the calibrator that was learned together with weights; None if another is to be learned, or none."""
    evidence = weights.evidence
    if evidence is None or evidence.text_slope is None or method == "none":
        return None
    return Calibrator(
        labels=evidence.labels,
        offsets=evidence.text_offsets,
        reading=evidence.text_slope,
        shrunk=shrinkage(gold_rows),
        method="joint",
    )


def _fitted(inputs: Sequence[Floats], gold: Codes, offsets: float = OFFSET_SD**-2) -> SoftmaxFit:
    """Return a slope for each input `[item, label]`, the scores first, and offsets, whose precision is `offsets`.

    The priors are a ~ N(1, .5²) for scores, c ~ N(0, .3²) for texts, and b ~ N(0, 1) for offsets.
    """
    others = len(inputs) - 1
    precision = np.array([SLOPE_SD, *[READING_SD] * others]) ** -2.0
    return fit_softmax(inputs, gold, np.array([1.0, *[0.0] * others]), precision, offsets=offsets)


def _of_many(scores: Floats) -> list[Floats]:
    """Return what very many labels are calibrated by: the log-odds of scores, and which labels some answer names.

    With logarithms instead, expected calibration error was three times as large where the right label was often not
    asked about. The second is scaled, so that the prior for texts leaves room for it.
    """
    return [np.log((scores + FLOOR) / (1 - scores + FLOOR)), NAMED * (scores > 0)]


def _log_scores(scores: Floats) -> Floats:
    return np.asarray(np.log((scores + FLOOR) / (1 + FLOOR * scores.shape[-1])))


def fit_numbers(scores: Floats, gold: Codes, labels: Sequence[str]) -> NumberModel:
    """Learn from gold rows: mean or median, whichever is nearer to gold, and how errors grow with the spread."""
    values = values_of(tuple(labels))
    truth, spread = values[gold], _spread(scores, values)
    off = {mean: truth - _middle(scores, values, mean=mean) for mean in (False, True)}
    mean = bool(np.abs(off[True]).mean() < np.abs(off[False]).mean())
    typical = max(float(np.abs(off[mean]).mean()), np.diff(np.sort(values)).min() / 4)
    # the profile likelihood of a two-sided exponential, which far errors do not rule
    fits = []
    for times in LEAST_SCALES:
        scale = np.hypot(times * typical, spread)
        fits.append((np.log(np.abs(off[mean] / scale).mean() + 1e-12) + np.log(scale).mean(), times * typical))
    least = min(fits)[1]
    shares = (np.arange(QUANTILES) + 0.5) / QUANTILES
    errors = np.quantile(off[mean] / np.hypot(least, spread), shares, method="hazen")
    return NumberModel(tuple(errors.round(9).tolist()), least, mean)


def _middle(scores: Floats, values: Floats, *, mean: bool) -> Floats:
    """Return the mean of the answers to every row, or their median: half way between two middle ones."""
    if mean:
        return np.asarray(scores @ values / scores.sum(axis=1))
    order = np.argsort(values)
    ends = []
    for direction in (order, order[::-1]):
        up_to = np.cumsum(scores[:, direction], axis=1)
        ends.append(values[direction][(up_to >= 0.5 * up_to[:, -1:] - ROUNDING).argmax(axis=1)])
    return np.asarray((ends[0] + ends[1]) / 2)


def _spread(scores: Floats, values: Floats) -> Floats:
    """Return the mean absolute distance of the answers from their median, for every row."""
    middle = _middle(scores, values, mean=False)
    return np.asarray((scores * np.abs(values - middle[:, np.newaxis])).sum(axis=1) / scores.sum(axis=1))
