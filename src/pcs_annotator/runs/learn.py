"""Learning from votes and gold in memory: the model, and cross-validated figures about it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from pcs_annotator.base.display import brief
from pcs_annotator.base.errors import ConfigError, GoldError, UndefinedMetric, warn_user
from pcs_annotator.base.plain import from_plain, to_plain
from pcs_annotator.base.text import listed
from pcs_annotator.core.arrays import CODE, Codes, Mask
from pcs_annotator.core.gold_codes import UNLABELLED, Coders, Once, gold_codes, once_per_text, same_grades
from pcs_annotator.core.identity import same_texts
from pcs_annotator.core.numbers import values_of
from pcs_annotator.core.task import MANY_LABELS
from pcs_annotator.core.votes import NO_GROUP, Votes
from pcs_annotator.core.weights import Flag
from pcs_annotator.judging.early_stop import Spending, exact_stop, spending_of
from pcs_annotator.judging.evaluate.agreement import AgainstGold, AmongCoders, Resampling, against_gold, among_coders
from pcs_annotator.judging.evaluate.harness import FIRST_QUESTION, cross_validate, references, scored_run
from pcs_annotator.judging.evaluate.held_out_figures import (
    Curves,
    FiguresByGroup,
    curves_of,
    figures_by_group,
    numbers_against_gold,
)
from pcs_annotator.judging.evaluate.passage_figures import PassageFigures
from pcs_annotator.judging.evaluate.scored import EvaluationOptions, MethodFigures
from pcs_annotator.judging.fit_model import Learning, fit_model, labelled_rows, unseen_labels, with_texts_read
from pcs_annotator.judging.fit_weights import Optimiser, fit_coded, optimisers
from pcs_annotator.judging.heldout import HeldOut, Splits
from pcs_annotator.judging.label_shape import ONE, LabelShape
from pcs_annotator.judging.model import Model
from pcs_annotator.judging.optimisers.simple import Distance
from pcs_annotator.judging.promise.drift import Drift, drift_by_group, profiles
from pcs_annotator.judging.promise.promise import Promise
from pcs_annotator.judging.solver import one_thread
from pcs_annotator.runs.gold_checks import gold_drift, warn_of_machine_gold
from pcs_annotator.runs.settings import LearnSettings
from pcs_annotator.version import __version__

PASSAGES_ARE_COUNTED = "passages are compared with gold by how many are right, and how many are missed"
NUMBERS_HAVE_ERRORS = "numbers are compared with gold by how far they are off"
NO_GOLD = "no gold labels, so all votes count the same and nothing is calibrated: label some rows (30 are a start)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """A model, and its cross-validated figures."""

    model: Model  # the model learned from all gold rows
    figures: Sequence[MethodFigures]  # the chosen optimiser first, then the references; empty with too little gold
    no_figures: str = ""  # why there are none
    curves: Curves | None = None  # curves over held-out gold rows for the report; None when there was too little gold
    spending: Spending | None = None  # the share of questions that a new text would need; None if uncalibrated
    drift: Drift | None = None  # whether rows without gold are answered differently; None without a promise
    against_gold: AgainstGold | None = None  # held-out labels against gold; None when there was too little gold
    by_group: FiguresByGroup | None = None  # figures of groups of texts; None without `by`, or with too little gold
    among_coders: AmongCoders | None = None  # how far people agree; None with fewer than two columns of labels
    passages: PassageFigures | None = None  # of candidates in gold texts, where passages or values are quoted
    trial: HeldOut | None = None  # gold rows as judged by fits that did not see them; not stored

    __repr__ = brief


class Looked(NamedTuple):
    """What earlier looks at the gold labels mean for a promise."""

    spent: float = 0.0  # how much of the errors that promises may have they used
    refused: str = ""  # why no promise may be made; empty when one may


class KnownRows(NamedTuple):
    """What is known about the rows beside their votes and gold."""

    random_sample: Mask | None = None  # which rows were drawn at random and so can support a promise; None for all
    assumed: Mask | None = None  # those of them that we did not draw, which the promise says; None for all
    texts: Sequence[str] | None = None  # the text of every row, because copies of a text count once; None if unknown
    looked: Looked = Looked()  # what earlier looks at the gold labels mean for a promise
    shape: LabelShape = ONE  # whether the labels are steps of a scale or paths of a tree
    coders: Coders | None = None  # what several people said; None if that is unknown
    undecided: Mask | None = None  # rows drawn at random that people judged without a decision; None for no row

    def labelled(self, votes: Votes, gold: Sequence[object], settings: LearnSettings) -> tuple[Votes, Codes]:
        """Return the rows with gold, each text once, with what the other texts say about them."""
        codes = gold_codes(votes, gold)
        rows = counted_once(votes, codes, self.texts, self.random_sample, self.undecided).distinct
        how = learning_of(settings, shape=self.shape)
        return labelled_rows(with_texts_read(votes.take(rows), codes[rows], how)[0], codes[rows])


NOTHING_KNOWN = KnownRows()


def learning_of(settings: LearnSettings, looked: Looked = NOTHING_KNOWN.looked, shape: LabelShape = ONE) -> Learning:
    """Return how to learn with these settings; those that cannot be used, such as no errors at all, raise."""
    optimisers.check(settings.optimiser)
    promise, number = None, shape.kind == "number"
    calibration = "number" if number and settings.calibration != "none" else settings.calibration
    if number:
        values = np.sort(values_of(shape.labels))
        tolerance = settings.tolerance or float(np.ptp(values)) / 20
        shape = shape._replace(within=int(tolerance / np.diff(values).min() + 1e-9))
    if settings.max_error is not None:
        promise = Promise(
            max_error=settings.max_error,
            certainty=settings.certainty,
            kind="off-by-more-than-one" if number else settings.promise,
            tolerance=f"{tolerance:g}" if number else "",
            per_label=settings.per_label,
            by=settings.by,
            of="values" if shape.kind == "value" else "passages" if shape.extracted else "labels",
        )
        if shape.extracted and (not promise.tested or settings.by or settings.per_label):
            remedy = "leave by, per_label and other promises out"
            raise ConfigError(f"passages have one promise, error-among-accepted, for all of them: {remedy}")
        if settings.by and (settings.per_label or shape.kind == "tree"):
            other = "per_label" if settings.per_label else 'kind = "tree"'
            raise ConfigError(f"by = {settings.by!r} cannot be used with {other}: use only one of them")
        if promise.near and not shape.ordered:
            raise ConfigError(f'promise = "{promise.kind}" is for the steps of a scale: use kind = "scale"')
        if shape.kind == "tree" and not promise.tested:
            raise ConfigError(f'promise = "{promise.kind}" is not possible for a tree: use error-among-accepted')
    return Learning(
        optimiser=Distance() if number and settings.optimiser == "auto" else settings.optimiser,
        splits=Splits(folds=settings.folds, seed=settings.seed, calibration=calibration),
        resamples=settings.resamples,
        promise=promise,
        sets=settings.sets,
        version=__version__,
        text=settings.text,
        spent=looked.spent,
        refused=looked.refused,
        shape=shape,
    )


def learn_if_possible(
    votes: Votes, gold: Sequence[object], settings: LearnSettings, about: KnownRows = NOTHING_KNOWN
) -> Learned:
    """Learn from the rows that have gold; without gold, all votes count the same and nothing is accepted."""
    if any(gold):
        return learn(votes, gold, settings, about)
    learning_of(settings, shape=about.shape)  # a setting that cannot be used is an error even without gold
    nothing = np.full(len(votes), UNLABELLED, dtype=CODE)
    weights = fit_coded(votes, nothing, "uniform", seed=settings.seed)
    promised = settings.max_error is not None
    model = Model(weights=weights, calibrator=None, by_agreement=promised, shape=about.shape)
    return Learned(model=model, figures=(), no_figures=NO_GOLD, **_agreement(votes, nothing, None, about, settings))


def learn(
    votes: Votes,
    gold: Iterable[object] | Mapping[str, object],
    settings: LearnSettings,
    about: KnownRows = NOTHING_KNOWN,
) -> Learned:
    """Learn weights, calibrator and promise from the rows that have gold, and compare with simple methods."""
    random_sample, assumed, texts = about.random_sample, about.assumed, about.texts
    how = learning_of(settings, about.looked, about.shape)
    codes = gold_codes(votes, gold)
    once = counted_once(votes, codes, texts, random_sample, about.undecided)
    _refuse_if_all_contradictory(once, votes, codes)
    labelled = (codes != UNLABELLED) & once.distinct
    with one_thread():
        model, trial = fit_model(
            votes, codes, how, random_sample=once.drawn, distinct=once.distinct, copies=once.copies
        )
        votes = replace(votes, text_log_probs=model.read(votes))
        model = model.with_coverage(votes).flagged(*about_copies(once, votes))
        at_random = labelled if random_sample is None else labelled & random_sample
        if model.certificate is not None:
            rows = votes.texts_among(at_random & ~votes.silent & (True if assumed is None else assumed))
            model = replace(model, certificate=replace(model.certificate, assumed_rows=rows))
        if trial is not None and (assumed is None or assumed.any()):
            warn_of_machine_gold(votes, labelled if assumed is None else labelled & assumed, trial)
        gold_rows, truth = labelled_rows(votes.take(once.distinct), codes[once.distinct])
        quality = _quality(gold_rows, truth, settings, how.shape, trial)
        unseen = by_group = None
        if quality.labels is not None:
            unseen = unseen_labels(votes, once.distinct, model, gold_rows, quality.labels)
        if trial is not None and quality.labels is not None and settings.by:
            groups, right = votes.groups or [NO_GROUP] * len(votes), quality.labels == truth
            by_group = figures_by_group(settings.by, groups, votes, gold_rows, model, trial, right=right)
        return Learned(
            model=model,
            figures=quality.figures,
            no_figures=quality.no_figures,
            trial=trial,
            curves=_curves(trial, settings),
            drift=gold_drift(votes, at_random, ~labelled & once.distinct, model),
            by_group=by_group,
            spending=None
            if model.calibrator is None or how.shape.extracted
            else spending_of(votes, exact_stop(votes, model)),
            **_agreement(votes, np.where(labelled, codes, UNLABELLED).astype(CODE), unseen, about, settings),
        )


def _agreement(
    votes: Votes, gold: Codes, unseen: Codes | None, about: KnownRows, settings: LearnSettings
) -> dict[str, Any]:
    """Return labels that the row's own gold had no part in against gold, and how far people and model agree."""
    if not settings.resamples:  # then there are no intervals
        return {}
    labels, ordered = votes.labels, about.shape.ordered
    how, rows, coders = Resampling(settings.resamples, settings.seed), gold != UNLABELLED, about.coders
    if about.shape.kind == "number":
        return {} if unseen is None else {"against_gold": numbers_against_gold(unseen[rows], gold[rows], labels, how)}
    if about.shape.extracted:
        return {}
    people = None if coders is None else among_coders(coders, unseen, len(labels), how, ordered=ordered)
    if unseen is not None:
        gold, unseen = gold[rows], unseen[rows]
    if unseen is not None and len(labels) > MANY_LABELS and not ordered:  # of very many, those of gold rows
        present, both = np.unique(np.concatenate([gold, unseen, [UNLABELLED]]), return_inverse=True)
        labels = tuple(labels[code] for code in present[1:].tolist())
        gold, unseen = both[: len(gold)] - 1, both[len(gold) : -1] - 1
    return {
        "against_gold": None if unseen is None else against_gold(unseen, gold, labels, how, ordered=ordered),
        "among_coders": people,
    }


