"""Texts as character n-grams, without a vocabulary, in any language; and what is most like a text by them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from pcs_annotator.core.arrays import Array, Floats, Integers
from pcs_annotator.core.task import Example, Task, label_lookup

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


ORDERS = (2, 3, 4, 5)
BITS = 16
COLUMNS = 1 << BITS  # sharing a column costs nothing: with 16 times as many, no task was labelled better
CHARACTERS = 1 << 21  # how many characters are read at a time
# An odd number has an inverse modulo 2⁶⁴, so the hash of any part of a text follows from those of its beginnings.
BASE = 0x9E3779B97F4A7C15
MIX = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


def normalised(text: str) -> str:
    """Return a text as it is read: without capitals, with single spaces."""
    return " ".join(text.casefold().split())


def text_key(text: str) -> str:
    """Return by what a text is known; copies that differ in capitals and spaces have the same."""
    return blake2b(normalised(text).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def count_ngrams(texts: Sequence[str]) -> csr_matrix:
    """Return how often n-grams of each column are in each text, `[text, column]`."""
    from scipy.sparse import vstack

    first, *others = (_counted(part) for part in _parts(texts))
    return vstack([first, *others], format="csr") if others else first


def weigh(counts: csr_matrix, rarity: Floats) -> csr_matrix:
    """Return the counts as vectors of length 1, in which repetitions count little and rare n-grams much."""
    return weigh_with_lengths(counts, rarity)[0]


def weigh_with_lengths(counts: csr_matrix, rarity: Floats) -> tuple[csr_matrix, Floats]:
    """Return the vectors of length 1, and how long they were before."""
    from scipy.sparse import csr_matrix

    rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    values = (1 + np.log(counts.data)) * rarity[counts.indices]
    length = np.sqrt(np.bincount(rows, values**2, minlength=counts.shape[0]))
    values = (values / length[rows]).astype(np.float32)
    return csr_matrix((values, counts.indices, counts.indptr), shape=counts.shape), length


def rarity_of(counts: csr_matrix) -> Floats:
    """Return for every column how rare its n-grams are: the inverse document frequency."""
    texts = np.bincount(counts.indices, minlength=COLUMNS)
    return np.asarray(np.log((1 + counts.shape[0]) / (1 + texts)) + 1)


def _parts(texts: Sequence[str]) -> Iterator[list[str]]:
    """Yield the texts as they are read, some at a time; at least once."""
    part: list[str] = []
    length = 0
    for text in texts:
        part.append(f" {normalised(text)} ")
        length += len(part[-1])
        if length >= CHARACTERS:
            yield part
            part, length = [], 0
    yield part


def _counted(texts: Sequence[str]) -> csr_matrix:
    from scipy.sparse import csr_matrix

    lengths = np.array([len(text) for text in texts], dtype=np.intp)
    points = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    text_of = np.repeat(np.arange(len(texts)), lengths)
    until = np.zeros(len(points) + 1, dtype=np.uint64)
    np.cumsum((points + np.uint64(1)) * _powers(BASE, len(points)), out=until[1:])
    back = _powers(pow(BASE, -1, 1 << 64), len(points))
    cells = []  # row and column of every n-gram as one number, which are sorted faster than by the class
    for order in ORDERS:
        whole = text_of[order - 1 :] == text_of[: max(len(text_of) - order + 1, 0)]
        hashes = (until[order:] - until[:-order]) * back[: len(whole)]
        cells.append((text_of[: len(whole)][whole] << BITS) + _column(hashes[whole] + np.uint64(order)))
    places = np.sort(np.concatenate(cells))
    starts = np.flatnonzero(np.append(True, places[1:] != places[:-1])[: len(places)])
    counts = np.diff(starts, append=len(places)).astype(np.float32)
    ends = np.searchsorted(places[starts], np.arange(len(texts) + 1) << BITS)
    columns = (places[starts] & (COLUMNS - 1)).astype(np.int32)
    return csr_matrix((counts, columns, ends.astype(np.int32)), shape=(len(texts), COLUMNS))


def _powers(base: int, count: int) -> Array:
    factors = np.full(count, base, dtype=np.uint64)
    factors[:1] = 1
    return np.cumprod(factors)


def _column(hashes: Array) -> Integers:
    """Return the column of every hash; its last bits depend on the last characters alone, so it is mixed first."""
    mixed = hashes * np.uint64(MIX[0])
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(MIX[1])
    return (mixed >> np.uint64(64 - BITS)).astype(np.int32)


REMEMBERED = 4_096  # texts whose examples are remembered: several models and relations ask about each
CHARACTERS_READ = 1_000  # what a text is about shows at its start, and a longer part takes longer to compare
DIGITS = 5  # cosines are rounded, so that no version of a library changes the order, and with it the question


class NearestExamples:
    """Finds the examples that are most like a text. No text is shown itself, or a copy, so gold stays unseen."""

    def __init__(self, examples: Sequence[Example]) -> None:
        self._examples = examples
        self._keys = np.array([text_key(example.text) for example in examples])
        counts = count_ngrams([example.text[:CHARACTERS_READ] for example in examples])
        self._rarity = rarity_of(counts)
        self._columns = weigh(counts, self._rarity).T.tocsr()
        self._ranked = lru_cache(REMEMBERED)(self._rank)

    def of(self, text: str, count: int, skipped: int = 0) -> tuple[Example, ...]:
        """Return the most similar examples first, after those that are skipped."""
        return tuple(self._examples[position] for position in self._ranked(text, skipped + count)[skipped:])

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

    def __init__(self, labels: Sequence[str], meanings: Mapping[str, str], examples: Sequence[Example]) -> None:
        self._labels = labels
        places = label_lookup(labels)
        self._label_of = np.array([places[example.label.casefold()] for example in examples], dtype=np.intp)
        self._keys = np.array([text_key(example.text) for example in examples], dtype=object)
        words = [f"{_NOT_IN_WORDS.sub(' ', label)} {meanings.get(label, '')}" for label in labels]
        counts = count_ngrams([text[:CHARACTERS_READ] for text in (*words, *(example.text for example in examples))])
        self._rarity = rarity_of(counts)
        self._columns = weigh(counts, self._rarity).T.tocsr()
        self.of = lru_cache(REMEMBERED)(self._of)

    def _of(self, text: str, count: int) -> tuple[str, ...]:
        """Return so many labels, in the order of all labels."""
        nearest = np.sort(np.argsort(-self._likeness(text, count).round(DIGITS), kind="stable")[:count])
        return tuple(self._labels[label] for label in nearest.tolist())

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
    labels: tuple[str, ...], meanings: tuple[tuple[str, str], ...], examples: tuple[Example, ...]
) -> CandidateLabels:
    return CandidateLabels(labels, dict(meanings), examples)


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
