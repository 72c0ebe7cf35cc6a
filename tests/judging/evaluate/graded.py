"""Graded votes for tests."""

from collections.abc import Sequence

import numpy as np

from pcs_annotator import Votes
from pcs_annotator.core.arrays import Codes
from pcs_annotator.judging.score import softmax
from tests.builders import LABELS


def graded_votes(
    skills: Sequence[float], *, items: int = 90, relations: int = 2, bias: float = 2.0, seed: int = 0
) -> tuple[Votes, Codes]:
    """Votes of models with a favourite label, whose log-probabilities say more than their labels; and the gold codes.

    Each model's log-odds are its skill for the true label, `bias` for the first label, and noise; 1 % goes to no label.
    """
    rng = np.random.default_rng(seed)
    gold = rng.integers(len(LABELS), size=items).astype(np.int8)
    shape = (items, len(skills), relations, 1, len(LABELS))
    logits = rng.normal(size=shape)
    logits[..., 0] += bias
    truth = np.eye(len(LABELS))[gold][:, np.newaxis, np.newaxis, np.newaxis]
    logits += truth * np.array(skills)[:, np.newaxis, np.newaxis, np.newaxis]
    grades = 0.99 * softmax(logits)
    votes = Votes(
        codes=grades.argmax(axis=-1).astype(np.int8),
        ids=[f"item-{row:03d}" for row in range(items)],
        annotators=[f"model-{index}" for index in range(len(skills))],
        relations=["original", "order", "wording"][:relations],
        labels=LABELS,
        grades=grades.astype(np.float32),
    )
    return votes, gold
