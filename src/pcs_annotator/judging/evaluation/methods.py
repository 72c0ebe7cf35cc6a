"""Methods that can be evaluated: an optimiser on some cells, one question, a published baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from pcs_annotator.base.errors import UndefinedMetric
from pcs_annotator.core import elicitations
from pcs_annotator.core.arrays import Codes, Floats, Mask
from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.core.vote import NOT_ASKED
from pcs_annotator.core.votes import Votes
from pcs_annotator.core.weights import Weights
from pcs_annotator.judging.baselines.baseline import Baseline
from pcs_annotator.judging.baselines.logprob import graded_rows
from pcs_annotator.judging.metrics.bootstrap import WIDENING, least_auroc, least_share, resample_counts
from pcs_annotator.judging.metrics.metrics import Estimate, auroc_on, chosen_on, estimate_of
from pcs_annotator.judging.weighing import crossfit
from pcs_annotator.judging.weighing.optimiser import Optimiser, optimisers
from pcs_annotator.judging.weighing.scoring import choose

COVERAGES = (0.5, 0.8)
TARGETS = (0.9, 0.95)
FIGURES = (
    "auroc",
    "auroc_hard",
    "auroc_confidence",
    "accuracy",
    "macro_f1",
    "ece_score",
    "ece_confidence",
    "brier",
    "aurc",
    *(f"accuracy_at_{coverage:.0%}".rstrip("%") for coverage in COVERAGES),
    *(f"review_share_{target:.0%}".rstrip("%") for target in TARGETS),
)
"""Names of the figures.

`auroc`, the class AUROC, and `ece_score` are of the raw score. `auroc_hard`, `accuracy` and `macro_f1` are of the
label: the most probable one for methods that learn from gold, else the one with the highest score. The others are of
the calibrated probability, `auroc_confidence` among them: right against wrong labels. It is nan where all labels of a
split are right, or all wrong.
"""

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


def about_intervals(resamples: int) -> str:
    """Return what the intervals are about, for the notes of a table."""
    return (
        "95 % intervals are about this way of learning from as many gold rows, judged on new rows like these: from "
        f"{resamples} resamples of the rows, {WIDENING:g} times as wide because other gold rows would also have "
        "learned other weights."
    )


Resampled = dict[str, Floats]
"""Name of a figure → its value on every resample."""


class Fits(NamedTuple):
    """A method's out-of-fold results, one per split, and whether it learns, so that its label is the most probable."""

    splits: Sequence[crossfit.CrossFit]
    learns: bool


def all_figures(
    methods: Sequence[Fits], gold: Codes, labels: Sequence[str], resamples: int, seed: int
) -> tuple[list[dict[str, float]], list[Resampled]]:
    """Return every method's figures, on the rows and on every resample; all methods see the same resamples."""
    once = np.ones((len(gold), 1))
    observed = [
        {name: float(values[0]) for name, values in _figures(fits, gold, labels, once).items()} for fits in methods
    ]
    parts: list[list[Resampled]] = [[] for _ in methods]
    for counts in resample_counts(gold, resamples, seed):
        for place, fits in enumerate(methods):
            parts[place].append(_figures(fits, gold, labels, counts))
    joined = [{name: np.concatenate([part[name] for part in own]) for name in FIGURES} for own in parts]
    return observed, joined


def estimates_of(observed: Mapping[str, float], resampled: Resampled, gold: Codes) -> dict[str, Estimate]:
    """Return a method's figures with their intervals; those that are undefined are left out."""
    rows = len(gold)
    least = dict.fromkeys(FIGURES, least_share(rows)) | dict.fromkeys(("auroc", "auroc_hard"), least_auroc(gold))
    least["auroc_confidence"] = least_confidence(observed["accuracy"], rows)
    found = {name: estimate_of(value, resampled[name], rows, least[name]) for name, value in observed.items()}
    return {name: estimate for name, estimate in found.items() if estimate is not None}


def least_confidence(accuracy: float, rows: int) -> float:
    """Return the lower end of the 95 % interval of a perfect confidence AUROC; see `least_auroc`."""
    right = np.clip(round(accuracy * rows), 1, rows - 1)
    return least_auroc((np.arange(rows) < right).astype(np.int8))


