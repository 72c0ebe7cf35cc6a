"""A guard in front of a web app: who may ask, how much, and what no answer may lack."""

import asyncio
import hashlib
import hmac
import re
import secrets
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, ExceptionHandler, Message, Receive, Scope, Send

from pcs_annotator.base.errors import PcsError, UserError

READING = frozenset({"GET", "HEAD", "OPTIONS"})  # methods that change nothing
SECURITY_HEADERS = (
    (
        b"content-security-policy",
        b"default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
"""Headers of every answer, unless the app has set them."""
SECONDS_TO_DRAIN = 2.0
BUG = "a bug in pcs: please report it, with the line in the server's log"
_SANE_ID = re.compile(r"[A-Za-z0-9._:-]{1,64}")
_KINDS = {400: "bad_request", 401: "unauthorized", 403: "forbidden", 404: "not_found", 405: "method_not_allowed"}
_KINDS |= {409: "conflict", 413: "too_large", 415: "unsupported_media_type", 422: "unprocessable", 429: "queue_full"}
_KINDS |= {500: "internal_error", 503: "unavailable"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What a guard lets through."""

    names: frozenset[str]  # names by which the server may be addressed, lower case, without port; empty for any name
    token: str = ""  # what a client must know; empty if no token is needed
    cookie: str = "pcs"  # name of the cookie that stands for the token
    max_body: int = 16 * 2**20  # maximum number of bytes in the body of a request
    max_bodies: int = 64 * 2**20  # the same for all requests in progress together
    origins: frozenset[str] = frozenset()  # where else our pages may come from, such as a proxy: name, or name:port
    open_paths: frozenset[str] = frozenset()  # paths that need no token, such as those of health checks


def error_response(status: int, message: str, request_id: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return an error in the shape that all errors have."""
    error = {"message": message, "type": _KINDS.get(status, "error"), "request_id": request_id}
    return JSONResponse({"error": error}, status, dict(headers or {}))


async def _as_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return error_response(error.status_code, error.detail, request_id_of(request), error.headers)


def _answering(status: int, message: str = "") -> ExceptionHandler:
    async def answer(request: Request, error: Exception) -> Response:
        return error_response(status, message or str(error), request_id_of(request))

    return answer


ERROR_HANDLERS: Mapping[Any, ExceptionHandler] = {
    HTTPException: _as_http_error,
    ClientDisconnect: _answering(400, "the connection was closed before the body was complete"),
    UserError: _answering(400),
    PcsError: _answering(503),
    Exception: _answering(500, BUG),
}
"""For `Starlette(exception_handlers=...)`: every error as JSON, and what the user can fix with its sentence."""


def request_id_of(request: Request) -> str:
    """Return the id of a request that has passed a guard."""
    return str(getattr(request.state, "request_id", ""))


class Guard:
    """Checks Host, origin, token and size of every request; adds request id and security headers to every answer."""

    def __init__(self, app: ASGIApp, rules: Rules, say: Callable[[str], None], *, verbose: bool = False) -> None:
        self._app, self._rules, self._say, self._verbose = app, rules, say, verbose
        self._token = rules.token.encode()
        self._cookie = hmac.new(self._token, b"cookie", hashlib.sha256).hexdigest()
        self._bytes = 0  # in the bodies of requests in progress

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or hand it to the app."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, headers = time.perf_counter(), Headers(scope=scope)
        sent_id = headers.get("x-request-id", "")
        request_id = sent_id if _SANE_ID.fullmatch(sent_id) else secrets.token_hex(8)
        scope.setdefault("state", {})["request_id"] = request_id
        status = 0

        async def send_guarded(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers_sent = message["headers"]
                names = {name for name, _ in headers_sent}
                added = [header for header in SECURITY_HEADERS if header[0] not in names]
                message["headers"] = [*headers_sent, *added, (b"x-request-id", request_id.encode())]
            await send(message)

        try:
            refusal = self._refusal(scope, headers, request_id)
            if refusal is not None:
                await _refuse(refusal, scope, receive, send_guarded)
            else:
                await self._answer(scope, receive, send_guarded)
        except Exception as error:
            # neither the message nor the traceback, because both may quote a text
            self._say(f"{type(error).__name__} at {_place(error)}, request {request_id}")
            if not status:
                await error_response(500, BUG, request_id)(scope, receive, send_guarded)
        finally:
            if self._verbose:
                path = scope.get("raw_path", b"").partition(b"?")[0].decode("ascii", "replace")
                passed = 1000 * (time.perf_counter() - started)
                self._say(f"{scope['method']} {path[:200]} {status} {passed:.1f} ms {request_id}")

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request to the app, whose body need not say its length beforehand, and count the bytes of all."""
        seen, rules = 0, self._rules

        async def receive_limited() -> Message:
            nonlocal seen
            message = await receive()
            size = len(message.get("body", b""))
            seen, self._bytes = seen + size, self._bytes + size
            large, crowded = seen > rules.max_body, size and self._bytes > rules.max_bodies
            if large or crowded:
                seen, self._bytes = 0, self._bytes - seen  # what is refused is in nobody's way
                await _drain(receive)
            if large:
                raise HTTPException(413, _too_large(rules.max_body), {"Connection": "close"})
            if crowded:
                why = "other requests have too much in progress: try again soon"
                raise HTTPException(429, why, {"Connection": "close", "Retry-After": "5"})
            return message

        try:
            await self._app(scope, receive_limited, send)
        finally:
            self._bytes -= seen

    def _refusal(self, scope: Scope, headers: Headers, request_id: str) -> Response | None:
        """Return the answer to a request that does not reach the app; None if it does."""
        hosts, names = headers.getlist("host"), self._rules.names
        # a page that resolves its own name to us must not ask
        if len(hosts) != 1 or (names and host_name(hosts[0]) not in names):
            return error_response(
                403, "this server has another name: use the address that it printed, or allow the name", request_id
            )
        if scope["method"] not in READING and not self._same_origin(headers):
            return error_response(403, "the request comes from a page of another site", request_id)
        if not self._may_enter(scope, headers):
            return self._ask_for_token(scope, request_id)
        most = self._rules.max_body
        length = headers.get("content-length", "0")
        if length.isascii() and length.isdigit() and int(length) > most:
            return error_response(413, _too_large(most), request_id)
        return None

    def _same_origin(self, headers: Headers) -> bool:
        """Return whether a request comes from our own page, or from no page at all."""
        site = headers.get("sec-fetch-site")
        if site is not None:  # a page cannot set it, and `Origin` is null when no referrer is sent
            return site in ("same-origin", "none")
        origin = headers.get("origin")
        if origin is None:
            return True
        with suppress(ValueError):
            # with its port, because whoever listens at another one of this machine is somebody else
            there = urlsplit(origin).netloc.lower()
            return there == headers["host"].lower() or there in self._rules.origins
        return False

    def _may_enter(self, scope: Scope, headers: Headers) -> bool:
        if not self._token or scope["path"] in self._rules.open_paths:
            return True
        scheme, _, credentials = headers.get("authorization", "").partition(" ")
        return (scheme.lower() == "bearer" and self._is_token(credentials.strip())) or self._has_cookie(headers)

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode(), self._token)

    def _has_cookie(self, headers: Headers) -> bool:
        jar: SimpleCookie = SimpleCookie()
        with suppress(CookieError):
            jar.load(headers.get("cookie", ""))
        cookie = jar.get(self._rules.cookie)
        return cookie is not None and hmac.compare_digest(cookie.value.encode(), self._cookie.encode())

    def _ask_for_token(self, scope: Scope, request_id: str) -> Response:
        """Return 401; or, for a first visit with `?token=`, a cookie and the same address without the token."""
        asked = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        token = dict(asked).get("token", "")
        if scope["method"] != "GET" or not self._is_token(token):
            message = "a token is needed: send it as `Authorization: Bearer TOKEN`"
            return error_response(401, message, request_id, {"WWW-Authenticate": "Bearer"})
        rest = urlencode([pair for pair in asked if pair[0] != "token"])
        # one slash, because a browser takes `//name` for another site
        path = "/" + scope["path"].lstrip("/\\")
        response = RedirectResponse(path + (f"?{rest}" if rest else ""), 303)
        secure = scope["scheme"] == "https"
        response.set_cookie(self._rules.cookie, self._cookie, httponly=True, samesite="strict", secure=secure)
        return response


def host_name(header: str) -> str:
    """Return the name in a Host header, lower case, without port and brackets."""
    name, _, port = header.rpartition(":")
    bare = name if name and port.isdigit() else header
    return bare.strip("[]").rstrip(".").lower()


def _too_large(most: int) -> str:
    size = f"{most // 2**20} MiB" if most >= 2**20 else f"{most:,} bytes"
    return f"the body is larger than {size}: send less at once"


async def _refuse(response: Response, scope: Scope, receive: Receive, send: Send) -> None:
    response.headers["Connection"] = "close"
    await send({"type": "http.response.start", "status": response.status_code, "headers": response.raw_headers})
    body = b"" if scope["method"] == "HEAD" else bytes(response.body)
    await send({"type": "http.response.body", "body": body, "more_body": True})
    await _drain(receive)
    await send({"type": "http.response.body", "body": b""})


async def _drain(receive: Receive) -> None:
    """Read for a moment what a client is still sending: if the connection were closed, it would not see the answer."""
    with suppress(TimeoutError):
        async with asyncio.timeout(SECONDS_TO_DRAIN):
            while (await receive()).get("more_body"):
                pass


def _place(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "an unknown place"
