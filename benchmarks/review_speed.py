"""How quick a review of 100,000 rows is: start, memory, CPU per item, filters, and the list of 50 rows.

Run it with `python -m benchmarks.review_speed [FOLDER] [--rows N]`. The run folder is made once, in FOLDER (default:
a temporary one), with the writers of the library and a real fit; no model is called.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from pcs_annotator import Item, Variant, Votes
from pcs_annotator.asking.ledger.sqlite import Ledger
from pcs_annotator.core.arrays import Codes, Grades, Integers
from pcs_annotator.core.events import SEQUENCE, Queue
from pcs_annotator.runs.paths import RunFolder, write_start
from pcs_annotator.runs.settings import AskSettings, Config, DataSettings, LearnSettings, RelationSettings, TaskSettings
from pcs_annotator.runs.toml import config_to_dict
from pcs_annotator.tables import vote_files, write
from pcs_annotator.version import __version__

LABELS = ("negative", "neutral", "positive")
MODELS = ("simulated:large", "simulated:middle", "simulated:small")
RELATIONS = ("original", "frame", "case", "order")
ACCURACY = (0.85, 0.78, 0.7)
GOLD_ROWS = 600
SENTENCE = "the council approved a plan on Monday and did not say why people were angry about new prices"
TASK = "How does the writer feel?"


def make_run(path: Path, rows: int) -> None:
    """Write a run folder with simulated graded votes, and fit it."""
    import pyarrow as pa

    folder, rng = RunFolder(path), np.random.default_rng(0)
    truth = rng.integers(len(LABELS), size=rows)
    lengths = rng.integers(12, 40, size=rows)
    texts = [
        f"Row {row}: " + " ".join(rng.choice(SENTENCE.split(), size=int(size))) for row, size in enumerate(lengths)
    ]
    ids = [f"row-{row:06d}" for row in range(rows)]
    gold = [LABELS[code] if row < GOLD_ROWS else None for row, code in enumerate(truth.tolist())]
    topic = rng.choice(["politics", "sport", "money", "science"], size=rows)
    table = pa.table({"id": ids, "text": texts, "gold": gold, "topic": topic, "likes": rng.integers(1000, size=rows)})
    config = Config(
        task=TaskSettings(labels=LABELS, instruction=TASK),
        data=DataSettings(text_column="text", id_column="id", gold_column="gold"),
        ask=AskSettings(models=MODELS),
        relations=RelationSettings(use=RELATIONS),
        learn=LearnSettings(optimiser="lr", folds=3, resamples=20, max_error=0.1),
    )
    path.mkdir(parents=True, exist_ok=True)
    start = {"version": __version__, "data": "simulated.csv", "data_hash": "", "asked": "simulated"}
    names = {"annotators": list(MODELS), "relations": list(RELATIONS), "config": config_to_dict(config)}
    write_start(folder, {**start, **names})
    folder.own_folder.mkdir(parents=True, exist_ok=True)
    write.write_table(folder.items, table)
    with vote_files.writing_variants(folder.variants, {"asked": "simulated"}) as note:
        for name, text in zip(ids, texts, strict=True):
            item = Item(id=name, text=text)
            note(item, Variant(relation="frame", status="changed", text=f"He wrote: {text}", source=text))
            note(item, Variant(relation="case", status="not_applicable", reason="no letter with a case"))
            note(item, Variant(relation="order", status="original", text=text, source=text))
    codes, grades = simulated_votes(truth, rng)
    votes = Votes(codes=codes, ids=ids, annotators=MODELS, relations=RELATIONS, labels=LABELS, grades=grades)
    tally: dict[str, object] = {"failed": {}, "refused": {}, "unreadable": {}, "cut": {}}
    vote_files.write_votes(folder.votes, votes, {"asked": "simulated", "tally": tally, "ledger": {"at": 0, "calls": 0}})
    with Ledger(folder.ledger):
        pass  # an empty one: nothing was paid for
    subprocess.run([sys.executable, "-m", "pcs_annotator", "fit", str(path), "-q"], check=True)


def simulated_votes(truth: Integers, rng: np.random.Generator) -> tuple[Codes, Grades]:
    """Return graded votes of models that are right with a given probability."""
    shape = (len(truth), len(MODELS), len(RELATIONS), 1)
    right = rng.random(shape) < np.array(ACCURACY)[np.newaxis, :, np.newaxis, np.newaxis]
    other = (truth[:, None, None, None] + rng.integers(1, len(LABELS), size=shape)) % len(LABELS)
    codes = np.where(right, truth[:, None, None, None], other).astype(np.int8)
    sure = rng.uniform(0.5, 0.98, size=shape).astype(np.float32)
    grades: Grades = np.repeat(((1 - sure) / np.float32(len(LABELS) - 1))[..., np.newaxis], len(LABELS), axis=-1)
    np.put_along_axis(grades, codes[..., np.newaxis].astype(np.intp), sure[..., np.newaxis], axis=-1)
    return codes, grades


def memory() -> tuple[int, int]:
    """Return the memory of this process in MB, now and at its highest."""
    lines = Path("/proc/self/status").read_text().splitlines()
    found = {line.split(":")[0]: int(line.split()[1]) // 1024 for line in lines if line.startswith("Vm")}
    return found["VmRSS"], found["VmHWM"]


def timed(act: Callable[[], object], times: int, clock: Callable[[], float] = time.process_time) -> tuple[float, float]:
    """Return the median and the longest time of an action, in milliseconds."""
    taken = []
    for _ in range(times):
        began = clock()
        act()
        taken.append(1000 * (clock() - began))
    return statistics.median(taken), max(taken)


def measure(path: Path) -> None:
    """Open the run as the page does, in a fresh process, and print every figure."""
    began = time.perf_counter()
    from pcs_annotator.reviewing.session import Review
    from pcs_annotator.reviewing.values import Given, ReviewOptions

    imported = time.perf_counter() - began
    review = Review.open(path, ReviewOptions(refit_every=0))
    opened = time.perf_counter() - began
    rows = review.progress("ann").rows
    used = time.process_time()
    print(f"{rows:,} rows: start {opened:.2f} s, {imported:.2f} s of them imports; {used:.2f} s CPU; {memory()[0]} MB")

    def judge(queue: Queue) -> None:
        shown = review.next_row("ann", queue)
        assert shown is not None
        review.submit(
            Given(
                id=shown.id,
                label=review.labels[0],
                reviewer="ann",
                queue=shown.queue,
                lease=shown.lease,
                version=shown.version,
                seconds=1.0,
            )
        )

    for queue in (*SEQUENCE, "doubtful"):
        print("{}: {:.1f} ms CPU per item, at most {:.1f}".format(queue, *timed(partial(judge, queue), 40)))
    print("progress: {:.1f} ms, at most {:.1f}".format(*timed(lambda: review.progress("ann"), 20)))
    print("memory {} MB at the end, {} MB at its highest".format(*memory()))
    review.close()


def main() -> None:
    """Make the run folder if it is not there, and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--measure", action="store_true", help="only measure, in this process")
    given = parser.parse_args()
    if given.measure:
        measure(given.folder)
        return
    with tempfile.TemporaryDirectory() as temporary:
        path = given.folder or Path(temporary) / "run"
        if not (path / "variables/label/model.json").exists():
            make_run(path, given.rows)
        subprocess.run([sys.executable, "-m", "benchmarks.review_speed", str(path), "--measure"], check=True)


if __name__ == "__main__":
    main()
