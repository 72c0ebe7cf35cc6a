r"""Which passages can be accepted with a promised error rate, where a text has several of them that err together.

Drawn at random are texts, so texts are what a test may count. Of $m$ accepted passages of a text, $w$ are wrong; more
than α of all accepted ones are wrong if $E[w] > α E[m]$. For a cap $k$, let $b = \max(m, k)$. Then
$Y = b - (w - α m) / (1 - α)$ is never negative, and its mean is at most $c = E[b]$. That needs no gold: it is known
from the table. Whoever stakes $s ≤ 1/c$ on every text has the wealth $\prod_i (1 + s (Y_i - c))$ in the end, which is
at most 1 on average, and so is a mean over stakes that were chosen before gold was seen: it reaches $1/p$ with a
probability of at most $p$ (Markov; Waudby-Smith and Ramdas, 2024). Half of it goes to the stake that pays most if
confidence is true and passages of a text are all right or all wrong. If no text has more than one passage, the test is
the exact binomial one.
"""

from typing import NamedTuple

import numpy as np

from pcs_annotator.core.arrays import Floats, Integers
from pcs_annotator.judging.heldout import Judged
from pcs_annotator.judging.metrics.special import bdtr
from pcs_annotator.judging.promise.promise import Promise
from pcs_annotator.judging.promise.thresholds import last_passing, steps_of

MOST_STEPS = 50
SHARE_BELOW_CAP, TABLE_TEXTS = 0.9, 10
HALVINGS = 30
STAKES = np.append(np.geomspace(0.004, 0.7, 14), [0.9, 0.99])  # shares of the most that may be staked


def passage_threshold(  # the gold passages, the test, and the table, which has no gold
    judged: Judged, units: Integers, max_error: float, level: float, table_confidence: Floats, table_units: Integers
) -> float | None:
    """Return the loosest confidence at which passages are accepted; None when nothing keeps the promise.

    `units` are codes of the texts that gold passages are from, `table_units` of those in the table. The table is all
    texts that the promise is about. Its codes are its own.
    """
    if not len(judged.right):
        return None
    if len(np.unique(units)) == len(units) and len(np.unique(table_units)) == len(table_units):
        steps = steps_of(judged)
        last = int(last_passing(steps, Promise(max_error=max_error), level))
        return float(steps.threshold[last]) if last >= 0 else None
    texts, table_texts = (np.unique(codes, return_inverse=True)[1] for codes in (units, table_units))

    def chance(threshold: float, wrong: Floats) -> float:
        accepts = judged.confidence >= threshold
        sizes = np.bincount(texts[accepts])
        errors = np.bincount(texts[accepts], wrong[accepts])[sizes > 0]
        table_sizes = np.bincount(table_texts[table_confidence >= threshold])
        doubt = float(1 - judged.confidence[accepts].mean())
        return p_value(sizes[sizes > 0], errors, table_sizes[table_sizes > 0], max_error, doubt)

    thresholds = _spread(judged.confidence)
    # where it passes most easily if texts all have the error rate that confidence says; gold plays no part
    rates = [1 - judged.confidence[judged.confidence >= threshold].mean() for threshold in thresholds]
    expected = [np.full(len(texts), rate) for rate in rates]
    start = int(np.argmin([chance(*step) for step in zip(thresholds, expected, strict=True)]))
    loosest, wrong = None, (~judged.right).astype(np.float64)
    for threshold in thresholds[start:]:
        if chance(threshold, wrong) > level:
            break
        loosest = threshold
    return loosest


def _spread(confidence: Floats) -> list[float]:
    """Return the thresholds that are tried: distinct confidences, strictest first, at even distances in rank."""
    falling = -np.unique(-confidence)
    ranks = np.linspace(0, len(falling) - 1, min(len(falling), MOST_STEPS)).round().astype(np.intp)
    return falling[ranks].tolist()


def p_value(
    sizes: Integers, wrong: Floats | Integers, table_sizes: Integers, max_error: float, doubt: float | None = None
) -> float:
    """Return how probable so few errors are at most if more than `max_error` of the accepted passages are wrong.

    `sizes` are numbers of accepted passages of gold texts that have any, `wrong` how many of these are wrong, and
    `table_sizes` the same numbers of texts of the table. `doubt` is the share of wrong ones that confidence expects.
    """
    cap = _cap(sizes, table_sizes)
    if cap == (1, 1):
        return float(bdtr(wrong.sum(), len(sizes), max_error))

    def gains(errors: Floats | Integers) -> Floats:
        excess = (errors - max_error * sizes) / (1 - max_error)
        return (np.maximum(sizes, cap.size) - excess) / cap.mean - 1

    if doubt is None:
        return chance_of_gains(gains(wrong))
    growth = (1 - doubt) * _growth(gains(0 * sizes)) + doubt * _growth(gains(sizes))
    return chance_of_gains(gains(wrong), int(growth.argmax()))


def chance_of_gains(gains: Floats, best: int | None = None) -> float:
    """Return how probable such gains are at most if they are 0 on average at most; none may be below -1.

    `best` is the place in `STAKES` of the stake that gets half of what there is.
    """
    shares = np.full(len(STAKES), 1 / len(STAKES))
    if best is not None:
        shares = (shares + np.eye(len(STAKES))[best]) / 2
    return float(min(1.0, np.exp(-np.logaddexp.reduce(_growth(gains) + np.log(shares)))))


def _growth(gains: Floats) -> Floats:
    """Return the logarithm of the wealth that every stake ends with."""
    return np.asarray(np.log1p(np.multiply.outer(STAKES, gains)).sum(axis=1))


class Cap(NamedTuple):
    """A number of accepted passages, and the mean of it and the number of a text, whichever is larger."""

    size: float
    mean: float


def _cap(sizes: Integers, table_sizes: Integers) -> Cap:
    """Return a cap that few texts are above, so that a rare text with many passages is not feared everywhere.

    A table must be large enough to know the mean. Otherwise no text can be above the cap, and the mean is the cap.
    """
    if len(table_sizes) < TABLE_TEXTS * len(sizes):
        largest = max(sizes.max(), table_sizes.max(initial=1))
        return Cap(float(largest), float(largest))
    size = np.quantile(table_sizes, SHARE_BELOW_CAP, method="higher")
    return Cap(float(size), float(np.maximum(table_sizes, size).mean()))


def recall_at_least(hits: Integers, passages: Integers, level: float, most: int | None = None) -> float:
    """Return what share of the right passages is found at least, but for a share `level` of draws of texts.

    Of every text drawn at random, so many of its right `passages` are found. No sample says how many a rare text may
    have, so `most` passages of a text are assumed, by default as many as any of these texts has.
    """
    largest = max(most or 0, int(passages.max(initial=0)))
    if not largest:
        return 0.0
    least, beyond = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (least + beyond) / 2
        rejected = chance_of_gains((hits - middle * passages) / (middle * largest)) <= level
        least, beyond = (middle, beyond) if rejected else (least, middle)
    return least
