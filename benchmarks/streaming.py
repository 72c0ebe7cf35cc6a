"""Measures reading and writing large tables in chunks: CPU time per row, and the most memory that it takes.

`python benchmarks/streaming.py files` measures the files alone: reading, making texts of rows, adding columns as labels
would, and writing. `python benchmarks/streaming.py run` measures `pcs run` and `pcs label` from Parquet to Parquet with
a scripted model, and a second run of the finished job. Every measurement is a process of its own, so that its memory is
known. No time is asserted.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from pcs_annotator import PcsWarning, RunResult, Votes, Weights
from pcs_annotator.core.arrays import CODE
from pcs_annotator.core.outcome import result_names
from pcs_annotator.judging.model import Model
from pcs_annotator.runs.columns import result_columns, with_columns
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.settings import AskSettings, Config, RelationSettings, TaskSettings
from pcs_annotator.tables.chunks import Columns, IdCheck, TableStream, open_stream
from pcs_annotator.tables.write import writing_table
from pcs_annotator.verbs.label import Labelled
from tests.simulated import label, run

LABELS = ("positive", "neutral", "negative")
ROWS = 1_000_000
ENDINGS = (".parquet", ".csv", ".csv.gz", ".jsonl", ".jsonl.zst")


def texts(rows: int) -> Iterator[pa.Table]:
    """Yield a table of short texts, some with a gold label."""
    for start in range(0, rows, 10_000):
        numbers = range(start, min(start + 10_000, rows))
        yield pa.table(
            {
                "id": [f"row-{number}" for number in numbers],
                "text": [
                    f"Text number {number}: the weather was rather nice, all told, but late." for number in numbers
                ],
                "gold": [LABELS[number % 3] if number % 100 == 0 else None for number in numbers],
                "stars": [number % 5 for number in numbers],
            }
        )


def make(path: Path, rows: int) -> None:
    with writing_table(path) as writer:
        for table in texts(rows):
            writer.write(table)


def fingerprint(stream: TableStream, _out: Path) -> int:
    stream.fingerprint()
    return stream.rows or ROWS


def ids(stream: TableStream, _out: Path) -> int:
    return stream.check_ids()


def read(stream: TableStream, _out: Path) -> int:
    return sum(len(chunk.items) for chunk in stream.chunks())


def check(stream: TableStream, _out: Path) -> int:
    found = IdCheck()
    for chunk in stream.chunks():
        found.add(item.id for item in chunk.items)
    found.refuse_twins(stream)
    return found.rows


def copy(stream: TableStream, out: Path) -> int:
    rows = 0
    with writing_table(out) as writer:
        for chunk in stream.chunks():
            codes, ids = np.zeros((len(chunk.items), 1, 1), dtype=CODE), [item.id for item in chunk.items]
            votes = Votes(codes=codes, ids=ids, annotators=["a"], relations=["original"], labels=LABELS)
            model = Model(weights=Weights.uniform(votes), calibrator=None)
            writer.write(
                with_columns(chunk.table, result_columns(model, votes, model.judged(votes)), result_names(votes.labels))
            )
            rows += len(votes)
    return rows


STEPS = {"fingerprint": fingerprint, "ids": ids, "read": read, "check": check, "copy": copy}


def most_memory() -> float:
    """Return the most memory of this process in MB; the `ru_maxrss` of getrusage would include its parent's."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def measure(what: str, path: Path) -> None:
    """Print CPU µs per row and the most memory of one step, measured in this process."""
    start = time.process_time()
    stream = open_stream(path, Columns())
    opened = time.process_time()
    rows = STEPS[what](stream, path.with_name(f"out-{path.name}"))
    cpu = time.process_time() - opened
    print(
        f"{path.name:<12} {what:<12} {rows:>10,} rows  open {1e6 * (opened - start) / rows:5.2f} µs"
        f"  {1e6 * cpu / rows:6.2f} µs of CPU per row  {most_memory():5.0f} MB"
    )


def files(rows: int, folder: Path) -> None:
    for ending in ENDINGS:
        path = folder / f"data{ending}"
        make(path, rows)
        for what in STEPS:
            subprocess.run([sys.executable, __file__, "measure", what, str(path)], check=True, env=os.environ)
        path.unlink()
        path.with_name(f"out-{path.name}").unlink()


def request(data: Path, folder: Path) -> RunRequest:
    config = Config(
        task=TaskSettings(labels=LABELS),
        ask=AskSettings(models=("scripted:hash",)),
        relations=RelationSettings(use=("original",)),
    )
    return RunRequest(data=data, folder=folder, config=config)


def measure_run(what: str, data: Path) -> None:
    """Print rows per CPU second and the most memory of a run or of labelling, measured in this process."""
    folder = data.with_name(f"run-{data.stem}")
    warnings.simplefilter("ignore", PcsWarning)  # a model that guesses is worth nothing
    started = time.perf_counter(), time.process_time()
    if what == "label":
        result: RunResult | Labelled = label(request(data, folder), data.with_name(f"labels-{data.name}"))
    else:
        result = run(request(data, folder))
    seconds, cpu = time.perf_counter() - started[0], time.process_time() - started[1]
    rows = result.counts.rows
    print(
        f"{what:<10} {rows:>10,} rows  {result.tally.calls:>10,} calls  {cpu:7.1f} s of CPU  "
        f"{1e6 * cpu / rows:6.1f} µs per row  {rows / cpu:7,.0f} rows per CPU second  {most_memory():5.0f} MB  "
        f"{seconds:6.1f} s",
        flush=True,
    )


def runs(rows: int, folder: Path) -> None:
    for size in (10_000, rows):
        data, new = folder / f"{size}.parquet", folder / f"new-{size}.parquet"
        make(data, size)
        for what in ("run", "second run"):
            _measured("measure-run", what, data)
        make(new, size)
        (folder / f"run-{size}").rename(folder / f"run-new-{size}")
        _measured("measure-run", "label", new)


def _measured(mode: str, what: str, path: Path) -> None:
    subprocess.run([sys.executable, __file__, mode, what, str(path)], check=True, env=os.environ)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mode", choices=["files", "run", "measure", "measure-run"], nargs="?", default="files")
    parser.add_argument("what", nargs="*")
    parser.add_argument("--rows", type=int, default=ROWS)
    options = parser.parse_args()
    if options.mode in ("measure", "measure-run"):
        (measure if options.mode == "measure" else measure_run)(options.what[0], Path(options.what[1]))
        return
    with tempfile.TemporaryDirectory() as folder:
        (files if options.mode == "files" else runs)(options.rows, Path(folder))


if __name__ == "__main__":
    main()
