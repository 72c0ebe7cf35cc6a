"""Whether gold rows look like a random sample that people labelled."""

import math
from collections.abc import Sequence

import numpy as np

from pcs_annotator.base.errors import warn_user
from pcs_annotator.core.arrays import Floats, Mask
from pcs_annotator.core.votes import NOT_ASKED, Votes, positions_of
from pcs_annotator.judging.heldout import HeldOut
from pcs_annotator.judging.metrics.special import bdtr
from pcs_annotator.judging.model import Model
from pcs_annotator.judging.promise.drift import Drift, Profile, drift, profile
from pcs_annotator.judging.score import row_parts

PEOPLE_AGREE = 0.9  # with a panel that is of two minds, people agree less often than this
OF_TWO_MINDS = 0.67  # at most such a share of the votes is for one label, as if one of three models differs
TINY = 1e-12
NEARLY = 0.97
CHANCE = 0.001  # a warning without a reason comes so often at most


def gold_drift(votes: Votes, gold: Mask, others: Mask, model: Model) -> Drift | None:
    """Return whether the gold rows look like a random sample, and warn if not; None without a promise."""
    if model.certificate is None or not model.certificate.holds or not others.any():
        return None
    judged = model.judged(votes)
    familiar = model.familiar(votes)

    def profile_of(rows: Mask) -> Profile:
        shares = None if familiar is None else familiar[rows]
        return profile(votes.take(rows), judged.scores[rows], judged.best[rows], shares)

    difference = drift(profile_of(gold), profile_of(others), names=("those with", "the rows without gold"))
    # asking that stops early stops where answers agree
    agreement, asked = _agreement(votes), (votes.codes != NOT_ASKED).all(axis=(1, 2, 3))
    some, rest = agreement[gold & asked], agreement[others & asked]
    if not difference.found and rank_sum(some, rest) < CHANCE:
        more = "more" if some.mean() > rest.mean() else "less"
        difference = difference._replace(found=True, sentence=f"models agree {more} with each other on them")
    if difference.found:
        remedy = "confidence and promise may not hold there: label a random sample of those rows and fit again"
        warn_user(f"the gold rows differ from the others: {difference.sentence}; {remedy}")
    return difference


def warn_of_machine_gold(votes: Votes, gold: Mask, trial: HeldOut) -> None:
    """Warn if models seem to have labelled the gold rows: the held-out labels are right even where the votes differ."""
    agreement = _agreement(votes)
    places = positions_of(trial.ids, votes.ids, "item")
    split = gold[places] & (agreement[places] <= OF_TWO_MINDS)
    right, rows = int(trial._replace(near=False).judged.right[split].sum()), int(split.sum())
    if (
        rows
        and not _known_by_one(votes, places, split, trial, right)
        and (float(bdtr(rows - right, rows, 1 - PEOPLE_AGREE)) < CHANCE)
    ):
        warn_user(
            f"gold agrees with the label of {right:,} of {rows:,} rows on which the models differ, which people "
            "hardly ever do: if models made these gold labels, nothing is known about errors"
        )


def _known_by_one(votes: Votes, places: Sequence[int], split: Mask, trial: HeldOut, right: int) -> bool:
    """Return whether a single question to one model, or the words of the texts, tell gold as well as all together."""
    gold = np.array(positions_of(trial.labels, votes.labels, "label"))[trial.gold]
    agrees = votes.codes[places].reshape(len(places), -1) == gold[:, np.newaxis]
    most = int(agrees[split].sum(axis=0).max())
    if votes.text_log_probs is not None:
        most = max(most, int((votes.text_log_probs[places].argmax(axis=1) == gold)[split].sum()))
    return most >= NEARLY * right


def _agreement(votes: Votes) -> Floats:
    """Return the share of votes for the label that most are for, for every row; 0 without a vote."""
    parts = [votes.shares(rows).sum(axis=(1, 2)) for rows in row_parts(votes)]
    return np.concatenate([part.max(axis=1) / np.maximum(part.sum(axis=1), TINY) for part in parts])


def rank_sum(some: Floats, others: Floats) -> float:
    """Return the p-value of the rank-sum test, for which SciPy takes a second to load; 1 if a sample is empty."""
    values, places, ties = np.unique(np.concatenate([some, others]), return_inverse=True, return_counts=True)
    rows, pairs = len(places), len(some) * len(others)
    if not pairs or len(values) == 1:
        return 1.0
    ranks = (np.cumsum(ties) - (ties - 1) / 2)[places]
    excess = abs(ranks[: len(some)].sum() - len(some) * (rows + 1) / 2)
    variance = pairs / 12 * (rows + 1 - (ties**3 - ties).sum() / rows / (rows - 1))
    return math.erfc(max(excess - 0.5, 0.0) / math.sqrt(2 * variance))
