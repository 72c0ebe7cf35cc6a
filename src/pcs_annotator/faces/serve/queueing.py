"""A bounded queue of texts, and answers that are given once however often they are asked for."""

from __future__ import annotations

import asyncio
import hashlib
import math
import re
from collections.abc import Awaitable, Callable
from time import monotonic

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

LONGEST_WAIT = 60
MEMORY_BYTES = 32 * 2**20
ENTRY_BYTES = 1024
"""About what an answer takes besides its body."""
_KEY = re.compile(r"[\x21-\x7e]{1,255}")


class TextQueue:
    """Counts the texts in progress and waiting, and refuses more than it has room for.

    Attributes:
        most: How many texts there is room for.
        texts: How many there are.
    """

    def __init__(self, most: int) -> None:
        self.most, self.texts = most, 0
        self._rate, self._left, self._noted_at = 1.0, 0, monotonic()

    def take(self, texts: int) -> None:
        """Take the room for some texts; 429 if there is not enough."""
        if self.texts + texts > self.most:
            wait = min(LONGEST_WAIT, max(1, math.ceil(self.texts / self._rate)))
            message = f"{self.texts:,} texts are waiting, and there is room for {self.most:,}: try again in {wait} s"
            raise HTTPException(429, message, {"Retry-After": str(wait)})
        self.texts += texts

    def leave(self) -> None:
        """Give the room of one text back, and note how fast that goes, so that a refusal can say when to come again."""
        self.texts -= 1
        self._left += 1
        now = monotonic()
        if now > self._noted_at + 1:
            self._rate, self._left, self._noted_at = self._left / (now - self._noted_at), 0, now


class Remembered:
    """Answers by the keys that clients gave to their requests; the oldest are forgotten first."""

    def __init__(self) -> None:
        self._answers: dict[str, tuple[bytes, asyncio.Future[Response]]] = {}
        self._bytes = 0

    async def once(self, key: str | None, body: bytes, answer: Callable[[], Awaitable[Response]]) -> Response:
        """Return the answer to a request; the same key and body get the same one, even while that is being made.

        An answer that the client should ask for again, such as 429 and 503, is not kept.
        """
        if key is None:
            return await answer()
        digest = hashlib.sha256(body).digest()
        if key in self._answers:
            before, coming = self._answers[key]
            if before != digest:
                raise HTTPException(422, "this Idempotency-Key was used with another body: use a new key")
            found = await asyncio.shield(coming)
            return Response(found.body, found.status_code, {"Idempotency-Replayed": "true"}, found.media_type)
        making = asyncio.ensure_future(answer())
        self._answers[key] = (digest, making)
        try:
            response = await asyncio.shield(making)
        except BaseException:
            making.add_done_callback(lambda _: self._answers.pop(key, None))
            raise
        if response.status_code >= 400:
            del self._answers[key]
        else:
            self._bytes += _size(response)
            self._forget()
        return response

    def _forget(self) -> None:
        for key, (_, answer) in list(self._answers.items()):
            if self._bytes <= MEMORY_BYTES:
                return
            if answer.done():
                self._bytes -= _size(answer.result())
                del self._answers[key]


def _size(response: Response) -> int:
    return len(response.body) + ENTRY_BYTES


def key_of(request: Request) -> str | None:
    """Return the key that a client gave to its request; None if it gave none."""
    key = request.headers.get("idempotency-key")
    if key is not None and not _KEY.fullmatch(key):
        raise HTTPException(400, "Idempotency-Key must have 1 to 255 printable ASCII characters without spaces")
    return key
