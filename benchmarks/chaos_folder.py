"""Takes the disk, the rights or the process away while a fitted run is used, and counts what was lost or mixed up.

Five kinds of campaigns, each compared with what an undisturbed copy of the run gives:

* `serve` and `label` in a folder whose disk (a small tmpfs) is full at a random moment, and has room again later;
* `label` while the rights to write to folder and output are gone, and come back;
* two reviewers in one process that is killed again and again, and `pcs fit` at once, which is killed, too;
* `pcs finish`, killed at random moments, then run to its end.

Run it with `python -m benchmarks.chaos_folder [campaigns] [first seed] [kind …]`. A disk of its own takes the rights of
root on Linux, and so do rights that can be taken away; without them these kinds are skipped, with the reason.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from pcs_annotator.core.events import Verdict  # noqa: E402
from pcs_annotator.runs.draw_registry import review_events  # noqa: E402
from pcs_annotator.runs.paths import RunFolder  # noqa: E402
from tests.faces.serve.killing import promising_stub_run  # noqa: E402
from tests.faces.serve.processes import LABELS, service_process  # noqa: E402
from tests.simulated import copy_run, read_csv, write_csv  # noqa: E402
from tests.stub import Behaviour, StubProcess, stub_process  # noqa: E402

NEW_TEXTS, SERVED = 60, 40
PCS = (sys.executable, "-m", "pcs_annotator")
OBEYING = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
"""Root may write everywhere; without these rights it is held to permissions, as other users are."""

REVIEWING = """
import sys
from pathlib import Path
from pcs_annotator.reviewing.session import Review
from pcs_annotator.reviewing.values import Given, ReviewOptions

with Review.open(Path(sys.argv[1]), ReviewOptions(refit_every=0)) as review:
    for turn in range(30):
        name = ("ann", "ben")[turn % 2]
        shown = review.next_row(name, "random")
        if shown is None:
            break
        keys = dict(id=shown.id, reviewer=name, queue="random", lease=shown.lease, version=shown.version)
        given = Given(label="positive", **keys)
        print(shown.id, name, review.submit(given).number, flush=True)
"""


class Made(NamedTuple):
    """What all campaigns use: a run with gold for all rows, one with gold for a half, and new texts with labels."""

    stub: StubProcess
    fitted: Path
    half: Path
    new: Path
    labels: list[dict[str, str]]
    finished: dict[str, object]


def make(stub: StubProcess, folder: Path) -> Made:
    """Make the runs, and what undisturbed commands give."""
    fitted = promising_stub_run(stub.url, folder)
    pcs("fit", fitted, "--max-error", "0.1")
    rows = read_csv(folder / "data.csv")
    some = [{**row, "id": f"r{at}", "gold": row["gold"] if at % 2 else ""} for at, row in enumerate(rows[:160])]
    data = write_csv(folder / "half.csv", some)
    how = ("--labels", ",".join(LABELS), "--relations", "original", "--max-error", "0.1", "--no-text")
    half = folder / "half"
    pcs("run", data, "-o", half, "--model", f"{stub.url}#one", *how, "--optimiser", "lr")
    new = write_csv(folder / "new.csv", [{"id": f"n{row}", "text": f"New text {row}."} for row in range(NEW_TEXTS)])
    calm = copy_run(fitted, folder / "calm")
    pcs("label", new, "--run", calm, "-o", folder / "calm.csv")
    finished = outcome_of_finish(copy_run(half, folder / "calm-half"))
    return Made(stub, fitted, half, new, read_csv(folder / "calm.csv"), finished)


def pcs(*arguments: object, allowed: tuple[int, ...] = (0, 1), obeying: bool = False) -> str:
    """Run a command to its end; return what it printed, or raise if the exit code is none of these."""
    command = [*(OBEYING if obeying else ()), *PCS, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode not in allowed or "Traceback" in done.stderr:
        raise Broken(f"pcs {arguments[0]} ended with {done.returncode}: {done.stderr.strip()[-400:]}")
    return done.stdout


class Broken(Exception):
    """Something was lost, mixed up, or not said in a sentence."""


def demand(holds: bool, what: str) -> None:
    if not holds:
        raise Broken(what)


@contextmanager
def small_disk(folder: Path, megabytes: int = 8) -> Iterator[Path]:
    """Mount a disk of its own."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "pcs-chaos", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@contextmanager
def full(disk: Path, left: int) -> Iterator[None]:
    """Leave so many bytes of a disk."""
    filler = disk / "filler"
    free = shutil.disk_usage(disk).free
    filler.write_bytes(bytes(max(free - left, 0)))
    try:
        yield
    finally:
        filler.unlink()


def ask(url: str, text: str) -> dict[str, object] | None:
    """Return the item of a reply that has a label; None for any other answer."""
    body = json.dumps({"input": text}).encode()
    try:
        with urlopen(Request(f"{url}/v1/classify", body, {"Content-Type": "application/json"}), timeout=60) as answer:
            item: dict[str, object] = json.load(answer)["data"][0]
            return item if item["label"] is not None else None
    except HTTPError as error:
        said = json.load(error)["error"]["message"]
        demand("bug" not in said, f"the service answered {error.code}: {said}")
    except (URLError, ConnectionError) as error:
        raise Broken(f"the service is gone: {error}") from error
    return None


