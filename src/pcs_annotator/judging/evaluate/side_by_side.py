"""Methods side by side on the same gold rows, splits and resamples: their figures, tests against the first, and curves.

Curves for the report (reliability, ROC, error against coverage) are made from gold rows judged by fits that did not see
them, and thinned to as many points as a plot can show.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pcs_annotator.base.display import brief
from pcs_annotator.core.arrays import CODE, Codes, Floats, Integers
from pcs_annotator.core.result_table import Figure, number_of
from pcs_annotator.core.task import MANY_LABELS
from pcs_annotator.core.weights import Interval
from pcs_annotator.judging.evaluate.methods import Calls
from pcs_annotator.judging.evaluate.scored import FIGURES, Measured, Scored, least_confidence, measure
from pcs_annotator.judging.heldout import HeldOut
from pcs_annotator.judging.metrics import figures as metrics
from pcs_annotator.judging.metrics.bootstrap import WIDENING, interval_around, least_auroc, least_share, resample_counts
from pcs_annotator.judging.metrics.significance import BootstrapTest, holm
from pcs_annotator.judging.promise.thresholds import steps_of

KEPT = ("auroc", "accuracy", "ece_score", "ece_confidence", "auroc_confidence")  # the figures that a run folder keeps
HOLM = {"behind": "holm", "accuracy_behind": "holm_accuracy"}
"""Test against the first method → its p-value adjusted for the number of methods."""
MOST_POINTS, MOST_ROC, MOST_BINS, ROWS_PER_BIN, DIGITS = 200, 6, 10, 12, 5  # of curves
ABOUT_AUROC = (
    "Class AUROC, the paper's, asks whether texts of a label score higher for it than other texts, as a mean over "
    "labels; confidence AUROC asks whether right labels have a higher confidence than wrong ones. 0.5 is "
    "chance, 1 is perfect."
)
NO_CONFIDENCE_AUROC = "Confidence AUROC is missing where nearly all labels are right, or nearly all wrong."
ABOUT_ECE = (
    "ECE is the error above noise: what chance alone would show on these rows, if the confidence were right, is taken "
    "off; it is never below 0."
)
HARD_AND_GRADED = (
    "Graded class AUROC ranks rows by the score, hard class AUROC by the chosen label alone (1 for it, 0 for the "
    "others); a label without log-probabilities has no score, so compare hard with hard: a graded figure against a "
    "hard one flatters the graded one."
)


def about_intervals(resamples: int) -> str:
    """Return what the intervals are about, for the notes of a table."""
    return (
        "95 % intervals are about this way of learning from as many gold rows, judged on new rows like these: from "
        f"{resamples} resamples of the rows (of accuracy, normal), {WIDENING:g} times as wide because other gold rows "
        "would also have learned other weights; of accuracy never narrower than the exact one."
    )


class MethodFigures(NamedTuple):
    """A method, its figures, and the tests of the first method against it; positive differences favour the first."""

    method: str  # its name
    # its figures by name, see `FIGURES`; those that are undefined on these rows are absent
    figures: Mapping[str, metrics.Estimate]
    calls: Calls | None = None  # its calls per item; None where an earlier version did not count them
    graded: bool = False  # whether it uses the log-probabilities of answers
    # the class AUROC of the first method against it, by a paired bootstrap over all splits; None for the first one
    behind: BootstrapTest | None = None
    accuracy_behind: BootstrapTest | None = None  # the same for accuracy
    holm: float | None = None  # p-value of `behind`, adjusted for the number of methods compared with the first
    holm_accuracy: float | None = None  # the same for `accuracy_behind`

    @property
    def auroc(self) -> metrics.Estimate:
        """The class AUROC: macro one-vs-rest, of the raw scores."""
        return self.figures["auroc"]

    @property
    def accuracy(self) -> metrics.Estimate:
        """The share of right labels."""
        return self.figures["accuracy"]

    @property
    def questions(self) -> float | None:
        """Questions per text."""
        return self.calls and self.calls.questions

    def to_dict(self) -> dict[str, Any]:
        """Return what a run folder keeps, as plain values."""
        figures = {name: self.figures.get(name) for name in KEPT}
        tests = {"behind": self.behind, "accuracy_behind": self.accuracy_behind}
        return {
            "method": self.method,
            **{name: found and found.to_dict() for name, found in figures.items()},
            **{name: test and list(test) for name, test in tests.items()},
            "holm": self.holm,
            "holm_accuracy": self.holm_accuracy,
            "questions": self.questions,
            "graded": self.graded,
        }

    def as_evaluated(self) -> dict[str, Any]:
        """Return what `pcs evaluate` says about it, as plain values."""
        calls, tests = self.calls or Calls(0.0, 0.0), {"auroc": self.behind, "accuracy": self.accuracy_behind}
        p_holm = {"auroc": self.holm, "accuracy": self.holm_accuracy}
        against: dict[str, Any] = {
            name: {**test_json(test), "p_holm": p_holm[name]} for name, test in tests.items() if test
        }
        return {
            "method": self.method,
            "calls_per_text": {**calls._asdict(), "total": calls.total},
            "uses_log_probabilities": self.graded,
            "figures": {name: figure_json(self.figures.get(name)) for name in FIGURES},
            "against": against or None,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "MethodFigures":
        """Return what `to_dict` wrote; earlier versions left out some of it."""
        questions = values.get("questions")
        return cls(
            method=values["method"],
            figures={
                name: metrics.Estimate.from_dict(found) for name in KEPT if (found := values.get(name)) is not None
            },
            calls=None if questions is None else Calls(questions, 0.0),
            graded=values.get("graded", False),
            behind=_test(values.get("behind")),
            accuracy_behind=_test(values.get("accuracy_behind")),
            holm=values.get("holm"),
            holm_accuracy=values.get("holm_accuracy"),
        )


def _test(values: Sequence[Any] | None) -> BootstrapTest | None:
    if values is None:
        return None
    difference, interval, p_value, n = values
    return BootstrapTest(difference, Interval(*interval), p_value, n)


def side_by_side(methods: Sequence[Scored], *, of_a_run: bool = False) -> list[MethodFigures]:
    """Return the figures of methods on the same rows and resamples, the others tested against the first.

    `of_a_run` leaves out figures that a run folder does not keep.
    """
    gold, how = methods[0].gold, methods[0].how

    def figures(counts: Floats) -> dict[tuple[int, str], Floats]:
        return {(at, name): values for at, one in enumerate(methods) for name, values in one.figures(counts).items()}

    measured = measure(figures, gold, how.resamples, how.seed)
    found = []
    for at, one in enumerate(methods):
        own = {name: measured[at, name] for name in (KEPT if of_a_run else FIGURES)}
        tests: dict[str, Any] = {}
        if at:
            tests["behind"] = measured[0, "auroc"].minus(own["auroc"], len(gold))
            tests["accuracy_behind"] = measured[0, "accuracy"].minus(own["accuracy"], len(gold))
        entrant = one.entrant
        found.append(
            MethodFigures(
                method=entrant.name, figures=_estimates(own, gold), calls=entrant.calls, graded=entrant.graded, **tests
            )
        )
    return with_holm(found)


def _estimates(measured: Mapping[str, Measured], gold: Codes) -> dict[str, metrics.Estimate]:
    """Return a method's figures with their intervals; those that are undefined are left out."""
    rows = len(gold)
    least = dict.fromkeys(FIGURES, least_share(rows)) | dict.fromkeys(("auroc", "auroc_hard"), least_auroc(gold))
    least["auroc_confidence"] = least_confidence(measured["accuracy"].value, rows)
    found = {name: metrics.estimate_of(*one, rows, least[name]) for name, one in measured.items()}
    found["accuracy"] = metrics.accuracy_of(min(measured["accuracy"].value, 1.0), rows)
    return {name: estimate for name, estimate in found.items() if estimate is not None}


