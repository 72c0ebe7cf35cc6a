"""Measures the asking engine with a stub server, and compares it with a bare aiohttp loop that sends the same requests.

Run it with `make bench`, or a part of it with `python benchmarks/engine.py overhead`. Ratios are from one run on one
machine, side by side; no time is asserted.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import aiohttp

from pcs_annotator import Annotator, CollectSettings, Item, PromptedRelation, Task, Votes, collect
from pcs_annotator.asking.annotators.annotator import Question
from pcs_annotator.asking.engine.budget import Budget, BudgetTracker
from pcs_annotator.asking.engine.call import Asker, Patience
from pcs_annotator.asking.engine.collect import run_job
from pcs_annotator.asking.engine.progress import Tally
from pcs_annotator.asking.ledger.sqlite import Ledger
from pcs_annotator.core.arrays import Codes, Floats
from pcs_annotator.core.chat import Answers
from pcs_annotator.core.ledger_address import LedgerAddress
from pcs_annotator.core.votes import OPEN, Cell
from pcs_annotator.models.resolve import resolve_model
from pcs_annotator.relations.function import FunctionRelation
from pcs_annotator.runs.ask import close_models, open_job

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from tests.postgres import postgres_server, programs  # noqa: E402
from tests.stub import Behaviour, StubProcess, stub_process  # noqa: E402

TASK = Task("How does the writer feel?", ["positive", "neutral", "negative"])
RIVAL_ROWS_PER_SECOND = 0.42
RELATIONS: tuple[str | PromptedRelation, ...] = (
    "original",
    *(PromptedRelation(name, f"Rewrite the text: {name}.") for name in ("voice", "double-negation", "synonym")),
)


def items(count: int) -> Iterator[Item]:
    return (
        Item(id=str(row), text=f"Text number {row}: the weather was rather nice, all told.") for row in range(count)
    )


class Cost(NamedTuple):
    """Wall and CPU seconds of a number of calls."""

    wall: float
    cpu: float


async def measured(work: Callable[[], Awaitable[object]]) -> Cost:
    wall, cpu = time.perf_counter(), time.process_time()
    await work()
    return Cost(time.perf_counter() - wall, time.process_time() - cpu)


async def bare(url: str, count: int, in_flight: int) -> None:
    """Send the engine's requests with aiohttp alone."""
    annotator, model = Annotator(f"{url}#m"), resolve_model(f"{url}#m", {})
    todo = items(count)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def worker() -> None:
            for item in todo:
                question = annotator.question(TASK, item.text, model)
                assert isinstance(question, Question)
                messages = [{"role": one.role, "content": one.content} for one in question.request.messages]
                body = {"model": "m", "messages": messages, "temperature": 0.0, "max_tokens": 64}
                async with session.post(f"{url}/chat/completions", json=body) as response:
                    (await response.json())["choices"][0]["message"]["content"]

        await asyncio.gather(*(worker() for _ in range(in_flight)))


async def ours(url: str, count: int, in_flight: int, ledger: LedgerAddress, answers: Answers = "hard") -> Tally:
    settings = CollectSettings(in_flight=in_flight, environment={}, answers=answers)
    await collect(TASK, items(count), [f"{url}#m"], ledger=ledger, settings=settings)
    return settings.tally


async def against_bare(latency: float, in_flight: int, count: int, rounds: int) -> list[tuple[Cost, Cost]]:
    """Return the costs of bare aiohttp and of the engine, measured alternately so that other load affects both."""
    results = []
    with stub_process(Behaviour(latency_s=latency)) as stub, tempfile.TemporaryDirectory() as folder:
        await bare(stub.url, 200, in_flight)
        for turn in range(rounds):
            theirs = await measured(lambda: bare(stub.url, count, in_flight))
            ledger = Path(folder, f"{turn}.db")
            results.append((theirs, await measured(lambda: ours(stub.url, count, in_flight, ledger))))  # noqa: B023
    return results


async def show_overhead() -> None:
    pairs = await against_bare(0.0, 64, 4000, rounds=5)
    ratios = sorted(our.cpu / their.cpu for their, our in pairs)
    bare_ms, our_ms = (min(cost.cpu for cost in side) / 4 for side in zip(*pairs, strict=True))
    print(f"CPU per call, 0 ms, 64 in flight: bare aiohttp {bare_ms:.3f} ms, engine {our_ms:.3f} ms, "
          f"ratio {ratios[2]:.2f} (median of 5; {ratios[0]:.2f} to {ratios[-1]:.2f})")  # fmt: skip


