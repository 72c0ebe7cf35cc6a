"""Whether 95 % intervals cover: figures of `cross_validate` against rows that it did not see.

The target is the figure of the procedure: the mean over draws of gold rows of what the fit shows on all other rows.
What this very fit shows there is given beside it, and the mean width against an interval that knows the true spread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from benchmarks.claim_checks.claim import Claim
from benchmarks.development_data import Dataset, babe, load
from pcs_annotator import Votes, score
from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.core.weights import Interval
from pcs_annotator.judging.evaluate.harness import REFERENCES, cross_validate
from pcs_annotator.judging.evaluate.methods import ready
from pcs_annotator.judging.evaluate.scored import MethodFigures
from pcs_annotator.judging.fit_model import Learning, fit_model, labelled_rows
from pcs_annotator.judging.fit_weights import fit_optimiser
from pcs_annotator.judging.heldout import Splits
from pcs_annotator.judging.metrics.figures import auroc, auroc_confidence
from tests.judging.metrics.alone import accuracy

WANTED = 0.92
SETS: Mapping[str, Callable[[], Dataset]] = {
    "babe flan_ul2 + gpt_3_5 + mistral_7b": lambda: babe(("flan_ul2", "gpt_3_5", "mistral_7b")),
    "babe llama_13b + openchat + zephyr": lambda: babe(("llama_13b", "openchat", "zephyr")),
    "simulated sentiment": lambda: load("simulated/sentiment.csv.gz"),
    "simulated politifact": lambda: load("simulated/politifact.csv.gz"),
    "graded tweets": lambda: load("recorded/graded_tweets.csv.gz"),
}
CELLS = (
    ("simulated sentiment", (60, 250)),
    ("babe flan_ul2 + gpt_3_5 + mistral_7b", (60, 250)),
    ("graded tweets", (60,)),  # of 450 rows, so that enough others are left
    ("simulated politifact", (100,)),
    ("babe llama_13b + openchat + zephyr", (120,)),
)


class Seen(NamedTuple):
    """What was claimed about a figure, and what this fit shows on other rows."""

    value: float
    interval: Interval
    truth: float


def check(repetitions: int) -> Iterator[Claim]:
    """Yield the coverage of figures and differences in every cell."""
    for name, sizes in CELLS:
        data = SETS[name]()
        for rows in sizes:
            runs = [_repetition(data, rows, seed) for seed in range(repetitions)]
            # the confidence AUROC is not shown where too few labels are wrong
            for optimiser, quantity in dict.fromkeys(key for run in runs for key in run):
                shown = [run[optimiser, quantity] for run in runs if (optimiser, quantity) in run]
                where = f"{name}, {optimiser}, {rows} gold rows"
                yield _coverage(f"95 % interval of {quantity}", where, shown)


def _coverage(claim: str, where: str, seen: list[Seen]) -> Claim:
    values, truths = (np.array([getattr(one, part) for one in seen]) for part in ("value", "truth"))
    low, high = np.array([one.interval for one in seen]).T
    target = truths.mean()
    covered = float(np.mean((low <= target) & (target <= high)))
    own = float(np.mean((low <= truths) & (truths <= high)))
    width = float(np.mean(high - low) / (2 * 1.96 * max(values.std(), 1e-9)))
    return Claim(
        claim=claim,
        where=where,
        asked=f"≥ {WANTED:.0%}",
        measured=f"{covered:.1%} (this fit {own:.1%}, width × {width:.2f}, bias {values.mean() - target:+.3f})",
        kept=covered >= WANTED,
    )


def _repetition(data: Dataset, count: int, seed: int) -> dict[tuple[str, str], Seen]:
    """Return every figure and difference of both optimisers from one draw of gold rows."""
    votes, codes, _ = data
    order = np.random.default_rng(seed).permutation(len(votes))
    rows, gold = labelled_rows(votes.take(np.sort(order[:count])), codes[np.sort(order[:count])])
    others, truth = labelled_rows(votes.take(np.sort(order[count:])), codes[np.sort(order[count:])])
    splits = Splits(seed=seed)
    references = [_reference(name, rows, gold, others, truth, seed) for name in REFERENCES]
    found: dict[tuple[str, str], Seen] = {}
    for optimiser in ("lr", "auto"):
        model = fit_model(rows, gold, Learning(optimiser=optimiser, splits=splits)).model
        verdicts = model.judged(others)
        shown = {
            "auroc": auroc(verdicts.scores, truth),
            "auroc_confidence": auroc_confidence(verdicts.deciding, truth),
            "accuracy": accuracy(verdicts.deciding, truth),
        }
        first, *rest = cross_validate(rows, gold, [optimiser, *REFERENCES], splits, resamples=200)
        for quantity, value in shown.items():
            if estimate := getattr(first, quantity):
                found[optimiser, quantity] = Seen(estimate.value, estimate.interval, value)
        for name, one, reference in zip(REFERENCES, rest, references, strict=True):
            found |= {
                (optimiser, f"{quantity} over {name}"): seen for quantity, seen in _against(one, shown, reference)
            }
    return found


def _against(
    one: MethodFigures, shown: Mapping[str, float], reference: Mapping[str, float]
) -> Iterator[tuple[str, Seen]]:
    for quantity, test in (("auroc", one.behind), ("accuracy", one.accuracy_behind)):
        assert test is not None, "only the first method has no test"
        yield quantity, Seen(test.difference, test.interval, shown[quantity] - reference[quantity])


def _reference(name: str, rows: Votes, gold: Codes, others: Votes, truth: Codes, seed: int) -> dict[str, float]:
    """Return the figures on other rows of a simple method that saw these rows."""
    learned, applied = ready(name, rows), ready(name, others)
    assert learned.optimiser is not None, "references have an optimiser"
    scores: Floats = score(applied.votes, fit_optimiser(learned.optimiser, learned.votes, gold, seed))
    return {"auroc": auroc(scores, truth), "accuracy": accuracy(scores, truth)}
