"""Texts as character n-grams in a fixed number of columns: no vocabulary, no word boundaries, any language."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from pcs_annotator.core.arrays import Array, Floats, Integers

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

    return vstack([_counted(part) for part in _parts(texts)], format="csr")


def weigh(counts: csr_matrix, rarity: Floats) -> csr_matrix:
    """Return the counts as vectors of length 1, in which repetitions count little and rare n-grams much."""
    from scipy.sparse import csr_matrix

    rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    values = (1 + np.log(counts.data)) * rarity[counts.indices]
    length = np.sqrt(np.bincount(rows, values**2, minlength=counts.shape[0]))
    values = (values / length[rows]).astype(np.float32)
    return csr_matrix((values, counts.indices, counts.indptr), shape=counts.shape)


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
    text_of = np.repeat(np.arange(len(texts), dtype=np.int32), lengths)
    until = np.zeros(len(points) + 1, dtype=np.uint64)
    np.cumsum((points + np.uint64(1)) * _powers(BASE, len(points)), out=until[1:])
    back = _powers(pow(BASE, -1, 1 << 64), len(points))
    rows, columns = [], []
    for order in ORDERS:
        whole = text_of[order - 1 :] == text_of[: len(text_of) - order + 1]
        hashes = (until[order:] - until[:-order]) * back[: len(whole)]
        rows.append(text_of[: len(whole)][whole])
        columns.append(_column(hashes[whole] + np.uint64(order)))
    ones = np.ones(sum(map(len, rows)), dtype=np.float32)
    return csr_matrix((ones, (np.concatenate(rows), np.concatenate(columns))), shape=(len(texts), COLUMNS))


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
