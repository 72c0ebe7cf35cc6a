"""Every door through which somebody else's bytes come in, tried with one damaged input per number.

A door takes a source of chance and a folder, and returns; whatever it raises but our own errors is a bug.
"""

import asyncio
import io
import json
import random
import re
import sqlite3
import tempfile
import unicodedata
from collections.abc import Callable
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import xlsxwriter
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from pcs_annotator import Item, UserError
from pcs_annotator.asking.annotators.reply import read_label
from pcs_annotator.asking.ledger.admin import LedgerEntry
from pcs_annotator.asking.ledger.sqlite import Ledger
from pcs_annotator.core.chat import TokenPosition
from pcs_annotator.core.events import Draw, Undo, Verdict
from pcs_annotator.faces.serve import bodies
from pcs_annotator.faces.web.guard import Guard, Rules
from pcs_annotator.models.logprobs import pack
from pcs_annotator.runs.draw_registry import append_events
from pcs_annotator.runs.review_state import ReviewState
from pcs_annotator.runs.toml import read_config
from pcs_annotator.tables.arrow import columns_of, texts_of
from pcs_annotator.tables.find import read_file
from tests.fuzz.mutate import VALUES, as_json, bytes_like, either

Door = Callable[[random.Random, Path], None]
SETTINGS = b"""
[task]
labels = ["good", "bad"]
instruction = "Is it good?"
[task.meanings]
good = "better"
[[task.examples]]
text = "Nice."
label = "good"
[data]
text_column = "text"
[ask]
models = ["scripted:hash", "openai:gpt-4o-mini"]
concurrency = 8
timeout = 2.5
budget_usd = 1.0
prices = {"openai:gpt-4o-mini" = [0.1, 0.2]}
[relations]
use = ["original", "frame", "case+llm:voice"]
[learn]
optimiser = "lr"
max_error = 0.05
folds = 3
[variables.topic]
labels = ["a", "b"]
kind = "many"
"""
RUNNER = asyncio.Runner()  # an event loop per case would take half of its time
PIECES = (
    *"<>/{}[]\"'\\:,.-_* \n\t\0\ud800\u202e👍éİßſ01",
    *("<label>", "</label>", "<think>", "</think>", '"label":', '"answer": ', "e\u0301", "```json", "Answer: ", "&lt;"),
    *("not ", "or ", "cannot ", "say ", "the label is ", "neither ", "**", "Text: ", "\\u0046ake", "N/A", "none "),
)
SETS = (
    *(("Fake", "Real"), ("good", "bad", "very good"), ("0", "1", "2"), ("yes", "no"), ("New York", "new-york", "York")),
    *(("sí", "no sé"), ("C++", "C#", "C"), ("left/centre", "left/far", "right"), ("a", "b"), ("Überraschung", "Angst")),
)


def reply(chance: random.Random, folder: Path) -> None:
    """A label that is read is one of the task's, and it is in the reply: none is invented."""
    labels = chance.choice(SETS)
    words = [*PIECES, *labels * 4, *(label.upper() for label in labels)]

    def made(most: int) -> str:
        return "".join(chance.choice(words) for _ in range(chance.randint(0, most)))

    text, asked = made(25), made(10)
    found = read_label(text, labels, asked)
    assert (found.label is None) == bool(found.reason)
    if found.label is not None:
        assert found.label in labels
        assert folded(found.label) in folded(unescaped(text)), (text, labels, asked, found)


def unescaped(text: str) -> str:
    """Return a text and, after it, the same with its JSON escapes resolved."""
    plain = re.sub(r"\\u([0-9a-fA-F]{4})", lambda found: chr(int(found[1], 16)), text)
    return f"{text}\0{plain}\0{re.sub(r'[*_`]', '', plain)}"


def folded(text: str) -> str:
    """Return the letters, digits and signs that tell labels apart, whatever their case and accents."""
    plain = unicodedata.normalize("NFKD", text).casefold()
    return re.sub(r"[^\w+#]|_", "", "".join(one for one in plain if not unicodedata.combining(one)))


