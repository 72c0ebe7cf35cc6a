"""ECE of raw PCS and of every calibration method on held-out rows.

Run it with `python -m benchmarks.calibration [repetitions for lr] [repetitions for auto]`.
"""

from __future__ import annotations

import sys
import warnings
from typing import get_args

import numpy as np

from benchmarks.development_data import Dataset, babe, load, read_models
from pcs_annotator import PcsWarning, fit_weights, score
from pcs_annotator.core.arrays import Floats
from pcs_annotator.judging.calibrate import CalibrationMethod, fit_calibrator
from pcs_annotator.judging.fit_weights import optimisers
from pcs_annotator.judging.heldout import Splits, cross_fits
from tests.judging.metrics.alone import ece

SIMULATED = ("sentiment", "gossipcop", "politifact")
TRIPLES = (
    ("flan_ul2", "gpt_3_5", "mistral_7b"),
    ("llama_13b", "openchat", "zephyr"),
    ("falcon_7b", "mistral_7b", "zephyr"),
)
GOLD_ROWS = (50, 100, 250)
METHODS: tuple[CalibrationMethod, ...] = get_args(CalibrationMethod)


def calibration_sets() -> dict[str, Dataset]:
    sets = {name: load(f"simulated/{name}.csv.gz") for name in SIMULATED}
    for place, models in enumerate(TRIPLES, start=1):
        sets[f"babe 3 models ({place})"] = babe(models)
    sets["babe 7 models"] = babe(read_models())
    return sets


def errors(data: Dataset, optimiser: str, gold_rows: int, seed: int) -> list[float]:
    """Return the ECE of every method on the rows that were not drawn as gold."""
    votes, codes, gold = data
    order = np.random.default_rng(seed).permutation(len(votes))
    learn, test = np.sort(order[:gold_rows]), np.sort(order[gold_rows:])
    seen, truth = votes.take(learn), codes[learn]
    weights = fit_weights(seen, [gold[row] for row in learn], optimiser, seed=seed)
    # as on the command line, the candidate that `auto` chose is cross-fitted
    chosen = optimisers.create(weights.diagnostics.optimiser)
    inside = np.mean([fit.scores for fit in cross_fits(chosen, seen, truth, Splits(seed=seed))], axis=0)
    outside = score(votes.take(test), weights)
    fitted = [fit_calibrator(inside, truth, votes.labels, method) for method in METHODS]
    return [ece(one.apply(outside, votes.labels), codes[test]) for one in fitted]


def show(optimiser: str, repetitions: int) -> None:
    print(f"\nECE on held-out rows, 15 bins of equal mass, {optimiser}, mean of {repetitions} repetitions (± SE)")
    print(f"  {'':22}{'n':>5}" + "".join(f"{name if name != 'none' else 'raw PCS':>17}" for name in METHODS))
    sets = calibration_sets()
    for gold_rows in GOLD_ROWS:
        means: dict[str, Floats] = {}
        for title, data in sets.items():
            values = np.array([errors(data, optimiser, gold_rows, seed) for seed in range(repetitions)])
            means[title] = values.mean(axis=0)
            spread = values.std(axis=0, ddof=1) / np.sqrt(repetitions)
            cells = (f"{mean:10.4f} ±{se:.4f}" for mean, se in zip(means[title], spread, strict=True))
            print(f"  {title:22}{gold_rows:>5}" + "".join(cells), flush=True)
        simulated = np.mean([means[name] for name in SIMULATED], axis=0)
        print(f"  {'mean of simulated':22}{gold_rows:>5}" + "".join(f"{mean:10.4f}       " for mean in simulated))


def main() -> None:
    warnings.simplefilter("ignore", PcsWarning)
    wanted = [int(word) for word in sys.argv[1:]] + [100, 20][len(sys.argv) - 1 :]
    for place, models in enumerate(TRIPLES, start=1):
        print(f"babe 3 models ({place}): {', '.join(models)}")
    show("lr", wanted[0])
    show("auto", wanted[1])


if __name__ == "__main__":
    main()
