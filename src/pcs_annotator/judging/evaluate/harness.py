"""Methods compared: all of them (`evaluate`), simple ones with a run's own (`cross_validate`), or two sets of votes."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from pcs_annotator.base.display import brief
from pcs_annotator.base.errors import MismatchError, UndefinedMetric, UnknownNameError, UserError
from pcs_annotator.core.arrays import CODE, Codes
from pcs_annotator.core.gold_codes import UNLABELLED
from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.core.votes import Votes, positions_of
from pcs_annotator.judging.baselines import LogProb, graded_rows
from pcs_annotator.judging.evaluate import methods
from pcs_annotator.judging.evaluate import scored as figures
from pcs_annotator.judging.evaluate.agreement import AgainstGold, Resampling, against_gold
from pcs_annotator.judging.evaluate.scored import EvaluationOptions, Scored, check_rows, labelled_rows
from pcs_annotator.judging.fit_model import read_texts
from pcs_annotator.judging.heldout import Splits
from pcs_annotator.judging.label_shape import ONE, LabelShape
from pcs_annotator.judging.metrics.figures import Estimate
from pcs_annotator.judging.metrics.significance import BootstrapTest
from pcs_annotator.judging.solver import one_thread

REFERENCES = ("uniform", methods.MAJORITY, methods.ZERO_SHOT)
LOGPROB = LogProb.name
FIRST_QUESTION = "first question only"
VOTES_ALONE = "votes alone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Methods side by side."""

    n: int  # number of gold rows
    how: EvaluationOptions  # splits, seeds and resamples
    methods: Sequence[figures.MethodFigures]  # in the order given, self-consistency at equal calls last
    missing: Mapping[str, str]  # method → why it has no figures
    notes: Sequence[str]  # what readers of the figures need to know
    against_gold: AgainstGold  # the labels of the first method against gold

    __repr__ = brief

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "n": self.n,
            **self.how.to_dict(self.n),
            "calibration": self.how.calibration,
            "rewritten": sorted(self.how.rewritten),
            "methods": [method.as_evaluated() for method in self.methods],
            "missing": dict(self.missing),
            "notes": list(self.notes),
            "against_gold": self.against_gold.to_dict(),
        }


def evaluate(
    votes: Votes, gold: Codes, wanted: Sequence[methods.Method], how: EvaluationOptions | None = None
) -> Evaluation:
    """Return figures of every method on gold rows that its fit did not see, all on the same splits.

    A method that needs other votes is in `missing`; the first of the others is tested against the rest. Added are
    self-consistency with as many calls, by vote share and with the first method's own optimiser, if there are several
    draws of the unchanged text, and the first method joined by a model of the texts, if these are known.
    """
    how = how or EvaluationOptions()
    labels = how.order or votes.labels
    votes, gold = labelled_rows(votes, np.where(votes.silent, UNLABELLED, gold).astype(CODE), how.folds)
    entrants, missing = list[methods.Entrant](), dict[str, str]()
    for method in wanted:
        try:
            entrants.append(methods.ready(method, votes, how.rewritten))
        except (UndefinedMetric, MismatchError, UnknownNameError) as error:
            missing[methods.method_name(method)] = str(error)
    if not entrants:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in missing.items()) or "no method was named"
        raise UndefinedMetric(f"nothing to evaluate: {reasons}")
    rivals, notes = _at_equal_calls(votes, entrants[0])
    with one_thread():
        log_probs, _ = read_texts(votes, gold, how.seed)
        if log_probs.text_log_probs is not None and entrants[0].optimiser is not None:
            first = replace(entrants[0].votes, text_log_probs=log_probs.text_log_probs)
            entrants.insert(0, replace(entrants[0], name=f"{entrants[0].name} + text", votes=first))
        scored = [Scored.of(one, gold, how) for one in (*entrants, *rivals)]
        scored[0] = replace(scored[0], shape=how.shape)  # it labels the run
        results = figures.side_by_side(scored)
        against = _against_gold(scored[0], labels)
    absent = [] if all("auroc_confidence" in one.figures for one in results) else [figures.NO_CONFIDENCE_AUROC]
    notes = [figures.HARD_AND_GRADED, *_notes(votes, gold, how), *absent, *notes]
    return Evaluation(n=len(gold), how=how, methods=results, missing=missing, notes=notes, against_gold=against)


