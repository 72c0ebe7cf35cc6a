"""Scales and trees in simulated runs: are promises kept, and what is gained over labels without structure?

Three models answer four versions of every text; 300 texts have gold, 4,000 others show what is true.

    python -m benchmarks.scales [scale|tree] [REPETITIONS] [OPTIMISER]
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np

from pcs_annotator import Votes
from pcs_annotator.core.arrays import Codes, Mask
from pcs_annotator.core.gold_codes import UNLABELLED
from pcs_annotator.judging.fit_model import Learning, fit_model
from pcs_annotator.judging.label_shape import ONE, LabelShape
from pcs_annotator.judging.model import Model
from pcs_annotator.judging.promise.promise import Promise, PromiseKind
from pcs_annotator.judging.solver import one_thread

GOLD, OTHERS = 300, 4_000
RELATIONS = ("original", "frame", "voice", "synonym")
MODELS = ("large", "middle", "small")
REPEATS_ITSELF = 0.6
LIMIT = 0.03
STEPS = ("1", "2", "3", "4", "5")
PARENTS, LEAVES = 3, 7
PATHS = tuple(f"{parent}/{leaf}" for parent in "abc" for leaf in range(1, LEAVES + 1))


class World(NamedTuple):
    """A kind of task."""

    accuracy: tuple[float, float, float]  # of the models, on texts of medium ease
    spread: float  # of the ease, in log-odds
    far: float  # share of errors that are two steps off, or outside the parent
    limit: float  # the promise about labels of a tree


WORLDS = {
    "easy": World((0.65, 0.6, 0.55), 0.9, 0.1, 0.05),
    "hard": World((0.5, 0.45, 0.4), 1.5, 0.25, 0.1),
    "rough": World((0.4, 0.35, 0.3), 2.0, 0.4, 0.1),
}


def answered(truth: Codes, wrong: Codes, labels: tuple[str, ...], world: World, rng: np.random.Generator) -> Votes:
    """Return votes: models are right more often on easy texts, and mostly repeat themselves; `wrong` has errors."""
    rows = len(truth)
    ease = rng.normal(0, world.spread, rows)
    codes = np.empty((rows, len(MODELS), len(RELATIONS), 1), dtype=np.int8)
    for place, accuracy in enumerate(world.accuracy):
        chance = 1 / (1 + np.exp(-(np.log(accuracy / (1 - accuracy)) + ease)))
        drawn = [
            np.where(rng.random(rows) < chance, truth, wrong[np.arange(rows), rng.integers(wrong.shape[1], size=rows)])
            for _ in RELATIONS
        ]
        for relation, own in enumerate(drawn):
            codes[:, place, relation, 0] = np.where(rng.random(rows) < REPEATS_ITSELF, drawn[0], own)
    ids = [f"{row:05}" for row in range(rows)]
    return Votes(codes=codes, ids=ids, annotators=MODELS, relations=RELATIONS, labels=labels)


def scale_world(world: World, rng: np.random.Generator) -> tuple[Votes, Codes]:
    """Return votes on a scale, mostly one step off where they are wrong, and the truth."""
    rows = GOLD + OTHERS
    truth = rng.choice(5, rows, p=[0.1, 0.2, 0.3, 0.25, 0.15]).astype(np.int8)
    far = rng.random((rows, 12)) < world.far
    steps = np.where(far, 2, 1) * rng.choice([-1, 1], (rows, 12))
    return answered(truth, np.clip(truth[:, np.newaxis] + steps, 0, 4).astype(np.int8), STEPS, world, rng), truth


def tree_world(world: World, rng: np.random.Generator) -> tuple[Votes, Codes]:
    """Return votes on paths, mostly inside the parent where they are wrong, and the truth."""
    rows = GOLD + OTHERS
    truth = rng.integers(len(PATHS), size=rows).astype(np.int8)
    # errors concentrate on two rivals of each leaf in its parent, as similar topics do
    near = (truth // LEAVES)[:, np.newaxis] * LEAVES + (truth[:, np.newaxis] + rng.choice([1, 2], (rows, 12))) % LEAVES
    elsewhere = (truth[:, np.newaxis] + LEAVES * rng.integers(1, PARENTS, (rows, 12))) % len(PATHS)
    inside = rng.random((rows, 12)) >= world.far
    return answered(truth, np.where(inside, near, elsewhere).astype(np.int8), PATHS, world, rng), truth


def fitted(votes: Votes, truth: Codes, shape: LabelShape, optimiser: str, promise: Promise) -> Model:
    """Return what is learned from the gold rows."""
    gold = np.where(np.arange(len(truth)) < GOLD, truth, UNLABELLED).astype(np.int8)
    return fit_model(votes, gold, Learning(optimiser=optimiser, promise=promise, shape=shape)).model


def scale_run(world: World, optimiser: str, seed: int) -> dict[str, float]:
    """Return the figures of one run on a scale."""
    votes, truth = scale_world(world, np.random.default_rng(seed))
    kind: PromiseKind = "off-by-more-than-one"
    found: dict[str, float] = {}
    others, true = votes.take(slice(GOLD, None)), truth[GOLD:].astype(int)
    with one_thread():
        plain = fitted(votes, truth, ONE, optimiser, Promise(max_error=LIMIT)).judged(others)
        model = fitted(votes, truth, LabelShape("scale", STEPS), optimiser, Promise(max_error=LIMIT, kind=kind))
    judged = model.judged(others)
    assert judged.probabilities is not None
    assert judged.accepted is not None
    off = np.abs(judged.best - true)
    found["error, nominal"] = float(np.abs(plain.best - true).mean())
    found["error, scale"] = float(off.mean())
    plausible = model.plausible(others, judged)
    assert plausible is not None
    found["interval covers"] = float(plausible[np.arange(OTHERS), true].mean())
    found["labels in it"] = float(plausible.sum(axis=1).mean())
    return {**found, **_kept("promise", off > 1, judged.accepted, LIMIT)}


def tree_run(world: World, optimiser: str, seed: int) -> dict[str, float]:
    """Return the figures of one run in a tree."""
    votes, truth = tree_world(world, np.random.default_rng(seed))
    promise = Promise(max_error=world.limit)
    others, true = votes.take(slice(GOLD, None)), truth[GOLD:]
    with one_thread():
        plain = fitted(votes, truth, ONE, optimiser, promise).judged(others)
        judged = fitted(votes, truth, LabelShape("tree", PATHS), optimiser, promise).judged(others)
    assert plain.accepted is not None
    assert judged.accepted is not None
    assert judged.level is not None
    leaf, parent = (judged.accepted & (judged.level == level) for level in (2, 1))
    outside = judged.best // LEAVES != true // LEAVES
    return {
        "usable, leaves alone": float(plain.accepted.mean()),
        "usable, tree": float(judged.accepted.mean()),
        **_kept("leaf", judged.best != true, leaf, promise.max_error),
        **_kept("parent", outside, parent, promise.max_error),
    }


def _kept(name: str, wrong: Mask, accepted: Mask, limit: float) -> dict[str, float]:
    error = float(wrong[accepted].mean()) if accepted.any() else 0.0
    return {
        f"{name} made": float(accepted.any()),
        f"{name} kept": float(error <= limit),
        f"{name} rows": float(accepted.mean()),
    }


def show(title: str, runs: Sequence[Mapping[str, float]]) -> None:
    """Print the mean of every figure."""
    print(title, *(f"{name} {np.mean([one[name] for one in runs]):.4f}" for name in runs[0]), sep="\n  ", flush=True)


def main() -> None:
    """Run the repetitions."""
    kind, repetitions, optimiser = (*sys.argv[1:], *("scale", "200", "auto")[len(sys.argv) - 1 :])
    one = scale_run if kind == "scale" else tree_run
    with ProcessPoolExecutor(2) as pool:
        for name, world in WORLDS.items():
            runs = list(pool.map(partial(one, world, optimiser), range(int(repetitions))))
            show(f"{kind}, {name}, {optimiser}, {repetitions} runs", runs)


if __name__ == "__main__":
    main()
