"""Batches of files: OpenAI, Azure, Groq, Together and Mistral, under slightly different paths and names."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from pcs_annotator.core.chat import Request
from pcs_annotator.models.batch_apis import (
    HOURS,
    QUOTA,
    UNREADABLE,
    BatchCalls,
    BatchLine,
    BatchState,
    End,
    LostBatch,
    Translator,
    as_line,
)
from pcs_annotator.models.failures import CallSite
from pcs_annotator.models.sessions import Client, HttpReply

PENDING = ("pending", "running", "notRunning")
LONGEST_CHECK = 10.0
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


class OpenAIBatches(BatchCalls):
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
            return as_line({"custom_id": custom_id, "body": body})
        return as_line({"custom_id": custom_id, "method": "POST", "url": self._ways.endpoint, "body": payload})

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
