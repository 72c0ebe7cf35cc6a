"""Promises about whole tables: how many rows must people label, and is the promise kept?

For every public task, panel of four models and draw of gold rows: the share of rows that people label so that at most
5 or 10 % of all labels are wrong, with 90 % certainty, and whether more are. The rival is PAC labels, from their
description in the paper: majority labels, the share of models that disagree as uncertainty, and a bound by betting.

Run it with `python -m benchmarks.finish [DRAWS [GOLD_ROWS]]`; the results are in `benchmarks/results/finish.md`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from benchmarks.development_data import DATA
from benchmarks.public_tasks import PANELS, panel_of, read_task
from benchmarks.texts import votes_of
from pcs_annotator.base.errors import PcsWarning
from pcs_annotator.core.arrays import Codes, Floats, Mask
from pcs_annotator.core.gold import UNLABELLED
from pcs_annotator.core.votes import Votes
from pcs_annotator.judging.promising.whole_table import share_rows
from pcs_annotator.runs.learn import expected_labels
from pcs_annotator.runs.settings import LearnSettings

DELTA = 0.1
HALVINGS = 20


class Shared(NamedTuple):
    """The share of rows that people label, and whether more errors are left than promised."""

    people: float
    broken: bool


def ours(probabilities: Floats, truth: Codes, sample: Mask, max_error: float) -> Shared:
    best, sure = probabilities.argmax(axis=1), probabilities.max(axis=1)
    found = share_rows(sure, sample, best != truth, max_error, DELTA)
    return _shared(found.by_machine, best != truth, sample, max_error)


def pac_labels(votes: Votes, truth: Codes, sample: Mask, max_error: float, rng: np.random.Generator) -> Shared:
    said = votes.codes[:, :, 0, 0]
    shares = np.stack([(said == code).mean(axis=1) for code in range(len(votes.labels))], axis=1)
    wrong, doubt = shares.argmax(axis=1) != truth, 1 - shares.max(axis=1)
    drawn = rng.permutation(np.flatnonzero(sample))
    by_machine = np.arange(len(truth))
    for level in np.unique(doubt).tolist():
        if betting_bound((wrong[drawn] & (doubt[drawn] <= level)).astype(np.float64)) > max_error:
            by_machine = np.flatnonzero(doubt < level)
            break
    return _shared(by_machine, wrong, sample, max_error)


def betting_bound(losses: Floats) -> float:
    """Return an upper bound of the mean of losses between 0 and 1, by betting (Waudby-Smith and Ramdas)."""
    number = np.arange(1, len(losses) + 1)
    means = (0.5 + np.cumsum(losses)) / (number + 1)
    spread = (0.25 + np.cumsum((losses - means) ** 2)) / (number + 1)
    spread = np.append(0.25, spread[:-1])
    bets = np.minimum(np.sqrt(2 * np.log(1 / DELTA) / (len(losses) * spread)), 0.75)
    low, high = float(losses.mean()), 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        wealth = np.cumsum(np.log1p(bets * (middle - losses)))
        low, high = (low, middle) if wealth.max() > np.log(1 / DELTA) else (middle, high)
    return high


def _shared(by_machine: np.ndarray, wrong: Mask, sample: Mask, max_error: float) -> Shared:
    left = np.zeros(len(wrong), dtype=np.bool_)
    left[by_machine] = True
    left &= ~sample  # people have labelled these
    return Shared(1 - float(left.mean()), bool((wrong & left).sum() > max_error * len(wrong)))


def tables() -> Iterator[tuple[str, Votes, Codes]]:
    for path in sorted((DATA / "textclass").glob("*.csv.gz")):
        rows = read_task(path)
        for name, wanted in PANELS.items():
            panel = panel_of(list(rows[0]), wanted)
            if len(panel) == 4 and len(rows) >= 600:
                yield f"{path.name.removesuffix('.csv.gz')} {name}", *votes_of(rows, panel)


def main(draws: int = 10, gold_rows: int = 200) -> None:
    print(f"{'table':26}{'rows':>6}{'labels':>7}{'limit':>7}{'ours':>8}{'broken':>8}{'PAC':>8}{'broken':>8}")
    every: list[tuple[Shared, Shared]] = []
    for name, votes, truth in tables():
        found: dict[float, list[tuple[Shared, Shared]]] = {0.05: [], 0.1: []}
        for seed in range(draws):
            rng = np.random.default_rng(seed)
            sample = np.zeros(len(truth), dtype=np.bool_)
            sample[rng.permutation(len(truth))[:gold_rows]] = True
            gold = np.where(sample, truth, UNLABELLED).astype(truth.dtype)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PcsWarning)
                known = expected_labels(votes, gold, LearnSettings(), votes.texts or ())
            assert known is not None
            for limit, pairs in found.items():
                mine = ours(known.held_out, truth, sample, limit)
                pairs.append((mine, pac_labels(votes, truth, sample, limit, rng)))
        for limit, pairs in found.items():
            every += pairs
            figures = [f"{np.mean([pair[side][part] for pair in pairs]):8.1%}" for side in (0, 1) for part in (0, 1)]
            print(f"{name:26}{len(truth):6}{len(votes.labels):7}{limit:7.0%}{''.join(figures)}", flush=True)
    people, rival = (np.mean([pair[side].people for pair in every]) for side in (0, 1))
    print(f"all: people label {people:.1%}, with PAC labels {rival:.1%}: {1 - people / rival:.0%} fewer; ", end="")
    print(f"broken in {np.mean([pair[0].broken for pair in every]):.1%} of {len(every)}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
