"""`--executor ray` on two machines (network namespaces of this one) and a server that takes 200 ms per answer.

20,000 texts are asked about: by one machine, by both, and while a machine, PostgreSQL and the command are killed.
Run it as root with `python -m benchmarks.cluster [rows]`; it writes `benchmarks/results/cluster.md`.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from pcs_annotator.asking.ledger.open_ledger import open_ledger  # noqa: E402
from tests.postgres import PASSWORD, PostgresServer  # noqa: E402
from tests.stub import Behaviour, Stats, StubProcess  # noqa: E402
from tests.two_machines import SETTINGS, Cluster, reason_against, two_machines  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "cluster.md"
LATENCY, IN_FLIGHT, GONE_SECONDS = 0.2, 12, 20
SERVER = Behaviour(labels=("good", "bad"), logprobs="ignored", latency_s=LATENCY, record_times=True)
TICKS = os.sysconf("SC_CLK_TCK")
KINDS = {"MapWorker": "worker", "postgres": "PostgreSQL", "raylet": "Ray", "gcs_server": "Ray", "tests.stub": "stub"}


@dataclass
class Trial:
    """One table that was asked about."""

    what: str
    rows: int
    seen: Stats
    codes: list[int]  # exit codes of the commands
    stored: int
    bytes_used: int
    labels: str
    cpu: Mapping[str, float] = field(default_factory=dict)  # milliseconds per call, by kind of process
    seconds_after: float = 0.0  # from the last answer to the end

    @property
    def per_second(self) -> float:
        """Calls per second between the arrivals of the first and the eighth tenth, when all workers were there."""
        times = sorted(self.seen.arrivals)
        low, high = len(times) // 10, len(times) * 8 // 10
        return (high - low) / (times[high] - times[low])

    @property
    def twice(self) -> int:
        """Calls that were made for a question that had been asked before."""
        return self.seen.requests - self.seen.questions

    def most_in(self, seconds: float) -> int:
        """Return how many calls came in any so many seconds."""
        times = sorted(self.seen.arrivals)
        return max(bisect_left(times, start + seconds) - place for place, start in enumerate(times))


class Bench:
    """Asks about tables on a cluster, each with a ledger of its own."""

    def __init__(self, cluster: Cluster, stub: StubProcess, folder: Path, rows: int) -> None:
        self.cluster, self.stub, self.folder, self.rows = cluster, stub, folder, rows
        (folder / "pcs.toml").write_text(SETTINGS.format(url=stub.url, in_flight=IN_FLIGHT))

    def ask(
        self, what: str, *options: str, rows: int = 0, disturb: Callable[[subprocess.Popen[str]], object] | None = None
    ) -> Trial:
        """Ask about texts; once a third is answered, disturb it; a command that was killed is run again."""
        self.stub.reset()
        rows, ledger = rows or self.rows, self.cluster.ledger()
        arguments = [
            "run",
            _write_table(self.folder, rows),
            "-o",
            what,
            "--quiet",
            "--ledger",
            ledger,
            "--executor",
            "ray",
        ]
        arguments += ["--ray-address", self.cluster.address, *options]
        commands = [self.cluster.start_pcs(self.folder, *arguments)]
        self._wait(commands[0], rows // 3)
        before, answered = self._cpu(commands[0]), self.stub.stats().answered
        if disturb is None:
            self._wait(commands[0], rows * 9 // 10)
            calls = max(1, self.stub.stats().answered - answered)
            cpu = {kind: 1000 * (spent - before[kind]) / calls for kind, spent in self._cpu(commands[0]).items()}
        else:
            disturb(commands[0])
            cpu = {}
        _ended(commands[0])
        if commands[0].returncode == -signal.SIGKILL:
            commands.append(self.cluster.start_pcs(self.folder, *arguments))
            _ended(commands[1])
        ended, seen = time.monotonic(), self.stub.stats(full=True)
        with self.cluster.head.inside(), open_ledger(ledger.replace("@", f":{PASSWORD}@", 1)) as opened:
            stored, used = opened.count(), opened.bytes_used()
        labels = self.folder / what / "labels.csv"
        trial = Trial(
            what=what,
            rows=rows,
            seen=seen,
            codes=[command.returncode for command in commands],
            stored=stored,
            bytes_used=used,
            labels=labels.read_text() if labels.exists() else "",
            cpu=cpu,
            seconds_after=ended - seen.answered_at[-1],
        )
        print(
            f"{what}: {trial.codes} {trial.per_second:.1f}/s, twice {trial.twice}, {dict(seen.by_machine)}", flush=True
        )
        return trial

    def _wait(self, command: subprocess.Popen[str], answered: int) -> None:
        while self.stub.stats().answered < answered and command.poll() is None:
            time.sleep(0.2)

    def _cpu(self, command: subprocess.Popen[str]) -> Mapping[str, float]:
        """Return the seconds of processor time of the living processes, by kind."""
        seconds = defaultdict[str, float](float)
        pids = [*self.cluster.head.pids(), *self.cluster.worker.pids(), self.stub.pid]
        for pid in pids:
            try:
                title = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has ended
                continue
            kind = next((kind for name, kind in KINDS.items() if name in title), "Ray")
            seconds["command" if pid == command.pid else kind] += (int(fields[11]) + int(fields[12])) / TICKS
        return seconds

    def lose_machine(self, command: subprocess.Popen[str]) -> None:
        """Kill all processes of the second machine."""
        self.cluster.worker.kill()

    def stop_server(self, command: subprocess.Popen[str]) -> None:
        """Have PostgreSQL crash, and start it again later."""
        self.cluster.server.stop(crash=True)
        time.sleep(GONE_SECONDS)
        self.cluster.server.start()


def _write_table(folder: Path, rows: int) -> str:
    lines = [f"{row},Case {row} is here.,{('good', 'bad')[row % 2] if row < 200 else ''}" for row in range(rows)]
    (folder / f"texts{rows}.csv").write_text("\n".join(["id,text,gold", *lines]) + "\n")
    return f"texts{rows}.csv"


def _ended(command: subprocess.Popen[str]) -> None:
    errors = command.communicate(timeout=1800)[1]
    if command.returncode not in (0, 3, -signal.SIGKILL) or "Traceback" in errors:
        print(f"exit {command.returncode}: {errors[-2000:]}", file=sys.stderr)


def trials(bench: Bench) -> dict[str, Trial]:
    """Return what → its trial."""
    cluster, done = bench.cluster, dict[str, Trial]()
    ask = partial(_add, done, bench)
    cluster.start_node(cluster.head)
    ask("one machine", rows=bench.rows // 4)
    cluster.start_missing()
    ask("two machines")
    ask("calls", "--max-calls", "500", rows=2000)
    ask("rate", "--max-per-second", "50", rows=2000)
    bench.stub.change(latency_s=0.0)
    ask("full speed", "--concurrency", "64", rows=2 * bench.rows // 5)
    bench.stub.change(latency_s=LATENCY)
    ask("PostgreSQL", disturb=bench.stop_server)
    ask("command", disturb=lambda command: command.kill())
    ask("machine", disturb=bench.lose_machine)
    return done


def reading_ms(server: PostgresServer, folder: Path) -> float:
    """Return the processor time per call, in ms, in which one command reads known answers and judges them."""
    relations = ["original", "order", "frame", "layout"]
    settings = (
        SETTINGS.format(url="", in_flight=IN_FLIGHT)
        .replace('"#m"', '"scripted:hash"')
        .replace('["original"]', json.dumps(relations))
    )
    (folder / "pcs.toml").write_text(settings)
    seconds, ledger = dict[int, float](), server.new_ledger()
    for verb, rows in (("run", 1000), ("label", 8000), ("label", 2000), ("label", 8000)):
        arguments = [verb, _write_table(folder, rows), "--quiet", "--ledger", ledger, "-o"]
        arguments += ["run"] if verb == "run" else [f"out-{len(seconds)}-{rows}.csv", "--run", "run", "--ask", "all"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        subprocess.run([sys.executable, "-m", "pcs_annotator", *arguments, "--replace"], cwd=folder, check=True)
        seconds[rows] = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    return 1000 * (seconds[8000] - seconds[2000]) / (6000 * len(relations))


def _add(done: dict[str, Trial], bench: Bench, what: str, *options: str, **how: object) -> None:
    done[what] = bench.ask(what, *options, **how)  # type: ignore[arg-type]


def page(done: Mapping[str, Trial], reading: float) -> str:
    """Return the page of results."""
    one, two = done["one machine"], done["two machines"]
    rows = [
        ("calls per second, one machine", f"{one.per_second:.1f} of at most {IN_FLIGHT / LATENCY:.0f}"),
        ("calls per second, two machines", f"{two.per_second:.1f}: {two.per_second / one.per_second:.2f} ×"),
        (
            "calls by machine; made twice",
            f"{two.seen.by_machine['head']:,} and {two.seen.by_machine['worker']:,}; {two.twice}",
        ),
        ("`--max-calls 500`", f"{done['calls'].seen.requests} calls (exit {done['calls'].codes[0]})"),
        (
            "`--max-per-second 50`",
            f"{done['rate'].per_second:.1f} per second; at most {done['rate'].most_in(5) / 5:.1f} over 5 s",
        ),
    ]
    faults = {
        "machine": "`kill -9` of all processes of a machine",
        "PostgreSQL": f"PostgreSQL crashed, back after {GONE_SECONDS} s",
        "command": "`kill -9` of the command, run again",
    }
    for name, fault in faults.items():
        trial = done[name]
        same = "the same labels" if trial.labels == two.labels else "OTHER LABELS"
        counts = f"{trial.rows - trial.stored} rows lost, {trial.twice} calls made twice (in flight: {2 * IN_FLIGHT})"
        rows.append((fault, f"{counts}, {same}; exit {', '.join(map(str, trial.codes))}"))
    for name, trial in (("at that speed", two), ("64 in flight, no latency", done["full speed"])):
        cpu = ", ".join(f"{kind} {ms:.2f}" for kind, ms in sorted(trial.cpu.items()))
        rows.append((f"processor time per call, ms, {name} ({trial.per_second:.0f} calls/s)", cpu))
    rows += [
        ("PostgreSQL per call", f"{two.bytes_used / two.stored:.0f} bytes"),
        ("processor time per call in which one command reads known answers and judges", f"{reading:.2f} ms"),
        ("from the last answer to the end of the command", f"{two.seconds_after:.1f} s for {two.rows:,} rows"),
    ]
    lines = "\n".join(f"| {name} | {value} |" for name, value in rows)
    return (
        "# A Ray cluster\n\n"
        f"`python -m benchmarks.cluster`: {two.rows:,} texts, one call each, {LATENCY * 1000:.0f} ms per answer, a "
        f"worker with {IN_FLIGHT} calls in flight per machine; the machines are network namespaces of one with two "
        "cores, which other work shared. What the stub saw is counted; a fault comes when a third is answered.\n\n"
        f"| measured | figure |\n|---|---|\n{lines}\n"
    )


def main() -> None:
    """Measure, and write the page."""
    if reason := reason_against():
        sys.exit(reason)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the machines are removed
    rows = int(sys.argv[1]) if sys.argv[1:] else 20_000
    with two_machines() as cluster, cluster.stub(SERVER) as stub, tempfile.TemporaryDirectory() as folder:
        done = trials(Bench(cluster, stub, Path(folder), rows))
        text = page(done, reading_ms(cluster.server, Path(folder)))
    RESULTS.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
