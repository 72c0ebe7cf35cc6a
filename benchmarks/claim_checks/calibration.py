"""Whether confidence is as often right as it says, on rows that nothing was learned from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from benchmarks.claim_checks.claim import Claim
from benchmarks.development_data import babe, load
from benchmarks.graded import LARGE, SMALL, panel, slope_of
from pcs_annotator import Votes
from pcs_annotator.core.arrays import Codes, Floats, Integers
from pcs_annotator.judging.fit_model import Learning, fit_model
from pcs_annotator.judging.heldout import Splits

ROWS, FEW_ROWS = 100, 20
SURE = 0.9
OPTIMISERS = ("lr", "auto")
MOST_OFF, MOST_OFF_IF_SURE = 0.03, 0.02
SLOPES = (0.8, 1.25)
LEAST_COVERED = 0.95
TRIPLES = (("flan_ul2", "gpt_3_5", "mistral_7b"), ("llama_13b", "openchat", "zephyr"))

Cell = tuple[Votes, Codes]


class Measured(NamedTuple):
    """One draw of gold rows, measured on all others.

    Attributes:
        gap: Mean confidence less accuracy.
        slope: Slope of right on the log-odds of confidence; nan if all labels are right, or all confidences the same.
        sure: Rows with a confidence above .9.
        sure_gap: Sum of confidence less right labels over these.
        within: Whether the gap is within the stated ±; True when none is stated.
    """

    gap: float
    slope: float
    sure: int
    sure_gap: float
    within: bool


def check(repetitions: int) -> Iterator[Claim]:
    """Yield the claims about confidence from 100 and from 20 gold rows."""
    for name, cell in _cells().items():
        for optimiser in OPTIMISERS:
            where = f"{name}, {optimiser}, {ROWS} gold rows"
            found = _repeated(cell, optimiser, ROWS, repetitions)
            gap, slope = found[:, 0].mean(), np.nanmean(found[:, 1])
            yield Claim(
                "mean confidence near accuracy", where, "± 3 points", f"{100 * gap:+.1f}", bool(abs(gap) <= MOST_OFF)
            )
            kept = bool(SLOPES[0] <= slope <= SLOPES[1])
            yield Claim("slope of right on confidence", where, ".8 to 1.25", f"{slope:.2f}", kept)
            yield from _few(cell, optimiser, repetitions, f"{name}, {optimiser}, {FEW_ROWS} gold rows")


def _few(cell: Cell, optimiser: str, repetitions: int, where: str) -> Iterator[Claim]:
    found = _repeated(cell, optimiser, FEW_ROWS, repetitions)
    sure = found[:, 2].sum()
    gap = found[:, 3].sum() / sure if sure else 0.0
    said = f"{100 * gap:+.1f}" if sure else "no such row"
    yield Claim("confidence above .9 not too sure", where, "≤ 2 points", said, bool(gap <= MOST_OFF_IF_SURE))
    within = found[:, 4].mean()
    yield Claim(
        "mean confidence within the stated ±", where, "≥ 95 %", f"{100 * within:.1f} %", bool(within >= LEAST_COVERED)
    )


def _cells() -> dict[str, Cell]:
    names = ("sentiment", "gossipcop", "politifact")
    cells = {f"simulated {name}": load(f"simulated/{name}.csv.gz")[:2] for name in names}
    cells |= {f"babe, {models[0]} and two more": babe(models)[:2] for models in TRIPLES}
    for name in ("sentiment", "tweets", "gossipcop"):
        votes, gold, _ = load(f"recorded/graded_{name}.csv.gz")
        for model in (LARGE, SMALL):
            cells[f"graded {name}, {model}"] = (panel([model], ["original"])(votes, 0), gold)
    return cells


def _repeated(cell: Cell, optimiser: str, rows: int, repetitions: int) -> Floats:
    """Return what was measured, `[repetition, figure]`; draws with gold of one label have no confidence to measure."""
    votes, gold = cell
    found = []
    for seed in range(repetitions):
        order = np.random.default_rng(seed).permutation(len(votes))
        learn, test = np.sort(order[:rows]), np.sort(order[rows:])
        if len(np.unique(gold[learn])) > 1:
            found.append(_measured(votes, gold, learn, test, Learning(optimiser=optimiser, splits=Splits(seed=seed))))
    return np.array(found, dtype=np.float64)


def _measured(votes: Votes, gold: Codes, learn: Integers, test: Integers, how: Learning) -> Measured:
    model = fit_model(votes.take(learn), gold[learn], how).model
    judged = model.judged(votes.take(test))
    assert judged.probabilities is not None
    confidence, right = judged.probabilities.max(axis=1), judged.best == gold[test]
    gap, sure = float(confidence.mean() - right.mean()), confidence > SURE
    defined = 0 < right.sum() < len(right) and confidence.std() > 0
    return Measured(
        gap=gap,
        slope=slope_of(np.minimum(confidence, 1 - 1e-9), right) if defined else np.nan,
        sure=int(sure.sum()),
        sure_gap=float(confidence[sure].sum() - right[sure].sum()),
        within=model.margin is None or abs(gap) <= model.margin,
    )
