"""How often a rewrite makes an annotator change its mind."""

from __future__ import annotations

from typing import NamedTuple

from pcs_annotator.core.variant import ORIGINAL
from pcs_annotator.core.votes import Votes


class Flips(NamedTuple):
    """Votes on a rewrite held against votes on the text itself.

    Attributes:
        pairs: Answers that can be compared: the same annotator, item and draw gave a label to both.
        changed: How many of them differ.
    """

    pairs: int
    changed: int

    @property
    def rate(self) -> float | None:
        """Share of answers that changed; None when there is nothing to compare."""
        return self.changed / self.pairs if self.pairs else None


def flips_by_relation(votes: Votes) -> dict[str, Flips]:
    """Return for every relation but the original how often answers changed; empty without votes on the original."""
    if ORIGINAL not in votes.relations:
        return {}
    original = votes.codes[:, :, votes.relations.index(ORIGINAL), :]
    found = {}
    for place, relation in enumerate(votes.relations):
        if relation != ORIGINAL:
            rewritten = votes.codes[:, :, place, :]
            both = (original >= 0) & (rewritten >= 0)
            found[relation] = Flips(int(both.sum()), int((both & (original != rewritten)).sum()))
    return found
