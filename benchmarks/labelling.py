"""What choosing rows well is worth to a person: labels needed to learn weights, and rows seen until all is right.

Run it with `python -m benchmarks.labelling`; `--quick` leaves out `auto`, which takes minutes.
"""

from __future__ import annotations

import itertools
import sys
import warnings
from typing import NamedTuple

import numpy as np

from benchmarks.development_data import DATA, Dataset, babe, development_sets, read_models
from pcs_annotator.core.arrays import Floats, Integers
from pcs_annotator.core.gold import UNLABELLED
from pcs_annotator.errors import PcsWarning
from pcs_annotator.judging.crossfit import Splits
from pcs_annotator.judging.evaluation.metrics import auroc
from pcs_annotator.judging.fitting import fit_weights
from pcs_annotator.judging.informative import review_order, rows_to_label
from pcs_annotator.judging.learning import fit_out_of_fold_calibrator
from pcs_annotator.judging.optimiser import fit_optimiser
from pcs_annotator.judging.optimisers import optimisers
from pcs_annotator.judging.scoring import choose, score

CHOSEN = 30
GOLD_ROWS = 100
TARGET = 0.95


class Split(NamedTuple):
    """Rows that a person may label, and rows to test on."""

    pool: Integers
    test: Integers


def split(rows: int, pool: int, seed: int) -> Split:
    order = np.random.default_rng(seed).permutation(rows)
    return Split(order[:pool], order[pool:])


def learned(data: Dataset, rows: Integers, test: Integers, optimiser: str) -> float:
    """Return the AUROC on test rows after learning from some rows."""
    votes, codes, gold = data
    weights = fit_weights(votes.take(rows), [gold[row] for row in rows], optimiser)
    return auroc(score(votes.take(test), weights), codes[test])


def gains(data: Dataset, optimiser: str, pool: int, seeds: int) -> Floats:
    """Return AUROC after random rows and after chosen rows, `[seed, 2]`."""
    values = []
    for seed in range(seeds):
        rows, test = split(len(data[0]), pool, seed)
        chosen = rows[rows_to_label(data[0].take(rows), CHOSEN, seed=seed)]
        values.append([learned(data, some, test, optimiser) for some in (rows[:CHOSEN], chosen)])
    return np.array(values)


def told(values: Floats) -> str:
    difference = 100 * (values[:, 1] - values[:, 0])
    error = difference.std(ddof=1) / np.sqrt(len(values))
    return "{:8.4f}{:9.4f}".format(*values.mean(axis=0)) + f"{difference.mean():+8.2f} ±{error:5.2f} points"


def show_rows_to_label(sets: dict[str, Dataset], names: list[str], seeds: int) -> None:
    print(f"AUROC on the other rows after {CHOSEN} labels, mean of {seeds} seeds: random, chosen, difference ± its SE")
    for optimiser, pool in itertools.product(names, (400, 1000)):
        for title, data in sets.items():
            print(f"  {optimiser:5} pool {pool:5} {title:22}" + told(gains(data, optimiser, pool, seeds)), flush=True)


def show_triples(seeds: int) -> None:
    every = [gains(babe(models), "lr", 1000, seeds) for models in itertools.combinations(read_models(), 3)]
    means = np.array([values.mean(axis=0) for values in every])
    print(f"  lr, every 3 of the 7 models of babe, {seeds} seeds each, pool 1000: " + told(means))
    print(f"  chosen rows are better for {int((means[:, 1] > means[:, 0]).sum())} of {len(means)} choices of models")


def seen_until(right: Floats, order: Integers) -> int:
    """Return how many rows a person sees and corrects until the whole set is right to the target."""
    wrong_left = (1 - right[order])[::-1].cumsum()[::-1]
    return int((np.append(wrong_left, 0) > (1 - TARGET) * len(order) + 1e-9).sum())


def review_work(data: Dataset, optimiser: str | None, seed: int) -> tuple[int, int, int]:
    """Return rows to see in random order and in review order, and all rows; without gold when no optimiser."""
    votes, codes, _ = data
    gold, rest = split(len(votes), GOLD_ROWS if optimiser else 0, seed)
    rest = np.sort(rest)
    some, truth = votes.take(rest), codes[rest]
    if optimiser:
        chosen = optimisers.create(optimiser)
        weights = fit_optimiser(chosen, votes.take(gold), codes[gold], seed)
        calibrator = fit_out_of_fold_calibrator(chosen, votes.take(gold), codes[gold], Splits(seed=seed))
        assert calibrator is not None
        belief = calibrator.apply(score(some, weights), votes.labels)
        best = choose(score(some, weights), votes.labels)
        order = review_order(some, belief[np.arange(len(rest)), best])
    else:
        weights = fit_optimiser(optimisers.create("dawid-skene"), some, np.full(len(rest), UNLABELLED, np.int8), seed)
        best = choose(score(some, weights), votes.labels)
        order = review_order(some)
    right = (best == truth).astype(np.float64)
    by_chance = np.random.default_rng(seed).permutation(len(rest))
    return seen_until(right, by_chance), seen_until(right, order), len(rest)


def show_review(sets: dict[str, Dataset], names: list[str | None], seeds: int) -> None:
    print(f"\nShare of rows seen until the whole set is {TARGET:.0%} right: random order, review order, rows saved")
    for optimiser in names:
        title = f"{GOLD_ROWS} gold rows, {optimiser}" if optimiser else "no gold, dawid-skene"
        for name, data in sets.items():
            runs = np.array([review_work(data, optimiser, seed) for seed in range(seeds)], dtype=np.float64)
            random, ordered = (runs[:, :2] / runs[:, 2:]).mean(axis=0)
            print(f"  {title:22} {name:22}{random:8.1%}{ordered:8.1%}{1 - ordered / random:8.1%}", flush=True)


def main() -> None:
    warnings.simplefilter("ignore", PcsWarning)
    if not DATA.is_dir():
        print(f"no development data at {DATA}")
        return
    quick = "--quick" in sys.argv
    sets = {name: data for name, data in development_sets().items() if not name.startswith("recorded")}
    show_rows_to_label(sets, ["lr"] if quick else ["lr", "auto"], seeds=30)
    show_triples(seeds=10)
    show_review(sets, [None, "lr"] if quick else [None, "lr", "auto"], seeds=10)


if __name__ == "__main__":
    main()
