"""Random panels with weights and calibrators of all kinds, all futures of an item, and graded votes."""

from dataclasses import replace
from itertools import product
from typing import Literal, NamedTuple

import numpy as np

from pcs_annotator import ABSTAINED, NOT_ASKED, Votes, Weights, score
from pcs_annotator.core.arrays import Codes, Grades
from pcs_annotator.core.votes import GRADE_TOLERANCE, OPEN, Cell
from pcs_annotator.core.weights import Evidence
from pcs_annotator.judging.calibrate import UNCALIBRATED, Calibrator
from pcs_annotator.judging.score import MIN_GRADE, choose

Kind = Literal["hard", "graded", "mixed"]
KINDS: tuple[Kind, ...] = ("hard", "graded", "mixed")
Reads = Literal["linear", "shares"]
READS: tuple[Reads, ...] = ("linear", "shares")
Calibration = Literal["none", "softmax", "falling"]
CALIBRATIONS: tuple[Calibration, ...] = ("none", "softmax", "falling")
# nan stands for a hard vote
NO_GRADE = np.float32(np.nan)


class Panel(NamedTuple):
    votes: Votes
    weights: Weights
    calibrator: Calibrator
    order: list[Cell]

    def labels(self, votes: Votes) -> Codes:
        """The label of every item."""
        return choose(self.calibrator.apply(score(votes, self.weights), votes.labels), votes.labels)


def all_cells(votes: Votes) -> list[Cell]:
    return [Cell(*place) for place in np.ndindex(*votes.codes.shape[1:])]


def random_panel(seed: int, reads: Reads, calibration: Calibration, items: int = 1) -> Panel:
    """A panel on which most votes agree, so that asking can stop early."""
    rng = np.random.default_rng(seed)
    labels = int(rng.integers(2, 5))
    shape = (items, int(rng.integers(1, 4)), int(rng.integers(1, 4)), int(rng.integers(1, 4)))
    favourite = rng.integers(labels, size=(items, 1, 1, 1))
    codes = np.where(rng.random(shape) < 0.7, favourite, rng.integers(-2, labels, size=shape)).astype(np.int8)
    votes = Votes(
        codes=codes,
        ids=[f"i{row}" for row in range(items)],
        annotators=[f"a{place}" for place in range(shape[1])],
        relations=[f"r{place}" for place in range(shape[2])],
        labels=[f"label {place}" for place in rng.permutation(labels)],
    )
    order = [Cell(*place) for place in rng.permutation(all_cells(votes)).tolist()]
    weights = random_weights(rng, votes, reads)
    return Panel(votes, weights, random_calibrator(rng, votes, calibration), order)


def graded_votes(votes: Votes, kind: Kind, seed: int = 0) -> Votes:
    """The same answers with how sure the models are of them, for no model, for all, or for every other one."""
    if kind == "hard":
        return votes
    rng = np.random.default_rng(seed)
    labels = len(votes.labels)
    raised = np.exp(rng.normal(size=(*votes.codes.shape, labels)) + 2.5 * np.eye(labels)[np.maximum(votes.codes, 0)])
    grades = raised / (raised.sum(axis=-1, keepdims=True) + rng.exponential(size=(*votes.codes.shape, 1)))
    hard = votes.codes < 0
    if kind == "mixed":
        hard = hard | (np.arange(len(votes.annotators)) % 2 == 1)[:, np.newaxis, np.newaxis]
    return replace(votes, grades=np.where(hard[..., np.newaxis], NO_GRADE, grades))


def random_grades(rng: np.random.Generator, votes: Votes, graded: tuple[str, ...], kind: Kind) -> Grades:
    """Grades of all votes of some annotators, of half of them on a mixed panel; most favour the vote's label."""
    grades = answers(rng, votes.codes.size, len(votes.labels)).reshape(*votes.codes.shape, -1)
    top = np.take_along_axis(grades, grades.argmax(axis=-1)[..., np.newaxis], axis=-1)
    voted = np.maximum(votes.codes, 0).astype(np.intp)[..., np.newaxis]
    own = np.take_along_axis(grades, voted, axis=-1)
    swapped = np.where(grades == top, own, grades)
    np.put_along_axis(swapped, voted, top, axis=-1)
    grades = np.where(rng.random((*votes.codes.shape, 1)) < 0.8, swapped, grades)
    hard = (votes.codes < 0) | ~np.isin(votes.annotators, graded)[:, np.newaxis, np.newaxis]
    if kind == "mixed":
        hard |= rng.random(hard.shape) < 0.5
    grades /= np.maximum(grades.sum(axis=-1, keepdims=True), 1)
    return np.where(hard[..., np.newaxis], NO_GRADE, grades).astype(np.float32)


