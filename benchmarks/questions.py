"""What definitions and suggestions are worth to models that give labels only, and what a good prompt is worth.

Run it with `python -m benchmarks.questions [--draws N] [--gold-rows N] [RUN=TRUTH.csv …]`. Without run folders it reads
the recorded answers of the development data; the answers of a run are judged by a table with `id` and `gold`. Gold rows
are drawn at random, the usual learner reads votes and texts, and the figures are of the other rows.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.development_data import DATA, load
from pcs_annotator import PcsWarning, Votes
from pcs_annotator.core.arrays import Codes
from pcs_annotator.core.gold_codes import gold_codes
from pcs_annotator.core.identity import text_hash
from pcs_annotator.judging.metrics.figures import auroc_confidence
from pcs_annotator.runs.learn import fit_for_classifier
from pcs_annotator.runs.opened import Run

SETS = ("tweets", "topics")


def panels(relations: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the panels to compare, as far as their questions were asked."""
    suggested, orders, wordings = (
        tuple(name for name in relations if name.startswith(start)) for start in ("sugg", "order", "wording")
    )
    original, defined = ("original",), ("definitions",)
    yield "original", original
    yield "orders, 2 wordings", (*original, *orders, *wordings[:2])
    yield "orders, 4 wordings", (*original, *orders, *wordings[:4])
    yield "definitions", (*original, *defined)
    yield "definitions, orders", (*original, *orders, *defined)
    yield "suggestions", (*original, *suggested)
    yield "definitions, 3 suggestions", (*original, *defined, *suggested[:3])
    yield "definitions, suggestions", (*original, *defined, *suggested)


def recorded(name: str) -> tuple[Votes, Codes]:
    """Return recorded answers with their texts and right labels."""
    votes, truth, _ = load(f"recorded/asked_{name}.csv.gz")
    texts = column(DATA / f"texts/asked_{name}.csv", "text")
    return labels_only(votes, [texts[name] for name in votes.ids]), truth


def of_run(folder: Path, table: Path) -> tuple[Votes, Codes]:
    """Return the answers of a run, with their texts, and right labels from a table."""
    run = Run.open(folder)
    known, defined_by = column(table, "gold"), set(run.config.task.defined_by)
    votes = labels_only(run.votes, run.texts)
    left_out = [text_hash(text) in defined_by for text in run.texts]
    kept = np.array([name in known for name in votes.ids]) & ~np.array(left_out)
    votes = votes.take(kept)
    return votes, gold_codes(votes, [known[name] for name in votes.ids])


def column(table: Path, name: str) -> dict[str, str]:
    """Return a column of a table, by id."""
    with table.open(encoding="utf-8", newline="") as file:
        return {row["id"]: row[name] for row in csv.DictReader(file)}


def labels_only(votes: Votes, texts: list[str]) -> Votes:
    """Return votes without probabilities, as of a model that gives labels only."""
    return Votes(
        codes=votes.codes,
        ids=votes.ids,
        annotators=votes.annotators,
        relations=votes.relations,
        labels=votes.labels,
        texts=texts,
    )


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


def spread(votes: Votes, truth: Codes, gold_rows: int, draws: int) -> str:
    """Return how far the worst and the best wording are apart, alone and after learning from gold."""
    prompts = [name for name in votes.relations if name == "original" or name.startswith("wording")]
    codes = [votes.select(relations=(name,)).codes[:, 0, 0, 0] for name in prompts]
    alone = [100 * float((codes_of == truth).mean()) for codes_of in codes]
    learned = []
    for name in prompts:
        single = votes.select(relations=(name,))
        learned.append(100 * np.mean([measure(single, truth, gold_rows, draw)[0] for draw in range(draws)]))
    together = votes.select(relations=tuple(prompts))
    weighed = 100 * np.mean([measure(together, truth, gold_rows, draw)[0] for draw in range(draws)])
    return (
        f"{len(prompts)} prompts: alone {min(alone):.1f} to {max(alone):.1f}, each after learning "
        f"{min(learned):.1f} to {max(learned):.1f}, all weighed together {weighed:.1f}"
    )


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="*", metavar="RUN=TRUTH.csv")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--gold-rows", type=int, default=100)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore", PcsWarning)
    print(f"accuracy / AUROC of confidence, {chosen.gold_rows} gold rows, mean of {chosen.draws} draws, in %")
    for name in chosen.runs or SETS:
        run, _, table = name.partition("=")
        votes, truth = of_run(Path(run), Path(table)) if table else recorded(name)
        for panel, relations in panels(tuple(votes.relations)):
            some = votes.select(relations=relations)
            means = 100 * np.mean(
                [measure(some, truth, chosen.gold_rows, draw) for draw in range(chosen.draws)], axis=0
            )
            print(f"{Path(run).name:12}{panel:28}{len(relations):3} calls{means[0]:8.1f} / {means[1]:.1f}", flush=True)
        print(f"{Path(run).name:12}{spread(votes, truth, chosen.gold_rows, chosen.draws)}", flush=True)


if __name__ == "__main__":
    main()
