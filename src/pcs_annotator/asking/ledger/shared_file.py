"""A ledger in a file that several processes ask with at once: each claims a call before it pays for it."""

import asyncio
import fcntl
from pathlib import Path
from typing import BinaryIO

from pcs_annotator.asking.ledger.admin import LedgerEntry
from pcs_annotator.asking.ledger.sqlite import Ledger
from pcs_annotator.core.chat import Reply

POLL_SECONDS = 0.1  # pause between looks for the replies that other processes are getting


class SharedLedger(Ledger):
    """A file of paid calls without a lock on the whole of it.

    A claim is a lock on one byte of an empty file next to the ledger, at a place that follows from the call. The system
    ends it when its process ends, in whatever way. Tasks of one process are not kept apart.
    """

    def __init__(self, path: Path | str) -> None:
        super().__init__(path)
        self._claims: BinaryIO | None = None

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        if self._claims is not None:
            self._claims.close()
            self._claims = None

    async def claim(self, key: bytes) -> Reply | None:
        """Claim a call before paying for it; if another process pays for it already, return the reply when it comes."""
        claimed = self._lock(key)
        while (reply := (await self.find([key])).get(key)) is None and not claimed:
            await asyncio.sleep(POLL_SECONDS)
            claimed = self._lock(key)
        if claimed and reply is not None:
            self.give_up(key)
        return reply

    async def put(self, entry: LedgerEntry) -> None:
        """Store a paid call, and end the claim on it; returns once it is in the file."""
        await super().put(entry)
        self.give_up(entry.key)

    def give_up(self, key: bytes) -> None:
        """End the claim on a call."""
        if self._claims is not None:
            fcntl.lockf(self._claims, fcntl.LOCK_UN, 1, _place(key))

    def _lock(self, key: bytes) -> bool:
        with self._explained():
            if self._claims is None:
                self._claims = Path(f"{self.path}-claims").open("wb")  # noqa: SIM115  # closed with the ledger
            try:
                fcntl.lockf(self._claims, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _place(key))
            except BlockingIOError:
                return False
        return True


def _place(key: bytes) -> int:
    return int.from_bytes(key[:7], "big")
