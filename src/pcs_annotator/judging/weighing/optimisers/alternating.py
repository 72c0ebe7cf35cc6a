"""Least squares over products of two weight vectors, solved for one while the other rests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from pcs_annotator.core.arrays import Floats

RIDGE = 1e-10  # relative; picks one solution when two annotators always agree
NOTHING = 1e-9  # below this, a sum of squares is rounding and may even be negative


class Solution(NamedTuple):
    """Best point found: both vectors, up to a common scale, with the objective there."""

    annotators: Floats
    relations: Floats
    objective: float
    iterations: int


Step = Callable[[Floats], tuple[Floats, float]]
"""Given one vector, returns the best other vector and the objective."""


def alternate(
    for_annotators: Step, for_relations: Step, shape: tuple[int, int], *, rounds: int = 500, tolerance: float = 1e-10
) -> Solution:
    """Return the best of several alternating minimisations.

    No step can raise the objective, so each start converges. The starts treat all names alike: equal weights, and
    every single relation put first.
    """
    best: Solution | None = None
    for start in _starts(shape[1]):
        found = _descend(for_annotators, for_relations, start, rounds, tolerance)
        if best is None or found.objective < best.objective - tolerance * abs(best.objective):
            best = found
    assert best is not None, "there is at least one start"
    return best


def _starts(relations: int) -> Iterator[Floats]:
    yield np.full(relations, 1 / relations)
    if relations > 1:
        for relation in range(relations):
            yield np.where(np.arange(relations) == relation, 0.9, 0.1 / (relations - 1))


def _descend(for_annotators: Step, for_relations: Step, relations: Floats, rounds: int, tolerance: float) -> Solution:
    objective = np.inf
    for iteration in range(1, rounds + 1):
        annotators, _ = for_annotators(relations)
        if not annotators.any():
            return Solution(annotators, relations, 0.0, iteration)
        relations, reached = for_relations(annotators)
        if not relations.any() or objective - reached <= tolerance * abs(reached):
            return Solution(annotators, relations, reached, iteration)
        objective = reached
    return Solution(annotators, relations, objective, rounds)


def non_negative_minimum(quadratic: Floats, linear: Floats) -> Floats:
    """Return the x ≥ 0 that minimises xᵀ·quadratic·x − 2·linear·x.

    Solves without the bounds, drops what came out negative and solves again; nearly always the result is optimal, and
    far cheaper than a general solver, which takes over where it is not.
    """
    size = float(quadratic.trace())
    ridged = quadratic + RIDGE * (size if size > NOTHING else 1.0) * np.eye(len(linear))
    solution: Floats = np.asarray(np.linalg.solve(ridged, linear), dtype=np.float64)
    if solution.min() >= 0:
        return solution
    kept = solution > 0
    while kept.any():
        part = np.linalg.solve(ridged[kept][:, kept], linear[kept])
        if part.min() >= 0:
            solution = np.zeros(len(linear))
            solution[kept] = part
            pull = linear - ridged @ solution
            if pull[~kept].max() <= 0:
                return solution
            break
        kept[kept] = part > 0
    root = np.linalg.cholesky(ridged)
    return np.asarray(nnls(root.T, np.linalg.solve(root, linear))[0])
