"""A method's results on gold rows that its fits did not see: how rows are split, scored and resampled."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np

from pcs_annotator.base.errors import UndefinedMetric
from pcs_annotator.base.fields import setting
from pcs_annotator.core.arrays import CODE, Codes, Floats, Mask
from pcs_annotator.core.gold_codes import UNLABELLED
from pcs_annotator.core.result_table import Figure, number_of
from pcs_annotator.core.votes import Votes
from pcs_annotator.core.weights import Interval
from pcs_annotator.judging.evaluate.methods import Calls, Entrant
from pcs_annotator.judging.fit_weights import in_canonical_order
from pcs_annotator.judging.heldout import CrossFit, Splits
from pcs_annotator.judging.label_shape import ONE, LabelShape
from pcs_annotator.judging.metrics import figures as metrics
from pcs_annotator.judging.metrics.significance import (
    WIDENING,
    BootstrapTest,
    bootstrap_test,
    holm,
    least_auroc,
    least_share,
    resample_counts,
)
from pcs_annotator.judging.score import choose

K = TypeVar("K", bound=Hashable)

COVERAGES = (0.5, 0.8)
TARGETS = (0.9, 0.95)
FIGURES: Mapping[str, str] = {
    "auroc": "Class AUROC",
    "auroc_hard": "Class AUROC hard",
    "auroc_confidence": "Confidence AUROC",
    "accuracy": "Accuracy",
    "macro_f1": "Macro F1",
    "ece_score": "ECE score",
    "ece_confidence": "ECE calibrated",
    "brier": "Brier",
    "aurc": "AURC",
    "accuracy_at_50": "Accuracy at 50 %",
    "accuracy_at_80": "Accuracy at 80 %",
    "review_share_90": "Review for 90 %",
    "review_share_95": "Review for 95 %",
}
"""The figures, by name, and their titles.