def with_holm(figures: Sequence[MethodFigures]) -> list[MethodFigures]:
    """Return the figures with p-values adjusted for the number of methods compared with the first."""
    p_values = [adjusted([getattr(one, test) for one in figures]) for test in HOLM]
    changes: list[dict[str, Any]] = [dict(zip(HOLM.values(), own, strict=True)) for own in zip(*p_values, strict=True)]
    return [one._replace(**change) for one, change in zip(figures, changes, strict=True)]


def adjusted(tests: Sequence[BootstrapTest | None]) -> list[float | None]:
    """Return p-values adjusted for their number (Holm, 1979); None where there is no test."""
    found = iter(holm([test.p_value for test in tests if test]))
    return [next(found) if test else None for test in tests]


def cell_of(found: metrics.Estimate | BootstrapTest | None, unit: float = 1.0) -> Figure | None:
    """Return a figure or a difference as the content of a cell, times a unit."""
    if found is None:
        return None
    low, high = found.interval
    return Figure(unit * found[0], Interval(unit * low, unit * high))


def figure_json(found: metrics.Estimate | None) -> dict[str, Any] | None:
    """Return a figure as plain values."""
    if found is None:
        return None
    low, high = map(number_of, found.interval)
    return {"value": number_of(found.value), "low": low, "high": high, "n": found.n}


