"""How often 95 % intervals of corrected, gold-only and naive estimates hold the truth, in simulated studies.

Each study has 10,000 texts in two groups, a machine that errs more often in one of them, and few gold rows. Machine
probabilities are learned from the gold rows, as in a run: those of gold rows by fits that did not see them.

    python -m benchmarks.estimates [STUDIES] [LABELS,ACCURACY,GOLD,DRAW …]
    python -m benchmarks.estimates STUDIES babe

The second one draws gold rows from the recorded votes on BABE, learns as a run does, and hides all other gold.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit, softmax
from scipy.stats import t as student
from sklearn.linear_model import LogisticRegression

from benchmarks.development_data import babe
from pcs_annotator.core.arrays import Codes, Floats, Integers
from pcs_annotator.core.gold import UNLABELLED
from pcs_annotator.core.votes import Votes
from pcs_annotator.files.config import LearnSettings
from pcs_annotator.judging.estimating.corrected import Estimate, Study
from pcs_annotator.judging.estimating.regression import LabelRegression
from pcs_annotator.judging.estimating.sampling import Sample, allocate, by_confidence, draw_with
from pcs_annotator.pipeline.expected import expected_labels

ROWS = 10_000
FOLDS = 5
METHODS = ("corrected", "gold_only", "naive")
QUANTITIES = ("share, first", "share, last", "difference", "coefficient of x", "coefficient of group")


class Cell(NamedTuple):
    """A kind of study."""

    labels: int
    accuracy: float
    gold: int
    draw: str


CELLS = [Cell(*one) for one in product((2, 3, 5), (0.6, 0.8, 0.95), (100, 300), ("simple", "stratified", "confidence"))]


class World(NamedTuple):
    """Texts with true labels, and what the machine says."""

    group: Integers
    x: Floats
    truth: Codes
    label: Integers
    confidence: Floats


def make_world(rng: np.random.Generator, cell: Cell) -> World:
    group, x = rng.integers(0, 2, ROWS), rng.normal(size=ROWS)
    labels = range(1, cell.labels)
    pull = [-0.3 * k + 0.5 * x * (1 if k % 2 else -1) + 0.6 * group * (k == 1) for k in labels]
    chance = softmax(np.stack([np.zeros(ROWS), *pull], axis=1), axis=1)
    truth = (chance.cumsum(axis=1) < rng.random(ROWS)[:, np.newaxis]).sum(axis=1)
    difficulty = 2 * rng.beta(4, 4, ROWS)
    accuracy = np.clip(cell.accuracy + np.where(group == 1, -0.08, 0.08), 0.3, 0.97)
    right = rng.random(ROWS) < 1 - (1 - accuracy) * difficulty
    wrong = (truth + rng.integers(1, cell.labels, ROWS)) % cell.labels
    wrong = np.where(group == 1, np.where(truth == 0, 1, 0), wrong)  # in one group, errors have a direction
    confidence = 1 - (1 - cell.accuracy) * difficulty
    return World(group, x, truth.astype(np.int8), np.where(right, truth, wrong), confidence)


def draw(rng: np.random.Generator, world: World, cell: Cell) -> Sample:
    nothing = np.zeros(cell.gold, dtype=np.intp)
    if cell.draw == "simple":
        rows = rng.choice(ROWS, cell.gold, replace=False)
        return Sample.simple(rows, world.truth[rows], ROWS)
    if cell.draw == "confidence":
        chances = by_confidence(np.clip(world.confidence, 0.01, 0.99), cell.gold)
        rows = draw_with(chances, rng)
        return Sample(rows=rows, truth=world.truth[rows], probability=chances[rows], stratum=nothing, round=nothing)
    sizes = np.bincount(world.label, minlength=cell.labels)
    counts = allocate(sizes.tolist(), cell.gold)
    rows = np.concatenate(
        [rng.choice(np.flatnonzero(world.label == k), n, replace=False) for k, n in enumerate(counts)]
    )
    stratum = np.repeat(np.arange(cell.labels), counts)
    chances = (np.array(counts) / np.maximum(sizes, 1))[stratum]
    return Sample(rows=rows, truth=world.truth[rows], probability=chances, stratum=stratum, round=0 * stratum)


def learn(rng: np.random.Generator, world: World, sample: Sample, cell: Cell) -> Study:
    """Return calibrated probabilities for all rows and, from other folds, for the gold rows."""
    said = np.eye(cell.labels)[world.label]
    features = np.concatenate([said, said * logit(np.clip(world.confidence, 0.01, 0.99))[:, np.newaxis]], axis=1)

    def fitted(rows: Integers, at: Floats) -> Floats:
        model = LogisticRegression(C=1.0, solver="newton-cholesky").fit(features[rows], world.truth[rows])
        found = np.zeros((len(at), cell.labels))
        found[:, model.classes_] = model.predict_proba(at)
        return found

    fold = rng.permutation(len(sample)) % FOLDS
    held_out = np.zeros((len(sample), cell.labels))
    for number in range(FOLDS):
        inside = fold == number
        held_out[inside] = fitted(sample.rows[~inside], features[sample.rows[inside]])
    return Study(fitted(sample.rows, features), held_out, sample, whole=True)


Contrasts = dict[str, Floats]


def targets(world: World, cell: Cell) -> Iterator[tuple[LabelRegression, Contrasts, bool]]:
    """Yield regressions, the names and combinations of coefficients that are of interest, and if these are shares."""
    one, own = np.ones((ROWS, 1, 1)), np.eye(cell.labels)[np.newaxis]
    yield LabelRegression(explanatory=one, outcome=own[:, :, :1]), {QUANTITIES[0]: np.ones((1, 1))}, True
    yield LabelRegression(explanatory=one, outcome=own[:, :, -1:]), {QUANTITIES[1]: np.ones((1, 1))}, True
    groups = np.stack([world.group == 0, world.group == 1], axis=1).astype(np.float64)[:, np.newaxis]
    second = own[:, :, 1:2]
    yield LabelRegression(explanatory=groups, outcome=second), {QUANTITIES[2]: np.array([[-1.0, 1.0]])}, False
    columns = np.stack([np.ones(ROWS), world.x, world.group], axis=1)[:, np.newaxis]
    logistic = LabelRegression(explanatory=columns, outcome=second, link="logistic")
    yield logistic, {QUANTITIES[2 + place]: np.eye(3)[[place]] for place in (1, 2)}, False


def run_study(cell: Cell, seed: int) -> dict[tuple[str, str], tuple[bool, float]]:
    """Return (quantity, method) → whether its interval holds the truth, and its standard error."""
    rng = np.random.default_rng(seed)
    world = make_world(rng, cell)
    study = learn(rng, world, draw(rng, world, cell), cell)
    known = np.eye(cell.labels)[world.truth] / ROWS
    found = {}
    for regression, contrasts, bounded in targets(world, cell):
        everything = regression.solve(known).ravel()
        for method in METHODS:
            estimated: Estimate = getattr(study, method)(regression)
            for name, contrast in contrasts.items():
                one, truth = estimated.contrast(contrast), float((contrast @ everything).item())
                error = float(np.sqrt(one.covariance.item()))
                found[name, method] = (holds(one, error, truth, bounded=bounded), error)
    return found


def holds(one: Estimate, error: float, truth: float, *, bounded: bool) -> bool:
    value, reach = one.value.item(), float(student.ppf(0.975, one.freedom)) * error
    if not bounded or not 0 < value < 1:
        return abs(value - truth) <= reach
    low, high = expit(logit(value) + np.array([-1, 1]) * reach / (value * (1 - value)))
    return bool(low <= truth <= high)


def main(studies: int, cells: list[Cell]) -> None:
    print(f"{studies} studies each; coverage of corrected / gold only / naive, and width against gold only")
    with ProcessPoolExecutor(2) as pool:
        for cell in cells:
            found = list(pool.map(partial(run_study, cell), range(studies), chunksize=25))
            print(f"{cell.labels} labels, accuracy {cell.accuracy}, {cell.gold} gold rows, {cell.draw}")
            for name in QUANTITIES:
                held = [np.mean([one[name, method][0] for one in found]) for method in METHODS]
                ours, alone = (np.mean([one[name, method][1] for one in found]) for method in METHODS[:2])
                print(f"  {name:22} {held[0]:.3f} / {held[1]:.3f} / {held[2]:.3f}   {ours / alone:.2f}", flush=True)


def babe_study(votes: Votes, gold: Codes, how: tuple[str, int], seed: int) -> dict[str, tuple[bool, float]]:
    """Return method → whether the interval of the first label's share holds the truth, and its standard error.

    By confidence, half of the rows are drawn alike first, so that there is a confidence to draw the rest by.
    """
    drawing, count = how
    rng = np.random.default_rng(seed)
    rows = rng.choice(len(gold), count if drawing == "simple" else count // 2, replace=False)
    sample = Sample.simple(rows, gold[rows], len(gold))
    study = _learned(votes, gold, sample)
    if drawing == "confidence":
        left = np.setdiff1d(np.arange(len(gold)), rows)
        chances = by_confidence(study.expected[left].max(axis=1), count - len(rows))
        places = draw_with(chances, rng)
        both = np.concatenate([rows, left[places]])
        turn = np.repeat([0, 1], [len(rows), len(places)])
        probability = np.concatenate([sample.probability, chances[places]])
        sample = Sample(rows=both, truth=gold[both], probability=probability, stratum=turn, round=turn)
        study = _learned(votes, gold, sample)
    own = np.eye(len(votes.labels))[np.newaxis, :, :1]
    regression = LabelRegression(explanatory=np.ones((len(gold), 1, 1)), outcome=own)
    found = {}
    for method in METHODS:
        one: Estimate = getattr(study, method)(regression)
        error = float(np.sqrt(one.covariance.item()))
        found[method] = (holds(one, error, float((gold == 0).mean()), bounded=True), error)
    return found


def _learned(votes: Votes, gold: Codes, sample: Sample) -> Study:
    known = np.full(len(gold), UNLABELLED, dtype=np.int8)
    known[sample.rows] = sample.truth
    found = expected_labels(votes, known, LearnSettings(optimiser="lr", resamples=0), list(votes.ids))
    assert found is not None
    return Study(found.fitted, found.held_out[sample.rows], sample, whole=True)


def recorded(studies: int) -> None:
    votes, gold, _ = babe(("flan_ul2", "gpt_3_5", "mistral_7b"))
    votes, gold = votes.take(gold >= 0), gold[gold >= 0]
    print(f"BABE, {len(gold):,} rows, {studies} studies each: coverage corrected / gold only / naive, standard errors")
    with ProcessPoolExecutor(2) as pool:
        for how in product(("simple", "confidence"), (100, 300, 500)):
            found = list(pool.map(partial(babe_study, votes, gold, how), range(studies), chunksize=10))
            held = [np.mean([one[method][0] for one in found]) for method in METHODS]
            errors = [np.mean([one[method][1] for one in found]) for method in METHODS[:2]]
            shown = " / ".join(f"{one:.3f}" for one in held)
            print(f"  {how[0]:10} {how[1]} gold rows  {shown}   {errors[0]:.4f} against {errors[1]:.4f}", flush=True)


if __name__ == "__main__":
    if sys.argv[2:] == ["babe"]:
        recorded(int(sys.argv[1]))
        sys.exit()
    given = [one.split(",") for one in sys.argv[2:]]
    chosen = [Cell(int(labels), float(right), int(gold), how) for labels, right, gold, how in given]
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000, chosen or CELLS)