def _figures(fits: Fits, gold: Codes, labels: Sequence[str], counts: Floats) -> Resampled:
    """Return the mean over splits of every figure, `[resample]`."""
    splits = fits.splits
    distinct = splits[:1] if all(np.array_equal(fit.scores, splits[0].scores) for fit in splits) else splits
    raw = [chosen_on(fit.scores, gold, counts) for fit in distinct]
    sure = [chosen_on(fit.probabilities, gold, counts, COVERAGES, TARGETS) for fit in splits]
    deciding = [fit.probabilities for fit in splits] if fits.learns else [fit.scores for fit in distinct]
    parts = (
        [(auroc_on(fit.ranks, gold, counts),) for fit in distinct],
        [(auroc_on(hard_scores(values, labels), gold, counts),) for values in deciding],
        [(one.auroc,) for one in sure],
        [(one.accuracy, one.macro_f1) for one in (sure if fits.learns else raw)],
        [(one.ece,) for one in raw],
        [(one.ece, one.brier, one.aurc, *one.accuracy_at, *one.review_share) for one in sure],
    )
    return dict(zip(FIGURES, (values for part in parts for values in np.mean(part, axis=0)), strict=True))


def hard_scores(scores: Floats, labels: Sequence[str]) -> Floats:
    """Return 1 for the chosen label of every row and 0 for the others; uniform where all labels tie."""
    hard = np.eye(len(labels))[choose(scores, labels)]
    hard[scores.max(axis=1) == scores.min(axis=1)] = 1 / len(labels)
    return hard


ZERO_SHOT = "zero-shot"
MAJORITY = "majority"
SCALED_LOGPROB = "scaled logprob"
SCALING = "scaling"


@dataclass(frozen=True, slots=True, kw_only=True)
class OnCells:
    """An optimiser on part of the votes; None takes all of an axis, `hard` takes labels without log-probabilities."""

    name: str
    optimiser: str | Optimiser
    annotators: Sequence[str] | None = None
    relations: Sequence[str] | None = None
    draws: int | None = None
    hard: bool = False


Method = str | OnCells | Baseline
"""A registry name of an optimiser (on all cells), `zero-shot`, `majority`, `scaled logprob`, an optimiser on some
cells, or a baseline.

Optimisers see plain annotators only: those that also state a confidence are for baselines.
"""


class Calls(NamedTuple):
    """Calls per item: questions asked, and rewrites made by a model."""

    questions: float
    rewrites: float

    @property
    def total(self) -> float:
        """All calls."""
        return self.questions + self.rewrites


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Entrant:
    """A method prepared for some votes.

    Attributes:
        name: For tables.
        votes: The votes it sees.
        optimiser: How it learns; None for a method with scores.
        scores: Its scores; None for a method with an optimiser.
        calls: What it pays for on every item.
        graded: Whether it uses the log-probabilities of answers.
    """

    name: str
    votes: Votes
    optimiser: Optimiser | None = None
    scores: Floats | None = None
    calls: Calls
    graded: bool = False

    @property
    def learns(self) -> bool:
        """Whether it learns from gold, so that its label is the most probable one; choosing a model is not learning."""
        chosen = self.optimiser
        return chosen is not None and chosen.needs_gold and not isinstance(chosen, BestAnnotator)

    def cross_fits(self, gold: Codes, splits: crossfit.Splits) -> Fits:
        """Return the results over several random splits."""
        if self.optimiser is not None:
            return Fits(crossfit.cross_fits(self.optimiser, self.votes, gold, splits), self.learns)
        turns = range(splits.turns(len(gold)))
        fits = [self.cross_fit(gold, splits.folds, splits.seed + turn, splits.calibration) for turn in turns]
        return Fits(fits, self.learns)

    def cross_fit(self, gold: Codes, folds: int, seed: int, calibration: str) -> crossfit.CrossFit:
        """Return scores from fits on other folds; a method that learns nothing is only calibrated on them."""
        if self.optimiser is not None:
            splits = crossfit.Splits(folds=folds, seed=seed, calibration=calibration, repeats=1)
            return crossfit.cross_fits(self.optimiser, self.votes, gold, splits)[0]
        assert self.scores is not None, "a method has an optimiser or scores"
        fold = crossfit.stratified_folds(gold, min(folds, len(gold)), seed)
        probabilities = crossfit.calibrated_out_of_fold(self.scores, gold, fold, self.votes.labels, calibration)
        return crossfit.CrossFit(self.scores, probabilities, ranks=self.scores)


@dataclass(frozen=True, slots=True)
class BestAnnotator:
    """Gives all the weight to the annotator that is right most often on the first relation."""

    needs_gold: ClassVar[bool] = True

    def fit(self, votes: Votes, gold: Codes, seed: int) -> Weights:
        """Return all the weight on one annotator and one relation."""
        right = (votes.codes[:, :, 0, 0] == gold[:, np.newaxis]).sum(axis=0)
        annotators = np.arange(len(votes.annotators)) == np.argmax(right)
        relations = np.arange(len(votes.relations)) == 0
        return Weights.normalised(votes, annotators.astype(np.float64), relations.astype(np.float64))


