"""Batch APIs: many requests at once, as a file or as they are (Anthropic), answered within a day at half the price."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Collection, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

import orjson

from pcs_annotator.base.errors import ModelError
from pcs_annotator.core.chat import ChatModel, Request
from pcs_annotator.models.failures import failure, read_complaint, unreadable
from pcs_annotator.models.http import UNREADABLE, HttpModel, HttpReply, as_json

PRICE_SHARE = 0.5  # what a request in a batch costs, as a share of what it costs live; the same with every provider
HOURS = 24  # a batch is answered within this time, or expires
MOST_BYTES = 100 * 2**20 - 2**16  # the smallest limit of any provider on a file, with room for the rest of the form
QUOTA = re.compile(r"token_limit_exceeded|enqueued|queue (?:is )?full|too many (?:batch|pending)", re.I)
PENDING = ("pending", "running", "notRunning")
LONGEST_CHECK = 10.0
CLOCKS_APART = 120.0
NOT_PROCESSED = ("batch_expired", "batch_cancelled")
End = Literal["done", "expired", "cancelled", "failed", "gone"]
_ENDS: Mapping[str, End] = {"completed": "done", "expired": "expired", "cancelled": "cancelled", "failed": "failed"}
# Anthropic names a kind of error where others have an HTTP status.
_STATUS = {
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
    """How far a batch is."""

    end: End | None  # how it ended; None while it is under way
    finished: int = 0  # requests that have been processed so far
    files: tuple[str, ...] = ()  # where its results are
    trouble: str = ""  # why it failed as a whole
    over_quota: bool = False  # whether it failed because too many tokens are waiting already: it can be submitted later


class BatchLine(NamedTuple):
    """The result of one request: the answer as if it had been asked live; None if it was never processed."""

    custom_id: str
    answer: HttpReply | None


class LostBatch(NamedTuple):
    """What is known of a batch whose ID is not known."""

    uploaded: str  # its file; empty where there is none
    requests: int  # number of its requests
    since: float  # when it was submitted at the earliest, in seconds since 1970
    others: Collection[str]  # IDs of other batches


def batch_api(model: ChatModel) -> "BatchApi | None":
    """Return the batch API of a model; None if it has none."""
    return getattr(model, "batches", None)


# Provider with batches of files → the endpoint that its requests name.
FILE_BATCHES = {"openai": "/v1/chat/completions", "azure": "/chat/completions", "groq": "/v1/chat/completions"}


class BatchApi:
    """Submits batches of files to one model, and gets their results: upload, start, poll, download."""

    most_lines = 50_000  # maximum number of requests in a batch

    def __init__(self, model: HttpModel, endpoint: str = "") -> None:
        self._model, self._endpoint, self.parse_answer = model, endpoint, model.parse_answer
        chat, _, self._query = model.url.partition("?")
        self._folder = chat.removesuffix("/chat/completions").partition("/deployments/")[0]
        # addresses of all batches, of one, and of results; `{}` stands for its name
        self._list_url = self._url("batches", "limit=100")
        self._batch_url, self._results_url = self._url("batches/{}"), self._url("files/{}/content")

    def _url(self, path: str, query: str = "") -> str:
        queries = "&".join(part for part in (self._query, query) if part)
        return f"{self._folder}/{path}" + (f"?{queries}" if queries else "")

    def line(self, custom_id: str, request: Request) -> bytes:
        """Return a request as a line of a batch, without a line break."""
        payload = self._model.payload(request)
        if self._model.site.batch_model:
            payload["model"] = self._model.site.batch_model
        return as_json({"custom_id": custom_id, "method": "POST", "url": self._endpoint, "body": payload})

    async def upload(self, lines: Path) -> str:
        """Send a file of lines, wait until the server has checked it, and return its ID."""
        from aiohttp import FormData

        form = FormData()
        form.add_field("purpose", "batch")
        with lines.open("rb") as file:
            form.add_field("file", file, filename="requests.jsonl", content_type="application/jsonl")
            made = await self._json("POST", self._url("files"), form=form)
        name, wait = self._id(made), 0.1
        while made.get("status") in PENDING:  # Azure starts no batch before that
            await asyncio.sleep(wait)
            wait = min(2 * wait, LONGEST_CHECK)
            made = await self._json("GET", self._url(f"files/{name}"))
        return name

    async def create(self, lines: Path, uploaded: str) -> str:
        """Start a batch, and return its ID; `RateLimited` if too many tokens are waiting already."""
        payload = {"input_file_id": uploaded, "completion_window": f"{HOURS}h", "endpoint": self._endpoint}
        return self._id(await self._json("POST", self._url("batches"), payload=payload))

    async def find(self, lost: LostBatch) -> str | None:
        """Return the ID of a batch that may have been started; None if it was not."""
        listed = await self._json("GET", self._list_url)
        return next((str(batch["id"]) for batch in listed.get("data") or () if self._is_lost(lost, batch)), None)

    async def look(self, batch: str) -> BatchState:
        """Return how far a batch is."""
        answer = await self._model.send("GET", self._batch_url.format(batch))
        if answer.status == 404:
            return BatchState("gone", trouble=f"{self._model.site.url} does not know it")
        return self._state(self._object(answer))

    async def results(self, state: BatchState) -> AsyncIterator[BatchLine]:
        """Yield the results of a batch that has ended, in any order; unreadable lines are left out."""
        for name in state.files:
            async for line in self._model.lines(self._results_url.format(name), self._refusal):
                try:
                    result = self._result(orjson.loads(line))
                except UNREADABLE:
                    continue
                yield result

    def _is_lost(self, lost: LostBatch, batch: Mapping[str, Any]) -> bool:
        return batch.get("input_file_id") == lost.uploaded

    def _state(self, report: Mapping[str, Any]) -> BatchState:
        end = _ENDS.get(str(report.get("status")).lower())
        counts = report.get("request_counts") or {}
        finished = sum(value for name in ("completed", "failed") if isinstance(value := counts.get(name), int))
        # a batch without answers has no file of answers, and one without errors no file of errors
        files = tuple(str(report[name]) for name in ("output_file_id", "error_file_id") if report.get(name))
        trouble = _batch_trouble(report) if end == "failed" else ""
        full = QUOTA.search(trouble) is not None
        return BatchState(end, finished, files, self._model.site.scrub(trouble), over_quota=full)

    def _result(self, report: Mapping[str, Any]) -> BatchLine:
        name, response, error = str(report["custom_id"]), report.get("response"), report.get("error")
        if response:
            status = int(response.get("status_code") or 200)
            return BatchLine(name, _answered(status, response.get("body", response)))
        code = str((error or {}).get("code") or "")
        status = int(code) if code.isdecimal() and len(code) == 3 else 500
        return BatchLine(name, None if code in NOT_PROCESSED else _answered(status, {"error": error}))

    async def _json(self, method: str, url: str, **sent: Any) -> dict[str, Any]:
        return self._object(await self._model.send(method, url, **sent))

    def _object(self, answer: HttpReply) -> dict[str, Any]:
        if not 200 <= answer.status < 300:
            raise self._refusal(answer)
        try:
            value = orjson.loads(answer.body)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise unreadable(self._model.site, answer.body)
        return value

    def _refusal(self, answer: HttpReply) -> ModelError:
        complaint = read_complaint(answer.body)
        # Azure refuses a batch over quota with a 400
        status = 429 if answer.status == 400 and QUOTA.search(complaint.words) else answer.status
        return failure(self._model.site, status, complaint, answer.headers)

    def _id(self, made: Mapping[str, Any]) -> str:
        identifier = made.get("id")
        if not isinstance(identifier, str) or not identifier:
            raise unreadable(self._model.site, json.dumps(made).encode())
        return identifier


class MessageBatches(BatchApi):
    """Anthropic's message batches: the requests are sent with the batch itself, and there are no files."""

    most_lines = 10_000

    def __init__(self, model: HttpModel) -> None:
        super().__init__(model)
        self._home = f"{model.url}/batches"
        self._list_url = f"{self._home}?limit=100"
        self._batch_url, self._results_url = f"{self._home}/{{}}", f"{self._home}/{{}}/results"

    def line(self, custom_id: str, request: Request) -> bytes:
        """Return a request as part of a batch."""
        return as_json({"custom_id": custom_id, "params": self._model.payload(request)})

    async def upload(self, lines: Path) -> str:
        """Do nothing: there is no file."""
        return ""

    async def create(self, lines: Path, uploaded: str) -> str:
        """Start a batch."""
        requests = [orjson.loads(line) for line in lines.read_bytes().splitlines()]
        return self._id(await self._json("POST", self._home, payload={"requests": requests}))

    def _is_lost(self, lost: LostBatch, batch: Mapping[str, Any]) -> bool:
        """Return whether a batch is unknown, of this size, and not older; its results tell whose it is."""
        created = datetime.fromisoformat(batch["created_at"]).timestamp()
        fits = sum(batch["request_counts"].values()) == lost.requests and created >= lost.since - CLOCKS_APART
        return fits and batch["id"] not in lost.others

    def _state(self, report: Mapping[str, Any]) -> BatchState:
        counts = report.get("request_counts") or {}
        finished = sum(count for name, count in counts.items() if name != "processing")
        if report.get("processing_status") != "ended":
            return BatchState(None, finished)
        if not report.get("results_url"):  # results are kept for some weeks
            return BatchState("gone", finished, trouble="its results are no longer there")
        end: End = "cancelled" if counts.get("canceled") else "expired" if counts.get("expired") else "done"
        return BatchState(end, finished, (str(report["id"]),))

    def _result(self, report: Mapping[str, Any]) -> BatchLine:
        name, result = str(report["custom_id"]), report["result"]
        if result["type"] == "succeeded":
            return BatchLine(name, _answered(200, result["message"]))
        if result["type"] != "errored":
            return BatchLine(name, None)
        error = result["error"].get("error", result["error"])
        return BatchLine(name, _answered(_STATUS.get(error.get("type"), 500), {"error": error}))


def _answered(status: int, body: object) -> HttpReply:
    return HttpReply(status, orjson.dumps(body), {}, 0.0)


def _batch_trouble(report: Mapping[str, Any]) -> str:
    """Return why a batch failed as a whole."""
    errors = report.get("errors") or report.get("error") or ()
    listed = (errors.get("data") or [errors]) if isinstance(errors, dict) else errors
    if isinstance(listed, str):
        return listed
    parts = [
        f"{error.get('code') or ''} {error.get('message') or ''}".strip() for error in listed if isinstance(error, dict)
    ]
    return "; ".join(dict.fromkeys(part for part in parts if part)) or "no reason was given"
