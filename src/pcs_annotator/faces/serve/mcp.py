"""`pcs serve --mcp`: the service as tools of an assistant (Model Context Protocol over standard input and output).

Every line is a JSON-RPC message. What a caller can put right is a result with `isError`, in words for the assistant.
"""

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import redirect_stdout, suppress
from importlib.resources import files
from shlex import quote
from threading import Thread
from typing import Any, BinaryIO

import orjson
from starlette.exceptions import HTTPException

from pcs_annotator.base.errors import ConfigError, PcsError
from pcs_annotator.faces.serve.app import App, Limits, opened_app
from pcs_annotator.reviewing.session import Review
from pcs_annotator.reviewing.values import Query
from pcs_annotator.runs.codebook import CodebookFolder
from pcs_annotator.runs.labelling.service import Service
from pcs_annotator.version import __version__

ABOUT = orjson.loads((files(__package__) / "assets" / "mcp.json").read_bytes())
"""What is said about the server, and its tools."""
SERVER = {"name": "pcs", "version": __version__}
LARGEST_LINE, MOST_ROWS = 16 * 1024 * 1024, 50
PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603


class Tools:
    """Answers messages with an open service."""

    def __init__(self, app: App, service: Service, *, codebook: bool) -> None:
        self._app, self._service, self._codebook = app, service, codebook
        self._tools: Mapping[str, Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]]
        self._tools = {"classify": app.labelled, "status": self._status, "review_queue": self._review_queue}

    async def answer(self, line: bytes) -> dict[str, Any] | None:
        """Return the answer to a line; None if it wants none."""
        number = None
        try:
            message = orjson.loads(line)
            if not isinstance(message, dict) or not isinstance(message.get("method"), str):
                raise _Refused(INVALID_REQUEST, "a message must be a JSON object with a `method`")
            if (number := message.get("id")) is None:
                return None  # a notification
            params = message.get("params", {})
            if not isinstance(params, dict):
                raise _Refused(INVALID_PARAMS, "`params` must be an object")
            return {"jsonrpc": "2.0", "id": number, "result": await self._result(message["method"], params)}
        except orjson.JSONDecodeError as error:
            why = _Refused(PARSE_ERROR, f"the line is not valid JSON: {error}")
        except _Refused as error:
            why = error
        except Exception as error:  # its message may quote a text
            why = _Refused(INTERNAL_ERROR, f"the service failed: {type(error).__name__}")
        return {"jsonrpc": "2.0", "id": number, "error": dict(zip(("code", "message"), why.args, strict=True))}

    async def _result(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method == "tools/call":
            return await self._call(params.get("name"), params.get("arguments", {}))
        if method == "tools/list":
            return {"tools": ABOUT["tools"]}
        if method == "initialize":
            wanted, known = params.get("protocolVersion"), ABOUT["versions"]
            about = {"protocolVersion": wanted if wanted in known else known[0], "serverInfo": SERVER}
            return {**ABOUT["server"], **about}
        if method == "ping":
            return {}
        raise _Refused(NO_METHOD, f"there is no method {method!r}: this server has tools only")

    async def _call(self, name: object, given: object) -> dict[str, Any]:
        if not isinstance(name, str) or name not in self._tools or not isinstance(given, dict):
            known = ", ".join(self._tools)
            raise _Refused(INVALID_PARAMS, f"`name` must be one of {known}, and `arguments` must be an object")
        try:
            found, failed = await self._tools[name](given), False
        except (HTTPException, PcsError) as error:
            found, failed = {"error": getattr(error, "detail", str(error))}, True
        text = {"type": "text", "text": orjson.dumps(found).decode()}
        return {"content": [text], "structuredContent": found, "isError": failed}

    async def _status(self, given: dict[str, Any]) -> dict[str, Any]:
        waiting, spent = self._service.waiting, self._app.watch.figures()
        return {**self._app.state(), "labels": self._service.names, "kept_for_people": waiting, "figures": spent}

    async def _review_queue(self, given: dict[str, Any]) -> dict[str, Any]:
        rows, folder = given.get("rows", 10), self._service.folder.path
        if type(rows) is not int or not 1 <= rows <= MOST_ROWS:
            raise ConfigError(f"`rows` must be a whole number from 1 to {MOST_ROWS}")
        if self._codebook:
            raise ConfigError("a codebook has a queue for each variable: serve the folder of one of them")
        query = Query(decision="review", reviewed=False, sort="doubtful", size=rows)
        found = await asyncio.to_thread(Review.look, folder, query)
        fields = ("id", "text", "label", "confidence")
        shown = [{name: getattr(row, name) for name in fields} for row in found.rows]
        return {"total": found.total, "rows": shown, "next": f"a person runs: pcs review {quote(str(folder))}"}


class _Refused(Exception):  # code and message of a JSON-RPC error
    pass


async def serve_mcp(services: Mapping[str, Service], limits: Limits, book: CodebookFolder | None) -> None:
    """Open a run, or all parts of a codebook, and answer lines until standard input ends or a signal comes."""
    out, lines, loop = sys.stdout.buffer, asyncio.Queue[bytes](), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # on Windows
            loop.add_signal_handler(number, lines.put_nowait, b"")
    with redirect_stdout(sys.stderr):  # standard output has nothing but answers
        async with opened_app(services, limits, book) as app, asyncio.TaskGroup() as work:
            tools = Tools(app, next(iter(services.values())), codebook=book is not None)
            Thread(target=_read, args=(loop, lines), daemon=True).start()
            while line := await lines.get():
                work.create_task(_reply(tools, line, out))


async def _reply(tools: Tools, line: bytes, out: BinaryIO) -> None:
    if line.strip() and (found := await tools.answer(line)) is not None:
        with suppress(BrokenPipeError):
            out.write(orjson.dumps(found) + b"\n")
            out.flush()


def _read(loop: asyncio.AbstractEventLoop, lines: asyncio.Queue[bytes]) -> None:
    """Pass lines on; the thread has its own buffer, because Python waits for that of `sys.stdin` when it ends."""
    source, line = open(sys.stdin.fileno(), "rb", closefd=False), b"\n"  # noqa: SIM115
    while line:
        line = source.readline(LARGEST_LINE)
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(lines.put_nowait, line)
