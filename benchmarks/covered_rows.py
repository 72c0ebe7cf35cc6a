"""How many rows does a promise cover at 100, 200 and 500 gold rows, and what is lost on the way from what is usable?

For every task with a panel of models and every draw of gold rows, shares of the other rows, at most 10 % of them wrong:

- *usable*: the surest rows, with the threshold read off the rows themselves;
- *threshold known*: the best threshold in hindsight, tested once on as many rows as there are gold rows, at all of δ;
- *all of δ* and *first look*: thresholds found on as many fresh rows that the model judges, at the level δ or δ/2;
- *promised*: found on the gold rows as `pcs fit` does, out of fold.

Run it with `python -m benchmarks.covered_rows [DRAWS [WORD …]]`, words being parts of the names of tasks; the results
are in `benchmarks/results/promises.md`.
"""

import sys
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.development_data import DATA
from benchmarks.local_sets import LocalSet, local_sets
from pcs_annotator import PcsWarning
from pcs_annotator.core.arrays import Mask
from pcs_annotator.core.gold_codes import UNLABELLED
from pcs_annotator.judging.fit_model import Learning, fit_model
from pcs_annotator.judging.heldout import Judged
from pcs_annotator.judging.metrics.special import bdtr
from pcs_annotator.judging.promise.promise import Promise
from pcs_annotator.judging.promise.thresholds import EVERY_LABEL, find_thresholds, steps_of
from pcs_annotator.judging.solver import one_thread
from pcs_annotator.runs.learn import counted_once

SIZES = {100: 200, 200: 200, 500: 300}  # gold rows → the fewest other rows
MOST_OTHERS, RESAMPLES = 1_000, 20
PROMISE = Promise(max_error=0.1)


class Covered(NamedTuple):
    """Shares of rows of one fit, from what is usable to what is promised; and what is wrong among the covered."""

    usable: float
    threshold_known: float
    all_of_delta: float
    first_look: float
    promised: float
    wrong: float


def cover(rows: Judged, tested: Judged, level: float) -> tuple[float, float]:
    """Return the share of rows that the thresholds found on tested rows accept, and of wrong ones among these."""
    least = find_thresholds(tested, ("",), PROMISE, level).get(EVERY_LABEL, np.inf)
    return shares(rows, rows.confidence >= least)


def shares(rows: Judged, accepted: Mask) -> tuple[float, float]:
    return float(accepted.mean()), float((~rows.right[accepted]).mean()) if accepted.any() else 0.0


def threshold_known(rows: Judged, size: int) -> float:
    """Return the most rows that one threshold accepts on average, times its odds of passing an exact test."""
    steps, delta = steps_of(rows), PROMISE.delta
    accepts, risk = steps.rows / len(rows.right), steps.wrong / steps.rows
    of_gold, errors = np.maximum((accepts * size).astype(np.intp), 1), np.arange(size + 1)[:, np.newaxis]
    most = (bdtr(np.minimum(errors, of_gold), of_gold, PROMISE.max_error) <= delta).sum(axis=0) - 1
    passes = np.where(most >= 0, bdtr(np.maximum(most, 0), of_gold, risk), 0.0)
    return float((passes * accepts)[risk <= PROMISE.max_error].max(initial=0.0))


def measured(task: LocalSet, size: int, seed: int) -> Covered:
    """Return what one draw of gold rows covers of the other rows."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(task.truth))[: size + MOST_OTHERS]
    votes, truth = task.votes.take(order), task.truth[order]
    gold = np.where(np.arange(len(order)) < size, truth, UNLABELLED).astype(truth.dtype)
    with one_thread():
        once = counted_once(votes, gold, votes.texts)
        how = Learning(optimiser="auto", text=True, promise=PROMISE)
        model, trial = fit_model(votes, gold, how, distinct=once.distinct, copies=once.copies)
        new = votes.take(np.arange(size, len(order)))
        judged = model.judged(new)
    if trial is None or judged.confidence is None or judged.accepted is None:
        return Covered(*[0.0] * len(Covered._fields))
    right = (judged.best == truth[size:]) & ~new.silent
    rows = Judged(np.where(new.silent, -1.0, judged.confidence), judged.best, right)
    steps, level = steps_of(rows), PROMISE.level(size)
    samples = [rows.take(rng.integers(len(right), size=size)) for _ in range(RESAMPLES)]
    fresh = [float(np.mean([cover(rows, sample, part)[0] for sample in samples])) for part in (PROMISE.delta, level)]
    promised = shares(rows, judged.accepted)
    usable = float(steps.rows[steps.wrong <= PROMISE.max_error * steps.rows].max(initial=0) / len(right))
    return Covered(usable, threshold_known(rows, size), fresh[0], fresh[1], promised[0], promised[1])


def report(fits: Sequence[Covered], name: str) -> None:
    """Print means of the shares, in how many fits a promise is shown, and in how many it is broken."""
    if not fits:
        return
    table = np.array(fits)
    text = f"{name:34}{len(fits):5}" + "".join(f"{100 * value:8.1f}" for value in table[:, :5].mean(axis=0))
    shown, broken = (table[:, 4] > 0).sum(), (table[:, 5] > PROMISE.max_error).sum()
    print(f"{text}{shown:8}{broken:5}", flush=True)


def main(draws: int, words: Sequence[str]) -> None:
    few = [PROMISE.rows_at(level) for level in (PROMISE.delta, PROMISE.level(100))]
    print(f"errorless rows that a test takes at least, at all of δ and at a first look: {few}")
    print(f"{'%':34}{'fits':>5}  usable   known all of δ  first promised   shown, broken")
    found: dict[int, list[Covered]] = {size: [] for size in SIZES}
    for task in (task for folder in ("textclass", "public") for task in local_sets(DATA / folder, {})):
        if words and not any(word in task.name for word in words):
            continue
        for size, others in SIZES.items():
            fits = [measured(task, size, seed) for seed in range(draws) if len(task.truth) >= size + others]
            found[size] += fits
            report(fits, f"{task.name}, {size}")
    for size, fits in found.items():
        report(fits, f"all, {size}")
        for usable in (0.3, 0.5):
            some = [fit for fit in fits if fit.usable > usable]
            report(some, f"usable > {usable:.0%}, {size}")
            report([fit for fit in some if not fit.promised], "  of them without a promise")


if __name__ == "__main__":
    warnings.simplefilter("ignore", PcsWarning)
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3, sys.argv[2:])
