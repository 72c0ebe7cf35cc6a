"""The embedded model as users get it: two prompts, one or two graded questions each, 100 gold rows, the rest held out.

Run it with `python benchmarks/product.py [FOLDER]`; the folder keeps the answers, so a second run is quick. It needs
the tweets of the development data.
"""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from pcs_annotator import RunResult, Votes
from pcs_annotator.core.arrays import Codes
from pcs_annotator.core.gold_codes import gold_codes
from pcs_annotator.judging.fit_model import Learning, fit_model
from pcs_annotator.judging.metrics.figures import auroc
from pcs_annotator.judging.solver import one_thread
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.settings import AskSettings, Config, RelationSettings, TaskSettings
from tests.judging.metrics.alone import accuracy
from tests.simulated import run

TWEETS = Path(__file__).resolve().parents[2] / "shared" / "data" / "texts" / "tweets_sentiment.csv"
LABELS = ("negative", "neutral", "positive")
STYLES = ("embedded:smollm2", "embedded:smollm2/plain")
RELATIONS = ("original", "order")
ROWS, GOLD_ROWS, SPLITS = 500, 100, 20


def asked(folder: Path) -> RunResult:
    config = Config(
        task=TaskSettings(instruction="What is the sentiment of the tweet?", labels=LABELS),
        ask=AskSettings(models=STYLES),
        relations=RelationSettings(use=RELATIONS),
    )
    return run(RunRequest(data=TWEETS, folder=folder, config=config, limit=ROWS, progress=True))


def held_out(votes: Votes, gold: Codes, seed: int) -> dict[str, tuple[float, float]]:
    """Return AUROC and accuracy per method, on the rows that were not learned from."""
    rows = np.random.default_rng(seed).permutation(len(votes))
    train, test = rows[:GOLD_ROWS], rows[GOLD_ROWS:]
    found: dict[str, tuple[float, float]] = {}
    for method in ("auto", "lr"):
        verdicts = fit_model(votes.take(train), gold[train], Learning(optimiser=method)).model.judged(votes.take(test))
        found[method] = (auroc(verdicts.scores, gold[test]), float(np.mean(verdicts.best == gold[test])))
    for annotator in votes.annotators:
        single = votes.select(annotators=[annotator], relations=["original"]).take(test)
        for name, shares in (("zero-shot", single.hard().shares()), ("logprob", single.shares())):
            scores = shares[:, 0, 0]
            found[f"{name} {annotator}"] = (auroc(scores, gold[test]), accuracy(scores, gold[test]))
    return found


def main() -> None:
    if not TWEETS.exists():
        print(f"no development data: {TWEETS} does not exist")
        return
    warnings.simplefilter("ignore")
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp())
    started = time.perf_counter()
    result = asked(folder)
    seconds = time.perf_counter() - started
    print(f"{result.tally.calls:,} questions in {seconds:.0f} s, {result.tally.from_ledger:,} from the ledger")
    gold = gold_codes(result.votes, result.dataset.gold)
    with one_thread():
        for relations in (RELATIONS[:1], RELATIONS):
            votes = result.votes.select(relations=relations)
            show(f"graded, {' and '.join(relations)}", votes, gold)
            show(f"hard, {' and '.join(relations)}", votes.hard(), gold)


def show(title: str, votes: Votes, gold: Codes) -> None:
    figures = [held_out(votes, gold, seed) for seed in range(SPLITS)]
    print(f"\n{title}; {len(votes.annotators)} prompts")
    print(f"{SPLITS} splits, {GOLD_ROWS} gold rows, {len(gold) - GOLD_ROWS} held out; mean and middle 95 % of splits")
    for method in figures[0]:
        values = np.array([split[method] for split in figures])
        low, high = np.quantile(values, [0.025, 0.975], axis=0)
        (a, c), (al, cl), (ah, ch) = values.mean(axis=0), low, high
        print(f"  {method:36} AUROC {a:.3f} [{al:.3f}, {ah:.3f}]   accuracy {c:.3f} [{cl:.3f}, {ch:.3f}]")


if __name__ == "__main__":
    main()
