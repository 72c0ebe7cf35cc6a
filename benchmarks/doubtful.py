"""What `--ask doubtful` saves and costs, on public annotation tasks with hard answers of real models.

For every task, panel of four models and draw of gold rows: accuracy on the other rows if every question is asked, the
change by asking only about texts that their words do not settle, the share of calls that is saved by stopping exactly
and by this, the share of texts nobody asks about, mean confidence less accuracy, and whether a promise of at most 10 %
errors was broken. Run it with `python -m benchmarks.doubtful [DRAWS [GOLD_ROWS]]`.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from benchmarks.development_data import DATA
from benchmarks.public_tasks import PANELS, panel_of, read_task
from benchmarks.texts import KEPT_ASIDE, MAX_ERROR, votes_of
from pcs_annotator import NOT_ASKED, PcsWarning, Votes
from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.core.gold import UNLABELLED
from pcs_annotator.judging.evaluate.scored import one_thread
from pcs_annotator.judging.fit_model import Learning, fit_model
from pcs_annotator.judging.frugal import learn_frugal, simulate
from pcs_annotator.judging.promise.promise import Promise


class Spared(NamedTuple):
    """Figures of the rows without gold."""

    asking_all: float  # accuracy
    change: float  # of accuracy, by asking only where needed
    saved_exactly: float  # share of calls that are saved although no label changes
    saved: float  # share of calls that are saved by asking only about doubtful texts
    unasked: float  # share of texts that nobody is asked about
    too_sure: float
    accepted: float
    broken: float


def measure(votes: Votes, truth: Codes, gold_rows: int, seed: int) -> Spared:
    chosen = np.random.default_rng(seed).permutation(len(truth))
    known, others = np.sort(chosen[:gold_rows]), np.sort(chosen[gold_rows:])
    # half of the other texts have votes when the model is learned, as in a run; the rest are new
    asked, new = np.sort(np.concatenate([known, others[::2]])), others[1::2]
    gold = np.full(len(truth), UNLABELLED, dtype=np.int8)
    gold[known] = truth[known]
    how = Learning(optimiser="auto", text=True, promise=Promise(max_error=MAX_ERROR))
    ran, texts = votes.take(asked), votes.take(new)
    with one_thread():
        everything = fit_model(ran, gold[asked], how).model.judged(texts).best
        exact = learn_frugal(ran, gold[asked], how)
        doubtful = learn_frugal(ran, gold[asked], replace(how, doubtful=True))
        spared = simulate(texts, doubtful.strategy)
    judged = doubtful.model.judged(spared.votes)
    assert judged.probabilities is not None
    assert judged.accepted is not None
    right = (judged.best == truth[new]) & ~doubtful.model.unlabelled(spared.votes)
    sure = judged.probabilities[np.arange(len(new)), judged.best]
    wrong = 1 - right[judged.accepted].mean() if judged.accepted.any() else 0.0
    calls = int((texts.codes != NOT_ASKED).sum())
    return Spared(
        float((everything == truth[new]).mean()),
        float(right.mean() - (everything == truth[new]).mean()),
        1 - float(simulate(texts, exact.strategy).asked.sum()) / calls,
        1 - float(spared.asked.sum()) / calls,
        float((spared.asked == 0).mean()),
        float(sure.mean() - right.mean()),
        float(judged.accepted.mean()),
        float(wrong > MAX_ERROR),
    )


def main(draws: int = 5, gold_rows: int = 300) -> None:
    print(f"{'task':20}{'panel':7}{'gold':>5}{'labels':>7}  " + "".join(f"{name:>14}" for name in Spared._fields))
    binary: list[Floats] = []
    for path in sorted((DATA / "textclass").glob("*.csv.gz")):
        task, rows = path.name.removesuffix(".csv.gz"), read_task(path)
        count = min(gold_rows, int(0.6 * len(rows)))
        for panel, wanted in PANELS.items():
            votes, truth = votes_of(rows, panel_of(list(rows[0]), wanted))
            found = np.mean([measure(votes, truth, count, seed) for seed in range(draws)], axis=0)
            if len(votes.labels) == 2:
                binary.append(found)
            name = task + ("*" if task in KEPT_ASIDE else "")
            print(f"{name:20}{panel:7}{count:5}{len(votes.labels):7}  {_shown(found)}", flush=True)
    print(f"{'mean of binary tasks':39}  {_shown(np.mean(binary, axis=0))}")


def _shown(found: Floats) -> str:
    return "".join(f"{value:14.3f}" for value in found.tolist())


if __name__ == "__main__":
    warnings.simplefilter("ignore", PcsWarning)
    main(*map(int, sys.argv[1:]))
