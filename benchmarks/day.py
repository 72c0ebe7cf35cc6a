"""A day in the life of a service, compressed: clients, drift, refits, an audit, outages, kills, and then the accounts.

50 clients send texts to `pcs serve`, which is killed (`kill -9`) after every 2,000 texts and started again at the same
port. Meanwhile the model server is gone for 20 seconds, later answers only 429 for five minutes, and in the middle its
answers change. People review what waits for them; `pcs fit` learns from their verdicts before and after the change. At
the end queue, metrics, log, `pcs status`, costs and versions must agree with what the clients saw.

Run it with `python -m benchmarks.day [--texts N] [--kill-every N] [--gone SECONDS] [--refusing SECONDS]`; results
are in `benchmarks/results/day.md`. Model server and service are processes of this machine, at 127.0.0.1.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import aiohttp
import numpy as np

from pcs_annotator.base.plain import from_plain
from pcs_annotator.core.identity import text_hash
from pcs_annotator.judging.model import Model
from pcs_annotator.reviewing.session import Review
from pcs_annotator.reviewing.values import Given, ReviewOptions
from pcs_annotator.runs.opened import Run
from pcs_annotator.runs.paths import RunFolder
from pcs_annotator.runs.stream import Stream
from pcs_annotator.tables.files import read_json
from tests.faces.serve.killing import promising_stub_run
from tests.faces.serve.processes import LABELS
from tests.stub import Behaviour, StubProcess, stub_process
from tests.stub.behaviour import pick

MARK = "quixotry"
"""A word of every text, which no log may have."""

AUDIT, SURE, MAX_ERROR = 0.2, 0.8, "0.1"
PRICE = (1.0, 2.0)
DRIFTED = (LABELS[0], LABELS[1], LABELS[1], LABELS[1])
SERIES = re.compile(r'^(\w+)(?:\{(?:\w+="([^"]*)",?)*\})? (\S+)$', re.MULTILINE)


class Reply(NamedTuple):
    """What a client was told about a text."""

    label: str
    confidence: float
    accepted: bool
    version: int
    id: str
    calls: int
    usd: float
    attempts: int  # how often the text had been sent


class Life(NamedTuple):
    """What a service said of itself while it lived, and what clients had been told until then."""

    told_before: int
    labelled: int  # by its metrics
    told_after: int
    calls: int
    usd: float


class Day:
    """The folder, the model server and everything that clients saw."""

    def __init__(self, options: argparse.Namespace, folder: Path, stack: ExitStack) -> None:
        self.options, self.folder = options, folder
        self._server, self._stack = ExitStack(), stack
        stack.enter_context(self._server)
        self.behaviour: dict[str, Any] = {"latency_s": 0.02}
        self.stub: StubProcess
        self.answered_by_earlier_servers = 0
        self.start_server(0)
        self.run = promising_stub_run(self.stub.url, folder, price=PRICE)
        self.calibration, self.answers_before = in_ledger(self.run), self.server_answers
        self.port = free_port()
        self.log = folder / "service.log"
        self.todo = deque(text_of(number) for number in range(options.texts))
        self.replies: dict[str, Reply] = {}
        self.attempts: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        self.lives: list[Life] = []
        self.kills = 0
        self.verdicts: dict[str, str] = {}
        self.began = time.monotonic()
        self.fit()  # with a promise

    @property
    def server_answers(self) -> int:
        """How many answers would have been charged."""
        return self.answered_by_earlier_servers + self.stub.stats().answered

    def start_server(self, port: int) -> None:
        """Start the model server, at a free port for 0."""
        self.stub = self._server.enter_context(stub_process(Behaviour(**self.behaviour), port=port, max_seconds=7200))

    async def lose_server(self, seconds: float) -> None:
        """Stop the model server for a while: nothing listens at its port."""
        port = urlsplit(self.stub.root).port or 0
        self.answered_by_earlier_servers += self.stub.stats().answered
        await asyncio.to_thread(self._server.close)
        await asyncio.sleep(seconds)
        await asyncio.to_thread(self.start_server, port)

    def change_server(self, **changes: Any) -> None:
        """Change how the model server behaves from now on."""
        self.behaviour |= changes
        self.stub.change(**changes)

    def fit(self) -> None:
        """Learn from verdicts as a user does, in another process."""
        pcs("fit", self.run, "--max-error", MAX_ERROR, "--quiet")

    def note(self, text: str) -> None:
        """Print what happens, and when."""
        print(f"{time.monotonic() - self.began:6.0f} s, {len(self.replies):7,} texts: {text}", flush=True)

    def told(self, text: str, body: dict[str, Any]) -> bool:
        """Note a reply; return whether it has a label."""
        item = body["data"][0]
        if item["label"] is None:
            self.failures[item["error"]["kind"]] += 1
            return False
        number, cost = int(body["model"].rpartition("@")[2]), item["cost"]
        accepted = item["decision"] == "accept"
        self.replies[text] = Reply(
            item["label"], item["confidence"], accepted, number, item["id"], cost["calls"], cost["usd"],
            self.attempts[text],
        )  # fmt: skip
        return True


def text_of(number: int) -> str:
    return f"Report {number} of the day, with some {MARK}: the weather was rather nice."


def free_port() -> int:
    import socket

    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return int(door.getsockname()[1])


def pcs(*arguments: object) -> str:
    command = [sys.executable, "-m", "pcs_annotator", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def in_ledger(run: Path) -> int:
    with closing(sqlite3.connect(run / "ledger.db")) as ledger:
        return int(ledger.execute("SELECT COUNT(*) FROM calls").fetchone()[0])


@asynccontextmanager
async def service(day: Day, session: aiohttp.ClientSession) -> AsyncIterator[subprocess.Popen[bytes]]:
    """Run `pcs serve` until the block ends, with its messages in a file."""
    options = ["--ask", "all", "--audit", AUDIT, "--timeout", 10, "--port", day.port, "--verbose"]
    command = [sys.executable, "-m", "pcs_annotator", "serve", day.run, *options]
    with day.log.open("ab") as log, subprocess.Popen([*map(str, command)], stderr=log) as process:
        try:
            while True:
                with suppress(aiohttp.ClientError):
                    async with session.get("/health") as answer:
                        if answer.status == 200:
                            break
                assert process.poll() is None, day.log.read_text()[-2000:]
                await asyncio.sleep(0.05)
            yield process
        finally:
            process.terminate()
            await asyncio.to_thread(process.wait, 60)


async def client(day: Day, session: aiohttp.ClientSession, until: asyncio.Event) -> None:
    """Send texts one after the other; one without a label is sent again."""
    while not until.is_set():
        try:
            text = day.todo.popleft()
        except IndexError:
            return
        day.attempts[text] += 1
        labelled = False
        try:
            async with session.post("/v1/classify", json={"input": text}) as answer:
                body = await answer.json()
                labelled = answer.status == 200 and day.told(text, body)
                day.failures.update([f"status {answer.status}"] * (answer.status != 200))
        except (aiohttp.ClientError, OSError, ValueError):
            day.failures["connection"] += 1
        if not labelled:
            day.todo.append(text)
            await asyncio.sleep(0.3)


async def live(day: Day, session: aiohttp.ClientSession) -> None:
    """Let one service answer until it is killed, or until no text is left."""
    async with service(day, session) as process:
        first, end = len(day.replies), asyncio.Event()
        clients = [asyncio.create_task(client(day, session, end)) for _ in range(day.options.clients)]
        while len(day.replies) < first + day.options.kill_every and not all(task.done() for task in clients):
            await asyncio.sleep(0.01)
        before, page = len(day.replies) - first, await metrics(session)
        day.lives.append(
            Life(
                before, page["labelled"], len(day.replies) - first, page["pcs_calls_total"], page["pcs_cost_usd_total"]
            )
        )
        if day.todo:
            process.kill()
            day.kills += 1
        end.set()
        await asyncio.gather(*clients)


async def metrics(session: aiohttp.ClientSession) -> dict[str, Any]:
    """Return name → sum of its samples, and how many texts got a label."""
    async with session.get("/metrics") as answer:
        page = await answer.text()
    values: Counter[str] = Counter()
    for line in page.splitlines():
        if not line.startswith("#") and line:
            name, _, number = line.rpartition(" ")
            values[name.partition("{")[0]] += float(number)  # type: ignore[assignment]  # a sum
            if name in ('pcs_texts_total{result="accept"}', 'pcs_texts_total{result="review"}'):
                values["labelled"] += int(number)
    return dict(values) | {"page": page, "labelled": values["labelled"]}


async def story(day: Day) -> None:
    """What happens while texts come."""
    size, gone, refusing = day.options.texts, day.options.gone, day.options.refusing

    async def until(texts: float) -> None:
        while len(day.replies) < min(texts, size):
            await asyncio.sleep(0.05)

    await until(size / 8)
    day.note(f"the model server is gone for {gone:g} s")
    await day.lose_server(gone)
    day.note("it is back")
    await until(size / 4)
    await learn(day)
    await until(size * 3 / 8)
    day.note(f"the model server answers 429 for {refusing:g} s")
    day.change_server(share_429=1.0)
    await asyncio.sleep(refusing)
    day.change_server(share_429=0.0)
    day.note("it answers")
    await until(size / 2)
    day.change_server(labels=DRIFTED)
    day.note("what comes changes: three quarters of the answers are negative")
    while not (alarm := alarmed(day)) and len(day.replies) < size:
        await asyncio.sleep(0.2)
    day.note("drift is noticed" if alarm else "drift was not noticed")
    await until(len(day.replies) + 2 * day.options.verdicts)
    await learn(day)


def alarmed(day: Day) -> bool:
    with Stream(RunFolder.find(day.run).stream) as stream:
        return bool(stream.note("alarm"))


async def learn(day: Day) -> None:
    """Let people review texts, and fit, while the service goes on."""
    given = await asyncio.to_thread(review, day)
    day.note(f"people have given {given} verdicts")
    await asyncio.to_thread(day.fit)
    day.note("pcs fit has ended")


def review(day: Day) -> int:
    """Give verdicts on texts of the stream, as somebody whose labels are those of sure answers."""
    given = 0
    with Review.open(RunFolder.find(day.run).path, ReviewOptions(refit_every=0)) as session:
        while given < day.options.verdicts and (shown := session.next_row("Ann", "stream")) is not None:
            reply = day.replies.get(shown.text)
            label = None if reply is None else truth(shown.text, reply)
            session.submit(
                Given(
                    id=shown.id, label=label, reviewer="Ann", queue="stream", lease=shown.lease, version=shown.version
                )
            )
            day.verdicts[shown.id] = label or ""
            given += 1
    return given


def truth(text: str, reply: Reply) -> str:
    right = pick(1000, text, "right") < (990 if reply.confidence > SURE else 650)
    return reply.label if right else LABELS[1 - LABELS.index(reply.label)]


async def whole_day(day: Day) -> dict[str, Any]:
    """Live through the day; return the last service's metrics, taken when nothing was in progress."""
    door = aiohttp.TCPConnector(limit=0, force_close=False)
    async with aiohttp.ClientSession(f"http://127.0.0.1:{day.port}", connector=door) as session:
        telling = asyncio.create_task(story(day))
        while day.todo or not telling.done():
            if day.todo:
                await live(day, session)
            elif not telling.done():
                await asyncio.wait([telling], timeout=0.2)
        await telling
        first = len(day.replies)
        day.todo.extend(text_of(number) for number in range(day.options.texts, day.options.texts + 500))
        async with service(day, session):
            await asyncio.gather(*(client(day, session, asyncio.Event()) for _ in range(day.options.clients)))
            page = await metrics(session)
            page["told"] = len(day.replies) - first
        day.note("the last service was stopped")
        return page


