"""How often a rewrite changes an annotator's label, and from which label to which."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from pcs_annotator.core.arrays import Integers
from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.core.votes import Votes


class Flips(NamedTuple):
    """Votes on a rewrite compared with votes on the text itself."""

    pairs: int  # pairs of answers: the same annotator, item and draw gave a label to both texts
    changed: int  # number of pairs that differ

    @property
    def rate(self) -> float | None:
        """Share of answers that changed; None when there are no pairs."""
        return self.changed / self.pairs if self.pairs else None


class FlipMatrix(NamedTuple):
    """One annotator's answers under one relation."""

    annotator: str  # name of the annotator
    relation: str  # name of the relation
    counts: Integers  # `[label on the text itself, label on the rewrite]`

    @property
    def flips(self) -> Flips:
        """The number of pairs, and of those that differ."""
        pairs = int(self.counts.sum())
        return Flips(pairs, pairs - int(np.trace(self.counts)))


def flips_by_relation(votes: Votes) -> dict[str, Flips]:
    """Return how often answers changed under each relation; empty without votes on the original."""
    found: dict[str, Flips] = {}
    for one in flip_matrices(votes):
        pairs, changed = found.get(one.relation, Flips(0, 0))
        found[one.relation] = Flips(pairs + one.flips.pairs, changed + one.flips.changed)
    return found


def flip_matrices(votes: Votes) -> Iterator[FlipMatrix]:
    """Yield which label became which, for every relation but the original and every annotator."""
    if ORIGINAL not in votes.relations:
        return
    original = votes.codes[:, :, votes.relations.index(ORIGINAL), :].astype(np.intp)
    labels = len(votes.labels)
    for place, relation in enumerate(votes.relations):
        if relation == ORIGINAL:
            continue
        rewritten = votes.codes[:, :, place, :]
        both = (original >= 0) & (rewritten >= 0)
        for position, annotator in enumerate(votes.annotators):
            here = both[:, position]
            pairs = original[:, position][here] * labels + rewritten[:, position][here]
            counts = np.bincount(pairs, minlength=labels * labels).reshape(labels, labels)
            yield FlipMatrix(annotator, relation, counts)