@cache
def tables() -> tuple[tuple[str, bytes], ...]:
    """Small tables in every format."""
    rows: dict[str, list[str | None]] = {
        "id": ["a", "b", "c"],
        "text": ["One, two", 'He said "no"', "é\nü"],
        "gold": ["good", None, "bad"],
    }
    table = pa.table({**rows, "number": [1.5, 2, None], "day": pa.array([0, 1, 2], pa.timestamp("s"))})
    parquet, workbook, feather = io.BytesIO(), io.BytesIO(), io.BytesIO()
    pyarrow.parquet.write_table(table, parquet)
    with pa.ipc.new_file(feather, table.schema) as writer:
        writer.write_table(table)
    with xlsxwriter.Workbook(workbook) as book:
        book.set_properties({"created": datetime(2026, 1, 1)})  # the same bytes every time
        sheet = book.add_worksheet("data")
        sheet.write_row(0, 0, ["id", "text", "gold"])
        sheet.write_row(1, 0, ["a", "One", "good"])
        sheet.write_formula(2, 1, "=1/0", value="#DIV/0!")
        sheet.write_datetime(3, 1, datetime(2026, 1, 2))
    listed = [{name: column[row] for name, column in rows.items()} for row in range(3)]
    delimited = 'id,text,gold\na,"One, two",good\nb,"He said ""no""",\nc,"é\nü",bad\n'.encode()
    lines = b"\n".join(as_json(row) for row in listed)
    found = {"csv": delimited, "tsv": delimited.replace(b",", b"\t"), "jsonl": lines, "json": as_json(listed)}
    found |= {"parquet": parquet.getvalue(), "xlsx": workbook.getvalue(), "feather": feather.getvalue()}
    return tuple(found.items())


def table(chance: random.Random, folder: Path) -> None:
    """A damaged table is read, or refused with a sentence."""
    ending, data = chance.choice(tables())
    path = folder / f"data.{ending}"
    path.write_bytes(bytes_like(data, chance))
    found = read_file(path)
    for name, column in columns_of(found).items():
        texts_of(column, name)


def settings(chance: random.Random, folder: Path) -> None:
    """A damaged `pcs.toml` is read, or refused with a sentence."""
    path = folder / "pcs.toml"
    if chance.random() < 0.5:
        path.write_bytes(bytes_like(SETTINGS, chance))
    else:
        text = SETTINGS.decode()
        places = [found.span() for found in re.finditer(r"(?<== ).+", text)]
        start, end = chance.choice(places)
        other = json.dumps(chance.choice([value for value in VALUES if value is not None]))
        path.write_text(text[:start] + other.replace("\\ud800", "") + text[end:], encoding="utf-8")
    read_config(path, folder)


@cache
def ledger_bytes() -> bytes:
    """A ledger with four calls."""
    made = Path(tempfile.mkdtemp(prefix="pcs-fuzz-")) / "ledger.db"
    token = (TokenPosition("good", (("good", -0.1), ("bad", -2.0))),)
    with Ledger(made) as ledger:
        ledger._insert(
            [
                LedgerEntry(bytes([n]) * 16, "m", "label", "good", "stop", 1, 2, 0.1, 0.5, 1.0, pack(token))
                for n in range(4)
            ]
        )
        ledger.prune(model="nobody")
    data = made.read_bytes()
    made.unlink()
    made.parent.rmdir()
    return data


def ledger(chance: random.Random, folder: Path) -> None:
    """A damaged ledger, or one with strange values, is read or refused; a reply that is read is a text."""
    path = folder / "ledger.db"
    for beside in folder.glob("ledger.db*"):
        beside.unlink(missing_ok=True)  # the last case may only now be closed, which removes its log
    path.write_bytes(ledger_bytes() if chance.random() < 0.6 else bytes_like(ledger_bytes(), chance))
    if path.read_bytes() == ledger_bytes():
        edited = sqlite3.connect(path)
        edited.execute("PRAGMA synchronous = OFF")
        with edited:
            for _ in range(chance.randint(1, 3)):
                column = chance.choice(LedgerEntry._fields[1:])
                value = chance.choice(
                    [None, "", b"\xff", "good", 2**62, -1, 1.5, b"\0" * 9, "\0", bytes(chance.randbytes(30))]
                )
                try:
                    edited.execute(f"UPDATE calls SET {column} = ? WHERE key > ?", (value, b"\1"))
                except sqlite3.IntegrityError:
                    continue
        edited.close()
    with Ledger(path) as opened:
        found = RUNNER.run(opened.find([bytes([number]) * 16 for number in range(4)]))
        for one in found.values():
            read_label(one.text, ("good", "bad"))
        opened.spending_by_day()


