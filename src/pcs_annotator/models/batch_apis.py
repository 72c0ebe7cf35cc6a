"""Batch APIs: many requests at once, answered within a day at half the price; what the two protocols share.

OpenAI, Azure, Groq, Together and Mistral take a file of requests (`file_batches.py`). Anthropic takes the requests
themselves (`message_batches.py`).
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Collection, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import orjson

from pcs_annotator.base.errors import ModelError
from pcs_annotator.core.chat import ChatModel, Reply, Request
from pcs_annotator.models.failures import CallSite, failure, read_complaint, unreadable
from pcs_annotator.models.sessions import Client, HttpReply

PRICE_SHARE = 0.5
"""What a request in a batch costs, as a share of what it costs live; the same with every provider."""
HOURS = 24
"""A batch is answered within this time, or expires."""
MOST_BYTES = 100 * 2**20 - 2**16
"""The smallest limit of any provider on the size of a file, with room for the rest of the form."""
QUOTA = re.compile(r"token_limit_exceeded|enqueued|queue (?:is )?full|too many (?:batch|pending)", re.I)
UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, RecursionError)

End = Literal["done", "expired", "cancelled", "failed", "gone"]


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


class BatchCalls:
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


def as_line(value: object) -> bytes:
    """Return a value as a line of a file."""
    # Lone surrogates cannot be sent: they become question marks.
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