def counted_once(
    votes: Votes,
    codes: Codes,
    texts: Sequence[str] | None = None,
    random_sample: Mask | None = None,
    undecided: Mask | None = None,
) -> Once:
    """Return one row for every text; where texts are unknown, for every set of graded votes."""
    same = same_texts(texts) if texts is not None and any(texts) else same_grades(votes)
    return once_per_text(same, votes.ids, codes, random_sample, undecided)


def _refuse_if_all_contradictory(once: Once, votes: Votes, codes: Codes) -> None:
    if len(once.contradictory) and (codes[once.distinct] == UNLABELLED).all():
        raise GoldError(next(flag.detail for flag in about_copies(once, votes)))


def about_copies(once: Once, votes: Votes) -> Iterator[Flag]:
    """Yield how many gold rows repeat a text, and which ones contradict each other."""
    if once.repeated:
        rows = "gold row repeats a text and counts" if once.repeated == 1 else "gold rows repeat a text and count"
        yield Flag("gold repeated", f"{once.repeated:,} {rows} once: copies say nothing new")
    if count := len(once.contradictory):
        names = listed((repr(votes.ids[row]) for row in once.contradictory.tolist()), count)
        detail = f"copies of a text have different gold labels, so these {count} rows are not learned from: {names}"
        yield Flag("gold contradictory", f"{detail}; correct them")


