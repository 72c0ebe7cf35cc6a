"""Servers that send what no server should, one per case, and a client that asks them."""

import asyncio
import gzip
import json
import math
import tempfile
import time
import warnings
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from pcs_annotator import CollectSettings, Item, PcsError, Task, collect
from pcs_annotator.asking.engine.call import Patience
from pcs_annotator.base.errors import ModelError
from pcs_annotator.core.chat import Answers, ChatModel, Reply, Request
from pcs_annotator.models.resolve import resolve_model
from tests.models.stub import completion

MB = 2**20
Serve = Callable[[asyncio.StreamWriter], Awaitable[None]]


class Case(NamedTuple):
    """A hostile server.

    Attributes:
        seen: What the user sees, as a pattern.
        serve: Returns what answers one request; called when it is needed, because some bodies are large.
        answers: Whether log-probabilities are asked for.
    """

    seen: str
    serve: Callable[[], Serve]
    answers: Answers = "hard"


def head(status: str = "200 OK", *headers: str) -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", "Content-Type: application/json", *headers, "\r\n"]).encode()


def replies(body: bytes | dict[str, Any], *headers: str, status: str = "200 OK") -> Serve:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()

    async def serve(writer: asyncio.StreamWriter) -> None:
        writer.write(head(status, f"Content-Length: {len(raw)}", *headers) + raw)
        await writer.drain()

    return serve


def packed(encoding: str, bits: int, status: str = "200 OK") -> Serve:
    """A gigabyte of zeros, packed."""
    packer = zlib.compressobj(9, wbits=bits)
    start = packer.compress(b'{"choices":"') + packer.flush(zlib.Z_FULL_FLUSH)
    piece = packer.compress(bytes(MB)) + packer.flush(zlib.Z_FULL_FLUSH)

    async def serve(writer: asyncio.StreamWriter) -> None:
        writer.write(head(status, f"Content-Encoding: {encoding}", "Connection: close") + start)
        for _ in range(1024):
            writer.write(piece)
            await writer.drain()

    return serve


def endless(start: bytes, piece: bytes, pause: float = 0.0) -> Serve:
    async def serve(writer: asyncio.StreamWriter) -> None:
        writer.write(start)
        while True:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause)

    return serve


def says(content: object = "<label>yes</label>", *, ascii_only: bool = True, **more: Any) -> Serve:
    return replies(json.dumps(completion(content, **more), ensure_ascii=ascii_only).encode())


def graded() -> Serve:
    tokens = [{"token": " yes", "logprob": -1.0, "top_logprobs": []}] * 60_000
    return says(" yes", choice={"logprobs": {"content": tokens}})


def usages() -> dict[str, object]:
    counts: tuple[tuple[object, object], ...] = (
        (10**30, 2**63), (-5, "12"), ([1], {"a": 1}), (math.nan, math.inf), (True, 2.5),
    )  # fmt: skip
    shapes: dict[str, object] = {"a list": [1, 2], "a text": "many", "a number": 7}
    return shapes | {f"{sent!r}, {got!r}": {"prompt_tokens": sent, "completion_tokens": got} for sent, got in counts}


