"""Batch APIs: many requests in one file, answered within a day at half the price.

OpenAI, Azure, Groq, Together and Mistral take a file of requests and give back one or two files of answers, under
slightly different paths and names. Anthropic takes the requests themselves and gives back their results.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import orjson

from pcs_annotator.asking.models.failures import CallSite, failure, read_complaint, unreadable
from pcs_annotator.asking.models.sessions import Client, HttpReply
from pcs_annotator.core.chat import ChatModel, Reply, Request
from pcs_annotator.errors import ModelError

PRICE_SHARE = 0.5
"""What a request in a batch costs, as a share of what it costs live; the same with every provider."""
HOURS = 24
"""A batch is answered within this time, or expires."""
MOST_BYTES = 100 * 2**20 - 2**16
"""The smallest limit of any provider on the size of a file, with room for the rest of the form."""
CLOCKS_APART = 120.0
PENDING = ("pending", "running", "notRunning")
LONGEST_CHECK = 10.0
QUOTA = re.compile(r"token_limit_exceeded|enqueued|queue (?:is )?full|too many (?:batch|pending)", re.I)
UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, RecursionError)

End = Literal["done", "expired", "cancelled", "failed", "gone"]
_ENDS: Mapping[str, End] = {
    "completed": "done",
    "success": "done",
    "ended": "done",
    "expired": "expired",
    "timeout_exceeded": "expired",
    "cancelled": "cancelled",
    "canceled": "cancelled",
    "failed": "failed",
}
# Anthropic names a kind of error where others have an HTTP status.
_ANTHROPIC_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "overloaded_error": 529,
}


class BatchState(NamedTuple):
    """How far a batch is.

    Attributes:
        end: How it ended; None while it is under way.
        finished: Requests that have been processed so far.
        files: Where its results are.
        trouble: Why it failed as a whole.
        over_quota: Whether it failed because too many tokens are waiting already: it can be submitted later.
    """

    end: End | None
    finished: int = 0
    files: tuple[str, ...] = ()
    trouble: str = ""
    over_quota: bool = False


class BatchLine(NamedTuple):
    """The result of one request: the answer as if it had been asked live; None if it was never processed."""

    custom_id: str
    answer: HttpReply | None


class LostBatch(NamedTuple):
    """What is known of a batch whose ID is not known.

    Attributes:
        uploaded: Its file; empty where there is none.
        requests: Number of its requests.
        since: When it was submitted at the earliest, in seconds since 1970.
        others: IDs of other batches.
    """

    uploaded: str
    requests: int
    since: float
    others: Collection[str]


class BatchApi(Protocol):
    """Submits batches to one model, and gets their results."""

    @property
    def most_lines(self) -> int:
        """Maximum number of requests in a batch."""
        ...

    def line(self, custom_id: str, request: Request) -> bytes:
        """Return a request as a line of a batch, without a line break."""
        ...

    def read(self, request: Request, answer: HttpReply) -> Reply:
        """Return the reply in an answer, or raise as a live call does; of the request, the texts do not matter."""
        ...

    async def upload(self, lines: Path) -> str:
        """Send a file of lines, and return its ID; empty where batches need no file."""
        ...

    async def create(self, lines: Path, uploaded: str) -> str:
        """Start a batch, and return its ID; `RateLimited` if too many tokens are waiting already."""
        ...

    async def find(self, lost: LostBatch) -> str | None:
        """Return the ID of a batch that may have been started; None if it was not."""
        ...

    async def look(self, batch: str) -> BatchState:
        """Return how far a batch is."""
        ...

    def results(self, state: BatchState) -> AsyncIterator[BatchLine]:
        """Yield the results of a batch that has ended, in any order."""
        ...


class Translator(Protocol):
    """What batches need of the live calls to a model."""

    def payload(self, request: Request) -> dict[str, Any]:
        """Return the body of a request."""
        ...

    def read(self, request: Request, answer: HttpReply) -> Reply:
        """Return the reply in an answer, or raise as a live call does; of the request, the texts do not matter."""
        ...


def batch_api(model: ChatModel) -> BatchApi | None:
    """Return the batch API of a model; None if it has none."""
    return getattr(model, "batches", None)


class _Calls:
    """HTTP calls for batches: JSON out, JSON in."""

    def __init__(self, model: Translator, client: Client, place: CallSite) -> None:
        self._model, self._client, self._place = model, client, place

    def read(self, request: Request, answer: HttpReply) -> Reply:
        """Return the reply in an answer, or raise as a live call does."""
        return self._model.read(request, answer)

    async def _json(self, method: str, url: str, **sent: Any) -> dict[str, Any]:
        answer = await self._client.send(method, url, **sent)
        if not 200 <= answer.status < 300:
            raise self._refusal(answer)
        try:
            value = orjson.loads(answer.body)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise unreadable(self._place, answer.body)
        return value

    def _refusal(self, answer: HttpReply) -> ModelError:
        complaint = read_complaint(answer.body)
        # Azure refuses a batch over quota with a 400
        status = 429 if answer.status == 400 and QUOTA.search(complaint.words) else answer.status
        return failure(self._place, status, complaint, answer.headers)

    def _id(self, made: Mapping[str, Any]) -> str:
        found = made.get("id")
        if not isinstance(found, str) or not found:
            raise unreadable(self._place, json.dumps(made).encode())
        return found

    async def _gone(self, method: str, url: str) -> dict[str, Any] | None:
        """Return what is at an address; None if there is nothing."""
        answer = await self._client.send(method, url)
        if answer.status == 404:
            return None
        if answer.status != 200:
            raise self._refusal(answer)
        try:
            value: dict[str, Any] = orjson.loads(answer.body)
            return value.get("job", value)  # Together wraps it
        except UNREADABLE:
            raise unreadable(self._place, answer.body) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileBatches:
    """How a provider's batches of files differ from OpenAI's.

    Attributes:
        files: Path to upload to.
        batches: Path of batches.
        purpose: The purpose of a file of requests.
        endpoint: The endpoint that requests name.
        fields: Further fields of the form.
        jobs: Whether a batch is a job in Mistral's sense: with a list of files, and a model for all requests.
    """

    files: str = "files"
    batches: str = "batches"
    purpose: str = "batch"
    endpoint: str = "/v1/chat/completions"
    fields: Mapping[str, str] = field(default_factory=dict)
    jobs: bool = False


FILE_BATCHES: Mapping[str, FileBatches] = {
    "openai": FileBatches(),
    "azure": FileBatches(endpoint="/chat/completions"),
    "groq": FileBatches(),
    "together": FileBatches(
        files="files/upload", purpose="batch-api", fields={"file_name": "requests.jsonl", "file_type": "jsonl"}
    ),
    "mistral": FileBatches(batches="batch/jobs", jobs=True),
}
"""Provider → how its batches work."""


class OpenAIBatches(_Calls):
    """Batches of files: upload, start, poll, download."""

    most_lines = 50_000

    def __init__(self, model: Translator, client: Client, place: CallSite, ways: FileBatches) -> None:
        super().__init__(model, client, place)
        self._ways = ways
        chat, _, self._query = client.url.partition("?")
        self._folder = chat.removesuffix("/chat/completions").partition("/deployments/")[0]

    def _url(self, path: str, query: str = "") -> str:
        queries = "&".join(part for part in (self._query, query) if part)
        return f"{self._folder}/{path}" + (f"?{queries}" if queries else "")

    def line(self, custom_id: str, request: Request) -> bytes:
        """Return a request as a line of a batch."""
        payload = self._model.payload(request)
        if self._place.batch_model:
            payload["model"] = self._place.batch_model
        if self._ways.jobs:
            body = {name: value for name, value in payload.items() if name != "model"}
            return _dumps({"custom_id": custom_id, "body": body})
        return _dumps({"custom_id": custom_id, "method": "POST", "url": self._ways.endpoint, "body": payload})

    async def upload(self, lines: Path) -> str:
        """Send a file of lines, wait until the server has checked it, and return its ID."""
        from aiohttp import FormData

        form = FormData()
        for name, value in {"purpose": self._ways.purpose, **self._ways.fields}.items():
            form.add_field(name, value)
        with lines.open("rb") as file:
            form.add_field("file", file, filename="requests.jsonl", content_type="application/jsonl")
            made = await self._json("POST", self._url(self._ways.files), form=form)
        name, wait = self._id(made), 0.1
        while made.get("status") in PENDING:  # Azure starts no batch before that
            await asyncio.sleep(wait)
            wait = min(2 * wait, LONGEST_CHECK)
            made = await self._json("GET", self._url(f"files/{name}"))
        return name

    async def create(self, lines: Path, uploaded: str) -> str:
        """Start a batch on a file."""
        ways, window = self._ways, f"{HOURS}h"
        given: dict[str, object] = {"input_file_id": uploaded, "endpoint": ways.endpoint, "completion_window": window}
        if ways.jobs:
            given = {
                "input_files": [uploaded],
                "endpoint": ways.endpoint,
                "model": self._place.model,
                "timeout_hours": HOURS,
            }
        made = await self._json("POST", self._url(ways.batches), payload=given)
        return self._id(made.get("job", made))

    async def find(self, lost: LostBatch) -> str | None:
        """Return the batch that was started on a file."""
        query = "page_size=100" if self._ways.jobs else "limit=100"
        listed = await self._json("GET", self._url(self._ways.batches, query))
        for batch in listed.get("data") or ():
            if lost.uploaded in (batch.get("input_file_id"), *(batch.get("input_files") or ())):
                return str(batch["id"])
        return None

    async def look(self, batch: str) -> BatchState:
        """Return how far a batch is."""
        told = await self._gone("GET", self._url(f"{self._ways.batches}/{batch}"))
        if told is None:
            return BatchState("gone", trouble=f"{self._place.url} does not know it")
        end = _ENDS.get(str(told.get("status")).lower())
        files = [told.get(name) for name in ("output_file_id", "output_file", "error_file_id", "error_file")]
        trouble = _batch_trouble(told) if end == "failed" else ""
        return BatchState(
            end,
            _finished(told),
            tuple(str(name) for name in files if name),
            self._place.scrub(trouble),
            over_quota=QUOTA.search(trouble) is not None,
        )

    async def results(self, state: BatchState) -> AsyncIterator[BatchLine]:
        """Yield the answers, then the errors; a batch without answers has no file of answers."""
        for name in state.files:
            async for line in self._client.lines(self._url(f"files/{name}/content"), self._refusal):
                found = _file_line(line)
                if found is not None:
                    yield found


def _file_line(line: bytes) -> BatchLine | None:
    """Return the result in a line; None if there is none."""
    try:
        told = orjson.loads(line)
        name, response, error = str(told["custom_id"]), told.get("response"), told.get("error")
        if response:
            status = int(response.get("status_code") or 200)
            return BatchLine(name, HttpReply(status, orjson.dumps(response.get("body", response)), {}, 0.0))
        code = str((error or {}).get("code") or "")
        if code in ("batch_expired", "batch_cancelled"):
            return BatchLine(name, None)
        status = int(code) if code.isdecimal() and len(code) == 3 else 500
        return BatchLine(name, HttpReply(status, orjson.dumps({"error": error}), {}, 0.0))
    except UNREADABLE:
        return None


def _batch_trouble(told: Mapping[str, Any]) -> str:
    """Return why a batch failed as a whole."""
    errors = told.get("errors") or told.get("error") or ()
    listed = (errors.get("data") or [errors]) if isinstance(errors, dict) else errors
    if isinstance(listed, str):
        return listed
    parts = [f"{one.get('code') or ''} {one.get('message') or ''}".strip() for one in listed if isinstance(one, dict)]
    return "; ".join(dict.fromkeys(part for part in parts if part)) or "no reason was given"


def _finished(told: Mapping[str, Any]) -> int:
    counts = told.get("request_counts")
    given = counts if isinstance(counts, dict) else told
    names = ("completed", "failed", "succeeded_requests", "failed_requests")
    return sum(value for name in names if isinstance(value := given.get(name), int))


class AnthropicBatches(_Calls):
    """Message batches: the requests are sent with the batch itself."""

    most_lines = 10_000

    def __init__(self, model: Translator, client: Client, place: CallSite) -> None:
        super().__init__(model, client, place)
        self._home = f"{place.url}/v1/messages/batches"

    def line(self, custom_id: str, request: Request) -> bytes:
        """Return a request as part of a batch."""
        return _dumps({"custom_id": custom_id, "params": self._model.payload(request)})

    async def upload(self, lines: Path) -> str:
        """Return nothing: there is no file."""
        return ""

    async def create(self, lines: Path, uploaded: str) -> str:
        """Start a batch."""
        requests = [orjson.loads(line) for line in lines.read_bytes().splitlines()]
        return self._id(await self._json("POST", self._home, payload={"requests": requests}))

    async def find(self, lost: LostBatch) -> str | None:
        """Return an unknown batch of this size since a time; its results tell whose it is."""
        listed = await self._json("GET", f"{self._home}?limit=100")
        for batch in listed.get("data") or ():
            created = datetime.fromisoformat(batch["created_at"]).timestamp()
            fits = sum(batch["request_counts"].values()) == lost.requests and created >= lost.since - CLOCKS_APART
            if fits and batch["id"] not in lost.others:
                return str(batch["id"])
        return None

    async def look(self, batch: str) -> BatchState:
        """Return how far a batch is."""
        told = await self._gone("GET", f"{self._home}/{batch}")
        if told is None:
            return BatchState("gone", trouble=f"{self._place.url} does not know it")
        counts = told.get("request_counts") or {}
        finished = sum(count for name, count in counts.items() if name != "processing")
        if told.get("processing_status") != "ended":
            return BatchState(None, finished)
        if not told.get("results_url"):  # results are kept for some weeks
            return BatchState("gone", finished, trouble="its results are no longer there")
        end: End = "cancelled" if counts.get("canceled") else "expired" if counts.get("expired") else "done"
        return BatchState(end, finished, (batch,))

    async def results(self, state: BatchState) -> AsyncIterator[BatchLine]:
        """Yield the results."""
        for batch in state.files:
            async for line in self._client.lines(f"{self._home}/{batch}/results", self._refusal):
                found = _message_line(line)
                if found is not None:
                    yield found


def _message_line(line: bytes) -> BatchLine | None:
    """Return the result in a line; None if there is none."""
    try:
        told = orjson.loads(line)
        name, result = str(told["custom_id"]), told["result"]
        if result["type"] == "succeeded":
            return BatchLine(name, HttpReply(200, orjson.dumps(result["message"]), {}, 0.0))
        if result["type"] != "errored":
            return BatchLine(name, None)
        error = result["error"].get("error", result["error"])
        status = _ANTHROPIC_STATUS.get(error.get("type"), 500)
        return BatchLine(name, HttpReply(status, orjson.dumps({"error": error}), {}, 0.0))
    except UNREADABLE:
        return None


def _dumps(value: object) -> bytes:
    # Lone surrogates cannot be sent: they become question marks.
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
