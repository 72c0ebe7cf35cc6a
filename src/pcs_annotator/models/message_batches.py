"""Anthropic's message batches: the requests are sent with the batch itself, and there are no files."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path

import orjson

from pcs_annotator.core.chat import Request
from pcs_annotator.models.batch_apis import (
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

CLOCKS_APART = 120.0
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


class AnthropicBatches(BatchCalls):
    """Message batches: the requests are sent with the batch itself."""

    most_lines = 10_000

    def __init__(self, model: Translator, client: Client, place: CallSite) -> None:
        super().__init__(model, client, place)
        self._home = f"{place.url}/v1/messages/batches"

    def line(self, custom_id: str, request: Request) -> bytes:
        """Return a request as part of a batch."""
        return as_line({"custom_id": custom_id, "params": self._model.payload(request)})

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
        status = _STATUS.get(error.get("type"), 500)
        return BatchLine(name, HttpReply(status, orjson.dumps({"error": error}), {}, 0.0))
    except UNREADABLE:
        return None
