"""Texts whose words tell their label more or less, and votes on them."""

import numpy as np

from pcs_annotator import Votes
from pcs_annotator.core.arrays import Codes
from pcs_annotator.core.gold_codes import UNLABELLED

LABELS = ("sport", "money")
WORDS = {
    "sport": ["match", "goal", "coach", "striker", "league", "penalty", "keeper", "cup"],
    "money": ["shares", "profit", "bank", "budget", "tax", "interest", "bonds", "loan"],
}


def written(rows: int, seed: int = 0, telling: float = 0.8) -> tuple[list[str], Codes]:
    """Return texts and labels; a text has five words, each of them about its label with some probability."""
    rng = np.random.default_rng(seed)
    gold = rng.integers(2, size=rows).astype(np.int8)
    texts = []
    for row, label in enumerate(gold.tolist()):
        about = [label if rng.random() < telling else 1 - label for _ in range(5)]
        texts.append(" ".join([str(rng.choice(WORDS[LABELS[one]])) for one in about] + [f"item{row}"]))
    return texts, gold


def voted(texts: list[str], gold: Codes, right: float = 0.7, models: int = 2, seed: int = 1) -> Votes:
    rng = np.random.default_rng(seed)
    wrong = rng.random((len(gold), models, 2, 1)) > right
    codes = np.where(wrong, 1 - gold[:, None, None, None], gold[:, None, None, None]).astype(np.int8)
    names = [f"model{one}" for one in range(models)]
    ids = [f"t{row:04d}" for row in range(len(gold))]
    return Votes(codes=codes, ids=ids, annotators=names, relations=["original", "typos"], labels=LABELS, texts=texts)


def known(gold: Codes, rows: int) -> Codes:
    return np.where(np.arange(len(gold)) < rows, gold, UNLABELLED).astype(np.int8)
