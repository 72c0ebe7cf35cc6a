"""Small votes for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

from pcs_annotator import Votes
from pcs_annotator.core.arrays import Codes
from pcs_annotator.core.gold_codes import gold_codes
from pcs_annotator.judging.fit_model import Learning, fit_model

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pcs_annotator.judging.model import Model

T = TypeVar("T")
LABELS = ("negative", "neutral", "positive")


def the(value: T | None) -> T:
    """Return a value that has to be there."""
    assert value is not None
    return value


def simulated_votes(
    accuracies: list[float], *, items: int = 100, relations: int = 4, labels: int = 3, seed: int = 0
) -> tuple[Votes, list[str]]:
    """Votes of annotators that are right with a given chance, else wrong at random; and the gold labels."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(labels, size=items)
    codes = np.empty((items, len(accuracies), relations), dtype=np.int8)
    for annotator, chance in enumerate(accuracies):
        right = rng.random((items, relations)) < chance
        wrong = (truth[:, np.newaxis] + rng.integers(1, labels, size=(items, relations))) % labels
        codes[:, annotator] = np.where(right, truth[:, np.newaxis], wrong)
    names = list(LABELS[:labels])
    votes = Votes(
        codes=codes,
        ids=[f"item-{row:06d}" for row in range(items)],
        annotators=[f"model-{index}" for index in range(len(accuracies))],
        relations=["original", "voice", "double-negation", "synonym"][:relations],
        labels=names,
    )
    return votes, [names[code] for code in truth]


def votes_of(codes: object, labels: tuple[str, ...] = ("fake", "real")) -> Votes:
    """Votes from nested lists of codes, item × annotator × relation, with short names."""
    array: Codes = np.array(codes, dtype=np.int8)
    return Votes(
        codes=array,
        ids=[f"i{row}" for row in range(array.shape[0])],
        annotators=[f"a{row}" for row in range(array.shape[1])],
        relations=["original", *(f"r{row}" for row in range(1, array.shape[2]))],
        labels=labels,
    )


def learn_model(votes: Votes, gold: Iterable[object] | Mapping[str, object], how: Learning) -> Model:
    """Return the model learned from votes and gold: label names in the order of `votes.ids`, or id → label name."""
    return fit_model(votes, gold_codes(votes, gold), how).model