class Account(NamedTuple):
    """Something that two sides say, and by how much they may differ."""

    what: str
    clients: float
    other: float
    most: float = 0.0
    least: float = 0.0  # 'other' less 'clients' is between these

    @property
    def holds(self) -> bool:
        """Whether both sides agree."""
        return self.least <= round(self.other - self.clients, 9) <= self.most


def accounts(day: Day, page: dict[str, Any]) -> list[Account]:
    """Compare what clients saw with everything that was written."""
    return [*of_stream(day, page), *of_costs(day, page), *of_versions(day), *of_log(day, page)]


def of_stream(day: Day, page: dict[str, Any]) -> list[Account]:
    """The queue: every text that was not accepted or is drawn is there once, as the client was told."""
    at, like = RunFolder.find(day.run), Run.open(day.run).votes
    with Stream(at.stream) as stream:
        kept, counts = stream.read(like), stream.counts()
        drawn = {text for text in day.replies if stream._is_drawn(text_hash(text), AUDIT)}
    assert kept is not None
    rows = {item.text: row for row, item in enumerate(kept.items)}
    judged = judged_by_versions(at, kept)
    lost = wrong_id = wrong = earlier = mixed = 0
    for text, reply in day.replies.items():
        row = rows.get(text)
        if row is None:
            lost += not reply.accepted or text in drawn
            continue
        wrong_id += kept.items[row].id != reply.id
        differs = kept.version[row] != reply.version or bool(kept.accepted[row]) != reply.accepted
        wrong += differs and reply.attempts == 1
        earlier += differs and reply.attempts > 1
        mixed += judged[row] != (reply.label, reply.confidence) and kept.version[row] == reply.version
    surplus = len(rows.keys() - day.replies.keys())
    with Review.open(at.path, ReviewOptions(refit_every=0)) as session:
        shown = len(session.rows.streamed)
    return [
        Account("texts for people that are not in the stream", 0, lost),
        Account("texts in the stream that no client sent", 0, surplus),
        Account("texts in the stream with another ID than the client was told", 0, wrong_id),
        Account("… sent once, with another version or decision", 0, wrong),
        Account("… sent again after a lost reply, as they were judged first", 0, earlier, most=len(rows)),
        Account("… whose version gives another label or confidence", 0, mixed),
        Account("texts in the stream: rows, counts", len(rows), counts["texts"]),
        Account("texts in the stream: rows, /metrics", len(rows), page["pcs_stream_texts"]),
        Account("texts in the stream: rows, review", len(rows), shown),
        Account("verdicts: people, draws.jsonl", len(day.verdicts), verdicts_kept(at)),
    ]


