"""How often 95 % intervals of corrected, gold-only and naive estimates hold the truth, in simulated studies.

Each study has 10,000 texts in two groups, a machine that errs more often in one of them, and few gold rows. Machine
probabilities are learned from the gold rows, as in a run: those of gold rows by fits that did not see them.

    python -m benchmarks.estimates [STUDIES] [LABELS,ACCURACY,GOLD,DRAW …]
    python -m benchmarks.estimates STUDIES babe
    python -m benchmarks.estimates STUDIES groups
    python -m benchmarks.estimates STUDIES covariate

The second one draws gold rows from the recorded votes on BABE, learns as a run does, and hides all other gold. The
third one has four small groups, with 15 to 50 gold rows each and shares from 2 % on. The fourth one has regressions in
which a label explains something else, from tables with hard machine labels.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache, partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from scipy.special import expit, softmax
from scipy.stats import t as student

from benchmarks.development_data import babe
from pcs_annotator import Votes
from pcs_annotator.base.errors import UndefinedMetric
from pcs_annotator.core.arrays import Codes, Floats, Integers
from pcs_annotator.core.gold_codes import UNLABELLED
from pcs_annotator.estimating.corrected import CoefficientEstimate, LabelRegression, Study
from pcs_annotator.estimating.sampling import Sample, allocate, by_confidence, draw_with
from pcs_annotator.judging.label_shape import ONE
from pcs_annotator.runs.settings import LearnSettings
from pcs_annotator.runs.sharing import expected_labels
from pcs_annotator.studies.estimating.answering import answer, shares
from pcs_annotator.studies.estimating.answers import EstimateQuestion, Line
from pcs_annotator.studies.estimating.evidence import LabelEvidence
from pcs_annotator.studies.estimating.table_evidence import table_evidence

ROWS, WHOLE = 10_000, 1_000_000
FOLDS = 5
LEVELS = 3
GROUPS, GROUP_SIZE = 4, 500
METHODS = ("corrected", "gold_only", "naive")
QUANTITIES = ("share, first", "share, last", "difference", "coefficient of x", "coefficient of group")


class Cell(NamedTuple):
    """A kind of study."""

    labels: int
    accuracy: float
    gold: int
    draw: str


def all_cells() -> Iterator[Cell]:
    """Yield a third of all combinations: every two settings meet once with each kind of draw, as in a Latin square."""
    for size, (one, labels), (other, accuracy), (third, drawing) in product(
        range(3), enumerate((2, 3, 5)), enumerate((0.6, 0.8, 0.95)), enumerate(("simple", "stratified", "confidence"))
    ):
        if (one + other + third) % 3 == size:
            yield Cell(labels, accuracy, (100, 300, 500)[size], drawing)


class Group(NamedTuple):
    """A kind of study with small groups."""

    gold: int
    share: float
    accuracy: float


class World(NamedTuple):
    """Texts with true labels, and what the machine says."""

    group: Integers
    x: Floats
    truth: Codes
    label: Integers
    confidence: Floats


def make_world(rng: np.random.Generator, cell: Cell, rows: int = ROWS) -> World:
    group, x = rng.integers(0, 2, rows), rng.normal(size=rows)
    labels = range(1, cell.labels)
    pull = [-0.3 * k + 0.5 * x * (1 if k % 2 else -1) + 0.6 * group * (k == 1) for k in labels]
    chance = softmax(np.stack([np.zeros(rows), *pull], axis=1), axis=1)
    truth = (chance.cumsum(axis=1) < rng.random(rows)[:, np.newaxis]).sum(axis=1)
    difficulty = 2 * rng.beta(4, 4, rows)
    accuracy = np.clip(cell.accuracy + np.where(group == 1, -0.08, 0.08), 0.3, 0.97)
    right = rng.random(rows) < 1 - (1 - accuracy) * difficulty
    wrong = (truth + rng.integers(1, cell.labels, rows)) % cell.labels
    wrong = np.where(group == 1, np.where(truth == 0, 1, 0), wrong)  # in one group, errors have a direction
    confidence = 1 - (1 - cell.accuracy) * difficulty
    return World(group, x, truth.astype(np.int8), np.where(right, truth, wrong), confidence)


@cache
def larger_whole(labels: int) -> tuple[float, Floats]:
    """Return what differences and coefficients are about: a whole of which the rows of a study are a sample."""
    world = make_world(np.random.default_rng(0), Cell(labels, 0.8, 0, ""), WHOLE)
    second = world.truth == 1
    columns = np.stack([np.ones(WHOLE), world.x, world.group], axis=1)[:, np.newaxis]
    regression = LabelRegression(explanatory=[columns], outcome=np.array([[[0.0], [1.0]]]), link="logistic")
    found = regression.solve(np.eye(2)[second.astype(int)] / WHOLE).ravel()
    return float(second[world.group == 1].mean() - second[world.group == 0].mean()), found


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
    """Return calibrated probabilities for all rows and, from other folds, for the gold rows.

    They are the shares of gold labels among rows with the same machine label and similar confidence.
    """
    sure = np.searchsorted(np.quantile(world.confidence, np.arange(1, LEVELS) / LEVELS), world.confidence)

    def fitted(rows: Integers, at: Integers | slice) -> Floats:
        counts = np.full((cell.labels, LEVELS, cell.labels), 1 / cell.labels)
        np.add.at(counts, (world.label[rows], sure[rows], world.truth[rows]), 1.0)
        return (counts / counts.sum(axis=2, keepdims=True))[world.label[at], sure[at]]

    fold = rng.permutation(len(sample)) % FOLDS
    held_out = np.zeros((len(sample), cell.labels))
    for number in range(FOLDS):
        inside = fold == number
        held_out[inside] = fitted(sample.rows[~inside], sample.rows[inside])
    return Study(fitted(sample.rows, slice(None)), held_out, sample, whole=True)


Held = dict[tuple[str, str], tuple[bool, float]]
"""Quantity and method → whether the 95 % interval holds the truth, and its width."""


def run_study(cell: Cell, seed: int) -> Held:
    rng = np.random.default_rng(seed)
    world = make_world(rng, cell)
    study = learn(rng, world, draw(rng, world, cell), cell)
    names = tuple(f"label {code}" for code in range(cell.labels))
    groups = pa.table({"group": pa.array(np.array(["north", "south"])[world.group])})
    evidence = LabelEvidence(
        labels=names,
        table=groups,
        columns=["group"],
        expected=study.expected,
        held_out=study.held_out,
        sample=study.sample,
    )
    first, last = shares(evidence, EstimateQuestion(of=[names[0], names[-1]])).lines
    (difference,) = shares(evidence, EstimateQuestion(of=[names[1]], by="group")).differences
    return {
        **held(QUANTITIES[0], first, (world.truth == 0).mean()),
        **held(QUANTITIES[1], last, (world.truth == cell.labels - 1).mean()),
        **held(QUANTITIES[2], difference, larger_whole(cell.labels)[0]),
        **coefficients(world, study, cell),
    }


def held(name: str, line: Line, truth: float) -> Held:
    found = {}
    for method in METHODS:
        low, high = getattr(line, method).interval
        found[name, method] = (bool(low <= truth <= high), high - low)
    return found


def coefficients(world: World, study: Study, cell: Cell) -> Held:
    """Return what a logistic regression of the second label finds, against one on the larger whole."""
    columns = np.stack([np.ones(ROWS), world.x, world.group], axis=1)[:, np.newaxis]
    second = np.eye(cell.labels)[np.newaxis, :, 1:2]
    regression = LabelRegression(explanatory=[columns], outcome=second, link="logistic")
    truth = larger_whole(cell.labels)[1]
    study = replace(study, whole=False)  # as pcs estimate does: a regression is about more than these rows
    found: Held = {}
    for method in METHODS:
        try:
            one: CoefficientEstimate = getattr(study, method)(regression)
        except UndefinedMetric:  # the user gets no figure
            continue
        reach = student.ppf(0.975, one.freedom) * np.sqrt(np.diag(one.covariance))
        holds = np.abs(one.value - truth) <= reach
        found |= {(QUANTITIES[2 + at], method): (bool(holds[at]), float(2 * reach[at])) for at in (1, 2)}
    return found


def main(studies: int, cells: list[Cell]) -> None:
    print(f"{studies} studies each;  corrected / gold only / naive, width")
    with ProcessPoolExecutor(2) as pool:
        for cell in cells:
            found = list(pool.map(partial(run_study, cell), range(studies), chunksize=25))
            print(f"{cell.labels} labels, accuracy {cell.accuracy}, {cell.gold} gold rows, {cell.draw}")
            for name in QUANTITIES:
                print(f"  {name:22} {_said(found, name)}", flush=True)


def _said(found: list[Held], name: str) -> str:
    shown = [one for one in found if all((name, method) in one for method in METHODS)]
    rates = " / ".join(f"{np.mean([one[name, method][0] for one in shown]):.3f}" for method in METHODS)
    ours, alone = (np.mean([one[name, method][1] for one in shown]) for method in METHODS[:2])
    refused = f"   {len(found) - len(shown)} refused" if len(shown) < len(found) else ""
    return f"{rates}   {ours / alone:.2f}{refused}"


def babe_study(votes: Votes, gold: Codes, how: tuple[str, int], seed: int) -> Held:
    """Return whether intervals of the first label's share hold the truth.

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
    evidence = LabelEvidence(
        labels=tuple(votes.labels),
        table=pa.table({}),
        columns=(),
        expected=study.expected,
        held_out=study.held_out,
        sample=study.sample,
    )
    (line,) = shares(evidence, EstimateQuestion(of=[votes.labels[0]])).lines
    return held(QUANTITIES[0], line, (gold == 0).mean())


