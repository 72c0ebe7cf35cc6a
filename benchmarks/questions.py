"""What definitions and suggestions are worth to models that give labels only, against orders and wordings.

Run it with `python -m benchmarks.questions [DRAWS [GOLD_ROWS]]`. It needs the recorded answers of the development data;
gold rows are drawn at random, the usual learner reads votes and texts, and the figures are of the other rows.
"""

from __future__ import annotations

import csv
import sys
import warnings
from dataclasses import replace
from hashlib import blake2b

import numpy as np

from benchmarks.development_data import DATA, load
from pcs_annotator import PcsWarning, Votes
from pcs_annotator.core.arrays import Codes
from pcs_annotator.judging.metrics.figures import auroc_confidence
from pcs_annotator.runs.learn import fit_for_classifier

SETS = ("tweets", "topics")
ORIGINAL = ("original",)
ORDERS = ("original", "order:reversed", "order:rotated")
CHOSEN = {"any": (), "rivals": ORIGINAL, "voted": (*ORIGINAL, "definitions")}
"""How suggested labels are chosen for each text → the answers that they are chosen by."""
WORDINGS = tuple(f"wording:{number}" for number in range(4))


def panels(relations: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    suggested = tuple(name for name in relations if name.startswith("suggested"))
    return {
        "original": ORIGINAL,
        "orders, 2 wordings": (*ORDERS, *WORDINGS[:2]),
        "orders, 4 wordings": (*ORDERS, *WORDINGS),
        "definitions": (*ORIGINAL, "definitions"),
        "definitions, orders": (*ORDERS, "definitions"),
        "suggestions": (*ORIGINAL, *suggested),
        "definitions, 3 suggestions": (*ORIGINAL, "definitions", *suggested[:3]),
        "definitions, suggestions": (*ORIGINAL, "definitions", *suggested),
        **{f"definitions, {size} chosen: {how}": (*ORIGINAL, "definitions", *_chosen(how, size))
           for how in CHOSEN for size in range(1, len(suggested))},
    }  # fmt: skip


def _chosen(how: str, size: int) -> list[str]:
    first = 2 if how == "rivals" else 1  # the first is the label that the model gave itself
    return [f"{how}:{rank}" for rank in range(first, first + size)]


def with_chosen(votes: Votes) -> Votes:
    """Return the votes, and answers to suggestions chosen for each text, the most probable label first.

    Probable is what the first answers say, labels without an answer follow by a hash of the text.
    """
    places = [votes.relations.index(f"suggested:{label}") for label in votes.labels]
    codes, names = [votes.codes], [*votes.relations]
    for how, first in CHOSEN.items():
        counts = votes.codes[:, 0, [votes.relations.index(name) for name in first]] == np.arange(len(votes.labels))
        hashes = [[hash_of(text, label) for label in votes.labels] for text in votes.texts or ()]
        given = counts.sum(axis=1) - np.array(hashes)
        ranks = np.argsort(-given, axis=1)
        asked = np.take_along_axis(votes.codes[:, 0, places], ranks[:, :, np.newaxis], axis=1)
        codes, names = [*codes, asked[:, np.newaxis]], [*names, *(f"{how}:{rank + 1}" for rank in range(len(places)))]
    return replace(votes, codes=np.concatenate(codes, axis=2), relations=names)


def hash_of(text: str, label: str) -> float:
    return int.from_bytes(blake2b(f"{label} {text}".encode(), digest_size=6).digest()) / 2**48


def with_texts(name: str) -> tuple[Votes, Codes]:
    votes, truth, _ = load(f"recorded/asked_{name}.csv.gz")
    with (DATA / f"texts/asked_{name}.csv").open(encoding="utf-8", newline="") as file:
        texts = {row["id"]: row["text"] for row in csv.DictReader(file)}
    hard = Votes(
        codes=votes.codes,
        ids=votes.ids,
        annotators=votes.annotators,
        relations=votes.relations,
        labels=votes.labels,
        texts=[texts[name] for name in votes.ids],
    )
    return with_chosen(hard), truth


def measure(votes: Votes, truth: Codes, gold_rows: int, draw: int) -> tuple[float, float]:
    """Return accuracy, and AUROC of confidence, on the rows without gold."""
    chosen = np.random.default_rng(draw).permutation(len(truth))[:gold_rows]
    gold: list[str | None] = [None] * len(truth)
    for row in chosen.tolist():
        gold[row] = votes.labels[truth[row]]
    judged = fit_for_classifier(votes, gold, "auto", 0).judged(votes)
    others = np.setdiff1d(np.arange(len(truth)), chosen)
    right = judged.best[others] == truth[others]
    return float(right.mean()), auroc_confidence(judged.deciding[others], truth[others])


def main() -> None:
    draws, gold_rows = (int(number) for number in [*sys.argv[1:], *["10", "100"][len(sys.argv) - 1 :]])
    warnings.simplefilter("ignore", PcsWarning)
    print(f"accuracy / AUROC of confidence on the other rows, {gold_rows} gold rows, mean of {draws} draws, in %")
    for name in SETS:
        votes, truth = with_texts(name)
        for panel, relations in panels(tuple(votes.relations)).items():
            some = votes.select(relations=relations)
            means = 100 * np.mean([measure(some, truth, gold_rows, draw) for draw in range(draws)], axis=0)
            print(f"{name:8}{panel:28}{len(relations):3} calls{means[0]:8.1f} / {means[1]:.1f}", flush=True)


if __name__ == "__main__":
    main()