The class AUROC and `ece_score` are of the raw score; `auroc_hard`, `accuracy` and `macro_f1` of the label: the most
probable one for methods that learn from gold, else that with the highest score; the others of the calibrated
probability. The confidence AUROC is nan where all labels of a split are right, or all wrong.
"""
MOST_CELLS = 1 << 21  # cells of tables held at a time, so that memory stays small with many labels and resamples

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
        "95 % intervals are for this way of learning from as many gold rows, judged on new rows like these: from "
        f"{resamples} resamples of the rows (of accuracy, normal), {WIDENING:g} times as wide because other gold rows "
        "would also have learned other weights; of accuracy never narrower than the exact one."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Splitting:
    """How gold rows are split and resampled.

    Attributes:
        folds: Folds per split.
        repeats: Random splits to average over; default: as many as a fit makes, up to 3.
        resamples: Bootstrap resamples for each interval and test.
        seed: Random seed for splits and resamples; later splits use the following numbers.
    """

    folds: int = setting(5, "--folds N", least=2, most=100)
    repeats: int | None = setting(None, "--repeats N", least=1, most=100)
    resamples: int = setting(2000, "--resamples N", least=20, most=100_000)
    seed: int = setting(0, "--seed N")

    def seeds(self, rows: int) -> tuple[int, ...]:
        """Return the seed of every split of so many rows."""
        return tuple(range(self.seed, self.seed + Splits(repeats=self.repeats).turns(rows)))

    def to_dict(self, rows: int) -> dict[str, Any]:
        """Return what results on so many rows say about it, as plain values."""
        return {"folds": self.folds, "seeds": list(self.seeds(rows)), "resamples": self.resamples}


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationOptions(Splitting):
    """How to compare methods."""

    calibration: str = "softmax"  # name of the calibration method
    rewritten: AbstractSet[str] = frozenset()  # relations that a model writes, so that every variant cost a call
    order: Sequence[str] = ()  # the labels from the lowest to the highest; empty if they have no order

    @property
    def splits(self) -> Splits:
        """How gold rows are divided."""
        return Splits(folds=self.folds, seed=self.seed, calibration=self.calibration, repeats=self.repeats)

    @property
    def shape(self) -> LabelShape:
        """What the labels are beside names."""
        return LabelShape.of("scale" if self.order else "one", self.order)


def labelled_rows(votes: Votes, gold: Codes, folds: int) -> tuple[Votes, Codes]:
    """Return the rows that have gold, sorted as a fit sorts rows and labels, so that both are split alike."""
    rows = gold != UNLABELLED
    check_rows(gold[rows], folds)
    ordered, codes = in_canonical_order(votes.take(rows), gold[rows])
    return ordered.select(annotators=votes.annotators, relations=votes.relations), codes


def check_rows(gold: Codes, folds: int) -> None:
    """Raise if there are too few gold rows for cross-validation, or if all have the same label."""
    rows, classes = len(gold), len(np.unique(gold))
    if rows < 2 * folds or classes < 2:
        there = "is 1 row" if rows == 1 else f"are {rows} rows"
        remedy = "label more rows" if rows < 2 * folds else "label rows of another class too"
        raise UndefinedMetric(
            f"{folds}-fold cross-validation needs at least {2 * folds} gold rows and two classes, "
            f"there {there} of {classes}: {remedy}"
        )


class Measured(NamedTuple):
    """A figure on the rows at hand, and on every resample."""

    value: float
    resampled: Floats

    def minus(self, other: Measured, rows: int) -> BootstrapTest:
        """Return the test of the difference to the same figure of another method on the same rows and resamples."""
        spread = float((self.resampled - other.resampled).std())
        return bootstrap_test(self.value - other.value, spread, rows, WIDENING)


def measure(
    figures: Callable[[Floats], Mapping[K, Floats]], patterns: Any, resamples: int, seed: int, cells: int = 1
) -> dict[K, Measured]:
    """Return figures on the rows and on resamples, from how often each resample drew each row, `[row, resample]`.

    `patterns`, such as gold labels, may not be the same on all rows of a resample; a figure holds `cells` numbers.
    """
    observed = figures(np.ones((len(patterns), 1)))
    parts = []
    for counts in resample_counts(patterns, resamples, seed):
        pieces = -(-counts.shape[1] * cells // MOST_CELLS)
        parts += [figures(part) for part in np.array_split(counts, pieces, axis=1)]
    return {
        name: Measured(float(values[0]), np.concatenate([part[name] for part in parts]))
        for name, values in observed.items()
    }


@dataclass(frozen=True, kw_only=True, eq=False)  # without slots, so that what takes time is computed once
class Scored:
    """A method's results on gold rows that its fits did not see."""

    entrant: Entrant  # the method
    splits: Sequence[CrossFit]  # its results, one per split
    gold: Codes  # label code of every row
    how: EvaluationOptions  # splits and resamples
    learns: bool  # whether its label is the most probable one, and not the one with the highest score
    dataset: str = ""  # which rows these are
    shape: LabelShape = ONE  # what the labels are beside names, if the method labels a run

    @classmethod
    def of(cls, entrant: Entrant, gold: Codes, how: EvaluationOptions, dataset: str = "") -> Scored:
        """Return the results of a method on these splits."""
        splits = entrant.cross_fits(gold, how.splits)
        return cls(entrant=entrant, splits=splits, gold=gold, how=how, learns=entrant.learns, dataset=dataset)

    def labelling(self, shape: LabelShape) -> Scored:
        """Return the same for a method that labels a run: even without learning, its label is the most probable one."""
        return replace(self, learns=True, shape=shape)

    def hard(self) -> Scored:
        """Return the results of the chosen labels alone."""
        scores = [hard_scores(values, self.entrant.votes.labels) for values in self._deciding]
        splits = [fit._replace(ranks=ranks) for fit, ranks in zip(self.splits, scores, strict=True)]
        return replace(self, splits=splits)

    def on(self, rows: Mask) -> Scored:
        """Return the results on some of the rows."""
        splits = [CrossFit(*(part[rows] for part in fit)) for fit in self.splits]
        return replace(self, splits=splits, gold=self.gold[rows])

    @property
    def mean(self) -> Floats:
        """What decides the label, the mean over splits, `[row, label]`."""
        return np.asarray(np.mean(self._deciding, axis=0))

    @cached_property
    def best(self) -> Codes:
        """The label of every row, from the mean over splits: every figure of labels is about these."""
        return self.shape.choose(self.mean, self.entrant.votes.labels)

    @property
    def _shares(self) -> Floats:
        """How much of each label a row has: all of the one that a learned method gives; otherwise ties share."""
        return np.eye(len(self.entrant.votes.labels))[self.best] if self.learns else metrics.best_labels(self.mean)

    @cached_property
    def measured(self) -> Measured:
        """The class AUROC on the rows and on every resample."""
        return self._measure(self.aurocs)

    @property
    def auroc(self) -> metrics.Estimate:
        """The class AUROC of the scores."""
        estimate = metrics.estimate_of(*self.measured, len(self.gold), least_auroc(self.gold))
        assert estimate is not None, "it is defined on all resamples"
        return estimate

    @cached_property
    def confidence(self) -> metrics.Estimate | None:
        """The confidence AUROC; None where nearly all labels are right, or wrong."""
        measured = self._measure(
            lambda counts: np.mean(
                [metrics.auroc_confidence_on(fit.probabilities, self.gold, counts) for fit in self.splits], axis=0
            )
        )
        least = least_confidence(float((self.best == self.gold).mean()), len(self.gold))
        return metrics.estimate_of(*measured, len(self.gold), least)

    def _measure(self, figure: Callable[[Floats], Floats]) -> Measured:
        return measure(lambda counts: {"": figure(counts)}, self.gold, self.how.resamples, self.how.seed)[""]

    @cached_property
    def distinct(self) -> Sequence[CrossFit]:
        """The splits, once where all have the same scores."""
        first = self.splits[0]
        alike = all(np.array_equal([fit.scores, fit.ranks], [first.scores, first.ranks]) for fit in self.splits)
        return [first] if alike else self.splits

    @property
    def _deciding(self) -> list[Floats]:
        return [fit.probabilities if self.learns else fit.scores for fit in self.splits]

    def aurocs(self, counts: Floats) -> Floats:
        """Return the class AUROC on every resample, the mean over splits."""
        return np.asarray(np.mean([metrics.auroc_on(fit.ranks, self.gold, counts) for fit in self.distinct], axis=0))

    def figures(self, counts: Floats) -> dict[str, Floats]:
        """Return every figure on every resample, the mean over splits."""
        gold, labels = self.gold, self.entrant.votes.labels
        hard = metrics.auroc_on(hard_scores(self.mean, labels), gold, counts)
        raw = [metrics.chosen_on(fit.scores, gold, counts).ece for fit in self.distinct]
        chosen = [metrics.chosen_on(fit.probabilities, gold, counts, COVERAGES, TARGETS) for fit in self.splits]
        parts = [
            (each.auroc, each.ece, each.brier, each.aurc, *each.accuracy_at, *each.review_share) for each in chosen
        ]
        confidence, *sure = np.mean(parts, axis=0)
        of_labels = metrics.label_figures_on(self._shares, gold, counts)
        values = (self.aurocs(counts), hard, confidence, *of_labels, np.mean(raw, axis=0), *sure)
        return dict(zip(FIGURES, values, strict=True))


