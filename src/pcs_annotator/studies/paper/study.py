"""What all experiments share: recorded votes, how figures are computed, and the text around them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

import numpy as np

from pcs_annotator.base.errors import UndefinedMetric
from pcs_annotator.core.arrays import Codes, Floats, Mask
from pcs_annotator.core.result_table import Content, Figure, ResultTable, best_in_rows
from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.evaluation import methods
from pcs_annotator.judging.evaluation.evaluate import HARD_AND_GRADED, EvaluationOptions, labelled_rows
from pcs_annotator.judging.metrics.bootstrap import WIDENING, interval_around, least_auroc, resample_counts
from pcs_annotator.judging.metrics.metrics import accuracy, auroc_confidence_on, auroc_on, estimate_of
from pcs_annotator.judging.metrics.significance import (
    Difference,
    PairedTest,
    average_relative_improvement,
    holm,
    influence,
    mean_difference_test,
    p_value_text,
    paired_t_test,
    stars,
)
from pcs_annotator.judging.weighing.crossfit import CrossFit

T = TypeVar("T")

Recorded = tuple[Votes, Codes]
"""Votes, and each item's gold label as a position in their labels, or `UNLABELLED`."""

LISTED_GAPS = 8
T_TEST = "paired t-test, as in the paper"
NO_TEST = "no test"
ABOUT_TESTS = (
    "p: DeLong's test of the mean difference in class AUROC; a row moves all models and combinations on its dataset at "
    f"once, so that what they share is not counted twice. Its standard error is {WIDENING:g} times as large because "
    "other gold rows would also have learned other weights. Two-sided, with Holm's adjustment over all comparisons; "
    "stars are of this p: *** p < 0.001, ** p < 0.01, * p < 0.05. It is about new rows of these datasets, with these "
    "models: a few datasets cannot show what another one would give. It needs the scores of every row and two rows of "
    f"every class. The {T_TEST}, takes (model, dataset) pairs as independent and is too often significant where there "
    "is no difference, so it has no stars."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How to run experiments.

    Attributes:
        how: Splits, seeds, resamples, and which relations a model wrote.
        optimiser: Learns the weights of PCS; the paper's is `lr`.
        relations: Relations that PCS uses, of those recorded; None for all.
        baselines: Methods to compare with in RQ2.
        optimisers: Optimisers to compare; the first is tested against the others.
        sizes: Numbers of gold rows for the learning curve.
        draws: Random draws of gold rows for every point of that curve.
    """

    how: EvaluationOptions = field(default_factory=lambda: EvaluationOptions(resamples=2000))
    optimiser: str = "lr"
    relations: Sequence[str] | None = None
    baselines: Sequence[methods.Method] = ()
    optimisers: Sequence[str] = (
        "lr", "ga", "auto", "logit", "scaling", "naive-bayes", "dawid-skene", "uniform", "majority"
    )  # fmt: skip
    sizes: Sequence[int] = (10, 20, 30, 50, 75, 100, 150, 200, 250, 300, 400, 600, 1000)
    draws: int = 20


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scored:
    """A method's out-of-fold results on one dataset, and its calls per item.

    Attributes:
        dataset: Its name.
        fits: One per split.
        gold: Label code of every row.
        labels: The labels.
        how: Splits and resamples.
        calls: Calls per item.
        learns: Whether it learns from gold.
        graded: Whether it uses the log-probabilities of answers.
    """

    dataset: str
    fits: Sequence[CrossFit]
    gold: Codes
    labels: Sequence[str]
    how: EvaluationOptions
    calls: float
    learns: bool
    graded: bool
    _kept: dict[str, Floats] = field(default_factory=dict)

    def figure(self) -> Figure:
        """Return the class AUROC of the scores with its interval."""
        return Figure(self.auroc, interval_around(self.auroc, self._resampled(), least_auroc(self.gold), WIDENING))

    def confidence(self) -> Figure | None:
        """Return the confidence AUROC with its interval; None where nearly all labels are right, or wrong."""
        value = float(self._mean_confidence(np.ones((len(self.gold), 1)))[0])
        if "confidence" not in self._kept:
            drawn = resample_counts(self.gold, self.how.resamples, self.how.seed)
            self._kept["confidence"] = np.concatenate([self._mean_confidence(counts) for counts in drawn])
        right = float(np.mean([accuracy(fit.probabilities, self.gold) for fit in self.fits]))
        least = methods.least_confidence(right, len(self.gold))
        found = estimate_of(value, self._kept["confidence"], len(self.gold), least)
        return None if found is None else Figure(found.value, found.interval)

    def hard(self) -> Scored:
        """Return the results of the chosen labels alone."""
        deciding = [fit.probabilities if self.learns else fit.scores for fit in self.fits]
        scores = [methods.hard_scores(values, self.labels) for values in deciding]
        fits = [fit._replace(ranks=own) for fit, own in zip(self.fits, scores, strict=True)]
        return replace(self, fits=fits, _kept={})

    @property
    def auroc(self) -> float:
        """The class AUROC of the scores, mean over splits."""
        return float(self._mean_auroc(np.ones((len(self.gold), 1)))[0])

    def minus(self, other: Scored) -> Difference:
        """Return the difference in AUROC to another method on the same rows."""
        return Difference(self.dataset, self.auroc - other.auroc, self._influence() - other._influence(), self.gold)

    def _influence(self) -> Floats:
        """Return how much every row moves the AUROC."""
        return np.asarray(np.mean([influence(ranks, self.gold) for ranks in self._ranks()], axis=0))

    def _ranks(self) -> list[Floats]:
        ranks = [fit.ranks for fit in self.fits]
        return ranks[:1] if all(np.array_equal(one, ranks[0]) for one in ranks) else ranks

    def _resampled(self) -> Floats:
        if "resampled" not in self._kept:
            drawn = resample_counts(self.gold, self.how.resamples, self.how.seed)
            self._kept["resampled"] = np.concatenate([self._mean_auroc(counts) for counts in drawn])
        return self._kept["resampled"]

    def _mean_confidence(self, counts: Floats) -> Floats:
        parts = [auroc_confidence_on(fit.probabilities, self.gold, counts) for fit in self.fits]
        return np.asarray(np.mean(parts, axis=0))

    def _mean_auroc(self, counts: Floats) -> Floats:
        return np.asarray(np.mean([auroc_on(one, self.gold, counts) for one in self._ranks()], axis=0))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExperimentBench:
    """One dataset's labelled rows; caches scores, because the questions share many panels.

    Attributes:
        dataset: Its name.
        votes: All votes on the labelled rows.
        plain: Those of annotators that gave plain labels, on the relations that PCS uses.
        gold: Label code of every row.
        how: Splits and resamples.
    """

    dataset: str
    votes: Votes
    plain: Votes
    gold: Codes
    how: EvaluationOptions
    _seen: dict[tuple[object, ...], Scored] = field(default_factory=dict)

    def on_cells(
        self, optimiser: str, annotators: Sequence[str], relations: Sequence[str] | None = None, *, hard: bool = False
    ) -> Scored:
        """Return the results of an optimiser on the first draw of some cells, or on their labels alone.

        Raises:
            UndefinedMetric: No row has a vote there.
        """
        key = (optimiser, tuple(annotators), tuple(relations or self.plain.relations), hard)
        if key not in self._seen:
            part = self.plain.select(annotators=annotators, relations=relations, draws=1)
            if part.silent.all():
                where = f" on {', '.join(relations)}" if relations else ""
                raise UndefinedMetric(f"{self.dataset}: {' + '.join(annotators)} never gave a label{where}")
            method = methods.OnCells(name=optimiser, optimiser=optimiser, annotators=annotators, hard=hard)
            self._seen[key] = self.score(method, part)
        return self._seen[key]

    def score(self, method: methods.Method, votes: Votes | None = None) -> Scored:
        """Return the results of a method on all votes, or on those given."""
        entrant = methods.ready(method, self.votes if votes is None else votes, self.how.rewritten)
        return Scored(
            dataset=self.dataset,
            fits=[entrant.cross_fit(self.gold, self.how.folds, seed, self.how.calibration) for seed in self.how.seeds],
            gold=self.gold,
            labels=self.votes.labels,
            how=self.how,
            calls=entrant.calls.total,
            learns=entrant.learns,
            graded=entrant.graded,
        )

    def pcs(self, notes: list[str], optimiser: str, annotators: Sequence[str]) -> Scored | None:
        """Return the results of an optimiser on all relations; if undefined, None and a note with the reason."""
        return attempt(notes, lambda: self.on_cells(optimiser, annotators))

    def alone(self, notes: list[str], annotators: Sequence[str], relation: str = "") -> Scored | None:
        """Return those of the share of labels on one relation, by default the unchanged text; None as in `pcs`."""
        views = [relation or self.original]
        return attempt(notes, lambda: self.on_cells("uniform", annotators, views, hard=True))

    @property
    def original(self) -> str:
        """The relation that stands for the unchanged text."""
        return methods.original_of(self.plain)


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """Prepared datasets, and the notes about them.

    Attributes:
        benches: Datasets that can be evaluated.
        refused: Dataset → why it cannot be.
        settings: How to run experiments.
    """

    benches: Sequence[ExperimentBench]
    refused: Mapping[str, str]
    settings: Settings

    @classmethod
    def of(cls, sets: Mapping[str, Recorded], settings: Settings | None = None) -> Study:
        """Return the study of some recorded votes; datasets with too little gold go into `refused`."""
        settings = settings or Settings()
        benches, refused = [], {}
        for name, (votes, gold) in sets.items():
            try:
                benches.append(_bench(name, votes, gold, settings))
            except UndefinedMetric as error:
                refused[name] = str(error)
        return cls(benches=benches, refused=refused, settings=settings)

    def notes(self) -> list[str]:
        """Return how figures were computed, on how many rows, and what was missing."""
        how = self.settings.how
        sizes = ", ".join(f"{bench.dataset} {len(bench.gold)}" for bench in self.benches) or "none"
        return [
            f"Class AUROC: macro one-vs-rest, scores learned on other folds ({how.folds}-fold stratified "
            f"cross-validation), mean over seeds {', '.join(map(str, how.seeds))}; weights by "
            f"{self.settings.optimiser}. Rows: {sizes}.",
            methods.about_intervals(how.resamples),
            *self.trouble(),
        ]

    def trouble(self) -> list[str]:
        """Return what was missing in the votes."""
        gaps = [gap for bench in self.benches for gap in _gaps(bench)]
        more = [f"… and {len(gaps) - LISTED_GAPS} more gaps like these."] if len(gaps) > LISTED_GAPS else []
        return [*(f"{name}: {reason}." for name, reason in self.refused.items()), *gaps[:LISTED_GAPS], *more]

    def refused_rows(self, columns: int) -> list[list[Content]]:
        """Return a row of dashes for every dataset that cannot be evaluated."""
        return [[name, *[None] * (columns - 1)] for name in self.refused]


def _bench(name: str, votes: Votes, gold: Codes, settings: Settings) -> ExperimentBench:
    votes, gold = labelled_rows(votes, gold, settings.how.folds)
    wanted = settings.relations
    relations = [one for one in votes.relations if wanted is None or one in wanted]
    plain = methods.plain_votes(votes).select(relations=relations)
    methods.original_of(plain)  # raises for an empty panel
    return ExperimentBench(dataset=name, votes=votes, plain=plain, gold=gold, how=settings.how)


def _gaps(bench: ExperimentBench) -> list[str]:
    missing: Mask = np.asarray((bench.plain.codes < 0).all(axis=(0, 3)))
    names = np.array(bench.plain.relations, dtype=object)
    return [
        f"{bench.dataset}: {annotator} has no votes on {', '.join(names[gone])}."
        for annotator, gone in zip(bench.plain.annotators, missing, strict=True)
        if gone.any()
    ]


def attempt(notes: list[str], scored: Callable[[], Scored]) -> Scored | None:
    """Return the function's results; if undefined, None and a note with the reason."""
    try:
        return scored()
    except UndefinedMetric as error:
        if (sentence := f"{error}.") not in notes:
            notes.append(sentence)
        return None


def figure_in(scored: Scored | None) -> Figure | None:
    """Return the class AUROC with its interval, where there are results."""
    return None if scored is None else scored.figure()


def confidence_table(
    table: ResultTable, leading: int, methods_shown: Sequence[str], found: Sequence[Sequence[Scored | None]]
) -> ResultTable:
    """Return the confidence AUROC of the results in a table.

    Args:
        table: It has the class AUROC.
        leading: How many of its columns say which results a row has.
        methods_shown: Name of every method.
        found: The results of every row by method; rows of datasets that cannot be evaluated come after these.
    """
    refused = [[None] * len(methods_shown)] * (len(table.rows) - len(found))
    figures = [[None if one is None else one.confidence() for one in results] for results in (*found, *refused)]
    rows: list[list[Content]] = [[*row[:leading], *own] for row, own in zip(table.rows, figures, strict=True)]
    undefined = any(own.count(None) > list(results).count(None) for own, results in zip(figures, found, strict=False))
    return ResultTable(
        name=f"{table.name}-confidence",
        title=table.title.replace("class AUROC", "confidence AUROC"),
        columns=[*table.columns[:leading], *methods_shown],
        rows=rows,
        notes=[
            "Confidence AUROC: right labels against wrong ones, by the probability of the chosen label, calibrated on "
            f"other folds; rows, splits and intervals as for {table.name}.",
            *([methods.NO_CONFIDENCE_AUROC] if undefined else []),
            *(note for note in table.notes[1:] if note not in (HARD_AND_GRADED, ABOUT_TESTS)),
        ],
        best=best_in_rows(rows, range(leading, leading + len(methods_shown))),
    )


class Compared(NamedTuple):
    """Two methods over all their pairs of figures; None where a test is undefined.

    Attributes:
        pairs: Number of pairs.
        improvement: Average relative improvement.
        t_test: The paper's test, which takes pairs as independent.
        test: The test over rows, which does not.
    """

    pairs: int
    improvement: float | None
    t_test: PairedTest | None
    test: PairedTest | None


def compared(ours: Sequence[Scored | None], theirs: Sequence[Scored | None]) -> Compared:
    """Return the comparison over all panels on which both methods have results."""
    pairs = [(one, other) for one, other in zip(ours, theirs, strict=True) if one is not None and other is not None]
    found = compared_figures([one.auroc for one, _ in pairs], [other.auroc for _, other in pairs])
    differences = [one.minus(other) for one, other in pairs]
    return found._replace(test=_defined(lambda: mean_difference_test(differences, WIDENING)))


def compared_figures(ours: Sequence[float], theirs: Sequence[float]) -> Compared:
    """Return the paper's comparison of bare figures; without the scores of every row, no other test can be given."""
    return Compared(
        len(ours),
        _defined(lambda: average_relative_improvement(ours, theirs)),
        _defined(lambda: paired_t_test(ours, theirs)),
        None,
    )


def _defined(compute: Callable[[], T]) -> T | None:
    try:
        return compute()
    except UndefinedMetric:
        return None


def adjusted(comparisons: Sequence[Compared]) -> list[float | None]:
    """Return the p-values of the tests over rows, adjusted for their number; None where there is none."""
    found = iter(holm([one.test.p_value for one in comparisons if one.test]))
    return [next(found) if one.test else None for one in comparisons]


def summaries(comparisons: Mapping[str, Compared]) -> list[tuple[str, str]]:
    """Return the lines below a table: improvement and p-value, then the paper's test, for every comparison by name."""
    lines = []
    for (name, one), p_value in zip(comparisons.items(), adjusted([*comparisons.values()]), strict=True):
        improvement = "–" if one.improvement is None else f"{100 * one.improvement:+.1f} %"
        test = NO_TEST if p_value is None else f"{_shown(p_value)} {stars(p_value)}"
        lines.append((f"{name}: average relative improvement", f"{improvement}, {test}"))
        few = f"needs two pairs, there are {one.pairs}"
        lines.append((f"{name}: {T_TEST}", few if one.t_test is None else _shown(one.t_test.p_value)))
    return lines


def _shown(p_value: float) -> str:
    shown = p_value_text(p_value)
    return f"p {shown.replace('<', '< ')}" if shown.startswith("<") else f"p = {shown}"
