"""A curve from score to probability that never falls."""

from __future__ import annotations

import numpy as np
from scipy.optimize import isotonic_regression

from pcs_annotator.core.arrays import Floats, Mask

MIN_ROWS = 50


def fit_curve(scores: Floats, hits: Mask) -> Floats:
    """Return the knots `[knot, (score, probability)]` of the rising curve nearest to the hits in least squares.

    No probability is 0 or 1: where n rows agree, the rule of succession still leaves a chance of 1/(n + 2) to the
    other answer, so that a log-loss stays finite.
    """
    places, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    shares = np.bincount(inverse, hits) / counts
    rising = isotonic_regression(shares, weights=counts).x
    rarest = 1 / (len(scores) + 2)
    knots = np.column_stack([places, np.clip(rising, rarest, 1 - rarest)])
    # the inner points of a level stretch add nothing to a curve of straight lines
    level = np.diff(knots[:, 1]) == 0
    return knots[~(np.append(False, level) & np.append(level, False))]


def read_curve(knots: Floats, scores: Floats) -> Floats:
    """Return the probability at each score: straight lines between the knots, level beyond them."""
    return np.interp(scores, knots[:, 0], knots[:, 1])
