"""`--executor ray` on two local workers, against a server that takes 200 ms per answer: speed, losses, limits.

Run it with `python -m benchmarks.cluster [speed|worker|rate|budgets ...]`.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from bisect import bisect_left
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from pcs_annotator import NOT_ASKED, Item, Task, Votes  # noqa: E402
from pcs_annotator.asking.engine.budget import Budget  # noqa: E402
from pcs_annotator.asking.ledger.open_ledger import open_ledger  # noqa: E402
from pcs_annotator.runs import ask  # noqa: E402
from pcs_annotator.runs.executors import ask_job  # noqa: E402
from tests.postgres import postgres_server  # noqa: E402
from tests.ray_cluster import kill_one, start_ray  # noqa: E402
from tests.stub import Behaviour, Stats, StubProcess, stub_process  # noqa: E402

LATENCY = 0.2
IN_FLIGHT = 32
SERVER = Behaviour(labels=("good", "bad"), logprobs="ignored", latency_s=LATENCY, record_times=True)


class Spending(NamedTuple):
    """What the ledger says was paid for."""

    calls: int
    tokens: int
    usd: float


class Asked(NamedTuple):
    """What came of a run: votes, what the server saw, and how many calls are in the ledger."""

    votes: Votes
    seen: Stats
    stored: int
    paid: Spending

    @property
    def lost(self) -> int:
        """Rows without a vote."""
        return int((self.votes.codes == NOT_ASKED).all(axis=(1, 2, 3)).sum())

    @property
    def per_second(self) -> float:
        """Calls per second between the arrivals of the first and the last tenth, when all workers were there."""
        times = sorted(self.seen.arrivals)
        low, high = len(times) // 10, len(times) * 8 // 10
        return (high - low) / (times[high] - times[low])


def asked(
    stub: StubProcess,
    rows: int,
    *,
    workers: int = 2,
    budget: Budget | None = None,
    max_per_second: float | None = None,
    disturb: Callable[[], object] | None = None,
) -> Asked:
    """Ask about texts on the cluster, and once a third is answered, disturb it."""
    stub.reset()
    settings = ask.CollectSettings(
        in_flight=IN_FLIGHT,
        budget=budget or Budget(),
        max_per_second=max_per_second,
        prices={f"{stub.url}#m": (1.0, 2.0)},
        environment={},
        answers="hard",
        cluster=ask.ClusterSettings(workers=workers),
    )
    items = [Item(id=str(row), text=f"Text number {row} of {rows} by {time.time()}") for row in range(rows)]
    job = ask.open_job(Task("Good or bad?", ["good", "bad"]), [f"{stub.url}#m"], ["original"], settings)

    def disturb_at_a_third() -> None:
        while stub.stats().answered < rows // 3:
            time.sleep(0.02)
        assert disturb is not None
        disturb()

    with postgres_server() as server:
        ledger = server.new_ledger()
        disturbing = threading.Thread(target=disturb_at_a_third, daemon=True)
        if disturb is not None:
            disturbing.start()
        votes = asyncio.run(ask_job(job, items, ledger, settings))
        if disturb is not None:
            disturbing.join()
        with open_ledger(ledger) as opened:
            (bill,) = opened.bills()
            paid = Spending(bill.calls, bill.input_tokens + bill.output_tokens, bill.usd or 0.0)
            return Asked(votes, stub.stats(full=True), opened.count(), paid)


def speed(stub: StubProcess) -> None:
    one, two = (asked(stub, 1500 * workers, workers=workers).per_second for workers in (1, 2))
    most = IN_FLIGHT / LATENCY
    print(f"speed: {one:.0f} calls/s with one worker (at most {most:.0f}), {two:.0f} with two: {two / one:.2f} ×")


def lost(stub: StubProcess) -> None:
    found = asked(stub, 3000, disturb=lambda: kill_one("MapWorker"))
    repeated = found.seen.answered + found.seen.abandoned - 3000
    print(
        f"a worker killed: {found.lost} rows lost, {repeated} calls repeated (at most {IN_FLIGHT} in flight), "
        f"{found.stored} in the ledger"
    )


def rate(stub: StubProcess) -> None:
    for load in (0, 2):
        busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(load)]
        try:
            found = asked(stub, 3000, max_per_second=100)
        finally:
            for process in busy:
                process.kill()
        times = sorted(found.seen.arrivals)
        most = {
            seconds: max(bisect_left(times, start + seconds) - place for place, start in enumerate(times)) / seconds
            for seconds in (1, 5)
        }
        print(
            f"--max-per-second 100, {load} other busy processes: {found.per_second:.1f} calls/s; at most {most[1]:.0f} "
            f"over 1 s, {most[5]:.1f} over 5 s"
        )


def budgets(stub: StubProcess) -> None:
    for limit in (Budget(calls=500), Budget(tokens=30_000), Budget(usd=0.05)):
        found = asked(stub, 2000, budget=limit)
        per_call = found.paid.tokens / found.paid.calls
        print(
            f"{limit}: {found.paid.calls} calls, {found.paid.tokens} tokens, {found.paid.usd:.5f} dollars; a call has "
            f"{per_call:.0f} tokens; {found.lost} of 2000 rows without a vote"
        )


PARTS: dict[str, Callable[[StubProcess], None]] = {"speed": speed, "worker": lost, "rate": rate, "budgets": budgets}

if __name__ == "__main__":
    start_ray()
    with stub_process(SERVER) as server:
        for name in sys.argv[1:] or PARTS:
            PARTS[name](server)
