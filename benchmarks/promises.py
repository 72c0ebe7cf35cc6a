"""Promises on average: what share of the accepted labels is wrong, and how many labels are accepted?

For every data set, number of gold rows and repetition: gold rows are drawn at random, half of the other rows are the
table that the promise is about, and the other half are texts that come later. The mean share of wrong labels among
those that `false-discoveries` accepts must be at most α; how many it accepts is compared with the promise with
certainty. `split` learns from one half of the gold rows and compares with the other half, which is exact; the fits that
`pcs` makes use each gold row for both, out of fold. `looks` tests after every 25 gold rows and stops at the first test
that accepts one row in twenty.

Run it with `python -m benchmarks.promises [REPETITIONS [PART …]]`, a part being a word that data sets have in their
name, or `looks`; the results are in `benchmarks/results/promises.md`.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from benchmarks.claim_checks.repeated_fits import LOOP, data_sets
from benchmarks.finish import public
from pcs_annotator import PcsWarning, Votes
from pcs_annotator.core.arrays import Codes, Integers
from pcs_annotator.core.gold_codes import UNLABELLED
from pcs_annotator.judging.fit_model import Learning, fit_model
from pcs_annotator.judging.heldout import Judged, Splits
from pcs_annotator.judging.promise.promise import Promise
from pcs_annotator.judging.promise.thresholds import EVERY_LABEL, find_thresholds
from pcs_annotator.judging.solver import one_thread

OPTIMISER = os.environ.get("OPTIMISER", "auto")
ALPHAS = (0.05, 0.1)
SIZES = (100, 300)
LEAST_OTHERS, MOST_OTHERS = 200, 1_000
TEACHING, ENOUGH = 300, 0.05
IN_A_LOOP = ("simulated sentiment", "babe A", "simulated politifact")


class Seen(NamedTuple):
    """How a fit turned out, in shares."""

    wrong: float  # of the accepted rows of the table
    later: float  # of the accepted texts that came later
    accepted: float  # of the rows of the table
    certain: float  # of the rows of the table, by the promise with certainty
    split: float  # wrong among those accepted if half of the gold rows learn, and half are compared with
    split_accepted: float  # of the rows of the table, in that case


@cache
def sources() -> Mapping[str, Callable[[], tuple[Votes, Codes]]]:
    """Return loaders of votes with the gold label of every row."""

    def known(name: str) -> Callable[[], tuple[Votes, Codes]]:
        def loaded() -> tuple[Votes, Codes]:
            votes, codes, _ = data_sets()[name]()
            rows = np.flatnonzero(codes != UNLABELLED)
            return votes.take(rows), codes[rows]

        return loaded

    here = {name: known(name) for name in data_sets() if not name.startswith("graded")}
    return here | {f"textclass {name}": lambda found=(votes, codes): found for name, votes, codes, *_ in public()}


@cache
def data_of(name: str) -> tuple[Votes, Codes]:
    return sources()[name]()


def judged_rows(votes: Votes, truth: Codes, learn: Integers, seed: int) -> tuple[Judged, Judged]:
    """Return the gold rows as judged out of fold, and all rows as judged by the model."""
    gold = np.full(len(votes), UNLABELLED, dtype=truth.dtype)
    gold[learn] = truth[learn]
    with one_thread():
        model, trial = fit_model(votes, gold, Learning(optimiser=OPTIMISER, splits=Splits(seed=seed)))
    verdicts = model.judged(votes)
    if trial is None or verdicts.probabilities is None:  # then nothing can be promised
        nothing = Judged(np.zeros(0), np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.bool_))
        return nothing, Judged(np.zeros(len(votes)), verdicts.best, verdicts.best == truth)
    sure = np.where(votes.silent, -1.0, verdicts.probabilities[np.arange(len(votes)), verdicts.best])
    return trial.judged, Judged(sure, verdicts.best, verdicts.best == truth)


def shares(rows: Judged, least: float | None) -> tuple[float, float]:
    """Return the share of wrong labels among the accepted, and of accepted rows."""
    taken = rows.confidence >= (np.inf if least is None else least)
    return float((~rows.right[taken]).mean()) if taken.any() else 0.0, float(taken.mean())


def threshold(gold: Judged, alpha: float, table: Judged | None = None) -> float | None:
    """Return the threshold of the promise on average, or without a table of the promise with certainty."""
    if not len(gold.right):
        return None
    if table is None:
        return find_thresholds(gold, ("",), Promise(max_error=alpha)).get(EVERY_LABEL)
    promise = Promise(max_error=alpha, kind="false-discoveries")
    return find_thresholds(gold, ("",), promise, table=table).get(EVERY_LABEL)


def one(name: str, rows: int, seed: int, *, split: bool) -> dict[float, Seen]:
    votes, truth = data_of(name)
    order = np.random.default_rng(seed).permutation(len(votes))[: rows + MOST_OTHERS]
    votes, truth = votes.take(order), truth[order]
    gold, others = np.split(np.arange(len(order)), [rows])
    held_out, every = judged_rows(votes, truth, gold, seed)
    table, later = every.take(others[::2]), every.take(others[1::2])
    half, judged_by_half = judged_rows(votes, truth, gold[::2], seed) if split else (held_out, every)
    if split:
        half = judged_by_half.take(gold[1::2])
    found = {}
    for alpha in ALPHAS:
        least = threshold(held_out, alpha, table)
        wrong, accepted = shares(table, least)
        own = judged_by_half.take(others[::2])
        exact = shares(own, threshold(half, alpha, own)) if split else (0.0, 0.0)
        found[alpha] = Seen(
            wrong, shares(later, least)[0], accepted, shares(table, threshold(held_out, alpha))[1], *exact
        )
    return found


def cells(words: Sequence[str]) -> Iterator[tuple[str, int]]:
    for name in sources():
        if not words or any(word in name for word in words):
            yield from ((name, rows) for rows in SIZES if rows + LEAST_OTHERS <= len(data_of(name)[0]))


def look_again(repetitions: int) -> None:
    """Print what happens to somebody who labels more gold until something is accepted, and stops then.

    The model is learned once, from rows that are not used again, so that nothing but looking makes a difference.
    """
    for name in IN_A_LOOP:
        votes, truth = data_of(name)
        order = np.random.default_rng(0).permutation(len(votes))
        rest = judged_rows(votes, truth, order[:TEACHING], 0)[1].take(order[TEACHING:])
        for alpha in ALPHAS:
            wrongs, single = [], []
            for seed in range(repetitions):
                drawn = rest.take(np.random.default_rng(seed).permutation(len(rest.right))[: LOOP[-1] + MOST_OTHERS])
                table = drawn.take(np.arange(LOOP[-1], len(drawn.right)))
                looks = [shares(table, threshold(drawn.take(np.arange(rows)), alpha, table)) for rows in LOOP]
                wrongs.append(next((wrong for wrong, accepted in looks if accepted >= ENOUGH), 0.0))
                single.append(looks[-1][0])
            error = np.std(wrongs) / np.sqrt(len(wrongs))
            said = f"wrong {np.mean(wrongs):.4f} ± {error:.4f}, at the last fit alone {np.mean(single):.4f}"
            print(f"looks {name:32} α {alpha:.2f}  {said}", flush=True)


def main(repetitions: int, words: Sequence[str]) -> None:
    if "looks" in words:
        look_again(repetitions)
        return
    print(
        f"{'':40}{'gold':>5}{'α':>6}{'wrong':>8}{'±':>7}{'later':>8}{'accept':>8}{'certain':>8}{'split':>8}{'accept':>8}"
    )
    for name, rows in cells(words):
        found = [one(name, rows, seed, split="textclass" not in name) for seed in range(repetitions)]
        for alpha in ALPHAS:
            seen = np.array([each[alpha] for each in found])
            error = seen[:, 0].std() / np.sqrt(len(seen))
            figures = [seen[:, 0].mean(), error, *seen[:, 1:].mean(axis=0)]
            print(f"{name:40}{rows:5}{alpha:6.2f}" + "".join(f"{value:8.4f}" for value in figures), flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore", PcsWarning)
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200, sys.argv[2:])
