"""The stub itself: its decisions about requests, and its server in this process."""

import asyncio
import json
import socket
from collections.abc import Callable, Mapping
from functools import partial
from types import TracebackType
from typing import Any, Literal

from tests.stub.answers import Answer, answer, in_form, labels_of
from tests.stub.batches import Batches
from tests.stub.behaviour import Behaviour, Dice, TokenBucket, digest
from tests.stub.connection import Connection, Reply, Request
from tests.stub.counters import Counters, Stats
from tests.stub.formats import HTML, Dialect, completion, error, http, models, wait_header
from tests.stub.logprobs import logprobs
from tests.stub.questions import Question, read_question

HOST = "127.0.0.1"
_REFUSALS = {
    411: ("length_required", "Send a Content-Length; this stub does not read chunked bodies."),
    413: ("request_too_large", "The body is over 8 MB."),
    429: ("rate_limit_exceeded", "Rate limit reached for requests. Please try again later."),
    500: ("server_error", "The server had an error while processing your request."),
    503: ("overloaded", "The model is overloaded. Please try again later."),
}
_SILENT = {"hang": Reply(b"", then="hang"), "drop_before": Reply(b"", then="close"), "reset": Reply(b"", then="reset")}


class Stub:
    """Answers requests and counts them; `url` is the base URL for OpenAI clients, `root` the same without `/v1`.

    `label_of` may be set to a function that chooses the label of an answer; an empty one is an answer without a label.
    """

    def __init__(self, behaviour: Behaviour) -> None:
        self.root = ""
        self.counters = Counters()
        self.connections: set[Connection] = set()
        self.label_of: Callable[[Question], str] | None = None
        self.batches = Batches(lambda: self.behaviour, self._answer_line)
        self._behave(behaviour)

    @property
    def url(self) -> str:
        return f"{self.root}/v1"

    def stats(self, *, full: bool = False) -> Stats:
        """Return the counters; `full` adds the times that were recorded."""
        return self.counters.stats(full=full)

    def change(self, **changes: Any) -> None:
        """Change the behaviour; the bucket is filled, counters and attempts are kept."""
        self._behave(self.behaviour.changed(changes))

    def reset(self) -> None:
        """Reset all counters and attempts, and fill the bucket."""
        self.counters.reset()
        self._behave(self.behaviour)

    def _behave(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        self._dice = Dice(behaviour)
        self._bucket = None if behaviour.rate is None else TokenBucket(behaviour.rate, behaviour.burst)

    def opened(self, connection: Connection) -> None:
        self.connections.add(connection)
        self.counters.connections += 1

    def closed(self, connection: Connection) -> None:
        self.connections.discard(connection)

    def sent(self, reply: Reply) -> None:
        if reply.question:
            record = self.behaviour.record_times
            self.counters.replied(reply.question, reply.status, paid=reply.paid, record=record)

    def abandoned(self, reply: Reply) -> None:
        if reply.question:
            self.counters.left()

    def handle(self, request: Request) -> Reply:
        path = request.path.partition("?")[0].rstrip("/")
        if request.fault:
            code, message = _REFUSALS[request.fault]
            return _closing(request.fault, error("openai", request.fault, code, message))
        if path.endswith(("/chat/completions", "/messages")) and request.method == "POST":
            reply = self._ask(request, "anthropic" if path.endswith("/messages") else "openai")
        elif path.endswith("/models") and request.method == "GET":
            allowed = self._lets_in(request)
            body = models(self.behaviour) if allowed else error("openai", 401, "invalid_api_key", "Wrong API key.")
            reply = Reply(http(200 if allowed else 401, body))
        elif not self._lets_in(request) and not path.startswith("/__"):
            reply = Reply(http(401, error("openai", 401, "invalid_api_key", "Wrong API key.")), 401)
        else:
            reply = self.batches.handle(request, path) or self._control(request, path)
        if reply.then == "keep" and request.header(b"connection").lower() == "close":
            return reply._replace(then="close")
        return reply

    def _control(self, request: Request, path: str) -> Reply:
        try:
            match request.method, path:
                case "GET", "/__stats":
                    return _json(200, self.stats(full="full=1" in request.path).to_json())
                case "POST", "/__behaviour":
                    self.change(**json.loads(request.body))
                    return _json(200, self.behaviour.to_json())
                case "POST", "/__reset":
                    self.reset()
                    return _json(200, {})
        except (TypeError, ValueError) as problem:
            return _json(400, {"error": {"message": str(problem)}})
        return _json(404, {"error": {"message": f"There is no {request.method} {path} here."}})

    def _lets_in(self, request: Request) -> bool:
        key = self.behaviour.key
        if key is None or request.header(b"authorization") == f"Bearer {key}":
            return True
        return key in (request.header(b"x-api-key"), request.header(b"api-key"))

    def _answer_line(self, body: bytes, path: str) -> tuple[int, bytes]:
        """Return the status and body of the reply to one request of a batch, counted like a live one."""
        reply = self._ask(Request("POST", path, b"", b"", body), "anthropic" if path.endswith("messages") else "openai")
        self.sent(reply)
        status = reply.status or 500
        return status, reply.data.partition(b"\r\n\r\n")[2] if reply.status else b"{}"

    def _ask(self, request: Request, dialect: Dialect) -> Reply:
        mark = digest(request.path.encode("latin-1"), request.body)
        self.counters.arrived(mark, request.machine, record=self.behaviour.record_times)
        kind, delay, reply = self._decide(request, dialect, mark)
        self.counters.by_kind[kind] += 1
        return reply._replace(question=mark, delay=delay)

    def _decide(self, request: Request, dialect: Dialect, mark: bytes) -> tuple[str, float, Reply]:
        """Return the kind of reply, its delay, and the reply."""
        behaviour = self.behaviour
        if request.head and behaviour.key is not None and not self._lets_in(request):
            return _refuse(dialect, 401, "invalid_api_key", "Incorrect API key provided.")
        if self._bucket is not None:
            wait = self._bucket.take()
            if wait:
                # Not counted as an attempt: the faults of a question must not depend on the clock.
                return "limited", 0.0, _error(dialect, 429, wait_header(behaviour, wait))
        try:
            question = read_question(json.loads(request.body.decode()), request.path)
        except (ValueError, KeyError, TypeError, RecursionError):
            return _refuse(dialect, 400, "invalid_json", "The body is no JSON, or it has no messages.")
        if unfit := self._unfit(question):
            return _refuse(dialect, *unfit)
        kind, delay = self._dice.draw(mark, self.counters.attempt(mark))
        if kind == "429":
            return kind, 0.0, _error(dialect, 429, wait_header(behaviour, 0.05))
        return kind, delay, self._reply(kind, question, dialect, mark)

    def _unfit(self, question: Question) -> tuple[int, str, str] | None:
        behaviour = self.behaviour
        if question.stream:
            return 400, "unsupported_value", "This stub does not stream."
        if question.logprobs and (behaviour.logprobs == "refused" or question.top_logprobs > behaviour.max_logprobs):
            refused = behaviour.logprobs == "refused"
            why = "is not supported with this model" if refused else f"must be between 0 and {behaviour.max_logprobs}"
            return 400, "invalid_request", f"top_logprobs {why}"
        if behaviour.models and question.model not in behaviour.models:
            return 404, "model_not_found", f"The model `{question.model}` does not exist."
        if behaviour.max_chars is not None and question.chars > behaviour.max_chars:
            limits = f"{behaviour.max_chars // 4} tokens; your messages resulted in {question.chars // 4} tokens."
            message = f"prompt is too long: This model's maximum context length is {limits}"
            return 400, "context_length_exceeded", message
        if behaviour.filter_word is not None and behaviour.filter_word in question.text:
            return 400, "content_filter", "The response was filtered by the content filtering policy."
        return None

    def _reply(self, kind: str, question: Question, dialect: Dialect, mark: bytes) -> Reply:
        if kind in _SILENT:
            return _SILENT[kind]
        if kind in ("500", "503"):
            return _error(dialect, int(kind))
        if kind == "html":
            return Reply(http(200, HTML, content_type="text/html"), 200)
        said = answer(kind, question, self.behaviour)
        if self.label_of is not None:
            label = self.label_of(question)
            said = answer("chatter", question, self.behaviour)
            if label:
                said = Answer(in_form(label, question, self.behaviour), label=label)
        logs = "null"
        if question.logprobs and self.behaviour.logprobs != "ignored":
            sampled = self.behaviour.logprobs == "after sampling"
            logs = logprobs(question, said, labels_of(question, self.behaviour), sampled=sampled)
        body = completion(dialect, mark.hex(), question, said, logs)
        if kind in ("drop_middle", "half_closed"):
            then: Literal["close", "half"] = "close" if kind == "drop_middle" else "half"
            return Reply(http(200, body)[: -len(body) // 2], then=then)
        if kind == "truncated":
            return Reply(http(200, body[: len(body) // 2]), 200)
        return Reply(http(200, body), 200, paid=True)


def _json(status: int, value: object) -> Reply:
    return Reply(http(status, json.dumps(value).encode()), status)


def _error(dialect: Dialect, status: int, headers: str = "") -> Reply:
    return Reply(http(status, error(dialect, status, *_REFUSALS[status]), headers), status)


def _refuse(dialect: Dialect, status: int, code: str, message: str) -> tuple[str, float, Reply]:
    kind = code if status == 400 else str(status)
    return kind, 0.0, Reply(http(status, error(dialect, status, code, message)), status)


def _closing(status: int, body: bytes) -> Reply:
    return Reply(http(status, body, "Connection: close\r\n"), status, then="linger")


class StubServer:
    """Runs a stub in this process: `async with StubServer(behaviour) as stub: …`.

    `sockets` are those of other machines (network namespaces), where callers reach it too.
    """

    def __init__(
        self,
        behaviour: Behaviour | None = None,
        *,
        host: str = HOST,
        port: int = 0,
        sockets: Mapping[str, socket.socket] | None = None,
    ) -> None:
        if host != HOST:
            raise ValueError(f"the stub listens on {HOST} only: {host!r}")
        self.stub = Stub(behaviour or Behaviour())
        self._port = port
        self._sockets = sockets or {}
        self._servers: list[asyncio.Server] = []

    async def __aenter__(self) -> Stub:
        loop = asyncio.get_running_loop()
        self._servers = [await loop.create_server(partial(Connection, self.stub), HOST, self._port, backlog=4096)]
        self.stub.root = f"http://{HOST}:{self._servers[0].sockets[0].getsockname()[1]}"
        for machine, listening in self._sockets.items():
            self._servers.append(await loop.create_server(partial(Connection, self.stub, machine), sock=listening))
        return self.stub

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        for server in self._servers:
            server.close()
        for connection in tuple(self.stub.connections):
            connection.abort()
        for server in self._servers:
            await server.wait_closed()
        await asyncio.sleep(0)
