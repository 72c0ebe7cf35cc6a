"""Connections: one pooled session per host and event loop, shared by all models of that host."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Mapping
from io import BytesIO
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

if TYPE_CHECKING:
    from aiohttp import ClientSession

CONNECT_SECONDS = 20.0
SILENT_SECONDS = 600.0  # the engine's deadline comes long before; this only keeps a lone `ask` from hanging for ever
KEEPALIVE_SECONDS = 60.0
LARGE = 2**20


class Shared:
    """A session and who uses it."""

    __slots__ = ("holders", "loop", "origin", "session")

    def __init__(self, origin: str, loop: asyncio.AbstractEventLoop, session: ClientSession) -> None:
        self.origin = origin
        self.loop = loop
        self.session = session
        self.holders: set[int] = set()


# Models are opened one by one and must still share connections, so the pool belongs to the process.
_open: list[Shared] = []
_lock = threading.Lock()


def lease(url: str, holder: object) -> Shared:
    """Return the session for the host of `url` in the running loop; `holder` keeps it open until it calls `release`."""
    parts = urlsplit(url)
    origin = f"{parts.scheme}://{parts.netloc}"
    loop = asyncio.get_running_loop()
    with _lock:
        _open[:] = [shared for shared in _open if not (shared.loop.is_closed() or shared.session.closed)]
        for shared in _open:
            if shared.loop is loop and shared.origin == origin:
                break
        else:
            shared = Shared(origin, loop, _new_session(parts.scheme, parts.hostname or ""))
            _open.append(shared)
        shared.holders.add(id(holder))
    return shared


async def release(holder: object) -> None:
    """Give up what `holder` leased; the last holder closes the session."""
    with _lock:
        for shared in _open:
            shared.holders.discard(id(holder))
        idle = [shared for shared in _open if not shared.holders]
        _open[:] = [shared for shared in _open if shared.holders]
    for shared in idle:
        await _close(shared)


def encode(payload: Mapping[str, object]) -> bytes | BytesIO:
    """Return the payload as JSON, ready to be posted."""
    # Lone surrogates cannot be sent: they leave as question marks.
    body = json.dumps(payload, ensure_ascii=False).encode("utf-8", "replace")
    # aiohttp writes a file-like body in pieces, and warns when so much comes in one.
    return body if len(body) < LARGE else BytesIO(body)


def transport_errors() -> tuple[type[Exception], ...]:
    """Return what a failing connection raises."""
    from aiohttp import ClientError

    return (ClientError, TimeoutError, OSError)


async def _close(shared: Shared) -> None:
    if shared.loop is asyncio.get_running_loop():
        await shared.session.close()
    elif shared.loop.is_running():
        closing = asyncio.run_coroutine_threadsafe(shared.session.close(), shared.loop)
        await asyncio.wrap_future(closing)


def _new_session(scheme: str, hostname: str) -> ClientSession:
    from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, TCPConnector

    # The engine decides how many calls are in flight, so the connector sets no limit of its own.
    connector = TCPConnector(limit=0, limit_per_host=0, keepalive_timeout=KEEPALIVE_SECONDS)
    return ClientSession(
        connector=connector,
        cookie_jar=DummyCookieJar(),
        timeout=ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=SILENT_SECONDS),
        proxy=_proxy(scheme, hostname),
    )


def _proxy(scheme: str, hostname: str) -> str | None:
    """Return the proxy of the environment; looked up once, since aiohttp's `trust_env` does it for every call."""
    if hostname in ("localhost", "127.0.0.1", "::1") or proxy_bypass(hostname):
        return None
    return getproxies().get(scheme)
