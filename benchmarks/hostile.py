"""Lets hostile servers answer, one per case, and measures what they cost: memory, and time past the deadline.

Run it with `python benchmarks/hostile.py`, or a part with `python benchmarks/hostile.py bomb usage`. All servers are on
127.0.0.1; every case is asked from a fresh process, so that its peak memory is its own, and ends by itself within
seconds. The cases are those of `tests/asking/models/test_hostile.py`, and one more: too few open files.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import re
import resource
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from tests.models.hostile import CASES, MB, Case, ask, says, serving  # noqa: E402

DEADLINE = 3.0
ROWS = 100
LONGEST = 12.0
SHOWN = 300
MOST_MB, MOST_LATE = 300.0, 2.0
FEW_FILES = "too many open files"


async def measure(name: str) -> dict[str, Any]:
    """Run a case: the server here, the questions in a fresh process."""
    case = CASES.get(name) or Case("", says)
    async with serving(case.serve()) as url:
        command = [sys.executable, __file__, "--victim", url, "--answers", case.answers]
        command += ["--few-files"] if name == FEW_FILES else []
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        try:
            printed, _ = await asyncio.wait_for(process.communicate(), 3 * LONGEST)
        except TimeoutError:
            process.kill()
            await process.wait()
            return {"seen": "did not end", "mb": math.inf, "late": math.inf}
    if process.returncode:
        return {"seen": f"exit code {process.returncode}", "mb": math.inf, "late": math.inf}
    found: dict[str, Any] = json.loads(printed.splitlines()[-1])
    return found


async def victim(url: str, answers: Any) -> dict[str, Any]:
    seen = await ask(url, answers=answers, rows=ROWS, deadline=DEADLINE, longest=LONGEST)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return {"seen": seen.text, "mb": peak / MB, "late": max(0.0, seen.longest - DEADLINE)}


async def main(words: list[str]) -> None:
    worst_mb, worst_late = 0.0, 0.0
    print(f"| case | the user sees | peak MB | seconds past the deadline of {DEADLINE:g} s |\n|---|---|---|---|")
    for name in (*CASES, FEW_FILES):
        if words and not any(word.lower() in name.lower() for word in words):
            continue
        found = await measure(name)
        worst_mb, worst_late = max(worst_mb, found["mb"]), max(worst_late, found["late"])
        seen = re.sub(r"http://127[\d.:]+/v1(#m)?", "URL", found["seen"]).replace("|", "/")[:SHOWN]
        print(f"| {name} | {seen} | {found['mb']:.0f} | {found['late']:.1f} |", flush=True)
    print(f"\nworst: {worst_mb:.0f} MB (at most {MOST_MB:g}), {worst_late:.1f} s late (at most {MOST_LATE:g})")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="only cases with one of these words in their name")
    parser.add_argument("--victim", help=argparse.SUPPRESS)
    parser.add_argument("--answers", help=argparse.SUPPRESS)
    parser.add_argument("--few-files", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.few_files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))
    if given.victim:
        print(json.dumps(asyncio.run(victim(given.victim, given.answers))))
    else:
        asyncio.run(main(given.words))