def judged_by_versions(at: RunFolder, kept: Any) -> list[tuple[str | None, float | None]]:
    """Return what the version that judged each text says of the votes that are kept."""
    judged: list[tuple[str | None, float | None]] = [(None, None)] * len(kept.items)
    versions = np.array(kept.version)
    for number in set(kept.version):
        model, rows = from_plain(Model, read_json(at.at(number).model)), np.flatnonzero(versions == number)
        for row, outcome in zip(rows, model.judge(kept.votes.take(rows)), strict=True):
            judged[row] = outcome.label, outcome.confidence
    return judged


def verdicts_kept(at: RunFolder) -> int:
    lines = map(json.loads, at.draws.read_text(encoding="utf-8").splitlines())
    return sum("reviewer" in line for line in lines)


def of_costs(day: Day, page: dict[str, Any]) -> list[Account]:
    """Calls and dollars: a kill may lose what was in flight; an answer that nobody was told is free later."""
    slack = day.kills * day.options.clients
    again = sum(reply.calls == 0 for reply in day.replies.values())
    calls, usd = sum(reply.calls for reply in day.replies.values()), sum(reply.usd for reply in day.replies.values())
    ledger, status = in_ledger(day.run), status_of_service(day)
    answered = day.server_answers - day.answers_before
    dearest = max(reply.usd for reply in day.replies.values())
    return [
        Account("answers: ledger, model server", ledger - day.calibration, answered, most=slack),
        Account("calls: clients, ledger", calls + day.calibration, ledger, most=again),
        Account("texts: clients, ledger", len(day.replies) + day.calibration, ledger),
        Account("dollars: clients, services", usd, sum(life.usd for life in day.lives) + page["pcs_cost_usd_total"],
                most=again * dearest, least=-slack * dearest),
        *(
            Account(f"texts with a label, life {number}", life.told_before, life.labelled,
                    most=life.told_after - life.told_before + day.options.clients)
            for number, life in enumerate(day.lives, 1)
        ),
        Account("last service: texts, /metrics", page["told"], page["labelled"]),
        Account("last service: calls of pcs status, /metrics", status["calls"], page["pcs_calls_total"]),
        Account("last service: dollars of pcs status, /metrics", status["usd"], page["pcs_cost_usd_total"],
                most=1e-9, least=-1e-9),
        Account("pcs status: finished", 1, status["state"] == "finished"),
        Account("last service: texts in its queue", 0, page["pcs_queue_texts"]),
    ]  # fmt: skip


