"""HTTP connections: one pooled session per host and event loop, shared by all models of that host."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Mapping
from io import BytesIO
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from pcs_annotator.asking.models.failures import CallSite, unreachable

if TYPE_CHECKING:
    from aiohttp import ClientSession

CONNECT_SECONDS = 20.0
# The engine's deadline is much shorter; this only keeps a lone `ask` from hanging forever.
SILENT_SECONDS = 600.0
KEEPALIVE_SECONDS = 60.0
LARGE = 2**20


class HttpReply(NamedTuple):
    """A complete HTTP response, and the seconds from sending to its last byte."""

    status: int
    body: bytes
    headers: Mapping[str, str]
    latency: float


class Client:
    """Posts the requests of one model over the session of its host."""

    def __init__(self, place: CallSite, url: str, headers: Mapping[str, str]) -> None:
        self.url = url
        self._place = place
        self._headers = headers
        self._shared: Shared | None = None

    async def post(self, payload: Mapping[str, object]) -> HttpReply:
        """Post JSON once and return the response; a failing connection raises `ServerTrouble`."""
        from aiohttp import ClientError

        body = _encode(payload)
        shared = self._shared
        if shared is None or shared.loop is not asyncio.get_running_loop() or shared.session.closed:
            shared = self._shared = _lease(self.url, self)
        started = perf_counter()
        try:
            async with shared.session.post(
                self.url, data=body, headers=self._headers, allow_redirects=False
            ) as response:
                raw = await response.read()
        except (ClientError, TimeoutError, OSError) as error:
            raise unreachable(self._place, error) from None
        return HttpReply(response.status, raw, response.headers, perf_counter() - started)

    async def close(self) -> None:
        """Release the session; the last client closes it. Posting again opens a new one."""
        self._shared = None
        await _release(self)


class Shared:
    """A session and the clients that use it."""

    __slots__ = ("holders", "loop", "origin", "session")

    def __init__(self, origin: str, loop: asyncio.AbstractEventLoop, session: ClientSession) -> None:
        self.origin = origin
        self.loop = loop
        self.session = session
        self.holders: set[int] = set()


# Models are opened one by one and must still share connections, so the pool belongs to the process.
_open: list[Shared] = []
_lock = threading.Lock()


def _lease(url: str, holder: Client) -> Shared:
    """Return the session for the host of `url` in the running loop; it stays open until the holder releases it."""
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


async def _release(holder: Client) -> None:
    with _lock:
        for shared in _open:
            shared.holders.discard(id(holder))
        idle = [shared for shared in _open if not shared.holders]
        _open[:] = [shared for shared in _open if shared.holders]
    for shared in idle:
        await _close(shared)


def _encode(payload: Mapping[str, object]) -> bytes | BytesIO:
    # Lone surrogates cannot be sent: they become question marks.
    body = json.dumps(payload, ensure_ascii=False).encode("utf-8", "replace")
    # aiohttp writes a file-like body in pieces, and warns about large bodies in one piece.
    return body if len(body) < LARGE else BytesIO(body)


async def _close(shared: Shared) -> None:
    if shared.loop is asyncio.get_running_loop():
        await shared.session.close()
    elif shared.loop.is_running():
        closing = asyncio.run_coroutine_threadsafe(shared.session.close(), shared.loop)
        await asyncio.wrap_future(closing)


def _new_session(scheme: str, hostname: str) -> ClientSession:
    from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, TCPConnector

    # The engine limits the calls in flight, so the connector sets no limit of its own.
    connector = TCPConnector(limit=0, limit_per_host=0, keepalive_timeout=KEEPALIVE_SECONDS)
    return ClientSession(
        connector=connector,
        cookie_jar=DummyCookieJar(),
        timeout=ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=SILENT_SECONDS),
        proxy=_proxy(scheme, hostname),
    )


def _proxy(scheme: str, hostname: str) -> str | None:
    """Return the proxy from the environment; looked up once, because aiohttp's `trust_env` does it for every call."""
    if hostname in ("localhost", "127.0.0.1", "::1") or proxy_bypass(hostname):
        return None
    return getproxies().get(scheme)
