"""Methods that can be evaluated: an optimiser on some cells, one question, a published baseline."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from pcs_annotator.base.errors import UndefinedMetric, UnknownNameError
from pcs_annotator.core import elicitations
from pcs_annotator.core.arrays import Codes, Floats, Mask
from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.core.votes import NOT_ASKED, Votes
from pcs_annotator.core.weights import Weights
from pcs_annotator.judging import heldout as crossfit
from pcs_annotator.judging.baselines import Baseline, baselines, graded_rows
from pcs_annotator.judging.fit_weights import Optimiser, any_graded, optimisers

ZERO_SHOT = "zero-shot"
MAJORITY = "majority"
SCALED_LOGPROB = "scaled logprob"
USUAL = ("lr", "uniform", MAJORITY, ZERO_SHOT)
OTHERS = (ZERO_SHOT, MAJORITY, SCALED_LOGPROB)  # neither an optimiser on all votes nor a baseline
DUPLICATES = ("majority-vote", "zero-shot")  # baselines that are the same as `majority` and `zero-shot`


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
    """A method prepared for some votes."""

    name: str  # for tables
    votes: Votes  # the votes it sees
    optimiser: Optimiser | None = None  # how it learns; None for a method with scores
    scores: Floats | None = None  # its scores; None for a method with an optimiser
    calls: Calls  # what it pays for on every item
    graded: bool = False  # whether it uses the log-probabilities of answers

    @property
    def learns(self) -> bool:
        """Whether it learns from gold, so that its label is the most probable one; choosing a model is not learning."""
        chosen = self.optimiser
        return chosen is not None and chosen.needs_gold and not isinstance(chosen, BestAnnotator)

    def cross_fits(self, gold: Codes, splits: crossfit.Splits) -> list[crossfit.CrossFit]:
        """Return scores from fits on other folds, one per split; what learns nothing is only calibrated there."""
        if self.optimiser is not None:
            return crossfit.cross_fits(self.optimiser, self.votes, gold, splits)
        scores, labels = self.scores, self.votes.labels
        assert scores is not None, "a method has an optimiser or scores"
        folds = [splits.fold_of(gold, turn) for turn in range(splits.turns(len(gold)))]
        probabilities = (
            crossfit.calibrated_out_of_fold(scores, gold, fold, labels, splits.calibration) for fold in folds
        )
        return [crossfit.CrossFit(scores, split, ranks=scores) for split in probabilities]


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
        raise UndefinedMetric("no answers to evaluate: these votes have no model or no relation")
    return votes.original


def method_name(method: Method) -> str:
    """Return the name of a method for tables."""
    return method if isinstance(method, str) else method.name


def all_baselines() -> list[Method]:
    """Return every published baseline, plug-ins included, and `scaled logprob`."""
    return [*(baselines.create(name) for name in baselines.names()), SCALED_LOGPROB]


def methods_named(names: Sequence[str], optimiser: str = "auto") -> list[Method]:
    """Return the methods with these names; without names, `optimiser`, the usual methods, and every baseline."""
    if not names:
        rivals = [name for name in (*baselines.names(), SCALED_LOGPROB) if name not in DUPLICATES]
        names = [*dict.fromkeys((optimiser, *USUAL)), *rivals]
    return [_method(name) for name in names]


def _method(name: str) -> Method:
    if name in OTHERS or name in optimisers.names():
        return name
    if name in baselines.names():
        return baselines.create(name)
    names = dict.fromkeys((*OTHERS, *optimisers.names(), *baselines.names()))
    raise UnknownNameError(f"no method is called {name!r}; known: {', '.join(names)}")


def ready(method: Method, votes: Votes, rewritten: AbstractSet[str] = frozenset()) -> Entrant:
    """Return the method prepared for some votes; a model wrote the `rewritten` relations, a call for every variant."""
    if isinstance(method, str):
        return _named(method, votes.plain(), rewritten)
    if isinstance(method, OnCells):
        part = votes.plain() if method.annotators is None else votes.select(annotators=method.annotators)
        part = part.select(relations=method.relations, draws=method.draws)
        return _learner(method.name, method.optimiser, part.hard() if method.hard else part, rewritten)
    asked = method.asks(votes)
    calls = calls_of(votes, rewritten & asked.rewrites, asked.cells)
    return Entrant(name=method.name, votes=votes, scores=method.scores(votes), calls=calls, graded=asked.graded)


def _named(name: str, votes: Votes, rewritten: AbstractSet[str]) -> Entrant:
    if name == SCALED_LOGPROB:
        graded = [votes.annotators[row] for row in graded_rows(votes, name)]
        return _learner(name, "auto", votes.select(annotators=graded, relations=[ORIGINAL], draws=1))
    if name not in (ZERO_SHOT, MAJORITY):
        return _learner(name, name, votes, rewritten)
    part = votes.hard().select(relations=[original_of(votes)], draws=1)
    if name == MAJORITY:
        return _learner(name, "uniform", part)
    learner = _learner(name, BestAnnotator(), part)
    return replace(learner, calls=Calls(learner.calls.questions / len(votes.annotators), 0.0))


def _learner(name: str, optimiser: str | Optimiser, votes: Votes, rewritten: AbstractSet[str] = frozenset()) -> Entrant:
    chosen = optimisers.create(optimiser) if isinstance(optimiser, str) else optimiser
    calls = calls_of(votes, rewritten)
    return Entrant(name=name, votes=votes, optimiser=chosen, calls=calls, graded=any_graded(votes))


def calls_of(votes: Votes, rewritten: AbstractSet[str], cells: Mask | None = None) -> Calls:
    """Return the calls per item for some cells of the votes, by default all; cells never asked cost nothing."""
    asked = votes.codes != NOT_ASKED
    kinds = [elicitations.kind_of(name) for name in votes.annotators]
    each = np.array([elicitations.calls_of(kind) for kind in kinds], dtype=np.float64)
    answers = (asked if cells is None else asked & cells).sum(axis=(0, 2, 3))
    items = max(len(votes), 1)
    views = [column for column, name in enumerate(votes.relations) if name in rewritten and name != ORIGINAL]
    variants = asked[:, :, views].any(axis=(1, 3))
    return Calls(float(answers @ each / items), float(variants.sum() / items))


def self_consistency(votes: Votes, budget: float) -> OnCells:
    """Return self-consistency by vote share, on as many draws of the unchanged text as the calls per item allow."""
    votes = votes.plain()
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
