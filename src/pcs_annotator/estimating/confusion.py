r"""Probabilities of labels from machine labels alone: how often gold rows of the same kind have which label.

Kinds of rows are nested: all rows, those with the same machine label, those of them with similar confidence. With
$n_{cy}$ gold rows of kind $c$ and label $y$, the share is drawn towards that of the next coarser kind,

$$p_c(y) = \frac{n_{cy} + \kappa\,p_{\text{coarser}}(y)}{n_c + \kappa}.$$

Whatever these probabilities are, corrected estimates are unbiased; better ones make them more precise.
"""

from collections.abc import Sequence

import numpy as np

from pcs_annotator.core.arrays import Codes, Floats, Integers

PRIOR = 2.0  # how many gold rows the coarser kind counts as, κ
FOLDS = 10
LEVELS = 5  # into so many parts of equal size rows are divided by confidence


def levels(confidence: Floats) -> Integers:
    """Return for every row which part it is in by confidence; rows without one are a part of their own."""
    rated = ~np.isnan(confidence)
    ends = np.quantile(confidence[rated], np.arange(1, LEVELS) / LEVELS)
    return np.where(rated, np.searchsorted(ends, confidence), LEVELS)


def calibrated(kinds: Sequence[Integers], rows: Integers, truth: Codes, labels: int) -> tuple[Floats, Floats]:
    """Return the probability of every label, `[row, label]`, and the same for gold rows from folds without them.

    `kinds` are numbers for all rows, coarse kinds first; `rows` are the gold rows, with `truth` as their labels.
    """
    fold = np.random.default_rng(0).permutation(len(rows)) % FOLDS
    held_out = np.empty((len(rows), labels))
    for number in range(FOLDS):
        other = fold != number
        held_out[~other] = _shares(kinds, rows[other], truth[other], labels)[kinds[-1][rows[~other]]]
    return _shares(kinds, rows, truth, labels)[kinds[-1]], held_out


def _shares(kinds: Sequence[Integers], rows: Integers, truth: Codes, labels: int) -> Floats:
    """Return the share of every label in each of the finest kinds, `[kind, label]`."""
    shares, coarse = np.full((1, labels), 1 / labels), np.zeros_like(kinds[0])
    for kind in (coarse, *kinds):
        counts = np.zeros((int(kind.max()) + 1, labels))
        np.add.at(counts, (kind[rows], truth), 1.0)
        prior = np.zeros_like(counts)
        prior[kind] = shares[coarse]
        shares = (counts + PRIOR * prior) / (counts.sum(axis=1, keepdims=True) + PRIOR)
        coarse = kind
    return shares
