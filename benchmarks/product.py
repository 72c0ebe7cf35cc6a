"""The embedded model as users get it: two prompt styles, rewrites by rules, 100 gold rows, AUROC on the rest.

Run it with `python benchmarks/product.py [FOLDER]`; the folder keeps the answers, so a second run is quick. It needs
the tweets of the development data.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from pcs_annotator.core.arrays import Codes
from pcs_annotator.core.gold import gold_codes
from pcs_annotator.core.votes import Votes
from pcs_annotator.files.config import AskSettings, Config, RelationSettings, TaskSettings
from pcs_annotator.judging.metrics.metrics import accuracy, auroc
from pcs_annotator.judging.weighing.fitting import fit_weights
from pcs_annotator.judging.weighing.scoring import score
from pcs_annotator.pipeline.run import RunRequest, run
from pcs_annotator.pipeline.run_folder import RunResult

TWEETS = Path(__file__).resolve().parents[2] / "shared" / "data" / "texts" / "tweets_sentiment.csv"
LABELS = ("negative", "neutral", "positive")
# Two prompt styles, each with and without the correction for the model's answer to an empty text.
STYLES = (
    "embedded:smollm2",
    "embedded:smollm2/no-prior",
    "embedded:smollm2/plain",
    "embedded:smollm2/plain/no-prior",
)
# Few tweets have clauses that a parser can rearrange, so the rules that need no parser are included.
RELATIONS = ("original", "voice", "double-negation", "synonym", "contraction", "punctuation", "frame")
GOLD_ROWS, SPLITS = 100, 20


def asked(folder: Path) -> RunResult:
    config = Config(
        task=TaskSettings(instruction="What is the sentiment of the tweet?", labels=LABELS),
        ask=AskSettings(models=STYLES),
        relations=RelationSettings(use=RELATIONS),
    )
    return run(RunRequest(data=TWEETS, folder=folder, config=config, progress=True))


def held_out(votes: Votes, gold: Codes, seed: int) -> dict[str, tuple[float, float]]:
    """Return AUROC and accuracy per method, on the rows that were not learned from."""
    rows = np.random.default_rng(seed).permutation(len(votes))
    train, test = rows[:GOLD_ROWS], rows[GOLD_ROWS:]
    found: dict[str, tuple[float, float]] = {}
    for method in ("auto", "lr", "naive-bayes", "uniform"):
        labels = [votes.labels[code] for code in gold[train]]
        weights = fit_weights(votes.take(train), labels, method, seed=seed, resamples=0)
        scores = score(votes.take(test), weights)
        found[method] = (auroc(scores, gold[test]), accuracy(scores, gold[test]))
    for annotator in votes.annotators:
        single = votes.select(annotators=[annotator], relations=["original"]).take(test)
        scores = single.shares()[:, 0, 0]
        found[f"zero-shot {annotator}"] = (auroc(scores, gold[test]), accuracy(scores, gold[test]))
    return found


def main() -> None:
    if not TWEETS.exists():
        print(f"no development data: {TWEETS} does not exist")
        return
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp())
    started = time.perf_counter()
    result = asked(folder)
    seconds = time.perf_counter() - started
    print(f"{result.tally.calls:,} questions in {seconds:.0f} s, {result.tally.from_ledger:,} from the ledger")
    gold = gold_codes(result.votes, result.dataset.gold)
    for annotators in (("embedded:smollm2", "embedded:smollm2/plain"), STYLES):
        show(result.votes.select(annotators=annotators), gold)


def show(votes: Votes, gold: Codes) -> None:
    figures = [held_out(votes, gold, seed) for seed in range(SPLITS)]
    print(f"\n{len(votes.annotators)} annotators, {len(votes.relations)} relations")
    print(f"{SPLITS} splits, {GOLD_ROWS} gold rows, {len(gold) - GOLD_ROWS} held out; mean and middle 95 % of splits")
    for method in figures[0]:
        values = np.array([split[method] for split in figures])
        low, high = np.quantile(values, [0.025, 0.975], axis=0)
        (a, c), (al, cl), (ah, ch) = values.mean(axis=0), low, high
        print(f"  {method:36} AUROC {a:.3f} [{al:.3f}, {ah:.3f}]   accuracy {c:.3f} [{cl:.3f}, {ch:.3f}]")


if __name__ == "__main__":
    main()