def test_json(test: BootstrapTest) -> dict[str, float]:
    """Return a paired test as plain values."""
    ends = test.interval
    return {"difference": test.difference, "low": ends.low, "high": ends.high, "p_value": test.p_value}


class Roc(NamedTuple):
    """One label against all others."""

    label: str  # its name
    auroc: metrics.Estimate  # area under the curve; `n` counts the rows of this label
    # share of other rows that score at or above each threshold, rising; empty for rarer labels
    false_alarms: Sequence[float]
    hits: Sequence[float]  # share of this label's rows that do


class Risk(NamedTuple):
    """The error among the most confident rows, with its exact 95 % interval at every coverage."""

    coverage: Sequence[float]
    risk: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]

    def __repr__(self) -> str:
        return brief(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """The curves of a report."""

    rows: int  # number of gold rows behind them
    raw: Sequence[metrics.ReliabilityBin]  # the reliability diagram of the Perceived Confidence Score
    calibrated: Sequence[
        metrics.ReliabilityBin
    ]  # the same of the calibrated confidence; empty when nothing is calibrated
    # every label that some but not all rows have, most frequent first; the first few with their curve
    roc: Sequence[Roc]
    risk: Risk  # error against coverage

    __repr__ = brief


def curves_of(trial: HeldOut, *, calibrated: bool = True, resamples: int = 200, seed: int = 0) -> Curves:
    """Return the curves of gold rows that were judged by fits that did not see them, with resampled intervals."""
    rows = len(trial.gold)
    bins = int(np.clip(rows // ROWS_PER_BIN, 3, MOST_BINS))
    counts = np.bincount(trial.gold, minlength=len(trial.labels))
    present = [int(label) for label in np.argsort(-counts, kind="stable") if 0 < counts[label] < rows][:MANY_LABELS]
    steps = steps_of(trial.judged)
    kept = _kept(len(steps.rows))
    seen, wrong = steps.rows[kept], steps.wrong[kept]
    low, high = np.array([metrics.exact_interval(*pair) for pair in zip(wrong.tolist(), seen.tolist(), strict=True)]).T
    return Curves(
        rows=rows,
        raw=_rounded_bins(metrics.reliability(trial.scores, trial.gold, bins)),
        calibrated=_rounded_bins(metrics.reliability(trial.probabilities, trial.gold, bins)) if calibrated else [],
        roc=[_roc_of(trial, label, place < MOST_ROC, resamples, seed) for place, label in enumerate(present)],
        risk=Risk(*(_rounded(values) for values in (seen / rows, wrong / seen, low, high))),
    )


def _roc_of(trial: HeldOut, label: int, drawn: bool, resamples: int, seed: int) -> Roc:
    scores, positive = trial.scores[:, label], trial.gold == label
    codes: Codes = positive.astype(CODE)
    both = np.stack([-scores, scores], axis=1)  # either side of a binary question ranks the same
    value = metrics.auroc(both, codes)
    found = np.concatenate([metrics.auroc_on(both, codes, times) for times in resample_counts(codes, resamples, seed)])
    interval = _ends(interval_around(value, found, least_auroc(codes), WIDENING))
    roc = Roc(trial.labels[label], metrics.Estimate(round(value, DIGITS), interval, int(positive.sum())), [], [])
    if not drawn:
        return roc
    order = np.argsort(-scores, kind="stable")
    ends = metrics.ends_of_runs(scores[order])
    hits = np.append(0.0, np.cumsum(positive[order])[ends] / positive.sum())
    false_alarms = np.append(0.0, np.cumsum(~positive[order])[ends] / (~positive).sum())
    kept = _kept(len(hits))
    return roc._replace(false_alarms=_rounded(false_alarms[kept]), hits=_rounded(hits[kept]))


def _kept(points: int) -> Integers:
    """Return which points to keep, the first and the last among them."""
    return np.unique(np.linspace(0, points - 1, min(points, MOST_POINTS)).round()).astype(np.intp)


def _rounded(values: Floats) -> list[float]:
    return [float(value) for value in np.round(values, DIGITS)]


def _ends(interval: Interval) -> Interval:
    return Interval(*(round(end, DIGITS) for end in interval))


def _rounded_bins(bins: Sequence[metrics.ReliabilityBin]) -> list[metrics.ReliabilityBin]:
    return [
        metrics.ReliabilityBin(
            round(one.confidence, DIGITS), round(one.accuracy, DIGITS), one.rows, _ends(one.interval)
        )
        for one in bins
    ]
