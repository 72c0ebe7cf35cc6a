"""What is most like a text, by cosines of weighted character n-grams: examples to show, and labels out of very many."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from pcs_annotator.core.arrays import Floats
from pcs_annotator.core.ngrams import count_ngrams, rarity_of, text_key, weigh
from pcs_annotator.core.task import Example, Task, label_lookup

REMEMBERED = 4_096  # texts whose examples are remembered: several models and relations ask about each
CHARACTERS_READ = 1_000  # what a text is about shows at its start, and a longer part takes longer to compare
DIGITS = 5  # cosines are rounded, so that no version of a library changes the order, and with it the question


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

_NOT_IN_WORDS = re.compile(r"[\W_]+")


class CandidateLabels:
    """Finds the labels that are most like a text.

    A label is like a text by its own words (name, path, meaning), and by the most similar text that is known to have
    it, added up. The text itself and its copies do not count, so gold rows are treated as new ones are.
    """

    def __init__(self, labels: Sequence[str], meanings: Mapping[str, str], known: Sequence[Example]) -> None:
        self._labels = labels
        places = label_lookup(labels)
        self._label_of = np.array([places[one.label.casefold()] for one in known], dtype=np.intp)
        self._keys = np.array([text_key(one.text) for one in known], dtype=object)
        words = [f"{_NOT_IN_WORDS.sub(' ', label)} {meanings.get(label, '')}" for label in labels]
        counts = count_ngrams([text[:CHARACTERS_READ] for text in (*words, *(one.text for one in known))])
        self._rarity = rarity_of(counts)
        self._columns = weigh(counts, self._rarity).T.tocsr()
        self.of = lru_cache(REMEMBERED)(self._of)

    def _of(self, text: str, count: int) -> tuple[str, ...]:
        """Return so many labels, in the order of all labels."""
        found = np.sort(np.argsort(-self._likeness(text, count).round(DIGITS), kind="stable")[:count])
        return tuple(self._labels[place] for place in found.tolist())

    def _likeness(self, text: str, count: int) -> Floats:
        vector = weigh(count_ngrams([text[:CHARACTERS_READ]]), self._rarity)
        alike = (vector @ self._columns).toarray()[0].astype(np.float64)
        others, size = self._keys != text_key(text), len(self._labels)
        by_text, label_of = np.zeros(size), self._label_of[others]
        np.maximum.at(by_text, label_of, alike[size:][others])
        # labels such as "other" share no words with their texts: common ones are at most half of the candidates
        common = np.bincount(label_of, minlength=size) >= max(2 / count * len(label_of), 1)
        return np.asarray(alike[:size] + by_text + 2 * common)


@lru_cache(maxsize=8)
def _candidates_among(
    labels: tuple[str, ...], meanings: tuple[tuple[str, str], ...], known: tuple[Example, ...]
) -> CandidateLabels:
    return CandidateLabels(labels, dict(meanings), known)


def candidates_of(task: Task) -> CandidateLabels | None:
    """Return what finds the labels to ask about; None if all labels are in every prompt. It is made once per task."""
    if not task.asked:
        return None
    return _candidates_among(tuple(task.labels), tuple(task.meanings.items()), (*task.examples, *task.known))


def recall_of(task: Task, texts: Sequence[str], gold: Sequence[str]) -> float:
    """Return the share of texts whose gold label is among their candidates."""
    finder = candidates_of(task)
    if finder is None:
        return 1.0
    pairs = zip(texts, gold, strict=True)
    return float(np.mean([label in finder.of(text, task.asked) for text, label in pairs]))
