"""Cost and quality of `judging/`: CPU seconds, memory, and AUROC on the development data.

Run it with `make bench`. CPU times depend on the machine and are noisy; nothing here asserts them.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np

from benchmarks.development_data import DATA, PAPER_RELATIONS, Dataset, development_sets
from pcs_annotator import PcsWarning, Votes, Weights, fit_weights, score
from pcs_annotator.judging.metrics.figures import auroc

GOLD_ROWS = 100


def cpu_seconds(work: Callable[[], object], repeats: int = 5) -> float:
    """Return the lowest CPU time of a few tries."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def random_votes(items: int, seed: int = 0) -> tuple[Votes, list[str]]:
    """Return votes of three annotators of different accuracy on four relations and three labels, with gold."""
    rng = np.random.default_rng(seed)
    labels = ["negative", "neutral", "positive"]
    truth = rng.integers(3, size=items)
    right = rng.random((items, 3, 4)) < np.array([0.8, 0.7, 0.6])[:, np.newaxis]
    codes = np.where(right, truth[:, np.newaxis, np.newaxis], rng.integers(3, size=(items, 3, 4)))
    votes = Votes(
        codes=codes,
        ids=[str(row) for row in range(items)],
        annotators=["a", "b", "c"],
        relations=PAPER_RELATIONS,
        labels=labels,
    )
    return votes, [labels[code] for code in truth]


def show_costs() -> None:
    print("CPU, lowest of five")
    small, gold = random_votes(GOLD_ROWS)
    print(f"  lr, n = 100                 {1e3 * cpu_seconds(lambda: fit_weights(small, gold)):8.1f} ms")
    print(f"  auto, n = 100               {1e3 * cpu_seconds(lambda: fit_weights(small, gold, 'auto')):8.1f} ms")
    middle, middle_gold = random_votes(400)
    print(f"  ga, n = 400                 {cpu_seconds(lambda: fit_weights(middle, middle_gold, 'ga'), 2):8.2f} s")
    large, large_gold = random_votes(100_000)
    print(f"  lr, n = 100,000 × 3 × 4     {cpu_seconds(lambda: fit_weights(large, large_gold)):8.2f} s")
    huge, _ = random_votes(1_000_000)
    weights = Weights.uniform(huge)
    print(f"  score, 1,000,000 × 3 × 4    {cpu_seconds(lambda: score(huge, weights), 3):8.2f} s")
    print(f"  score alone, peak memory    {_score_peak_mb():8.0f} MB (process, votes included)")
    print(f"  import pcs_annotator        {_import_cpu():8.3f} s (start of Python subtracted)")


def _score_peak_mb() -> float:
    return float(_in_fresh_process("--peak"))


def _in_fresh_process(flag: str) -> str:
    command = [sys.executable, "-m", "benchmarks.judging", flag]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def print_score_peak() -> None:
    codes = np.random.default_rng(0).integers(-1, 3, (1_000_000, 3, 4), dtype=np.int8)
    ids = [str(row) for row in range(len(codes))]
    votes = Votes(codes=codes, ids=ids, annotators="abc", relations="oprs", labels=["x", "y", "z"])
    score(votes, Weights.uniform(votes))
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3)


def _import_cpu() -> float:
    def child(code: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    return min(child("import pcs_annotator") for _ in range(5)) - min(child("") for _ in range(5))


def mean_auroc(data: Dataset, optimiser: str, seeds: int) -> float:
    """Return the mean AUROC on the rows that were not drawn as gold."""
    votes, codes, gold = data
    values = []
    for seed in range(seeds):
        order = np.random.default_rng(seed).permutation(len(votes))
        learn, test = np.sort(order[:GOLD_ROWS]), np.sort(order[GOLD_ROWS:])
        weights = fit_weights(votes.take(learn), [gold[row] for row in learn], optimiser, seed=seed)
        values.append(auroc(score(votes.take(test), weights), codes[test]))
    return float(np.mean(values))


def show_quality(seeds: int) -> None:
    names = ["uniform", "majority", "lr", "auto"]
    print(f"\nAUROC on held-out rows, {GOLD_ROWS} gold rows drawn at random, mean of {seeds} seeds")
    print(f"  {'':22}" + "".join(f"{name:>14}" for name in names))
    sets = development_sets()
    for title, data in sets.items():
        print(f"  {title:22}" + "".join(f"{mean_auroc(data, name, seeds):14.4f}" for name in names), flush=True)


def main() -> None:
    if "--peak" in sys.argv:
        print_score_peak()
        return
    warnings.simplefilter("ignore", PcsWarning)
    show_costs()
    if DATA.is_dir():
        show_quality(seeds=10)
    else:
        print(f"\nno development data at {DATA}, so no AUROC figures")


if __name__ == "__main__":
    main()
