"""Stops, kills and freezes `pcs run` at random, on a server that fails, and counts what was lost or paid for twice.

In a campaign one to three `pcs run` share a folder. They get SIGKILL, SIGTERM, SIGINT, SIGHUP and SIGSTOP at random
moments, while the server refuses, fails, hangs, drops connections and closes half of them. Some processes have a clock
that jumps by hours and days, some a disk that is soon full (SQLite sees an I/O error), and now and then somebody else
locks the ledger. A process that ended is started again. Then one run ends undisturbed, and its labels and votes are
compared with those of a run that nothing disturbed.

Run it with `python -m benchmarks.chaos [campaigns] [first seed]`.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import chdir, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from pcs_annotator.faces.cli.main import main as main_of_pcs  # noqa: E402
from tests.stub import Behaviour, StubProcess, stub_process  # noqa: E402

ROWS = 60
IN_FLIGHT = 8
TIMEOUT = 2.0
LAST_RUN_SECONDS = 180
QUIET = Behaviour(labels=("positive", "neutral", "negative"), logprobs="ignored")
FAULTS = {
    "share_429": 0.1,
    "share_500": 0.05,
    "share_503": 0.03,
    "share_hang": 0.01,
    "share_drop_before": 0.03,
    "share_drop_middle": 0.03,
    "share_half_closed": 0.02,
    "share_reset": 0.02,
}
SETTINGS = f"""
[task]
labels = ["positive", "neutral", "negative"]
[ask]
models = ["{{url}}#m"]
answers = "hard"
concurrency = {IN_FLIGHT}
timeout = {TIMEOUT}
[relations]
use = ["original", "order", "layout"]
[learn]
optimiser = "lr"
folds = 3
resamples = 0
"""
STOPS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# A shell shows 130 for both ways to be interrupted; the second one is that of another signal while a process ends.
EXIT_CODES = {0, 130, -signal.SIGINT, -signal.SIGKILL}


# Python imports it before anything else. The clock is right for half a second, then off for the next one, and so on.
JUMPING_CLOCK = """
import time
real, steps = time.time, (0, 86_400, -86_400, 3_600, -40 * 86_400)
time.time = lambda: real() + steps[int(2 * time.monotonic()) % len(steps)]
"""
# No file of the process that follows may grow beyond this many bytes.
LITTLE_ROOM = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, ({0}, {0}))
os.execv(sys.argv[1], sys.argv[1:])
"""


@dataclass
class Campaign:
    """What happened in one campaign."""

    seed: int
    signals: Counter[str] = field(default_factory=Counter)
    processes: int = 0
    lost_rows: int = 0
    differing: int = 0
    paid_twice: int = 0
    odd_exits: list[str] = field(default_factory=list)

    @property
    def excused(self) -> int:
        """How many calls may have been paid for twice: those in flight when a process was killed or had no disk."""
        return (self.signals["SIGKILL"] + self.signals["full disk"]) * IN_FLIGHT

    @property
    def held(self) -> bool:
        """Whether nothing was lost, mixed up or paid for twice."""
        excess = self.paid_twice > self.excused
        return not (self.lost_rows or self.differing or excess or self.odd_exits)


