"""`Facts`, which findings are made from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from pcs_annotator.core.arrays import Codes, Mask
from pcs_annotator.core.gold import UNLABELLED, gold_codes
from pcs_annotator.core.outcome import Outcome
from pcs_annotator.core.variant import VariantCount
from pcs_annotator.core.votes import Votes
from pcs_annotator.relations.language import LIMITS
from pcs_annotator.runs.languages import MANY
from pcs_annotator.runs.learn import Learned, counted_once


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What findings are made from."""

    votes: Votes  # all votes
    outcomes: Sequence[Outcome]  # the label of every item
    gold: Sequence[object]  # the gold label of every item or None; empty if none has one
    learned: Learned  # the model, and its figures
    rewrites: Sequence[VariantCount] = ()  # how rewrites ended, per relation and reason; empty if that is unknown
    cut: Mapping[str, int] = field(default_factory=dict)  # annotator → texts that did not fit into its model's context
    texts: Sequence[str] | None = None  # the text of every item; None if unknown
    random_sample: Mask | None = None  # which gold rows were drawn at random or may be assumed to be; None for all

    @cached_property
    def gold_codes(self) -> Codes:
        """The gold labels that are known, one for every text, as positions in the labels."""
        return self._gold_codes(None)

    @cached_property
    def random_gold_codes(self) -> Codes:
        """Those of rows drawn at random, which tell how common labels are."""
        return self._gold_codes(self.random_sample)

    @cached_property
    def language_limits(self) -> dict[str, int]:
        """Relation → texts to which it did not apply because of their language, where these are many."""
        counts: Counter[str] = Counter()
        for one in self.rewrites:
            if one.status == "not_applicable" and one.reason.endswith(LIMITS):
                counts[one.relation] += one.times
        return {name: times for name, times in counts.items() if times > MANY * len(self.votes)}

    def _gold_codes(self, among: Mask | None) -> Codes:
        codes = gold_codes(self.votes, self.gold or [None] * len(self.votes))
        codes = codes if among is None else np.where(among, codes, UNLABELLED).astype(np.int8)
        return codes[(codes != UNLABELLED) & counted_once(self.votes, codes, self.texts).distinct]

    @property
    def label_counts(self) -> Counter[str]:
        """How often each label was given, every text counted once."""
        nothing = np.full(len(self.votes), UNLABELLED, dtype=np.int8)
        counted = counted_once(self.votes, nothing, self.texts).distinct.tolist()
        pairs = zip(self.outcomes, counted, strict=True)
        return Counter(one.label for one, counts in pairs if counts and one.label is not None)


def percent(share: float) -> str:
    """Return a share as text."""
    return f"{100 * share:.0f} %"
