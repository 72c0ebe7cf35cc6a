"""How far labels agree beyond chance: Cohen's κ for two people or methods, Krippendorff's α for any number.

Labels are codes; a negative one means that this person gave this row no label. Where labels have an order, codes follow
it, and a small difference can count less than a large one. Both figures are 1 where all agree on every row, and 0 where
they agree as often as by chance. They are undefined if no row has two labels, or all labels are the same: then None for
one figure, nan among many.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from pcs_annotator.core.arrays import Codes, Floats, Integers

Weighting = Literal["equal", "linear", "quadratic"]
"""How much a disagreement counts: always the same, or by how many labels or their square two labels are apart."""
Scale = Literal["nominal", "ordinal", "interval"]
"""What labels are: names, ranks, or numbers."""


class Agreement(NamedTuple):
    """How far people agree, and on how many rows with two labels or more that is based."""

    value: float | None
    rows: int


def cohens_kappa(first: Codes, second: Codes, weighting: Weighting = "equal") -> Agreement:
    """Return Cohen's κ (1960; weighted, 1968) of two people, on the rows that both have labelled."""
    table = pair_tables(first, second, np.ones((len(first), 1)), _labels(first, second))[0]
    return Agreement(_defined(kappa_on(table, weighting)), int(table.sum()))


def krippendorffs_alpha(codes: Codes, scale: Scale = "nominal", values: Sequence[float] | None = None) -> Agreement:
    """Return Krippendorff's α (2011) of labels `[person, row]`, on the rows with two labels or more.

    On an interval scale every code stands for a number, by default itself; on an ordinal scale, codes are in order.
    """
    rows = int(((codes >= 0).sum(axis=0) > 1).sum())
    pairs = coincidences(codes, np.ones((codes.shape[1], 1)), _labels(codes))[0]
    return Agreement(_defined(alpha_on(pairs, scale, values)), rows)


def _labels(*codes: Codes) -> int:
    return 1 + max(int(one.max(initial=-1)) for one in codes)


def _defined(figure: Floats) -> float | None:
    return None if np.isnan(figure) else float(figure)


def pair_tables(first: Codes, second: Codes, counts: Floats, labels: int) -> Floats:
    """Return how often each pair of labels occurs, `[resample, first, second]`, on the rows that have both.

    `counts` is how often each resample drew each row, `[row, resample]`.
    """
    both = np.flatnonzero((first >= 0) & (second >= 0))
    cell: Integers = first[both].astype(np.intp) * labels + second[both]
    tables = np.zeros((counts.shape[1], labels * labels))
    if len(both):
        order = np.argsort(cell, kind="stable")
        found, starts = np.unique(cell[order], return_index=True)
        tables[:, found] = np.add.reduceat(counts[both[order]], starts, axis=0).T
    return tables.reshape(counts.shape[1], labels, labels)


def kappa_on(tables: Floats, weighting: Weighting = "equal") -> Floats:
    """Return Cohen's κ of tables of pairs, `[…, first, second]`; nan where it is undefined."""
    rank = np.arange(tables.shape[-1])
    apart = np.abs(rank[:, np.newaxis] - rank)
    cost = {"equal": apart > 0, "linear": apart, "quadratic": apart**2}[weighting].astype(np.float64)
    observed = (tables * cost).sum(axis=(-2, -1)) * tables.sum(axis=(-2, -1))
    return _one_less(observed, ((tables.sum(axis=-1) @ cost) * tables.sum(axis=-2)).sum(axis=-1))


def coincidences(codes: Codes, counts: Floats, labels: int) -> Floats:
    """Return Krippendorff's coincidences of labels `[person, row]`, as `[resample, label, label]`.

    Each row counts as many pairs as it has labels. `counts` is how often each resample drew each row.
    """
    patterns, place = np.unique(codes, axis=1, return_inverse=True)  # many rows have the same labels
    given: Floats = (patterns[:, :, np.newaxis] == np.arange(labels)).sum(axis=0, dtype=np.float64)
    size = given.sum(axis=1)
    order = np.argsort(place.ravel(), kind="stable")
    starts = np.searchsorted(place.ravel()[order], np.arange(patterns.shape[1]))
    times = np.add.reduceat(counts[order], starts, axis=0) if len(order) else counts
    share = times[size > 1] / (size[size > 1, np.newaxis] - 1)
    given = given[size > 1]
    pairs = [(given.T * one) @ given - np.diag(one @ given) for one in share.T]
    return np.array(pairs).reshape(counts.shape[1], labels, labels)


def alpha_on(pairs: Floats, scale: Scale = "nominal", values: Sequence[float] | None = None) -> Floats:
    """Return Krippendorff's α of coincidences, `[…, label, label]`; nan where it is undefined."""
    total = pairs.sum(axis=-1)
    apart: Floats = 1 - np.eye(pairs.shape[-1])
    if scale != "nominal":
        # the ordinal difference of two labels is that of the middle ranks which they have among all labels given
        middle = np.cumsum(total, axis=-1) - total / 2
        at = middle if scale == "ordinal" else np.arange(pairs.shape[-1]) if values is None else np.array(values)
        apart = np.asarray((at[..., :, np.newaxis] - at[..., np.newaxis, :]) ** 2, dtype=np.float64)
    observed = (pairs * apart).sum(axis=(-2, -1)) * (total.sum(axis=-1) - 1)
    return _one_less(observed, np.einsum("...i,...ij,...j->...", total, apart, total))


def _one_less(observed: Floats, expected: Floats) -> Floats:
    defined = expected > 0
    return np.where(defined, 1 - observed / np.where(defined, expected, 1), np.nan)
