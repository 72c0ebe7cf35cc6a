r"""Which rows to take for a label so that few of them are wrong (precision), or few are missed (recall).

*Recall.* If $m$ of the $n$ gold rows with the label have a probability below a threshold, the exact binomial p-value of
a recall below $r$ is $P(\mathrm{Bin}(n, 1-r) \le m)$. Lowering a threshold never misses more, so the highest threshold
that passes is found without a correction for several tests. *Precision* is tested as accepted labels are, see
`acceptance.py`. Probabilities of gold rows must come from fits that did not see them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import bdtr

from pcs_annotator.base.errors import UndefinedMetric
from pcs_annotator.core.arrays import Floats, Mask
from pcs_annotator.judging.promising.acceptance import Judged, steps_of, tested_threshold


class Target(NamedTuple):
    """What is promised about the rows that are taken for a label, with a certainty of 1 − δ."""

    share: float
    delta: float


class Threshold(NamedTuple):
    """The least probability with which a row is taken, and the gold rows that it was tested on."""

    least: float  # rows at least this probable are taken
    rows: int  # for recall, gold rows with the label; for precision, gold rows that would be taken
    failures: int  # how many of them are missed, or wrong


def recall_threshold(probability: Floats, positive: Mask, target: Target) -> Threshold:
    """Return the highest threshold with the promised recall, from the label's probability for random gold rows.

    Raises:
        UndefinedMetric: There are too few gold rows with the label.
    """
    found = np.sort(probability[positive])
    misses = np.arange(len(found))
    passes = bdtr(misses, len(found), 1 - target.share) <= target.delta
    if not passes.any():
        needed = int(np.ceil(np.log(target.delta) / np.log(target.share)))
        share = max(float(positive.mean()), 1 / (len(positive) + 1))
        raise UndefinedMetric(
            f"{len(found)} gold rows have the label, and a recall of {target.share:g} needs {needed}, none of them "
            f"missed: draw about {int(np.ceil(needed / share)):,} gold rows at random in all, or promise less"
        )
    missed = int(misses[passes].max())
    return Threshold(float(found[missed]), len(found), missed)


def precision_threshold(probability: Floats, positive: Mask, target: Target) -> Threshold:
    """Return the lowest threshold with the promised precision; see `recall_threshold`.

    Raises:
        UndefinedMetric: No threshold passes.
    """
    judged = Judged(probability, np.zeros(len(positive), dtype=np.int8), positive)
    least = tested_threshold(judged, 1 - target.share, target.delta)
    if least is None:
        needed = int(np.ceil(np.log(target.delta) / np.log(target.share)))
        raise UndefinedMetric(
            f"no threshold has a precision of {target.share:g} with that certainty: it takes at least {needed} gold "
            "rows that are sure to have the label, none of them wrong; draw more rows, or promise less"
        )
    steps = steps_of(judged)
    place = int(np.searchsorted(-steps.threshold, -least))
    return Threshold(least, int(steps.rows[place]), int(steps.wrong[place]))
