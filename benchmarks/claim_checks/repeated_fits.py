"""Many fits on random gold rows, kept on disk, because every claim about promises needs thousands of them."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import gettempdir
from typing import NamedTuple, TypeVar

import numpy as np

from benchmarks.development_data import Dataset, babe, load
from pcs_annotator.core.arrays import Codes, Floats, Integers, Mask
from pcs_annotator.core.gold_codes import UNLABELLED
from pcs_annotator.judging.early_stop import learn_frugal, simulate
from pcs_annotator.judging.fit_model import Learning, fit_model
from pcs_annotator.judging.heldout import Judged, Splits
from pcs_annotator.runs.learn import counted_once

FITS = Path(os.environ.get("PCS_CLAIMS_FITS", Path(gettempdir()) / "pcs-claims"))
SIZES = (50, 100, 200, 400)
LOOP = tuple(range(50, 301, 25))
COPIES = 3
WRONG_GOLD = 0.05

Result = TypeVar("Result")


class Fit(NamedTuple):
    """One fit: its gold rows as judged by held-out fits, and all other rows as judged by the model."""

    gold: Judged
    others: Judged


class Cell(NamedTuple):
    """Data, optimiser and gold rows; `condition` names what was done to the data, empty for nothing."""

    data: str
    optimiser: str
    rows: int
    condition: str = ""

    def __str__(self) -> str:
        return ", ".join(filter(None, (self.data, self.optimiser, f"n = {self.rows}", self.condition)))


def data_sets() -> Mapping[str, Callable[[], Dataset]]:
    """Return loaders of the data sets by name; graded ones with the first question to every model."""

    def simulated(name: str) -> Callable[[], Dataset]:
        return lambda: load(f"simulated/{name}.csv.gz")

    def graded(name: str) -> Callable[[], Dataset]:
        def loaded() -> Dataset:
            votes, codes, gold = load(f"recorded/graded_{name}.csv.gz")
            return votes.select(relations=["original"]), codes, gold

        return loaded

    return {
        **{f"simulated {name}": simulated(name) for name in ("sentiment", "gossipcop", "politifact")},
        "babe A": lambda: babe(("flan_ul2", "gpt_3_5", "mistral_7b")),
        "babe B": lambda: babe(("llama_13b", "openchat", "zephyr")),
        **{f"graded {name}": graded(name) for name in ("sentiment", "tweets")},
    }


@cache
def data_under(name: str, condition: str) -> Dataset:
    """Return a data set under a condition."""
    votes, codes, _ = data_sets()[name]()
    known = np.flatnonzero(codes != UNLABELLED)
    votes, codes = votes.take(known), codes[known]
    rng = np.random.default_rng(0)
    match condition:
        case "imbalance":
            rows = _imbalanced(codes, rng)
            votes, codes = votes.take(rows), codes[rows]
        case "ties":  # few cells give few different scores
            votes = votes.select(relations=votes.relations[:1])
        case "copies":
            rows = np.repeat(np.arange(len(votes)), COPIES)
            votes, codes = votes.resampled(rows), codes[rows]
        case "useless votes":
            shuffled = votes.codes.copy()
            for annotator in range(1, len(votes.annotators)):
                shuffled[:, annotator] = shuffled[rng.permutation(len(votes)), annotator]
            votes = replace(votes, codes=shuffled)
    return votes, codes, [votes.labels[code] for code in codes]


def _imbalanced(codes: Codes, rng: np.random.Generator) -> Integers:
    """Return rows of which nine tenths have the most common label."""
    most = int(np.bincount(codes).argmax())
    common, others = (rng.permutation(np.flatnonzero((codes == most) == side)) for side in (True, False))
    return np.sort(np.concatenate([common, others[: len(common) // 9]]))


def fits_of(cell: Cell, repetitions: int) -> list[Fit]:
    """Return fits on random gold rows, one per seed."""
    return _kept(FITS / f"{cell}.pkl", repetitions, lambda seed: one_fit(cell, seed))


def loops_of(cell: Cell, repetitions: int) -> list[list[Fit]]:
    """Return fits on ever more gold rows, as somebody makes them who looks after every 25 labels."""
    return _kept(FITS / f"loop, {cell}.pkl", repetitions, lambda seed: list(_loop(cell, seed)))


def _kept(path: Path, repetitions: int, run: Callable[[int], Result]) -> list[Result]:
    found: list[Result] = pickle.loads(path.read_bytes()) if path.exists() else []
    if len(found) < repetitions:
        found += [run(seed) for seed in range(len(found), repetitions)]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pickle.dumps(found))
    return found[:repetitions]


def _loop(cell: Cell, seed: int) -> Iterator[Fit]:
    for rows in LOOP:
        yield one_fit(cell._replace(rows=rows), seed)


def one_fit(cell: Cell, seed: int) -> Fit:
    """Return the fit on gold rows drawn with a seed."""
    votes, codes, _ = data_under(cell.data, cell.condition)
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(votes))[: cell.rows]
    gold = np.full(len(votes), UNLABELLED, dtype=np.int8)
    gold[rows] = codes[rows]
    if cell.condition == "wrong gold":
        wrong = rows[rng.random(cell.rows) < WRONG_GOLD]
        gold[wrong] = (gold[wrong] + 1) % len(votes.labels)
    distinct: Mask | None = None
    if cell.condition == "copies":
        texts = [str(row // COPIES) for row in range(len(votes))]
        distinct = counted_once(votes, gold, texts).distinct
    how = Learning(optimiser=cell.optimiser, splits=Splits(seed=seed))
    if cell.condition == "stopped early":
        model, strategy, _, trial = learn_frugal(votes, gold, how)
        votes = simulate(votes, strategy)
    else:
        model, trial = fit_model(votes, gold, how, distinct=distinct)
    assert trial is not None
    verdicts = model.judged(votes)
    assert verdicts.probabilities is not None
    sure: Floats = verdicts.probabilities[np.arange(len(votes)), verdicts.best]
    others = (gold == UNLABELLED) & ~votes.silent
    return Fit(trial.judged, Judged(sure, verdicts.best, verdicts.best == codes).take(others))
