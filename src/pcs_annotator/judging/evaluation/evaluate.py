"""`evaluate`: all methods on the same votes and the same splits, with intervals and paired tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from pcs_annotator.base.errors import MismatchError, UndefinedMetric, UnknownNameError
from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.core.gold import UNLABELLED
from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.core.votes import Votes, positions_of
from pcs_annotator.judging.evaluation.agreement import AgainstGold, Resampling, Scale, against_gold
from pcs_annotator.judging.evaluation.methods import (
    ABOUT_AUROC,
    ABOUT_ECE,
    NO_CONFIDENCE_AUROC,
    Calls,
    Entrant,
    Fits,
    Method,
    about_intervals,
    all_figures,
    estimates_of,
    method_name,
    ready,
    self_consistency,
)
from pcs_annotator.judging.metrics.bootstrap import WIDENING
from pcs_annotator.judging.metrics.metrics import Estimate
from pcs_annotator.judging.metrics.significance import BootstrapTest, PairedTest, bootstrap_test, delong, holm
from pcs_annotator.judging.weighing.scoring import choose

HARD_AND_GRADED = (
    "Graded class AUROC ranks rows by the score, hard class AUROC by the chosen label alone (1 for it, 0 for the "
    "others); a label without log-probabilities has no score, so compare hard with hard: a graded figure against a "
    "hard one flatters the graded one."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationOptions:
    """How to compare methods.

    Attributes:
        folds: Number of folds in every split.
        repeats: Number of random splits; figures are means over them.
        seed: Seed of the first split and of the resamples; later splits use the following numbers.
        resamples: Number of bootstrap resamples of the rows.
        calibration: Name of the calibration method.
        rewritten: Relations whose variants a model wrote, so that every variant cost a call.
        order: The labels from the lowest to the highest; empty if they have no order.
    """

    folds: int = 5
    repeats: int = 3
    seed: int = 0
    resamples: int = 1000
    calibration: str = "softmax"
    rewritten: AbstractSet[str] = frozenset()
    order: Sequence[str] = ()

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seed of every split."""
        return tuple(range(self.seed, self.seed + max(1, self.repeats)))


