"""Batches of both protocols: files of requests, and Anthropic's message batches."""

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.stub.behaviour import Behaviour
from tests.stub.connection import Reply, Request
from tests.stub.formats import error, http

_FILE = re.compile(r".*/files")
_CONTENT = re.compile(r".*/files/([^/]+)/content")
_ONE_FILE = re.compile(r".*/files/([^/]+)")
_BATCHES = re.compile(r"(.*?)/(messages/batches|batches)")
_ONE_BATCH = re.compile(r".*/(?:messages/batches|batches)/([^/]+)(/cancel|/results)?")
_UNKNOWN = "0" * 32
_NEVER_RUN = {
    "expired": {"code": "batch_expired", "message": "The batch expired before this request could be executed."},
    "cancelled": {"code": "batch_cancelled", "message": "The batch was cancelled."},
}

Answer = Callable[[bytes, str], tuple[int, bytes]]
"""Body of a question and the path it is for → status and body of the reply."""


class _Result(NamedTuple):
    """The reply to one line; status 0 if it was never run."""

    custom_id: str
    status: int
    body: bytes


@dataclass
class _Batch:
    name: str
    way: str  # `messages/batches` or `batches`
    source: str  # the file of requests
    lines: list[tuple[str, bytes, str]]  # custom ID, body and path of every request
    created: float
    end: str  # how it will end
    tokens: int  # that wait in the queue as long as it is under way
    results: list[_Result] | None = None  # set when it has ended
    trouble: str = ""
    files: dict[str, str] = field(default_factory=dict)