WAITING = "still waiting"
LARGE, SILENT, UNREADABLE = "the reply is larger than 4 MB", "no answer in time$", "cannot be read"
CHOICES: tuple[object, ...] = ({}, [], "x", [[]], [{"message": "yes"}], None)
EMPTY: tuple[object, ...] = ({"content": {"a": 1}}, {"content": None, "refusal": 5})
WAITS = ("999999999", "-5", "Fri, 31 Dec 9999 23:59:59 GMT", "Fri, 31 Dec 99999 23:59:59 GMT", "9" * 400, "1e999")
CASES: dict[str, Case] = {
    "gzip bomb of 1 GB": Case(LARGE, lambda: packed("gzip", 31)),
    "deflate bomb of 1 GB": Case(LARGE, lambda: packed("deflate", 15)),
    "bare deflate bomb of 1 GB": Case(LARGE, lambda: packed("deflate", -15)),
    "gzip bomb as an error": Case(r"failed \(500\)", lambda: packed("gzip", 31, "500 No")),
    "gzip of 3.9 MB": Case(
        "too long to read",
        lambda: replies(
            gzip.compress(json.dumps(completion("maybe yes " * 390_000)).encode()), "Content-Encoding: gzip"
        ),
    ),
    "brotli, not asked for": Case(
        "content-encoding: brotli", lambda: replies(b"\x0b\x02\x80{}\x03", "Content-Encoding: br")
    ),
    "gzip, broken": Case("content-encoding: gzip", lambda: replies(b"\x1f\x8bnot really", "Content-Encoding: gzip")),
    "endless body": Case(LARGE, lambda: endless(head(), b" " * 65536)),
    "endless error body": Case(r"failed \(503\): xxx", lambda: endless(head("503 No"), b"x" * 65536)),
    "endless headers": Case("Too many headers", lambda: endless(b"HTTP/1.1 200 OK\r\n", b"X-More: 1\r\n" * 4096)),
    "one endless header": Case("more than 8190", lambda: endless(b"HTTP/1.1 200 OK\r\nX-More: ", b"x" * 65536)),
    "a byte per second": Case(SILENT, lambda: endless(head("200 OK", "Content-Length: 1000"), b" ", 1.0)),
    "a header per second": Case(SILENT, lambda: endless(b"HTTP/1.1 200 OK\r\n", b"X-More: 1\r\n", 1.0)),
    "silence": Case(SILENT, lambda: endless(b"", b"", 1.0)),
    "nested a million deep": Case(UNREADABLE, lambda: replies(b'{"choices":' + b"[" * MB)),
    "nested 2,000 deep": Case(UNREADABLE, lambda: replies(b'{"choices":' + b"[" * 2000 + b"]" * 2000 + b"}")),
    "half a million objects": Case(
        f"{UNREADABLE}|{SILENT}", lambda: replies(b'{"choices":[' + b'{"a":0},' * (MB // 2 - 4) + b"0]}")
    ),
    "a number of 5,000 digits": Case(
        UNREADABLE, lambda: replies(b'{"choices":[],"usage":{"prompt_tokens":' + b"9" * 5000 + b"}}")
    ),
    "text of 3.9 MB": Case("too long to read", lambda: says("maybe yes " * 390_000)),
    "text of 3.9 MB, one emoji": Case(
        "too long to read", lambda: says("\U0001f600" + "<label>" * 550_000, ascii_only=False)
    ),
    "text of 3.6 MB, quotes": Case("too long to read", lambda: says('"yes", "no"\n' * 210_000)),
    "log-probabilities of 3.6 MB": Case("do not add up", graded, "auto"),
    "text with NUL and half a character": Case("^all votes$", lambda: says("<label>yes</label>\0\ud800")),
    **{
        f"usage: {name}": Case("^all votes$", lambda usage=usage: says(usage=usage))  # type: ignore[misc]  # lambda
        for name, usage in usages().items()
    },
    **{
        f"choices: {json.dumps(shape)}": Case(UNREADABLE, lambda shape=shape: replies({"choices": shape}))  # type: ignore[misc]  # lambda
        for shape in CHOICES
    },
    **{
        f"message: {json.dumps(message)}": Case(
            "empty reply",
            lambda message=message: replies({"choices": [{"message": message}]}),  # type: ignore[misc]  # lambda
        )
        for message in EMPTY
    },
    "a finish reason that is a list": Case("^all votes$", lambda: says(choice={"finish_reason": []})),
    "a limit of 5,000 digits": Case(
        "^all votes$",
        lambda: replies(
            completion("<label>yes</label>"),
            f"x-ratelimit-remaining-requests: {'9' * 5000}",
            f"x-ratelimit-reset-requests: {'9' * 400}s",
        ),
    ),
    "another model's name": Case("answers as 'a-cheaper-model'", lambda: says(model="a-cheaper-model")),
    "endless refusal (429)": Case(WAITING, lambda: endless(head("429 No", "Retry-After: 0"), b"x" * 65536)),
    **{
        f"Retry-After: {wait:.30}": Case(
            WAITING,
            lambda wait=wait: replies(b"{}", f"Retry-After: {wait}", status="429 No"),  # type: ignore[misc]  # lambda
        )
        for wait in WAITS
    },
}


@asynccontextmanager
async def serving(serve: Serve) -> AsyncIterator[str]:
    """Run a server that reads a request, answers it in its own way, and reads the next."""
    open_now: set[asyncio.StreamWriter] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_now.add(writer)
        try:
            while asked := await reader.readuntil(b"\r\n\r\n"):
                lines = asked.lower().split(b"\r\n")
                await reader.readexactly(next(int(line[15:]) for line in lines if line.startswith(b"content-length")))
                await serve(writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client has had enough
        finally:
            open_now.discard(writer)
            writer.transport.abort()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1#m"
    finally:
        server.close()
        for writer in list(open_now):
            writer.transport.abort()
        await asyncio.sleep(0)


@contextmanager
def in_a_thread(serve: Serve) -> Iterator[str]:
    """Run a server for synchronous code."""
    with asyncio.Runner() as runner, ThreadPoolExecutor(1) as thread:
        server = serving(serve)
        loop = runner.get_loop()
        url = loop.run_until_complete(server.__aenter__())
        running = thread.submit(loop.run_forever)
        try:
            yield url
        finally:
            loop.call_soon_threadsafe(loop.stop)
            running.result()
            loop.run_until_complete(server.__aexit__(None, None, None))


class Timed:
    """A model that remembers how long its longest call took, and how the first one failed."""

    def __init__(self, inner: ChatModel) -> None:
        self.inner = inner
        self.longest = 0.0
        self.error = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def ask(self, request: Request) -> Reply:
        started = time.perf_counter()
        try:
            return await self.inner.ask(request)
        except ModelError as error:
            self.error = self.error or str(error)
            raise
        finally:
            self.longest = max(self.longest, time.perf_counter() - started)


class Seen(NamedTuple):
    """What the user sees, and how many seconds the longest call took."""

    text: str
    longest: float


async def ask(url: str, *, answers: Answers, rows: int, deadline: float, longest: float) -> Seen:
    """Ask a server about some rows, one attempt each, and stop after `longest` seconds."""
    model, seen = Timed(resolve_model(url, {})), list[str]()
    settings = CollectSettings(environment={}, patience=Patience(deadline=deadline, attempts=1), answers=answers)
    task, items = Task("Is it so?", ["yes", "no"]), [Item(id=str(row), text=f"Text {row}.") for row in range(rows)]
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            async with asyncio.timeout(longest):
                votes = await collect(task, items, [model], ledger=Path(folder, "l.db"), settings=settings)
            count = int((votes.codes >= 0).sum())
            seen.append("all votes" if count == rows else f"{count} votes")
        except TimeoutError:
            seen.append("still waiting at the end")
        except PcsError as error:
            seen.append(type(error).__name__)
    tally = settings.tally
    seen += [f"{count} × {what}" for what, count in (tally.unreadable + tally.failed + tally.retries).items()]
    seen += [text for text in dict.fromkeys([model.error, *(str(one.message) for one in caught)]) if text]
    return Seen("; ".join(seen), model.longest)