class Against(NamedTuple):
    """The first method against this one: positive differences favour the first.

    Attributes:
        auroc: Paired bootstrap on graded AUROC, over all splits.
        accuracy: The same for accuracy.
        delong: DeLong's test on the scores of the first split; None where a class has a single row.
        holm: p-value of `auroc`, adjusted for the number of methods compared with the first.
        holm_accuracy: The same for `accuracy`.
        holm_delong: The same for `delong`.
    """

    auroc: BootstrapTest
    accuracy: BootstrapTest
    delong: PairedTest | None
    holm: float
    holm_accuracy: float
    holm_delong: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodFigures:
    """One method.

    Attributes:
        method: Its name.
        calls: Its calls per item.
        figures: Its figures by name, see `FIGURES`; those that are undefined on these rows are absent.
        against: Its test against the first method; None for the first itself.
        graded: Whether it uses the log-probabilities of answers.
    """

    method: str
    calls: Calls
    figures: Mapping[str, Estimate]
    against: Against | None = None
    graded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Methods side by side.

    Attributes:
        n: Number of gold rows.
        how: Splits, seeds and resamples.
        methods: In the order given, self-consistency at equal calls last.
        missing: Method → why it has no figures.
        notes: What readers of the figures need to know.
        against_gold: The labels of the first method against gold.
    """

    n: int
    how: EvaluationOptions
    methods: Sequence[MethodFigures]
    missing: Mapping[str, str]
    notes: Sequence[str]
    against_gold: AgainstGold


def evaluate(votes: Votes, gold: Codes, methods: Sequence[Method], how: EvaluationOptions | None = None) -> Evaluation:
    """Return figures of every method on gold rows that its fit did not see, all on the same splits.

    A method that needs other votes is listed in `missing` with the reason. The first of the others is tested against
    each of the rest. If the votes have several draws of the unchanged text, self-consistency with as many calls as the
    first method is added, by plain vote share and with the first method's own optimiser.

    Args:
        votes: The votes on all rows.
        gold: Each item's label as a position in `votes.labels`, or `UNLABELLED`; rows without gold are left out.
        methods: See `methods.Method`.
        how: Splits, seeds and resamples.

    Raises:
        UndefinedMetric: Too few gold rows, a single class, or no method that these votes allow.
    """
    how = how or EvaluationOptions()
    votes, gold = labelled_rows(votes, gold, how.folds)
    entrants, missing = _entrants(votes, methods, how.rewritten)
    if not entrants:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in missing.items()) or "no method was named"
        raise UndefinedMetric(f"nothing to evaluate: {reasons}")
    extra, notes = _at_equal_calls(votes, entrants[0])
    entrants += extra
    fits = [
        Fits([one.cross_fit(gold, how.folds, seed, how.calibration) for seed in how.seeds], one.learns)
        for one in entrants
    ]
    found = method_figures(entrants, fits, gold, how)
    absent = [] if all("auroc_confidence" in one.figures for one in found) else [NO_CONFIDENCE_AUROC]
    notes = [HARD_AND_GRADED, *_notes(votes, gold, how), *absent, *notes]
    against = _against_gold(entrants[0], fits[0], gold, how)
    return Evaluation(n=len(gold), how=how, methods=found, missing=missing, notes=notes, against_gold=against)


def method_figures(
    entrants: Sequence[Entrant], fits: Sequence[Fits], gold: Codes, how: EvaluationOptions
) -> list[MethodFigures]:
    """Return the figures of methods on the same rows and resamples, each with its test against the first."""
    observed, resampled = all_figures(fits, gold, entrants[0].votes.labels, how.resamples, how.seed)
    tests = _tests(fits, gold, observed, resampled)
    return [
        MethodFigures(
            method=entrant.name,
            calls=entrant.calls,
            figures=estimates_of(observed[place], resampled[place], gold),
            against=tests[place],
            graded=entrant.graded,
        )
        for place, entrant in enumerate(entrants)
    ]


def _against_gold(entrant: Entrant, fits: Fits, gold: Codes, how: EvaluationOptions) -> AgainstGold:
    """Return a method's held-out labels against gold; where splits differ, the label is that of their mean."""
    labels = entrant.votes.labels
    values = np.mean([fit.probabilities if fits.learns else fit.scores for fit in fits.splits], axis=0)
    order = np.array(positions_of(labels, how.order or labels, "label"), dtype=np.int8)
    given = np.where(entrant.votes.silent, UNLABELLED, order[choose(values, labels)]).astype(np.int8)
    scale = Scale.of(how.order, ordered=bool(how.order))
    return against_gold(given, order[gold], how.order or labels, scale, Resampling(how.resamples, how.seed))


def labelled_rows(votes: Votes, gold: Codes, folds: int) -> tuple[Votes, Codes]:
    """Return the rows that have gold, sorted by id so that splits do not depend on the order of a file."""
    known = np.flatnonzero(gold != UNLABELLED).tolist()
    rows = np.array(sorted(known, key=votes.ids.__getitem__), dtype=np.intp)
    classes = len(np.unique(gold[rows]))
    if len(rows) < 2 * folds or classes < 2:
        raise UndefinedMetric(
            f"{folds}-fold cross-validation needs at least {2 * folds} gold rows and two classes, "
            f"there are {len(rows)} of {classes}: label more rows"
        )
    return votes.take(rows), gold[rows]


def _entrants(
    votes: Votes, methods: Sequence[Method], rewritten: AbstractSet[str]
) -> tuple[list[Entrant], dict[str, str]]:
    found: list[Entrant] = []
    missing: dict[str, str] = {}
    for method in methods:
        try:
            found.append(ready(method, votes, rewritten))
        except (UndefinedMetric, MismatchError, UnknownNameError) as error:
            missing[method_name(method)] = str(error)
    return found, missing


