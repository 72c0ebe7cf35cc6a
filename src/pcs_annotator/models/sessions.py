"""HTTP connections: one pooled session per host and event loop, shared by all models of that host."""

from __future__ import annotations

import asyncio
import json
import warnings
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from functools import partial
from io import BytesIO
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from pcs_annotator.base.errors import ModelError, PcsWarning
from pcs_annotator.models.catalog import same_model
from pcs_annotator.models.failures import CallSite, too_large, unreachable
from pcs_annotator.models.sharing import lease, release

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession, FormData

T = TypeVar("T")

CONNECT_SECONDS = 20.0
# The engine's deadline is much shorter; this only keeps a lone `ask` from hanging forever.
SILENT_SECONDS = 600.0
KEEPALIVE_SECONDS = 60.0
LARGE = 2**20
ERROR_BYTES = 2**16
"""What is read of an error; the rest would not be shown."""
UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""What reading a reply of another shape than expected raises."""
LARGE_REPLY = 2**18
LARGE_AT_ONCE = 4
# Large replies are read one at a time: several at once would take several times the memory, and no less time.
_large_replies = ThreadPoolExecutor(1, thread_name_prefix="large-reply")


class HttpReply(NamedTuple):
    """A complete HTTP response, and the seconds from sending to its last byte."""

    status: int
    body: bytes
    headers: Mapping[str, str]
    latency: float


class Pool(NamedTuple):
    """The connections to a host in one event loop, and the right to hold one of a few large replies in memory."""

    session: ClientSession
    large: asyncio.Semaphore


class Client:
    """Sends the requests of one model over connections that all models of its host share."""

    def __init__(self, place: CallSite, url: str, headers: Mapping[str, str]) -> None:
        self.url = url
        self._place = place
        self._headers = headers
        self._origin = urlsplit(url)[:2]
        self._pools: dict[asyncio.AbstractEventLoop, Pool] = {}
        self._noticed = False

    async def post(self, payload: Mapping[str, object], read: Callable[[HttpReply], T]) -> T:
        """Post JSON once and return the response as read; a failing connection raises `ServerTrouble`.

        A reply is never larger in memory than the call site allows. A large one is read in a thread, so that the
        deadlines of other calls hold.
        """
        try:
            async with AsyncExitStack() as held:
                answer = await self._exchange("POST", self.url, held, _encode(payload))
                if len(answer.body) < LARGE_REPLY:
                    return read(answer)
                return await asyncio.get_running_loop().run_in_executor(_large_replies, read, answer)
        except ModelError as error:
            # otherwise, as long as the error is kept, its traceback keeps the reply in memory
            raise error.with_traceback(None) from None

    async def send(
        self, method: str, url: str, *, payload: Mapping[str, object] | None = None, form: FormData | None = None
    ) -> HttpReply:
        """Send JSON, a form or nothing to another address of the same host, and return the response."""
        async with AsyncExitStack() as held:
            return await self._exchange(method, url, held, form if payload is None else _encode(payload))

    async def _exchange(
        self, method: str, url: str, held: AsyncExitStack, body: bytes | BytesIO | FormData | None
    ) -> HttpReply:
        from aiohttp import ClientError, FormData

        headers = self._headers
        if isinstance(body, FormData):  # it names its own content type
            headers = {name: value for name, value in headers.items() if name != "Content-Type"}
        pool = self._pool()
        started = perf_counter()
        try:
            async with pool.session.request(method, url, data=body, headers=headers, allow_redirects=False) as response:
                raw = await self._body(response, pool.large, held)
        except (ClientError, TimeoutError, OSError) as error:
            raise unreachable(self._place, error) from None
        return HttpReply(response.status, raw, response.headers, perf_counter() - started)

    async def lines(self, url: str, refuse: Callable[[HttpReply], ModelError]) -> AsyncIterator[bytes]:
        """Yield the lines of a file of any size, except those larger than a reply may be.

        A file may be kept elsewhere; the key is not sent there. Another status than 200 raises what `refuse` makes of
        it, and a connection that breaks raises `ServerTrouble`.
        """
        from aiohttp import ClientError

        elsewhere = "Authorization" in self._headers  # the header that aiohttp keeps from other hosts
        try:
            async with self._pool().session.get(url, headers=self._headers, allow_redirects=elsewhere) as response:
                if response.status != 200:
                    raise refuse(HttpReply(response.status, await response.content.read(ERROR_BYTES), {}, 0.0))
                begun = bytearray()
                async for part in response.content.iter_any():
                    *ended, rest = part.split(b"\n")
                    for end in ended:
                        if len(begun) + len(end) <= self._place.most_bytes:
                            yield bytes(begun + end)
                        begun.clear()
                    begun += rest[: self._place.most_bytes + 1 - len(begun)]
                if begun:
                    yield bytes(begun)
        except (ClientError, TimeoutError, OSError) as error:
            raise unreachable(self._place, error) from None

    def _pool(self) -> Pool:
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop)
        if pool is None:
            for ended in [other for other in self._pools if other.is_closed()]:
                release((ended, self._origin), self)
                del self._pools[ended]
            pool = self._pools[loop] = lease((loop, self._origin), self, partial(_new_pool, self.url))
        return pool

    async def _body(self, response: ClientResponse, large: asyncio.Semaphore, held: AsyncExitStack) -> bytes:
        """Return the body, unpacked; of an error only the start. The connection is closed if there is more."""
        most = self._place.most_bytes if response.status == 200 else ERROR_BYTES
        packed = "Content-Encoding" in response.headers
        if not packed and 0 <= (response.content_length or -1) < min(most, LARGE_REPLY):  # nearly always
            return await response.read()
        parts: list[bytes] = []
        size = 0
        async for part in response.content.iter_any():
            was, size = size, size + len(part)
            if size > most:
                response.close()
                if response.status == 200:
                    raise too_large(self._place)
                return b"".join([*parts, part[: most - was]])
            parts.append(part)
            if was < LARGE_REPLY <= size:
                await held.enter_async_context(large)
        return b"".join(parts)

    def check_model(self, named: object) -> None:
        """Warn, once, if a reply names another model than the one that was asked."""
        if self._noticed or not isinstance(named, str) or not named or same_model(self._place.model, named):
            return
        self._noticed = True
        message = (
            f"{self._place.name}: the server answers as {self._place.scrub(named)!r}, not as the model that was asked: "
            "check which model it runs"
        )
        warnings.warn(message, PcsWarning, stacklevel=2)

    async def close(self) -> None:
        """Release the connections; the last client closes them. Posting again opens new ones."""
        pools, self._pools = self._pools, {}
        for loop in pools:
            pool = release((loop, self._origin), self)
            if pool is not None and loop is asyncio.get_running_loop():
                await pool.session.close()
            elif pool is not None and loop.is_running():
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(pool.session.close(), loop))


def as_json(value: object) -> bytes:
    """Return a value as it is sent; lone surrogates, which cannot be, become question marks."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


def _encode(payload: Mapping[str, object]) -> bytes | BytesIO:
    body = as_json(payload)
    # aiohttp writes a file-like body in pieces, and warns about large bodies in one piece.
    return body if len(body) < LARGE else BytesIO(body)


def _new_pool(url: str) -> Pool:
    from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, TCPConnector

    parts = urlsplit(url)
    session = ClientSession(
        # The engine limits the calls in flight, so the connector sets no limit of its own.
        connector=TCPConnector(limit=0, limit_per_host=0, keepalive_timeout=KEEPALIVE_SECONDS),
        cookie_jar=DummyCookieJar(),
        timeout=ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=SILENT_SECONDS),
        proxy=_proxy(parts.scheme, parts.hostname or ""),
    )
    return Pool(session, asyncio.Semaphore(LARGE_AT_ONCE))


def _proxy(scheme: str, hostname: str) -> str | None:
    """Return the proxy from the environment; looked up once, because aiohttp's `trust_env` does it for every call."""
    if hostname in ("localhost", "127.0.0.1", "::1") or proxy_bypass(hostname):
        return None
    return getproxies().get(scheme)