def hard_scores(scores: Floats, labels: Sequence[str]) -> Floats:
    """Return 1 for the chosen label of every row and 0 for the others; uniform where all labels tie."""
    hard = np.eye(len(labels))[choose(scores, labels)]
    hard[scores.max(axis=1) == scores.min(axis=1)] = 1 / len(labels)
    return hard


def least_confidence(right: float, rows: int) -> float:
    """Return the lower end of the 95 % interval of a perfect confidence AUROC; see `least_auroc`."""
    count = np.clip(round(right * rows), 1, rows - 1)
    return least_auroc((np.arange(rows) < count).astype(CODE))


class MethodFigures(NamedTuple):
    """A method, its figures, and the tests of the first method against it; positive differences favour the first."""

    method: str  # its name
    # its figures by name, see `FIGURES`; those that are undefined on these rows are absent
    figures: Mapping[str, metrics.Estimate]
    calls: Calls  # its calls per item
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

    def as_evaluated(self) -> dict[str, Any]:
        """Return what `pcs evaluate` says about it, as plain values."""
        tests = {"auroc": (self.behind, self.holm), "accuracy": (self.accuracy_behind, self.holm_accuracy)}
        against = {name: {**test_json(test), "p_holm": p_holm} for name, (test, p_holm) in tests.items() if test}
        return {
            "method": self.method,
            "calls_per_text": {**self.calls._asdict(), "total": self.calls.total},
            "uses_log_probabilities": self.graded,
            "figures": {name: figure_json(self.figures.get(name)) for name in FIGURES},
            "against": against or None,
        }


