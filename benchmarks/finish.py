"""Promises about whole tables: how many rows must people label, and is the promise kept?

For every table and draw of gold rows: the share of rows that people label so that at most 5 or 10 % of all labels are
wrong, with 90 % certainty, and whether more are. The rival is PAC labels, from their description in the paper: majority
labels, the share of models that disagree as uncertainty, and a bound by betting.

Run it with `python -m benchmarks.finish public|development|scale [DRAWS [GOLD_ROWS]]`: public tasks with four models
each, BABE and the simulated sets, or simulated scales of five, where the mean distance is promised, or for comparison
wrong labels; the results are in `benchmarks/results/finish.md`.
"""

import sys
import warnings
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from benchmarks.development_data import DATA, babe, load
from benchmarks.public_tasks import PANELS, panel_of, read_task
from benchmarks.scales import STEPS, WORLDS, scale_world
from benchmarks.texts import votes_of
from pcs_annotator import PcsWarning, Votes
from pcs_annotator.core.arrays import Codes, Floats, Mask
from pcs_annotator.core.gold_codes import UNLABELLED
from pcs_annotator.judging.label_shape import ONE, LabelShape
from pcs_annotator.judging.promise.whole_table import share_rows
from pcs_annotator.runs.settings import LearnSettings
from pcs_annotator.runs.sharing import expected_labels

DELTA, OURS = 0.1, 0.05  # as pcs finish does, half of it: confidences are learned from the same gold rows
HALVINGS, SCALE_ROWS = 20, 1500


class Shared(NamedTuple):
    """The share of rows that people label, and whether more errors are left than promised."""

    people: float
    broken: bool


class Table(NamedTuple):
    """Answers to all rows, and what is true."""

    name: str
    votes: Votes
    truth: Codes
    settings: LearnSettings = LearnSettings(resamples=0)


def ours(probabilities: Floats, truth: Codes, sample: Mask, max_error: float) -> Shared:
    best, sure = probabilities.argmax(axis=1), probabilities.max(axis=1)
    found = share_rows(sure, sample, best != truth, max_error, OURS)
    return _shared(found.by_machine, best != truth, sample, max_error)


def pac_labels(votes: Votes, truth: Codes, sample: Mask, max_error: float, rng: np.random.Generator) -> Shared:
    said = votes.codes.reshape(len(votes), -1)
    shares = np.stack([(said == code).sum(axis=1) for code in range(len(votes.labels))], axis=1).astype(np.float64)
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1)
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


def public() -> Iterator[Table]:
    for path in sorted((DATA / "textclass").glob("*.csv.gz")):
        rows = read_task(path)
        for name, wanted in PANELS.items():
            panel = panel_of(list(rows[0]), wanted)
            if len(panel) == 4 and len(rows) >= 600:
                yield Table(f"{path.name.removesuffix('.csv.gz')} {name}", *votes_of(rows, panel))


def development() -> Iterator[Table]:
    yield Table("babe", *babe(("flan_ul2", "gpt_3_5", "mistral_7b", "zephyr"))[:2])
    for name in ("sentiment", "gossipcop", "politifact"):
        yield Table(f"simulated {name}", *load(f"simulated/{name}.csv.gz")[:2])


def probabilities_of(votes: Votes, truth: Codes, sample: Mask, settings: LearnSettings) -> Floats:
    gold = np.where(sample, truth, UNLABELLED).astype(truth.dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PcsWarning)
        known = expected_labels(votes, gold, settings, votes.texts or [*map(str, votes.ids)], ONE)
    assert known is not None
    return known.held_out


def one_draw(table: Table, seed: int, gold_rows: int) -> dict[float, list[Shared]]:
    rng = np.random.default_rng(seed)
    votes, truth = table.votes, table.truth
    sample = np.zeros(len(truth), dtype=np.bool_)
    sample[rng.permutation(len(truth))[:gold_rows]] = True
    known = probabilities_of(votes, truth, sample, table.settings)
    limits = (0.05, 0.1)
    found = {
        limit: [ours(known, truth, sample, limit), pac_labels(votes, truth, sample, limit, rng)] for limit in limits
    }
    return found


def scale_draw(world: str, seed: int, gold_rows: int) -> dict[float, list[Shared]]:
    """Return for some limits who labels what if the mean distance is bounded, and if wrong labels are."""
    votes, truth = scale_world(WORLDS[world], np.random.default_rng(seed))
    votes, truth = votes.take(np.arange(SCALE_ROWS)), truth[:SCALE_ROWS]
    sample = np.arange(SCALE_ROWS) < gold_rows  # rows are alike
    known = probabilities_of(votes, truth, sample, LearnSettings(optimiser="lr", resamples=0, text=False))
    shape = LabelShape.of("scale", STEPS)
    best, apart = shape.choose(known, votes.labels), shape.apart(votes.labels) / (len(STEPS) - 1)
    off, sure = apart[best, truth], 1 - (known * apart[best]).sum(axis=1)
    found = {}
    for limit in (0.03, 0.05):
        near, strict = share_rows(sure, sample, off, limit, OURS), ours(known, truth, sample, limit)
        left = np.isin(np.arange(SCALE_ROWS), near.by_machine) & ~sample
        broken = bool((off * left).sum() > limit * SCALE_ROWS)
        found[limit] = [Shared(1 - float(left.mean()), broken), strict]
    return found


def scales(draws: int, gold_rows: int) -> None:
    print(f"{SCALE_ROWS} rows, {gold_rows} gold rows: people label, broken; the same for wrong labels")
    for world in WORLDS:
        found = [scale_draw(world, seed, gold_rows) for seed in range(draws)]
        for limit in found[0]:
            sides = [*zip(*(one[limit] for one in found), strict=True)]
            figures = "".join(f"{np.mean([one[part] for one in side]):8.1%}" for side in sides for part in (0, 1))
            print(f"{world:8}{limit:7.0%}{figures}", flush=True)


def main(which: str = "development", draws: int = 10, gold_rows: int = 200) -> None:
    if which == "scale":
        scales(int(draws), int(gold_rows))
        return
    print(f"{'table':26}{'rows':>6}{'labels':>7}{'limit':>7}{'ours':>8}{'broken':>8}{'PAC':>8}{'broken':>8}")
    every: list[list[Shared]] = []
    for table in {"public": public, "development": development}[which]():
        found = [one_draw(table, seed, int(gold_rows)) for seed in range(int(draws))]
        for limit in found[0]:
            lines = [one[limit] for one in found]
            every += lines
            sides = [*zip(*lines, strict=True)]
            figures = "".join(f"{np.mean([one[part] for one in side]):8.1%}" for side in sides for part in (0, 1))
            rows, labels = len(table.truth), len(table.votes.labels)
            print(f"{table.name:26}{rows:6}{labels:7}{limit:7.0%}{figures}", flush=True)
    people, rival = (np.mean([line[side].people for line in every]) for side in (0, 1))
    print(f"all: people label {people:.1%}, with PAC labels {rival:.1%}: {1 - people / rival:.0%} fewer; ", end="")
    print(f"broken in {np.mean([line[0].broken for line in every]):.1%} of {len(every)}")


if __name__ == "__main__":
    main(*sys.argv[1:])  # type: ignore[arg-type]
