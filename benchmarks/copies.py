"""Claims about rows in tables with many copies: are they kept, however often some texts stand in the table?

Gold rows are drawn as `to_label.csv`, `pcs gold` and a review draw them: along a random order of rows, each text shown
once. For comparison, every text is drawn with the same probability, and each counts as one row, which is what the
project did before. The claims: at most 5 % of all rows of a finished table are wrong (`pcs finish`), at most 10 % of
the accepted rows are wrong (the promise), and the 95 % interval of a label's share of rows.

Run it with `python -m benchmarks.copies [DRAWS]`; the results are in `benchmarks/results/copies.md`.
"""

import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from pcs_annotator import Item
from pcs_annotator.core.arrays import Floats, Integers, Mask
from pcs_annotator.estimating.corrected import LabelRegression, Study
from pcs_annotator.estimating.sampling import Sample
from pcs_annotator.judging.heldout import Judged
from pcs_annotator.judging.promise.promise import Promise, next_level
from pcs_annotator.judging.promise.thresholds import EVERY_LABEL, find_thresholds
from pcs_annotator.judging.promise.whole_table import once_if_right, share_rows
from pcs_annotator.runs.draw_registry import walk
from pcs_annotator.studies.estimating.answers import figure_of

ROWS, TEXTS = 10_000, 300
WHOLE, ACCEPTED = 0.05, Promise(max_error=0.1)


class World(NamedTuple):
    """A table: for every row its text, the machine's probability of the second label, and the true label."""

    text: Integers
    chance: Floats
    truth: Integers

    @property
    def confidence(self) -> Floats:
        """How sure the machine is of its label of every row."""
        return np.maximum(self.chance, 1 - self.chance)

    @property
    def wrong(self) -> Mask:
        """Which rows have a wrong label."""
        return np.asarray((self.chance > 0.5) != self.truth)


def world_of(copies: Integers, seed: int, confidence: float | None = None) -> World:
    """Return texts with so many copies each; the first is wrong with this confidence, if it is given."""
    rng = np.random.default_rng(seed)
    chance = np.where(rng.random(len(copies)) < 0.4, rng.beta(12, 1, len(copies)), rng.beta(1, 12, len(copies)))
    truth = (rng.random(len(copies)) < chance).astype(np.intp)
    if confidence is not None:
        chance[0], truth[0] = confidence, 0
    text = np.repeat(np.arange(len(copies)), copies)
    return World(text, chance[text], truth[text])


def one_wrong(seed: int) -> World:
    """A tenth of the rows has one text, which is wrong, and the machine is sure of it."""
    return world_of(np.array([ROWS // 10, *[1] * (ROWS - ROWS // 10)]), seed, 0.95)


def zipf(seed: int) -> World:
    """The text of rank r stands 1/r as often as the first; whether the first is wrong is chance, as of all others."""
    copies = np.maximum(ROWS / 9 / np.arange(1, ROWS), 1).astype(np.intp)
    return world_of(copies[: int((copies.cumsum() <= ROWS).sum())], seed)


def no_copies(seed: int) -> World:
    """Every text stands once."""
    return world_of(np.ones(ROWS, dtype=np.intp), seed)


WORLDS: dict[str, Callable[[int], World]] = {"no copies": no_copies, "one wrong, 1,000 times": one_wrong, "Zipf": zipf}


def by_rows(world: World, seed: int, texts: int) -> Mask:
    """Return the rows that the random order reaches until so many texts have been shown."""
    items = [Item(id=f"{seed}-{row}", text=f"text {text}") for row, text in enumerate(world.text.tolist())]
    none = np.zeros(len(items), dtype=np.bool_)
    drawn = {one.id for one in walk(items, [None] * len(items), none, texts)}
    return np.array([item.id in drawn for item in items])


def by_texts(world: World, seed: int, texts: int) -> Mask:
    """Return the first row of texts that were drawn with the same probability."""
    first = np.unique(world.text, return_index=True)[1]
    return np.isin(np.arange(len(world.text)), np.random.default_rng(seed).choice(first, texts, replace=False))


class Claims(NamedTuple):
    """Which claims of a draw were broken, and what they were worth."""

    finish: bool
    promise: bool
    share: bool
    by_people: float  # the share of texts that people label for a finished table
    accepted: float  # the share of rows that the promise accepts
    width: float  # of the interval


def claims_of(world: World, sample: Mask, *, rows: bool) -> Claims:
    """Return what a sample of rows leads to; otherwise each of its rows stands for a text, as if it were any row."""
    counted = once_if_right(world.text, sample, world.wrong) if rows else sample
    shared = share_rows(world.confidence, counted, world.wrong, WHOLE, next_level(0.1, 0.0))
    machine = np.zeros(len(world.text), dtype=np.bool_)
    machine[shared.by_machine] = True
    machine &= ~np.isin(world.text, world.text[sample])  # people labelled these
    errors = world.wrong[machine].sum()
    judged = Judged(world.confidence, np.zeros(len(sample), dtype=np.intp), ~world.wrong).take(counted)
    least = find_thresholds(judged, ["any"], ACCEPTED).get(EVERY_LABEL, np.inf)
    accepted = (world.confidence >= least) & ~np.isin(world.text, world.text[sample])
    expected = np.column_stack([1 - world.chance, world.chance])
    study = Study(
        expected,
        expected[sample],
        Sample.simple(np.flatnonzero(sample), world.truth[sample].astype(np.int8), len(sample)),
        whole=True,
    )
    mean = LabelRegression(explanatory=[np.ones((1, 1, 1))], outcome=np.array([[[0.0], [1.0]]]))
    interval = figure_of(study.corrected(mean)).interval
    assert interval is not None
    return Claims(
        bool(errors > WHOLE * len(world.text)),
        bool(world.wrong[accepted].mean() > ACCEPTED.max_error) if accepted.any() else False,
        not interval.low <= world.truth.mean() <= interval.high,
        len(np.unique(world.text[~machine])) / len(np.unique(world.text)),
        float(accepted.mean()),
        interval.high - interval.low,
    )


def results(draws: int, texts: int = TEXTS) -> Iterator[tuple[str, str, Floats]]:
    """Yield world, way of drawing, and the mean of every part of its claims."""
    for name, world_at in WORLDS.items():
        worlds = [world_at(seed) for seed in range(draws)]
        for way, draw in (("rows", by_rows), ("texts, as before", by_texts)):
            found = [
                claims_of(world, draw(world, seed, texts), rows=draw is by_rows) for seed, world in enumerate(worlds)
            ]
            yield name, way, np.array(found, dtype=np.float64).mean(axis=0)


def main(draws: int = 200) -> None:
    """Print a table of results."""
    print(
        "| table | drawn by | finish broken | promise broken | interval misses | texts by people | accepted | width |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name, way, mean in results(draws):
        print(f"| {name} | {way} | {' | '.join(f'{100 * value:.1f} %' for value in mean)} |", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
