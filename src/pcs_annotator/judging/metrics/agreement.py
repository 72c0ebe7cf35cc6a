"""How far people agree about labels, beyond chance: Cohen's κ for two of them, Krippendorff's α for any number.

Labels are codes; a negative one means that this person gave this row no label. Both figures are 1 where people agree on
every row, 0 where they agree as often as by chance, and None where they are undefined: if no row has two labels, or all
labels are the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pcs_annotator.core.arrays import Codes, Floats


class Agreement(NamedTuple):
    """How far people agree, and on how many rows with two labels or more that is based."""

    value: float | None
    rows: int


def cohens_kappa(first: Codes, second: Codes) -> Agreement:
    """Return Cohen's κ (1960) of two people, on the rows that both have labelled."""
    both = (first >= 0) & (second >= 0)
    rows = int(both.sum())
    if not rows:
        return Agreement(None, 0)
    left, right = first[both], second[both]
    labels = int(max(left.max(), right.max())) + 1
    expected = float(np.bincount(left, minlength=labels) @ np.bincount(right, minlength=labels)) / rows**2
    return Agreement(None if expected == 1 else 1 - float((left != right).mean()) / (1 - expected), rows)


def krippendorffs_alpha(codes: Codes) -> Agreement:
    """Return Krippendorff's α of nominal labels (2011), `[person, row]`, on the rows with two labels or more."""
    labels = int(codes.max(initial=-1)) + 1
    counts: Floats = (codes[:, :, np.newaxis] == np.arange(labels)).sum(axis=0, dtype=np.float64)
    size = counts.sum(axis=1)
    paired, size = counts[size > 1], size[size > 1]
    total = paired.sum(axis=0)
    values = total.sum()
    expected = values**2 - total @ total
    if not expected:
        return Agreement(None, len(size))
    observed = ((size**2 - (paired**2).sum(axis=1)) / (size - 1)).sum()
    return Agreement(float(1 - (values - 1) * observed / expected), len(size))
