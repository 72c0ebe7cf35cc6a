"""Scores and probabilities for gold rows from fits that did not see them."""

import pickle
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from pcs_annotator.base.display import brief
from pcs_annotator.core.arrays import CODE, Codes, Floats, Integers, Mask
from pcs_annotator.core.votes import Votes
from pcs_annotator.core.weights import Weights
from pcs_annotator.judging.calibrate import (
    ROWS_TO_CALL_CALIBRATED,
    Calibrator,
    fit_calibrator,
    joint_calibrator,
    tempered,
)
from pcs_annotator.judging.fit_weights import MIN_ROWS_TO_CALIBRATE, Optimiser, fit_optimiser
from pcs_annotator.judging.label_shape import ONE, LabelShape
from pcs_annotator.judging.metrics.figures import exact_interval
from pcs_annotator.judging.score import score

MAX_SPLITS = 3
ROWS_FOR_ONE_SPLIT = 400
MAX_REMEMBERED = 24
# Rows with the same votes tie. Processors round differently in the last digits, and that must not break ties.
DIGITS = 12

AskPolicy = Callable[[Votes, Weights, Calibrator | None], Votes]
"""Which questions are asked: returns the votes that would have been collected on held-out rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Splits:
    """How gold rows are divided: random stratified folds, repeated when there are few rows."""

    folds: int = 5  # number of parts; each is held out once
    seed: int = 0  # random seed
    calibration: str = "softmax"  # how held-out scores become probabilities
    repeats: int | None = None  # number of random splits; None for up to three, fewer the more rows there are

    def turns(self, rows: int) -> int:
        """Return the number of random splits for this many rows."""
        if self.repeats is not None:
            return self.repeats
        return int(np.clip(ROWS_FOR_ONE_SPLIT // max(rows, 1), 1, MAX_SPLITS))

    def fold_of(self, gold: Codes, turn: int, units: Integers | None = None) -> Integers:
        """Return the fold of every row in one of the random splits; passages of one text are in the same."""
        if units is not None:
            texts = int(units.max(initial=0)) + 1
            return stratified_folds(np.zeros(texts, dtype=CODE), min(self.folds, texts), self.seed + turn)[units]
        return stratified_folds(gold, min(self.folds, len(gold)), self.seed + turn)


class Fold(NamedTuple):
    """Rows that were held out, and the weights learned from the others."""

    rows: Mask
    weights: Weights


class CrossFit(NamedTuple):
    """Out-of-fold results for gold rows, `[row, label]` each."""

    scores: Floats  # raw scores
    probabilities: Floats  # calibrated on the scores of other folds
    # the share of all gold rows that the row's own fit scores lower, ties counting half. Fits of different folds need
    # not score on the same scale, so rows of different folds are ranked by this
    ranks: Floats


def stratified_folds(gold: Codes, folds: int, seed: int) -> Integers:
    """Return the fold of every row; classes are spread evenly over folds of nearly equal size."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(gold))
    order = order[np.argsort(gold[order], kind="stable")]
    fold = np.empty(len(gold), dtype=np.intp)
    fold[order] = np.arange(len(gold)) % folds
    return fold


def cross_fits(
    chosen: Optimiser, votes: Votes, gold: Codes, splits: Splits, ask_policy: AskPolicy | None = None
) -> list[CrossFit]:
    """Return cross-fits over several random splits of fully labelled rows."""
    return [cross_fit(chosen, votes, gold, splits, ask_policy, turn) for turn in range(splits.turns(len(gold)))]