CLASSIFY: dict[str, Any] = {"input": ["A text.", "Another"], "model": "run", "groups": ["a", None]}
HEADERS = (b"host", b"origin", b"sec-fetch-site", b"authorization", b"cookie", b"content-length", b"x-request-id")
WORDS = (
    b"127.0.0.1:80",
    b"same-origin",
    b"Bearer secret",
    b"Basic OnNlY3JldA==",
    b"pcs=1",
    b"99999999999",
    b"null",
    b"[::1",
    b"http://[",
    b"",
)


def body(chance: random.Random, folder: Path) -> None:
    """A damaged request gets an answer below 500."""
    data = either(CLASSIFY, chance)
    headers = [(b"host", b"127.0.0.1")] if chance.random() < 0.7 else []
    for _ in range(chance.randint(0, 4)):
        word = chance.choice(WORDS)
        headers.append((chance.choice(HEADERS), bytes_like(word, chance) if chance.random() < 0.4 else word))
    path = chance.choice(["/v1/classify", "/health", "//evil", "/\0"])
    scope: dict[str, Any] = {"type": "http", "method": chance.choice(["POST", "GET"]), "path": path, "headers": headers}
    scope |= {"query_string": bytes_like(b"token=secret&next=/", chance), "raw_path": path.encode(), "scheme": "http"}
    sent: list[Message] = []
    parts = [{"type": "http.request", "body": data, "more_body": False}]

    async def receive() -> Message:
        return parts.pop() if parts else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    said: list[str] = []
    guard = Guard(reading, Rules(names=frozenset({"127.0.0.1"}), token=chance.choice(["", "secret"])), said.append)
    RUNNER.run(guard(scope, receive, send))
    assert sent[0]["status"] < 500, (data, headers, said)


async def reading(scope: Scope, receive: Receive, send: Send) -> None:
    """Read the body as the service does."""
    answer = PlainTextResponse("read")
    try:
        values = await bodies.read_object(Request(scope, receive))
        texts, _ = bodies.texts_and_model(values, 100)
        bodies.of_each_text(values, "group", len(texts))
    except HTTPException as error:
        answer = PlainTextResponse(error.detail, error.status_code)
    except UserError as error:
        answer = PlainTextResponse(str(error), 400)
    await answer(scope, receive, send)


@cache
def events() -> tuple[bytes, ...]:
    """The lines of a small review."""
    at = "2026-11-16T08:00:00Z"
    draw = Draw(number=1, id="a", text_hash="h", queue="learn", at=at, probability=0.25, pool=4, frame="f", reached=1)
    verdict = Verdict(number=2, id="a", text_hash="h", label="good", reviewer="anna", at=at, queue="learn", seconds=2.5)
    path = Path(tempfile.mkdtemp(prefix="pcs-fuzz-")) / "draws.jsonl"
    append_events(path, [draw, verdict, Undo(number=3, verdicts=(2,), reviewer="anna", at=at)])
    lines = path.read_bytes().splitlines()
    path.unlink()
    path.parent.rmdir()
    return tuple(lines)


def review(chance: random.Random, folder: Path) -> None:
    """A damaged log of a review is read, or refused with the line."""
    path = folder / "draws.jsonl"
    some = [line if chance.random() < 0.5 else either(json.loads(line), chance) for line in events()]
    path.write_bytes(b"\n".join([*some, b""]) if chance.random() < 0.9 else bytes_like(b"\n".join(events()), chance))
    state = ReviewState.read(path, [Item(id="a", text="A text."), Item(id="b", text="Another.")])
    for row in state.verdicts:
        assert row in (0, 1)
    assert state.sequence(["a", "b"]) is not None


DOORS: dict[str, Door] = {
    "reply": reply,
    "table": table,
    "settings": settings,
    "ledger": ledger,
    "body": body,
    "review": review,
}
