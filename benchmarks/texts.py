"""What a model of the texts adds to votes, on public annotation tasks with hard answers of real models.

For every task, panel of four models and draw of gold rows, with and without it: accuracy on the other rows, the share
of them that is usable with at most 10 % wrong (at the best threshold, known in hindsight), mean confidence less
accuracy, the share that a promise of at most 10 % errors accepts, and whether that promise was broken. Run it with
`python -m benchmarks.texts [DRAWS [GOLD_ROWS …]]`.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.development_data import DATA
from benchmarks.public_tasks import PANELS, panel_of, read_task
from pcs_annotator import ABSTAINED, PcsWarning, Votes
from pcs_annotator.core.arrays import Codes, Floats, Mask
from pcs_annotator.core.gold_codes import UNLABELLED
from pcs_annotator.judging.fit_model import Learning, fit_model
from pcs_annotator.judging.promise.promise import Promise
from pcs_annotator.judging.solver import one_thread

MAX_ERROR = 0.10
KEPT_ASIDE = ("policy_FR", "toxicity_RU", "sust_finance_EN")
"""Looked at only after everything was chosen."""


class Found(NamedTuple):
    """Means over the rows without gold."""

    accuracy: float
    usable: float
    too_sure: float
    accepted: float
    broken: float
    cpu: float


def votes_of(rows: Sequence[dict[str, str]], panel: Sequence[str]) -> tuple[Votes, Codes]:
    labels = sorted({row["gold"] for row in rows})
    code = {label: place for place, label in enumerate(labels)}
    codes = np.array([[[code.get(row[model], ABSTAINED)] for model in panel] for row in rows], dtype=np.int8)
    ids = [str(place) for place in range(len(rows))]
    texts = [row["text"] for row in rows]
    votes = Votes(codes=codes, ids=ids, annotators=panel, relations=["original"], labels=labels, texts=texts)
    return votes, np.array([code[row["gold"]] for row in rows], dtype=np.int8)


def usable_share(sure: Floats, right: Mask) -> float:
    """Return the largest share of rows, surest first, of which at most 10 % are wrong."""
    wrong = ~right[np.argsort(-sure, kind="stable")]
    kept = np.flatnonzero(np.cumsum(wrong) <= MAX_ERROR * np.arange(1, len(wrong) + 1))
    return float((kept[-1] + 1) / len(wrong)) if len(kept) else 0.0


def measure(votes: Votes, truth: Codes, gold_rows: int, seed: int, *, text: bool) -> Found:
    chosen = np.random.default_rng(seed).permutation(len(truth))
    gold, others = np.full(len(truth), UNLABELLED, dtype=np.int8), np.sort(chosen[gold_rows:])
    gold[chosen[:gold_rows]] = truth[chosen[:gold_rows]]
    start = time.process_time()
    how = Learning(optimiser="auto", text=text, promise=Promise(max_error=MAX_ERROR))
    with one_thread():
        model = fit_model(votes, gold, how).model
    cpu = time.process_time() - start
    new = votes.take(others)
    judged = model.judged(new)
    assert judged.probabilities is not None
    assert judged.accepted is not None
    right = (judged.best == truth[others]) & ~new.silent
    sure = judged.probabilities[np.arange(len(others)), judged.best]
    wrong = 1 - right[judged.accepted].mean() if judged.accepted.any() else 0.0
    return Found(
        float(right.mean()),
        usable_share(sure, right),
        float(sure.mean() - right.mean()),
        float(judged.accepted.mean()),
        float(wrong > MAX_ERROR),
        cpu,
    )


def main(draws: int = 5, *gold_rows: int) -> None:
    print(f"{'task':20}{'panel':7}{'gold':>5}  " + "  ".join(f"{name:>16}" for name in Found._fields))
    together: dict[tuple[str, int], list[Floats]] = {}
    for path in sorted((DATA / "textclass").glob("*.csv.gz")):
        task = path.name.removesuffix(".csv.gz")
        rows = read_task(path)
        for panel, wanted in PANELS.items():
            votes, truth = votes_of(rows, panel_of(list(rows[0]), wanted))
            for count in gold_rows or (100, 300, *((1_000,) if len(rows) > 2_000 else ())):
                if count > 0.75 * len(rows):
                    continue
                both = np.array(
                    [[measure(votes, truth, count, seed, text=text) for seed in range(draws)] for text in (False, True)]
                ).mean(axis=1)
                together.setdefault((panel, count), []).append(both)
                print(f"{task + ('*' if task in KEPT_ASIDE else ''):20}{panel:7}{count:5}  {_shown(both)}", flush=True)
    for (panel, count), found in together.items():
        print(f"{'mean':20}{panel:7}{count:5}  {_shown(np.mean(found, axis=0))}")


def _shown(both: Floats) -> str:
    return "  ".join(f"{before:7.3f} →{after:7.3f}" for before, after in both.T.tolist())


if __name__ == "__main__":
    warnings.simplefilter("ignore", PcsWarning)
    main(*map(int, sys.argv[1:]))
