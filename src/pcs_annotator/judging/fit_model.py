"""From votes and gold to a model: weights, calibrator and promise, each learned from rows unseen by the one before."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from pcs_annotator.core.arrays import CODE, Codes, Floats, Integers, Mask
from pcs_annotator.core.gold_codes import UNLABELLED
from pcs_annotator.core.passages import YES
from pcs_annotator.core.task import MANY_LABELS
from pcs_annotator.core.votes import Votes, positions_of
from pcs_annotator.core.weights import Weights
from pcs_annotator.judging import calibrate as calibration
from pcs_annotator.judging.fit_weights import (
    MIN_ROWS_TO_CALIBRATE,
    Optimiser,
    fit_coded,
    in_canonical_order,
    optimisers,
)
from pcs_annotator.judging.heldout import AskPolicy, HeldOut, Judged, Splits, run_trial
from pcs_annotator.judging.label_shape import ONE, LabelShape
from pcs_annotator.judging.model import Model, Predictions
from pcs_annotator.judging.promise.certificate import Certificate, Level, certify, fingerprint, no_promise
from pcs_annotator.judging.promise.drift import profile, profiles
from pcs_annotator.judging.promise.promise import USED_UP, Promise
from pcs_annotator.judging.promise.sets import PredictionSets, fit_prediction_sets
from pcs_annotator.judging.text_model import TextModel, fit_text_model

# Means over splits are a little better than the model that is kept, so intervals promised to miss 10 % miss 10.2 %.
INTERVAL_MISSES = 0.09


@dataclass(frozen=True, slots=True, kw_only=True)
class Learning:
    """How to learn."""

    optimiser: str | Optimiser = "lr"  # a registry name, or your own optimiser
    splits: Splits = field(default_factory=Splits)  # how gold rows are divided
    resamples: int = 0  # bootstrap resamples behind the intervals of weights; 0 for none
    promise: Promise | None = None  # the promise about accepted labels; None for no decisions
    sets: bool = False  # whether outcomes list the labels that cannot be ruled out
    version: str = ""  # version of the code, for the certificate's fingerprint
    spent: float = 0.0  # how much of the promise's δ earlier looks at the gold labels have used
    text: bool = False  # whether to learn from the texts too, if they are known
    refused: str = ""  # why no promise may be made, whatever the gold rows show; empty when one may
    shape: LabelShape = ONE  # whether labels are steps of a scale or paths of a tree


class FitResult(NamedTuple):
    """A model, and the gold rows as judged by fits that did not see them; None when there are too few."""

    model: Model
    trial: HeldOut | None


def fit_model(  # noqa: PLR0913  # what is known about the rows, one argument each
    votes: Votes,
    gold: Codes,
    how: Learning,
    *,
    weights: Weights | None = None,
    random_sample: Mask | Integers | None = None,
    distinct: Mask | None = None,
    copies: Integers | None = None,
    ask_policy: AskPolicy | None = None,
) -> FitResult:
    """Return the model learned from votes and gold, and the gold rows as judged by held-out fits.

    `weights` are those of `fit_coded` for the rows that count, if known. `random_sample` says which rows were drawn at
    random and so can support a promise, by default all; or how many with the text of each row were, and then people
    could not agree on those without gold: they count as wrong. `distinct` are the rows that count, one for every text,
    because copies would be on both sides of a split; `copies`, how many rows have the text of each (`once_per_text`).
    Confidence and promise are for texts that are asked about by `ask_policy`; by default, all questions are asked.
    """
    fingerprint_now = fingerprint(votes, gold, how.version) if how.promise is not None else None
    if distinct is not None:
        votes, gold = votes.take(distinct), gold[distinct]
        random_sample = None if random_sample is None else random_sample[distinct]
        copies = None if copies is None else copies[distinct]
    readable, text, how = with_texts_read(votes, gold, how)
    if weights is None:
        weights = fit_coded(readable, gold, how.optimiser, seed=how.splits.seed, resamples=how.resamples)
    rows, truth = labelled_rows(readable, gold)
    splits, chosen = how.splits, chosen_optimiser(how.optimiser, weights)
    trial = run_trial(chosen, rows, truth, splits, shape=how.shape)
    calibrator = None
    if trial is not None and splits.calibration != "none":  # raw scores must not be shown as probabilities
        calibrator = calibration.joint_calibrator(weights, len(truth), splits.calibration)
        calibrator = calibrator or calibration.fit_calibrator(
            trial.scores, trial.gold, trial.labels, splits.calibration, log_probs=rows.text_log_probs
        )
    if calibrator is not None and calibrator.reading:
        with_text = votes if text is None else replace(votes, text_log_probs=text.read(votes.texts or (), votes.labels))
        votes = how.shape.placed(with_text)
    shown = votes
    if ask_policy is not None:
        shown = ask_policy(votes, weights, calibrator)
        whole, trial = trial, run_trial(chosen, rows, truth, splits, ask_policy, how.shape)
        if whole is not None and trial is not None and calibrator is not None:
            calibrator = calibration.tempered(
                calibrator, whole.scores, trial.scores, trial.gold, trial.labels, rows.text_log_probs
            )
    model = Model(
        weights=weights,
        calibrator=calibrator,
        margin=None if trial is None or calibrator is None else trial.margin,
        text=text if calibrator is not None and calibrator.reading else None,
        sets=_sets(trial, how),
        shape=how.shape,
    )
    judged = model.judged(shown)
    model = replace(model, profile=profile(shown, judged.scores, judged.best, model.familiar(shown)))
    if how.promise is not None:
        labelled = gold != UNLABELLED
        drawn = labelled if random_sample is None else random_sample
        drawn = drawn & labelled if drawn.dtype == np.bool_ else drawn
        # a row without a label is never accepted, so it says nothing about accepted ones
        times = np.where(shown.silent, 0, drawn).astype(np.intp)
        tested = times[positions_of(rows.ids, votes.ids, "item")] > 0
        trial = trial and trial._replace(near=how.promise.near, at_random=tested)
        others = np.repeat(np.flatnonzero(~labelled), 1 if copies is None else copies[~labelled])
        table_of = partial(_table, model, shown, judged, others, how.promise)
        certificate = _certificate(trial, (rows, truth), (shown, judged.probabilities, times), how, table_of)
        promised = certificate.thresholds if how.promise.by else ()
        groups = profiles(shown, judged.scores, judged.best, promised, model.familiar(shown))
        model = replace(model, certificate=replace(certificate, fingerprint=fingerprint_now), profiles=groups)
    return FitResult(model, trial)


def with_texts_read(votes: Votes, gold: Codes, how: Learning) -> tuple[Votes, TextModel | None, Learning]:
    """Return the votes with what the texts say, as far as that is wanted and known."""
    if how.splits.calibration == "none":
        return votes, None, how
    few = len(votes.labels) <= MANY_LABELS  # most of very many labels have no text to learn from
    readable, text = read_texts(votes, gold, how.splits.seed) if how.text and few else (votes, None)
    how = replace(how, shape=how.shape.mixing(readable, gold))
    return how.shape.placed(readable), text, how


def _sets(trial: HeldOut | None, how: Learning) -> PredictionSets | None:
    """Return what finds the labels that cannot be ruled out; on a scale, an interval of them, requested or not."""
    if trial is None or not (how.sets or how.shape.ordered):
        return None
    if not how.shape.ordered:
        return fit_prediction_sets(trial.probabilities, trial.gold)
    misses = 0.1 if how.shape.kind == "number" else INTERVAL_MISSES
    return fit_prediction_sets(how.shape.tails(trial.probabilities, trial.labels), trial.gold, misses)


def read_texts(votes: Votes, gold: Codes, seed: int) -> tuple[Votes, TextModel | None]:
    """Return the votes with what the texts with gold say, nan for the others, and the model that was learned from them.

    No text is read by a model that saw its label.
    """
    rows = np.flatnonzero(gold != UNLABELLED)
    texts = [votes.texts[row] for row in rows.tolist()] if votes.texts else []
    units = votes.unit_codes
    of_rows = None if units is None else units[rows]
    model = fit_text_model(texts, gold[rows], votes.labels, seed, of_rows) if texts else None
    if model is None:
        return votes, None
    log_probs = np.full((len(votes), len(votes.labels)), np.nan)
    log_probs[rows] = model.read(texts, votes.labels)
    return replace(votes, text_log_probs=log_probs), model


def labelled_rows(votes: Votes, gold: Codes) -> tuple[Votes, Codes]:
    """Return the rows with gold and a label, every axis sorted by name."""
    labelled = (gold != UNLABELLED) & ~votes.silent
    return in_canonical_order(votes.take(labelled), gold[labelled])


def chosen_optimiser(named: str | Optimiser, weights: Weights) -> Optimiser:
    """Return the optimiser; for `auto`, the one it picked."""
    return optimisers.create(weights.diagnostics.optimiser) if isinstance(named, str) else named


def unseen_labels(votes: Votes, distinct: Mask, model: Model, gold_rows: Votes, held_out: Codes) -> Codes:
    """Return for every row the label that it gets if its own gold has no part in it; negative where it has none.

    `held_out` are the labels of gold rows by fits that did not see them; others have the model's. Copies have none.
    """
    labels_found = np.where(distinct & ~votes.silent, model.judged(votes).best, UNLABELLED).astype(CODE)
    codes = np.array(positions_of(gold_rows.labels, votes.labels, "label"), dtype=CODE)
    labels_found[positions_of(gold_rows.ids, votes.ids, "item")] = codes[held_out]
    return labels_found


def _table(  # what is known about the rows, one argument each
    model: Model, votes: Votes, judged: Predictions, others: Integers, promise: Promise, names: Sequence[str]
) -> Judged | None:
    """Return the rows without gold, for a promise that is about them; their labels or groups are those of `names`."""
    units = votes.unit_codes
    if (promise.tested and units is None) or judged.confidence is None:
        return None
    sure, unknown = np.where(votes.silent, -1.0, judged.confidence), np.zeros(len(votes), dtype=np.bool_)
    if units is not None:
        eligible = model.shape.eligible(sure, units)[others]
        return Judged(sure, judged.best, unknown, units).take(others[eligible])
    if not len(others):
        return None
    if promise.by:
        return Judged(sure, votes.coded_groups(names)[1], unknown).take(others)
    return Judged(sure, np.array(positions_of(votes.labels, names, "label"))[judged.best], unknown).take(others)


def _certificate(  # what is known about the rows, one argument each
    trial: HeldOut | None,
    labelled: tuple[Votes, Codes],
    drawn: tuple[Votes, Floats | None, Integers],
    how: Learning,
    table_of: partial[Judged | None],
) -> Certificate:
    """Return what is promised; `drawn` are votes on all texts, their probabilities, and how many rows were drawn."""
    promise, (rows, truth), (votes, probabilities, times) = how.promise, labelled, drawn
    assert promise is not None
    why = _no_confidence(rows, truth, times, how)
    if trial is None or probabilities is None or why:
        return no_promise(promise, int((times > 0).sum()), why)
    sample, places = _sample(trial, votes, probabilities, times)
    upper = list[Level]()  # the same rows as judged at the levels of a tree
    for level in range(how.shape.levels - 1, 0, -1):
        above, (labels, codes) = sample.judged_at(level), trial.shape.at(level, trial.labels)
        upper.append((above._replace(best=codes[above.best]), labels))
    tested, names = sample.judged, rows.labels
    if tested.units is not None:
        tested = tested.take(how.shape.eligible(tested.confidence, tested.units))
    if promise.by:
        there = np.unique(places)
        some = votes.take(there)
        names, groups = some.coded_groups(sorted({*(some.groups or ())}))
        tested = tested._replace(best=groups[np.searchsorted(there, places)])
    certificate = certify(tested, names, promise, how.spent, how.splits.seed, upper, table=table_of(names))
    of_gold = len(np.unique(places[: len(places) - sample.undecided]))
    split = _split(len(truth), of_gold, sample, how.splits)
    return replace(certificate, split=split, gold_rows=votes.texts_among(times > 0), undecided_rows=sample.undecided)


def _sample(trial: HeldOut, votes: Votes, probabilities: Floats, times: Integers) -> tuple[HeldOut, Integers]:
    """Return the rows that were drawn at random as judged by fits that did not see them, and where their texts are.

    A wrong label counts for every row with its text that was drawn, because promises are about rows; a right one once:
    copies say nothing new. So the test is stricter than one of all rows, and one of all texts. Rows without gold are
    those about which people could not agree; no label of them counts as right.
    """
    of_gold = np.array(positions_of(trial.ids, votes.ids, "item"), dtype=np.intp)
    without = np.setdiff1d(np.flatnonzero(times), of_gold)
    counted = np.where(trial.judged.right, np.minimum(times[of_gold], 1), times[of_gold])
    undecided, judged = np.repeat(without, times[without]), np.repeat(np.arange(len(of_gold)), counted)
    columns = np.array(positions_of(trial.labels, votes.labels, "label"), dtype=np.intp)
    expected = np.concatenate([trial.probabilities[judged], probabilities[undecided][:, columns]])
    gold = np.concatenate([trial.gold[judged], np.zeros(len(undecided), dtype=CODE)])
    places, units = np.concatenate([of_gold[judged], undecided]), votes.unit_codes
    sample = trial._replace(gold=gold, scores=expected, probabilities=expected, undecided=len(undecided))
    return sample._replace(units=None if units is None else units[places]), places


def _no_confidence(rows: Votes, gold: Codes, drawn: Integers, how: Learning) -> str:  # noqa: PLR0911  # one for each reason
    """Return why no promise is possible, whatever the tests would show; empty when one is."""
    assert how.promise is not None
    if how.refused or how.spent >= how.promise.delta:
        return how.refused or USED_UP
    if not len(gold):
        return "no gold row has a label: look at the models' answers"
    if len(gold) < MIN_ROWS_TO_CALIBRATE:
        least = max(MIN_ROWS_TO_CALIBRATE, how.promise.least_rows(how.spent))
        rows_are = "1 gold row is" if len(gold) == 1 else f"{len(gold)} gold rows are"
        return f"{rows_are} too few to promise anything: it takes at least {least}, and mostly more"
    if len(np.unique(gold)) < 2:
        if rows.units is not None:
            which = "right" if rows.labels[gold[0]] == YES else "wrong"
            return f"all candidates in gold texts are {which}, so none is surer than another: mark more texts"
        return f"all {len(gold)} gold rows say {rows.labels[gold[0]]!r}: label rows of another class too"
    if how.splits.calibration == "none":
        return "without calibration there is no confidence to promise anything about: use softmax"
    chosen = "no gold row was drawn at random, and chosen rows are easier or harder than others: label random rows too"
    return "" if drawn.any() else chosen


def _split(texts: int, at_random: int, sample: HeldOut, splits: Splits) -> str:
    turns = splits.turns(texts)
    times = "" if turns == 1 else f", divided anew {turns} times"
    chosen = (
        "" if at_random == texts else f"; {texts - at_random} of them were not drawn at random and carry no promise"
    )
    count = len(sample.gold) - sample.undecided
    rows = "gold rows" if sample.units is None else "candidates in gold texts"
    copies = "" if count == at_random else "; wrong labels count for every copy of a text that was drawn"
    return (
        f"{texts:,} {rows} in {splits.folds} folds{times}: each row is scored by weights from the other folds, its "
        f"confidence is learned from the other folds' scores, and thresholds are tested on those{chosen}{copies}"
    )