def full_disk_serve(made: Made, folder: Path, rng: random.Random) -> str:
    """Every text that was acknowledged is kept, and the service answers again once there is room."""
    with small_disk(folder / "disk") as disk:
        run = copy_run(made.fitted, disk / "run")
        told: dict[str, dict[str, object]] = {}

        def send(prefix: str) -> int:
            texts = [f"{prefix} text {row}, {rng.random()}." for row in range(SERVED)]
            with ThreadPoolExecutor(8) as pool:
                items = pool.map(lambda text: ask(service.url, text), texts)
                answered = {text: item for text, item in zip(texts, items, strict=True) if item}
            told.update(answered)
            return len(answered)

        with service_process(run, "--ask", "all", "--audit", "1", "--on-drift", "accept") as service:
            demand(send("Before") == SERVED, "texts without a label before the disk was full")
            with full(disk, rng.choice((0, rng.randint(0, 100_000)))):
                unlabelled = SERVED - send("Full")
            until = time.monotonic() + 60
            while send("After") < SERVED and time.monotonic() < until:
                time.sleep(0.5)
            demand(send("Later") == SERVED, "texts without a label a minute after there was room again")
        kept = in_stream(run)
        lost = [text for text, item in told.items() if text not in kept]
        demand(not lost, f"{len(lost)} of {len(told)} acknowledged texts are not in the stream, such as {lost[:1]}")
        demand(all(kept[text] == item["id"] for text, item in told.items()), "IDs in the stream differ")
    return f"{unlabelled} of {SERVED} texts were refused while it was full"


def in_stream(run: Path) -> dict[str, str]:
    for name in ("ledger.db", "stream.db"):
        with closing(sqlite3.connect(run / name)) as database:
            demand(database.execute("PRAGMA integrity_check").fetchone() == ("ok",), f"{name} is damaged")
    with closing(sqlite3.connect(run / "stream.db")) as database:
        return dict(database.execute("SELECT text, id FROM texts").fetchall())


def full_disk_label(made: Made, folder: Path, rng: random.Random) -> str:
    """The command ends with a sentence, and once there is room it gives what it always gives."""
    with small_disk(folder / "disk") as disk:
        run, out = copy_run(made.fitted, disk / "run"), disk / "out.csv"
        made.stub.reset()
        with full(disk, rng.choice((0, rng.randint(0, 300_000)))):
            pcs("label", made.new, "--run", run, "-o", out, allowed=(0, 1, 2))
            ended = out.exists()
        label_again(made, run, out)
    return "it had room enough" if ended else "it ended with a sentence"


def read_only(made: Made, folder: Path, rng: random.Random) -> str:
    """Rights that go at a random moment end the command with a sentence; when they come back, nothing is lost."""
    home = folder / "home"
    home.mkdir()
    run, out = copy_run(made.fitted, home / "run"), home / "out.csv"
    made.stub.reset()
    paths = [home, *home.rglob("*")]
    with ThreadPoolExecutor(1) as pool:
        labelling = pool.submit(
            pcs, "label", made.new, "--run", run, "-o", out, allowed=(0, 1, 2), obeying=os.geteuid() == 0
        )
        time.sleep(rng.uniform(0, 4))
        for path in paths:
            path.chmod(0o555 if path.is_dir() else 0o444)
        labelling.result()
    ended = out.exists()
    for path in [home, *home.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    label_again(made, run, out)
    return "it had ended before" if ended else "it ended with a sentence"


def label_again(made: Made, run: Path, out: Path) -> None:
    """Label once more, undisturbed, and compare; a call may be paid for twice if its answer could not be kept."""
    pcs("label", made.new, "--run", run, "-o", out, "--replace")
    found = read_csv(out)
    demand(found == made.labels, f"{len(found)} labels, some differ from those of an undisturbed command")
    twice = made.stub.stats().answered_twice
    demand(twice <= 64, f"{twice} calls were paid for twice")


def two_reviewers(made: Made, folder: Path, rng: random.Random) -> str:
    """Every verdict that was said to be saved is there once, and a fit learns from exactly these."""
    run, said = copy_run(made.half, folder / "run"), list[tuple[str, str, int]]()
    for _ in range(3):
        both = [(sys.executable, "-c", REVIEWING, str(run)), (*PCS, "fit", str(run), "--quiet")]
        reviewing, fitting = (
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for command in both
        )
        for process in rng.sample([reviewing, fitting], 2):
            time.sleep(rng.uniform(0.5, 3))
            if process.poll() is None and rng.random() < 0.7:
                process.send_signal(signal.SIGKILL)
        printed, trouble = reviewing.communicate(timeout=120)
        _, of_fit = fitting.communicate(timeout=120)
        demand("Traceback" not in of_fit, of_fit[-400:])
        demand("Traceback" not in trouble or "another review" in trouble, trouble[-400:])
        lines = [line.split() for line in printed.splitlines(keepends=True) if line.endswith("\n")]
        said += [(name, reviewer, int(number)) for name, reviewer, number in lines]
    events = [event for event in review_events(RunFolder(run).draws) if isinstance(event, Verdict)]
    kept = [(event.id, event.reviewer, event.number) for event in events]
    demand({*said} <= {*kept}, f"verdicts that were said to be saved are lost: { ({*said} - {*kept}) }")
    demand(len({*kept}) == len(kept), "a verdict is there twice")
    learned = []
    for place in (run, copy_run(run, folder / "calm")):  # what they promise differs: tests of the gold labels count
        pcs("fit", place, "--quiet")
        weights = json.loads(RunFolder.find(place).model.read_text())["weights"]
        learned.append({**weights, "diagnostics": weights["diagnostics"]["gold_rows"]})
    demand(learned[0] == learned[1], "a fit after the kills differs from that of a calm copy")
    return f"{len(said)} verdicts"


def finish_killed(made: Made, folder: Path, rng: random.Random) -> str:
    """A last `pcs finish` says what an undisturbed one says, and spends no more of the promise."""
    run, killed = copy_run(made.half, folder / "run"), 0
    for _ in range(3):
        command, pipe = [*PCS, *map(str, finishing(run))], subprocess.PIPE
        process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)
        time.sleep(rng.uniform(0.2, 4))
        process.send_signal(signal.SIGKILL)
        demand("Traceback" not in process.communicate()[1], "a traceback of pcs finish")
        killed += process.returncode == -signal.SIGKILL
    found = outcome_of_finish(run)
    demand(found == made.finished, f"{found} instead of {made.finished}")
    return f"killed {killed} times"


