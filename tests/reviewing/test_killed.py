"""A review that is killed: every verdict that was said to be saved is there."""

import random
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from pcs_annotator.core.events import Verdict
from pcs_annotator.reviewing.session import Review
from pcs_annotator.reviewing.values import ReviewOptions
from pcs_annotator.runs.draw_registry import review_events
from tests.simulated import simulated_run

pytestmark = pytest.mark.system

REVIEWING = """
import sys
from pathlib import Path
from pcs_annotator.reviewing.session import Review
from pcs_annotator.reviewing.values import Given, ReviewOptions

review = Review.open(Path(sys.argv[1]), ReviewOptions(refit_every=0))
while (shown := review.next_row("ann", "learn")) is not None:
    lease, version = shown.lease, shown.version
    given = Given(id=shown.id, label="good", reviewer="ann", queue="learn", lease=lease, version=version)
    print(shown.id, review.submit(given).number, flush=True)
"""


def review_until_killed(run: Path, verdicts: int, rng: random.Random) -> list[tuple[str, int]]:
    """Let a process review, kill it at a random moment after so many verdicts, and return what it said is saved."""
    process = subprocess.Popen([sys.executable, "-c", REVIEWING, str(run)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(verdicts)]
    try:
        process.wait(rng.uniform(0, 0.02))
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
    rest = process.stdout.read().splitlines(keepends=True)
    process.stdout.close()
    process.wait()
    said = [line.split() for line in [*lines, *rest] if line.endswith("\n")]
    return [(name, int(number)) for name, number in said]


def saved(run: Path) -> list[tuple[str, int]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a last line may be cut off
        events = review_events(run / "draws.jsonl")
    assert [event.number for event in events] == sorted({event.number for event in events})
    return [(event.id, event.number) for event in events if isinstance(event, Verdict)]


def check_kills(run: Path, kills: int, verdicts: int) -> None:
    rng, said = random.Random(kills), list[tuple[str, int]]()
    for _ in range(kills):
        said += review_until_killed(run, verdicts, rng)
        assert set(said) <= set(saved(run))
    assert len(said) >= kills * verdicts
    assert len(dict(said)) == len(said)  # nobody had to judge a row twice
    with Review.open(run, ReviewOptions(refit_every=0)) as review:  # the lock of a dead process is free
        assert review.progress("ann").verdicts >= len(said)


def test_every_acknowledged_verdict_survives_a_kill(run: Path) -> None:
    check_kills(run, kills=2, verdicts=8)


@pytest.mark.slow
def test_every_acknowledged_verdict_survives_20_kills(tmp_path: Path) -> None:
    simulated_run(tmp_path, rows=400, gold_rows=20)
    check_kills(tmp_path / "run", kills=20, verdicts=10)