def status_of_service(day: Day) -> dict[str, Any]:
    jobs = json.loads(pcs("status", day.run, "--json"))["jobs"]
    return next(job for job in jobs if job["command"] == "serve")


def of_versions(day: Day) -> list[Account]:
    listed = json.loads(pcs("versions", day.run, "--json"))["versions"]
    numbers = {version["number"] for version in listed}
    last = list(day.replies.values())[-1]
    in_use = next(version["number"] for version in listed if version["in_use"])
    return [
        Account("versions that replies name and pcs versions does not", 0,
                len({reply.version for reply in day.replies.values()} - numbers)),
        Account("version: last reply, in use", last.version, in_use),
        Account("versions: the run's, one with a promise, two refits", 4, len(numbers)),
    ]  # fmt: skip


def of_log(day: Day, page: dict[str, Any]) -> list[Account]:
    log = day.log.read_text(encoding="utf-8", errors="replace")
    answered = len(re.findall(r"^POST /v1/classify 200 ", log, re.MULTILINE))
    sent = len(day.replies) + sum(count for name, count in day.failures.items() if name in TROUBLES)
    return [
        Account("texts in the log", 0, log.count(MARK)),
        Account("tracebacks in the log", 0, log.count("Traceback")),
        Account("answers: clients, log", sent, answered, least=-day.kills * day.options.clients,
                most=day.kills * day.options.clients),
    ]  # fmt: skip


