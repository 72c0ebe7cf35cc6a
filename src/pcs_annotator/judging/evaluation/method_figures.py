"""All figures of all methods, observed and on the same resamples of the rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.judging.crossfit import CrossFit
from pcs_annotator.judging.evaluation.bootstrap import auroc_on, chosen_on, resample_counts
from pcs_annotator.judging.scoring import choose

COVERAGES = (0.5, 0.8)
TARGETS = (0.9, 0.95)
FIGURES = (
    "auroc",
    "auroc_hard",
    "accuracy",
    "macro_f1",
    "ece_score",
    "ece_confidence",
    "brier",
    "aurc",
    *(f"accuracy_at_{coverage:.0%}".rstrip("%") for coverage in COVERAGES),
    *(f"review_share_{target:.0%}".rstrip("%") for target in TARGETS),
)
"""Names of the figures; the first five are of the raw score, the others of the calibrated probability."""

Resampled = dict[str, Floats]
"""Name of a figure → its value on every resample."""


def all_figures(
    fits: Sequence[Sequence[CrossFit]], gold: Codes, labels: Sequence[str], resamples: int, seed: int
) -> tuple[list[dict[str, float]], list[Resampled]]:
    """Return every method's figures, and the same on every resample; all methods see the same resamples."""
    once = np.ones((len(gold), 1))
    observed = [{name: float(values[0]) for name, values in _figures(fit, gold, labels, once).items()} for fit in fits]
    parts: list[list[Resampled]] = [[] for _ in fits]
    for counts in resample_counts(gold, resamples, seed):
        for place, fit in enumerate(fits):
            parts[place].append(_figures(fit, gold, labels, counts))
    joined = [{name: np.concatenate([part[name] for part in own]) for name in FIGURES} for own in parts]
    return observed, joined


def _figures(fits: Sequence[CrossFit], gold: Codes, labels: Sequence[str], counts: Floats) -> Resampled:
    """Return the mean over splits of every figure, `[resample]`."""
    same = all(np.array_equal(fit.scores, fits[0].scores) for fit in fits)
    raw = [_raw_figures(fit.scores, gold, labels, counts) for fit in (fits[:1] if same else fits)]
    sure = [chosen_on(fit.probabilities, gold, counts, COVERAGES, TARGETS) for fit in fits]
    told = [(one.ece, one.brier, one.aurc, *one.accuracy_at, *one.review_share) for one in sure]
    return dict(zip(FIGURES, [*np.mean(raw, axis=0), *np.mean(told, axis=0)], strict=True))


def _raw_figures(scores: Floats, gold: Codes, labels: Sequence[str], counts: Floats) -> list[Floats]:
    chosen = chosen_on(scores, gold, counts)
    return [
        auroc_on(scores, gold, counts),
        auroc_on(hard_scores(scores, labels), gold, counts),
        chosen.accuracy,
        chosen.macro_f1,
        chosen.ece,
    ]


def hard_scores(scores: Floats, labels: Sequence[str]) -> Floats:
    """Return 1 for the chosen label of every row and 0 for the others; where all labels tie, nothing was chosen."""
    hard = np.eye(len(labels))[choose(scores, labels)]
    hard[scores.max(axis=1) == scores.min(axis=1)] = 1 / len(labels)
    return hard
