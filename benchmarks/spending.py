"""What stopping early saves, and what it costs in quality.

100 gold rows are drawn at random, everything is learned from them, and all figures are measured on the other rows. Run
it with `python -m benchmarks.spending [repetitions]`; sections that also calibrate use a fifth of the repetitions.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from benchmarks.development_data import Dataset, babe, load
from pcs_annotator import NOT_ASKED, PcsWarning, Votes, Weights, score
from pcs_annotator.core.arrays import Codes
from pcs_annotator.core.votes import OPEN, Cell
from pcs_annotator.judging.early_stop import ExactStop, learn_frugal, order_of, simulate
from pcs_annotator.judging.fit_model import Learning, fit_model
from pcs_annotator.judging.heldout import Splits
from pcs_annotator.judging.metrics.figures import auroc
from pcs_annotator.judging.model import Model
from tests.judging.metrics.alone import ece

GOLD_ROWS = 100
SIMULATED = ("sentiment", "gossipcop", "politifact")
TRIPLES = (
    ("flan_ul2", "gpt_3_5", "mistral_7b"),
    ("falcon_7b", "flan_ul2", "gpt_3_5"),
    ("mistral_7b", "openchat", "zephyr"),
)
OPEN_FROM = 5


class Trial(NamedTuple):
    """One random split: the gold rows that are learned from, and the rows that are tested on."""

    seed: int
    votes: Votes
    gold: Codes
    test: Votes
    truth: Codes
    model: Model
    how: Learning

    @property
    def weights(self) -> Weights:
        """What each cell is worth."""
        return self.model.weights


def panels() -> dict[str, Dataset]:
    """Return the panels of 12 cells: three simulated sets, and BABE with three models of seven."""
    sets = {f"simulated {name}": load(f"simulated/{name}.csv.gz") for name in SIMULATED}
    return sets | {f"babe {' '.join(triple)}": babe(triple) for triple in TRIPLES}


def trials(data: Dataset, repetitions: int, optimiser: str = "lr", gold_rows: int = GOLD_ROWS) -> Iterator[Trial]:
    """Yield random splits with the weights learned from their gold rows."""
    votes, codes, _ = data
    for seed in range(repetitions):
        order = np.random.default_rng(seed).permutation(len(votes))
        learn, test = np.sort(order[:gold_rows]), np.sort(order[gold_rows:])
        how = Learning(optimiser=optimiser, splits=Splits(seed=seed))
        model = fit_model(votes.take(learn), codes[learn], how).model
        yield Trial(seed, votes.take(learn), codes[learn], votes.take(test), codes[test], model, how)


def exact_of(trial: Trial, order: list[Cell]) -> ExactStop:
    test, model = trial.test, trial.model
    return ExactStop(model.weights, test.labels, order, model.calibrator)


def saved(asked: float, votes: Votes) -> float:
    """Return the percentage of recorded calls that were not made."""
    return 100 * (1 - asked / float((votes.codes != NOT_ASKED).sum()))


def show(title: str, rows: list[dict[str, float]]) -> None:
    means = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
    print(f"  {title:46}" + "  ".join(f"{name} {value:7.2f}" for name, value in means.items()), flush=True)


def exact_row(trial: Trial) -> dict[str, float]:
    """Return how many labels stopping early changed, the saved calls in per cent, and the change of AUROC in points."""
    frugal = learn_frugal(trial.votes, trial.gold, trial.how)
    stopped = simulate(trial.test, frugal.strategy)
    whole, part = trial.model.judged(trial.test), frugal.model.judged(stopped)
    return {
        "labels changed": float((whole.best != part.best).sum()),
        "saved %": saved((stopped.codes != NOT_ASKED).sum(), trial.test),
        "AUROC": 100 * (auroc(part.scores, trial.truth) - auroc(whole.scores, trial.truth)),
    }


def honest_rows(trial: Trial) -> dict[str, dict[str, float]]:
    """Return AUROC and ECE in points, with all votes and with an exact stop, raw and calibrated in several ways."""
    labels = trial.test.labels
    frugal = learn_frugal(trial.votes, trial.gold, trial.how)
    whole = score(trial.test, trial.weights)
    part = score(simulate(trial.test, frugal.strategy), trial.weights)
    usual, own = trial.model.calibrator, frugal.model.calibrator
    assert usual is not None
    assert own is not None
    found = {
        "all votes, raw": whole,
        "all votes, calibrated": usual.apply(whole, labels),
        "stopped, raw": part,
        "stopped, calibrated as if all were asked": usual.apply(part, labels),
        "stopped, calibrated on stopped votes": own.apply(part, labels),
    }
    return {name: {"AUROC": 100 * auroc(p, trial.truth), "ECE": 100 * ece(p, trial.truth)} for name, p in found.items()}


def speed(data: Dataset) -> None:
    """Print the CPU time of one decision, for patterns of votes that are new and for those in the cache."""
    for optimiser in ("lr", "auto"):
        trial = next(trials(data, 1, optimiser))
        rule = exact_of(trial, order_of(trial.weights))
        codes = trial.test.codes.copy()
        for cell in rule.order[OPEN_FROM:]:
            codes[(slice(None), *cell)] = OPEN
        for heading in ("cache empty at first", "all patterns cached"):
            start = time.process_time()
            for cells in codes:
                rule.needed(cells)
            micro = 1e6 * (time.process_time() - start) / len(codes)
            print(f"  {optimiser:12} {heading:22} {micro:6.1f} µs")
        patterns, rule = np.unique(codes, axis=0), exact_of(trial, order_of(trial.weights))
        start = time.process_time()
        for cells in patterns:
            rule.needed(cells)
        print(f"  {optimiser:12} {'without cache':22} {1e6 * (time.process_time() - start) / len(patterns):6.1f} µs")


def main() -> None:
    warnings.simplefilter("ignore", PcsWarning)
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    fewer = max(repetitions // 5, 1)
    sets = panels()
    print(f"Exact stop, {GOLD_ROWS} gold rows, mean of {repetitions} repetitions; AUROC: change in points")
    for optimiser in ("lr", "auto", "uniform"):
        for title, data in sets.items():
            turns = repetitions if optimiser == "lr" else fewer
            show(f"{optimiser}: {title}", [exact_row(trial) for trial in trials(data, turns, optimiser)])
    print(f"\nScores after an exact stop, lr, mean of {fewer} repetitions")
    for title, data in sets.items():
        print(f" {title}")
        found = [honest_rows(trial) for trial in trials(data, fewer)]
        for name in found[0]:
            show(name, [one[name] for one in found])
    print("\nCPU time of one decision")
    speed(next(iter(sets.values())))


if __name__ == "__main__":
    main()
