"""How long a whole run takes with one text of 1, 5 and 10 MB among twelve short ones, and with which share of it where.

No model takes such texts; what is measured is everything around the calls. Run it with `python benchmarks/long_texts.py
[--profile]`. Each kind of text and size has a process of its own, stopped after `LIMIT` seconds.
"""

from __future__ import annotations

import cProfile
import multiprocessing
import pstats
import sys
import tempfile
import time
import warnings
from pathlib import Path

import pcs_annotator as pcs

LIMIT = 300
SIZES = (1, 5, 10)
KINDS = {
    "words": "lorem ipsum dolor sit amet ",
    "one word": "x",
    "addresses": "a@",
    "blanks": " ",
    "sentences": "Ann Lee met Bob of the BBC. He did not like it, she said. ",
    "lines": "no end\n",
}


def label(kind: str, megabytes: float, *, profiled: bool = False) -> None:
    """Label a table with one long text."""
    piece = KINDS[kind]
    long = "The end: " + piece * (int(megabytes * 1_000_000) // len(piece))
    rows = [*(f"The film number {number} was good." for number in range(12)), long]
    profile = cProfile.Profile()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = time.process_time()
        if profiled:
            profile.enable()
        pcs.run(
            rows,
            labels=["good", "bad"],
            models=["scripted:hash", "scripted:hash:2"],
            relations=["case", "typo", "frame", "layout", "order"],
            out=Path(folder) / "run",
        )
        profile.disable()
        print(f"{kind:10} {megabytes:3} MB {time.process_time() - started:7.1f} s of processor time", flush=True)
    if profiled:
        pstats.Stats(profile).sort_stats("tottime").print_stats(12)


def main() -> None:
    """Print a line for each kind and size."""
    for kind in KINDS:
        for megabytes in SIZES:
            process = multiprocessing.get_context("spawn").Process(
                target=label, args=(kind, megabytes), kwargs={"profiled": "--profile" in sys.argv}
            )
            process.start()
            process.join(LIMIT)
            if process.is_alive():
                process.kill()
                print(f"{kind:10} {megabytes:3} MB stopped after {LIMIT} s", flush=True)
                break


if __name__ == "__main__":
    main()
