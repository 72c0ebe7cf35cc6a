"""PCS as `pcs fit` fits it, against simple rivals, on every set of recorded answers that this machine has.

Every method sees the same answers and the same gold rows, and is measured on all other rows; the means are over several
draws of the gold rows. Rivals are calibrated on the gold rows as we are. Run it with
`python -m benchmarks.scoreboard [--splits N] [FOLDER …]`; it writes benchmarks/results/scoreboard.md and
docs/images/scoreboard.svg. `benchmarks/local_sets.py` says which layouts are recognised.
"""

import argparse
import sys
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks.development_data import DATA
from benchmarks.local_sets import LocalSet, local_sets, texts_in
from benchmarks.rivals import DawidSkene, NaiveBayes, Stack
from benchmarks.scoreboard_picture import OURS, picture, tally
from pcs_annotator import Optimiser, PcsWarning, UserError
from pcs_annotator.core.arrays import Codes, Floats, Mask
from pcs_annotator.core.gold_codes import UNLABELLED
from pcs_annotator.judging.evaluate import methods
from pcs_annotator.judging.fit_model import Learning, fit_model
from pcs_annotator.judging.heldout import Judged
from pcs_annotator.judging.promise.thresholds import steps_of
from pcs_annotator.judging.score import choose
from pcs_annotator.judging.solver import one_thread
from pcs_annotator.runs.learn import KnownRows, learn
from pcs_annotator.runs.settings import LearnSettings

ROOT = Path(__file__).resolve().parents[1]
RIVALS = {
    "auto": f"{OURS}, votes alone",
    "majority": "majority vote",
    "zero-shot": "best single model",
    "dawid-skene": "Dawid–Skene",
    "naive-bayes": "naive Bayes",
    "stack": "stack with texts",
    "scaled logprob": "scaled log-probability",
}
LEARNERS: dict[str, Optimiser] = {"dawid-skene": DawidSkene(), "naive-bayes": NaiveBayes(), "stack": Stack()}
SELF_CONSISTENCY = "self-consistency"
MOST_WRONG = (0.05, 0.10)
USABLE = ("usable, ≤ 5 % wrong", "usable, ≤ 10 % wrong")


class Figures(NamedTuple):
    """Figures of a method on the rows without gold; of promises, the share accepted and the share wrong among them."""

    accuracy: float
    confidence_auroc: float
    usable_5: float
    usable_10: float
    calls: float
    accepted_5: float = np.nan
    wrong_5: float = np.nan
    accepted_10: float = np.nan
    wrong_10: float = np.nan


class Row(NamedTuple):
    """A method on a set, over all splits."""

    set: str
    method: str
    splits: Sequence[Figures]

    def mean(self, name: str) -> float:
        """Return the mean of a figure; nan where it has none."""
        values = np.array([getattr(one, name) for one in self.splits])
        return float(np.nanmean(values)) if np.isfinite(values).any() else np.nan

    def promises(self, percent: int) -> tuple[int, int]:
        """Return how many promises were made, and how many of them were kept on the other rows."""
        wrong = np.array([getattr(one, f"wrong_{percent}") for one in self.splits])
        made = wrong[np.isfinite(wrong)]
        return len(made), int((made <= percent / 100).sum())