def finishing(run: Path) -> tuple[object, ...]:
    return "finish", run, "--max-error", "0.2", "--json"


def outcome_of_finish(run: Path) -> dict[str, object]:
    """Return what `pcs finish` says, which rows people are to label, and how many tests have been made."""
    said = json.loads(pcs(*finishing(run)))
    rows = sorted(row["id"] for row in read_csv(run / "to_label.csv"))
    levels = json.loads((run / "levels.json").read_text())
    tests = {part: len(value.get("tests", ())) for part, value in levels.items() if isinstance(value, dict)}
    return {**{name: said[name] for name in ("rows", "gold_rows", "left") if name in said}, "ids": rows, "tests": tests}


KINDS: dict[str, Callable[[Made, Path, random.Random], str]] = {
    "full-disk-serve": full_disk_serve,
    "full-disk-label": full_disk_label,
    "read-only": read_only,
    "two-reviewers": two_reviewers,
    "finish-killed": finish_killed,
}


def reasons_to_skip() -> dict[str, str]:
    """Return the kinds that cannot be run here, and why."""
    skipped: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as name:
        try:
            with small_disk(Path(name) / "disk"):
                pass
        except (OSError, subprocess.CalledProcessError):
            skipped |= dict.fromkeys(("full-disk-serve", "full-disk-label"), "no disk can be mounted: not root")
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        skipped["read-only"] = "root may write everywhere"
    return skipped


class Campaign(NamedTuple):
    """What happened in one campaign."""

    seed: int
    kind: str
    held: bool
    what: str


def campaigns(count: int, first: int, kinds: list[str]) -> Iterator[Campaign]:
    """Run campaigns with seeds from `first` on."""
    with ExitStack() as stack:
        stub = stack.enter_context(stub_process(Behaviour(latency_s=0.05), max_seconds=60 * count + 600))
        made = make(stub, Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pcs-chaos-"))))
        for seed in range(first, first + count):
            kind, held = kinds[seed % len(kinds)], True
            with tempfile.TemporaryDirectory(prefix="pcs-chaos-") as name:
                try:
                    what = KINDS[kind](made, Path(name), random.Random(seed))
                except (Broken, subprocess.TimeoutExpired) as error:
                    held, what = False, str(error)
            yield Campaign(seed, kind, held, what)


def main(count: int, first: int, named: list[str]) -> int:
    skipped = reasons_to_skip()
    for kind, why in skipped.items():
        print(f"{kind} is skipped: {why}")
    kinds = [kind for kind in named or KINDS if kind not in skipped]
    held: dict[str, list[bool]] = {kind: [] for kind in kinds}
    for one in campaigns(count, first, kinds):
        held[one.kind].append(one.held)
        print(f"| {one.seed} | {one.kind} | {'held' if one.held else 'BROKEN'} | {one.what} |", flush=True)
    print("".join(f"{kind}: {sum(outcomes)} of {len(outcomes)} held\n" for kind, outcomes in held.items()))
    return int(not all(map(all, held.values())))


if __name__ == "__main__":
    words = sys.argv[1:]
    sys.exit(main(int(words[0]) if words else 25, int(words[1]) if len(words) > 1 else 1, words[2:]))