async def show_graded() -> None:
    """What log-probabilities add: a longer body to read, the grades, and a longer row in the ledger."""
    rounds, count = 15, 2000
    costs: dict[Answers, list[float]] = {"hard": [], "graded": []}
    sizes: dict[Answers, int] = {}
    with stub_process() as stub, tempfile.TemporaryDirectory() as folder:
        await ours(stub.url, 200, 64, Path(folder, "first.db"))
        for turn in range(rounds):
            for answers, cpu in costs.items():
                ledger = Path(folder, f"{turn}-{answers}.db")
                cost = await measured(lambda: ours(stub.url, count, 64, ledger, answers))  # noqa: B023
                cpu.append(1000 * cost.cpu / count)
                sizes[answers] = ledger.stat().st_size
        peaks = [finish(stub, Path(folder, f"{answers}.db"), 20_000, answers)[1] for answers in costs]
    hard, graded = costs.values()
    print(f"CPU per call, 0 ms, 64 in flight, tags: hard {median(hard):.3f} ms, with log-probabilities "
          f"{median(graded):.3f} ms, ratio {median(graded) / median(hard):.2f} (medians of {rounds}; of the best "
          f"{min(graded) / min(hard):.2f}); {(sizes['graded'] - sizes['hard']) / count:.0f} bytes more per reply; peak "
          f"memory for 20,000 rows {peaks[0]:.0f} and {peaks[1]:.0f} MB: {peaks[1] / peaks[0] - 1:+.0%}")  # fmt: skip


async def show_throughput() -> None:
    pairs = await against_bare(0.2, 256, 8000, rounds=3)
    shares = sorted(their.wall / our.wall for their, our in pairs)
    their, our = pairs[0]
    print(f"calls/s, 200 ms, 256 in flight, 8,000 calls: bare {8000 / their.wall:.0f}, engine {8000 / our.wall:.0f}, "
          f"share {shares[1]:.1%} (median of 3; {shares[0]:.1%} to {shares[-1]:.1%})")  # fmt: skip


async def show_ledgers() -> None:
    """The same calls with a ledger in a file and on a PostgreSQL server, measured alternately."""
    if programs() is None:
        print("ledgers: PostgreSQL is not installed")
        return
    with stub_process() as stub, postgres_server() as server, tempfile.TemporaryDirectory() as folder:
        for latency, count in ((0.2, 8000), (0.0, 4000)):
            stub.change(latency_s=latency)
            costs: dict[str, list[Cost]] = {"SQLite": [], "PostgreSQL": []}
            for turn in range(6):
                for kind, measures in costs.items():
                    ledger = Path(folder, f"{latency}-{turn}.db") if kind == "SQLite" else server.new_ledger()
                    measures.append(await measured(lambda: ours(stub.url, count, 256, ledger)))  # noqa: B023
            file, shared = ([count / one.wall for one in some[1:]] for some in costs.values())
            cpu = [1000 * min(one.cpu for one in some) / count for some in costs.values()]
            print(f"calls/s, {1000 * latency:g} ms, 256 in flight: SQLite {median(file):.0f}, PostgreSQL "
                  f"{median(shared):.0f}, share {median(shared) / median(file):.0%} (medians of 5; of the best "
                  f"{max(shared) / max(file):.0%}); CPU of the engine per call {cpu[0]:.2f} and {cpu[1]:.2f} ms",
                  flush=True)  # fmt: skip


async def show_job() -> None:
    """The paper's job: 100 rows, two models, four variants, three of them rewritten by a model: 1,100 calls."""
    with stub_process(Behaviour(latency_s=0.2)) as stub, tempfile.TemporaryDirectory() as folder:
        settings = CollectSettings(environment={}, rewriter=f"{stub.url}#rewriter")
        annotators = [f"{stub.url}#one", f"{stub.url}#two"]
        cost = await measured(
            lambda: collect(TASK, items(100), annotators, RELATIONS, ledger=Path(folder, "l.db"), settings=settings)
        )
    speed = 100 / cost.wall
    print(f"100 rows × 2 models × 4 variants, 200 ms: {settings.tally.calls} calls in {cost.wall:.1f} s, "
          f"{speed:.0f} rows/s, {speed / RIVAL_ROWS_PER_SECOND:.0f} × the rival's {RIVAL_ROWS_PER_SECOND}")  # fmt: skip


@dataclass(frozen=True)
class StopHalfway:
    """A strategy that stops after about half of the cells, depending on the first vote.

    Attributes:
        at_a_time: The most cells it needs in one step.
    """

    at_a_time: int
    order = tuple(Cell(annotator, relation) for relation in range(4) for annotator in range(3))

    def text_priors(self, texts: Sequence[str]) -> Floats | None:
        """Say nothing: this strategy does not read texts."""
        return None

    def needed(self, cells: Codes, said: Floats | None = None) -> int:
        """Return how many of the next cells to ask; 0 or less to stop."""
        first = int(cells[self.order[0]])
        stop_after = 5 + first if first >= 0 else 5
        return min(self.at_a_time, stop_after - int((cells != OPEN).sum()))