class Crew:
    """The processes of a campaign."""

    def __init__(self, folder: Path, campaign: Campaign) -> None:
        self._folder = folder
        self._campaign = campaign
        self._living: list[subprocess.Popen[str]] = []
        self._small: set[int] = set()  # processes whose disk is soon full

    def start(self, chance: random.Random | None = None) -> subprocess.Popen[str]:
        """Start another `pcs run`; by chance with a clock that jumps, or with a disk that is soon full."""
        command = [sys.executable, "-m", "pcs_annotator", "run", "texts.csv", "-o", "run", "--quiet"]
        environment, bytes_left = dict(os.environ), 0
        if chance is not None and chance.random() < 0.25:
            (self._folder / "sitecustomize.py").write_text(JUMPING_CLOCK)
            environment["PYTHONPATH"] = os.pathsep.join([str(self._folder), *filter(None, [os.getenv("PYTHONPATH")])])
            self._campaign.signals["clock"] += 1
        if chance is not None and chance.random() < 0.25:
            bytes_left = chance.randint(1_000, 150_000)
            command = [sys.executable, "-c", LITTLE_ROOM.format(bytes_left), *command]
            self._campaign.signals["full disk"] += 1
        process = subprocess.Popen(command, cwd=self._folder, env=environment, text=True, stderr=subprocess.PIPE)
        if bytes_left:
            self._small.add(process.pid)
        self._living.append(process)
        self._campaign.processes += 1
        return process

    def lock_ledger(self, seconds: float) -> None:
        """Write to the ledger as somebody else, for a while."""
        path = self._folder / "run" / "ledger.db"
        if path.exists():
            with closing(sqlite3.connect(path, timeout=0.1)) as other, suppress(sqlite3.OperationalError):
                other.execute("BEGIN IMMEDIATE")
                self._campaign.signals["lock"] += 1
                time.sleep(seconds)

    def send(self, process: subprocess.Popen[str], name: signal.Signals) -> None:
        """Send a signal, and count it if the process was still there."""
        if process.poll() is None:
            process.send_signal(name)
            self._campaign.signals[name.name] += 1

    def living(self) -> list[subprocess.Popen[str]]:
        """Return the processes that have not ended; those that have are checked."""
        for process in [process for process in self._living if process.poll() is not None]:
            self._living.remove(process)
            self.check(process)
        return self._living

    def check(self, process: subprocess.Popen[str], allowed: set[int] = EXIT_CODES) -> None:
        """Note an exit code that no signal of ours explains."""
        said = process.communicate(timeout=LAST_RUN_SECONDS)[1]
        allowed = allowed | {2} if process.pid in self._small else allowed
        if "interrupted;" in said:  # another signal came while the process ended, after all was kept
            allowed = allowed | {-one for one in STOPS}
        if process.returncode not in allowed or "Traceback" in said:
            self._campaign.odd_exits.append(f"exit {process.returncode}: {said.strip()[-300:]}")

    def finish(self) -> None:
        """Let all processes end, then run once more, undisturbed."""
        for process in self._living:
            process.send_signal(signal.SIGCONT)
            self.check(process)
        self._living = []
        self.check(self.start(), allowed={0})

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave no process behind."""
        for process in self._living:
            process.kill()
            process.communicate()


def run_campaign(seed: int, stub: StubProcess) -> Campaign:
    """Disturb runs in one folder, let the last one end, and compare its results with those of an undisturbed run."""
    campaign = Campaign(seed)
    with tempfile.TemporaryDirectory(prefix="pcs-chaos-") as name:
        folders = [Path(name) / "calm", Path(name) / "stormy"]
        for folder in folders:
            write_texts(folder, stub.url)
        stub.change(**dict.fromkeys(FAULTS, 0.0), seed=seed)
        with chdir(folders[0]):
            assert main_of_pcs(["run", "texts.csv", "-o", "run", "--quiet"]) == 0
        stub.change(**FAULTS, latency_s=0.05, jitter_s=0.1)
        stub.reset()
        with Crew(folders[1], campaign) as crew:
            disturb(crew, stub, random.Random(seed))
            stub.change(latency_s=0.0, jitter_s=0.0)
            crew.finish()
        compare(campaign, folders[1] / "run", folders[0] / "run")
    campaign.paid_twice = stub.stats().answered_twice
    return campaign


def disturb(crew: Crew, stub: StubProcess, chance: random.Random) -> None:
    """Send signals at random moments; keep one to three processes going."""
    wanted = chance.randint(1, 3)
    for _ in range(chance.randint(2, 5)):
        while len(crew.living()) < wanted:
            crew.start(chance)
            time.sleep(chance.uniform(0, 0.3))
        wait_for(stub, stub.stats().requests + chance.randint(0, 80), crew)
        time.sleep(chance.uniform(0, 0.3))
        if not crew.living():
            continue
        process = chance.choice(crew.living())
        if chance.random() < 0.2:
            crew.lock_ledger(chance.uniform(0.1, 2))
        elif chance.random() < 0.25:
            freeze(crew, process, chance.uniform(0.2, 2 * TIMEOUT))
        else:
            crew.send(process, chance.choice(STOPS))


def wait_for(stub: StubProcess, requests: int, crew: Crew) -> None:
    """Wait until the server has had this many requests, or for a few seconds: there may be none left to make."""
    until = time.monotonic() + 4
    while crew.living() and stub.stats().requests < requests and time.monotonic() < until:
        time.sleep(0.02)


def freeze(crew: Crew, process: subprocess.Popen[str], seconds: float) -> None:
    """Stop a process for a while; others may wait for it, and its deadlines pass."""
    crew.send(process, signal.SIGSTOP)
    time.sleep(seconds)
    process.send_signal(signal.SIGCONT)


def write_texts(folder: Path, url: str) -> None:
    """Write the texts, a third of them with gold, and the settings."""
    folder.mkdir()
    labels = QUIET.labels
    rows = [f"{row},Text {row} says something.,{labels[row % 3] if row % 3 == 0 else ''}" for row in range(ROWS)]
    (folder / "texts.csv").write_text("\n".join(["id,text,gold", *rows]) + "\n")
    (folder / "pcs.toml").write_text(SETTINGS.format(url=url))


def compare(campaign: Campaign, found: Path, reference: Path) -> None:
    """Count rows that are missing, and those whose label or votes differ."""
    expected, labels = (read_labels(folder) for folder in (reference, found))
    campaign.lost_rows = len(expected.keys() - labels.keys())
    campaign.differing = sum(labels[row] != label for row, label in expected.items() if row in labels)
    campaign.differing += read_votes(found) != read_votes(reference)


def read_labels(folder: Path) -> dict[str, tuple[str, ...]]:
    """Return id → what the run says about the row; empty if there is no result."""
    if not (folder / "labels.csv").exists():
        return {}
    rows = pyarrow.csv.read_csv(folder / "labels.csv").to_pylist()
    return {str(row["id"]): tuple(str(value) for value in row.values()) for row in rows}


def read_votes(folder: Path) -> object:
    """Return the votes of a run, in a fixed order."""
    path = folder / "variables/label/votes.parquet"
    return sorted(map(str, pyarrow.parquet.read_table(path).to_pylist())) if path.exists() else None


def campaigns(count: int, first: int) -> Iterator[Campaign]:
    """Run campaigns with seeds from `first` on."""
    with stub_process(QUIET, max_seconds=60 * count + 600) as stub:
        for seed in range(first, first + count):
            yield run_campaign(seed, stub)


def main(count: int = 100, first: int = 1) -> int:
    """Run campaigns, print a table, and return 1 if anything was lost, mixed up or paid for twice."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # `nohup … &` would have all processes ignore them
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    done: list[Campaign] = []
    columns = ("seed", "processes", "signals", "rows lost", "labels differ", "paid twice", "excused", "")
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for one in campaigns(count, first):
        done.append(one)
        signals = ", ".join(f"{number} {name}" for name, number in sorted(one.signals.items()))
        figures = f"{one.lost_rows} | {one.differing} | {one.paid_twice} | {one.excused}"
        verdict = "held" if one.held else "; ".join(one.odd_exits) or "BROKEN"
        print(f"| {one.seed} | {one.processes} | {signals} | {figures} | {verdict} |", flush=True)
    summarise(done)
    return int(not all(one.held for one in done))


def summarise(done: list[Campaign]) -> None:
    """Print the sums."""
    unkilled = [one for one in done if not one.signals["SIGKILL"]]
    signals = sum((one.signals for one in done), Counter[str]())
    twice = sum(one.paid_twice for one in done)
    print(f"\n{sum(one.held for one in done)} of {len(done)} campaigns held; {signals.total()} signals {dict(signals)}")
    print(f"{sum(one.lost_rows for one in done)} rows lost, {sum(one.differing for one in done)} labels differ")
    print(
        f"paid twice: {sum(one.paid_twice for one in unkilled)} in {len(unkilled)} campaigns without SIGKILL,", end=" "
    )
    print(f"{twice} in all, {twice / max(signals['SIGKILL'], 1):.1f} per SIGKILL with at most {IN_FLIGHT} in flight")


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:3])))