def _against_gold(first: Scored, labels: Sequence[str]) -> AgainstGold:
    """Return a method's held-out labels against gold, in the order of `labels`."""
    votes, how = first.entrant.votes, first.how
    order = np.array(positions_of(votes.labels, labels, "label"), dtype=CODE)
    assigned = np.where(votes.silent, UNLABELLED, order[first.best]).astype(CODE)
    return against_gold(
        assigned, order[first.gold], labels, Resampling(how.resamples, how.seed), ordered=bool(how.order)
    )


def _at_equal_calls(votes: Votes, first: methods.Entrant) -> tuple[list[methods.Entrant], list[str]]:
    """Return self-consistency with the calls of the first method, and the note about it."""
    try:
        plain = methods.self_consistency(votes, first.calls.total)
    except UserError as error:
        return [], [f"{error}."]
    rivals = [plain]
    if first.optimiser is not None:
        rivals.append(replace(plain, name=f"{plain.name}, {first.name}", optimiser=first.optimiser))
    entrants = [methods.ready(rival, votes) for rival in rivals]
    spent, budget = entrants[0].calls.total, first.calls.total
    note = f"Self-consistency pays {spent:.1f} calls per item, {first.name} {budget:.1f}"
    short = spent < budget - len(plain.annotators or ()) / 2
    return entrants, [f"{note}: no more draws are recorded, so it is at a disadvantage." if short else f"{note}."]


