"""A service under load that is killed again and again while `pcs fit` makes versions; then what it said is checked."""

import asyncio
import csv
import random
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from itertools import count
from pathlib import Path
from threading import Event, Thread
from typing import Any, NamedTuple

import aiohttp
import numpy as np

from pcs_annotator.base.plain import from_plain
from pcs_annotator.core.identity import text_hash
from pcs_annotator.judging.model import Model
from pcs_annotator.runs.opened import Run
from pcs_annotator.runs.paths import RunFolder
from pcs_annotator.runs.run_request import RunRequest
from pcs_annotator.runs.settings import AskSettings, Config, LearnSettings, RelationSettings, TaskSettings
from pcs_annotator.runs.stream import Stream
from pcs_annotator.tables.files import read_json
from tests.faces.serve.processes import LABELS, ServiceProcess, service_process
from tests.simulated import run

AUDIT = 0.2
MAX_ERRORS = (0.05, 0.2)
"""What versions promise in turn, so that they decide differently."""

SURE = 0.62


def promising_stub_run(url: str, folder: Path, rows: int = 300, price: tuple[float, float] | None = None) -> Path:
    """Return a run folder whose model, one of a stub, is right when it is sure; a price is per million tokens."""
    data, rng = folder / "data.csv", random.Random(0)
    config = Config(
        task=TaskSettings(labels=LABELS),
        ask=AskSettings(models=(f"{url}#one",), prices={f"{url}#one": price} if price else {}),
        relations=RelationSettings(use=("original",)),
        learn=LearnSettings(optimiser="lr", text=False, folds=3, resamples=0),
    )
    _write(data, ["text"], ([f"Calibration text {row}."] for row in range(rows)))
    run(RunRequest(data=data, folder=folder / "first", config=config, environment={}))
    votes = Run.open(folder / "first").votes
    assert votes.grades is not None
    sure, said = votes.grades[:, 0, 0, 0].max(axis=1).tolist(), votes.codes[:, 0, 0, 0].tolist()
    wrong = (rng.random() < (0.01 if share > SURE else 0.35) for share in sure)
    gold = [LABELS[1 - code if other else code] for code, other in zip(said, wrong, strict=True)]
    _write(data, ["text", "gold"], ([f"Calibration text {row}.", label] for row, label in enumerate(gold)))
    run(RunRequest(data=data, folder=folder / "run", config=config, environment={}))
    return folder / "run"


def _write(path: Path, header: list[str], rows: Iterator[list[str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


class Acknowledged(NamedTuple):
    """What a client was told about a text."""

    text: str
    model: str
    item: dict[str, Any]


class Checked(NamedTuple):
    """How many replies were checked, and what was wrong with them."""

    replies: int
    accepted: int
    versions: int  # that replies name
    changed: int  # how many services changed their version while they answered
    lost: int  # for people, or drawn, and not in the stream
    misplaced: int  # the stream has another version or decision than the reply
    mixed: int  # the version that the reply names decides differently on the votes of the stream


async def until_killed(service: ServiceProcess, prefix: str, clients: int, seconds: float) -> list[Acknowledged]:
    """Return what clients were told until the service was killed."""
    told: list[Acknowledged] = []
    numbers = count()
    async with aiohttp.ClientSession(service.url, connector=aiohttp.TCPConnector(limit=0)) as session:

        async def client() -> None:
            with suppress(aiohttp.ClientError):
                while True:
                    text = f"{prefix}, text {next(numbers)}, which may well be nice."
                    async with session.post("/v1/classify", json={"input": text}) as answer:
                        body = await answer.json()
                        if answer.status == 200:
                            told.append(Acknowledged(text, body["model"], body["data"][0]))

        async def kill() -> None:
            while not told:
                await asyncio.sleep(0.02)
            await asyncio.sleep(seconds)
            await asyncio.to_thread(service.kill)

        await asyncio.gather(kill(), *(client() for _ in range(clients)))
    return told


@contextmanager
def fitting(folder: Path) -> Iterator[None]:
    """Make versions with `pcs fit` until the block ends."""
    stop = Event()

    def fit() -> None:
        for turn in count(1):
            limit = str(MAX_ERRORS[turn % len(MAX_ERRORS)])
            command = [sys.executable, "-m", "pcs_annotator", "fit", str(folder), "--max-error", limit, "--spare-looks"]
            if stop.is_set():
                return
            subprocess.run(command, check=True, capture_output=True)

    thread = Thread(target=fit)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def kill_again_and_again(folder: Path, kills: int, clients: int = 100, seconds: float = 4.0) -> list[Acknowledged]:
    """Return what clients were told by services that were killed under load, one after the other."""
    rng, told = random.Random(0), list[Acknowledged]()
    with fitting(folder):
        for turn in range(kills):
            with service_process(folder, "--ask", "all", "--on-drift", "accept", "--audit", str(AUDIT)) as service:
                told += asyncio.run(until_killed(service, f"Turn {turn}", clients, rng.uniform(0.1, seconds)))
    return told


def check(folder: Path, told: list[Acknowledged]) -> Checked:
    """Compare what clients were told with the stream, and with what each version decides on the votes there."""
    at, like = RunFolder(folder), Run.open(folder).votes
    with Stream(at.stream) as stream:
        kept = stream.read(like)
        drawn = {one.text for one in told if stream._is_drawn(text_hash(one.text), AUDIT)}
    assert kept is not None
    assert len({item.text for item in kept.items}) == len(kept.items)
    with closing(sqlite3.connect(at.stream)) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    place = {item.text: row for row, item in enumerate(kept.items)}
    models = {number: from_plain(Model, read_json(at.at(number).model)) for number in set(kept.version)}
    lost = misplaced = mixed = 0
    for one in told:
        accepted, row = one.item["decision"] == "accept", place.get(one.text)
        if row is None:
            lost += not accepted or one.text in drawn
            continue
        number = int(one.model.rpartition("@")[2])
        same_id = kept.items[row].id == one.item["id"]
        misplaced += not (same_id and kept.version[row] == number and bool(kept.accepted[row]) == accepted)
        (outcome,) = models[number].judge(kept.votes.take(np.array([row])))
        mixed += (outcome.decision, outcome.label, outcome.confidence) != (
            one.item["decision"], one.item["label"], one.item["confidence"])  # fmt: skip
    accepted_all = sum(one.item["decision"] == "accept" for one in told)
    by_turn = {(one.text.partition(",")[0], one.model) for one in told}
    changed = sum(count > 1 for count in Counter(turn for turn, _ in by_turn).values())
    return Checked(len(told), accepted_all, len({one.model for one in told}), changed, lost, misplaced, mixed)
