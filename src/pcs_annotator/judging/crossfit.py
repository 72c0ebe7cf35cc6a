"""Scores and probabilities for gold rows from fits that did not see them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pcs_annotator.core.arrays import Codes, Floats, Integers
from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.calibration import fit_calibrator
from pcs_annotator.judging.optimiser import Optimiser, fit_optimiser
from pcs_annotator.judging.scoring import score

MAX_SPLITS = 3
ROWS_FOR_ONE_SPLIT = 400


class CrossFit(NamedTuple):
    """Out-of-fold results for gold rows: raw scores, and probabilities calibrated on the other folds' scores."""

    scores: Floats
    probabilities: Floats


def stratified_folds(gold: Codes, folds: int, seed: int) -> Integers:
    """Return the fold of every row; each class is spread evenly, and so are the folds' sizes."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(gold))
    order = order[np.argsort(gold[order], kind="stable")]
    fold = np.empty(len(gold), dtype=np.intp)
    fold[order] = np.arange(len(gold)) % folds
    return fold


def cross_fits(chosen: Optimiser, votes: Votes, gold: Codes, folds: int, seed: int) -> list[CrossFit]:
    """Return cross-fits over several random splits: three for few rows, one where many rows leave little to chance."""
    repeats = int(np.clip(ROWS_FOR_ONE_SPLIT // max(len(gold), 1), 1, MAX_SPLITS))
    return [cross_fit(chosen, votes, gold, folds, seed + turn) for turn in range(repeats)]


def cross_fit(chosen: Optimiser, votes: Votes, gold: Codes, folds: int, seed: int) -> CrossFit:
    """Return out-of-fold scores and calibrated probabilities of fully labelled rows."""
    fold = stratified_folds(gold, min(folds, len(gold)), seed)
    scores = np.empty((len(votes), len(votes.labels)))
    for held_out in np.unique(fold):
        inside = fold != held_out
        weights = fit_optimiser(chosen, votes.take(inside), gold[inside], seed)
        scores[~inside] = score(votes.take(~inside), weights)
    return CrossFit(scores, calibrated_out_of_fold(scores, gold, fold, votes.labels))


def calibrated_out_of_fold(scores: Floats, gold: Codes, fold: Integers, labels: Sequence[str]) -> Floats:
    """Return probabilities, each from a calibrator fitted on the other folds."""
    probabilities = np.empty_like(scores)
    for held_out in np.unique(fold):
        inside = fold != held_out
        calibrator = fit_calibrator(scores[inside], gold[inside], labels)
        probabilities[~inside] = calibrator.apply(scores[~inside], labels)
    return probabilities
