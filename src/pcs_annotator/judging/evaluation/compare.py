"""Cross-validated figures of several methods on the same rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from pcs_annotator.base.errors import UndefinedMetric
from pcs_annotator.core.arrays import Codes
from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.core.votes import Votes
from pcs_annotator.core.weights import Interval
from pcs_annotator.judging.baselines.logprob import LogProb, graded_rows
from pcs_annotator.judging.evaluation.methods import (
    MAJORITY,
    SCALED_LOGPROB,
    ZERO_SHOT,
    BestAnnotator,
    Entrant,
    Method,
    OnCells,
    Resampled,
    all_figures,
    estimates_of,
    original_of,
    ready,
)
from pcs_annotator.judging.metrics.bootstrap import WIDENING
from pcs_annotator.judging.metrics.metrics import Estimate
from pcs_annotator.judging.metrics.significance import BootstrapTest, bootstrap_test, holm
from pcs_annotator.judging.weighing.crossfit import Splits

REFERENCES = ("uniform", MAJORITY, ZERO_SHOT)
LOGPROB = LogProb.name
FIRST_QUESTION = "first question only"
ESTIMATES = ("auroc", "accuracy", "ece_score", "ece_confidence", "auroc_confidence")
TESTS = ("behind", "accuracy_behind")
ADJUSTED = ("holm", "holm_accuracy")


class Figures(NamedTuple):
    """Cross-validated figures of one method.

    Attributes:
        method: Registry name of the optimiser, `zero-shot` and the name of an annotator, `logprob`,
            `scaled logprob`, or `first question only`.
        auroc: The class AUROC: macro one-vs-rest, of the raw scores.
        accuracy: Of the most probable label; for rivals that learn nothing, of the label with the highest score.
        ece_score: Calibration error of the raw score.
        ece_confidence: Calibration error of the calibrated probability.
        behind: By how much the first method's class AUROC is higher, tested on the same rows; None for the first one.
        accuracy_behind: The same for accuracy.
        holm: p-value of `behind`, adjusted for the number of methods compared with the first.
        holm_accuracy: The same for `accuracy_behind`.
        questions: Questions per text; None when an earlier version did not count them.
        graded: Whether it uses the log-probabilities of answers.
        auroc_confidence: The confidence AUROC: right labels against wrong ones, by calibrated probability; None where
            nearly all labels are right, or wrong, and when an earlier version did not compute it.
    """

    method: str
    auroc: Estimate
    accuracy: Estimate
    ece_score: Estimate
    ece_confidence: Estimate
    behind: BootstrapTest | None
    accuracy_behind: BootstrapTest | None = None
    questions: float | None = None
    graded: bool = False
    auroc_confidence: Estimate | None = None
    holm: float | None = None
    holm_accuracy: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "method": self.method,
            **{name: None if (found := getattr(self, name)) is None else found.to_dict() for name in ESTIMATES},
            **{name: None if (test := getattr(self, name)) is None else list(test) for name in TESTS},
            **{name: getattr(self, name) for name in ADJUSTED},
            "questions": self.questions,
            "graded": self.graded,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Figures:
        """Return the figures that `to_dict` wrote."""
        known = {name: values[name] for name in ESTIMATES if values.get(name) is not None}
        estimates: dict[str, Any] = {**dict.fromkeys(ESTIMATES), **{k: Estimate.from_dict(v) for k, v in known.items()}}
        tests: dict[str, Any] = {name: _test(values.get(name)) for name in TESTS}
        counted: dict[str, Any] = {name: values[name] for name in ("questions", "graded", *ADJUSTED) if name in values}
        return cls(method=values["method"], **estimates, **tests, **counted)


def _test(values: Sequence[Any] | None) -> BootstrapTest | None:
    if values is None:
        return None
    difference, interval, p_value, n = values
    return BootstrapTest(difference, Interval(*interval), p_value, n)


def references(votes: Votes) -> tuple[str, ...]:
    """Return the simpler methods to compare with; for graded votes also what one graded question gives.

    A majority of one annotator is `zero-shot`, so it is left out there.
    """
    usual = tuple(name for name in REFERENCES if name != MAJORITY or len(votes.annotators) > 1)
    try:
        graded_rows(votes, LOGPROB)
    except UndefinedMetric:
        return usual
    first = (FIRST_QUESTION,) if len(votes.relations) > 1 else ()
    return (*usual, LOGPROB, SCALED_LOGPROB, *first)


def cross_validate(
    votes: Votes, gold: Codes, methods: Sequence[str], splits: Splits | None = None, *, resamples: int = 300
) -> list[Figures]:
    """Return cross-validated figures of every method on fully labelled rows, all on the same splits.

    The method `zero-shot` is one question to one annotator: for every fold, the most accurate one on the others.
    `first question only` is the first method on the votes about the unchanged text.
    """
    splits = splits or Splits()
    folds = splits.folds
    classes = len(np.unique(gold))
    if len(gold) < 2 * folds or classes < 2:
        there = "is 1 row" if len(gold) == 1 else f"are {len(gold)} rows"
        remedy = "label more rows" if len(gold) < 2 * folds else "label rows of another class too"
        raise UndefinedMetric(
            f"{folds}-fold cross-validation needs at least {2 * folds} gold rows and two classes, "
            f"there {there} of {classes}: {remedy}"
        )
    entrants = [_entrant(method, methods[0], votes, gold) for method in methods]
    fits = [entrant.cross_fits(gold, splits) for entrant in entrants]
    # the first method labels the run, so its label is the most probable one even if its weights are not learned
    fits = [
        one._replace(learns=one.learns or entrant is entrants[0] or entrant.name == FIRST_QUESTION)
        for one, entrant in zip(fits, entrants, strict=True)
    ]
    observed, resampled = all_figures(fits, gold, votes.labels, resamples, splits.seed)
    return with_holm([_figures(entrant, place, observed, resampled, gold) for place, entrant in enumerate(entrants)])


def with_holm(figures: Sequence[Figures]) -> list[Figures]:
    """Return the figures with p-values adjusted for the number of methods compared with the first."""
    adjusted = [_adjusted([getattr(one, name) for one in figures]) for name in TESTS]
    return [
        one._replace(holm=auroc, holm_accuracy=accuracy)
        for one, auroc, accuracy in zip(figures, *adjusted, strict=True)
    ]


def _adjusted(tests: Sequence[BootstrapTest | None]) -> list[float | None]:
    found = iter(holm([test.p_value for test in tests if test]))
    return [next(found) if test else None for test in tests]


def _entrant(name: str, first: str, votes: Votes, gold: Codes) -> Entrant:
    """Return the method of this name, ready; `first` is the name of the first one."""
    if name == ZERO_SHOT:
        return _zero_shot(votes, gold)
    method: Method = LogProb() if name == LOGPROB else name
    if name == MAJORITY == first:  # it labels the run, so it sees the votes as the model does
        method = OnCells(name=name, optimiser=MAJORITY, relations=[original_of(votes)])
    elif name == FIRST_QUESTION:
        method = OnCells(name=name, optimiser=first, relations=[ORIGINAL], draws=1)
    return ready(method, votes)


def _zero_shot(votes: Votes, gold: Codes) -> Entrant:
    """Return one question to the best annotator, chosen on other folds; the name says which is best on all rows."""
    entrant = ready(ZERO_SHOT, votes)
    weights = BestAnnotator().fit(entrant.votes, gold, seed=0)
    return replace(entrant, name=f"{ZERO_SHOT} {max(weights.by_annotator, key=weights.by_annotator.__getitem__)}")


def _figures(
    entrant: Entrant, place: int, observed: Sequence[Mapping[str, float]], resampled: Sequence[Resampled], gold: Codes
) -> Figures:
    def test(name: str) -> BootstrapTest | None:
        if not place:
            return None
        difference = observed[0][name] - observed[place][name]
        return bootstrap_test(difference, resampled[0][name] - resampled[place][name], len(gold), WIDENING)

    found = estimates_of(observed[place], resampled[place], gold)
    estimates: dict[str, Any] = {name: found.get(name) for name in ESTIMATES}
    return Figures(
        method=entrant.name,
        **estimates,
        behind=test("auroc"),
        accuracy_behind=test("accuracy"),
        questions=entrant.calls.questions,
        graded=entrant.graded,
    )