def gold_rows(rows: int) -> int:
    """Return how many rows have gold: two fifths in steps of 50, at most 200."""
    return min(200, max(50, rows * 2 // 5 // 50 * 50))


def measured(sure: Floats, best: Codes, right: Mask, calls: float) -> Figures:
    """Return the figures of labels with a confidence; thresholds lie between different confidences."""
    steps = steps_of(Judged(sure, best, right))
    usable = [float(steps.rows[steps.wrong <= most * steps.rows].max(initial=0)) / len(right) for most in MOST_WRONG]
    auroc = float(roc_auc_score(right, sure)) if 0 < right.sum() < len(right) else np.nan
    return Figures(float(right.mean()), auroc, usable[0], usable[1], calls)


def ours(one: LocalSet, gold: Codes, others: Mask) -> Figures:
    """Return our figures: a fit per promise, with the default settings, but no intervals, which change nothing."""
    labels = [None if code == UNLABELLED else one.votes.labels[code] for code in gold.tolist()]
    calls = methods.calls_of(one.votes, one.rewritten).total
    new, truth = one.votes.take(others), one.truth[others]
    found, promised = None, []
    for most in MOST_WRONG:
        settings = LearnSettings(max_error=most, resamples=0)
        judged = learn(one.votes, labels, settings, KnownRows(texts=one.votes.texts)).model.judged(new)
        assert judged.probabilities is not None
        assert judged.accepted is not None
        right = (judged.best == truth) & ~new.silent
        sure = judged.probabilities[np.arange(len(truth)), judged.best]
        found = measured(sure, judged.best, right, calls)
        taken = judged.accepted
        promised += [float(taken.mean()), float((~right[taken]).mean()) if taken.any() else np.nan]
    assert found is not None
    return found._replace(**dict(zip(Figures._fields[5:], promised, strict=True)))


def rivals(one: LocalSet) -> Iterator[tuple[str, methods.Entrant]]:
    """Yield the methods that these votes allow."""
    for name, title in RIVALS.items():
        method = methods.OnCells(name=name, optimiser=LEARNERS[name]) if name in LEARNERS else name
        try:
            yield title, methods.ready(method, one.votes, one.rewritten)
        except UserError:
            continue
    if one.draws is not None:
        budget = methods.calls_of(one.votes, one.rewritten).total
        yield SELF_CONSISTENCY, methods.ready(methods.self_consistency(one.draws, budget), one.draws)


def rival(entrant: methods.Entrant, one: LocalSet, gold: Codes, others: Mask) -> Figures:
    """Return the figures of a rival, calibrated on the same gold rows; one that learns nothing keeps its label."""
    assert entrant.optimiser is not None
    reads = isinstance(entrant.optimiser, Stack) and one.votes.texts is not None
    model = fit_model(entrant.votes, gold, Learning(optimiser=entrant.optimiser, text=reads)).model
    new = entrant.votes.take(others)
    judged = model.judged(new)
    best = judged.best if entrant.learns else choose(judged.scores, new.labels)
    values = judged.scores if judged.probabilities is None else judged.probabilities
    right = (best == one.truth[others]) & ~new.silent
    return measured(values[np.arange(len(best)), best], best, right, entrant.calls.total)


def one_split(work: tuple[LocalSet, int]) -> dict[str, Figures]:
    """Return the figures of all methods for one draw of the gold rows."""
    one, seed = work
    warnings.simplefilter("ignore", PcsWarning)
    rows = len(one.truth)
    chosen = np.random.default_rng(seed).permutation(rows)[: gold_rows(rows)]
    gold = np.full(rows, UNLABELLED, dtype=np.int8)
    gold[chosen] = one.truth[chosen]
    others = gold == UNLABELLED
    with one_thread():
        found = {OURS: ours(one, gold, others)}
        found |= {title: rival(entrant, one, gold, others) for title, entrant in rivals(one)}
    return found


def board(sets: Sequence[LocalSet], splits: int) -> list[Row]:
    """Return all methods on all sets."""
    work = [(one, seed) for one in sets for seed in range(splits)]
    with ProcessPoolExecutor(max_workers=2) as pool:
        found = list(pool.map(one_split, work))
    rows = []
    for place, one in enumerate(sets):
        own = found[place * splits : (place + 1) * splits]
        rows += [Row(one.name, method, [split[method] for split in own]) for method in own[0]]
    return rows


def share(value: float) -> str:
    """Return a share in per cent."""
    return "–" if np.isnan(value) else f"{100 * value:.1f}"


def cells(row: Row) -> list[str]:
    """Return a line of the table."""
    figures = [share(row.mean(name)) for name in ("accuracy", "usable_5", "usable_10")]
    figures.insert(1, "–" if np.isnan(row.mean("confidence_auroc")) else f"{row.mean('confidence_auroc'):.3f}")
    promises = []
    for percent in (5, 10):
        made, kept = row.promises(percent)
        promises.append(f"{share(row.mean(f'accepted_{percent}'))}; {kept} of {made}" if row.method == OURS else "–")
    return [row.set, row.method, *figures, *promises, f"{row.mean('calls'):.1f}"]


def against(rows: Sequence[Row], name: str) -> dict[str, list[tuple[str, float]]]:
    """Return rival → the sets it is on, and how far we are ahead there in one figure."""
    mine = {row.set: row.mean(name) for row in rows if row.method == OURS}
    found: dict[str, list[tuple[str, float]]] = {}
    for row in rows:
        if row.method != OURS and np.isfinite(row.mean(name)):
            found.setdefault(row.method, []).append((row.set, mine[row.set] - row.mean(name)))
    return found


def table(heading: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a table as Markdown."""
    marks = ["---" if place < 1 else "---:" for place in range(len(heading))]
    return "\n".join("| " + " | ".join(line) + " |" for line in [heading, marks, *lines]) + "\n"


def record(sets: Sequence[LocalSet], rows: Sequence[Row], splits: int, spent: str) -> str:
    """Return the page."""
    mine = [row for row in rows if row.method == OURS]
    summary = []
    names = ("accuracy", "confidence_auroc", "usable_5", "usable_10")
    gaps = {name: against(rows, name) for name in names}
    for method, found in gaps["accuracy"].items():
        line = [method, str(len(found))]
        for name in names:
            values = [value for _, value in gaps[name][method]]
            line.append(f"{100 * float(np.mean(values)):+.1f} ({tally(values)})")
        summary.append(line)
    kept = []
    for percent in (5, 10):
        counts = np.array([row.promises(percent) for row in mine]).sum(axis=0)
        accepted = share(float(np.mean([row.mean(f"accepted_{percent}") for row in mine])))
        kept.append(
            f"at most {percent} % wrong: promised in {counts[0]} of {splits * len(mine)} fits, kept on the other rows "
            f"in {counts[1]} of them; {accepted} % of the rows accepted on average"
        )
    losses = sorted((value, name, method) for method, one in gaps["accuracy"].items() for name, value in one)
    worst = "; ".join(f"{name}: {100 * value:+.1f} against {method}" for value, name, method in losses[:6] if value < 0)
    lines = [
        [one.name, f"{len(one.truth):,}", str(gold_rows(len(one.truth))), str(len(one.votes.annotators)),
         str(len(one.votes.relations)), str(len(one.votes.labels)), "yes" if one.votes.texts else "no"]
        for one in sets
    ]  # fmt: skip
    return HEAD.format(splits=splits, spent=spent) + "\n".join(
        [
            table(["PCS less the rival, in points", "sets", "accuracy", "confidence AUROC", *USABLE], summary),
            "In brackets: sets on which PCS is ahead / within one point / behind.\n",
            "Promises of PCS: " + "; ".join(kept) + ". A promise may fail in 10 % of fits.\n",
            f"The largest losses in accuracy: {worst or 'none'}.\n",
            "## The sets\n",
            table(["set", "rows", "gold rows", "models", "questions", "labels", "texts known"], lines),
            "## All figures\n",
            table(
                ["set", "method", "accuracy", "confidence AUROC", *USABLE,
                 "accepted under ≤ 5 %; kept", "accepted under ≤ 10 %; kept", "calls per text"],
                [cells(row) for row in rows],
            ),
        ]
    )  # fmt: skip


HEAD = """# Scoreboard

<!-- written by benchmarks/scoreboard.py; do not edit -->

PCS with the defaults of `pcs fit` (`auto`, with the model of the texts where texts are known) against simple rivals.
All see the same recorded answers and gold rows, and are measured on the other rows; means of {splits} draws of the gold
rows. Every rival is calibrated on the gold rows too, so that it has a confidence; it makes no promise. *Usable*: the
largest share of the rows, surest first, with at most so many wrong, if the threshold were known. *Accepted*: what PCS
really accepts under its promise, where the threshold is not known. PCS and *stack with texts* (a conditional logit of
votes and the same model of the texts) read the texts; *votes alone* is PCS without them. {spent}

"""


def main() -> None:
    """Measure, and write the record and the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "folders", nargs="*", type=Path, default=[DATA / name for name in ("textclass", "public", "babe", "recorded")]
    )
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--record", type=Path, default=ROOT / "benchmarks/results/scoreboard.md")
    parser.add_argument("--picture", type=Path, default=ROOT / "docs/images/scoreboard.svg")
    parser.add_argument("--only-picture", action="store_true", help="draw the record that is there")
    chosen = parser.parse_args()
    if not chosen.only_picture:
        measure_all(chosen.folders, chosen.splits, chosen.record)
    chosen.picture.write_text(picture(chosen.record.read_text(encoding="utf-8")), encoding="utf-8")


def measure_all(folders: Sequence[Path], splits: int, out: Path) -> None:
    """Measure all sets in some folders, and write the record."""
    warnings.simplefilter("ignore", PcsWarning)
    texts = texts_in(DATA / "texts")
    sets = [one for folder in folders for one in local_sets(folder, texts)]
    if not sets:
        sys.exit(f"no recorded answers in {', '.join(map(str, folders))}: see benchmarks/local_sets.py")
    cpu = _cpu()
    rows = board(sets, splits)
    spent = f"All {len(sets)} sets took {_cpu() - cpu:.0f} s of CPU, shared by two processes."
    out.write_text(record(sets, rows, splits, spent), encoding="utf-8")
    print(out.read_text(encoding="utf-8"))


def _cpu() -> float:
    import resource

    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


if __name__ == "__main__":
    main()