async def ask_panel(
    url: str, rows: int, ledger: Path, strategy: StopHalfway | None, tracker: BudgetTracker, tally: Tally
) -> None:
    """Ask three models about four variants that need no rewriter."""
    loud = [FunctionRelation(word, (word + ": {}").format) for word in ("hear", "look", "listen")]
    names = [f"{url}#{name}" for name in ("one", "two", "three")]
    job = open_job(TASK, names, ["original", *loud], CollectSettings(environment={}))
    try:
        with Ledger(ledger) as opened:
            asker = Asker(opened, tracker, tally, lambda model, tokens_in, tokens_out: 0.0)
            await run_job(job, items(rows), asker, strategy)
    finally:
        await close_models(job)


async def compare_adaptive(latency: float, strategy: StopHalfway, budget: Budget) -> tuple[list[float], list[float]]:
    """Return the calls/s of asking everything and of an adaptive run with as many calls, measured alternately."""
    speeds: tuple[list[float], list[float]] = ([], [])
    with stub_process(Behaviour(latency_s=latency)) as stub, tempfile.TemporaryDirectory() as folder:
        for turn in range(5):
            for side, rows, given in ((0, 200, None), (1, 400, strategy)):
                tally = Tally()
                ledger = Path(folder, f"{turn}-{rows}.db")
                cost = await measured(lambda: ask_panel(stub.url, rows, ledger, given, BudgetTracker(budget), tally))  # noqa: B023
                speeds[side].append(tally.calls / cost.wall)
    return speeds


async def show_adaptive() -> None:
    """Steps that wait for each other must not leave the models idle."""
    for latency in (0.0, 0.02):
        for at_a_time, budget in ((12, Budget()), (1, Budget()), (1, Budget(calls=1_000_000))):
            plain, adaptive = await compare_adaptive(latency, StopHalfway(at_a_time), budget)
            steps = "one cell at a time" if at_a_time == 1 else "all needed cells at once"
            print(f"adaptive, {1000 * latency:g} ms, {steps}, {'rationed' if budget.calls else 'no budget'}: "
                  f"{max(adaptive):.0f} calls/s, asking everything {max(plain):.0f}, "
                  f"share {max(adaptive) / max(plain):.0%} (best of 5 each; of the medians "
                  f"{median(adaptive) / median(plain):.0%})", flush=True)  # fmt: skip


async def show_rate_limit(latency: float, burst: int) -> None:
    behaviour = Behaviour(rate=100, burst=burst, latency_s=latency, retry_after="none", record_times=True)
    with stub_process(behaviour) as stub, tempfile.TemporaryDirectory() as folder:
        await ours(stub.url, 26 * 100 + burst, 64, Path(folder, "l.db"))
        stats = await asyncio.to_thread(stub.stats, full=True)
    start = min(stats.arrivals)
    late = sum(5 <= when - start < 25 for when in stats.answered_at)
    refused = len(stats.limited_at)
    late_refused = sum(5 <= when - start < 25 for when in stats.limited_at)
    print(f"a server that allows 100 calls/s (burst {burst}, {1000 * latency:g} ms): {late / 20:.1f} calls/s from "
          f"second 5 to 25; refused {refused / stats.requests:.2%} of all, {late_refused / (late + late_refused):.2%} "
          "after the start")  # fmt: skip


async def show_pace() -> None:
    """Three models without faults, with random ones, and a provider that has only refused for a while."""
    calm = await three_models({}, 2.0)
    faults = await three_models({"share_429": 0.03, "share_500": 0.02}, 2.0)
    outage = await three_models({"share_429": 1.0}, 20.0, then={"share_429": 0.0})
    print(f"three models, 50 ms: {faults / calm:.0%} of the calls/s with 3 % 429 and 2 % 500; {outage / calm:.0%} from "
          "second 10 to 20 after 20 s of nothing but 429")  # fmt: skip


async def three_models(faults: dict[str, Any], wait: float, then: dict[str, Any] | None = None) -> float:
    """Return the answers per second to three models in ten seconds, ten seconds after the faults have ended if any."""
    with stub_process(Behaviour(latency_s=0.05, **faults)) as stub, tempfile.TemporaryDirectory() as folder:
        names, settings = [f"{stub.url}#{name}" for name in ("one", "two", "three")], CollectSettings(environment={})
        asking = asyncio.create_task(collect(TASK, items(10**6), names, ledger=Path(folder, "l.db"), settings=settings))
        await asyncio.sleep(wait)
        if then:
            await asyncio.to_thread(lambda: stub.change(**then))
            await asyncio.sleep(10)
        before = settings.tally.calls
        await asyncio.sleep(10)
        answered = settings.tally.calls - before
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
    return answered / 10