class _Quality(NamedTuple):
    """How good labels of gold rows are that the row's own gold had no part in; all figures are of these labels."""

    figures: Sequence[MethodFigures] = ()
    no_figures: str = ""  # why there are none
    labels: Codes | None = None  # of the gold rows; None when there was too little gold


def _quality(rows: Votes, truth: Codes, settings: LearnSettings, shape: LabelShape, trial: HeldOut | None) -> _Quality:
    """Return cross-validated figures of the chosen optimiser and the references, or why there are none."""
    if shape.kind == "number":
        return _Quality((), NUMBERS_HAVE_ERRORS, trial and trial.judged.best)
    if shape.extracted:
        return _Quality((), PASSAGES_ARE_COUNTED)
    # on a scale, what is read beside the votes is also the mean place of all answers, and not of the first alone
    left_out = (settings.optimiser, *([FIRST_QUESTION] if shape.kind == "scale" else []))
    methods = [settings.optimiser, *(name for name in references(rows) if name not in left_out)]
    splits = Splits(folds=settings.folds, seed=settings.seed, calibration=settings.calibration)
    try:
        figures = cross_validate(rows, truth, methods, splits, resamples=settings.resamples, shape=shape)
    except UndefinedMetric as error:
        return _Quality((), str(error), trial and trial.judged.best)
    scored = scored_run(rows, truth, settings.optimiser, EvaluationOptions(**asdict(splits)), shape)
    return _Quality(figures, "", scored.best)


