"""CPU time of `evaluate` and of all experiments, and their tables, on the development data."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

from benchmarks.development_data import QWEN, babe, load, read_models
from pcs_annotator import Votes
from pcs_annotator.core.arrays import Codes
from pcs_annotator.judging.baselines import baselines
from pcs_annotator.judging.evaluate.as_tables import evaluation_tables
from pcs_annotator.judging.evaluate.harness import evaluate
from pcs_annotator.showing.result_tables import to_markdown
from pcs_annotator.studies.paper.research_questions import EXPERIMENTS
from pcs_annotator.studies.paper.study import Replication, Settings

SIMULATED = ("sentiment", "gossipcop", "politifact")
PAPER_ROWS = {"sentiment": 405, "gossipcop": 393, "politifact": 135}
METHODS = ("auto", "lr", "uniform", "majority", "zero-shot")


def simulated(rows: dict[str, int] | None = None) -> dict[str, tuple[Votes, Codes]]:
    """Return the simulated sets, all rows or the first few."""
    found = {}
    for name in SIMULATED:
        votes, gold, _ = load(f"simulated/{name}.csv.gz")
        kept = slice(0, (rows or {}).get(name))
        found[name] = (votes.take(kept), gold[kept])
    return found


def recorded() -> dict[str, tuple[Votes, Codes]]:
    """Return the recorded sets with the two models that carry information, at both temperatures."""
    found = {}
    models = [*QWEN, *(name.replace("@0", "@0.7") for name in QWEN)]
    for name in SIMULATED[:2]:
        votes, gold, _ = load(f"recorded/votes_{name}.csv.gz")
        found[f"recorded {name}"] = (votes.select(annotators=models), gold)
    return found


def time_evaluate() -> None:
    votes, gold, _ = babe(read_models())
    start = time.process_time()
    evaluation = evaluate(votes, gold, METHODS)
    print(f"evaluate on babe, {evaluation.n} rows: {time.process_time() - start:.1f} s CPU\n")
    for table in evaluation_tables(evaluation):
        print(to_markdown(table))


def run(sets: dict[str, tuple[Votes, Codes]], names: Sequence[str]) -> None:
    settings = Settings(baselines=[baselines.create(name) for name in baselines.names()])
    study, total = Replication.of(sets, settings), 0.0
    for name in names:
        start = time.process_time()
        experiment = EXPERIMENTS[name](study)
        spent = time.process_time() - start
        total += spent
        print(f"{name}: {spent:.1f} s CPU\n")
        for table in experiment.tables:
            print(to_markdown(table))
    print(f"in all: {total:.1f} s CPU")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["evaluate", "paper-size", "simulated", "recorded"])
    parser.add_argument("names", nargs="*", default=list(EXPERIMENTS))
    chosen = parser.parse_args()
    if chosen.what == "evaluate":
        time_evaluate()
    else:
        sets = {"paper-size": lambda: simulated(PAPER_ROWS), "simulated": simulated, "recorded": recorded}[
            chosen.what
        ]()
        run(sets, chosen.names)


if __name__ == "__main__":
    main()
