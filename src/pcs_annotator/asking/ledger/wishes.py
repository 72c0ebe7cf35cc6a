"""What tasks wish for from the thread that has the connection to a server, and how they learn the result."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pcs_annotator.asking.ledger import postgres
from pcs_annotator.asking.ledger.ledger import LedgerEntry
from pcs_annotator.core.chat import Reply


class Find(NamedTuple):
    """The replies that the ledger has."""

    keys: Sequence[bytes]
    done: asyncio.Future[dict[bytes, Reply]]


class Claim(NamedTuple):
    """A call that a task is about to pay for."""

    key: bytes
    done: asyncio.Future[Reply | None]


class Put(NamedTuple):
    """A call that was paid for."""

    entry: LedgerEntry
    done: asyncio.Future[None]


class GiveUp(NamedTuple):
    """A claim that ends without a reply."""

    key: bytes


class Work(NamedTuple):
    """Something else to do with the connection."""

    do: Callable[[postgres.Connection], Any]
    done: Future[Any]


class Close(NamedTuple):
    """Nothing more will be wished for."""


Wish = Find | Claim | Put | GiveUp | Work | Close


@dataclass(slots=True)
class Group:
    """Wishes that are carried out together."""

    finds: list[Find] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    puts: list[Put] = field(default_factory=list)
    given_up: list[bytes] = field(default_factory=list)
    work: list[Work] = field(default_factory=list)
    last: bool = False

    def take(self, wish: Wish) -> None:
        """Add a wish."""
        match wish:
            case Find():
                self.finds.append(wish)
            case Claim():
                self.claims.append(wish)
            case Put():
                self.puts.append(wish)
            case GiveUp():
                self.given_up.append(wish.key)
            case Work():
                self.work.append(wish)
            case Close():
                self.last = True

    @property
    def waiting(self) -> list[asyncio.Future[Any]]:
        """What tasks wait for."""
        wishes: list[Find | Claim | Put] = [*self.finds, *self.claims, *self.puts]
        return [wish.done for wish in wishes]


def settle(results: Sequence[tuple[asyncio.Future[Any], Any]]) -> None:
    """Set results, or errors, in the event loops that wait for them: one call per loop, because each wakes it up."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Any]]] = {}
    for done, result in results:
        by_loop.setdefault(done.get_loop(), []).append((done, result))
    for loop, some in by_loop.items():
        with suppress(RuntimeError):  # it was closed meanwhile, and nothing waits any more
            loop.call_soon_threadsafe(_set_all, some)


def _set_all(results: Sequence[tuple[asyncio.Future[Any], Any]]) -> None:
    for done, result in results:
        if done.done():  # cancelled meanwhile
            continue
        if isinstance(result, Exception):
            done.set_exception(result)
        else:
            done.set_result(result)