def side_by_side(methods: Sequence[Scored]) -> list[MethodFigures]:
    """Return the figures of methods on the same rows and resamples, the others tested against the first."""
    gold, how = methods[0].gold, methods[0].how

    def figures(counts: Floats) -> dict[tuple[int, str], Floats]:
        return {(at, name): values for at, each in enumerate(methods) for name, values in each.figures(counts).items()}

    measured = measure(figures, gold, how.resamples, how.seed)
    places = range(1, len(methods))
    tests = {
        name: [None, *(measured[0, name].minus(measured[at, name], len(gold)) for at in places)]
        for name in ("auroc", "accuracy")
    }
    p_values = {name: adjusted(per_method) for name, per_method in tests.items()}
    return [
        MethodFigures(
            method=each.entrant.name,
            figures=_estimates({name: measured[at, name] for name in FIGURES}, gold),
            calls=each.entrant.calls,
            graded=each.entrant.graded,
            behind=tests["auroc"][at],
            accuracy_behind=tests["accuracy"][at],
            holm=p_values["auroc"][at],
            holm_accuracy=p_values["accuracy"][at],
        )
        for at, each in enumerate(methods)
    ]


def _estimates(measured: Mapping[str, Measured], gold: Codes) -> dict[str, metrics.Estimate]:
    """Return a method's figures with their intervals; those that are undefined are left out."""
    rows = len(gold)
    least = dict.fromkeys(FIGURES, least_share(rows)) | dict.fromkeys(("auroc", "auroc_hard"), least_auroc(gold))
    least["auroc_confidence"] = least_confidence(measured["accuracy"].value, rows)
    estimates = {name: metrics.estimate_of(*measures, rows, least[name]) for name, measures in measured.items()}
    estimates["accuracy"] = metrics.accuracy_of(min(measured["accuracy"].value, 1.0), rows)
    return {name: estimate for name, estimate in estimates.items() if estimate is not None}


def adjusted(tests: Sequence[BootstrapTest | None]) -> list[float | None]:
    """Return p-values adjusted for their number (Holm, 1979); None where there is no test."""
    p_values = iter(holm([test.p_value for test in tests if test]))
    return [next(p_values) if test else None for test in tests]


def cell_of(figure: metrics.Estimate | BootstrapTest | None, unit: float = 1.0) -> Figure | None:
    """Return a figure or a difference as the content of a cell, times a unit."""
    if figure is None:
        return None
    low, high = figure.interval
    return Figure(unit * figure[0], Interval(unit * low, unit * high))


def figure_json(estimate: metrics.Estimate | None) -> dict[str, Any] | None:
    """Return a figure as plain values."""
    if estimate is None:
        return None
    low, high = map(number_of, estimate.interval)
    return {"value": number_of(estimate.value), "low": low, "high": high, "n": estimate.n}


def test_json(test: BootstrapTest) -> dict[str, float]:
    """Return a paired test as plain values."""
    return {"difference": test.difference, **test.interval._asdict(), "p_value": test.p_value}
