"""Write the tables of docs/scale.md from prices and measured figures; with --check, fail if they are out of date."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

from pcs_annotator.core.chat import Usage
from pcs_annotator.models.catalog import price_of

PAGE = Path(__file__).resolve().parents[1] / "docs" / "scale.md"
BEGIN, END = "<!-- {} table: scripts/scaling_docs.py -->\n", "<!-- end of the {} table -->"
MODEL, MODELS, QUESTIONS = "openai:gpt-4o-mini", 3, 12
TOKENS = Usage(input_tokens=200, output_tokens=3)
CALLS_PER_SECOND = MODELS * 64 / 0.5
"""64 calls in flight to each model, half a second per call, no rate limit."""
NEEDED = 0.37
"""Share of hard questions that the labels needed, stopping early (benchmarks/batch.py, sentiment)."""
WAVES, LIVE_REST = 4, 0.08
"""Waves of batches, and the share of their calls that is asked live in the end."""
GPU_QUESTIONS_PER_SECOND, GPU_USD_PER_HOUR = 685, 3.0
"""Graded questions/s of a 1.7B model on one H200 (benchmarks/transformers_speed.py); the price is assumed."""
GRADED_QUESTIONS = 4
"""Graded questions say more, so one local model with four of them is compared."""

CLUSTER_ROWS, NODES, CPUS = 10_000_000, (1, 4, 16), 16
WORKER_MS, SERVER_MS, READING_MS, LEDGER_BYTES = 1.04, 0.82, 0.42, 209
"""Per call: processor time of a worker, of PostgreSQL and of the command that reads and judges in the end, and bytes
(benchmarks/results/cluster.md)."""


class Cost(NamedTuple):
    """Calls, dollars and hours."""

    calls: float
    usd: float
    hours: float

    def cell(self) -> str:
        """Return it as a table cell."""
        return f"{_short(self.calls)} · ${_short(self.usd)} · {_short(self.hours)} h"


def ways(rows: float) -> dict[str, Cost]:
    """Return way to ask → its cost."""
    price = price_of(MODEL)
    per_call = None if price is None else price.cost(TOKENS)
    if per_call is None:
        sys.exit(f"the catalogue has no price of {MODEL}")
    everything, needed = rows * QUESTIONS, rows * QUESTIONS * NEEDED
    live = needed * LIVE_REST
    graded = rows * GRADED_QUESTIONS / GPU_QUESTIONS_PER_SECOND / 3600
    return {
        "live, all questions": Cost(everything, everything * per_call, everything / CALLS_PER_SECOND / 3600),
        "live, stopping early": Cost(needed, needed * per_call, needed / CALLS_PER_SECOND / 3600),
        "batch, all questions": Cost(everything, everything * per_call / 2, 24),
        "batch, in waves": Cost(needed, (needed - live) * per_call / 2 + live * per_call, 24 * WAVES),
        "one GPU, 1.7B, graded": Cost(rows * GRADED_QUESTIONS, graded * GPU_USD_PER_HOUR, graded),
    }


def table() -> str:
    """Return the table."""
    sizes = [10**power for power in (4, 6, 7, 8)]
    lines = ["| rows | " + " | ".join(f"{size:,}" for size in sizes) + " |", "|---" * (len(sizes) + 1) + "|"]
    costs = [ways(size) for size in sizes]
    lines += [f"| {way} | " + " | ".join(cost[way].cell() for cost in costs) + " |" for way in costs[0]]
    return "\n".join(lines) + "\n"


def cluster_table() -> str:
    """Return calls per second and hours of clusters, and what limits them."""
    calls = CLUSTER_ROWS * QUESTIONS
    rates = [(_cluster_limits(nodes), nodes) for nodes in NODES]
    firsts = [min(limits, key=lambda name: limits[name]) for limits, _ in rates]
    fastest = [limits[first] for (limits, _), first in zip(rates, firsts, strict=True)]
    asking, judging = [calls / rate / 3600 for rate in fastest], calls * READING_MS / 3_600_000
    head = f"| nodes | {' | '.join(map(str, NODES))} |\n{'|---' * (len(NODES) + 1)}|\n"
    hours = [f"{_short(wait)} + {_short(judging)}" for wait in asking]
    lines = [["calls/s", *map(_short, fastest)], ["hours, asking + labelling", *hours], ["limit of asking", *firsts]]
    size = f"{_short(CLUSTER_ROWS)} rows, {_short(calls)} calls, {calls * LEDGER_BYTES / 1e9:.0f} GB in PostgreSQL:\n\n"
    return size + head + "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _cluster_limits(nodes: int) -> dict[str, float]:
    """Return what could limit a cluster → calls per second."""
    return {
        "calls in flight": nodes * CPUS * CALLS_PER_SECOND,
        "workers' CPUs": nodes * CPUS * 1000 / WORKER_MS,
        "PostgreSQL": CPUS * 1000 / SERVER_MS,
    }


def _short(number: float) -> str:
    for unit, name in ((1e9, " bn"), (1e6, " m")):
        if number >= unit:
            return f"{number / unit:.3g}{name}"
    return f"{number:,.0f}" if number >= 100 else f"{number:.2g}"


def main() -> None:
    """Write or check the page."""
    before = PAGE.read_text(encoding="utf-8")
    after = before
    for name, content in (("cost", table()), ("cluster", cluster_table())):
        begin, end = BEGIN.format(name), END.format(name)
        head, _, rest = after.partition(begin)
        after = head + begin + content + end + rest.partition(end)[2]
    if "--check" in sys.argv[1:] and after != before:
        sys.exit(f"{PAGE} is out of date: run python scripts/scaling_docs.py")
    PAGE.write_text(after, encoding="utf-8")


if __name__ == "__main__":
    main()
