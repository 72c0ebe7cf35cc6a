"""Whether what we say about labels is true: every claim beside what repetitions show.

    python -m benchmarks.claims [REPETITIONS] [CHECK …]

Each check draws gold rows at random many times, learns from them alone and compares what is claimed with the other
rows. `benchmarks/results/promises.md` carries the results.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module

from threadpoolctl import threadpool_limits

from benchmarks.claim_checks.claim import Claim
from benchmarks.development_data import DATA
from pcs_annotator import PcsWarning

CHECKS: tuple[str, ...] = (
    "calibration",
    "drift",
    "growing_audits",
    "intervals",
    "no_gold",
    "printed_tests",
    "promises",
)


def main() -> None:
    warnings.simplefilter("ignore", PcsWarning)
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    if not DATA.is_dir():
        print(f"no development data at {DATA}")
        return
    kept = total = 0
    with threadpool_limits(limits=1):
        for name in sys.argv[2:] or CHECKS:
            check: Callable[[int], Iterator[Claim]] = import_module(f"benchmarks.claim_checks.{name}").check
            for one in check(repetitions):
                total, kept = total + 1, kept + one.kept
                mark = "kept" if one.kept else "NOT KEPT"
                print(
                    f"{one.claim:44} {one.where:48} asked {one.asked:16} measured {one.measured:16} {mark}", flush=True
                )
    print(f"{kept} of {total} claims kept")


if __name__ == "__main__":
    main()
