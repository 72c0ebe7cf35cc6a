"""What several tests share: small votes, and the development data where it is present."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from pcs_annotator.core.arrays import Codes
from pcs_annotator.core.votes import Votes

LABELS = ("negative", "neutral", "positive")


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


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The development data, which is not part of the project."""
    place = os.environ.get("PCS_SHARED_DATA")
    folder = Path(place) if place else Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the development data is not on this machine (set PCS_SHARED_DATA to its folder)")
    return folder