def _curves(trial: HeldOut | None, settings: LearnSettings) -> Curves | None:
    if trial is None or not settings.resamples or trial.shape.kind == "number":  # there are no intervals to draw
        return None
    calibrated = settings.calibration != "none"
    return curves_of(trial, calibrated=calibrated, resamples=settings.resamples, seed=settings.seed)


def check_drift(model: Model, votes: Votes, texts: Sequence[str] | None = None) -> Drift | None:
    """Return whether votes on new texts differ from those that were learned from; None if nothing was kept of those."""
    if not (before := model.references):
        return None
    nothing = np.full(len(votes), UNLABELLED, dtype=CODE)
    votes = replace(votes, texts=votes.texts if texts is None else texts)
    votes = votes.take(counted_once(votes, nothing, texts).distinct)
    judged = model.judged(votes)
    return drift_by_group(before, profiles(votes, judged.scores, judged.best, before, model.familiar(votes)))


def model_file(learned: Learned, settings: LearnSettings, labels: Sequence[str]) -> dict[str, Any]:
    """Return the contents of `model.json`."""
    return {"version": __version__, "labels": list(labels), "learn": asdict(settings), **learned.model.to_dict()}


_PARTS: Mapping[str, Any] = {
    "figures": Sequence[MethodFigures],
    "no_figures": str,
    "curves": Curves,
    "spending": Spending,
    "drift": Drift,
    "against_gold": AgainstGold,
    "among_coders": AmongCoders,
    "by_group": FiguresByGroup,
    "passages": PassageFigures,
}
"""Part of `Learned` that `evaluation.json` has, if there is one → its class."""


def evaluation_file(learned: Learned) -> dict[str, Any]:
    """Return the contents of `evaluation.json`."""
    return {name: to_plain(getattr(learned, name)) for name in _PARTS}


def learned_from(model: Model, evaluation: Mapping[str, Any]) -> Learned:
    """Return the model with what `evaluation_file` wrote; parts that it did not write are None."""
    return Learned(model=model, **{name: from_plain(kind, evaluation.get(name)) for name, kind in _PARTS.items()})


def needs_gold(optimiser: str | Optimiser) -> bool:
    """Return whether an optimiser learns from gold rows only, so that the models need not be asked about others."""
    return (optimisers.create(optimiser) if isinstance(optimiser, str) else optimiser).needs_gold


def fit_for_classifier(
    votes: Votes,
    gold: Sequence[object] | Mapping[str, object],
    optimiser: str | Optimiser,
    seed: int,
    *,
    max_error: float | None = None,
    text: bool = True,
) -> Model:
    """Learn weights, and with enough gold a calibrator and a promise; copies of a text count once, as in `learn`."""
    promise = None if max_error is None else Promise(max_error=max_error)
    how = Learning(optimiser=optimiser, splits=Splits(seed=seed), promise=promise, version=__version__, text=text)
    codes = gold_codes(votes, gold)
    once = counted_once(votes, codes, votes.texts)
    _refuse_if_all_contradictory(once, votes, codes)
    flags = list(about_copies(once, votes))
    for flag in flags:
        if flag.kind == "gold contradictory":
            warn_user(flag.detail)
    return fit_model(votes, codes, how, distinct=once.distinct).model.flagged(*flags)