def original_of(votes: Votes) -> str:
    """Return the relation that stands for the unchanged text: `original`, or the first if there is none."""
    if not votes.relations or not votes.annotators:
        raise UndefinedMetric("no answers to evaluate: these votes have no annotator or no relation")
    return votes.original


def method_name(method: Method) -> str:
    """Return the name of a method for tables."""
    return method if isinstance(method, str) else method.name


def plain_votes(votes: Votes) -> Votes:
    """Return the votes of the annotators that gave plain labels, without stating a confidence."""
    plain = [name for name in votes.annotators if not elicitations.kind_of(name)]
    return votes if len(plain) == len(votes.annotators) else votes.select(annotators=plain)


def ready(method: Method, votes: Votes, rewritten: AbstractSet[str] = frozenset()) -> Entrant:
    """Return the method prepared for some votes.

    Args:
        method: See `Method`.
        votes: All votes on the rows to evaluate.
        rewritten: Relations whose variants a model wrote, so that every variant cost a call.
    """
    if isinstance(method, str):
        return _named(method, plain_votes(votes), rewritten)
    if isinstance(method, OnCells):
        part = plain_votes(votes) if method.annotators is None else votes.select(annotators=method.annotators)
        part = part.select(relations=method.relations, draws=method.draws)
        return _learner(method.name, method.optimiser, part.hard() if method.hard else part, rewritten)
    asked = method.asks(votes)
    calls = calls_of(votes, rewritten & asked.rewrites, asked.cells)
    return Entrant(name=method.name, votes=votes, scores=method.scores(votes), calls=calls, graded=asked.graded)


def _named(name: str, votes: Votes, rewritten: AbstractSet[str]) -> Entrant:
    if name == SCALED_LOGPROB:
        graded = [votes.annotators[row] for row in graded_rows(votes, name)]
        return _learner(name, SCALING, votes.select(annotators=graded, relations=[ORIGINAL], draws=1))
    if name not in (ZERO_SHOT, MAJORITY):
        return _learner(name, name, votes, rewritten)
    part = votes.hard().select(relations=[original_of(votes)], draws=1)
    if name == MAJORITY:
        return _learner(name, "uniform", part)
    found = _learner(name, BestAnnotator(), part)
    return replace(found, calls=Calls(found.calls.questions / len(votes.annotators), 0.0))


def _learner(name: str, optimiser: str | Optimiser, votes: Votes, rewritten: AbstractSet[str] = frozenset()) -> Entrant:
    chosen = optimisers.create(optimiser) if isinstance(optimiser, str) else optimiser
    graded = votes.grades is not None and not np.isnan(votes.grades).all()
    return Entrant(name=name, votes=votes, optimiser=chosen, calls=calls_of(votes, rewritten), graded=bool(graded))


def calls_of(votes: Votes, rewritten: AbstractSet[str], cells: Mask | None = None) -> Calls:
    """Return the calls per item for some cells of the votes, by default all; cells never asked cost nothing."""
    asked = votes.codes != NOT_ASKED
    kinds = [elicitations.kind_of(name) for name in votes.annotators]
    each = np.array([elicitations.calls_of(kind) for kind in kinds], dtype=np.float64)
    answers = (asked if cells is None else asked & cells).sum(axis=(0, 2, 3))
    items = max(len(votes), 1)
    views = [place for place, name in enumerate(votes.relations) if name in rewritten and name != ORIGINAL]
    variants = asked[:, :, views].any(axis=(1, 3))
    return Calls(float(answers @ each / items), float(variants.sum() / items))


def self_consistency(votes: Votes, budget: float) -> OnCells:
    """Return self-consistency by vote share, on as many draws of the unchanged text as the calls per item allow.

    Raises:
        UndefinedMetric: No annotator was asked more than once.
    """
    votes = plain_votes(votes)
    original = original_of(votes)
    drawn = (votes.select(relations=[original]).codes >= 0).any(axis=(0, 2)).sum(axis=1)
    annotators = [name for name, draws in zip(votes.annotators, drawn, strict=True) if draws > 1]
    if not annotators:
        raise UndefinedMetric(
            "Self-consistency at equal calls is missing where a model was asked about the unchanged text only once: "
            "record several draws of it, for example with --draws 5"
        )
    draws = int(np.clip(round(budget / len(annotators)), 1, drawn.max()))
    name = f"self-consistency, {draws} draws"
    return OnCells(name=name, optimiser="uniform", annotators=annotators, relations=[original], draws=draws, hard=True)
