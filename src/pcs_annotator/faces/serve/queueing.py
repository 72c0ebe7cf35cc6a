"""A bounded queue of texts."""

from __future__ import annotations

import math
from time import monotonic

from starlette.exceptions import HTTPException

LONGEST_WAIT = 60


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