async def show_faults() -> None:
    behaviour = Behaviour(
        latency_s=0.01,
        share_429=0.20,
        share_500=0.05,
        share_hang=0.01,
        share_drop_middle=0.01,
        share_truncated=0.01,
        retry_after="exact",
    )
    with stub_process(behaviour) as stub, tempfile.TemporaryDirectory() as folder:
        settings = CollectSettings(environment={}, patience=Patience(deadline=3.0))
        votes = await collect(TASK, items(2000), [f"{stub.url}#m"], ledger=Path(folder, "l.db"), settings=settings)
        stats = await asyncio.to_thread(stub.stats)
    print(f"20 % 429, 5 % 500, 1 % hang, 1 % drop, 1 % truncated: {int((votes.codes >= 0).sum())} of 2,000 rows "
          f"answered, {stats.requests} requests, {stats.asked_again} answered calls asked again")  # fmt: skip


def child(arguments: list[str]) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, "child", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


async def run_child(url: str, ledger: Path, rows: int, answers: Answers) -> None:
    """Ask about some rows and print a hash of the votes; the process that is killed runs this."""
    settings = CollectSettings(environment={}, in_flight=32, answers=answers)
    votes = await collect(TASK, items(rows), [f"{url}#m"], ledger=ledger, settings=settings)
    print(hash_of(votes), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3)


def hash_of(votes: Votes) -> str:
    import hashlib

    grades = b"" if votes.grades is None else votes.grades.tobytes()
    return hashlib.sha256(votes.codes.tobytes() + grades + "".join(votes.ids).encode()).hexdigest()[:16]


def show_kills(kills: int = 20, rows: int = 1000) -> None:
    rng = random.Random(0)
    with stub_process(Behaviour(latency_s=0.05)) as stub, tempfile.TemporaryDirectory() as folder:
        whole, _ = finish(stub, Path(folder, "whole.db"), rows)
        worst, same, killed = 0, 0, 0
        for turn in range(kills):
            stub.reset()
            ledger = Path(folder, f"{turn}.db")
            process = child([stub.url, str(ledger), str(rows), "graded"])
            time.sleep(rng.uniform(0.6, 2.2))
            killed += process.poll() is None
            process.send_signal(signal.SIGKILL)
            process.communicate()
            result, _ = finish(stub, ledger, rows)
            same += result == whole
            worst = max(worst, stub.stats().answered_twice)
    print(f"kill -9 at {kills} random moments ({killed} before the end), then a second run: {same} results the same as "
          f"in an uninterrupted run; at most {worst} calls paid twice, 32 in flight")  # fmt: skip


def finish(stub: StubProcess, ledger: Path, rows: int, answers: Answers = "graded") -> tuple[str, float]:
    out, _ = child([stub.url, str(ledger), str(rows), answers]).communicate(timeout=600)
    result, peak = out.split()
    return result, float(peak)


def show_memory() -> None:
    peaks = {}
    with stub_process(Behaviour()) as stub, tempfile.TemporaryDirectory() as folder:
        for rows in (2_000, 200_000):
            peaks[rows] = finish(stub, Path(folder, f"{rows}.db"), rows)[1]
    grown = peaks[200_000] - peaks[2_000]
    print(f"peak memory: {peaks[2_000]:.0f} MB for 2,000 rows, {peaks[200_000]:.0f} MB for 200,000: {grown:+.0f} MB")


PARTS: dict[str, Callable[[], object]] = {
    "overhead": lambda: asyncio.run(show_overhead()),
    "graded": lambda: asyncio.run(show_graded()),
    "throughput": lambda: asyncio.run(show_throughput()),
    "ledgers": lambda: asyncio.run(show_ledgers()),
    "job": lambda: asyncio.run(show_job()),
    "adaptive": lambda: asyncio.run(show_adaptive()),
    "rate": lambda: [asyncio.run(show_rate_limit(*case)) for case in ((0.02, 10), (0.05, 100))],
    "pace": lambda: asyncio.run(show_pace()),
    "faults": lambda: asyncio.run(show_faults()),
    "kills": show_kills,
    "memory": show_memory,
}


def main() -> None:
    if sys.argv[1:2] == ["child"]:
        url, ledger, rows, answers = sys.argv[2:]
        asyncio.run(run_child(url, Path(ledger), int(rows), "hard" if answers == "hard" else "graded"))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", nargs="*", default=list(PARTS), help=f"some of {', '.join(PARTS)}")
    for part in parser.parse_args().part:
        PARTS[part]()
        sys.stdout.flush()


if __name__ == "__main__":
    main()