def answers(rng: np.random.Generator, count: int, labels: int) -> Grades:
    """Any graded answers: sure ones, unsure ones, with or without what went to no label, and the extremes."""
    sharp = rng.choice([0.05, 0.5, 5.0], size=(count, 1))
    raw = rng.gamma(np.broadcast_to(sharp, (count, labels))) + 1e-12
    grades = raw / raw.sum(axis=1, keepdims=True) * rng.choice([1.0, 1.0, 0.5, 1e-3], size=(count, 1))
    extremes = np.eye(labels)[rng.integers(labels, size=count)]
    extremes = extremes * rng.choice([0.0, 0.999, 1.0, 1 + GRADE_TOLERANCE], size=(count, 1))
    floored = np.maximum(extremes * (1 - labels * MIN_GRADE), MIN_GRADE)
    kind = rng.integers(4, size=(count, 1))
    return np.where(kind == 0, extremes, np.where(kind == 1, floored, grades)).astype(np.float32)


def random_weights(rng: np.random.Generator, votes: Votes, reads: Reads) -> Weights:
    """Weights of which some are 0, and for evidence tables of which some rows say nothing and some only one thing."""
    sizes = (len(votes.annotators), len(votes.relations))
    by_annotator, by_relation = (rng.gamma(0.5, size=size) * (rng.random(size) < 0.8) for size in sizes)
    weights = Weights.normalised(votes, by_annotator, by_relation)
    if reads == "linear":
        return weights
    labels = len(votes.labels)
    shape = (len(votes.annotators), len(votes.relations), labels, labels)
    table = rng.normal(size=shape) * rng.choice([0.0, 0.3, 1.0]) + rng.choice([0.3, 1.5]) * np.eye(labels)
    table += rng.choice([0.0, 1.0]) * rng.normal(size=(*shape[:2], 1, labels))  # the same for every vote
    table *= rng.random((*shape[:2], 1, 1)) < 0.9
    evidence = Evidence(
        labels=rng.permutation(votes.labels).tolist(), log_prior=rng.normal(size=labels), log_likelihood=table
    )
    return replace(weights, evidence=evidence)


def random_calibrator(rng: np.random.Generator, votes: Votes, calibration: Calibration) -> Calibrator:
    labels = rng.permutation(votes.labels).tolist()
    slope, offsets = rng.choice([0.3, 1.0, 2.5]), rng.normal(size=len(labels)) * rng.choice([0.1, 1.0])
    match calibration:
        case "none":
            return UNCALIBRATED
        case "softmax" | "falling":
            return Calibrator(labels=labels, slope=slope if calibration == "softmax" else -slope, offsets=offsets)


def opened(panel: Panel, rng: np.random.Generator, most: int) -> tuple[Codes, list[Cell]]:
    """The first item with up to `most` of its answers not known yet."""
    cells = panel.votes.codes[0].copy()
    asked = [cell for cell in panel.order if cells[cell] != NOT_ASKED]
    places = asked[len(asked) - int(rng.integers(0, most + 1)) :]
    for place in places:
        cells[place] = OPEN
    return cells, places


def futures(panel: Panel, cells: Codes, places: list[Cell]) -> Votes:
    """Every future of an item, silences among them."""
    answers = np.array(list(product(range(ABSTAINED, len(panel.votes.labels)), repeat=len(places))), dtype=np.int8)
    codes = np.repeat(cells[np.newaxis], len(answers), axis=0)
    for column, place in enumerate(places):
        codes[(slice(None), *place)] = answers[:, column]
    return replace(panel.votes, codes=codes, ids=[str(row) for row in range(len(codes))])