class Batches:
    """Keeps files and batches, and answers the requests in them when a batch ends."""

    def __init__(self, behaviour: Callable[[], Behaviour], answer: Answer) -> None:
        self._behaviour, self._answer = behaviour, answer
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, _Batch] = {}
        self._dropped: set[str] = set()

    def handle(self, request: Request, path: str) -> Reply | None:
        """Return the reply to a request about files or batches; None if it is about something else."""
        if found := _BATCHES.fullmatch(path):
            return self._start(request, found[2]) if request.method == "POST" else self._listed(found[2])
        if found := _ONE_BATCH.fullmatch(path):
            return self._one(found[1], found[2] or "")
        if _FILE.fullmatch(path) and request.method == "POST":
            return self._upload(request)
        if found := _CONTENT.fullmatch(path):
            return self._content(found[1])
        if found := _ONE_FILE.fullmatch(path):
            return _json(200, {"id": found[1], "status": "processed"}) if found[1] in self.files else _missing()
        return None

    def _upload(self, request: Request) -> Reply:
        kind = request.header(b"content-type")
        mark = kind.partition("boundary=")[2].encode()
        parts: dict[str, bytes] = {}
        for part in request.body.split(b"--" + mark):
            head, _, body = part.partition(b"\r\n\r\n")
            if found := re.search(rb'name="(\w+)"', head):
                parts[found[1].decode()] = body.removesuffix(b"\r\n")
        if parts.get("purpose") != b"batch" or "file" not in parts:
            return _refused(400, "invalid_request", "A file needs a purpose and a content.")
        name = f"file-{len(self.files) + 1}"
        self.files[name] = parts["file"]
        # a file is checked for a moment, as Azure does
        return _json(200, {"id": name, "object": "file", "purpose": parts["purpose"].decode(), "status": "pending"})

    def _start(self, request: Request, way: str) -> Reply:
        given, behaviour = json.loads(request.body), self._behaviour()
        name, source = f"batch_{len(self.batches) + 1}", ""
        if way == "messages/batches":
            rows = [(row["custom_id"], row["params"], "/v1/messages") for row in given["requests"]]
        else:
            source = given["input_file_id"]
            if source not in self.files:
                return _missing()
            read = [json.loads(line) for line in self.files[source].splitlines()]
            rows = [(row["custom_id"], row["body"], "/v1/chat/completions") for row in read]
        lines = [(one, json.dumps(body, ensure_ascii=False).encode(), path) for one, body, path in rows]
        faulty = len(self.batches) < behaviour.batch_faults
        end = behaviour.batch_end if faulty else "completed"
        batch = _Batch(name, way, source, lines, time.time(), end, sum(len(body) for _, body, _ in lines) // 4)
        waiting = sum(other.tokens for other in self.batches.values() if other.results is None)
        if behaviour.batch_tokens is not None and waiting + batch.tokens > behaviour.batch_tokens:
            message = f"Enqueued token limit reached. Limit: {behaviour.batch_tokens:,} enqueued tokens."
            if way == "messages/batches":
                return _refused(429, "rate_limit_error", message)
            batch.end, batch.trouble, batch.results = "failed", f"token_limit_exceeded {message}", []
        self.batches[name] = batch
        told = self._told(batch)
        if behaviour.batch_lost and len(self.batches) == 1:
            return Reply(b"", then="close")
        return _json(200, told)

    def _listed(self, way: str) -> Reply:
        own = [self._told(batch) for batch in self.batches.values() if batch.way == way]
        return _json(200, {"object": "list", "data": own[::-1]})

    def _one(self, name: str, action: str) -> Reply:
        batch = self.batches.get(name)
        if batch is None:
            return _missing()
        if action == "/cancel":
            batch.end, batch.created = "cancelled", 0.0
        told = self._told(batch)
        if action == "/results":
            return _lines([_message(result, batch.end) for result in batch.results or ()])
        return _json(200, told)

    def _content(self, name: str) -> Reply:
        if name not in self.files:
            return _missing()
        reply = Reply(http(200, self.files[name], content_type="application/jsonl"), 200)
        if self._behaviour().batch_drop and name not in self._dropped:
            self._dropped.add(name)
            return Reply(reply.data[: -len(self.files[name]) // 2], then="close")
        return reply

    def _end(self, batch: _Batch) -> None:
        """Answer the requests of a batch whose time has come."""
        behaviour = self._behaviour()
        if batch.results is not None or time.time() < batch.created + behaviour.batch_s:
            return
        if batch.end == "failed":
            batch.results, batch.trouble = [], "invalid_json_line Line 1 of the file is not valid JSON."
            return
        count = len(batch.lines)
        run = count if batch.end == "completed" else round(behaviour.batch_done * count)
        found = [_Result(name, *self._answer(body, path)) for name, body, path in batch.lines[:run]]
        found += [_Result(name, 0, b"") for name, _, _ in batch.lines[run:]]
        if behaviour.batch_ids == "repeated":
            found += found[:2]
        elif behaviour.batch_ids == "unknown":
            found.append(found[0]._replace(custom_id=_UNKNOWN))
            found.append(found[0]._replace(custom_id="not-hex"))
        batch.results = found[::-1]  # the order of results means nothing
        for kind, wanted in (("output", True), ("error", False)):
            rows = [_row(one, batch.end) for one in batch.results if (one.status == 200) is wanted]
            if rows:
                name = f"{batch.name}-{kind}"
                self.files[name] = "\n".join(map(json.dumps, rows)).encode()
                batch.files[kind] = name

    def _told(self, batch: _Batch) -> dict[str, Any]:
        """Return a batch as its protocol shows it."""
        self._end(batch)
        done = batch.results is not None
        status = batch.end if done else "in_progress"
        results = batch.results or []
        right = sum(one.status == 200 for one in results)
        wrong = sum(one.status not in (0, 200) for one in results)
        told: dict[str, Any] = {"id": batch.name, "object": "batch", "created_at": int(batch.created)}
        if batch.way == "messages/batches":
            idle = len(results) - right - wrong
            counts = {"processing": 0 if done else len(batch.lines), "succeeded": right, "errored": wrong}
            counts |= {"canceled": idle * (batch.end == "cancelled"), "expired": idle * (batch.end == "expired")}
            told["created_at"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(batch.created))
            told["results_url"] = f"https://elsewhere.invalid/{batch.name}/results" if done else None
            return told | {"processing_status": "ended" if done else "in_progress", "request_counts": counts}
        code, _, message = batch.trouble.partition(" ")
        errors = [{"code": code, "message": message}] if batch.trouble else []
        names = {f"{kind}_file_id": batch.files.get(kind) for kind in ("output", "error")}
        counts = {"completed": right, "failed": wrong, "total": len(batch.lines)}
        return (
            told | names | {"status": status, "request_counts": counts, "input_file_id": batch.source}
            | {"errors": {"object": "list", "data": errors} if errors else None}
        )  # fmt: skip


def _message(result: _Result, end: str) -> dict[str, Any]:
    kinds = {"cancelled": "canceled", "expired": "expired"}
    if result.status == 200:
        told = {"type": "succeeded", "message": json.loads(result.body)}
    else:
        told = {"type": "errored", "error": json.loads(result.body)} if result.status else {"type": kinds[end]}
    return {"custom_id": result.custom_id, "result": told}


def _row(result: _Result, end: str) -> dict[str, Any]:
    told = {"id": f"req_{result.custom_id}", "custom_id": result.custom_id}
    if not result.status:
        return told | {"response": None, "error": _NEVER_RUN[end]}
    return told | {"response": {"status_code": result.status, "body": json.loads(result.body)}, "error": None}


def _json(status: int, value: object) -> Reply:
    return Reply(http(status, json.dumps(value).encode()), status)


def _lines(rows: list[dict[str, Any]]) -> Reply:
    return Reply(http(200, "\n".join(map(json.dumps, rows)).encode(), content_type="application/x-jsonl"), 200)


def _refused(status: int, code: str, message: str) -> Reply:
    return Reply(http(status, error("openai", status, code, message)), status)


def _missing() -> Reply:
    return _refused(404, "not_found", "There is no such file or batch.")
