"""What tasks that ask request of the thread that has the connection to a server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from itertools import chain
from typing import Any, NamedTuple

from pcs_annotator.asking.ledger import postgres
from pcs_annotator.asking.ledger.ledger import LedgerEntry, set_all
from pcs_annotator.core.chat import Reply


class LedgerRequests(NamedTuple):
    """Requests that are carried out together, each with the future of its result.

    Attributes:
        finds: Keys of replies to look up.
        claims: Keys of calls that a task is about to pay for.
        puts: Calls that were paid for.
        give_ups: Keys of claims that end without a reply.
        work: Something else to do with the connection.
    """

    finds: Sequence[tuple[Sequence[bytes], asyncio.Future[dict[bytes, Reply]]]] = ()
    claims: Sequence[tuple[bytes, asyncio.Future[Reply | None]]] = ()
    puts: Sequence[tuple[LedgerEntry, asyncio.Future[None]]] = ()
    give_ups: Sequence[bytes] = ()
    work: Sequence[tuple[Callable[[postgres.Connection], Any], Future[Any]]] = ()

    @classmethod
    def joined(cls, several: Iterable[LedgerRequests]) -> LedgerRequests:
        """Return all requests together."""
        return cls(*(tuple(chain.from_iterable(alike)) for alike in zip(*several, strict=True)))

    @property
    def waiting(self) -> list[asyncio.Future[Any]]:
        """What tasks wait for."""
        requests: list[tuple[object, asyncio.Future[Any]]] = [*self.finds, *self.claims, *self.puts]
        return [done for _, done in requests]


def settle(results: Iterable[tuple[asyncio.Future[Any], Any]]) -> None:
    """Set results, or errors, in the event loops that wait for them: one call per loop, because each wakes it up."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Any]]] = {}
    for done, result in results:
        by_loop.setdefault(done.get_loop(), []).append((done, result))
    for loop, some in by_loop.items():
        with suppress(RuntimeError):  # it was closed meanwhile, and nothing waits any more
            loop.call_soon_threadsafe(set_all, some)
