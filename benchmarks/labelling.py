"""How much work a good choice of rows saves: labels needed to learn weights, and rows to review until a target is met.

Run it with `python -m benchmarks.labelling`; `--quick` skips `auto`, which takes minutes.
"""

from __future__ import annotations

import itertools
import sys
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from benchmarks.development_data import DATA, Dataset, babe, development_sets, read_models
from pcs_annotator import PcsWarning, Votes, fit_weights, score
from pcs_annotator.core.arrays import Codes, Floats, Integers
from pcs_annotator.core.gold import UNLABELLED
from pcs_annotator.judging.fit_model import Learning, fit_model
from pcs_annotator.judging.metrics.metrics import auroc
from pcs_annotator.judging.promising.informative import review_order, rows_to_label
from pcs_annotator.judging.weighing.crossfit import Splits
from pcs_annotator.judging.weighing.optimiser import fit_optimiser, optimisers
from pcs_annotator.judging.weighing.scoring import choose

CHOSEN = 30
GOLD_ROWS = 100
TARGET = 0.95
ROUND = 0.05


class Split(NamedTuple):
    """Rows that a person may label, and rows to test on."""

    pool: Integers
    test: Integers


class Review(NamedTuple):
    """Whether a person sees the least certain rows first, and whether their labels are learned from in between."""

    ordered: bool
    again: bool


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


def formatted(values: Floats) -> str:
    difference = 100 * (values[:, 1] - values[:, 0])
    error = difference.std(ddof=1) / np.sqrt(len(values))
    return "{:8.4f}{:9.4f}".format(*values.mean(axis=0)) + f"{difference.mean():+8.2f} ±{error:5.2f} points"


def show_rows_to_label(sets: dict[str, Dataset], names: list[str], seeds: int) -> None:
    print(f"AUROC on the other rows after {CHOSEN} labels, mean of {seeds} seeds: random, chosen, difference ± its SE")
    for optimiser, pool in itertools.product(names, (400, 1000)):
        for title, data in sets.items():
            print(
                f"  {optimiser:5} pool {pool:5} {title:22}" + formatted(gains(data, optimiser, pool, seeds)), flush=True
            )


def show_triples(seeds: int) -> None:
    every = [gains(babe(models), "lr", 1000, seeds) for models in itertools.combinations(read_models(), 3)]
    means = np.array([values.mean(axis=0) for values in every])
    print(f"  lr, every 3 of the 7 models of babe, {seeds} seeds each, pool 1000: " + formatted(means))
    print(f"  chosen rows are better for {int((means[:, 1] > means[:, 0]).sum())} of {len(means)} choices of models")


Belief = Callable[[Votes], tuple[Codes, Integers]]
"""Labels of some rows, and the order in which a person should see them."""


def unsupervised(votes: Votes) -> tuple[Codes, Integers]:
    """Return labels and order by Dawid–Skene, without any gold."""
    weights = fit_optimiser(optimisers.create("dawid-skene"), votes, np.full(len(votes), UNLABELLED, np.int8), seed=0)
    return choose(score(votes, weights), votes.labels), review_order(votes)


def learned_belief(data: Dataset, gold: Integers, optimiser: str, seed: int) -> Belief:
    """Return labels and order after learning from gold rows."""
    chosen, votes, codes = optimisers.create(optimiser), data[0].take(gold), data[1][gold]
    weights = fit_optimiser(chosen, votes, codes, seed)
    calibrator = fit_model(votes, codes, Learning(optimiser=chosen, splits=Splits(seed=seed))).model.calibrator
    assert calibrator is not None

    def belief(some: Votes) -> tuple[Codes, Integers]:
        scores = score(some, weights)
        best = choose(scores, some.labels)
        confidence = calibrator.apply(scores, some.labels)[np.arange(len(some)), best]
        return best, review_order(some, confidence)

    return belief


def rows_seen(data: Dataset, optimiser: str | None, seed: int, how: Review) -> float:
    """Return the share of rows that a person reviews and corrects until the whole set reaches the target accuracy."""
    votes, codes, _ = data
    gold, rest = split(len(votes), GOLD_ROWS if optimiser else 0, seed)
    belief = learned_belief(data, gold, optimiser, seed) if optimiser else unsupervised
    left, allowed, step = np.sort(rest), (1 - TARGET) * len(rest) + 1e-9, int(ROUND * len(rest))
    rng = np.random.default_rng(seed)
    while True:
        labels, order = belief(votes.take(left))
        if not how.ordered:
            order = rng.permutation(len(left))
        wrong = (labels != codes[left])[order]
        until = int((np.append(wrong[::-1].cumsum()[::-1], 0) > allowed).sum())
        if until <= step or not how.again:
            return (len(rest) - len(left) + until) / len(rest)
        gold, left = np.concatenate([gold, left[order[:step]]]), left[np.sort(order[step:])]
        assert optimiser
        belief = learned_belief(data, gold, optimiser, seed)


def show_review(sets: dict[str, Dataset], names: list[str | None], seeds: int) -> None:
    print(f"\nShare of rows reviewed until the whole set is {TARGET:.0%} right: random order, review order, rows saved")
    for optimiser, again in itertools.product(names, (False, True)):
        if again and not optimiser:
            continue
        title = f"{GOLD_ROWS} gold rows, {optimiser}" if optimiser else "no gold, dawid-skene"
        title += f", learning again after every {ROUND:.0%}" if again else ""
        for name, data in sets.items():
            random, ordered = (
                np.mean([rows_seen(data, optimiser, seed, Review(one, again)) for seed in range(seeds)])
                for one in (False, True)
            )
            print(f"  {title:52} {name:22}{random:8.1%}{ordered:8.1%}{1 - ordered / random:8.1%}", flush=True)


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
