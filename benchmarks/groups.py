"""A promise for each group of texts, in simulated runs: is it kept for each, and what becomes of a hard group?

Three models answer four versions of every text. The third group has twice as many errors: they are as sure as right
answers (hidden), or models contradict each other on them (visible). 1,500 texts have
gold, 6,000 others show what is true.

    python -m benchmarks.groups [REPETITIONS] [OPTIMISER]
"""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from pcs_annotator import Votes
from pcs_annotator.core.arrays import Codes
from pcs_annotator.core.gold_codes import UNLABELLED
from pcs_annotator.judging.fit_model import Learning, fit_model
from pcs_annotator.judging.promise.promise import Promise
from pcs_annotator.judging.solver import one_thread

GOLD, OTHERS = 1_500, 6_000
LIMIT = 0.06
GROUPS = ("en", "de", "hard")
LABELS = ("a", "b", "c")
PANEL = ("large", "middle", "small"), ("original", "frame", "voice", "synonym")


class World(NamedTuple):
    """How groups differ."""

    shares: tuple[float, float, float]  # of texts
    accuracy: tuple[float, float, float]  # of a model, by group
    trapped: tuple[float, float, float]  # share of texts whose wrong label is answered like a right one


WORLDS = {
    "hidden": World((1 / 3, 1 / 3, 1 / 3), (0.85, 0.85, 0.85), (0.025, 0.025, 0.07)),
    "hidden, few": World((0.6, 0.3, 0.1), (0.85, 0.85, 0.85), (0.025, 0.025, 0.07)),
    "visible": World((1 / 3, 1 / 3, 1 / 3), (0.8, 0.8, 0.73), (0.01, 0.01, 0.02)),
}


def simulated(world: World, rng: np.random.Generator) -> tuple[Votes, Codes]:
    """Return votes with groups, and the truth."""
    rows = GOLD + OTHERS
    group, truth = rng.choice(3, rows, p=world.shares), rng.integers(3, size=rows).astype(np.int8)
    wrong = ((truth + rng.integers(1, 3, rows)) % 3).astype(np.int8)
    right = rng.random((rows, *map(len, PANEL), 1)) < np.array(world.accuracy)[group, None, None, None]
    right ^= (rng.random(rows) < np.array(world.trapped)[group])[:, None, None, None]
    codes = np.where(right, truth[:, None, None, None], wrong[:, None, None, None]).astype(np.int8)
    ids, groups = [f"{row:05}" for row in range(rows)], [GROUPS[one] for one in group]
    return Votes(codes=codes, ids=ids, annotators=PANEL[0], relations=PANEL[1], labels=LABELS, groups=groups), truth


def one_run(world: World, optimiser: str, seed: int) -> dict[str, float]:
    """Return by group, for both promises, whether rows are accepted, their share, and whether the promise is broken."""
    votes, truth = simulated(world, np.random.default_rng(seed))
    gold = np.where(np.arange(len(truth)) < GOLD, truth, UNLABELLED).astype(np.int8)
    others, true, groups = votes.take(slice(GOLD, None)), truth[GOLD:], np.array(votes.groups)[GOLD:]
    found = {}
    for name, promise in {"by": Promise(max_error=LIMIT, by="language"), "all": Promise(max_error=LIMIT)}.items():
        with one_thread():
            model = fit_model(votes, gold, Learning(optimiser=optimiser, promise=promise)).model
        judged = model.judged(replace(others, text_log_probs=None))
        assert judged.accepted is not None
        for group in GROUPS:
            accepted, wrong = judged.accepted[groups == group], (judged.best != true)[groups == group]
            found[f"{name} {group} made"] = float(accepted.any())
            found[f"{name} {group} share"] = float(accepted.mean())
            found[f"{name} {group} broken"] = float(accepted.any() and wrong[accepted].mean() > LIMIT)
            found[f"{group} wrong"] = float(wrong.mean())
        found[f"{name} broken"] = max(found[f"{name} {group} broken"] for group in GROUPS)
    found["split"] = float(not found["by hard made"] and found["by en made"] and found["by de made"])
    return found


def main() -> None:
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    optimiser = sys.argv[2] if len(sys.argv) > 2 else "auto"
    print("| world | group | labels wrong | accepted by group: runs / rows / broken | common promise: rows / broken |")
    print("|---|---|---|---|---|")
    for name, world in WORLDS.items():
        with ProcessPoolExecutor(2) as pool:
            runs = list(pool.map(partial(one_run, world, optimiser), range(repetitions)))
        mean = {key: 100 * float(np.mean([one[key] for one in runs])) for key in runs[0]}
        for group in GROUPS:
            own = [mean[f"by {group} {what}"] for what in ("made", "share", "broken")]
            common = [mean[f"all {group} {what}"] for what in ("share", "broken")]
            figures = (" / ".join(f"{one:.3g}" for one in part) for part in (own, common))
            print(f"| {name} | {group} | {mean[f'{group} wrong']:.3g} % | {' % | '.join(figures)} % |")
        kept, together, split = 100 - mean["by broken"], 100 - mean["all broken"], mean["split"]
        print(
            f"| {name} | all kept | | {kept:.3g} % of runs; only hard for review in {split:.3g} % | {together:.3g} % |"
        )


if __name__ == "__main__":
    main()
