"""`pcs fit` on public annotation tasks with hard answers of real models: is our label ever worse than a simple rival's?

For every task, panel of four models and draw of gold rows, accuracy on the other rows: ours, the best single model (in
hindsight, and chosen on the gold rows), and a majority vote. Run it with
`python -m benchmarks.public_tasks [DRAWS [GOLD_ROWS]]`.
"""

from __future__ import annotations

import csv
import gzip
import re
import sys
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.development_data import DATA
from pcs_annotator import PcsWarning
from pcs_annotator.verbs.fit import fit_run
from pcs_annotator.verbs.import_votes import VoteSource, import_votes

PANELS = {
    "small": ["llama3.1", "gemma2", "qwen2.5", "mistral", "llama3.2", "aya-expanse", "exaone3.5", "glm4"],
    "cheap": ["gpt-4o-mini", "gemini-1.5-flash-8b", "claude-3-5-haiku", "ministral-8b", "gemini-1.5-flash"],
}


class Accuracies(NamedTuple):
    """Shares of right labels on the rows without gold, and what was promised."""

    ours: float
    best: float
    best_on_gold: float
    majority: float
    confidence: float
    accepted: float
    wrong: float


def read_task(path: Path) -> list[dict[str, str]]:
    usual = csv.field_size_limit(2**24)  # some texts are whole speeches
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8", newline="") as lines:
            return list(csv.DictReader(lines))
    finally:
        csv.field_size_limit(usual)  # of the whole process


def panel_of(columns: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """Return the first four models of a panel that answered; a column may add a model's date to its name."""
    found = [column for name in wanted for column in columns if re.fullmatch(rf"{re.escape(name)}(-\d[\d-]+)?", column)]
    return found[:4]


def measure(rows: list[dict[str, str]], panel: Sequence[str], gold_rows: int, seed: int) -> Accuracies:
    chosen = set(np.random.default_rng(seed).permutation(len(rows))[:gold_rows].tolist())
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "votes.csv"
        with table.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["id", "gold", *(f"{model}|original" for model in panel)])
            for place, row in enumerate(rows):
                gold = row["gold"] if place in chosen else ""
                writer.writerow([place, gold, *(row[model] for model in panel)])
        labels = sorted({row[name] for row in rows for name in ["gold", *panel]} - {""})
        run, changes = Path(folder) / "run", {"max_error": 0.10}
        import_votes(VoteSource(table=table, folder=run, labels=labels), changes)
        fitted = fit_run(run, changes)
    test = [place for place in range(len(rows)) if place not in chosen]
    truth = np.array([row["gold"] for row in rows])
    answers = {model: np.array([row[model] for row in rows]) for model in panel}
    right = np.array([outcome.label for outcome in fitted.outcomes])[test] == truth[test]
    singles = {model: float(np.mean(said[test] == truth[test])) for model, said in answers.items()}
    on_gold = {
        model: float(np.mean([said[place] == truth[place] for place in chosen])) for model, said in answers.items()
    }
    decided = np.array([outcome.decision == "accept" for outcome in fitted.outcomes])[test]
    sure = [outcome.confidence or 0.0 for outcome in fitted.outcomes]
    return Accuracies(
        ours=float(right.mean()),
        best=max(singles.values()),
        best_on_gold=singles[max(on_gold, key=on_gold.__getitem__)],
        majority=_majority(np.stack(list(answers.values()), axis=1)[test], truth[test]),
        confidence=float(np.mean(np.array(sure)[test])),
        accepted=float(decided.mean()),
        wrong=float((~right[decided]).mean()) if decided.any() else float("nan"),
    )


def _majority(answers: np.ndarray[tuple[int, int], np.dtype[np.str_]], truth: np.ndarray) -> float:
    """Return the accuracy of the most frequent answer; ties share their row."""
    share = 0.0
    for said, right in zip(answers, truth, strict=True):
        names, counts = np.unique(said[said != ""], return_counts=True)
        top = names[counts == counts.max()] if len(names) else []
        share += (right in top) / len(top) if len(top) else 0.0
    return share / len(truth)


def main() -> None:
    draws, gold_rows = (int(number) for number in [*sys.argv[1:], *["5", "200"][len(sys.argv) - 1 :]])
    warnings.simplefilter("ignore", PcsWarning)
    print(f"accuracy on the other rows, {gold_rows} gold rows, mean of {draws} draws, in %")
    print(f"{'':26}{'ours':>7}{'best':>7}{'chosen':>7}{'major.':>7}{'|c-a|':>7}{'accept':>8}{'broken':>8}")
    means = []
    for path in sorted((DATA / "textclass").glob("*.csv.gz")):
        rows = read_task(path)
        for name, wanted in PANELS.items():
            panel = panel_of(list(rows[0])[3:], wanted)
            found = [measure(rows, panel, gold_rows, seed) for seed in range(draws)]
            mean = np.nanmean(np.array(found)[:, :6], axis=0) * 100
            gap = 100 * float(np.mean([abs(one.confidence - one.ours) for one in found]))
            broken = sum(one.wrong > 0.10 for one in found)
            shown = sum(one.accepted > 0 for one in found)
            means.append(mean)
            title = f"{path.name.split('.')[0]} {name}"
            print(
                f"{title:26}"
                + "".join(f"{value:7.1f}" for value in mean[:4])
                + f"{gap:7.1f}{mean[5]:8.1f}{broken:5} of {shown}",
                flush=True,
            )
    total = np.mean(means, axis=0)
    rival = float(np.mean([max(mean[1], mean[3]) for mean in means]))
    print(f"{'mean':26}" + "".join(f"{value:7.1f}" for value in total[:4]))
    print(f"ours against the better of best single model (in hindsight) and majority: {total[0] - rival:+.2f} points")


if __name__ == "__main__":
    main()
