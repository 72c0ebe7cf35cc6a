"""Whether the promise about accepted labels is kept, and how many rows it accepts, on the development data.

    python -m benchmarks.acceptance [REPETITIONS] [OPTIMISER …]

Gold rows are drawn at random, everything is learned from them alone, and the error among accepted labels is measured on
all other rows. A promise is broken in a repetition if that error exceeds α; this may happen in a share δ of them.
"""

from __future__ import annotations

import sys
import warnings
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.development_data import DATA, Dataset, babe, load
from pcs_annotator.core.gold import gold_codes
from pcs_annotator.errors import PcsWarning
from pcs_annotator.judging.fit_model import Learning, fit_model
from pcs_annotator.judging.promising.acceptance import Promise, accepted, find_thresholds
from pcs_annotator.judging.spending.frugal import learn_frugal
from pcs_annotator.judging.spending.strategy import simulate
from pcs_annotator.judging.weighing.crossfit import Splits

DELTA = 0.1
TRIPLES = (("flan_ul2", "gpt_3_5", "mistral_7b"), ("llama_13b", "openchat", "zephyr"))
ALPHAS = (0.05, 0.1)


class Kept(NamedTuple):
    """One repetition: the share of other rows accepted, and the error among them; 0 if there are none."""

    accepted: float
    error: float


def repetition(data: Dataset, gold_rows: int, optimiser: str, seed: int, *, stopped: bool) -> list[Kept]:
    """Return how promises based on some random rows hold on the others, one for each α."""
    votes, codes, names = data
    known = np.zeros(len(votes), dtype=np.bool_)
    known[np.random.default_rng(seed).permutation(len(votes))[:gold_rows]] = True
    gold = [name if here else None for name, here in zip(names, known, strict=True)]
    how = Learning(optimiser=optimiser, splits=Splits(seed=seed))
    known_codes = gold_codes(votes, gold)
    if stopped:
        model, strategy, _, trial = learn_frugal(votes, known_codes, how)
        seen = simulate(votes, strategy).votes
    else:
        model, trial = fit_model(votes, known_codes, how)
        seen = votes
    assert trial is not None
    verdicts = model.judged(seen)
    assert verdicts.probabilities is not None
    confidence = verdicts.probabilities[np.arange(len(votes)), verdicts.best]
    found = []
    for alpha in ALPHAS:
        thresholds = find_thresholds(trial.judged, trial.labels, Promise(max_error=alpha, certainty=1 - DELTA))
        taken = accepted(confidence, verdicts.best, votes.labels, thresholds) & ~known & ~votes.silent
        wrong = (verdicts.best != codes)[taken]
        found.append(Kept(float(taken.sum() / (~known).sum()), float(wrong.mean()) if taken.any() else 0.0))
    return found


def show(title: str, data: Dataset, optimiser: str, repetitions: int, *, stopped: bool = False) -> None:
    limit = DELTA + 2 * np.sqrt(DELTA * (1 - DELTA) / repetitions)
    for gold_rows in (50, 100, 250):
        runs = [repetition(data, gold_rows, optimiser, seed, stopped=stopped) for seed in range(repetitions)]
        for alpha, kept in zip(ALPHAS, zip(*runs, strict=True), strict=True):
            broken = np.mean([one.error > alpha for one in kept])
            print(
                f"  {title:32} n {gold_rows:3}  α {alpha:.2f}  accepted {np.mean([one.accepted for one in kept]):6.1%}"
                f"  a promise in {np.mean([one.accepted > 0 for one in kept]):4.0%}  broken {broken:5.1%} "
                f"(limit {limit:.1%})  {'kept' if broken <= limit else 'BROKEN'}",
                flush=True,
            )


def main() -> None:
    warnings.simplefilter("ignore", PcsWarning)
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    if not DATA.is_dir():
        print(f"no development data at {DATA}")
        return
    sets = {name: load(f"simulated/{name}.csv.gz") for name in ("sentiment", "gossipcop", "politifact")}
    sets.update({f"babe {', '.join(models)}": babe(models) for models in TRIPLES})
    with threadpool_limits(limits=1):
        for optimiser in sys.argv[2:] or ("lr", "auto"):
            print(f"{optimiser}, {repetitions} repetitions, certainty {1 - DELTA:.0%}")
            for title, data in sets.items():
                show(title, data, optimiser, repetitions)
        print("lr, asked until the label is settled")
        for title, data in sets.items():
            show(title, data, "lr", repetitions, stopped=True)


if __name__ == "__main__":
    main()