def cross_fit(
    chosen: Optimiser, votes: Votes, gold: Codes, splits: Splits, ask_policy: AskPolicy | None = None, turn: int = 0
) -> CrossFit:
    """Return out-of-fold scores and calibrated probabilities of fully labelled rows, in one of the random splits.

    `ask_policy` gets the calibrator of all votes of the other folds, and probabilities are its own to the power that
    the chosen votes need, so that a row keeps the label which that calibrator gives it.
    """
    folds = held_out(chosen, votes, gold, splits, turn)
    labels, outside = votes.labels, [rows for rows, _ in folds]
    parts = [votes.take(rows) for rows in outside]
    scores = whole = _scored(parts, folds)
    log_probs = votes.text_log_probs
    joint = [joint_calibrator(weights, len(gold), splits.calibration) for _, weights in folds]
    calibrators = [calibrator for calibrator in joint if calibrator is not None]
    if len(calibrators) < len(folds):
        calibrators = _calibrators(scores, gold, outside, labels, splits.calibration, log_probs)
    if ask_policy is not None:
        others = [(~rows, None if log_probs is None else log_probs[~rows]) for rows in outside]
        fitted = zip(parts, folds, calibrators, strict=True)
        scores = _scored([ask_policy(part, fold.weights, calibrator) for part, fold, calibrator in fitted], folds)
        calibrators = [
            tempered(calibrator, whole[rows], scores[rows], gold[rows], labels, text_part)
            for calibrator, (rows, text_part) in zip(calibrators, others, strict=True)
        ]
    return CrossFit(scores, _probabilities(calibrators, scores, outside, labels, log_probs), _ranks(votes, folds))


def _scored(parts: Sequence[Votes], folds: Sequence[Fold]) -> Floats:
    """Return the scores of all rows, each from its own fold's votes and weights."""
    scores = np.empty((sum(map(len, parts)), len(parts[0].labels)))
    for part, (rows, weights) in zip(parts, folds, strict=True):
        scores[rows] = score(part, weights).round(DIGITS)
    return scores


def _ranks(votes: Votes, folds: Sequence[Fold]) -> Floats:
    ranks = np.empty((len(votes), len(votes.labels)))
    for rows, weights in folds:
        scores = score(votes, weights).round(DIGITS)
        for label, of_rows in enumerate(scores.T):
            ordered = np.sort(of_rows)
            lower, upper = (np.searchsorted(ordered, of_rows[rows], side) for side in ("left", "right"))
            ranks[rows, label] = (lower + upper) / (2 * len(of_rows))
    return ranks


def held_out(chosen: Optimiser, votes: Votes, gold: Codes, splits: Splits, turn: int = 0) -> tuple[Fold, ...]:
    """Return every fold of one random split of fully labelled rows, with the weights learned from the others.

    The same fits are needed several times: for figures, curves and certificate. So fits of
    built-in optimisers, which unlike those of users are deterministic, are remembered by the content of votes and gold.
    """
    if not type(chosen).__module__.startswith(__name__.partition(".")[0] + "."):
        return _fit_folds(chosen, votes, gold, splits, turn)
    arrays = (votes.codes, votes.grades, votes.text_log_probs, gold)
    contents = b"".join(b"" if array is None else array.tobytes() for array in arrays)
    names = repr((votes.codes.shape, votes.annotators, votes.relations, votes.labels, votes.units)).encode()
    siblings = pickle.dumps([(part.ids, part.codes, part.text_log_probs, codes) for part, codes in votes.siblings])
    digest = blake2b(contents + names + siblings, digest_size=16).digest()
    key = (repr(chosen), splits.folds, splits.seed + turn, digest)
    if key not in _REMEMBERED:
        _REMEMBERED[key] = _fit_folds(chosen, votes, gold, splits, turn)
        if len(_REMEMBERED) > MAX_REMEMBERED:
            del _REMEMBERED[next(iter(_REMEMBERED))]
    return _REMEMBERED[key]


_REMEMBERED: dict[Hashable, tuple[Fold, ...]] = {}


def _fit_folds(chosen: Optimiser, votes: Votes, gold: Codes, splits: Splits, turn: int) -> tuple[Fold, ...]:
    fold = splits.fold_of(gold, turn, votes.unit_codes)
    masks = [fold != number for number in np.unique(fold)]
    return tuple(
        Fold(~inside, fit_optimiser(chosen, votes.take(inside), gold[inside], splits.seed + turn)) for inside in masks
    )


def calibrated_out_of_fold(
    scores: Floats, gold: Codes, fold: Integers, labels: Sequence[str], calibration: str = "softmax"
) -> Floats:
    """Return probabilities, each from a calibrator fitted on the other folds."""
    outside = [fold == number for number in np.unique(fold)]
    return _probabilities(_calibrators(scores, gold, outside, labels, calibration), scores, outside, labels)


