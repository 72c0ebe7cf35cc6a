"""The examples that are most like a text, by the words that they share: cosines of weighted character n-grams."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from pcs_annotator.core.ngrams import count_ngrams, rarity_of, text_key, weigh
from pcs_annotator.core.task import Example

REMEMBERED = 4_096  # texts whose examples are remembered: several models and relations ask about each
CHARACTERS_READ = 1_000  # what a text is about shows at its start, and a longer part takes longer to compare
DIGITS = 5
"""Cosines are rounded, so that another version of a library cannot change the order, and with it the question."""


class NearestExamples:
    """Finds the examples that are most like a text. No text is shown itself, or a copy, so gold stays unseen."""

    def __init__(self, examples: Sequence[Example]) -> None:
        self._examples = examples
        self._keys = np.array([text_key(one.text) for one in examples])
        counts = count_ngrams([one.text[:CHARACTERS_READ] for one in examples])
        self._rarity = rarity_of(counts)
        self._columns = weigh(counts, self._rarity).T.tocsr()
        self._ranked = lru_cache(REMEMBERED)(self._rank)

    def of(self, text: str, count: int, skipped: int = 0) -> tuple[Example, ...]:
        """Return the most similar examples first, after those that are skipped."""
        return tuple(self._examples[place] for place in self._ranked(text, skipped + count)[skipped:])

    def _rank(self, text: str, count: int) -> tuple[int, ...]:
        vector = weigh(count_ngrams([text[:CHARACTERS_READ]]), self._rarity)
        alike = (vector @ self._columns).toarray()[0].astype(np.float64)
        ranked = np.argsort(-alike.round(DIGITS), kind="stable")
        others = ranked[self._keys[ranked] != text_key(text)]
        return tuple(others[:count].tolist())


nearest_among = lru_cache(maxsize=8)(NearestExamples)
"""Return what finds the nearest of some examples; made once for all relations, as it reads every example."""
