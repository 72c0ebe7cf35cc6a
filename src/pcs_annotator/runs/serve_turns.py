"""Turns at a ledger: a service holds its lock while texts are in progress, and other processes have theirs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pcs_annotator.asking.ledger.lock import LOCK_ATTEMPT_SECONDS, Say, SharedCalls, lock_ledger_async
from pcs_annotator.core.ledger_address import LedgerAddress

LONGEST_TURN = 20.0
"""Seconds after which other processes get a turn at the ledger, however many texts are waiting."""
LINGER_SECONDS = 0.1
"""How long the lock is kept after the last text, because to take it costs more than to answer a known text."""


class Turns:
    """Holds the lock of a ledger while texts are in progress, and lets other processes have their turn."""

    def __init__(self, ledger: LedgerAddress, say: Say) -> None:
        self._ledger, self._say = ledger, say
        self._door = asyncio.Lock()
        self._texts, self._since = 0, 0.0
        self._empty = asyncio.Event()
        self._holder: asyncio.Task[None] | None = None
        self._shared: SharedCalls

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[SharedCalls]:
        """Hold the lock together with other texts."""
        async with self._door:  # one text waits for the lock, and the others for that one
            await self._let_others()
            if self._holder is None:
                self._shared = await self._take()
            self._texts += 1
            self._shared.tasks += 1
            self._empty.clear()
        shared = self._shared
        try:
            yield shared
        finally:
            shared.tasks -= 1
            self._texts -= 1
            if not self._texts:
                self._empty.set()

    async def release(self) -> None:
        """Release the lock; no text is in progress."""
        if self._holder is not None:
            self._holder.cancel()
            await asyncio.wait([self._holder])

    async def _let_others(self) -> None:
        """If the lock was held for long, wait until it is released, and then long enough for others to take it."""
        if self._holder is not None and asyncio.get_running_loop().time() > self._since + LONGEST_TURN:
            await asyncio.wait([self._holder])
            await asyncio.sleep(3 * LOCK_ATTEMPT_SECONDS)

    async def _take(self) -> SharedCalls:
        taken: asyncio.Future[SharedCalls] = asyncio.get_running_loop().create_future()
        # a task of its own, because whoever takes a lock must also release it
        self._holder = asyncio.create_task(self._keep(taken))
        return await taken

    async def _keep(self, taken: asyncio.Future[SharedCalls]) -> None:
        try:
            async with lock_ledger_async(self._ledger, say=self._say) as shared:
                self._since = asyncio.get_running_loop().time()
                taken.set_result(shared)
                await asyncio.sleep(LINGER_SECONDS)
                while self._texts:
                    await self._empty.wait()
                    await asyncio.sleep(LINGER_SECONDS)
                self._holder = None
        except Exception as error:
            self._holder = None
            taken.set_exception(error)