def _notes(votes: Votes, gold: Codes, how: EvaluationOptions) -> list[str]:
    """Return the notes about rows, splits and calls."""
    seeds = ", ".join(map(str, how.seeds(len(gold))))
    notes = [
        f"{len(gold)} gold rows; {how.folds}-fold stratified cross-validation, seeds {seeds}.",
        figures.about_intervals(how.resamples),
        "Class AUROC and the first ECE are of the raw score. Accuracy, F1 and hard class AUROC are of the label: the "
        "most probable one for methods that learn from gold, else the one with the highest score. Confidence AUROC, "
        "the second ECE, Brier, AURC, accuracy at coverage and rows for review are of the probability calibrated on "
        "other folds.",
        figures.ABOUT_AUROC,
        figures.ABOUT_ECE,
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


def references(votes: Votes) -> tuple[str, ...]:
    """Return the simpler methods to compare with; for graded votes also what one graded question gives."""
    usual = tuple(name for name in REFERENCES if name != methods.MAJORITY or len(votes.annotators) > 1)
    try:
        graded_rows(votes, LOGPROB)
    except UndefinedMetric:
        return usual
    first = (FIRST_QUESTION,) if len(votes.relations) > 1 else ()
    return (*usual, LOGPROB, methods.SCALED_LOGPROB, *first)


def cross_validate(
    votes: Votes,
    gold: Codes,
    names: Sequence[str],
    splits: Splits | None = None,
    *,
    resamples: int = 300,
    shape: LabelShape = ONE,
) -> list[figures.MethodFigures]:
    """Return cross-validated figures of every method on fully labelled rows, all on the same splits.

    If texts were read, only the first method and `first question only` know what they say, so that what more questions
    bought is seen; `votes alone` is the first method without it.
    """
    splits = splits or Splits()
    check_rows(gold, splits.folds)
    how, first = EvaluationOptions(resamples=resamples, **asdict(splits)), names[0]
    alone = replace(votes, text_log_probs=None)
    scored = [_scored_as_run(first, votes, gold, how, shape)]
    if votes.text_log_probs is not None:
        scored.append(_scored_as_run(first, alone, gold, how, shape, VOTES_ALONE))
    for name in names[1:]:
        if name == FIRST_QUESTION:
            method = methods.OnCells(name=name, optimiser=first, relations=[ORIGINAL], draws=1)
            scored.append(Scored.of(methods.ready(method, votes), gold, how).labelling(shape))
        else:
            scored.append(Scored.of(_reference(name, alone, gold), gold, how))
    return figures.side_by_side(scored)


def scored_run(votes: Votes, gold: Codes, optimiser: str, how: EvaluationOptions, shape: LabelShape = ONE) -> Scored:
    """Return fully labelled rows as a run with this optimiser judges them, by fits that did not see them."""
    check_rows(gold, how.folds)
    return _scored_as_run(optimiser, votes, gold, how, shape)


def _scored_as_run(  # what is known about the rows, one argument each
    optimiser: str, votes: Votes, gold: Codes, how: EvaluationOptions, shape: LabelShape, name: str = ""
) -> Scored:
    """Return the results of the method that labels a run; it sees the votes as the run's model does."""
    relations = [methods.original_of(votes)] if optimiser == methods.MAJORITY else None
    method = methods.OnCells(name=name or optimiser, optimiser=optimiser, relations=relations)
    return Scored.of(methods.ready(method, votes), gold, how).labelling(shape)


def _reference(name: str, votes: Votes, gold: Codes) -> methods.Entrant:
    """Return a simpler method, ready; zero-shot is chosen on other folds, and its name says which is best on all."""
    entrant = methods.ready(LogProb() if name == LOGPROB else name, votes)
    if name != methods.ZERO_SHOT:
        return entrant
    weights = methods.BestAnnotator().fit(entrant.votes, gold, seed=0).by_annotator
    return replace(entrant, name=f"{name} {max(weights, key=weights.__getitem__)}")


class Contender(NamedTuple):
    """Votes, and how labels are learned from them: the names of an optimiser and of a calibration."""

    votes: Votes
    optimiser: str
    calibration: str = "softmax"
    shape: LabelShape = ONE


class RightRows(NamedTuple):
    """How many gold rows both, only one, or neither of two contenders has right."""

    both: int
    only_first: int
    only_second: int
    neither: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PairFigures:
    """Two contenders side by side, on gold rows that their fits did not see; differences are second minus first."""

    n: int  # number of gold rows
    how: EvaluationOptions  # splits, seeds and resamples, the same for both
    # the figures of both by name, see `scored.FIGURES`; those that are undefined are absent
    figures: tuple[Mapping[str, Estimate], Mapping[str, Estimate]]
    accuracy: BootstrapTest  # the difference in accuracy, by a paired bootstrap over all splits
    auroc: BootstrapTest  # the same for the class AUROC
    right: RightRows  # who is right how often

    __repr__ = brief

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; the contenders are `a` and `b`."""
        return {
            "n": self.n,
            **self.how.to_dict(self.n),
            **{
                side: {name: figures.figure_json(figure) for name, figure in figures_of.items()}
                for side, figures_of in zip("ab", self.figures, strict=True)
            },
            "difference": {"accuracy": figures.test_json(self.accuracy), "auroc": figures.test_json(self.auroc)},
            "right": self.right._asdict(),
        }


def compare_pair(contenders: Sequence[Contender], gold: Codes, how: EvaluationOptions | None = None) -> PairFigures:
    """Return the figures of two contenders on the same gold rows and splits, with paired tests."""
    how = how or EvaluationOptions()
    if len({(tuple(contender.votes.ids), tuple(contender.votes.labels)) for contender in contenders}) > 1:
        raise MismatchError("the votes have other items or labels: give both the same ones, in the same order")
    scored = []
    with one_thread():
        for contender in contenders:
            votes, truth = labelled_rows(contender.votes, gold, how.folds)
            own_how = replace(how, calibration=contender.calibration)
            scored.append(scored_run(votes, truth, contender.optimiser, own_how, contender.shape))
        second, first = figures.side_by_side(scored[::-1])
    assert first.behind is not None, "it is tested against the second"
    assert first.accuracy_behind is not None, "the same"
    wrong = np.array([contender.best != contender.gold for contender in scored])
    return PairFigures(
        n=len(truth),
        how=how,
        figures=(first.figures, second.figures),
        accuracy=first.accuracy_behind,
        auroc=first.behind,
        right=RightRows(*np.bincount([2, 1] @ wrong, minlength=4).tolist()),
    )
