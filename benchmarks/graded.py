"""What graded votes are worth, and what varying the question is worth where only labels can be had.

Run it with `python -m benchmarks.graded [--panels]`. It needs the recorded log-probabilities of the development data:
100 gold rows are drawn at random, `auto` learns from them, and the figures are of the other rows, mean of 20 draws.
With `--panels` it also compares `auto` with simpler methods on panels of many kinds.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks.development_data import DATA, Dataset, load
from pcs_annotator import PcsWarning, Votes, score
from pcs_annotator.core.arrays import Codes, Floats, Mask
from pcs_annotator.judging.fit_model import Learning, fit_model
from pcs_annotator.judging.fit_weights import fit_coded
from pcs_annotator.judging.heldout import Splits
from pcs_annotator.judging.metrics.figures import auroc
from pcs_annotator.judging.score import softmax
from pcs_annotator.judging.solver import one_thread
from tests.judging.metrics.alone import ece

SETS = ("sentiment", "tweets", "gossipcop")
LARGE, SMALL, TINY = "qwen2.5-coder-1.5b", "qwen2.5-coder-0.5b", "smollm2-135m"
QWEN = (LARGE, SMALL)
QUESTIONS = ("original", "order-reversed", "order-rotated", "ask-b", "ask-c", "plain-prompt")
GOLD_ROWS, SPLITS, PANEL_SPLITS = 100, 20, 10
DRAWS = 6

ASKED = {
    (LARGE, "sentiment"): (0.835, 0.67),
    (LARGE, "tweets"): (0.82, 0.655),
    (LARGE, "gossipcop"): (0.66, 0.63),
    (SMALL, "sentiment"): (0.81, 0.66),
    (SMALL, "tweets"): (0.735, 0.55),
    (SMALL, "gossipcop"): (0.61, 0.57),
}
"""AUROC and accuracy to reach with one graded question to one model."""
ASKED_HARD = {"sentiment": 0.81, "tweets": 0.79, "gossipcop": 0.60}
ASKED_ABOVE_SELF_CONSISTENCY = 0.015

Prepare = Callable[[Votes, int], Votes]
"""Makes the panel to learn from and to judge, for one draw of gold rows."""


class Figures(NamedTuple):
    """Figures on rows that were not learned from."""

    auroc: float
    accuracy: float
    gap: float
    slope: float
    ece: float


def held_out(votes: Votes, gold: Codes, optimiser: str, seed: int) -> Figures:
    """Return the figures for one random draw of gold rows."""
    order = np.random.default_rng(seed).permutation(len(votes))
    learn, test = np.sort(order[:GOLD_ROWS]), np.sort(order[GOLD_ROWS:])
    how = Learning(optimiser=optimiser, splits=Splits(seed=seed))
    verdicts = fit_model(votes.take(learn), gold[learn], how).model.judged(votes.take(test))
    assert verdicts.probabilities is not None, "there are enough gold rows to calibrate"
    sure, right = verdicts.probabilities.max(axis=1), verdicts.best == gold[test]
    return Figures(
        auroc=auroc(verdicts.scores, gold[test]),
        accuracy=float(right.mean()),
        gap=float(sure.mean() - right.mean()),
        slope=slope_of(sure, right),
        ece=ece(verdicts.probabilities, gold[test]),
    )


def slope_of(confidence: Floats, right: Mask) -> float:
    """Return the slope of correctness on the log-odds of confidence; 1 is perfect, less is too sure."""
    log_odds = np.log(confidence / (1 - confidence))[:, np.newaxis]
    return float(LogisticRegression(C=np.inf).fit(log_odds, right).coef_[0, 0])


def mean_figures(data: Dataset, prepare: Prepare, optimiser: str, splits: int = SPLITS) -> Figures:
    """Return the mean over random draws of gold rows."""
    votes, gold, _ = data
    return Figures(
        *np.mean([held_out(prepare(votes, seed), gold, optimiser, seed) for seed in range(splits)], axis=0).tolist()
    )


def panel(annotators: Sequence[str], relations: Sequence[str] | None = None, *, hard: Sequence[str] = ()) -> Prepare:
    """Return how to take some models and relations that the set has; `hard` models give labels only."""

    def prepare(votes: Votes, seed: int) -> Votes:
        names = [name for name in relations or votes.relations if name in votes.relations]
        chosen = votes.select(annotators=annotators, relations=names)
        assert chosen.grades is not None, "the recorded votes are graded"
        labels_only = np.isin(annotators, hard)[:, np.newaxis, np.newaxis, np.newaxis]
        return replace(chosen, grades=np.where(labels_only, np.float32(np.nan), chosen.grades))

    return prepare


def self_consistency(annotators: Sequence[str]) -> Prepare:
    """Return how to draw answers to the original question from the recorded probabilities, at temperature 1."""

    def prepare(votes: Votes, seed: int) -> Votes:
        asked = votes.select(annotators=annotators, relations=["original"])
        assert asked.grades is not None, "the recorded votes are graded"
        upto = np.cumsum(asked.grades / asked.grades.sum(axis=-1, keepdims=True), axis=-1, dtype=np.float64)
        chance = np.random.default_rng(seed).random((*asked.codes.shape[:3], DRAWS, 1))
        codes = np.minimum((upto < chance).sum(axis=-1), len(votes.labels) - 1).astype(np.int8)
        return replace(asked, codes=codes, grades=None)

    return prepare


def show_graded(sets: dict[str, Dataset]) -> None:
    print(f"one graded question to one model, auto, {GOLD_ROWS} gold rows, mean of {SPLITS} draws; asked → measured")
    print(f"  {'':32}{'AUROC':>16}{'accuracy':>16}{'conf. − acc.':>14}{'slope':>8}{'ECE':>8}")
    slopes = []
    for (model, name), (asked_auroc, asked_accuracy) in ASKED.items():
        found = mean_figures(sets[name], panel([model], ["original"]), "auto")
        slopes.append(found.slope)
        print(
            f"  {model:22}{name:10}{asked_auroc:>8.3f} → {found.auroc:.3f}{asked_accuracy:>8.3f} → {found.accuracy:.3f}"
            f"{found.gap:>+14.3f}{found.slope:>8.2f}{found.ece:>8.3f}",
            flush=True,
        )
    print(f"  mean slope, asked .8 to 1.25 → {np.mean(slopes):.2f}; conf. − acc., asked at most ±.03")


def show_hard(sets: dict[str, Dataset]) -> None:
    print(f"\nlabels only, {' and '.join(QWEN)}, AUROC, mean of {SPLITS} draws; asked → measured")
    print(f"  {'':12}{'question varied':>18}{'self-consistency':>30}{'gain':>8}")
    gains = []
    for name, asked in ASKED_HARD.items():
        varied = mean_figures(sets[name], panel(QWEN, QUESTIONS, hard=QWEN), "auto").auroc
        drawn = {one: mean_figures(sets[name], self_consistency(QWEN), one).auroc for one in ("uniform", "auto")}
        best = max(drawn, key=drawn.__getitem__)
        gains.append(varied - drawn[best])
        rival = f"{drawn[best]:.3f} ({best}, {DRAWS} draws)"
        print(f"  {name:12}{asked:>10.3f} → {varied:.3f}{rival:>30}{gains[-1]:>+8.3f}", flush=True)
    print(f"  mean gain, asked at least {ASKED_ABOVE_SELF_CONSISTENCY:.3f} → {np.mean(gains):.3f}")


def show_speed(rows: int = 100_000) -> None:
    rng = np.random.default_rng(0)
    grades = softmax(3 * rng.normal(size=(rows, 3, 1, 1, 3))).astype(np.float32)
    votes = Votes(
        codes=grades.argmax(axis=-1),
        ids=[str(row) for row in range(rows)],
        annotators=["a", "b", "c"],
        relations=["original"],
        labels=["negative", "neutral", "positive"],
        grades=grades,
    )
    gold = votes.codes[:GOLD_ROWS, 0, 0, 0]
    print(f"\nscoring {rows:,} rows × 3 models × 3 labels, graded; asked at most 1 s")
    for name in ("auto", "lr", "uniform"):
        weights = fit_coded(votes.take(slice(GOLD_ROWS)), gold, name)
        start = time.perf_counter()
        score(votes, weights)
        print(f"  {name:10}{time.perf_counter() - start:8.3f} s")


PANELS: dict[str, Prepare] = {
    "one model": panel([LARGE], ["original"]),
    "two models": panel(QWEN, ["original"]),
    "three models": panel([*QWEN, TINY], ["original"]),
    "one, original and order": panel([LARGE], ["original", "order-reversed"]),
    "two, original and order": panel(QWEN, ["original", "order-reversed"]),
    "three, original and order": panel([*QWEN, TINY], ["original", "order-reversed"]),
    "two, all relations": panel(QWEN),
    "three, all relations": panel([*QWEN, TINY]),
    "large hard, small graded": panel(QWEN, ["original", "order-reversed"], hard=[LARGE]),
    "large graded, small hard": panel(QWEN, ["original", "order-reversed"], hard=[SMALL]),
    "two, hard, question varied": panel(QWEN, QUESTIONS, hard=QWEN),
}


def show_panels(sets: dict[str, Dataset]) -> None:
    print(f"\nauto against simpler methods, AUROC, mean of {PANEL_SPLITS} draws")
    for title, prepare in PANELS.items():
        names = ("lr", "uniform")
        for name, data in sets.items():
            found = {one: mean_figures(data, prepare, one, PANEL_SPLITS).auroc for one in (*names, "auto")}
            behind = found["auto"] - max(found[one] for one in names)
            cells = "  ".join(f"{one} {value:.3f}" for one, value in found.items())
            print(f"  {title:28}{name:11}{cells}  {behind:+.4f}", flush=True)


def main() -> None:
    warnings.simplefilter("ignore", PcsWarning)
    show_speed()
    if not DATA.is_dir():
        print(f"\nno development data at {DATA}, so no other figures")
        return
    sets = {name: load(f"recorded/graded_{name}.csv.gz") for name in SETS}
    with one_thread():
        show_graded(sets)
        show_hard(sets)
        if "--panels" in sys.argv:
            show_panels(sets)


if __name__ == "__main__":
    main()
