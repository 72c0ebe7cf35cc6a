"""PCS as `pcs fit` fits it, against simple rivals, on every set of recorded answers that this machine has.

Every method sees the same answers and the same gold rows, and is measured on all other rows; the means are over several
draws of the gold rows. Rivals are calibrated on the gold rows as we are. Run it with
`python -m benchmarks.scoreboard [--splits N] [FOLDER …]`; it writes benchmarks/results/scoreboard.md, its picture, and
the figures of docs/how-good.md. `benchmarks/local_sets.py` says which layouts are recognised.
"""

import argparse
import sys
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks.development_data import DATA
from benchmarks.local_sets import LocalSet, local_sets, texts_in
from benchmarks.package_rivals import Observed, package_rivals
from benchmarks.rivals import DawidSkene, NaiveBayes, Stack
from benchmarks.scoreboard_picture import OURS, picture
from benchmarks.scoreboard_record import Figures, Row, brief, front, gold_rows, record
from pcs_annotator import Optimiser, PcsWarning, UserError
from pcs_annotator.core.arrays import Codes, Floats, Mask
from pcs_annotator.core.gold_codes import UNLABELLED
from pcs_annotator.judging.evaluate import methods
from pcs_annotator.judging.fit_model import Learning, fit_model
from pcs_annotator.judging.heldout import Judged
from pcs_annotator.judging.promise.thresholds import steps_of
from pcs_annotator.judging.score import choose
from pcs_annotator.judging.solver import one_thread
from pcs_annotator.judging.text_model import fit_text_model
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
BEGIN, END = "<!-- figures: benchmarks/scoreboard.py -->\n", "<!-- end of the figures -->"


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


def packages(one: LocalSet, gold: Codes, others: Mask) -> Iterator[tuple[str, Figures]]:
    """Yield the figures of rivals from other packages, as far as they are installed."""
    votes, known = one.votes, gold != UNLABELLED
    reader = None
    if votes.texts is not None:
        reader = fit_text_model([votes.texts[row] for row in np.flatnonzero(known).tolist()], gold[known], votes.labels)
    observed = Observed(
        votes=np.maximum(votes.codes.reshape(len(votes), -1), UNLABELLED),
        gold=gold,
        labels=len(votes.labels),
        text_probabilities=None if reader is None else np.exp(reader.read(votes.texts or (), votes.labels)),
    )
    for title, values in package_rivals(observed).items():
        new = values[others]
        best = new.argmax(axis=1).astype(np.int8)
        right = (best == one.truth[others]) & ~votes.take(others).silent
        yield title, measured(new.max(axis=1), best, right, methods.calls_of(votes, one.rewritten).total)


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
        found |= dict(packages(one, gold, others))
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


def main() -> None:
    """Measure, and write the record and the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "folders", nargs="*", type=Path, default=[DATA / name for name in ("textclass", "public", "babe", "recorded")]
    )
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--record", type=Path, default=ROOT / "benchmarks/results/scoreboard.md")
    parser.add_argument("--picture", type=Path, default=ROOT / "docs/images/scoreboard.svg")
    parser.add_argument("--page", type=Path, default=ROOT / "docs/how-good.md")
    parser.add_argument("--only-page", action="store_true", help="show the record that is there")
    chosen = parser.parse_args()
    if not chosen.only_page:
        measure_all(chosen.folders, chosen.splits, chosen.record)
    written = chosen.record.read_text(encoding="utf-8")
    chosen.picture.write_text(picture(written), encoding="utf-8")
    pages = {chosen.page: front, ROOT / "README.md": brief, ROOT / "docs" / "index.md": brief}
    for path, part in pages.items():
        figures = part(written)
        path.write_text(page_with(path.read_text(encoding="utf-8"), figures), encoding="utf-8")


def page_with(page: str, figures: str) -> str:
    """Return a page with the figures of a record."""
    head, _, rest = page.partition(BEGIN)
    return head + BEGIN + figures + END + rest.partition(END)[2]


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
