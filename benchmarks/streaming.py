"""Measures reading and writing large tables in chunks: CPU time per row, and the most memory that it takes.

`python benchmarks/streaming.py files` measures the files alone: reading, making texts of rows, adding columns as labels
would, and writing. Every measurement is a process of its own, so that its memory is known. No time is asserted.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from pcs_annotator.core.outcome import Outcome
from pcs_annotator.files.sources import open_stream
from pcs_annotator.files.table_stream import IdCheck, TableStream
from pcs_annotator.files.table_writer import writing_table
from pcs_annotator.files.tables import Columns, with_outcomes

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
    scores = dict(zip(LABELS, (0.7, 0.2, 0.1), strict=True))
    rows = 0
    with writing_table(out) as writer:
        for chunk in stream.chunks():
            outcomes = [
                Outcome(id=item.id, label="positive", scores=scores, confidence=0.7123456789, decision="accept")
                for item in chunk.items
            ]
            writer.write(with_outcomes(chunk.table, outcomes, LABELS))
            rows += len(outcomes)
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mode", choices=["files", "measure"], nargs="?", default="files")
    parser.add_argument("what", nargs="*")
    parser.add_argument("--rows", type=int, default=ROWS)
    options = parser.parse_args()
    if options.mode == "measure":
        measure(options.what[0], Path(options.what[1]))
        return
    with tempfile.TemporaryDirectory() as folder:
        files(options.rows, Path(folder))


if __name__ == "__main__":
    main()
