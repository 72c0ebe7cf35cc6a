"""HTTP connections: one pooled session per host and event loop, shared by all models of that host."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from io import BytesIO
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import orjson

from pcs_annotator.base.errors import BadRequest, ModelError, warn_user
from pcs_annotator.core.chat import Reply, Request
from pcs_annotator.models.catalog import context_of, same_model
from pcs_annotator.models.failures import MOST_BYTES, CallSite, unreachable
from pcs_annotator.models.provider import Named, lease, release

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession, ClientTimeout, FormData

T = TypeVar("T")

CONNECT_SECONDS = 20.0
# For a whole reply, and between two bytes of a file. The engine's deadline is much shorter; this keeps a lone `ask`
# from hanging forever, also if a byte comes now and then.
SILENT_SECONDS = 600.0
KEEPALIVE_SECONDS = 60.0
LARGE = 2**20
ERROR_BYTES = 2**16  # what is read of an error; the rest would not be shown
UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""What reading a reply of another shape than expected raises."""


class HttpReply(NamedTuple):
    """A complete HTTP response, and the seconds from sending to its last byte."""

    status: int
    body: bytes
    headers: Mapping[str, str]
    latency: float


class HttpModel(Named):
    """Base of models behind a server; connections are shared by all models of a host."""

    def __init__(self, site: CallSite, url: str, headers: Mapping[str, str]) -> None:
        self.name = site.name
        self.context_tokens = context_of(site.name)
        self.site, self.url = site, url
        # Answers are short: compression would cost more time than it saves.
        usual = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
        self._headers = {**usual, **headers}
        self._origin = urlsplit(url)[:2]
        self._sessions: dict[asyncio.AbstractEventLoop, ClientSession] = {}
        self._noticed = False

    def payload(self, request: Request) -> dict[str, Any]:
        """Return the body of a request."""
        raise NotImplementedError

    def parse_answer(self, request: Request, answer: HttpReply) -> Reply:
        """Return the reply in an answer, or raise as a live call does; of the request, the texts do not matter."""
        raise NotImplementedError

    async def post(self, payload: Mapping[str, object], parse: Callable[[HttpReply], T]) -> T:
        """Post JSON once and return the response as read, at most 4 MB; a failing connection is `ServerTrouble`."""
        try:
            return parse(await self.send("POST", self.url, payload=payload))
        except ModelError as error:
            # otherwise, as long as the error is kept, its traceback keeps the reply in memory
            raise error.with_traceback(None) from None

    async def send(
        self, method: str, url: str, *, payload: Mapping[str, object] | None = None, form: FormData | None = None
    ) -> HttpReply:
        """Send JSON, a form or nothing to an address of the host, and return the response."""
        from aiohttp import ClientError

        body: FormData | bytes | BytesIO | None = form
        headers = self._headers
        if payload is not None:
            sent = as_json(payload)
            # aiohttp writes a file-like body in pieces, and warns about large bodies in one piece.
            body = sent if len(sent) < LARGE else BytesIO(sent)
        elif form is not None:  # which names its own content type
            headers = {name: value for name, value in headers.items() if name != "Content-Type"}
        started = perf_counter()
        try:
            session = self._session()
            patience = session.timeout if form is None else _until_silent()
            async with session.request(
                method, url, data=body, headers=headers, allow_redirects=False, timeout=patience
            ) as response:
                raw = await self._body(response)
        except (ClientError, TimeoutError, OSError) as error:
            raise unreachable(self.site, error) from None
        return HttpReply(response.status, raw, response.headers, perf_counter() - started)

    async def lines(self, url: str, refuse: Callable[[HttpReply], ModelError]) -> AsyncIterator[bytes]:
        """Yield the lines of a file of any size, except those larger than a reply may be.

        A file may be kept elsewhere; the key is not sent there. Another status than 200 raises what `refuse` makes of
        it, and a connection that breaks raises `ServerTrouble`.
        """
        from aiohttp import ClientError

        elsewhere = "Authorization" in self._headers  # the header that aiohttp keeps from other hosts
        try:
            patience = _until_silent()
            async with self._session().get(
                url, headers=self._headers, allow_redirects=elsewhere, timeout=patience
            ) as response:
                if response.status != 200:
                    raise refuse(HttpReply(response.status, await response.content.read(ERROR_BYTES), {}, 0.0))
                begun = bytearray()
                async for part in response.content.iter_any():
                    *ended, rest = part.split(b"\n")
                    for end in ended:
                        if len(begun) + len(end) <= MOST_BYTES:
                            yield bytes(begun + end)
                        begun.clear()
                    begun += rest[: MOST_BYTES + 1 - len(begun)]
                if begun:
                    yield bytes(begun)
        except (ClientError, TimeoutError, OSError) as error:
            raise unreachable(self.site, error) from None

    def _session(self) -> ClientSession:
        loop = asyncio.get_running_loop()
        session = self._sessions.get(loop)
        if session is None:
            for ended in [other for other in self._sessions if other.is_closed()]:
                release((ended, self._origin), self)
                del self._sessions[ended]
            session = self._sessions[loop] = lease((loop, self._origin), self, partial(_new_session, self.url))
        return session

    async def _body(self, response: ClientResponse) -> bytes:
        """Return the body, unpacked; of an error only the start. The connection is closed if there is more."""
        most = MOST_BYTES if response.status == 200 else ERROR_BYTES
        content, parts, room = response.content, [], most + 1
        while room and not content.at_eof():
            parts.append(await content.read(room))
            room -= len(parts[-1])
        if not room:
            response.close()
            if response.status == 200:
                what = f"the reply is larger than 4 MB, unpacked (from {self.site.url}; not read on)"
                raise BadRequest(f"{self.name}: {what}")
        return b"".join(parts)[:most]

    def check_model(self, named: object) -> None:
        """Warn, once, if a reply names another model than the one that was asked."""
        asked = self.site.model
        if named == asked or self._noticed or not isinstance(named, str) or not named or same_model(asked, named):
            return
        self._noticed = True
        problem = f"the server answers as {self.site.scrub(named)!r}, not as the model that was asked"
        warn_user(f"{self.name}: {problem}: check which model it runs")

    async def close(self) -> None:
        """Close the connections unless another model uses them; asking again opens new ones."""
        sessions, self._sessions = self._sessions, {}
        for loop in sessions:
            session = release((loop, self._origin), self)
            if session is not None and loop is asyncio.get_running_loop():
                await session.close()
            elif session is not None and loop.is_running():
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(session.close(), loop))


def as_json(value: object) -> bytes:
    """Return a value as it is sent; lone surrogates, which cannot be, become question marks."""
    try:
        return orjson.dumps(value)
    except TypeError:  # of surrogates
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


def _new_session(url: str) -> ClientSession:
    from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, TCPConnector

    parts = urlsplit(url)
    return ClientSession(
        # The engine limits the calls in flight, so the connector sets no limit of its own.
        connector=TCPConnector(limit=0, limit_per_host=0, keepalive_timeout=KEEPALIVE_SECONDS),
        cookie_jar=DummyCookieJar(),
        timeout=ClientTimeout(total=SILENT_SECONDS, sock_connect=CONNECT_SECONDS),
        proxy=_proxy(parts.scheme, parts.hostname or ""),
    )


def _until_silent() -> ClientTimeout:
    """Return the patience with files, which may take any time as long as more bytes come."""
    from aiohttp import ClientTimeout

    return ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=SILENT_SECONDS)


def _proxy(scheme: str, hostname: str) -> str | None:
    """Return the proxy from the environment; looked up once, because aiohttp's `trust_env` does it for every call."""
    if hostname in ("localhost", "127.0.0.1", "::1") or proxy_bypass(hostname):
        return None
    return getproxies().get(scheme)
