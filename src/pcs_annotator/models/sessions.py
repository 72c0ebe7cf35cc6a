"""HTTP connections: one pooled session per host and event loop, shared by all models of that host."""

from __future__ import annotations

import asyncio
import json
import threading
import warnings
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from io import BytesIO
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from pcs_annotator.base.errors import ModelError, PcsWarning, ServerTrouble
from pcs_annotator.models.catalog import same_model
from pcs_annotator.models.failures import CallSite, too_large, unreachable

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
LARGE_REPLY = 2**18
PIECE = 2**16
LARGE_AT_ONCE = 4
# Large replies are read one at a time: several at once would take several times the memory, and no less time.
_large_replies = ThreadPoolExecutor(1, thread_name_prefix="large-reply")


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
        self._noticed = False

    async def post(self, payload: Mapping[str, object], read: Callable[[HttpReply], T]) -> T:
        """Post JSON once and return the response as read; a failing connection raises `ServerTrouble`.

        A reply is never larger in memory than the call site allows. A large one is read in a thread, so that the
        deadlines of other calls hold.
        """
        try:
            return await self._exchange(payload, read)
        except ModelError as error:
            # otherwise, as long as the error is kept, its traceback keeps the reply in memory
            raise error.with_traceback(None) from None

    async def _exchange(self, payload: Mapping[str, object], read: Callable[[HttpReply], T]) -> T:
        from aiohttp import ClientError

        body = _encode(payload)
        shared = self._session()
        started = perf_counter()
        async with AsyncExitStack() as held:
            try:
                async with shared.session.post(
                    self.url, data=body, headers=self._headers, allow_redirects=False
                ) as response:
                    raw = await self._body(response, shared.large, held)
            except (ClientError, TimeoutError, OSError) as error:
                raise unreachable(self._place, error) from None
            answer = HttpReply(response.status, raw, response.headers, perf_counter() - started)
            if len(raw) < LARGE_REPLY:
                return read(answer)
            return await shared.loop.run_in_executor(_large_replies, read, answer)

    async def send(
        self, method: str, url: str, *, payload: Mapping[str, object] | None = None, form: FormData | None = None
    ) -> HttpReply:
        """Send JSON, a form or nothing to another address of the same host, and return the response."""
        from aiohttp import ClientError

        body = form if payload is None else _encode(payload)
        headers = {name: value for name, value in self._headers.items() if form is None or name != "Content-Type"}
        shared = self._session()
        started = perf_counter()
        async with AsyncExitStack() as held:
            try:
                async with shared.session.request(
                    method, url, data=body, headers=headers, allow_redirects=False
                ) as response:
                    raw = await self._body(response, shared.large, held)
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
            async with self._session().session.get(url, headers=self._headers, allow_redirects=elsewhere) as response:
                if response.status != 200:
                    raise refuse(HttpReply(response.status, await response.content.read(ERROR_BYTES), {}, 0.0))
                unpack = _unpacker(response.headers.get("Content-Encoding", "").strip().lower())
                begun = bytearray()
                async for chunk in response.content.iter_any():
                    for part in unpack(chunk):
                        *ended, rest = part.split(b"\n")
                        for end in ended:
                            if len(begun) + len(end) <= self._place.most_bytes:
                                yield bytes(begun + end)
                            begun.clear()
                        begun += rest[: self._place.most_bytes + 1 - len(begun)]
                if begun:
                    yield bytes(begun)
        except (ClientError, TimeoutError, OSError, zlib.error, LookupError) as error:
            raise unreachable(self._place, error) from None

    def _session(self) -> Shared:
        shared = self._shared
        if shared is None or shared.loop is not asyncio.get_running_loop() or shared.session.closed:
            shared = self._shared = _lease(self.url, self)
        return shared

    async def _body(self, response: ClientResponse, large: asyncio.Semaphore, held: AsyncExitStack) -> bytes:
        """Return the body, unpacked; of an error only the start. The connection is closed if there is more."""
        most = self._place.most_bytes if response.status == 200 else ERROR_BYTES
        packing = response.headers.get("Content-Encoding", "")
        if not packing and 0 <= (response.content_length or -1) < min(most, LARGE_REPLY):  # nearly always
            return await response.read()
        parts: list[bytes] = []
        size = 0
        try:
            unpack = _unpacker(packing.strip().lower())
            async for chunk in response.content.iter_any():
                for part in unpack(chunk):
                    was, size = size, size + len(part)
                    if size > most:
                        response.close()
                        if response.status == 200:
                            raise too_large(self._place)
                        return b"".join([*parts, part[: most - was]])
                    parts.append(part)
                    if was < LARGE_REPLY <= size:
                        await held.enter_async_context(large)
        except (zlib.error, LookupError):
            name = self._place.scrub(packing)
            message = f"{self._place.name}: {self._place.url} sent a reply packed as {name} that cannot be unpacked"
            raise ServerTrouble(message) from None
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
        """Release the session; the last client closes it. Posting again opens a new one."""
        self._shared = None
        await _release(self)


class Shared:
    """A session and the clients that use it."""

    __slots__ = ("holders", "large", "loop", "origin", "session")

    def __init__(self, origin: str, loop: asyncio.AbstractEventLoop, session: ClientSession) -> None:
        self.origin = origin
        self.loop = loop
        self.session = session
        self.holders: set[int] = set()
        self.large = asyncio.Semaphore(LARGE_AT_ONCE)


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


def _unpacker(encoding: str) -> Callable[[bytes], Iterable[bytes]]:
    """Return a function that unpacks the next chunk, piece by piece; it raises if it cannot."""
    if encoding in ("", "identity"):
        return lambda chunk: (chunk,)
    # 32: with the header of gzip or zlib, whichever it has
    bits = {"gzip": 32, "x-gzip": 32, "deflate": 32}[encoding] + zlib.MAX_WBITS
    unpacker = None

    def unpack(chunk: bytes) -> Iterator[bytes]:
        nonlocal unpacker
        if unpacker is None:
            bare = encoding == "deflate" and chunk[0] & 15 != 8  # servers send it without a header as well
            unpacker = zlib.decompressobj(-zlib.MAX_WBITS if bare else bits)
        while chunk:
            yield unpacker.decompress(chunk, PIECE)
            chunk = unpacker.unconsumed_tail

    return unpack


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
        auto_decompress=False,  # unpacked here, where it can be bounded
        cookie_jar=DummyCookieJar(),
        timeout=ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=SILENT_SECONDS),
        proxy=_proxy(scheme, hostname),
    )


def _proxy(scheme: str, hostname: str) -> str | None:
    """Return the proxy from the environment; looked up once, because aiohttp's `trust_env` does it for every call."""
    if hostname in ("localhost", "127.0.0.1", "::1") or proxy_bypass(hostname):
        return None
    return getproxies().get(scheme)
