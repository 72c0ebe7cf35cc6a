"""Damaged input at every door, many times: our own errors or none, and no label that is not in the reply.

`PCS_FUZZ_CASES` is the number of cases per door (10,000 in all if it is absent), `PCS_FUZZ_FIRST` the first one's
number: `python -m tests.fuzz.test_fuzz` runs a million in all. A case that fails is named by door and number, and
`try_one(door, number, folder)` repeats it.
"""

import gc
import os
import random
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from pcs_annotator import PcsError, PcsWarning
from tests.fuzz.doors import DOORS

pytestmark = pytest.mark.slow

CASES = int(os.environ.get("PCS_FUZZ_CASES", "1700"))
FIRST = int(os.environ.get("PCS_FUZZ_FIRST", "0"))
ENOUGH = 5
IN_MEMORY = Path("/dev/shm")  # Linux: a case has up to three files, and on a disk they take most of its time


def try_one(door: str, number: int, folder: Path) -> str:
    """Return what went wrong with a case; empty if nothing did."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PcsWarning)
            DOORS[door](random.Random(f"{door} {number}"), folder)
    except PcsError:
        return ""
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of a library in Rust is no Exception
        return f"{door} {number}: {type(error).__name__}: {str(error)[:300]}"
    return ""


def failures(door: str, numbers: range, folder: Path) -> Iterator[str]:
    """Yield what went wrong, case by case."""
    for number in numbers:
        if said := try_one(door, number, folder):
            yield said
        if number % 2000 == 0:
            gc.collect()


@pytest.mark.parametrize("door", DOORS)
def test_damaged_input_is_read_or_refused(door: str, tmp_path: Path) -> None:
    found = []
    for said in failures(door, range(FIRST, FIRST + CASES), tmp_path):
        found.append(said)
        if len(found) == ENOUGH:
            break
    assert found == []


def main(total: int = 1_000_000, seconds: float = 1200, first: int = 0) -> int:
    """Try the doors in turn for a while, print how many cases each had, and return 1 if any failed."""
    until, done, bad, step = time.monotonic() + seconds, Counter[str](), list[str](), 500
    with tempfile.TemporaryDirectory(prefix="pcs-fuzz-", dir=IN_MEMORY if IN_MEMORY.is_dir() else None) as name:
        for start in range(first, first + total, step):
            for door in DOORS:
                if done.total() >= total or time.monotonic() > until:
                    break
                found = list(failures(door, range(start, start + step), Path(name)))
                print("\n".join(found), end="\n" * bool(found), flush=True)
                bad += found
                done[door] += step
    print(f"{dict(done)}: {done.total():,} cases from number {first:,} on, {len(bad)} failed")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:4])))
