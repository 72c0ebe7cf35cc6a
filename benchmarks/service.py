"""Measures the HTTP service with a stub server, and compares it with the library: `pcs label` on the same run.

Run it with `python -m benchmarks.service`, or a part of it with `python -m benchmarks.service overhead`. Both sides are
measured alternately on one machine; no time is asserted.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import random
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import NamedTuple

import aiohttp

from pcs_annotator.runs.labeller import FittedRun
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.settings import Config, Saving
from tests.faces.serve.killing import check, kill_again_and_again, promising_stub_run
from tests.faces.serve.processes import ServiceProcess, service_process, stub_run
from tests.simulated import label
from tests.stub import Behaviour, StubProcess, stub_process

MODELS, RELATIONS = ("one",), ("original", "frame", "order", "layout")


class Measured(NamedTuple):
    """Wall and CPU seconds, and answered calls."""

    wall: float
    cpu: float
    calls: int


def texts(prefix: str, count: int) -> list[str]:
    return [f"{prefix}, number {row}: the weather was rather nice, all told." for row in range(count)]


def by_library(stub: StubProcess, run: Path, given: list[str]) -> Measured:
    data = run.parent / "new.csv"
    with data.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["text"], *([text] for text in given)])
    before = stub.stats().answered
    wall, cpu = time.perf_counter(), time.process_time()
    request = RunRequest(data=data, folder=run, config=Config(), environment={}, replace=True)
    label(request, run.parent / f"out-{time.monotonic_ns()}.csv", Saving(ask="all"))
    return Measured(time.perf_counter() - wall, time.process_time() - cpu, stub.stats().answered - before)


async def ask_all(url: str, given: list[str], clients: int) -> list[int]:
    """Return the status of every request, one text each."""
    todo, statuses = iter(given), []
    async with aiohttp.ClientSession(url, connector=aiohttp.TCPConnector(limit=0)) as session:

        async def client() -> None:
            for text in todo:
                async with session.post("/v1/classify", json={"input": text}) as answer:
                    await answer.read()
                    statuses.append(answer.status)

        await asyncio.gather(*(client() for _ in range(clients)))
    return statuses


def by_service(stub: StubProcess, service: ServiceProcess, given: list[str], clients: int) -> Measured:
    before = stub.stats().answered
    wall, cpu = time.perf_counter(), service.cpu_seconds()
    statuses = asyncio.run(ask_all(service.url, given, clients))
    took = time.perf_counter() - wall
    assert statuses == [200] * len(given), f"{sum(one != 200 for one in statuses)} requests failed"
    return Measured(took, service.cpu_seconds() - cpu, stub.stats().answered - before)


def side_by_side(
    latency: float, clients: int, count: int, rounds: int, in_flight: int = 64
) -> list[tuple[Measured, Measured]]:
    """Return library and service, measured alternately so that other load affects both."""
    found = []
    with stub_process() as stub, tempfile.TemporaryDirectory() as folder:
        run = stub_run(stub.url, Path(folder), MODELS, RELATIONS, in_flight)
        stub.change(latency_s=latency)
        with service_process(run, "--ask", "all") as service:
            by_service(stub, service, texts("first", 100), clients)
            by_library(stub, run, texts("first of the library", 100))
            for turn in range(rounds):
                theirs = by_library(stub, run, texts(f"library {turn}", count))
                found.append((theirs, by_service(stub, service, texts(f"service {turn}", count), clients)))
    return found


def show_overhead() -> None:
    count = 1000
    pairs = side_by_side(0.0, 64, count, rounds=5)
    above = sorted(1000 * (service.cpu - library.cpu) / count for library, service in pairs)
    library, service = (1000 * median(one.cpu for one in side) / count for side in zip(*pairs, strict=True))
    print(f"CPU per text, {pairs[0][0].calls // count} calls each, 64 clients, 0 ms: library {library:.2f} ms, service "
          f"{service:.2f} ms, overhead {above[2]:.2f} ms (median of 5; {above[0]:.2f} to {above[-1]:.2f})")  # fmt: skip


def show_clients() -> None:
    for in_flight in (64, 256):  # the first is the default
        pairs = side_by_side(0.2, 256, 1000, rounds=3, in_flight=in_flight)
        shares = sorted((service.calls / service.wall) / (library.calls / library.wall) for library, service in pairs)
        library, service = (median(one.calls / one.wall for one in side) for side in zip(*pairs, strict=True))
        cpu = [median(1000 * one.cpu / one.calls for one in side) for side in zip(*pairs, strict=True)]
        print(f"256 clients, 200 ms, {in_flight} calls in flight, {pairs[0][0].calls:,} calls, no errors: library "
              f"{library:.0f} calls/s, service {service:.0f}, share {shares[1]:.0%} (median of 3; {shares[0]:.0%} to "
              f"{shares[-1]:.0%}); CPU per call {cpu[0]:.2f} and {cpu[1]:.2f} ms", flush=True)  # fmt: skip


def show_kills(kills: int = 20, requests: int = 200) -> None:
    """Kill the service while it answers: every answer that a client got must be in the ledger."""
    rng = random.Random(0)
    missing, lost, killed = 0, 0, 0
    with stub_process(Behaviour(latency_s=0.05)) as stub, tempfile.TemporaryDirectory() as folder:
        run = stub_run(stub.url, Path(folder), ("one",), ("original",), 32)
        for turn in range(kills):
            stub.reset()
            before = in_ledger(run)
            given = texts(f"kill {turn}", requests)
            with service_process(run, "--ask", "all") as service:
                acknowledged, interrupted = asyncio.run(until_killed(service, given, rng.uniform(0.1, 0.6)))
            killed += interrupted
            stored = in_ledger(run) - before
            missing = max(missing, stub.stats().answered - stored)
            lost += max(0, acknowledged - stored)
    print(f"kill -9 at {kills} random moments of {requests} requests ({killed} before the end): {lost} acknowledged "
          f"answers lost, at most {missing} paid answers not in the ledger, 32 in flight")  # fmt: skip


def in_ledger(run: Path) -> int:
    with sqlite3.connect(run / "ledger.db") as ledger:
        return int(ledger.execute("SELECT COUNT(*) FROM calls").fetchone()[0])


async def until_killed(service: ServiceProcess, given: list[str], seconds: float) -> tuple[int, bool]:
    """Return how many texts were answered until the kill, and whether some were not."""
    todo, answered = iter(given), 0
    async with aiohttp.ClientSession(service.url) as session:

        async def client() -> None:
            nonlocal answered
            for text in todo:
                async with session.post("/v1/classify", json={"input": text}) as answer:
                    await answer.read()
                    answered += answer.status == 200

        async def kill() -> None:
            await asyncio.sleep(seconds)
            await asyncio.to_thread(service.kill)

        with suppress(aiohttp.ClientError):
            await asyncio.gather(kill(), *(client() for _ in range(32)))
        await asyncio.sleep(0.2)
    return answered, answered < len(given)


def show_keeping(count: int = 2000, rounds: int = 5) -> None:
    """Label texts whose answers are known, with and without the stream: asking would hide what it takes."""
    keep, found = FittedRun.keep, list[tuple[float, float, float]]()
    with stub_process() as stub, tempfile.TemporaryDirectory() as folder:
        run = promising_stub_run(stub.url, Path(folder))
        given = texts("known", count)
        first = by_library(stub, run, given)
        for _ in range(rounds):
            (run / "stream.db").unlink()  # so that every text is new
            on = by_library(stub, run, given)
            with sqlite3.connect(run / "stream.db") as stream:
                (kept,) = stream.execute("SELECT COUNT(*) FROM texts").fetchone()
            FittedRun.keep = lambda *_: None  # type: ignore[method-assign]
            off = by_library(stub, run, given)
            FittedRun.keep = keep  # type: ignore[method-assign]
            found.append((on.cpu, off.cpu, kept / count))
    with_it, without = (1000 * median(pair[side] for pair in found) / count for side in (0, 1))
    print(f"CPU per text with the stream, {found[0][2]:.0%} kept: {with_it:.3f} ms, without {without:.3f} ms, "
          f"of texts that are known; with one call {1000 * first.cpu / count:.2f} ms (median of {rounds})")  # fmt: skip


def show_stream_kills(kills: int = 50) -> None:
    """Kill the service under load while `pcs fit` makes versions: what clients were told must be in the stream."""
    with stub_process(Behaviour(latency_s=0.05)) as stub, tempfile.TemporaryDirectory() as folder:
        run = promising_stub_run(stub.url, Path(folder))
        found = check(run, kill_again_and_again(run, kills))
    print(f"kill -9 at {kills} random moments under 100 clients, with {found.versions} versions by pcs fit, of which "
          f"{found.changed} services took over some under load: {found.replies} texts acknowledged, {found.accepted} "
          f"accepted; {found.lost} lost, {found.misplaced} with another version or decision in the stream, "
          f"{found.mixed} that their version decides differently")  # fmt: skip


PARTS: dict[str, Callable[[], None]] = {"overhead": show_overhead, "clients": show_clients, "kills": show_kills}
PARTS |= {"keeping": show_keeping, "stream-kills": show_stream_kills}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", nargs="*", default=list(PARTS), help=f"some of {', '.join(PARTS)}")
    for part in parser.parse_args().part:
        PARTS[part]()
        sys.stdout.flush()


if __name__ == "__main__":
    main()
