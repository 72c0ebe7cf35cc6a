"""Does drift see that texts are in another language, and does it leave texts of the same kind alone?

Real sentences (BABE), simulated answers of three models. A run has 600 rows, 200 of them with gold. Then 2,000 other
sentences come, which must raise no alarm; or 200 texts of random words in another language, which must.

Run it with `python -m benchmarks.foreign_texts [STREAMS]`; the results are in `benchmarks/results/stream.md`.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter

import numpy as np

from benchmarks.development_data import DATA
from pcs_annotator import Votes
from pcs_annotator.core.arrays import Codes, Integers
from pcs_annotator.core.gold_codes import UNLABELLED
from pcs_annotator.judging.fit_model import Learning, fit_model
from pcs_annotator.judging.model import Model
from pcs_annotator.judging.promise.promise import Promise
from pcs_annotator.runs.recent_texts import RecentTexts

ROWS, GOLD, TEXTS, FOREIGN, AT_ONCE = 600, 200, 2_000, 200, 50
SKILLS = np.array([0.9, 0.85, 0.8])
WORDS = {
    "Chinese": " ".join("这是一个关于新闻的句子他们认为政府应该做得更多因为人民需要帮助"),
    "Russian": "это предложение о новостях они думают что правительство должно делать больше потому что",
    "German": "das ist ein Satz über die Nachrichten und sie glauben dass die Regierung mehr tun sollte",
}


def votes_on(gold: Codes, texts: list[str], rng: np.random.Generator) -> Votes:
    """Return simulated answers about texts with these labels."""
    right = rng.random((len(gold), len(SKILLS), 1, 1)) < SKILLS[:, np.newaxis, np.newaxis]
    truth = gold[:, np.newaxis, np.newaxis, np.newaxis]
    codes = np.where(right, truth, 1 - truth).astype(np.int8)
    ids = [str(row) for row in range(len(gold))]
    return Votes(
        codes=codes, ids=ids, annotators=["a", "b", "c"], relations=["original"], labels=["0", "1"], texts=texts
    )


def alarmed(model: Model, gold: Codes, texts: list[str], rng: np.random.Generator) -> int | None:
    """Return after how many texts of a stream there was an alarm; None if there was none."""
    recent = RecentTexts(model.references)
    for start in range(0, len(texts), AT_ONCE):
        part = slice(start, start + AT_ONCE)
        recent.judged(model, texts[part], votes_on(gold[part], texts[part], rng))
        if recent.found is not None and recent.found.found:
            return start + AT_ONCE
    return None


def main(streams: int = 100) -> None:
    with (DATA / "babe" / "items.csv").open(encoding="utf-8", newline="") as file:
        rows = [*csv.DictReader(file)]
    texts, labels = [row["text"] for row in rows], np.array([float(row["gold"]) for row in rows]).astype(np.int8)
    rng = np.random.default_rng(0)
    alarms, found = 0, dict[str, Counter[int | None]]()
    for _ in range(streams):
        order: Integers = rng.permutation(len(texts))
        run, new = order[:ROWS], order[ROWS : ROWS + TEXTS]
        gold = labels[run].copy()
        gold[GOLD:] = UNLABELLED
        how = Learning(promise=Promise(max_error=0.1), text=True, optimiser="lr")
        model = fit_model(votes_on(labels[run], [texts[row] for row in run], rng), gold, how).model
        alarms += alarmed(model, labels[new], [texts[row] for row in new], rng) is not None
        for language, words in WORDS.items():
            foreign = [f"{' '.join(rng.choice(words.split(), 12))} {row}" for row in range(FOREIGN)]
            found.setdefault(language, Counter())[alarmed(model, labels[new[:FOREIGN]], foreign, rng)] += 1
    print(f"same kind of texts: {alarms} of {streams} streams with an alarm")
    for language, after in found.items():
        print(f"{language}: alarm after so many texts, how often: {dict(after)}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
