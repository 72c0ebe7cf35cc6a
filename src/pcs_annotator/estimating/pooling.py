r"""Partial pooling: means of small groups drawn towards the mean of all; intervals hold on average over groups.

With the mean $\hat\theta_g$ of a group, its error $s_g$, the mean $\mu$ and the variance $\tau^2$ of all groups, the
pooled mean is $\mu + w_g(\hat\theta_g - \mu)$ with $w_g = \tau^2/(\tau^2 + s_g^2)$. What it is biased by is unknown for
a single group, but on average over groups its square is $s_g^2/\tau^2$, in units of the squared error. The interval is
wide enough for the worst distribution of biases with this average (Armstrong, Kolesár and Plagborg-Møller, 2022).
"""

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from pcs_annotator.core.arrays import Floats

TAIL = 0.025
NORMAL = float(ndtri(1 - TAIL))
NOTHING = 1e-12
_STEPS = np.geomspace(1.0, 1e4, 200)


def pooled(means: Floats, errors: Floats, rows: Floats) -> tuple[Floats, Floats]:
    """Return means drawn towards each other, and how far their 95 % intervals reach to either side.

    `errors` are the variances of the means, and `rows` says how many gold rows each has.
    """
    share, count = rows / rows.sum(), len(means)
    centre = share @ means
    varies = share @ (means - centre) ** 2 * count / (count - 1) - share @ errors
    # the second is the least that so few groups can tell (Armstrong et al., section 4.1)
    spread = max(float(varies), float(2 * (share**2 @ errors**2) / max(share @ errors, NOTHING)), NOTHING)
    weight = spread / (spread + errors)
    own = weight * np.sqrt(errors) * [_critical(ratio) for ratio in errors / spread]
    common = NORMAL * (1 - weight) * np.sqrt(share**2 @ errors)
    return centre + weight * (means - centre), np.hypot(own, common)


def _critical(bias: float) -> float:
    """Return how many errors an interval must reach, if squared biases have this mean, for a 95 % interval."""

    def outside(reach: float) -> float:
        squared = bias * _STEPS
        rates = ndtr(-reach - np.sqrt(squared)) + ndtr(np.sqrt(squared) - reach)
        none = 2 * ndtr(-reach)  # the worst: some groups have no bias, and the others all the same
        return float((none + (rates - none) / _STEPS).max()) - 2 * TAIL

    return float(brentq(outside, NORMAL - 1e-9, np.sqrt((1 + bias) / (2 * TAIL)) + 1))