def _at_equal_calls(votes: Votes, first: Entrant) -> tuple[list[Entrant], list[str]]:
    """Return self-consistency with the calls of the first method, and the note about it."""
    try:
        plain = self_consistency(votes, first.calls.total)
    except UndefinedMetric as error:
        return [], [f"{error}."]
    rivals = [plain]
    if first.optimiser is not None:
        rivals.append(replace(plain, name=f"{plain.name}, {first.name}", optimiser=first.optimiser))
    entrants = [ready(rival, votes) for rival in rivals]
    spent, budget = entrants[0].calls.total, first.calls.total
    note = f"Self-consistency pays {spent:.1f} calls per item, {first.name} {budget:.1f}"
    short = spent < budget - len(plain.annotators or ()) / 2
    return entrants, [f"{note}: no more draws are recorded, so it is at a disadvantage." if short else f"{note}."]


def _notes(votes: Votes, gold: Codes, how: EvaluationOptions) -> list[str]:
    """Return the notes about rows, splits and calls."""
    seeds = ", ".join(map(str, how.seeds))
    notes = [
        f"{len(gold)} gold rows; {how.folds}-fold stratified cross-validation, seeds {seeds}.",
        about_intervals(how.resamples),
        "Class AUROC and the first ECE are of the raw score. Accuracy, F1 and hard class AUROC are of the label: the "
        "most probable one for methods that learn from gold, else the one with the highest score. Confidence AUROC, "
        "the second ECE, Brier, AURC, accuracy at coverage and rows for review are of the probability calibrated on "
        "other folds.",
        ABOUT_AUROC,
        ABOUT_ECE,
    ]
    absent = [repr(label) for code, label in enumerate(votes.labels) if not (gold == code).any()]
    if absent:
        notes.append(f"No gold row says {', '.join(absent)}: left out of every mean over labels.")
    if ORIGINAL not in votes.relations:
        notes.append(f"No relation is called {ORIGINAL!r}: {votes.original!r}, the first, stands for it.")
    counted = [name for name in votes.relations if name in how.rewritten]
    rewriting = f"one rewriting call per variant of {', '.join(counted)}" if counted else "no rewriting calls"
    notes.append(f"Calls per item count every question, and {rewriting}.")
    return notes


def _tests(
    fits: Sequence[Fits],
    gold: Codes,
    observed: Sequence[Mapping[str, float]],
    resampled: Sequence[Mapping[str, Floats]],
) -> list[Against | None]:
    """Return the tests of the first method against each of the others, adjusted for their number."""

    def bootstrap(place: int, name: str) -> BootstrapTest:
        difference = observed[0][name] - observed[place][name]
        return bootstrap_test(difference, resampled[0][name] - resampled[place][name], len(gold), WIDENING)

    others = range(1, len(fits))
    by_auroc = [bootstrap(place, "auroc") for place in others]
    by_accuracy = [bootstrap(place, "accuracy") for place in others]
    by_delong = [_delong(fits[0].splits[0].ranks, fits[place].splits[0].ranks, gold) for place in others]
    adjusted = holm([test.p_value for test in by_auroc])
    adjusted_accuracy = holm([test.p_value for test in by_accuracy])
    adjusted_delong = iter(holm([test.p_value for test in by_delong if test]))
    return [
        None,
        *(
            Against(
                by_auroc[turn],
                by_accuracy[turn],
                test,
                adjusted[turn],
                adjusted_accuracy[turn],
                next(adjusted_delong) if test else None,
            )
            for turn, test in enumerate(by_delong)
        ),
    ]


def _delong(ours: Floats, theirs: Floats, gold: Codes) -> PairedTest | None:
    try:
        return delong(ours, theirs, gold, WIDENING)
    except UndefinedMetric:
        return None