TROUBLES = ("model_unavailable", "ledger_unavailable", "unanswerable", "late", "budget_reached", "drift")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=200_000)
    parser.add_argument("--kill-every", type=int, default=2_000)
    parser.add_argument("--gone", type=float, default=20.0)
    parser.add_argument("--refusing", type=float, default=300.0)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--verdicts", type=int, default=300)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pcs-day-")))
        day = Day(parser.parse_args(), folder, stack)
        page = asyncio.run(whole_day(day))
        compared = accounts(day, page)
        seconds = time.monotonic() - day.began
        print(f"\n{len(day.replies):,} texts in {seconds:,.0f} s, {day.kills} kills, failures {dict(day.failures)}")
        print(f"accepted {sum(reply.accepted for reply in day.replies.values()):,}, sent again "
              f"{sum(reply.attempts > 1 for reply in day.replies.values()):,}, by version "
              f"{dict(Counter(reply.version for reply in day.replies.values()))}\n")  # fmt: skip
        print("| compared | clients | other side | |\n|---|---|---|---|")
        for account in compared:
            if not account.what.startswith("texts with a label, life") or not account.holds:
                verdict = "" if account.holds else "DIFFERS"
                print(f"| {account.what} | {account.clients:,.10g} | {account.other:,.10g} | {verdict} |")
        broken = [account for account in compared if not account.holds]
        print(f"\n{len(compared) - len(broken)} of {len(compared)} agree")
        if broken:
            print("".join(day.log.read_text(errors="replace").splitlines(keepends=True)[-5:]))
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