def _learned(votes: Votes, gold: Codes, sample: Sample) -> Study:
    known = np.full(len(gold), UNLABELLED, dtype=np.int8)
    known[sample.rows] = sample.truth
    found = expected_labels(votes, known, LearnSettings(optimiser="lr", resamples=0), list(votes.ids), ONE)
    assert found is not None
    return Study(found.fitted, found.held_out[sample.rows], sample, whole=True)


def recorded(studies: int) -> None:
    votes, gold, _ = babe(("flan_ul2", "gpt_3_5", "mistral_7b"))
    votes, gold = votes.take(gold >= 0), gold[gold >= 0]
    print(f"BABE, {len(gold):,} rows, {studies} studies each: corrected / gold only / naive, width against gold only")
    with ProcessPoolExecutor(2) as pool:
        for how in product(("simple", "confidence"), (100, 300, 500)):
            found = list(pool.map(partial(babe_study, votes, gold, how), range(studies), chunksize=10))
            print(f"  {how[0]:10} {how[1]} gold rows  {_said(found, QUANTITIES[0])}", flush=True)


SMALL_GROUPS = [Group(*one) for one in product((15, 25, 50), (0.02, 0.05, 0.1, 0.2, 0.5), (0.7, 0.85, 0.95))]


def group_study(cell: Group, seed: int) -> list[tuple[str, bool, float]]:
    """Return what was estimated and how, whether the 95 % interval holds the truth, and its width."""
    rng = np.random.default_rng(seed)
    rows = GROUPS * GROUP_SIZE
    truth = (rng.random(rows) < cell.share).astype(np.int8)
    label = np.where(rng.random(rows) < cell.accuracy, truth, 1 - truth)
    world = World(np.arange(rows) // GROUP_SIZE, np.zeros(rows), truth, label, np.ones(rows))
    gold = rng.choice(rows, GROUPS * cell.gold, replace=False)
    study = learn(rng, world, Sample.simple(gold, truth[gold], rows), Cell(2, cell.accuracy, len(gold), "simple"))
    names = pa.array([str(group) for group in world.group])
    evidence = LabelEvidence(
        labels=("no", "yes"),
        table=pa.table({"group": names}),
        columns=["group"],
        expected=study.expected,
        held_out=study.held_out,
        sample=study.sample,
    )
    found = shares(evidence, EstimateQuestion(of=["yes"], by="group"))
    true = {str(group): truth[world.group == group].mean() for group in range(GROUPS)}
    true |= {f"{one} − {other}": true[one] - true[other] for one in true for other in true}
    return [
        (f"{kind}, {method}", *held(kind, line, true[line.group])[kind, method])
        for kind, lines in (("share", found.lines), ("difference", found.differences))
        for line in lines
        for method in METHODS[:2]
    ]


def small_groups(studies: int) -> None:
    print("| gold rows per group | share | accuracy | corrected | gold only | width | differences | gold only |")
    print("|---|---|---|---|---|---|---|---|")
    with ProcessPoolExecutor(2) as pool:
        for cell in SMALL_GROUPS:
            found = [one for part in pool.map(partial(group_study, cell), range(studies), chunksize=25) for one in part]
            rates, widths = (
                {
                    name: np.mean([one[at] for one in found if one[0] == name])
                    for name in dict.fromkeys(o[0] for o in found)
                }
                for at in (1, 2)
            )
            ours, alone, difference, gold = (f"{rate:.3f}" for rate in rates.values())
            width = f"{widths['share, corrected'] / widths['share, gold_only']:.2f}"
            shown = [cell.gold, cell.share, cell.accuracy, ours, alone, width, difference, gold]
            print(f"| {' | '.join(map(str, shown))} |", flush=True)


class Covariate(NamedTuple):
    """A kind of regression in which a machine label explains something else."""

    link: str
    accuracy: float
    gold: int


COVARIATES = [Covariate(*one) for one in product(("linear", "logistic"), (0.7, 0.85, 0.95), (200, 500))]
COVARIATE_ROWS, SLOPE = 4000, 0.8


def covariate_study(cell: Covariate, seed: int) -> Iterator[tuple[str, float, float, bool]]:
    """Yield coefficient and method, estimate minus truth, half the interval, and whether this holds the truth.

    The truth is what generates the data. The machine errs more often where the outcome is high, and with x.
    """
    rng = np.random.default_rng(seed)
    x = rng.normal(size=COVARIATE_ROWS)
    truth = rng.random(COVARIATE_ROWS) < expit(-0.5 + 0.7 * x)
    predictor = 0.3 + SLOPE * truth - 0.5 * x
    outcome = predictor + rng.normal(size=COVARIATE_ROWS)
    if cell.link == "logistic":
        outcome = (rng.random(COVARIATE_ROWS) < expit(predictor)).astype(np.float64)
    wrong = np.clip((1 - cell.accuracy) * (1 + 0.6 * np.sign(outcome - outcome.mean())), 0.01, 0.6)
    said = np.where(rng.random(COVARIATE_ROWS) < wrong, ~truth, truth)
    gold = np.isin(np.arange(COVARIATE_ROWS), rng.choice(COVARIATE_ROWS, cell.gold, replace=False))
    names = np.array(["no", "yes"])
    table = pa.table(
        {"said": names[said.astype(int)], "gold": np.where(gold, names[truth.astype(int)], ""), "x": x, "y": outcome}
    )
    question = EstimateQuestion(label="said", gold="gold", formula="y ~ yes + x", link=cell.link)
    for line, true in zip(answer(table_evidence(table, question)[0], question).lines, (0.3, SLOPE, -0.5), strict=True):
        for method in METHODS:
            value, (low, high) = getattr(line, method)
            yield f"{line.name}, {method}", value - true, (high - low) / 2, bool(low <= true <= high)


def covariates(studies: int) -> None:
    print(f"{studies} studies each: the label's coefficient, then that of x; bias in standard errors of one study")
    print("| link | accuracy | gold rows | label: bias | held | gold only | naive | x: bias | held | naive | width |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    with ProcessPoolExecutor(2) as pool:
        for cell in COVARIATES:
            each = [*pool.map(partial(_listed, covariate_study, cell), range(studies), chunksize=10)]
            found: dict[str, list[tuple[float, float, bool]]] = {}
            for name, *one in (line for study in each for line in study):
                found.setdefault(name, []).append(tuple(one))
            off, reach, holds = ({name: np.array([o[at] for o in found[name]]) for name in found} for at in range(3))
            bias = {name: f"{one.mean() / one.std():+.2f}" for name, one in off.items()}
            rate = {name: f"{one.mean():.3f}" for name, one in holds.items()}
            width = reach["yes, corrected"].mean() / reach["yes, gold_only"].mean()
            shown = [*cell, bias["yes, corrected"], *(rate[f"yes, {one}"] for one in METHODS), bias["x, corrected"]]
            shown += [rate["x, corrected"], rate["x, naive"], f"{width:.2f}"]
            print("|", " | ".join(map(str, shown)), "|", flush=True)


def _listed(function: Any, *given: Any) -> list[Any]:
    return [*function(*given)]


if __name__ == "__main__":
    modes = {"groups": small_groups, "babe": recorded, "covariate": covariates}
    if len(sys.argv) > 2 and sys.argv[2] in modes:
        modes[sys.argv[2]](int(sys.argv[1]))
        sys.exit()
    given = [one.split(",") for one in sys.argv[2:]]
    chosen = [Cell(int(labels), float(right), int(gold), how) for labels, right, gold, how in given]
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000, chosen or [*all_cells()])