def _calibrators(
    scores: Floats,
    gold: Codes,
    outside: Sequence[Mask],
    labels: Sequence[str],
    method: str,
    log_probs: Floats | None = None,
) -> list[Calibrator]:
    """Return for every fold, given by its rows, the calibrator fitted on the others."""
    return [
        fit_calibrator(
            scores[~rows], gold[~rows], labels, method, len(gold), None if log_probs is None else log_probs[~rows]
        )
        for rows in outside
    ]


def _probabilities(
    calibrators: Sequence[Calibrator],
    scores: Floats,
    outside: Sequence[Mask],
    labels: Sequence[str],
    log_probs: Floats | None = None,
) -> Floats:
    probabilities = np.empty_like(scores)
    for calibrator, rows in zip(calibrators, outside, strict=True):
        of_rows = None if log_probs is None else log_probs[rows]
        probabilities[rows] = calibrator.apply(scores[rows], labels, of_rows).round(DIGITS)
    return probabilities


class Judged(NamedTuple):
    """Gold rows, each judged by a model that did not see it."""

    confidence: Floats  # calibrated probability that the chosen label is right
    best: Codes | Integers  # code of the chosen label, or of the row's group if the promise is made for groups
    right: Mask  # whether it is the gold label, or near enough
    units: Integers | None = None  # the text of each, if rows are passages: those of one text stand or fall together

    def __repr__(self) -> str:
        return brief(self)

    def take(self, rows: Integers | Mask) -> "Judged":
        """Return the given rows."""
        units = None if self.units is None else self.units[rows]
        return Judged(self.confidence[rows], self.best[rows], self.right[rows], units)


class HeldOut(NamedTuple):
    """Gold rows as judged by fits that did not see them; means over several splits."""

    gold: Codes
    scores: Floats
    probabilities: Floats
    labels: Sequence[str]
    shape: LabelShape = ONE
    near: bool = False  # whether a label that is one step off counts as right
    ids: Sequence[str] = ()  # of the rows
    at_random: Mask | None = None  # which of them can support a promise; None for all
    undecided: int = 0  # so many of the last rows have no gold, and no label of them counts as right
    units: Integers | None = None  # the text of each row, if rows are passages

    def __repr__(self) -> str:
        return brief(self)

    @property
    def judged(self) -> Judged:
        """The label of every row, its confidence, and whether it is right."""
        return self.judged_at(0)

    def judged_at(self, level: int) -> Judged:
        """Return the same for labels of a tree down to a level; 0 for the labels themselves."""
        shape, best = self.shape, self.shape.choose(self.probabilities, self.labels)
        right = shape.right(best, self.gold, self.labels, near=self.near, level=level)
        right[len(right) - self.undecided :] = False
        sure = shape.confidence(self.probabilities, best, self.labels, near=self.near, level=level)
        return Judged(sure, best, right, self.units)

    @property
    def margin(self) -> float | None:
        """Half the width of the exact 95 % interval of accuracy; None from 50 rows on, as confidence is calibrated."""
        if len(self.gold) >= ROWS_TO_CALL_CALIBRATED:
            return None
        right = self._replace(near=False).judged.right
        low, high = exact_interval(int(right.sum()), len(self.gold))
        return (high - low) / 2


def run_trial(  # what is known about the rows, one argument each
    chosen: Optimiser,
    votes: Votes,
    gold: Codes,
    splits: Splits,
    ask_policy: AskPolicy | None = None,
    shape: LabelShape = ONE,
) -> HeldOut | None:
    """Return fully labelled rows judged by fits that did not see them; None for too few rows, or a single class."""
    if len(gold) < MIN_ROWS_TO_CALIBRATE or len(np.unique(gold)) < 2:
        return None
    if votes.unit_codes is not None and _same_class_in_a_fold(gold, splits, votes.unit_codes):
        return None
    fits = cross_fits(chosen, votes, gold, splits, ask_policy)
    scores, probabilities, _ = (np.mean(parts, axis=0) for parts in zip(*fits, strict=True))
    return HeldOut(gold, scores, probabilities, votes.labels, shape, ids=votes.ids, units=votes.unit_codes)


def _same_class_in_a_fold(gold: Codes, splits: Splits, units: Integers) -> bool:
    """Return whether there would be a single class to learn from, because a text has all rows of the other."""
    folds = [splits.fold_of(gold, turn, units) for turn in range(splits.turns(len(gold)))]
    return any(len(np.unique(gold[fold != number])) < 2 for fold in folds for number in np.unique(fold))
