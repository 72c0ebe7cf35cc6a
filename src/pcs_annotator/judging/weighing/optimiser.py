"""The interface of optimisers, their registry, and the cases in which nothing can be learned."""

from dataclasses import replace
from typing import Protocol

import numpy as np

from pcs_annotator.base.errors import GoldError
from pcs_annotator.base.registry import Registry
from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.core.gold import UNLABELLED
from pcs_annotator.core.votes import Votes
from pcs_annotator.core.weights import Diagnostics, Evidence, Flag, Weights


class Optimiser(Protocol):
    """Learns weights from votes and gold."""

    @property
    def needs_gold(self) -> bool:
        """Whether it learns from labelled rows only; if so, it gets no others. A plain attribute is enough."""
        ...

    def fit(self, votes: Votes, gold: Codes, seed: int) -> Weights:
        """Return the weights; gold is for every item a position in `votes.labels`, or `UNLABELLED`."""
        ...


_HERE = f"{__package__}.optimisers"
optimisers: Registry[Optimiser] = Registry(
    "optimiser",
    "pcs_annotator.optimisers",
    [f"{_HERE}.{name}" for name in ("auto", "confusion", "ga", "logit", "regression", "simple")],
)
optimiser = optimisers.register  # decorator that registers an optimiser class under a name


def fit_optimiser(chosen: Optimiser, votes: Votes, gold: Codes, seed: int) -> Weights:
    """Return the weights that the optimiser learns, or equal weights and the reason if nothing can be learned."""
    if not chosen.needs_gold:
        return chosen.fit(votes, gold, seed)
    labelled = gold != UNLABELLED
    if not labelled.any():
        raise GoldError(
            "no gold labels: label some rows (30 are a start), or use an optimiser that needs none "
            "(uniform, majority, dawid-skene)"
        )
    votes, gold = votes.take(labelled), gold[labelled]
    reason = ""
    if len(np.unique(gold)) < 2:
        count = "the only gold row says" if len(gold) == 1 else f"all {len(gold)} gold rows say"
        reason = f"{count} {votes.labels[gold[0]]!r}, so the weights stay equal: label rows of another class too"
    elif votes.silent.all():
        reason = "no model voted on a gold row, so the weights stay equal: check the answers, or label other rows"
    if reason:
        equal = optimisers.create("uniform").fit(votes, gold, seed)
        return replace(equal, diagnostics=Diagnostics(flags=(Flag("uniform fallback", reason),)))
    return chosen.fit(votes, gold, seed)


def any_graded(votes: Votes) -> bool:
    """Return whether any vote is graded."""
    return votes.grades is not None and not bool(np.isnan(votes.grades[..., 0]).all())


def all_graded(votes: Votes) -> bool:
    """Return whether there are votes and all of them are graded."""
    if votes.grades is None:
        return False
    voted, graded = votes.codes >= 0, ~np.isnan(votes.grades[..., 0])
    return bool(voted.any() and not (voted & ~graded).any())


def one_hot(gold: Codes, labels: int) -> Floats:
    """Return 1[gold = label], `[item, label]`."""
    return np.eye(labels)[gold]


def weights_from_evidence(votes: Votes, evidence: Evidence, worth: Floats, diagnostics: Diagnostics) -> Weights:
    """Return weights with this evidence; they summarise the worth of every cell, `[annotator, relation]`."""
    return replace(Weights.normalised(votes, worth.sum(axis=1), worth.sum(axis=0), diagnostics), evidence=evidence)
